"""RobustClassifier: training weights and decisions chosen together, for any classifier."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    PlugInClassifier,
    RecallFloors,
    RobustClassifier,
    RobustLogisticRegression,
)
from equipoise.estimators.class_weighted import ClassWeighted, repeats, weight_argument
from equipoise.estimators.robust_classifier import _fewest, _plainest
from equipoise.exceptions import (
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


@parametrize_with_checks([RobustClassifier(LogisticRegression(C=1), cv=3)])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# Training weights


@pytest.mark.parametrize("base", [TREE, LogisticRegression(), GaussianNB()], ids=repr)
def test_weights_of_classes_are_weights_of_their_rows(base):
    X, y = draw()
    weights = {"common": 0.5, "middle": 2.0, "rare": 5.0}
    ours = ClassWeighted(base, weights).fit(X, y)
    rows = np.array([weights[name] for name in y.tolist()])
    theirs = clone(base).fit(X, y, sample_weight=rows)
    np.testing.assert_array_equal(ours.estimator_.predict_proba(X), theirs.predict_proba(X))
    table = theirs.predict_proba(X) / list(weights.values())
    expected = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours.predict_proba(X), expected, rtol=1e-12)
    # They multiply weights that the rows have already.
    own = np.random.default_rng(0).uniform(0.5, 2, len(y))
    ours, theirs = ours.fit(X, y, sample_weight=own), theirs.fit(X, y, sample_weight=own * rows)
    np.testing.assert_array_equal(ours.estimator_.predict_proba(X), theirs.predict_proba(X))


def test_weights_find_the_step_that_takes_them():
    pipe = make_pipeline(StandardScaler(), TREE)
    search = GridSearchCV(pipe, {"decisiontreeclassifier__max_depth": [1, 3]}, cv=3)
    assert weight_argument(TREE) == "sample_weight"
    assert weight_argument(pipe) == weight_argument(search)
    assert weight_argument(pipe) == "decisiontreeclassifier__sample_weight"
    assert weight_argument(KNeighborsClassifier()) is None
    X, y = draw()
    for base in (pipe, search):
        clf = RobustClassifier(base, "worst-class", training="balanced", cv=3).fit(X, y)
        plain = clone(base).fit(X, y)
        assert clf.training_weights_["rare"] > 2
        assert np.any(clf.predict_proba(X) != plain.predict_proba(X))


@pytest.mark.parametrize("word", ["between", "balanced"])
def test_a_class_with_fewer_rows_than_a_leaf_is_learnt(word):
    # With weights alone, no split sets its eight rows apart: a leaf must hold twenty.
    X, y = np.r_[np.zeros(300), np.ones(8)][:, None], np.repeat(["common", "rare"], [300, 8])
    boosting = HistGradientBoostingClassifier(max_iter=5)
    alone = clone(boosting).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert len(np.unique(alone.predict(X))) == 1
    clf = RobustClassifier(boosting, "worst-class", training=word, cv=4).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), y)
    assert clf.class_risks_.max() == 0


def test_rows_that_are_repeated_share_their_weight():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.repeat([0, 1], [80, 10])
    tree, own = DecisionTreeClassifier(min_samples_leaf=5, random_state=0), rng.uniform(1, 2, 90)
    weights = {0: 1.0, 1: 8.0}
    ours = ClassWeighted(tree, weights).fit(X, y, sample_weight=own)
    # A class has rows for ten leaves.
    times = np.array([1, 5])[y]
    rows = np.repeat(np.arange(90), times)
    shared = (own * np.array([1.0, 8.0])[y] / times)[rows]
    theirs = clone(tree).fit(X[rows], y[rows], sample_weight=shared)
    np.testing.assert_array_equal(ours.estimator_.predict_proba(X), theirs.predict_proba(X))


def test_rows_are_not_repeated_for_what_splits_them_itself():
    counts = np.array([300, 8])
    leaves = DecisionTreeClassifier(min_samples_leaf=20)
    boosting = HistGradientBoostingClassifier()
    for base in (leaves, make_pipeline(leaves), boosting):
        np.testing.assert_array_equal(repeats(base, counts), [1, 25])
    np.testing.assert_array_equal(repeats(leaves, np.array([300, 0, 8])), [1, 1, 25])
    search = GridSearchCV(leaves, {"min_samples_leaf": [5, 20]})
    stops = HistGradientBoostingClassifier(early_stopping=True)
    for base in (TREE, LogisticRegression(), search, CalibratedClassifierCV(leaves), stops):
        np.testing.assert_array_equal(repeats(base, counts), [1, 1])
    np.testing.assert_array_equal(repeats(leaves, np.array([300, 8, 8])), [1, 1, 1])
    # By itself it stops early from 10,000 rows on.
    np.testing.assert_array_equal(repeats(boosting, np.array([9_990, 8])), [1, 1])


# What is chosen, and what is returned


def test_decisions_are_those_of_the_weights_on_the_scale_of_the_base():
    X, y = draw()
    clf = RobustClassifier(TREE, "worst-class", training="balanced", cv=3).fit(X, y)
    table = clf.estimator_.predict_proba(X)
    np.testing.assert_array_equal(clf.predict_proba(X), table)
    # Of weighted probabilities the largest; a leaf may have two that rounding alone keeps apart.
    weighted, decided = table * np.asarray(clf.weights_), clf.predict(X)
    own = weighted[np.arange(len(y)), np.searchsorted(NAMES, decided)]
    np.testing.assert_allclose(own, weighted.max(axis=1), rtol=1e-11)
    balanced = {name: len(y) / (3 * np.sum(y == name)) for name in NAMES}
    rows = np.array([balanced[name] for name in y.tolist()])
    np.testing.assert_array_equal(table, clone(TREE).fit(X, y, rows).predict_proba(X))
    assert clf.training_weights_.to_dict() == pytest.approx(balanced)
    population = clf.predict_population_proba(X)
    back = table / np.asarray(clf.training_weights_)
    np.testing.assert_allclose(population, back / back.sum(axis=1, keepdims=True))


def test_plain_training_is_the_plug_in():
    X, y = draw()
    ours = RobustClassifier(TREE, "worst-class", training="plain", cv=3).fit(X, y)
    plug_in = PlugInClassifier(TREE, "worst-class", cv=3).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), plug_in.predict(X))
    assert ours.class_risks_ == plug_in.class_risks_ and ours.weights_ == plug_in.weights_


def test_risks_are_those_of_rows_left_out():
    X, y = draw()
    folds = StratifiedKFold(3)
    clf = RobustClassifier(TREE, "worst-class", training="balanced", cv=folds).fit(X, y)
    base = ClassWeighted(TREE, clf.training_weights_.to_dict())
    # As the base sees them, and each fold by the weights that were tuned without it.
    wrong = np.empty(len(y), dtype=bool)
    for fold, (train, test) in enumerate(folds.split(X, y)):
        table = clone(base).fit(X[train], y[train]).estimator_.predict_proba(X[test])
        decided = np.argmax(table * clf.fold_weights_[fold], axis=1)
        wrong[test] = NAMES[decided] != y[test]
    expected = {name: wrong[y == name].mean() for name in NAMES.tolist()}
    assert clf.class_risks_.to_dict() == pytest.approx(expected)


def test_where_the_plain_training_does_as_well_no_more_are_tried():
    X, y = draw()
    clf = RobustClassifier(LogisticRegression(), "worst-class", cv=3).fit(X, y)
    assert clf.candidates_["training"].tolist() == ["plain", "balanced"]
    assert np.ptp(clf.training_weights_) == 0


def test_candidates_tell_what_each_would_have_given():
    X, y = draw(900)
    clf = RobustClassifier(Collapsed(), "worst-class", cv=3).fit(X, y)
    found = clf.candidates_
    names = ["plain", "balanced", "between", "round 1", "round 2"]
    n_tried = len(found["training"])
    assert n_tried > 3 and found["training"].tolist() == names[:n_tried]
    assert found["weights"].shape == found["class_risks"].shape == (n_tried, 3)
    # None is tried twice: a second round comes after a first that was the best.
    assert len(np.unique(found["weights"].round(9), axis=0)) == n_tried
    assert (n_tried == 5) == bool(np.argmin(found["value"][:4]) == 3)
    np.testing.assert_allclose(found["value"], found["class_risks"].max(axis=1))
    place = int(np.argmin(np.abs(found["weights"] - np.asarray(clf.training_weights_)).sum(axis=1)))
    assert found["class_risks"][place].max() == pytest.approx(clf.class_risks_.max())
    # Not the plain one, which knows nothing of a class.
    assert place > 0 and found["value"][place] < 0.5 < found["value"][0]
    shares = [np.mean(y == name) for name in NAMES]
    np.testing.assert_allclose(found["weights"] @ shares, 1)
    worst = NAMES[int(np.argmax(np.asarray(clf.class_risks_)))]
    assert clf.worst_case_weights_[worst] == pytest.approx(1 / np.mean(y == worst))
    # The choice among five is allowed for.
    alone = RobustClassifier(
        Collapsed(), "worst-class", training=clf.training_weights_.to_dict(), cv=3
    ).fit(X, y)
    assert alone.class_risks_ == clf.class_risks_
    for name in NAMES.tolist():
        wide, narrow = clf.class_risk_intervals_[name], alone.class_risk_intervals_[name]
        assert wide.lower <= narrow.lower and wide.upper > narrow.upper


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


def test_where_training_collapses_it_is_weighted():
    X, y = draw(900)
    new, true = draw(3000, seed=1)
    worst = {}
    for training in ("plain", "auto"):
        clf = RobustClassifier(Collapsed(), "worst-class", training=training, cv=3).fit(X, y)
        wrong = clf.predict(new) != true
        worst[training] = max(wrong[true == name].mean() for name in NAMES)
    assert worst["plain"] > 0.6 and worst["auto"] < 0.5


@pytest.mark.parametrize(
    "goal",
    [None, LabelCVaR(0.3), "macro_f1", "balanced", CostMatrix(1.0), RecallFloors(0.3)],
    ids=repr,
)
def test_every_goal(goal):
    X, y = draw()
    clf = RobustClassifier(LogisticRegression(), goal, cv=3).fit(X, y)
    assert set(clf.predict(X)) <= set(NAMES) and np.all(np.isfinite(clf.candidates_["value"]))


def test_floors_of_rows_too_few_to_be_judged_are_kept_all_the_same():
    rng = np.random.default_rng(0)
    y = np.repeat(["many", "rare", "some"], [230, 21, 70])
    X = rng.normal(size=(321, 1)) + 3.0 * (y == "rare")[:, None]
    # A fifth of the rows is held out: four of the rare class, which show a recall of one half.
    goal = RecallFloors({"rare": 0.5}, confidence=0.9)
    clf = RobustClassifier(LogisticRegression(), goal, rare="keep", random_state=0).fit(X, y)
    assert clf.candidates_["training"].tolist() == ["plain"]
    assert np.isnan(clf.candidates_["value"]).all()
    assert np.mean(clf.predict(X)[y == "rare"] == "rare") > 0.5


def test_floors_with_a_confidence_leave_no_choice_to_their_rows():
    X, y = draw(1500)
    goal = RecallFloors({"rare": 0.5}, confidence=0.9)
    clf = RobustClassifier(LogisticRegression(), goal, random_state=0).fit(X, y)
    plug_in = PlugInClassifier(LogisticRegression(), goal, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), plug_in.predict(X))
    weighted = RobustClassifier(LogisticRegression(), goal, training="balanced").fit(X, y)
    assert weighted.training_weights_["rare"] > 1


# Other bases


def test_scores_will_do():
    X, y = draw()
    clf = RobustClassifier(LinearSVC(), "worst-class", cv=3).fit(X, y)
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
    clf = RobustClassifier(base, "worst-class", cv=3)
    with pytest.warns(EquipoiseWarning, match=f"{why}.*: it is trained as it is"):
        clf.fit(X, y)
    plug_in = PlugInClassifier(base, "worst-class", cv=3).fit(X, y)
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
        clf = RobustClassifier(base, "worst-class", training="balanced", cv=3).fit(X, y)
    same = RobustClassifier(other, "worst-class", training="balanced", cv=3).fit(X, y)
    np.testing.assert_allclose(clf.training_weights_, same.training_weights_)
    # Both minimise the same weighted cross-entropy with the same penalty.
    found, wanted = (each.predict_population_proba(X) for each in (clf, same))
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    chosen = RobustClassifier(base, "worst-class", cv=3).fit(X, y)
    assert {"plain", "balanced"} <= set(chosen.candidates_["training"])


def test_a_fitted_estimator_is_only_decided():
    X, y = draw()
    forest = RandomForestClassifier(20, random_state=0).fit(X[:300], y[:300])
    clf = RobustClassifier(FrozenEstimator(forest), "worst-class").fit(X[300:], y[300:])
    plug_in = PlugInClassifier(FrozenEstimator(forest), "worst-class").fit(X[300:], y[300:])
    np.testing.assert_array_equal(clf.predict(X), plug_in.predict(X))
    assert clf.predict_population_proba(X).shape == (len(y), 3)


@pytest.mark.parametrize("rare", ["keep", "drop"])
def test_classes_of_too_few_rows(rare):
    X, y = draw()
    y = y.astype("<U8")
    y[:2] = "tiny"
    with pytest.raises(InvalidInputError, match="Too few rows of class 'tiny'"):
        RobustClassifier(TREE, cv=3).fit(X, y)
    clf = RobustClassifier(TREE, "worst-class", cv=3, rare=rare).fit(X, y)
    assert clf.predict_proba(X).shape == (len(y), 4)
    assert (clf.weights_["tiny"] == 0) == (rare == "drop")
    assert np.isnan(clf.class_risks_["tiny"])


# As an estimator


def test_classes_below_min_rows_are_not_tuned_for():
    X, y = draw(shares=(0.7, 0.28, 0.02))
    model = RobustClassifier(TREE, "worst-class", rare="keep", min_rows=13, cv=3).fit(X, y)
    assert np.isnan(model.class_risks_["rare"]) and model.worst_case_weights_["rare"] == 0
    assert not np.isnan(model.class_risks_["middle"])
    with pytest.raises(InvalidInputError, match=r"'rare' \(12 rows\).* at least 13 rows"):
        RobustClassifier(TREE, "worst-class", min_rows=13, cv=3).fit(X, y)
    # Where one class alone has so many rows, all that can be judged are tuned for.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        model.set_params(min_rows=500).fit(X, y)
    assert not np.isnan(np.asarray(model.class_risks_)).any()


def test_the_same_again_pickled_cloned_and_for_any_number_of_jobs():
    X, y = draw()
    clf = RobustClassifier(TREE, "worst-class", cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    two = clone(clf).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(two.predict(X), clf.predict(X))
    assert repr(clone(clf)) == repr(clf) and not hasattr(clone(clf), "tuned_")


def test_a_search_over_its_own_parameters():
    X, y = draw()
    grid = {"estimator__max_depth": [1, 3], "goal": ["worst-class", "macro_f1"]}
    search = GridSearchCV(RobustClassifier(TREE, training="balanced", cv=3), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.3


def test_progress_is_shown_if_asked_for(capsys):
    X, y = told_rows((30, 30, 290), (0, 0, 100), (70, 70, 3000))
    RobustClassifier(Told(), "worst-class", cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
    clf = RobustClassifier(Told(), "worst-class", cv=3, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(clf.candidates_["training"]) >= 4
    assert lines[0].startswith("plain training: 0.4")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training": "heavy"}, "training must be"),
        ({"training": {"common": 1.0, "middle": 1.0, "rare": 0.0}}, "training must hold positive"),
        ({"training": [1.0, 2.0]}, "training"),
        ({"estimator": DecisionTreeClassifier(class_weight="balanced")}, "weigh classes itself"),
        ({"estimator": RobustLogisticRegression("balanced")}, "got uncertainty=.*Use .standard"),
        ({"estimator": RobustLogisticRegression(FixedWeights([1, 2, 3]))}, "weigh classes itself"),
        (
            {"estimator": RobustLogisticRegression("standard", class_prior=[0.2, 0.3, 0.5])},
            "class_prior=.*Leave it out",
        ),
        ({"estimator": StandardScaler()}, "estimator must"),
        ({"verbose": -1}, "verbose"),
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
        RobustClassifier(TREE, "worst-class", cv=3).fit(X, y).predict_population_proba(X)


def test_a_constant_training_weight_is_none():
    X, y = draw()
    clf = RobustClassifier(TREE, "worst-class", training=[2.0, 2.0, 2.0], cv=3).fit(X, y)
    assert clf.training_weights_.to_dict() == pytest.approx(dict.fromkeys(NAMES.tolist(), 1.0))
    with pytest.raises(InvalidParameterError):
        RobustClassifier(TREE, "worst-class", training=np.nan, cv=3).fit(X, y)


class Told(ClassifierMixin, BaseEstimator):
    """Decides by the first column, or by the second if it is trained with weights."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.column_ = int(sample_weight is not None and np.ptp(sample_weight) > 0)
        return self

    def predict_proba(self, X):
        return 0.05 + 0.85 * (np.asarray(X)[:, [self.column_]] == self.classes_)

    def predict(self, X):
        return np.asarray(X)[:, self.column_].astype(int)


