"""Prediction sets: what is proven, over redraws; and PredictionSets as an estimator."""

import itertools
import os
import pickle
from unittest import SkipTest

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    FixedWeights,
    LabelCVaR,
    PredictionSets,
    PriorBox,
    WorstClass,
    load_model,
    save_model,
)
from equipoise.decisions.conformal import (
    Calibration,
    CoverageTask,
    calibration_rows,
    equal_rows_of_weights,
    in_cross_sets,
    in_sets,
    thresholds,
)
from equipoise.decisions.coverage_levels import levels_within, ranks_within
from equipoise.estimators import GivenProbabilities
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks.tolerance import allowed_misses, allowed_weighted_error
from equipoise.sets.hull import Hull

COUNTS = np.array([60, 25, 9, 4])
PRIOR = COUNTS / COUNTS.sum()


def expected_failures(estimator):
    """Rows of unequal weight are drawn; sets may hold a label that is not the most probable."""
    forms = "dense", "sparse"
    names = [f"check_sample_weight_equivalence_on_{form}_data" for form in forms]
    expected = dict.fromkeys(names, "rows of unequal weight are drawn")
    if estimator.goal != "balanced":
        expected["check_classifiers_train"] = "the likeliest label of the set is predicted"
    return expected


@parametrize_with_checks(
    [
        PredictionSets(LogisticRegression(C=1)),
        PredictionSets(LogisticRegression(C=1), 0.8, WorstClass(), cv=3),
    ],
    expected_failed_checks=expected_failures,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        if os.environ["SCIPY_ARRAY_API"]:
            pytest.fail(f"skipped: {reason}")
        raise


def _rows(rng, counts=COUNTS):
    """Scores of the own class, higher for the first classes, and labels."""
    labels = np.repeat(np.arange(len(counts)), counts)
    return rng.beta(4 - labels, 2), labels


def _errors(task, redraws, seed=0):
    """The exact error of each class, for every redraw: scores have a beta distribution."""
    from scipy.stats import beta

    rng, k = np.random.default_rng(seed), len(COUNTS)
    found = []
    for _ in range(redraws):
        own, labels = _rows(rng)
        rows = Calibration(own, labels, np.zeros(len(own), dtype=int), k)
        found.append(beta.cdf(thresholds(rows, task), 4 - np.arange(k), 2))
    return np.array(found)


MASSES = [PRIOR, np.full(4, 0.25), np.array([0.1, 0.0, 0.2, 0.7])]


@pytest.mark.parametrize("masses", MASSES, ids=["standard", "balanced", "other"])
def test_the_mean_error_under_a_weighting_is_what_was_promised(masses):
    task = CoverageTask(np.full(4, 0.1), PRIOR, masses=masses)
    mean = _errors(task, 500) @ masses
    assert mean.mean() <= 0.1 + 3 * mean.std() / np.sqrt(500)
    # It is not bought by sets that are much larger: at most a row of a class is lost.
    assert mean.mean() >= 0.1 - 2 * (masses / COUNTS).max() - 3 * mean.std() / np.sqrt(500)


@pytest.mark.parametrize("masses", MASSES, ids=["standard", "balanced", "other"])
def test_the_error_of_the_rule_holds_with_confidence(masses):
    task = CoverageTask(np.full(4, 0.3), PRIOR, masses=masses, tail=0.1)
    broken = np.mean(_errors(task, 500) @ masses > 0.3)
    assert broken <= 0.1 + 3 * np.sqrt(0.09 / 500)


def test_the_error_of_each_class_is_what_was_promised():
    levels = np.array([0.1, 0.2, 0.3, 0.25])
    found = _errors(CoverageTask(levels, PRIOR), 1000)
    deviations = found.std(axis=0) / np.sqrt(1000)
    np.testing.assert_array_less(found.mean(axis=0), levels + 3 * deviations)
    together = _errors(CoverageTask(np.full(4, 0.4), PRIOR, tail=0.2), 500)
    assert np.mean(np.any(together > 0.4, axis=1)) <= 0.2 + 3 * np.sqrt(0.16 / 500)


@pytest.mark.parametrize("goal", [LabelCVaR(0.3), PriorBox(upper=0.6), WorstClass()])
def test_the_mean_error_holds_at_every_mass_of_a_set(goal):
    masses = goal.resolve(PRIOR)
    levels = np.array([0.1, 0.12, 0.3, 0.6])
    levels *= 0.2 / masses.support(levels)
    found = _errors(CoverageTask(levels, PRIOR, robust=masses, error=0.2), 500).mean(axis=0)
    drawn = np.random.default_rng(1).dirichlet(np.ones(4), 200)
    for mass in [masses.maximize(found), *(masses.project(each) for each in drawn)]:
        assert mass @ found <= 0.2 + 0.01


# Probabilities of the values of each class, and the calibration rows of each; values have ties.
DISCRETE = [
    (np.full((1, 5), 0.2), [3]),
    (np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]), [1, 3]),
    (np.array([[0.25, 0.25, 0.25, 0.25], [0.0, 0.5, 0.0, 0.5]]), [2, 2]),
    (np.array([[0.6, 0.4, 0.0], [0.2, 0.2, 0.6], [1 / 3, 1 / 3, 1 / 3]]), [2, 1, 2]),
]


