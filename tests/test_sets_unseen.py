"""Classes that no calibration row of a fitted model has: what is promised of them."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from equipoise import LabelCVaR, PredictionSets
from equipoise.decisions.conformal import Calibration, CoverageTask, thresholds
from equipoise.estimators import GivenProbabilities

K, ROWS = 60, 120
PRIOR = (1 / np.arange(1, K + 1)) / np.sum(1 / np.arange(1, K + 1))
GIVEN = FrozenEstimator(GivenProbabilities(np.arange(K)))


def rows(rng, n):
    """Labels of a long tail, and their exact probabilities given Gaussian features."""
    y = rng.choice(K, n, p=PRIOR)
    shifted = rng.normal(size=(n, K)) + 2.5 * np.eye(K)[y]
    scores = np.exp(2.5 * shifted + np.log(PRIOR))
    return scores / scores.sum(axis=1, keepdims=True), y


def covered(goal, redraws=60, **options):
    """The share of new rows whose set holds their label, for every redraw; and classes unseen."""
    rng, shares, unseen = np.random.default_rng(0), [], []
    for _ in range(redraws):
        sets = PredictionSets(GIVEN, 0.9, goal, random_state=0, **options)
        table, y = rows(rng, ROWS)
        sets.fit(table, y)
        new, y_new = rows(rng, 2000)
        held = sets.predict_set(new)[np.arange(len(y_new)), y_new]
        shares.append((held.mean(), held[~np.isin(y_new, y)].mean()))
        unseen.append(1 - np.isin(y_new, y).mean())
    assert np.mean(unseen) > 0.05
    return np.array(shares)


def test_standard_sets_cover_all_rows_where_classes_were_not_seen():
    shares = covered("standard")
    assert shares[:, 0].mean() >= 0.9 - 3 * shares[:, 0].std() / np.sqrt(len(shares))


def test_standard_sets_with_a_confidence_cover_all_rows_where_classes_were_not_seen():
    shares = covered("standard", confidence=0.8)
    assert np.mean(shares[:, 0] < 0.9) <= 0.2 + 3 * np.sqrt(0.16 / len(shares))


@pytest.mark.parametrize("confidence", [None, 0.8])
@pytest.mark.parametrize("goal", ["balanced", "worst_class", {}, LabelCVaR(0.5)], ids=str)
def test_other_sets_hold_every_class_that_was_not_seen(goal, confidence):
    shares = covered(goal, redraws=3, confidence=confidence)
    assert np.all(shares[:, 1] == 1)


def test_frequencies_of_zero_that_are_given_leave_a_class_out():
    table, y = rows(np.random.default_rng(0), ROWS)
    seen = np.bincount(y, minlength=K) / ROWS
    unseen = seen == 0
    given = PredictionSets(GIVEN, goal="balanced", class_prior=seen).fit(table, y)
    assert unseen.any() and not given.predict_set(table)[:, unseen].any()
    moved = PredictionSets(GIVEN, goal="standard").fit(table, y).adapted(np.eye(K)[0])
    assert moved.predict_set(table)[:, 0].mean() > 0.5
    assert not moved.predict_set(table)[:, 1:].any()


def test_standard_sets_have_the_threshold_of_split_conformal_sets(tmp_path):
    table, y = rows(np.random.default_rng(0), ROWS)
    sets = PredictionSets(GIVEN, goal="standard", random_state=0).fit(table, y)
    lowest = np.sort(table[np.arange(ROWS), y])[int(0.1 * (ROWS + 1)) - 1]
    new, _ = rows(np.random.default_rng(1), 500)
    np.testing.assert_array_equal(sets.predict_set(new), new >= lowest)
    # The path of a model starts there, and has it from a file as well.
    path = sets.coverage_path(table, y, [1.0])
    assert path.mean_size[0] == pytest.approx(sets.evaluate(table, y).mean_size)
    balanced = PredictionSets(GIVEN, goal="balanced", random_state=0).fit(table, y)
    assert "in every set" in repr(balanced.summary())


def test_a_label_is_predicted_by_probability_among_classes_that_were_not_seen():
    table, y = rows(np.random.default_rng(0), ROWS)
    sets = PredictionSets(GIVEN, goal="balanced", random_state=0).fit(table, y)
    unseen = np.flatnonzero(np.bincount(y, minlength=K) == 0)
    row = np.full((1, K), 0.0)
    row[0, unseen[-1]] = 1.0
    assert sets.predict(row).tolist() == [unseen[-1]]


def test_few_lost_classes_do_not_fill_the_sets_of_all_rows():
    rng, found = np.random.default_rng(0), []
    for _ in range(40):
        table, y = rows(rng, 4 * ROWS)
        sets = PredictionSets(GIVEN, 0.9, "standard", class_prior=PRIOR).fit(table, y)
        new, y_new = rows(rng, 2000)
        held = sets.predict_set(new)
        unseen = np.bincount(y, minlength=K) == 0
        found.append((held[np.arange(2000), y_new].mean(), held[:, unseen].sum() / 2000))
    covered, labels = np.array(found).T
    assert covered.mean() >= 0.9 - 3 * covered.std() / np.sqrt(len(covered))
    # Of more than three classes on average.
    assert labels.mean() < 0.5


def test_every_draw_of_counts_keeps_the_statement_where_a_class_is_lost():
    """Scores are uniform for each class, so that errors are the thresholds themselves."""
    masses, counts = np.array([0.55, 0.42, 0.02, 0.01]), np.array([120, 80, 0, 0])
    labels, rng = np.repeat(np.arange(4), counts), np.random.default_rng(0)
    for tail, promised in ((None, None), (0.2, 0.2)):
        task = CoverageTask(np.full(4, 0.1), masses, masses=masses, tail=tail)
        errors = []
        for _ in range(400):
            own = rng.random(len(labels))
            lowest = thresholds(Calibration(own, labels, np.zeros(len(own), int), 4), task)
            assert np.all(np.isfinite(lowest))
            missed = np.where(counts > 0, lowest, 1.0)
            errors.append(missed @ masses)
        errors = np.array(errors)
        if promised is None:
            assert errors.mean() <= 0.1 + 3 * errors.std() / np.sqrt(400)
        else:
            assert np.mean(errors > 0.1) <= promised + 3 * np.sqrt(0.16 / 400)