def told_rows(wrong, weighted, sizes):
    """Rows of which the first so many of each class are wrong, plain and weighted."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(3), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    told = [np.where(place < np.asarray(n)[y], (y + 1) % 3, y) for n in (wrong, weighted)]
    return np.column_stack([*told, rng.normal(size=len(y))]), y


@pytest.mark.parametrize(
    ("weighted", "sizes", "trained"),
    [
        # One row fewer of the worst class is noise, but no class is worse and all together better.
        ((6, 7, 100), (70, 70, 3000), True),
        # A class is worse by a row.
        ((8, 6, 100), (70, 70, 3000), False),
        # As in the first, with too few rows of a class.
        ((6, 7, 100), (20, 70, 3000), False),
        ((6, 7, 100), (40, 70, 3000), True),
        # The worst class is better by more than noise.
        ((0, 0, 100), (70, 70, 3000), True),
    ],
)
def test_a_training_that_is_better_in_every_class_is_taken(weighted, sizes, trained):
    X, y = told_rows((7, 7, 290), weighted, sizes)
    model = RobustClassifier(Told(), "worst-class", random_state=0).fit(X, y)
    assert bool(np.ptp(np.asarray(model.training_weights_)) > 0) == trained
    assert bool(model.estimator_.column_) == trained


# Macro F1 of two classes, whose best decisions lie between those as trained and balanced ones


def two_classes(n_common, n_rare, seed=0):
    """Overlapping Gaussian classes, the second one rare."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_common, n_rare])
    return rng.normal(size=(len(y), 2)) + 1.2 * y[:, None], y


