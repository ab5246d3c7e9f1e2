"""Classifiers around others on out-of-core data: fitted to a sample, evaluated on all others."""

import os
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import CostMatrix, LabelCVaR, RecallFloors, RobustClassifier, TunedDecisionClassifier
from equipoise.blocks import from_blocks
from equipoise.decisions.alphas import AlphaChoice
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.risks import class_risks
from logistic_cases import draw

N_ROWS = 6000
X, Y = draw(k=3, n=N_ROWS, d=4)
NAMES = np.array(["common", "less", "rare"])
y = NAMES[Y]


def in_blocks(X=X, y=y, *weights, size=700):
    starts = range(0, len(y), size)
    return from_blocks([tuple(a[s : s + size] for a in (X, y, *weights)) for s in starts])


class Recording(ClassifierMixin, BaseEstimator):
    """Naive Bayes that tells which rows it was trained on, and with which weights."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X, y, sample_weight))
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def trained_on():
    """Of all rows, those that the last training has seen."""
    known = {row.tobytes() for row in Recording.seen[-1][0]}
    return np.array([row.tobytes() in known for row in X])


@pytest.fixture(autouse=True)
def nothing_seen():
    Recording.seen.clear()


CHOSEN = LabelCVaR(AlphaChoice(alphas=[0.3, 1.0]))
FLOORS = RecallFloors({"rare": 0.6}, confidence=0.9)
BALANCED, AVERAGE = (partial(RobustClassifier, training=name) for name in ("balanced", "average"))
each_way = pytest.mark.parametrize(
    ("made", "goal"),
    [
        (TunedDecisionClassifier, "worst_class"),
        (TunedDecisionClassifier, FLOORS),
        (TunedDecisionClassifier, CHOSEN),
        (TunedDecisionClassifier, "accuracy"),
        (RobustClassifier, LabelCVaR(0.3)),
        (RobustClassifier, "f1_macro"),
        (BALANCED, "worst_class"),
        (AVERAGE, "worst_class"),
    ],
    ids=str,
)


@each_way
def test_a_sample_of_all_rows_gives_the_fit_in_memory(made, goal):
    here = made(GaussianNB(), goal).fit(X[:900], y[:900])
    there = made(GaussianNB(), goal, sample_rows=900).fit(in_blocks(X[:900], y[:900]))
    np.testing.assert_array_equal(there.tuned_.rule, here.tuned_.rule)
    np.testing.assert_array_equal(there.predict(in_blocks()), here.predict(X))
    np.testing.assert_array_equal(there.decision_function(in_blocks()), here.decision_function(X))
    assert not hasattr(there, "rows_seen_")
    if hasattr(here, "class_risks_"):
        np.testing.assert_array_equal(there.class_risks_, here.class_risks_)


@each_way
def test_risks_are_those_of_all_rows_that_are_not_trained_on(made, goal):
    clf = made(Recording(), goal, sample_rows=1500).fit(in_blocks())
    seen = trained_on()
    assert len(Recording.seen[-1][0]) == seen.sum()
    trained, tuned, evaluated = (np.asarray(v) for v in clf.rows_seen_.values())
    of_class = np.bincount(Y)
    np.testing.assert_array_equal(trained, np.bincount(Y[seen]))
    np.testing.assert_array_equal(trained + evaluated, of_class)
    assert trained.sum() <= 750 and tuned.sum() <= 750 and clf.n_passes_ == 3
    final = class_risks(y[~seen], clf.predict(X[~seen]))
    # Rows that were tuned on are decided by weights of other folds.
    np.testing.assert_allclose(clf.class_risks_, np.asarray(final), atol=0.05)
    np.testing.assert_allclose(clf.class_prior_, of_class / N_ROWS)
    errors = clf.tuned_.held_out[:, 4].sum(axis=0)
    np.testing.assert_allclose(errors / evaluated, np.asarray(final), atol=1e-12)


def test_the_value_of_a_goal_is_that_of_all_rows_judged():
    from sklearn.metrics import f1_score

    clf = TunedDecisionClassifier(Recording(), "f1_macro", sample_rows=1500).fit(in_blocks())
    left = ~trained_on()
    weights = (np.bincount(Y) / np.bincount(Y[left]))[Y[left]]
    found = f1_score(y[left], clf.predict(X[left]), average="macro", sample_weight=weights)
    assert clf.metric_value_ == pytest.approx(found, abs=0.01)
    clf = TunedDecisionClassifier(Recording(), "worst_class", sample_rows=1500).fit(in_blocks())
    assert clf.robust_risk_ == pytest.approx(clf.class_risks_.max(), rel=1e-12)


@pytest.mark.parametrize("goal", ["balanced", CostMatrix(1 - np.eye(3))], ids=str)
def test_decisions_that_are_known_are_judged_on_all_rows_left(goal):
    clf = TunedDecisionClassifier(Recording(), goal, sample_rows=1000).fit(in_blocks())
    left = ~trained_on()
    assert clf.rows_seen_["tuned"].max() == 0
    expected = class_risks(y[left], clf.predict(X[left]))
    np.testing.assert_array_equal(clf.class_risks_, np.asarray(expected))
    assert not clf.class_risk_intervals_.approximate


def test_what_is_fitted_before_is_judged_on_all_rows():
    model = GaussianNB().fit(*draw(k=3, n=400, d=4))
    clf = TunedDecisionClassifier(FrozenEstimator(model), sample_rows=900).fit(in_blocks(X, Y))
    assert clf.rows_seen_["trained"].max() == 0
    assert clf.rows_seen_["evaluated"].to_numpy().tolist() == np.bincount(Y).tolist()
    with pytest.raises(ClassMismatchError, match="the fitted estimator"):
        clf.fit(in_blocks(X, Y + 1))


# --- the sample -----------------------------------------------------------------------------------


def test_rare_classes_are_kept_whole_and_weights_make_up_for_it():
    TunedDecisionClassifier(Recording(), sample_rows=1500).fit(in_blocks())
    names, weights = Recording.seen[0][1:]
    counts, of_class = np.array([np.sum(names == n) for n in NAMES]), np.bincount(Y)
    assert counts[0] == counts[1] == 250 and counts[2] == 250 < of_class[2]
    np.testing.assert_allclose(
        [weights[names == n].sum() / weights.sum() for n in NAMES], of_class / N_ROWS
    )
    assert weights.mean() == pytest.approx(1)
    # Of a hundred rows four fifths are trained on, and the others tuned on.
    some = np.concatenate([np.flatnonzero(Y < 2), np.flatnonzero(Y == 2)[:100]])
    clf = TunedDecisionClassifier(Recording(), sample_rows=1500).fit(in_blocks(X[some], y[some]))
    assert [each["rare"] for each in clf.rows_seen_.values()] == [80, 20, 20]


def test_probabilities_are_those_of_all_rows():
    shares = np.bincount(Y) / N_ROWS
    for model in (
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(50),
    ):
        clf = TunedDecisionClassifier(model, sample_rows=3000).fit(in_blocks())
        np.testing.assert_allclose(clf.predict_proba(X).mean(axis=0), shares, atol=0.02)
        assert np.mean(clf.estimator_.predict(X) == y) > 0.7


def test_weights_of_rows_count():
    weights = np.random.default_rng(0).integers(0, 3, N_ROWS).astype(float)
    clf = TunedDecisionClassifier(Recording(), sample_rows=1500).fit(in_blocks(X, y, weights))
    left = ~trained_on() & (weights > 0)
    assert clf.rows_seen_["evaluated"].to_numpy().sum() == left.sum()
    final = class_risks(y[left], clf.predict(X[left]), sample_weight=weights[left])
    np.testing.assert_allclose(clf.class_risks_, np.asarray(final), atol=0.02)
    totals = np.bincount(Y, weights=weights)
    np.testing.assert_allclose(clf.class_prior_, totals / totals.sum())
    names, given = Recording.seen[-1][1:]
    np.testing.assert_allclose(given[names == "rare"].sum() / given.sum(), totals[2] / totals.sum())


def test_gaps_are_for_those_who_take_them_and_frames_stay_frames():
    pandas = pytest.importorskip("pandas")
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    booster = HistGradientBoostingClassifier(max_iter=5)
    clf = TunedDecisionClassifier(booster, sample_rows=1500).fit(in_blocks(gaps))
    assert clf.class_risks_.max() < 0.6
    filled = make_pipeline(SimpleImputer(), GaussianNB())
    assert (
        TunedDecisionClassifier(filled, sample_rows=1500).fit(in_blocks(gaps)).class_risks_.max()
        < 0.6
    )
    with pytest.raises(InvalidInputError, match="Block 0: row 0 has nan in column 0"):
        TunedDecisionClassifier(GaussianNB(), sample_rows=1500).fit(in_blocks(gaps))
    frame = pandas.DataFrame(gaps, columns=list("abcd")).assign(a=np.array(["x", None])[Y % 2])
    parts = [(frame.iloc[s : s + 700], y[s : s + 700]) for s in range(0, N_ROWS, 700)]
    frames = booster.set_params(categorical_features=["a"])
    frame["a"] = frame["a"].astype("category")
    parts = [(frame.iloc[s : s + 700], y[s : s + 700]) for s in range(0, N_ROWS, 700)]
    clf = TunedDecisionClassifier(frames, sample_rows=1500).fit(from_blocks(parts))
    assert clf.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(clf.predict(from_blocks(parts)), clf.predict(frame))


def test_the_same_blocks_give_the_same_fit():
    one, two = (
        RobustClassifier(GaussianNB(), sample_rows=1500, random_state=3).fit(in_blocks())
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.tuned_.rule, two.tuned_.rule)
    np.testing.assert_array_equal(one.tuned_.held_out, two.tuned_.held_out)
    assert "trained" in repr(one.tuned_) and "evaluated" in repr(one.tuned_)


def test_the_page_on_scale_shows_code_that_runs():
    page = Path(__file__).parents[1] / "docs" / "scale.md"
    section = page.read_text(encoding="utf-8").split("### Any classifier")[1]
    names: dict = {}
    exec(section.split("```python\n")[1].split("```")[0], names)
    seen = [int(rows.to_numpy().sum()) for rows in names["clf"].rows_seen_.values()]
    assert seen == [2_000, 2_000, 48_000]


# --- what can be wrong ----------------------------------------------------------------------------


def test_labels_that_appear_late_are_classes_like_others():
    order = np.argsort(Y, kind="stable")
    clf = TunedDecisionClassifier(GaussianNB(), sample_rows=1500).fit(in_blocks(X[order], y[order]))
    assert clf.classes_.tolist() == NAMES.tolist() and clf.class_risks_.max() < 0.6


def test_rows_that_change_or_go_are_noticed(tmp_path):
    wide = np.tile(X.astype(np.float32), (1, 400))
    np.save(tmp_path / "X.npy", wide)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")

    class Shrinking(BaseEstimator, ClassifierMixin):
        def fit(self, X, y, sample_weight=None):
            os.truncate(tmp_path / "X.npy", wide.nbytes // 2)
            self.model_ = GaussianNB().fit(X, y, sample_weight)
            self.classes_ = self.model_.classes_
            return self

        def predict_proba(self, X):
            return self.model_.predict_proba(X)

    clf = TunedDecisionClassifier(Shrinking(), memory="16 MiB", sample_rows=300)
    with pytest.raises(InvalidInputError, match=r"Block \d+: .*has shrunk while it was read"):
        clf.fit(mapped, y)
    assert not hasattr(clf, "estimator_")

    class Shuffled(list):
        def __getitem__(self, place):
            rows, names = super().__getitem__(place)
            order = np.random.default_rng().permutation(len(names))
            return rows[order], names[order]

    blocks = [(X[s : s + 700], y[s : s + 700]) for s in range(0, N_ROWS, 700)]
    with pytest.raises(InvalidInputError, match="Block 0: its rows, labels or weights changed"):
        TunedDecisionClassifier(GaussianNB(), sample_rows=300).fit(from_blocks(Shuffled(blocks)))


def test_what_blocks_cannot_do_is_said():
    with pytest.raises(InvalidInputError, match="Labels and weights come with the blocks"):
        TunedDecisionClassifier(GaussianNB()).fit(in_blocks(), y)
    with pytest.raises(InvalidInputError, match="fit takes no groups with out-of-core data"):
        TunedDecisionClassifier(GaussianNB()).fit(in_blocks(), groups=Y)
    with pytest.raises(InvalidParameterError, match="splitters number rows in memory"):
        TunedDecisionClassifier(GaussianNB(), cv=[(Y, Y)], sample_rows=300).fit(in_blocks())
    with pytest.raises(InvalidParameterError, match="sample_rows must be an integer of at least 6"):
        TunedDecisionClassifier(GaussianNB(), sample_rows=5).fit(in_blocks())
    few = np.flatnonzero((Y < 2) | (np.cumsum(Y == 2) <= 10))
    with pytest.raises(InvalidInputError, match=r"Too few rows of class 'rare' \(10 rows\)"):
        TunedDecisionClassifier(GaussianNB(), sample_rows=300).fit(in_blocks(X[few], y[few]))
    for rare, rest in (("keep", 1.0), ("drop", 0.0)):
        clf = TunedDecisionClassifier(GaussianNB(), sample_rows=300, rare_classes=rare)
        clf.fit(in_blocks(X[few], y[few]))
        assert clf.weights_["rare"] == rest and np.isnan(clf.class_risks_["rare"])
