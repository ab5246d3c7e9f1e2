"""Class frequencies of unlabelled rows: the posterior, its intervals, and the test."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import RobustLogisticRegression
from equipoise.blocks import from_blocks
from equipoise.exceptions import (
    EquipoiseWarning,
    InvalidInputError,
    InvalidParameterError,
    UnidentifiableError,
)
from equipoise.shift import PriorMonitor, calibrate, estimate_prior
from equipoise.shift.likelihood_errors import LabelledLikelihoods, matching_factors
from equipoise.shift.mixture_test import label_shift_p_value
from equipoise.shift.new_rows import NewRows
from equipoise.shift.posterior import maximum_likelihood, posterior_draws

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
NAMES = np.array(["a", "b", "c"])


def rows(counts, seed, distance=1.0):
    """Rows of Gaussian classes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    return distance * MEANS[labels] + rng.normal(size=(len(labels), 2)), NAMES[labels]


def truth(X, prior=(1 / 3, 1 / 3, 1 / 3), distance=1.0):
    """Probabilities of the classes at class frequencies."""
    means = distance * MEANS
    table = np.array(prior) * np.exp(X @ means.T - (means**2).sum(axis=1) / 2)
    return table / table.sum(axis=1, keepdims=True)


TRAINING, HELD_OUT = rows([500, 300, 200], 0), rows([500, 300, 200], 1)
NEW = rows([40, 20, 340], 2)
TRUE = np.array([0.1, 0.05, 0.85])
MODEL = LogisticRegression().fit(*TRAINING)


def test_calibration_finds_temperature_and_weights():
    X, y = rows([3000, 3000, 3000], 3)
    sharpened = truth(X, (0.7, 0.2, 0.1)) ** 2
    found = calibrate(y, sharpened / sharpened.sum(axis=1, keepdims=True))
    assert found.temperature == pytest.approx(2, rel=0.1)
    table = found.probabilities(sharpened / sharpened.sum(axis=1, keepdims=True))
    assert np.abs(table - truth(X)).mean() < 0.02
    assert found.log_loss[1] < found.log_loss[0] and found.p_value < 1e-6
    assert "log loss" in found.reliability()


@pytest.mark.parametrize("learner", [MODEL, make_pipeline(StandardScaler(), MODEL)])
def test_intervals_hold_the_frequencies(learner):
    learner = clone(learner).fit(*TRAINING)
    estimate = estimate_prior(learner, NEW[0], held_out=HELD_OUT)
    low, high = np.asarray(estimate.lower), np.asarray(estimate.upper)
    assert np.all((low <= TRUE) & (high >= TRUE)) and np.all(high - low < 0.2)
    assert np.asarray(estimate.mean).sum() == pytest.approx(1)
    assert estimate.is_mixture and "Nothing shows" in estimate.verdict
    masses = estimate.set(0.9).resolve(estimate.class_prior)
    assert masses.maximize([0.0, 0.0, 1.0])[2] >= estimate.mean["c"]
    assert estimate.weights() @ np.asarray(estimate.class_prior) == pytest.approx(1)
    error = estimate.overall_error({"a": 0.5, "b": 0.5, "c": 0.0})
    assert error.lower < error.estimate < error.upper


def test_the_posterior_is_that_of_a_grid():
    # Two classes and a uniform prior: the density is known up to a constant.
    table = np.random.default_rng(0).random((30, 2))
    grid = np.linspace(0, 1, 2001)
    density = np.prod(np.outer(grid, table[:, 0]) + np.outer(1 - grid, table[:, 1]), axis=1)
    mean = grid @ density / density.sum()
    spread = np.sqrt((grid - mean) ** 2 @ density / density.sum())
    draws = posterior_draws(NewRows.of(table), np.ones((1, 2)), np.random.default_rng(1), 20_000)
    assert draws.mean[0] == pytest.approx(mean, abs=0.01)
    assert draws.samples[:, 0].std() == pytest.approx(spread, rel=0.05)