def log_ratio(weights):
    return float(np.diff(np.log(np.asarray(weights)))[0])


@pytest.mark.parametrize(
    ("n_rare", "goal", "half_way"),
    [(8, "macro_f1", True), (14, "macro_f1", True), (8, "balanced_accuracy", False)],
)
def test_a_handful_of_rows_is_trained_half_way_for_macro_f1(n_rare, goal, half_way):
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [400, n_rare])
    X = rng.normal(size=(len(y), 2)) + 4.0 * y[:, None]  # plain training does as well as any
    clf = RobustClassifier(GaussianNB(), goal).fit(X, y)
    assert clf.candidates_["training"].tolist() == ["plain", "between", "balanced"]
    ratio = clf.training_weights_[1] / clf.training_weights_[0]
    assert ratio == pytest.approx((400 / n_rare) ** 0.5 if half_way else 1.0)
    given = RobustClassifier(GaussianNB(), goal, training="plain").fit(X, y)
    assert given.training_weights_[1] == given.training_weights_[0]


def test_with_more_rows_for_macro_f1_the_plainest_training_is_taken():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [400, 15])
    X = rng.normal(size=(len(y), 2)) + 4.0 * y[:, None]
    clf = RobustClassifier(GaussianNB(), "macro_f1").fit(X, y)
    assert clf.training_weights_[1] == clf.training_weights_[0]


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("n_rare", [10, 50, 400])
@pytest.mark.parametrize(("training", "power"), [("plain", 0.0), ("balanced", 1.0)])
def test_the_fewer_rows_the_more_decisions_for_macro_f1_are_guessed(n_rare, training, power):
    X, y = two_classes(1_000, n_rare)
    clf = RobustClassifier(GaussianNB(), "macro_f1", training=training).fit(X, y)
    shares = np.bincount(y) / len(y)
    base = GaussianNB()
    if power:
        base = ClassWeighted(base, dict(enumerate(shares**-power)))
    tuned = log_ratio(PlugInClassifier(base, "macro_f1").fit(X, y).weights_)
    guess = log_ratio(shares ** (-(1 + power) / 2))
    share = 50 / (50 + n_rare)
    # On the scale of the base, which for a model that was trained with weights is theirs.
    expected = (1 - share) * tuned + share * guess - log_ratio(shares**-power)
    assert log_ratio(clf.weights_) == pytest.approx(expected)