def _all_draws(shares, counts, task):
    """The probability of every draw of calibration rows, and the error of each class after it."""
    labels = np.repeat(np.arange(len(counts)), counts)
    values = np.arange(1.0, shares.shape[1] + 1) / 10
    found = []
    for draw in itertools.product(range(len(values)), repeat=len(labels)):
        rows = Calibration(values[list(draw)], labels, np.zeros(len(draw), int), len(counts))
        missed = values < thresholds(rows, task)[:, None]
        found.append((np.prod(shares[labels, list(draw)]), *(shares * missed).sum(axis=1)))
    table = np.array(found)
    return table[:, 0], table[:, 1:]


@pytest.mark.parametrize("error", [0.21, 1 / 3, 0.5])
@pytest.mark.parametrize(("shares", "counts"), DISCRETE, ids=lambda value: str(np.shape(value)))
def test_no_discrete_scores_break_a_statement(shares, counts, error):
    k = len(counts)
    prior, levels = np.arange(1, k + 1) / np.arange(1, k + 1).sum(), np.full(k, error)
    for masses in (prior, np.ones(k) / k, prior[::-1]):
        of_draw, errors = _all_draws(shares, counts, CoverageTask(levels, prior, masses=masses))
        assert of_draw @ errors @ masses <= error + 1e-9
    of_draw, errors = _all_draws(shares, counts, CoverageTask(levels, prior))
    assert np.all(of_draw @ errors <= error + 1e-9)
    within = PriorBox(upper=0.8 if k > 1 else 1.0).resolve(prior)
    task = CoverageTask(levels_within(within, error), prior, robust=within, error=error)
    of_draw, errors = _all_draws(shares, counts, task)
    assert within.support(of_draw @ errors) <= error + 1e-9
    for masses in (None, prior):
        task = CoverageTask(levels, prior, masses=masses, tail=0.3)
        of_draw, errors = _all_draws(shares, counts, task)
        value = errors.max(axis=1) if masses is None else errors @ masses
        assert of_draw[value > error + 1e-9].sum() <= 0.3 + 1e-9


def test_the_counts_of_the_proof_are_kept_exactly():
    # 19 rows at level 0.1: two of twenty ranks may be missed, so the second smallest score.
    own = np.arange(1.0, 20) / 20
    rows = Calibration(own, np.zeros(19, dtype=int), np.zeros(19, dtype=int), 1)
    assert thresholds(rows, CoverageTask(np.array([0.1]), np.ones(1))) == pytest.approx(0.1)
    weighted = CoverageTask(np.array([0.1]), np.ones(1), masses=np.ones(1))
    # One of nineteen more for the new row: 1 / 19 + 1 / 19 > 0.1.
    assert thresholds(rows, weighted) == pytest.approx(0.05)


def test_classes_without_rows_are_in_every_set_and_without_mass_in_none():
    own, labels = np.linspace(0.1, 0.9, 30), np.zeros(30, dtype=int)
    rows = Calibration(own, labels, np.zeros(30, dtype=int), 3)
    prior = np.array([0.8, 0.1, 0.1])
    masses = np.array([0.5, 0.5, 0.0])
    for tail in (None, 0.2):
        task = CoverageTask(np.full(3, 0.4), prior, masses=masses, tail=tail)
        found = thresholds(rows, task)
        assert found[1] == -np.inf and found[2] == np.inf and 0 < found[0] < 1


