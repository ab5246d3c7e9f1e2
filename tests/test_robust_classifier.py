"""RobustClassifier: any classifier, trained with class weights and tuned for one goal."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    RecallFloors,
    RiskScorer,
    RobustClassifier,
    RobustLogisticRegression,
    TunedDecisionClassifier,
    WorstClass,
)
from equipoise.decisions.trained import weight_argument
from equipoise.exceptions import (
    CostlyDecisionsWarning,
    EquipoiseWarning,
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
)

NAMES = np.array(["common", "middle", "rare"])
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)


def draw(n=600, seed=0, shares=(0.7, 0.2, 0.1)):
    """Overlapping Gaussian classes of unequal size, by name."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), np.round(n * np.array(shares)).astype(int))
    X = rng.normal(size=(len(y), 3)) + np.eye(3)[y] * 1.3
    order = rng.permutation(len(y))
    return X[order], NAMES[y[order]]


def expected_failures(estimator):
    """As of the plug-in: two rows say more than one row of weight two, by which pooling goes."""
    expected = {"check_classifiers_train": "the most probable class is not what is decided"}
    for form in ("dense", "sparse") if estimator.pooling else ():
        name = f"check_sample_weight_equivalence_on_{form}_data"
        expected[name] = "two rows say more than one row of weight two"
    return expected


@parametrize_with_checks(
    [
        RobustClassifier(LogisticRegression(C=1), cv=3),
        RobustClassifier(LogisticRegression(C=1), cv=3, pooling=0, training="average"),
    ],
    expected_failed_checks=expected_failures,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# Training weights


@pytest.mark.parametrize("base", [TREE, LogisticRegression(), GaussianNB()], ids=repr)
def test_weights_of_classes_are_weights_of_their_rows(base):
    X, y = draw()
    weights = {"common": 0.5, "middle": 2.0, "rare": 5.0}
    # They multiply weights that the rows have already.
    for own in (np.ones(len(y)), np.random.default_rng(0).uniform(0.5, 2, len(y))):
        ours = RobustClassifier(base, training=weights, cv=3).fit(X, y, sample_weight=own)
        rows = np.array([ours.training_weights_[name] for name in y.tolist()])
        theirs = clone(base).fit(X, y, sample_weight=own * rows)
        table = theirs.predict_proba(X)
        np.testing.assert_array_equal(ours.estimator_.predict_proba(X), table)
        table = table / list(weights.values())
        expected = table / table.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(ours.predict_proba(X), expected, rtol=1e-12)
        assert np.average(rows, weights=own) == pytest.approx(1, rel=1e-12)


def test_weights_find_the_step_that_takes_them():
    pipe = make_pipeline(StandardScaler(), TREE)
    search = GridSearchCV(pipe, {"decisiontreeclassifier__max_depth": [1, 3]}, cv=3)
    assert weight_argument(TREE) == "sample_weight"
    assert weight_argument(pipe) == weight_argument(search)
    assert weight_argument(pipe) == "decisiontreeclassifier__sample_weight"
    assert weight_argument(KNeighborsClassifier()) is None
    X, y = draw()
    for base in (pipe, search):
        clf = RobustClassifier(base, "worst_class", training="balanced", cv=3).fit(X, y)
        plain = clone(base).fit(X, y)
        assert clf.training_weights_["rare"] > 2
        assert np.any(clf.predict_proba(X) != plain.predict_proba(X))


@pytest.mark.parametrize(
    ("training", "powers"),
    [("plain", [0]), ("sqrt", [0.5]), ("balanced", [1]), ("average", [0, 0.5, 1])],
)
def test_words_are_powers_of_the_class_shares(training, powers):
    X, y = draw()
    clf = RobustClassifier(GaussianNB(), training=training, cv=3).fit(X, y)
    shares = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(clf.class_shares_, shares)
    models = clf.estimator_.estimators if training == "average" else [clf.estimator_]
    for model, power in zip(models, powers, strict=True):
        weights = shares**-power / np.sum(shares ** (1 - power))
        same = GaussianNB().fit(X, y, weights[np.searchsorted(NAMES, y)])
        np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-9)
    expected = np.ones(3) if training == "average" else weights
    np.testing.assert_allclose(clf.training_weights_, expected)