class Resampling(GaussianNB):
    """Trains on as many rows of each class, so that its probabilities are not those of the rows."""

    def fit(self, X, y, sample_weight=None):
        given = np.ones(len(y)) if sample_weight is None else sample_weight
        return super().fit(X, y, sample_weight=given * compute_sample_weight("balanced", y))


def test_what_resamples_is_not_guessed_for():
    X, y = two_classes(1_000, 20)
    clf = RobustClassifier(Resampling(), "macro_f1", training="plain").fit(X, y)
    plug_in = PlugInClassifier(Resampling(), "macro_f1").fit(X, y)
    np.testing.assert_allclose(clf.weights_, plug_in.weights_)


@pytest.mark.parametrize(
    "other", [LogisticRegression(), RobustLogisticRegression("worst-class", C=1.0)], ids=repr
)
@pytest.mark.parametrize("goal", ["accuracy", "balanced_accuracy", "worst-class"])
def test_nothing_is_guessed_for_other_goals(other, goal):
    X, y = two_classes(300, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = RobustClassifier(other, goal, training="plain").fit(X, y)
        plug_in = PlugInClassifier(other, goal).fit(X, y)
    np.testing.assert_allclose(clf.weights_, plug_in.weights_)


def test_a_guess_is_on_the_scale_of_the_population():
    X, y = two_classes(1_000, 40)
    prior = np.array([0.8, 0.2])
    clf = RobustClassifier(GaussianNB(), "macro_f1", training="plain", class_prior=prior).fit(X, y)
    plug_in = PlugInClassifier(GaussianNB(), "macro_f1", class_prior=prior).fit(X, y)
    shares, share = np.bincount(y) / len(y), 50 / 90
    guess = log_ratio(np.sqrt(prior / shares / shares))
    expected = (1 - share) * log_ratio(plug_in.weights_) + share * guess
    assert log_ratio(clf.weights_) == pytest.approx(expected)


# What was found by strangers


@pytest.mark.parametrize("search", [False, True])
def test_routed_metadata_leaves_pipelines_and_searches_alone(search):
    X, y = draw()
    base = make_pipeline(StandardScaler(), LogisticRegression())
    if search:
        grid = {"logisticregression__C": [0.1, 1.0]}
        base = GridSearchCV(base, grid, scoring="balanced_accuracy", cv=2)
    plain = RobustClassifier(base, "worst-class", training="balanced", cv=3).fit(X, y)
    with config_context(enable_metadata_routing=True):
        routed = RobustClassifier(base, "worst-class", training="balanced", cv=3).fit(X, y)
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
        clf = RobustClassifier(votes, "worst-class", training="balanced", cv=3).fit(X, y)
    assert clf.training_weights_["rare"] > clf.training_weights_["common"]


def test_classes_that_are_not_judged_do_not_make_others_few():
    X, y = draw(shares=(0.6, 0.4, 0))
    few = y.copy()
    few[np.flatnonzero(y == "middle")[:3]] = "rare"
    known = few != "rare"
    own = {"goal": "macro_f1", "random_state": 0}
    dropped = RobustClassifier(GaussianNB(), rare="drop", **own).fit(X, few)
    without = RobustClassifier(GaussianNB(), **own).fit(X[known], few[known])
    found = [clf.candidates_["value"] for clf in (dropped, without)]
    np.testing.assert_allclose(*found)
    ratios = [clf.training_weights_["middle"] / clf.training_weights_["common"]
              for clf in (dropped, without)]  # fmt: skip
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)
    sums = np.zeros((5, 4, 3))
    sums[:, 0] = 30, 20, 0
    assert _fewest((None, None, ({"held_out": sums}, np.empty(0), ""), None)) == 100


