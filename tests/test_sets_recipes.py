"""Recipes: what they mean, how they travel through scikit-learn, and what they refuse."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

import equipoise.sets
from equipoise.exceptions import (
    ClassMismatchError,
    EmptySetError,
    InvalidInputError,
    InvalidParameterError,
)
from equipoise.sets import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    MassSet,
    PriorBall,
    PriorBox,
    WeightBox,
    WeightHull,
    WorstClass,
    as_uncertainty,
)
from set_examples import few_examples

PRIOR, NAMES = np.array([0.6, 0.3, 0.1]), ["a", "b", "c"]

RECIPES = [
    *few_examples(),
    FixedWeights({"a": 1, "b": 2, "c": 3}),
    FixedWeights(np.array([1.0, 2.0, 3.0])),
    LabelHCVaR(c=0.5, kappa=2),
    LabelHCVaR(alphas={"a": 0.9, "b": 0.2, "c": 0.1}),
    WeightBox(0.5, {"c": 4}),
    PriorBox({"a": 0.1}, np.array([0.9, 0.5, 0.5])),
    PriorBall(0.1, "chi2", center=[0.4, 0.3, 0.3]),
    WeightHull(["standard", {"a": 1, "b": 1, "c": 7}, np.array([1.0, 2.0, 3.0])]),
]

every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)


class SmallestRisk(ClassifierMixin, BaseEstimator):
    """Predicts one class; its score is minus the robust risk, so that a grid has a best point."""

    def __init__(self, uncertainty=None):
        self.uncertainty = uncertainty

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.mass_set_ = self.uncertainty.resolve(counts / counts.sum(), self.classes_)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return -self.mass_set_.support([0.0, 1.0])


@every_recipe
def test_recipes_are_cloned_printed_and_pickled(recipe):
    risks = np.array([0.1, 0.4, 0.2])
    expected = recipe.resolve(PRIOR, NAMES).maximize(risks)
    for copy in (clone(recipe), pickle.loads(pickle.dumps(recipe))):
        assert type(copy) is type(recipe) and repr(copy) == repr(recipe)
        np.testing.assert_array_equal(copy.resolve(PRIOR, NAMES).maximize(risks), expected)
    assert repr(recipe).startswith(type(recipe).__name__)


@every_recipe
def test_resolved_sets_are_pickled(recipe):
    mass_set = recipe.resolve(PRIOR, NAMES)
    copy = pickle.loads(pickle.dumps(mass_set))
    assert isinstance(copy, MassSet) and copy.n_classes == 3
    np.testing.assert_array_equal(copy.project(np.ones(3)), mass_set.project(np.ones(3)))


@every_recipe
def test_resolving_leaves_the_recipe_as_it_was(recipe):
    before = repr(recipe)
    recipe.resolve(PRIOR, NAMES)
    assert repr(recipe) == before and not [name for name in vars(recipe) if name.endswith("_")]


def test_grid_search_reaches_into_the_recipe():
    X, y = np.zeros((40, 1)), np.array([0] * 30 + [1] * 10)
    search = GridSearchCV(
        SmallestRisk(LabelCVaR(0.5)), {"uncertainty__alpha": [0.3, 0.9, 0.6]}, cv=2
    ).fit(X, y)
    assert search.best_params_ == {"uncertainty__alpha": 0.9}
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], -0.25 / np.array([0.3, 0.9, 0.6])
    )


def test_standard_balanced_and_scaled_weights():
    np.testing.assert_allclose(FixedWeights("standard").resolve(PRIOR).vertices[0], PRIOR)
    np.testing.assert_allclose(
        FixedWeights("balanced").resolve(PRIOR).vertices[0], np.full(3, 1 / 3)
    )
    np.testing.assert_allclose(
        FixedWeights("balanced").resolve([0.6, 0.4, 0]).vertices[0], [0.5, 0.5, 0]
    )
    for weights in ([1, 2, 6], {"a": 10, "c": 60, "b": 20}):
        np.testing.assert_allclose(
            FixedWeights(weights).resolve(PRIOR, NAMES).vertices[0], np.array([6, 6, 6]) / 18
        )


def test_levels_of_label_hcvar():
    # kappa = 2, c = 0.5: alpha_i = 0.5 sqrt(p_i) / sum sqrt(p_j)
    root = np.sqrt(PRIOR)
    caps = PRIOR / (0.5 * root / root.sum())
    found = LabelHCVaR(c=0.5, kappa=2).resolve(PRIOR).upper
    np.testing.assert_allclose(found, np.minimum(caps, 1), rtol=1e-14)
    found = LabelHCVaR(alphas=[0.8, 0.6, 0.5]).resolve(PRIOR).upper
    np.testing.assert_allclose(found, [0.75, 0.5, 0.2], rtol=1e-14)
    by_level, plain = LabelHCVaR(alphas=0.4).resolve(PRIOR), LabelCVaR(0.4).resolve(PRIOR)
    np.testing.assert_array_equal(by_level.upper, plain.upper)


def test_extreme_levels_do_not_overflow():
    assert LabelCVaR(1e-320).resolve(PRIOR).is_simplex
    assert LabelHCVaR(alphas=5e-324).resolve(PRIOR).is_simplex
    np.testing.assert_allclose(LabelHCVaR(kappa=1e-3).resolve(PRIOR).upper, [PRIOR[0], 1, 1])


def test_boxes_leave_unnamed_classes_free():
    box = WeightBox(lower={"a": 0.5}, upper={"c": 2}).resolve(PRIOR, NAMES)
    np.testing.assert_allclose(box.lower, [0.3, 0, 0])
    np.testing.assert_allclose(box.upper, [1, 1, 0.2])
    box = PriorBox(lower={"a": 0.5}, upper={"c": 0.25}).resolve(PRIOR, NAMES)
    np.testing.assert_allclose(box.lower, [0.5, 0, 0])
    np.testing.assert_allclose(box.upper, [1, 1, 0.25])
    assert WeightBox().resolve(PRIOR).is_simplex and PriorBox().resolve(PRIOR).is_simplex
    assert WeightBox().resolve([0.5, 0.5, 0.0]).upper.tolist() == [1, 1, 0]


def test_a_prior_by_class_names_its_classes():
    mass_set = WeightBox(upper={"rare": 3.0}).resolve({"common": 0.9, "rare": 0.1})
    np.testing.assert_allclose(mass_set.upper, [1, 0.3])


def test_hull_of_weightings():
    hull = WeightHull(["standard", "balanced", {"a": 0, "b": 0, "c": 5}]).resolve(PRIOR, NAMES)
    np.testing.assert_allclose(hull.vertices, [PRIOR, np.full(3, 1 / 3), [0, 0, 1]])


@pytest.mark.parametrize(
    ("value", "kind", "params"),
    [
        (None, LabelCVaR, {"alpha": 0.1}),
        ("standard", FixedWeights, {"weights": "standard"}),
        ("balanced", FixedWeights, {"weights": "balanced"}),
        ("worst_class", WorstClass, {}),
    ],
)
def test_names_of_recipes(value, kind, params):
    recipe = as_uncertainty(value)
    assert type(recipe) is kind and recipe.get_params() == params


def test_a_recipe_stands_for_itself():
    recipe = LabelCVaR(0.3)
    assert as_uncertainty(recipe) is recipe


@pytest.mark.parametrize("value", ["worst", 0.1, LabelCVaR, [1, 2], np.ones(3)])
def test_what_is_no_recipe_is_refused(value):
    with pytest.raises(InvalidParameterError, match="goal must be an uncertainty set"):
        as_uncertainty(value)


def test_exports_are_distinct_and_there():
    assert len(set(equipoise.sets.__all__)) == len(equipoise.sets.__all__)
    assert all(hasattr(equipoise.sets, name) for name in equipoise.sets.__all__)


@pytest.mark.parametrize(
    ("recipe", "error", "message"),
    [
        (LabelCVaR(1.5), InvalidParameterError, "alpha must be a number in (0, 1], got 1.5."),
        (LabelCVaR(0), InvalidParameterError, "alpha must be a number in (0, 1], got 0."),
        (LabelCVaR("1"), InvalidParameterError, "alpha must be a number in (0, 1], got '1'."),
        (LabelCVaR(float("nan")), InvalidParameterError, "in (0, 1], got nan."),
        (LabelCVaR(True), InvalidParameterError, "in (0, 1], got True."),
        (LabelHCVaR(), InvalidParameterError, "takes either alphas, or c and kappa"),
        (LabelHCVaR(c=1, alphas=1), InvalidParameterError, "got c=1, kappa=None, alphas=1."),
        (LabelHCVaR(c=1.5), InvalidParameterError, "c must be a number in (0, 1], got 1.5."),
        (LabelHCVaR(kappa=0), InvalidParameterError, "kappa must be a number in (0, inf), got 0."),
        (
            LabelHCVaR(alphas=[0.5, 0, 1]),
            InvalidParameterError,
            "alphas must be in (0, inf) for every class, got 0 for class 'b'.",
        ),
        (LabelHCVaR(alphas={"a": 1}), ClassMismatchError, "'b', 'c' is missing"),
        (LabelHCVaR(alphas=2), EmptySetError, "at least 1, got a sum of 0.5: lower the alphas."),
        (WeightBox(upper=0.8), EmptySetError, "sum of prior * upper over the classes is at least"),
        (WeightBox(lower=1.2), EmptySetError, "at most 1, got a sum of 1.2."),
        (WeightBox(lower=-1), InvalidParameterError, "in [0, inf] for every class, got -1"),
        (
            WeightBox(lower={"b": 3}, upper=2),
            InvalidParameterError,
            "lower must not exceed upper, got lower = 3 and upper = 2 for class 'b'.",
        ),
        (WeightBox(upper={"z": 1}), ClassMismatchError, "upper names 'z', not among the classes"),
        (WeightBox(upper="x"), InvalidParameterError, "upper must be a number, a dict by class"),
        (PriorBox(upper=0.3), EmptySetError, "sum of upper over the classes is at least 1, got"),
        (PriorBox(lower=0.4), EmptySetError, "is at most 1, got a sum of 1.2."),
        (PriorBox(upper=1.5), InvalidParameterError, "upper must be in [0, 1] for every class"),
        (PriorBox(upper=[1, 1]), ClassMismatchError, "each of the 3 classes, got an array of"),
        (PriorBall(-1), InvalidParameterError, "radius must be a number in [0, inf), got -1."),
        (PriorBall(1, "l1"), InvalidParameterError, "one of 'kl', 'chi2', 'tv', 'l2', got 'l1'."),
        (PriorBall(1, center=[0.5, 0.5, 0.5]), InvalidParameterError, "center must sum to 1"),
        (FixedWeights("even"), InvalidParameterError, "a dict by class or an array, got 'even'."),
        (FixedWeights([1, -1, 1]), InvalidParameterError, "weights must hold finite values"),
        (FixedWeights(None), InvalidInputError, "weights must hold finite values of at least 0"),
        (FixedWeights({"a": "x", "b": 1, "c": 1}), InvalidParameterError, "an array of numbers"),
        (FixedWeights([0, 0, 0]), InvalidInputError, "must be positive for at least one class"),
        (WeightHull([]), InvalidParameterError, "list of at least one weighting, got []."),
        (WeightHull(0.5), InvalidParameterError, "list of at least one weighting, got 0.5."),
        (WeightHull("standard"), InvalidParameterError, "weightings must be a list"),
        (WeightHull(["standard", [1, 2]]), ClassMismatchError, "weightings[1] must be a number"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_errors_name_the_thing_the_rule_and_the_value(recipe, error, message):
    with pytest.raises(error) as raised:
        recipe.resolve(PRIOR, NAMES)
    assert message in str(raised.value)