class Counted(GaussianNB):
    """Naive Bayes that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("training", "fits"), [("plain", 5), ("sqrt", 5), ("balanced", 5), ("average", 15)]
)
@pytest.mark.parametrize("goal", ["worst_class", "balanced", LabelCVaR("auto")], ids=str)
def test_how_often_the_base_is_fitted(training, fits, goal):
    X, y = draw()
    Counted.fits = 0
    RobustClassifier(Counted(), goal, training=training, cv=4).fit(X, y)
    assert Counted.fits == fits


# Probabilities of the population


def known_rows(shares, n=20_000, seed=0):
    """Normal classes, and the true probabilities of the rows."""
    rng, k = np.random.default_rng(seed), len(shares)
    y = rng.choice(k, size=n, p=shares)
    X = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y]
    joint = np.exp(norm.logpdf(X[:, None], 1.5 * np.eye(k)).sum(axis=2)) * shares
    return X, y, joint / joint.sum(axis=1, keepdims=True)


TRAININGS = ["plain", "sqrt", "balanced", "average", "numbers"]


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("given", [False, True], ids=["shares", "class_prior"])
def test_probabilities_are_those_of_the_population(training, k, given):
    shares = np.array([0.7, 0.2, 0.1]) if k == 3 else np.array([0.85, 0.15])
    population = shares[::-1] if given else shares
    X, y, _ = known_rows(shares, n=5_000, seed=1)
    fresh, _, true = known_rows(population)
    clf = RobustClassifier(
        GaussianNB(),
        "worst_class",
        cv=3,
        class_prior=population if given else None,
        training=np.arange(1.0, k + 1) if training == "numbers" else training,
    ).fit(X, y)
    table = clf.predict_proba(fresh)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    np.testing.assert_allclose(table.mean(axis=0), population, atol=0.015)
    # Row by row, and so calibrated.
    assert np.abs(table - true).mean() < 0.015
    np.testing.assert_allclose(clf.class_prior_, population, atol=0 if given else 0.02)
    # Decisions are of the largest weighted one; for two classes by a score a row.
    weighted, scores = table * np.asarray(clf.weights_), clf.decision_function(fresh)
    assert scores.shape == ((len(fresh),) if k == 2 else (len(fresh), k))
    best = (scores > 0).astype(int) if k == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(fresh), best)
    np.testing.assert_array_equal(weighted.argmax(axis=1), best)
    assert np.dot(clf.weights_, clf.class_prior_) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("training", TRAININGS[:4])
def test_where_training_weights_cancel_decisions_are_the_same(training):
    # Of normal densities class weights move the prior alone, which the probabilities give back.
    X, y = draw(3000)
    clf = RobustClassifier(GaussianNB(), "worst_class", training=training, cv=3).fit(X, y)
    plain = RobustClassifier(GaussianNB(), "worst_class", cv=3).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(clf.weights_, plain.weights_, rtol=1e-6)
    assert np.mean(clf.predict(X) == plain.predict(X)) > 0.999


def test_plain_training_is_the_plug_in():
    X, y = draw()
    ours = RobustClassifier(TREE, "worst_class", training="plain", cv=3).fit(X, y)
    plug_in = TunedDecisionClassifier(TREE, "worst_class", cv=3).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), plug_in.predict(X))
    assert ours.class_risks_ == plug_in.class_risks_ and ours.weights_ == plug_in.weights_


@pytest.mark.parametrize("training", ["plain", "balanced", "average"])
def test_risks_are_those_of_held_out_rows(training):
    X, y = draw()
    folds = StratifiedKFold(3)
    clf = RobustClassifier(TREE, "worst_class", training=training, cv=folds).fit(X, y)
    powers = {"plain": [0], "balanced": [1], "average": [0, 0.5, 1]}[training]
    shares, labels = np.array([0.7, 0.2, 0.1]), np.searchsorted(NAMES, y)
    # Each fold by the models and the weights that were trained and tuned without it.
    wrong = np.empty(len(y), dtype=bool)
    for fold, (train, test) in enumerate(folds.split(X, y)):
        total = 0.0
        for power in powers:
            weights = shares**-power / np.sum(shares ** (1 - power))
            model = clone(TREE).fit(X[train], y[train], weights[labels[train]])
            table = model.predict_proba(X[test]) / weights
            total = total + table / table.sum(axis=1, keepdims=True)
        decided = np.argmax(total * clf.fold_weights_[fold], axis=1)
        wrong[test] = decided != labels[test]
    expected = {name: wrong[y == name].mean() for name in NAMES.tolist()}
    assert clf.class_risks_.to_dict() == pytest.approx(expected, abs=0.01)


class Collapsed(ClassifierMixin, BaseEstimator):
    """Knows nothing of a class that has less than its share of the weight."""

    def fit(self, X, y, sample_weight=None):
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.tree_ = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y, weights)
        share = np.bincount(labels, weights) / weights.sum()
        self.known_ = share >= 0.5 / len(self.classes_)
        return self

    def predict_proba(self, X):
        table = np.where(self.known_, self.tree_.predict_proba(X) + 1e-6, 0.0)
        return table / table.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_weights_reach_a_class_that_plain_training_forgets():
    X, y = draw(900)
    new, true = draw(3000, seed=1)
    worst = {}
    for training in ("plain", "balanced", "average"):
        clf = RobustClassifier(Collapsed(), "worst_class", training=training, cv=3).fit(X, y)
        wrong = clf.predict(new) != true
        worst[training] = max(wrong[true == name].mean() for name in NAMES)
    assert worst["plain"] > 0.6 and max(worst["balanced"], worst["average"]) < 0.5


@pytest.mark.parametrize(
    "goal",
    [None, LabelCVaR(0.3), "f1_macro", "balanced", CostMatrix(1.0), RecallFloors(0.3)],
    ids=repr,
)
def test_every_goal(goal):
    X, y = draw()
    clf = RobustClassifier(LogisticRegression(), goal, cv=3).fit(X, y)
    # Decisions that are known are evaluated as well.
    assert set(clf.predict(X)) <= set(NAMES) and np.all(np.isfinite(clf.class_risks_))


def test_floors_of_rows_too_few_to_be_evaluated_are_kept_all_the_same():
    rng = np.random.default_rng(0)
    y = np.repeat(["many", "rare", "some"], [230, 21, 70])
    X = rng.normal(size=(321, 1)) + 3.0 * (y == "rare")[:, None]
    # A fifth of the rows is held out: four of the rare class, which show a recall of one half.
    goal = RecallFloors({"rare": 0.5}, confidence=0.9)
    clf = RobustClassifier(LogisticRegression(), goal, rare_classes="keep", random_state=0).fit(
        X, y
    )
    assert not hasattr(clf, "class_risks_")
    assert np.mean(clf.predict(X)[y == "rare"] == "rare") > 0.5


def test_floors_with_a_confidence_keep_the_model_of_one_split():
    X, y = draw(1500)
    goal = RecallFloors({"rare": 0.5}, confidence=0.9)
    clf = RobustClassifier(LogisticRegression(), goal, training="plain", random_state=0).fit(X, y)
    plug_in = TunedDecisionClassifier(LogisticRegression(), goal, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), plug_in.predict(X))
    for training, fits in (("plain", 1), ("balanced", 1), ("average", 3)):
        Counted.fits = 0
        weighted = RobustClassifier(Counted(), goal, training=training).fit(X, y)
        assert Counted.fits == fits and weighted.class_risks_["rare"] < 0.5


# Other bases


def test_scores_will_do():
    X, y = draw()
    clf = RobustClassifier(LinearSVC(), "worst_class", training="plain", cv=3).fit(X, y)
    assert set(clf.predict(X)) <= set(NAMES)
    two = y != "middle"
    clf.fit(X[two], y[two])
    scores = clf.estimator_.decision_function(X[two])
    order = np.argsort(scores)
    # A threshold on the scores.
    said = (clf.predict(X[two])[order] == "rare").astype(int)
    assert np.all(np.diff(said) >= 0)


@pytest.mark.parametrize(
    ("base", "why"),
    [(KNeighborsClassifier(), "takes no sample_weight"), (RobustLogisticRegression(), "is robust")],
    ids=["neighbours", "robust"],
)
def test_what_cannot_be_weighted_is_trained_as_it_is(base, why):
    X, y = draw()
    clf = RobustClassifier(base, "worst_class", training="balanced", cv=3)
    with pytest.warns(EquipoiseWarning, match=f"{why}.*: it is trained as it is.*'balanced'"):
        clf.fit(X, y)
    assert np.ptp(clf.training_weights_) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CostlyDecisionsWarning)
        for training in ("plain", "average"):
            one = clone(clf).set_params(training=training).fit(X, y)
            assert type(one.estimator_) is type(base)
    plug_in = TunedDecisionClassifier(base, "worst_class", cv=3).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), plug_in.predict(X))


@pytest.mark.parametrize("single", ["standard", FixedWeights("standard")], ids=repr)
@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "in a pipeline"])
def test_a_linear_model_for_one_weighting_is_weighted_as_any_other(single, scaled):
    X, y = draw()
    base, other = RobustLogisticRegression(single, tol=1e-9), LogisticRegression(tol=1e-9)
    if scaled:
        base, other = (make_pipeline(StandardScaler(), each) for each in (base, other))
    with warnings.catch_warnings():
        warnings.simplefilter("error", EquipoiseWarning)
        warnings.simplefilter("ignore", CostlyDecisionsWarning)
        clf = RobustClassifier(base, "worst_class", training="balanced", cv=3).fit(X, y)
    same = RobustClassifier(other, "worst_class", training="balanced", cv=3).fit(X, y)
    np.testing.assert_allclose(clf.training_weights_, same.training_weights_)
    # Both minimise the same weighted cross-entropy with the same penalty.
    np.testing.assert_allclose(clf.predict_proba(X), same.predict_proba(X), atol=1e-3)


def test_a_fitted_estimator_is_only_decided():
    X, y = draw()
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    clf = RobustClassifier(FrozenEstimator(forest), "worst_class").fit(X[300:], y[300:])
    plug_in = TunedDecisionClassifier(FrozenEstimator(forest), "worst_class").fit(X[300:], y[300:])
    np.testing.assert_array_equal(clf.predict(X), plug_in.predict(X))
    np.testing.assert_array_equal(clf.predict_proba(X), forest.predict_proba(X))


@pytest.mark.parametrize("rare", ["keep", "drop"])
def test_classes_of_too_few_rows(rare):
    X, y = draw()
    y = y.astype("<U8")
    y[:2] = "tiny"
    with pytest.raises(InvalidInputError, match="Too few rows of class 'tiny'"):
        RobustClassifier(TREE, cv=3).fit(X, y)
    clf = RobustClassifier(TREE, "worst_class", cv=3, rare_classes=rare).fit(X, y)
    assert clf.predict_proba(X).shape == (len(y), 4)
    assert (clf.weights_["tiny"] == 0) == (rare == "drop")
    assert np.isnan(clf.class_risks_["tiny"])


# As an estimator


def test_classes_below_min_rows_are_not_tuned_for():
    X, y = draw(shares=(0.7, 0.28, 0.02))
    model = RobustClassifier(TREE, "worst_class", rare_classes="keep", min_rows=13, cv=3).fit(X, y)
    assert np.isnan(model.class_risks_["rare"])
    assert not np.isnan(model.class_risks_["middle"])
    with pytest.raises(InvalidInputError, match=r"'rare' \(12 rows\).* at least 13 rows"):
        RobustClassifier(TREE, "worst_class", min_rows=13, cv=3).fit(X, y)
    # Where one class alone has so many rows, all that can be judged are tuned for.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        model.set_params(min_rows=500).fit(X, y)
    assert not np.isnan(np.asarray(model.class_risks_)).any()


@pytest.mark.parametrize("training", ["plain", "average"])
def test_the_same_again_pickled_cloned_and_for_any_number_of_jobs(training):
    X, y = draw()
    clf = RobustClassifier(TREE, "worst_class", training=training, cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    two = clone(clf).set_params(n_jobs=2).fit(X, y)
    for other in (again, two):
        np.testing.assert_array_equal(other.predict(X), clf.predict(X))
        np.testing.assert_array_equal(other.predict_proba(X), clf.predict_proba(X))
        np.testing.assert_array_equal(other.tuned_.rule, clf.tuned_.rule)
        np.testing.assert_array_equal(other.fold_weights_, clf.fold_weights_)
        np.testing.assert_array_equal(other.tuned_.held_out, clf.tuned_.held_out)
    assert repr(clone(clf)) == repr(clf) and not hasattr(clone(clf), "tuned_")


def test_a_search_over_its_own_parameters():
    X, y = draw()
    grid = {
        "estimator__max_depth": [1, 3],
        "goal__alpha": [1.0, 0.1],
        "training": ["plain", "average"],
        "pooling": [0.0, 5.0],
    }
    clf = RobustClassifier(TREE, LabelCVaR(0.5), cv=3)
    search = GridSearchCV(clf, grid, cv=2, scoring=RiskScorer(WorstClass())).fit(X, y)
    assert set(search.best_params_) == set(grid) and np.ptp(search.cv_results_["mean_test_score"])
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_params_["goal__alpha"] == 0.1 == search.best_estimator_.goal.alpha
    assert search.best_estimator_.pooling_ == search.best_params_["pooling"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training": "heavy"}, "training must be"),
        ({"training": {"common": 1.0, "middle": 1.0, "rare": 0.0}}, "training must hold positive"),
        ({"training": [1.0, 2.0]}, "training"),
        ({"estimator": DecisionTreeClassifier(class_weight="balanced")}, "weigh classes itself"),
        ({"estimator": RobustLogisticRegression("balanced")}, "got goal=.*Use .standard"),
        ({"estimator": RobustLogisticRegression(FixedWeights([1, 2, 3]))}, "weigh classes itself"),
        (
            {"estimator": RobustLogisticRegression("standard", class_prior=[0.2, 0.3, 0.5])},
            "class_prior=.*Leave it out",
        ),
        ({"estimator": StandardScaler()}, "estimator must"),
        ({"pooling": -1.0}, "pooling must be"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters_are_refused(settings, message):
    X, y = draw()
    with pytest.raises(InvalidInputError, match=message):
        RobustClassifier(**{"estimator": TREE, "cv": 3, **settings}).fit(X, y)


def test_no_warning_is_raised_by_plain_use():
    X, y = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CostlyDecisionsWarning)  # the table is made to cost much
        RobustClassifier(TREE, "worst_class", cv=3).fit(X, y).predict_proba(X)


def test_a_constant_training_weight_is_none():
    X, y = draw()
    clf = RobustClassifier(TREE, "worst_class", training=[2.0, 2.0, 2.0], cv=3).fit(X, y)
    assert clf.training_weights_.to_dict() == pytest.approx(dict.fromkeys(NAMES.tolist(), 1.0))
    with pytest.raises(InvalidParameterError):
        RobustClassifier(TREE, "worst_class", training=np.nan, cv=3).fit(X, y)


# What was found by strangers


@pytest.mark.parametrize("search", [False, True])
def test_routed_metadata_leaves_pipelines_and_searches_alone(search):
    X, y = draw()
    base = make_pipeline(StandardScaler(), LogisticRegression())
    if search:
        grid = {"logisticregression__C": [0.1, 1.0]}
        base = GridSearchCV(base, grid, scoring="balanced_accuracy", cv=2)
    plain = RobustClassifier(base, "worst_class", training="balanced", cv=3).fit(X, y)
    with config_context(enable_metadata_routing=True):
        routed = RobustClassifier(base, "worst_class", training="balanced", cv=3).fit(X, y)
        np.testing.assert_array_equal(routed.predict(X), plain.predict(X))
        if not search:
            weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
            base[0].set_fit_request(sample_weight=False)
            base[1].set_fit_request(sample_weight=True)
            routed.fit(X, y, sample_weight=weights)
    if not search:
        plain.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(routed.estimator_[1].coef_, plain.estimator_[1].coef_)


def test_votes_of_classifiers_that_take_weights_take_them():
    X, y = draw()
    both = [("linear", LogisticRegression()), ("bayes", GaussianNB())]
    votes = VotingClassifier(both, voting="soft")
    assert weight_argument(votes) == "sample_weight"
    assert weight_argument(VotingClassifier([*both, ("near", KNeighborsClassifier())])) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error", EquipoiseWarning)
        warnings.simplefilter("ignore", CostlyDecisionsWarning)
        clf = RobustClassifier(votes, "worst_class", training="balanced", cv=3).fit(X, y)
    assert clf.training_weights_["rare"] > clf.training_weights_["common"]


def test_scores_tell_what_is_decided_where_trees_tie():
    X, y = draw(shares=(0.9, 0.1, 0))
    forest = RandomForestClassifier(10, min_samples_leaf=3, random_state=0)
    for seed in range(5):
        clf = RobustClassifier(forest, cv=0.2, random_state=seed).fit(X, y)
        second = clf.decision_function(X) > 0
        np.testing.assert_array_equal(clf.classes_[second.astype(int)], clf.predict(X))


def test_scores_alone_give_no_probabilities():
    X, y = draw()
    for training in ("plain", "average"):
        clf = RobustClassifier(LinearSVC(), training=training, cv=3)
        assert not hasattr(clf, "predict_proba") and not hasattr(clf.fit(X, y), "predict_proba")
    assert hasattr(RobustClassifier(TREE), "predict_proba")


def test_splits_that_evaluate_nothing_are_refused():
    X, y = draw()
    every = np.arange(len(y))
    with pytest.raises(InvalidInputError, match="cv must give at least one split, got none"):
        RobustClassifier(TREE, cv=[]).fit(X, y)
    with pytest.raises(InvalidInputError, match="got row 200 in both parts of split 0"):
        RobustClassifier(TREE, cv=[(every[:300], every[200:])]).fit(X, y)
    mask = every % 2 == 0
    of_masks = RobustClassifier(TREE, cv=[(mask, ~mask), (~mask, mask)]).fit(X, y)
    rows = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in ((mask, ~mask), (~mask, mask))]
    of_rows = RobustClassifier(TREE, cv=rows).fit(X, y)
    np.testing.assert_array_equal(of_masks.predict(X), of_rows.predict(X))