def test_a_binomial_count_is_the_largest_that_shows_a_level():
    counts, errors = np.array([3, 50, 400]), np.array([0.3, 0.1, 0.02])
    found = allowed_misses(counts, errors, 0.05)
    np.testing.assert_array_less(binom.cdf(found, counts, errors), 0.05 + 1e-12)
    assert np.all(binom.cdf(found + 1, counts, errors) > 0.05)


def test_the_chernoff_bound_is_below_the_exact_count_and_near_it():
    masses, counts = np.ones(1), np.array([500])
    found = allowed_weighted_error(masses, counts, 0.1, 0.05) * 500
    exact = allowed_misses(counts, np.array([0.1]), 0.05)[0]
    assert exact - 8 <= found <= exact + 1


SETS = [LabelCVaR(0.3), LabelCVaR(0.8), PriorBox(upper=0.6), PriorBox(upper=0.95), WorstClass()]


@pytest.mark.parametrize("goal", SETS, ids=str)
def test_levels_for_a_set_use_all_that_it_allows(goal):
    masses = goal.resolve(PRIOR)
    levels = levels_within(masses, 0.1)
    assert masses.support(levels) == pytest.approx(0.1)
    # The smallest sum of 1 / level among errors of which the set allows the mean.
    others = np.random.default_rng(0).dirichlet(np.ones(4), 500)
    feasible = [each * 0.1 / masses.support(each) for each in others]
    assert np.sum(1 / levels) <= min(np.sum(1 / each) for each in feasible) * (1 + 1e-9)


@pytest.mark.parametrize("goal", SETS, ids=str)
@pytest.mark.parametrize("counts", [COUNTS, [300, 20, 1, 0], [3, 2, 2, 1]], ids=str)
def test_ranks_of_a_set_are_feasible_and_cannot_be_raised(goal, counts):
    counts, masses = np.array(counts), goal.resolve(PRIOR)
    levels = levels_within(masses, 0.2)
    ranks = ranks_within(levels, counts, masses, 0.2)
    assert masses.support(ranks / (counts + 1)) <= 0.2 + 1e-9
    assert np.all(ranks[counts == 0] == 0) and np.all(ranks >= 0)
    for i in np.flatnonzero((counts > 0) & (ranks < levels * (counts + 1))):
        more = ranks + (np.arange(4) == i)
        assert masses.support(more / (counts + 1)) > 0.2


def test_a_class_that_the_projected_mass_leaves_out_is_not_given_up():
    masses = Hull(np.array([[0.6, 0.4, 0.0], [0.95, 0.0, 0.05]]))
    assert masses.project(np.ones(3) / 3)[2] == 0
    levels = levels_within(masses, 0.1)
    assert masses.support(levels) <= 0.1 + 1e-9 and levels.min() > 0.05


def test_cross_sets_of_one_model_are_the_split_ones():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(3), 90)
    labels = np.array([rng.choice(3, p=row) for row in table])
    new, prior = rng.dirichlet(np.ones(3), 50), np.ones(3) / 3
    for task in (
        CoverageTask(np.full(3, 0.2), prior),
        CoverageTask(np.full(3, 0.2), prior, masses=np.array([0.5, 0.3, 0.2])),
    ):
        alone = in_sets(new, thresholds(calibration_rows(table, labels), task))
        rows = calibration_rows(table, labels, np.arange(90) % 3)
        np.testing.assert_array_equal(in_cross_sets([new] * 3, rows, task), alone)


def test_rows_of_unequal_weight_are_drawn_by_it():
    weights, labels = np.tile([1.0, 3.0], 500), np.zeros(1000, dtype=int)
    kept = equal_rows_of_weights(weights, labels, 0)
    heavy, light = kept[weights == 3].mean(), kept[weights == 1].mean()
    assert heavy > 0.99 and light == pytest.approx(1 / 3, abs=0.06)


# The estimator


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("goal", ["balanced", "standard", {0: 0.9}, LabelCVaR(0.5)], ids=str)
def test_no_calibration_row_is_left(goal, confidence):
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], 20)
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    some, weights = [0, 1, 20, 21], [1, 1e-9, 1, 1e-9]
    sets = PredictionSets(model, 0.9, goal, confidence=confidence, random_state=0)
    sets.fit(X[some], y[some], sample_weight=weights)
    assert len(sets.calibration_["own"]) == 0
    assert sets.predict_set(X).all() and sets.summary().always == (0, 1)
    assert np.isnan(sets.summary().coverage)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(["common", "middle", "rare"], [400, 120, 60])
    means = {"common": 0.0, "middle": 1.5, "rare": 3.0}
    X = np.array([means[each] for each in y])[:, None] + rng.normal(size=(len(y), 2))
    return X, y