def mistaken(counts, seed):
    """Probabilities that are wrong in a way no temperature and biases mend: c looks like a to b."""
    X, y = rows(counts, seed)
    table = truth(X)
    table[:, 2] = np.where(X[:, 0] > 1, 8 * table[:, 2], table[:, 2] / 4)
    return table / table.sum(axis=1, keepdims=True), y


def test_mean_scores_are_made_one_where_the_new_rows_are():
    table, y = mistaken([900, 700, 500], 0)
    known = calibrate(y, table)
    new = NewRows.of(known.likelihoods(mistaken([50, 900, 50], 1)[0]))
    held_out = LabelledLikelihoods(known.held_out_likelihoods, known.labels)
    factors = matching_factors(new, held_out)
    at = maximum_likelihood(new.table * factors, new.counts, pseudo=1)
    scaled = LabelledLikelihoods(held_out.table * factors, held_out.labels)
    assert np.abs(held_out.means_at(at) - 1).max() > 0.1
    np.testing.assert_allclose(scaled.means_at(at), 1, atol=1e-3)
    np.testing.assert_allclose(scaled.mean_scores(at).mean, scaled.means_at(at))


def test_intervals_hold_where_likelihoods_are_wrong():
    inside = []
    for seed in range(6):
        table, y = mistaken([900, 700, 500], (seed, 0))
        new = mistaken([60, 1_800, 140], (seed, 1))[0]
        estimate = estimate_prior(new, held_out=(table, y))
        low, high = np.asarray(estimate.lower), np.asarray(estimate.upper)
        inside.append((low <= [0.03, 0.9, 0.07]) & (high >= [0.03, 0.9, 0.07]))
    assert np.mean(inside) >= 0.9


def test_a_sample_of_the_rows_stands_for_all():
    rng = np.random.default_rng(0)
    X, _ = rows([60_000, 2_000, 40], 5)
    table = truth(X)
    everything = NewRows.of(table / table.max(axis=1, keepdims=True))
    few = everything.thinned(3_000)
    assert few.counts.sum() == everything.n_rows and len(few.table) <= 3_000
    draws = posterior_draws(everything, np.ones((1, 3)), rng, 200)
    exact = maximum_likelihood(everything.table, everything.counts)
    assert np.abs(draws.mean - exact).max() < 0.003


def test_chunks_of_too_many_rows_are_sampled_alike():
    found = NewRows.of(np.ones((0, 3)))
    for seed, share in enumerate([0.2, 0.8, 0.2, 0.8]):
        table = np.random.default_rng(seed).random((60_000, 3)) * [share, 1 - share, 0.1]
        found = found.and_also(NewRows.of(table / table.max(axis=1, keepdims=True)))
    assert found.n_rows == found.counts.sum() == 240_000 and len(found.table) < 110_000
    np.testing.assert_array_equal(np.bincount(found.strata, found.counts), found.totals)


def test_many_rows_at_once_are_sampled_too():
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    X = rows([20_000, 10_000, 170_000], 6)[0]
    estimate = estimate_prior(MODEL, X, calibration=calibration)
    assert estimate.n_rows == 200_000 and len(estimate.rows.table) <= 100_003
    half = estimate_prior(MODEL, X[::2], calibration=calibration).update(X[1::2])
    np.testing.assert_allclose(half.draws.mean, estimate.draws.mean, atol=0.005)


@pytest.mark.parametrize("method", ["em", "bbse"])
def test_other_methods_come_near(method):
    estimate = estimate_prior(MODEL, NEW[0], held_out=HELD_OUT, method=method)
    assert np.abs(estimate.draws.mean - TRUE).max() < 0.15


def test_update_and_blocks_are_all_rows_at_once():
    X = NEW[0]
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    whole = estimate_prior(MODEL, X, calibration=calibration)
    parts = estimate_prior(MODEL, X[:150], calibration=calibration).update(X[150:])
    chunks = estimate_prior(MODEL, from_blocks([(X[:150],), (X[150:],)]), calibration=calibration)
    for other in (parts, chunks):
        assert other.n_rows == 400
        np.testing.assert_allclose(other.samples, whole.samples)
    by_table = estimate_prior(MODEL.predict_proba(X), calibration=calibration)
    np.testing.assert_allclose(by_table.samples, whole.samples)


