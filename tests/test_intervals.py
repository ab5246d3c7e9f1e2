"""Confidence intervals: values from scipy, inversion of the tails, and coverage by simulation."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.exceptions import ClassMismatchError, InvalidParameterError
from equipoise.risks import class_risk_intervals, class_risks
from equipoise.risks.intervals import sidak


def rows_with(errors, counts):
    """Labels and predictions with so many errors in each class."""
    truth = np.repeat(np.arange(len(counts)), counts)
    wrong = np.concatenate([np.arange(n) < e for e, n in zip(errors, counts, strict=True)])
    return truth, np.where(wrong, -1, truth)


@st.composite
def error_counts(draw):
    counts = draw(st.lists(st.integers(1, 60), min_size=1, max_size=4))
    return [draw(st.integers(0, n)) for n in counts], counts


# The exact binomial interval


@settings(max_examples=60)
@given(table=error_counts(), confidence=st.sampled_from([0.5, 0.9, 0.999]))
def test_exact_intervals_are_those_of_scipy(table, confidence):
    errors, counts = table
    names = list(range(len(counts)))
    rows = rows_with(errors, counts)
    found = class_risk_intervals(*rows, confidence=confidence, classes=names)
    assert found.method == "exact (Clopper-Pearson)"
    assert not found.approximate
    for name, interval in found.items():
        reference = stats.binomtest(errors[name], counts[name]).proportion_ci(confidence)
        assert interval.lower == pytest.approx(reference.low, abs=1e-10)
        assert interval.upper == pytest.approx(reference.high, abs=1e-10)
        assert interval.estimate == errors[name] / counts[name]
        assert interval.estimate in interval


def test_simultaneous_intervals_are_wider_by_sidak():
    rows = rows_with([1, 5, 0], [20, 30, 40])
    together = class_risk_intervals(*rows, simultaneous=True)
    each = class_risk_intervals(*rows, confidence=0.95 ** (1 / 3))
    np.testing.assert_allclose(np.asarray(together.lower), np.asarray(each.lower), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(together.upper), np.asarray(each.upper), rtol=1e-9)
    assert together[0].upper > class_risk_intervals(*rows)[0].upper


def test_sidak_is_a_product():
    assert (1 - sidak(0.05, 7)) ** 7 == pytest.approx(0.95)
    assert sidak(1e-12, 4) == pytest.approx(2.5e-13)


def test_the_worst_class_interval_by_its_definition():
    errors, counts = [2, 30, 1], [40, 100, 4]
    found = class_risk_intervals(*rows_with(errors, counts), confidence=0.9).worst()
    upper = [stats.beta.ppf(0.95, e + 1, n - e) for e, n in zip(errors, counts, strict=True)]
    tail = 1 - 0.95 ** (1 / 3)
    lower = [stats.beta.ppf(tail, e, n - e + 1) for e, n in zip(errors, counts, strict=True)]
    assert found.upper == pytest.approx(max(upper))
    assert found.lower == pytest.approx(max(lower))
    # The upper end belongs to the class of four rows, the estimate to that of a hundred.
    assert found.estimate == 0.3
    assert np.argmax(upper) == 2


@settings(max_examples=40)
@given(table=error_counts())
def test_the_worst_class_interval_against_the_simultaneous_ones(table):
    rows = rows_with(*table)
    names = np.unique(rows[0])
    worst = class_risk_intervals(*rows, classes=names).worst()
    together = class_risk_intervals(*rows, classes=names, simultaneous=True)
    assert together.worst() == worst
    # The upper end needs no correction. The lower end has tail 1 - (1 - d/2)^(1/k), here and there
    # a little smaller than the (1 - (1 - d)^(1/k))/2 of the simultaneous intervals.
    assert worst.upper <= together.upper.max() + 1e-12
    assert worst.lower == pytest.approx(together.lower.max(), abs=5e-3)
    assert worst.lower <= worst.estimate <= worst.upper


# Coverage by simulation: a true coverage four points below nominal would fail

REPEATS = 2000
RISKS = np.array([0.05, 0.3, 0.34])
COUNTS = np.array([60, 25, 12])


def binomial_tables():
    return np.random.default_rng(0).binomial(COUNTS, RISKS, size=(REPEATS, 3))


def least_hits(confidence):
    """With coverage at its nominal value, fewer hits than this have probability 1e-4."""
    return stats.binom.ppf(1e-4, REPEATS, confidence)


def test_coverage_of_exact_intervals():
    alone, together, worst = np.zeros(3), 0, 0
    for errors in binomial_tables():
        rows = rows_with(errors, COUNTS)
        each = class_risk_intervals(*rows, confidence=0.8)
        alone += [risk in each[name] for name, risk in enumerate(RISKS)]
        joint = class_risk_intervals(*rows, confidence=0.8, simultaneous=True)
        together += all(risk in joint[name] for name, risk in enumerate(RISKS))
        worst += RISKS.max() in each.worst()
    assert alone.min() >= least_hits(0.8)
    assert together >= least_hits(0.8)
    assert worst >= least_hits(0.8)
    # Without Sidak's correction they would not all cover: the simulation can tell.
    assert np.prod(alone / REPEATS) * REPEATS < least_hits(0.8)


def test_coverage_of_margin_intervals_is_guaranteed():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(REPEATS // 4):
        # Margin loss 1 - U with U uniform: its mean is one half.
        truth = np.repeat([0, 1], 30)
        decision = np.where(truth == 1, 1, -1) * rng.random(60)
        hits += 0.5 in class_risk_intervals(truth, decision, loss="margin", confidence=0.8)[1]
    assert hits >= stats.binom.ppf(1e-4, REPEATS // 4, 0.8)


def test_coverage_of_margin_intervals_in_the_worst_case():
    # Two-valued margin losses are the least favourable ones: coins of 0 and 1.
    rng, hits, repeats = np.random.default_rng(3), 0, 1000
    truth = np.repeat([0, 1], 30)
    for _ in range(repeats):
        decision = np.where(rng.random(60) < 0.1, -2.0, 2.0) * np.where(truth == 1, 1, -1)
        hits += 0.1 in class_risk_intervals(truth, decision, loss="margin", confidence=0.8)[1]
    assert stats.binom.ppf(1e-4, repeats, 0.8) <= hits < repeats


@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
def test_coverage_of_approximate_intervals_with_many_rows(loss):
    rng, hits, repeats = np.random.default_rng(2), 0, 600
    truth, weights = np.repeat([0, 1], 400), rng.gamma(2.0, size=800)
    for _ in range(repeats):
        wrong = rng.random(800) < 0.2
        proba = np.where(wrong ^ (truth == 1), 0.9, 0.1)
        prediction = np.where(wrong, 1 - truth, truth) if loss == "zero_one" else proba
        found = class_risk_intervals(
            truth, prediction, loss=loss, sample_weight=weights, confidence=0.9
        )
        risk = 0.2 if loss == "zero_one" else -0.8 * np.log(0.9) - 0.2 * np.log(0.1)
        hits += risk in found[0]
    assert found.approximate
    assert found.method.startswith("approximate")
    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], repeats, [0.87, 0.96])
    assert low <= hits <= high


# Other losses


@settings(max_examples=40)
@given(
    mean=st.floats(0.001, 0.999), n=st.integers(1, 200), tail=st.sampled_from([0.2, 0.025, 1e-4])
)
def test_chernoff_bounds_invert_the_divergence(mean, n, tail):
    truth, decision = np.repeat([0, 1], n), np.r_[np.full(n, -2.0), np.full(n, 1 - mean)]
    found = class_risk_intervals(truth, decision, loss="margin", confidence=1 - 2 * tail)[1]
    assert found.method == "guaranteed (Chernoff-Hoeffding)"
    assert not found.approximate
    assert found.lower < mean < found.upper
    for end in (found.lower, found.upper):
        if min(end, 1 - end) < 1e-9:
            # Beyond the resolution of the bisection, where it errs on the safe side.
            continue
        divergence = mean * np.log(mean / end) + (1 - mean) * np.log((1 - mean) / (1 - end))
        assert n * divergence == pytest.approx(-np.log(tail), rel=1e-6)


def test_chernoff_bounds_err_on_the_safe_side():
    # The bound is exp(-56), far below what sixty halvings can tell from zero.
    found = class_risk_intervals([0, 1], [-2.0, 1 - 0.03125], loss="margin", confidence=0.6)
    assert found[1].lower < np.exp(-56)


def test_chernoff_bounds_at_the_ends():
    truth, decision = np.repeat([0, 1], 10), np.full(20, 2.0)
    found = class_risk_intervals(truth, decision, loss="margin", confidence=0.9)
    assert found[1].lower == 0.0
    assert found[1].upper == pytest.approx(1 - 0.05**0.1)
    assert found[0].upper == 1.0
    assert found[0].lower == pytest.approx(0.05**0.1)


def test_student_intervals_are_those_of_scipy():
    rng = np.random.default_rng(0)
    truth, f = np.repeat([0, 1], [15, 40]), rng.normal(size=55)
    found = class_risk_intervals(truth, f, loss="hinge")
    assert found.approximate
    assert found.method == "approximate (Student t)"
    losses = np.maximum(0, 1 - f[truth == 1])
    low, high = stats.t.interval(0.95, 39, losses.mean(), stats.sem(losses))
    assert (found[1].lower, found[1].upper) == pytest.approx((low, high))


def test_one_row_says_nothing_about_an_unbounded_loss():
    found = class_risk_intervals([0, 1, 1], [0.5, 0.5, 2.0], loss="hinge")
    assert (found[0].lower, found[0].upper) == (0.0, np.inf)
    assert np.isfinite(found[1].upper)
    assert found.worst().upper == np.inf


# Sample weights


def test_weights_that_are_constant_within_classes_change_nothing():
    rows = rows_with([1, 5], [7, 30])
    weights = np.where(rows[0] == 0, 0.1, 3.7)
    plain = class_risk_intervals(*rows)
    weighted = class_risk_intervals(*rows, sample_weight=weights)
    assert not weighted.approximate
    np.testing.assert_allclose(np.asarray(weighted.lower), np.asarray(plain.lower), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(weighted.upper), np.asarray(plain.upper), rtol=1e-9)


def test_rows_without_weight_do_not_count():
    truth, guess = rows_with([1, 5], [7, 30])
    padded = np.r_[truth, np.zeros(100, int)], np.r_[guess, np.zeros(100, int)]
    weights = np.r_[np.ones(37), np.zeros(100)]
    found = class_risk_intervals(*padded, sample_weight=weights)
    assert not found.approximate
    assert found[0].upper == pytest.approx(class_risk_intervals(truth, guess)[0].upper)


def test_uneven_weights_are_counted_by_kish_and_said_to_be_approximate():
    truth, guess = np.zeros(4, int), np.array([0, 0, 0, 1])
    found = class_risk_intervals(truth, guess, sample_weight=[1, 1, 1, 3], confidence=0.9)
    assert found.method == "approximate (Clopper-Pearson, effective counts)"
    assert found.approximate
    # Six squared over twelve: three rows, of which one half are errors.
    assert found[0].upper == pytest.approx(stats.beta.ppf(0.95, 2.5, 1.5))
    assert found[0].lower == pytest.approx(stats.beta.ppf(0.05, 1.5, 2.5))
    assert found[0].approximate
    assert class_risk_intervals(truth, guess, sample_weight=[1, 1, 1, 3]).worst().approximate


@pytest.mark.parametrize("loss", ["zero_one", "margin", "hinge"])
def test_the_scale_of_the_weights_does_not_matter(loss):
    rng = np.random.default_rng(0)
    truth, weights = rng.integers(0, 2, 60), rng.random(60)
    prediction = rng.integers(0, 2, 60) if loss == "zero_one" else rng.normal(size=60)
    small, large = (
        class_risk_intervals(truth, prediction, loss=loss, sample_weight=scale * weights)
        for scale in (1e-200, 1e200)
    )
    np.testing.assert_allclose(np.asarray(small.upper), np.asarray(large.upper), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(small.lower), np.asarray(large.lower), rtol=1e-9)


def test_estimates_are_the_class_risks():
    rng = np.random.default_rng(0)
    truth, f, weights = rng.integers(0, 2, 60), rng.normal(size=60), rng.random(60)
    options = {"loss": "margin", "sample_weight": weights}
    risks = class_risks(truth, f, **options)
    found = class_risk_intervals(truth, f, **options)
    assert found.risks == risks.risks and found.worst().estimate == risks.worst()


# Form and errors


def test_intervals_print_as_a_table():
    found = class_risk_intervals(*rows_with([0, 1], [3, 4]), simultaneous=True)
    lines = repr(found).splitlines()
    assert lines[0] == "confidence 0.95, simultaneous, exact (Clopper-Pearson)"
    assert lines[1].split() == ["class", "risk", "lower", "upper"]
    assert len(lines) == 4 and lines[2].split()[1] == "0%"
    assert "<caption>confidence 0.95, simultaneous" in found._repr_html_()
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.worst() == found.worst()


def test_string_labels_name_the_intervals():
    found = class_risk_intervals(["no", "yes"], ["no", "no"])
    assert list(found) == ["no", "yes"]
    assert found["yes"].upper == 1.0


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("bad", [0, 1, 95, -0.1, float("nan")])
def test_confidence_must_be_a_probability(simultaneous, bad):
    with pytest.raises(InvalidParameterError, match=r"must be a number in \(0, 1\), got"):
        class_risk_intervals([0, 1], [0, 1], confidence=bad, simultaneous=simultaneous)


@pytest.mark.parametrize("simultaneous", [False, True])
def test_a_class_without_rows_has_no_interval(simultaneous):
    with pytest.raises(ClassMismatchError, match=r"\[2\] has none"):
        class_risk_intervals([0, 1], [0, 1], classes=[0, 1, 2], simultaneous=simultaneous)


def test_a_frame_has_a_line_for_each_class():
    pytest.importorskip("pandas")
    truth, guess = rows_with([1, 3], [10, 4])
    found = class_risk_intervals(truth, guess)
    frame = found.to_frame()
    assert list(frame.columns) == ["class", "risk", "lower", "upper", "recall"]
    for name, *ends, recall in frame.itertuples(index=False):
        assert (*ends,) == (found[name].estimate, found[name].lower, found[name].upper)
        assert recall == class_risks(truth, guess).recall()[name]
    entropies = class_risk_intervals(truth, np.full(14, 0.4), loss="cross_entropy")
    assert "recall" not in entropies.to_frame()