GOALS = ["standard", "balanced", "worst_class", {"rare": 0.95}, LabelCVaR(0.3)]


@pytest.mark.parametrize("goal", GOALS, ids=str)
@pytest.mark.parametrize("cv", [0.3, 3])
def test_sets_cover_about_what_they_promise(data, goal, cv):
    X, y = data
    sets = PredictionSets(LogisticRegression(), 0.9, goal, cv=cv, random_state=0).fit(X, y)
    found = sets.evaluate(X, y)
    assert 0.84 < found.macro_coverage <= 1 and 1 <= found.mean_size < 2.5
    flags, names = sets.predict_set(X), sets.predict_set(X, labels=True)
    assert flags.shape == (len(X), 3) and flags.dtype == bool
    for row, own in zip(flags, names, strict=True):
        assert set(sets.classes_[row]) == set(own)
    assert np.mean([p in own for p, own in zip(sets.predict(X), names, strict=True) if own]) == 1
    assert "95% interval" in repr(sets.summary()) and sets.summary().rows.sum() > 0
    again = pickle.loads(pickle.dumps(sets))
    np.testing.assert_array_equal(again.predict_set(X), flags)
    assert clone(sets).get_params().keys() == sets.get_params().keys()


def test_balanced_sets_are_those_of_the_prevalence_adjusted_score(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    sets = PredictionSets(FrozenEstimator(model), goal="balanced").fit(X, y)
    table, prior = model.predict_proba(X), np.asarray(sets.class_prior_)
    lowest = np.asarray(sets.thresholds_) / prior
    # One threshold of eta / p, up to the one row of its own class.
    assert lowest.max() / lowest.min() < 1.1
    np.testing.assert_array_equal(sets.predict_set(X), table / prior >= lowest)


def test_a_confidence_makes_larger_sets_of_one_model(data):
    X, y = data
    plain = PredictionSets(LogisticRegression(), random_state=0).fit(X, y)
    sure = PredictionSets(LogisticRegression(), confidence=0.9, random_state=0).fit(X, y)
    assert np.all(np.asarray(sure.thresholds_) <= np.asarray(plain.thresholds_))
    folds = PredictionSets(LogisticRegression(), confidence=0.9, cv=4, random_state=0).fit(X, y)
    assert isinstance(folds.estimator_, LogisticRegression)


def test_few_rows_put_a_class_in_every_set(data):
    X, y = data
    kept = np.r_[0:520, 520:540]
    sets = PredictionSets(LogisticRegression(), goal={}, random_state=0).fit(X[kept], y[kept])
    assert sets.summary().always == ("rare",) and sets.predict_set(X)[:, 2].all()
    assert "in every set" in repr(sets.summary())


@pytest.mark.parametrize(
    ("abstain", "wanted"),
    [
        (None, lambda size: np.zeros(len(size), dtype=bool)),
        ("empty", lambda size: size == 0),
        ("several", lambda size: size > 1),
        ("empty or several", lambda size: size != 1),
        (2, lambda size: (size == 0) | (size > 2)),
    ],
)
def test_predict_abstains_where_it_is_asked_to(data, abstain, wanted):
    X, y = data
    sets = PredictionSets(LogisticRegression(), 0.7, "standard", abstain=abstain, random_state=0)
    predicted = sets.fit(X, y).predict(X)
    size = sets.predict_set(X).sum(axis=1)
    np.testing.assert_array_equal([each is None for each in predicted], wanted(size))


@pytest.mark.parametrize("cv", [0.3, 3])
def test_the_path_goes_from_all_rows_to_each_class(data, cv):
    X, y = data
    sets = PredictionSets(LogisticRegression(), goal="balanced", cv=cv, random_state=0).fit(X, y)
    path = sets.coverage_path(X, y)
    assert path.alphas[0] == 1 and path.alphas[-1] == pytest.approx(60 / 580)
    for index, goal in ((0, "standard"), (-1, "worst_class")):
        found = clone(sets).set_params(goal=goal).fit(X, y).evaluate(X, y)
        np.testing.assert_allclose(path.class_coverage[index], list(found.class_coverage.values()))
        assert path.mean_size[index] == pytest.approx(found.mean_size)
        assert path.coverage[index] == pytest.approx(found.coverage)
        assert path.macro_coverage[index] == pytest.approx(found.macro_coverage)
    assert path.worst_class_coverage[0] < 0.8 < path.worst_class_coverage[-1]
    assert path.to_dict()["coverage[rare]"][0] == path.class_coverage[0, 2]
    # Sets of new frequencies are those of a model for them.
    new = {"common": 0.2, "middle": 0.3, "rare": 0.5}
    moved = sets.adapted(new).coverage_path(X, y, [0.5])
    alone = clone(sets).set_params(goal=LabelCVaR(0.5)).fit(X, y).adapted(new)
    np.testing.assert_allclose(
        moved.class_coverage[0], list(alone.evaluate(X, y).class_coverage.values())
    )
    with pytest.raises(InvalidParameterError, match="alphas must be a list"):
        sets.coverage_path(X, y, 0.5)


def test_new_class_frequencies_change_the_goals_that_speak_of_them(data):
    X, y = data
    new = {"common": 0.2, "middle": 0.3, "rare": 0.5}
    sets = PredictionSets(LogisticRegression(), goal="standard", random_state=0).fit(X, y)
    moved = sets.adapted(new)
    assert moved.class_prior_.to_dict() == pytest.approx(new)
    assert moved.thresholds_["rare"] < sets.thresholds_["rare"]
    assert sets.class_prior_["rare"] < 0.2  # the first one is unchanged
    # One weighting of the population: scores are its probabilities.
    scores = moved.decision_function(X)
    np.testing.assert_array_equal(scores.argmax(axis=1), moved.predict_proba(X).argmax(axis=1))
    np.testing.assert_array_equal(moved.predict(X), moved.classes_[scores.argmax(axis=1)])
    same = PredictionSets(LogisticRegression(), goal="balanced", random_state=0).fit(X, y)
    np.testing.assert_array_equal(same.adapted(new).predict_set(X), same.predict_set(X))
    robust = PredictionSets(LogisticRegression(), goal=LabelCVaR(0.3), random_state=0).fit(X, y)
    found = robust.adapted(new)
    masses = LabelCVaR(0.3).resolve(list(new.values()))
    assert masses.support(1 - np.asarray(found.levels_)) <= 0.1 + 1e-9
    with pytest.raises(InvalidInputError, match="no summary"):
        moved.summary()


def test_probabilities_from_anywhere_and_weights_of_rows(data):
    X, y = data
    table = LogisticRegression().fit(X, y).predict_proba(X)
    given = FrozenEstimator(GivenProbabilities(["common", "middle", "rare"]))
    weights = np.where(np.arange(len(y)) % 2, 2.0, 1.0)
    sets = PredictionSets(given, goal=FixedWeights("balanced"), random_state=0)
    found = sets.fit(table, y, sample_weight=weights)
    assert found.evaluate(table, y).coverage > 0.8
    assert len(found.calibration_["own"]) < len(y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"coverage": 1.5}, r"coverage must be a number in \(0, 1\), got 1.5"),
        ({"confidence": 0.0}, r"confidence must be a number in \(0, 1\), got 0"),
        ({"abstain": "never"}, "abstain must be None, one of 'empty', .*, got 'never'"),
        ({"goal": "f1_macro"}, "goal must be an uncertainty set"),
        ({"goal": {"rare": 1.0}}, r"goal must be in \[0, 1\) for every class"),
        ({"goal": {"none": 0.9}}, "goal names"),
    ],
)
def test_errors_name_the_value(data, options, match):
    with pytest.raises((InvalidParameterError, InvalidInputError), match=match):
        PredictionSets(LogisticRegression(), **options).fit(*data)


@pytest.mark.parametrize("cv", [0.3, 3])
@pytest.mark.parametrize("goal", ["standard", {"rare": 0.95}, LabelCVaR(0.3)], ids=str)
def test_saved_sets_are_the_same(data, goal, cv, tmp_path):
    X, y = data
    sets = PredictionSets(LogisticRegression(), 0.9, goal, cv=cv, random_state=0).fit(X, y)
    save_model(sets, tmp_path / "sets.equipoise")
    again = load_model(tmp_path / "sets.equipoise").model
    np.testing.assert_array_equal(again.predict_set(X), sets.predict_set(X))
    np.testing.assert_array_equal(again.predict(X), sets.predict(X))
    with pytest.raises(InvalidInputError, match="no summary"):
        again.summary()