def test_dask_collections_are_streamed():
    array = pytest.importorskip("dask.array")
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    model = RobustLogisticRegression("balanced").fit(*TRAINING)
    collection = array.from_array(NEW[0], chunks=(150, 2))
    estimate = estimate_prior(model, collection, calibration=calibration)
    assert estimate.n_rows == 400


def test_a_new_class_is_noticed_and_a_mixture_is_not():
    X = np.vstack([NEW[0], np.random.default_rng(0).normal([1.0, 1.0], 0.2, size=(200, 2))])
    estimate = estimate_prior(MODEL, X, held_out=HELD_OUT)
    assert not estimate.is_mixture and "not a mixture" in repr(estimate)


def rejected(held_out, new, distance, redraws):
    """The share of redraws whose p-value is below 5%, where new rows are a mixture."""
    low, pi = 0, np.array(new) / sum(new)
    for seed in range(redraws):
        X, y = rows(held_out, (seed, 0), distance)
        calibration = calibrate(y, truth(X, distance=distance))
        X = rows(np.random.default_rng(seed).multinomial(sum(new), pi), (seed, 1), distance)[0]
        new_rows = NewRows.of(calibration.likelihoods(truth(X, distance=distance)))
        found = maximum_likelihood(new_rows.table, new_rows.counts, pseudo=1 / 3)
        low += label_shift_p_value(calibration, new_rows, found) < 0.05
    return low / redraws


# Classes of which few rows are held out, alone among the new rows; and classes that hardly overlap,
# so that held-out rows show none in between.
LEVELS = [
    ([54, 28, 18], [0, 0, 400], 1.0),
    ([54, 28, 18], [400, 0, 0], 2.5),
    ([54, 28, 18], [240, 100, 60], 2.5),
    ([540, 280, 180], [0, 0, 2_000], 2.0),
]


@pytest.mark.parametrize(("held_out", "new", "distance"), LEVELS)
def test_the_test_keeps_its_level_with_few_rows_of_a_class(held_out, new, distance):
    # 60 redraws of a right test have more than 8 below 5% with a probability of 0.3%.
    assert rejected(held_out, new, distance, 60) * 60 <= 8


@pytest.mark.slow
def test_the_test_keeps_its_level():
    assert rejected([200, 150, 150], [10, 50, 40], 1.0, 300) <= 0.09


def test_the_monitor_is_quiet_until_frequencies_change():
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    monitor = PriorMonitor(calibration, MODEL)
    for seed in range(20):
        monitor.update(rows([25, 15, 10], (1, seed))[0])
    assert not monitor.alarm
    for seed in range(20):
        monitor.update(rows([15, 15, 20], (2, seed))[0])
    assert monitor.alarm and monitor.alarm_at > 1000
    assert len(monitor.to_dict()["rows"]) == 40
    assert monitor.estimate().lower["c"] > 0.3


def test_a_monitor_needs_rows():
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    monitor = PriorMonitor(calibration, MODEL)
    with pytest.raises(InvalidInputError, match="has seen no batch"):
        monitor.estimate()
    with pytest.raises(InvalidInputError, match="at least one row, got none"):
        monitor.update(NEW[0][:0])
    assert not monitor.history


def test_probabilities_are_streamed():
    array = pytest.importorskip("dask.array")
    table = MODEL.predict_proba(NEW[0])
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    whole = estimate_prior(table, calibration=calibration)
    chunks = from_blocks([(table[:150],), (table[150:],)])
    for streamed in (chunks, array.from_array(table, chunks=(150, 3))):
        estimate = estimate_prior(streamed, calibration=calibration)
        np.testing.assert_allclose(estimate.samples, whole.samples)


def test_a_monitor_is_for_the_classes_of_its_model():
    other = LogisticRegression().fit(TRAINING[0], TRAINING[1] == "a")
    with pytest.raises(InvalidInputError, match="classes of the model, False, True, got 'a', 'b'"):
        PriorMonitor(calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0])), other)
    with pytest.raises(
        InvalidParameterError, match=r"calibration must be .*got LogisticRegression"
    ):
        PriorMonitor(MODEL)