def test_scores_tell_what_is_decided_where_trees_tie():
    X, y = draw(shares=(0.9, 0.1, 0))
    forest = RandomForestClassifier(10, min_samples_leaf=3, random_state=0)
    for seed in range(5):
        clf = RobustClassifier(forest, cv=0.2, random_state=seed).fit(X, y)
        second = clf.decision_function(X) > 0
        np.testing.assert_array_equal(clf.classes_[second.astype(int)], clf.predict(X))


def test_of_floors_that_are_kept_the_least_risk_decides():
    """A floor that is missed by a row had counted as any other value, however much it cost."""
    tables = {"plain": [[900, 100], [22, 78]], "between": [[970, 30], [19, 81]],
              "balanced": [[960, 40], [60, 40]]}  # fmt: skip
    criterion = RecallFloors({1: 0.8}).resolve(np.array([0.9, 0.1]), np.array([0, 1]))
    judged = [(None, None, ({}, np.array([table] * 5) / 5.0, ""), None)
              for table in tables.values()]  # fmt: skip
    assert _plainest(list(tables), judged, criterion) == 1
    assert criterion.short(np.array(tables["plain"])) == pytest.approx(0.5, abs=0.01)
    assert criterion.short(np.array(tables["balanced"])) > 5
    # Where all miss it, the one that misses it least.
    short = [(None, None, ({}, np.array([table] * 5) / 5.0, ""), None)
             for table in ([[990, 10], [50, 50]], [[990, 10], [40, 60]])]  # fmt: skip
    assert _plainest(["plain", "between"], short, criterion) == 1


def test_scores_alone_give_no_probabilities():
    X, y = draw()
    clf = RobustClassifier(LinearSVC(), cv=3)
    assert not hasattr(clf, "predict_proba") and not hasattr(clf.fit(X, y), "predict_proba")
    assert hasattr(RobustClassifier(TREE), "predict_proba")


def test_splits_that_cannot_be_judged_by_are_refused():
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