def test_representations_are_a_line():
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    assert "'a', 'b', 'c'" in repr(calibration) and "1,000 held-out rows" in repr(calibration)
    monitor = PriorMonitor(calibration, MODEL)
    assert "no alarm" in repr(monitor) and "400 rows" in repr(monitor.update(NEW[0]))


@pytest.mark.parametrize("risk", [-0.1, 1.5, np.nan])
def test_class_risks_are_shares(risk):
    estimate = estimate_prior(MODEL, NEW[0], held_out=HELD_OUT)
    with pytest.raises(InvalidParameterError, match=r"class_risks must be in \[0, 1\].*class 'b'"):
        estimate.overall_error([0.1, risk, 0.2], rows=[9, 9, 9])


def test_a_regressor_is_not_a_classifier():
    model = LinearRegression().fit(TRAINING[0], TRAINING[0][:, 0])
    with pytest.raises(InvalidParameterError, match="fitted classifier, got LinearRegression"):
        estimate_prior(model, NEW[0], held_out=HELD_OUT)


def test_predictions_for_probabilities_cannot_be_tested():
    X, y = rows([15_000, 9_000, 6_000], 4)
    estimate = estimate_prior(
        np.eye(3)[truth(NEW[0]).argmax(axis=1)], held_out=(np.eye(3)[truth(X).argmax(axis=1)], y)
    )
    assert np.isnan(estimate.p_value) and "cannot be tested" in estimate.verdict


def test_rows_that_the_model_was_trained_on_are_suspected():
    forest = RandomForestClassifier(50, random_state=0).fit(*TRAINING)
    estimate = estimate_prior(forest, NEW[0], held_out=TRAINING)
    assert "trained on the held-out rows" in estimate.verdict


WRONG = [
    ({"X_new": NEW[0][:0], "held_out": HELD_OUT}, InvalidInputError, "at least 2 rows, got 0"),
    ({"X_new": NEW[0][:1], "held_out": HELD_OUT}, InvalidInputError, "at least 2 rows, got 1"),
    ({"X_new": NEW[0]}, InvalidInputError, "held_out must be a tuple"),
    ({"held_out": HELD_OUT}, InvalidInputError, "X_new must be given"),
    (
        {"X_new": NEW[0], "held_out": HELD_OUT, "method": "x"},
        InvalidParameterError,
        "method must be",
    ),
    (
        {"X_new": NEW[0], "held_out": HELD_OUT, "prior_strength": 0},
        InvalidParameterError,
        "prior_strength must be",
    ),
    (
        {"X_new": NEW[0], "held_out": rows([50, 50, 0], 1)},
        InvalidInputError,
        "rows of every class, got none of",
    ),
    (
        {"X_new": NEW[0], "calibration": calibrate([0, 1] * 9, [0.1, 0.8] * 9)},
        InvalidInputError,
        "calibration must be for the classes",
    ),
]


@pytest.mark.parametrize(("given", "error", "text"), WRONG, ids=[each[2] for each in WRONG])
def test_wrong_input_is_named(given, error, text):
    with pytest.raises(error, match=text):
        estimate_prior(MODEL, **given)


def test_probabilities_of_other_classes_are_refused():
    calibration = calibrate(HELD_OUT[1], MODEL.predict_proba(HELD_OUT[0]))
    with pytest.raises(InvalidInputError, match="one column for each of the 3 classes"):
        estimate_prior(np.full((5, 2), 0.5), calibration=calibration)


def test_classes_that_look_alike_are_named():
    X, y = HELD_OUT
    table = truth(X)
    table[:, 1:] = table[:, 1:].mean(axis=1, keepdims=True)
    with pytest.raises(UnidentifiableError, match="classes 'b', 'c' apart"):
        estimate_prior(table, held_out=(table, y))


def test_a_model_that_is_not_calibrated_warns():
    X, y = HELD_OUT
    sharp = truth(X) ** 4 / (truth(X) ** 4).sum(axis=1, keepdims=True)
    with pytest.warns(EquipoiseWarning, match="not calibrated.*log loss is"):
        estimate_prior(sharp, held_out=(sharp, y), calibration=None)
