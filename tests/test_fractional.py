"""Linear-fractional metrics and their best thresholds: by brute force and by scikit-learn."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.metrics import (
    METRICS,
    Coefficients,
    LinearFractional,
    arithmetic_mean,
    as_metric,
    best_threshold,
    fbeta,
    optimal_rule,
    weighted_accuracy,
)

# Each metric for a share of positives, and scikit-learn's function of the same name.
REFERENCES = {
    "accuracy": (lambda share: METRICS["accuracy"], sk.accuracy_score),
    "f1": (lambda share: fbeta(1), sk.f1_score),
    "f2": (lambda share: fbeta(2), lambda *a, **k: sk.fbeta_score(*a, beta=2, **k)),
    "f0.5": (lambda share: fbeta(0.5), lambda *a, **k: sk.fbeta_score(*a, beta=0.5, **k)),
    "jaccard": (lambda share: METRICS["jaccard"], sk.jaccard_score),
    "balanced": (arithmetic_mean, sk.balanced_accuracy_score),
    "recall": (lambda share: LinearFractional({"tp": 1}, {"tp": 1, "fn": 1}), sk.recall_score),
    "equal weights": (lambda share: weighted_accuracy(1, 1), sk.accuracy_score),
}

FLIPPED = LinearFractional({"fp": 1, "fn": 1}, {"constant": 1}, name="error rate")
PRECISION = LinearFractional({"tp": 1}, {"tp": 1, "fp": 1}, name="precision")
SHARE_DECIDED = LinearFractional({"tp": 1, "fp": 1}, {"constant": 1}, name="share decided")

each_reference = pytest.mark.parametrize("name", REFERENCES)

coefficient = st.integers(-4, 4)


@st.composite
def fractionals(draw):
    """Any coefficients; the caller looks at the denominator."""
    numbers = st.lists(coefficient, min_size=5, max_size=5)
    denominator = draw(numbers)
    assume(any(denominator))
    return LinearFractional(draw(numbers), denominator)


@st.composite
def defined_fractionals(draw):
    """Coefficients whose denominator is above 0, or below 0, whatever is decided."""
    metric = draw(fractionals())
    cells, rest = metric.denominator[1:], abs(min(metric.denominator[1:]))
    lifted = Coefficients(rest + draw(st.sampled_from([0.5, 1, 3])), *cells)
    sign = draw(st.sampled_from([-1, 1]))
    return LinearFractional(*([sign * v for v in part] for part in (metric.numerator, lifted)))


@st.composite
def rewarding_fractionals(draw):
    """Metrics that right decisions raise, or at least do not lower."""
    tp, tn, constant, hit, clear = (draw(st.integers(0, 4)) for _ in range(5))
    miss, alarm = hit + draw(st.integers(0, 3)), clear + draw(st.integers(0, 3))
    denominator = {"tp": hit, "fn": miss, "tn": clear, "fp": alarm, "constant": constant + 1}
    ours = LinearFractional({"tp": tp, "tn": tn}, denominator)
    return draw(st.sampled_from([ours, ours, fbeta(0.5), fbeta(2), METRICS["jaccard"]]))


@st.composite
def labelled_scores(draw):
    """A few rows of both classes with many ties, and integer weights."""
    n = draw(st.integers(2, 25))
    scores = draw(arrays(np.float64, n, elements=st.integers(-3, 6))) / 4
    positive = draw(arrays(np.bool_, n))
    weights = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    assume(0 < weights[positive].sum() < weights.sum())
    return scores, positive, weights


@st.composite
def regression_functions(draw):
    """Known probabilities of at most eight points, some tied, and their masses."""
    n = draw(st.integers(1, 8))
    eta = draw(arrays(np.float64, n, elements=st.integers(0, 12))) / 12
    masses = draw(arrays(np.float64, n, elements=st.integers(1, 5)))
    return eta, masses / masses.sum()


def table_of(decided, positive, weights):
    return [
        [(weights * (1 - positive) * ~decided).sum(), (weights * (1 - positive) * decided).sum()],
        [(weights * positive * ~decided).sum(), (weights * positive * decided).sum()],
    ]


def by_hand(metric, table):
    (tn, fp), (fn, tp) = np.asarray(table) / np.sum(table)
    cells = np.array([1, tp, fp, fn, tn])
    return cells @ metric.numerator / (cells @ metric.denominator)


def best_of_all_thresholds(scores, positive, weights, metric):
    thresholds = [-np.inf, *scores]
    return max(by_hand(metric, table_of(scores > t, positive, weights)) for t in thresholds)


# Values


@each_reference
@settings(max_examples=20)
@given(rows=labelled_scores(), cut=st.integers(-4, 7))
def test_values_are_those_of_scikit_learn(name, rows, cut):
    scores, positive, weights = rows
    decided = scores > cut / 4
    make, reference = REFERENCES[name]
    metric = make(weights[positive].sum() / weights.sum())
    expected = reference(positive, decided, sample_weight=weights)
    assert metric.score(positive, decided, sample_weight=weights) == pytest.approx(expected)
    assert metric.value(table_of(decided, positive, weights)) == pytest.approx(expected)


def test_precision_from_its_coefficients():
    true, decided = [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]
    assert PRECISION.score(true, decided) == sk.precision_score(true, decided)


def test_fbeta_is_the_weighted_harmonic_mean():
    true, decided = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 1, 1, 1, 0])
    precision, recall = sk.precision_score(true, decided), sk.recall_score(true, decided)
    expected = 1 / (0.3 / precision + 0.7 / recall)
    assert fbeta(np.sqrt(0.7 / 0.3)).score(true, decided) == pytest.approx(expected)


def test_weighted_accuracy_is_one_minus_the_weighted_risk():
    from equipoise.risks import class_risks

    true, decided = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 0])
    risk = class_risks(true, decided).weighted([2, 7])
    assert weighted_accuracy(2, 7).score(true, decided) == pytest.approx(1 - risk)


def test_the_positive_label_can_be_named():
    true, decided = ["ham", "ham", "spam"], ["ham", "spam", "spam"]
    assert fbeta().score(true, decided) == pytest.approx(
        sk.f1_score(true, decided, pos_label="spam")
    )
    expected = sk.f1_score(true, decided, pos_label="ham")
    assert fbeta().score(true, decided, pos_label="ham") == pytest.approx(expected)
    assert METRICS["accuracy"].score(["ham"], ["ham"], pos_label="spam") == 1
    true, decided = [0, 1, 2, 2, 1], [0, 2, 2, 2, 1]
    for label in range(3):
        expected = sk.f1_score(true, decided, labels=[label], average="macro")
        assert fbeta().score(true, decided, pos_label=label) == pytest.approx(expected)


@given(metric=defined_fractionals(), cells=arrays(np.int64, (2, 2), elements=st.integers(0, 9)))
def test_a_table_may_hold_counts_or_shares(metric, cells):
    assume(cells.sum() > 0)
    expected = by_hand(metric, cells)
    assert metric.value(cells) == pytest.approx(expected, abs=1e-12)
    assert metric.value(cells / cells.sum()) == pytest.approx(expected, abs=1e-12)


def test_constants_count_once_and_not_per_row():
    metric = LinearFractional({"constant": 1, "tp": 1}, {"constant": 2})
    assert metric.value([[5, 0], [0, 5]]) == metric.value([[0.5, 0], [0, 0.5]]) == 0.75


@given(metric=defined_fractionals(), share=st.integers(0, 10))
def test_a_metric_can_flip_if_it_does_for_some_table(metric, share):
    positives = share / 10
    lattice = np.linspace(0, 1, 5)
    values = [
        metric.ratio(positives * a, (1 - positives) * b, positives, 1 - positives)
        for a, b in itertools.product(lattice, lattice)
    ]
    above = [metric.weighting(float(value), positives).above for value in values]
    assert metric.can_flip(positives) == (not all(above))


# The best threshold


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_no_threshold_is_better(rows, metric):
    scores, positive, weights = rows
    best = best_threshold(scores, positive, weights, metric)
    expected = best_of_all_thresholds(scores, positive, weights, metric)
    assert best.value == pytest.approx(expected, abs=1e-12)
    attained = by_hand(metric, table_of(best.decide(scores), positive, weights))
    assert attained == pytest.approx(best.value, abs=1e-12)
    np.testing.assert_allclose(best.table, table_of(best.decide(scores), positive, weights))


@each_reference
@settings(max_examples=20)
@given(rows=labelled_scores())
def test_no_threshold_is_better_by_scikit_learn(name, rows):
    scores, positive, _ = rows
    assume(0 < positive.sum() < len(positive))
    make, reference = REFERENCES[name]
    best = best_threshold(scores, positive, metric=make)
    thresholds = [-np.inf, *np.unique(scores)]
    expected = max(reference(positive, scores > t) for t in thresholds)
    assert best.value == pytest.approx(expected)
    assert reference(positive, best.decide(scores)) == pytest.approx(expected)


@pytest.mark.parametrize("beta", [0.5, 1, 2])
@pytest.mark.parametrize("digits", [2, 16])
def test_f_beta_is_the_best_of_the_precision_recall_curve(beta, digits):
    rng = np.random.default_rng()
    positive = rng.random(5000) < 0.1
    scores = (rng.normal(size=5000) + positive).round(digits)
    weights = rng.random(5000)
    precision, recall, _ = sk.precision_recall_curve(positive, scores, sample_weight=weights)
    square = beta**2
    with np.errstate(invalid="ignore"):
        curve = (1 + square) * precision * recall / (square * precision + recall)
    best = best_threshold(scores, positive, weights, fbeta(beta))
    assert best.value == pytest.approx(np.nanmax(curve), rel=1e-12)


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_equal_scores_are_never_parted(rows, metric):
    scores, positive, weights = rows
    best = best_threshold(scores, positive, weights, metric)
    assert best.lower <= best.threshold
    assert best.threshold < best.upper or best.threshold == np.inf
    used = scores[weights > 0]
    assert not np.any((used > best.lower) & (used < best.upper))


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_weights_are_repetitions(rows, metric):
    scores, positive, weights = rows
    weighted = best_threshold(scores, positive, weights, metric)
    repeated = best_threshold(scores.repeat(weights), positive.repeat(weights), metric=metric)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    np.testing.assert_allclose(weighted.table, repeated.table)
    assert weighted.threshold == repeated.threshold


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_only_the_order_of_the_scores_matters(rows, metric):
    scores, positive, weights = rows
    plain = best_threshold(scores, positive, weights, metric)
    bent = best_threshold(np.exp(3 * scores), positive, weights, metric)
    assert plain.value == bent.value
    # Rows without weight are not searched, and may fall on either side.
    used = scores[weights > 0]
    np.testing.assert_array_equal(plain.decide(used), bent.decide(np.exp(3 * used)))


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_labels_are_probabilities_of_zero_and_one(rows, metric):
    scores, positive, weights = rows
    plain = best_threshold(scores, positive, weights, metric)
    for kind in (np.int64, np.float32):
        assert best_threshold(scores, positive.astype(kind), weights, metric).value == plain.value


def test_of_several_best_thresholds_it_is_the_lowest():
    best = best_threshold([1, 2, 3, 4], [True, False, True, False], metric="balanced_accuracy")
    assert best.value == 0.5 and best.threshold == -np.inf


def test_the_threshold_stands_in_the_middle():
    best = best_threshold([0.0, 1.0, 5.0, 6.0], [0, 0, 1, 1])
    assert (best.threshold, best.lower, best.upper, best.value) == (3.0, 1.0, 5.0, 1.0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_neighbouring_numbers_are_parted(kind):
    low = kind(0.7)
    scores = np.array([low, np.nextafter(low, kind(1))])
    best = best_threshold(scores, [False, True])
    assert best.value == 1
    # Compared in the precision of the scores, as NumPy does with a Python number.
    assert (scores > best.threshold).tolist() == [False, True] == best.decide(scores).tolist()


def test_single_precision_thresholds_survive_single_precision():
    rng = np.random.default_rng()
    positive = rng.random(500) < 0.4
    scores = (rng.random(500) + positive).astype(np.float32) / np.float32(2)
    best = best_threshold(scores, positive)
    np.testing.assert_array_equal(scores > np.float32(best.threshold), best.decide(scores))


def test_huge_scores_do_not_overflow():
    best = best_threshold([-1.7e308, 1.7e308], [False, True])
    assert best.threshold == 0 and best.value == 1


# The domain of thresholds


@given(rows=labelled_scores(), metric=defined_fractionals())
def test_the_domain_bounds_the_threshold(rows, metric):
    scores, positive, weights = rows
    best = best_threshold(scores, positive, weights, metric, domain=(0, 1))
    assert 0 <= best.lower <= best.threshold < best.upper <= 1
    inside = [0.0, *scores[(scores >= 0) & (scores < 1)]]
    expected = max(by_hand(metric, table_of(scores > t, positive, weights)) for t in inside)
    assert best.value == pytest.approx(expected, abs=1e-12)


def test_a_domain_without_scores_leaves_one_decision():
    best = best_threshold([-1.0, 2.0], [True, True], domain=(0, 1))
    assert best.table.tolist() == [[0, 0], [1, 1]]


# Known probabilities


@settings(max_examples=100)
@given(points=regression_functions(), metric=defined_fractionals())
def test_no_decision_rule_at_all_is_better(points, metric):
    eta, masses = points
    rule = optimal_rule(eta, metric, masses)
    subsets = itertools.product([False, True], repeat=len(eta))
    values = [by_hand(metric, table_of(np.array(s), eta, masses)) for s in subsets]
    assert rule.value == pytest.approx(max(values), abs=1e-12)
    attained = by_hand(metric, table_of(rule.decide(eta), eta, masses))
    assert attained == pytest.approx(rule.value, abs=1e-12)


@settings(max_examples=100)
@given(points=regression_functions(), metric=defined_fractionals())
def test_koyejos_threshold_parts_what_is_decided_from_what_is_not(points, metric):
    eta, masses = points
    rule = optimal_rule(eta, metric, masses)
    delta, decided = rule.weighting.threshold, rule.decide(eta)
    assume(not np.isnan(delta))
    slack = 1e-9 * max(1, abs(delta)) if np.isfinite(delta) else 0
    # With a slope of 0 either side says the same: everybody, or nobody.
    if rule.weighting.above:
        inside, outside = eta > delta + slack, eta < delta - slack
    else:
        inside, outside = eta < delta - slack, eta > delta + slack
    assert decided[inside].all() and not decided[outside].any()


@settings(max_examples=100)
@given(points=regression_functions(), metric=rewarding_fractionals())
def test_equivalent_weights_have_the_optimal_rule_as_their_bayes_rule(points, metric):
    eta, masses = points
    assume(eta.max() > 0 and eta.min() < 1)
    rule = optimal_rule(eta, metric, masses)
    assert rule.weighting.is_weighting
    share, (q0, q1) = rule.positive_share, rule.weighting.weights
    # A metric that nothing but constants moves weighs nothing.
    assert (1 - share) * q0 + share * q1 == pytest.approx(1) or max(q0, q1) == 0

    def weighted_risk(decided):
        (_, fp), (fn, _) = table_of(decided, eta, masses)
        return q0 * fp + q1 * fn

    subsets = itertools.product([False, True], repeat=len(eta))
    lowest = min(weighted_risk(np.array(s)) for s in subsets)
    assert weighted_risk(rule.decide(eta)) == pytest.approx(lowest, abs=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1, 3])
def test_the_threshold_of_f_beta_is_a_known_multiple_of_its_optimum(beta):
    eta = np.random.default_rng().beta(1, 4, size=20_000)
    rule = optimal_rule(eta, fbeta(beta))
    assert rule.weighting.threshold == pytest.approx(rule.value / (1 + beta**2))
    assert rule.lower <= rule.weighting.threshold <= rule.upper


def test_the_threshold_of_accuracy_is_a_half_and_of_balanced_accuracy_the_share():
    eta = np.random.default_rng().beta(1, 4, size=20_000)
    assert optimal_rule(eta, "accuracy").weighting.threshold == pytest.approx(0.5)
    balanced = optimal_rule(eta, "balanced_accuracy")
    assert balanced.weighting.threshold == pytest.approx(eta.mean())
    p1 = eta.mean()
    assert balanced.weighting.weights == pytest.approx((0.5 / (1 - p1), 0.5 / p1))


def test_the_f1_optimum_of_a_uniform_regression_function_is_known():
    # With eta uniform, F1 of {eta > t} is 2 (1 - t^2) / (3 - 2 t), largest at t = (3 - sqrt 5) / 2.
    eta = (np.arange(100_000) + 0.5) / 100_000
    golden = (3 - np.sqrt(5)) / 2
    rule = optimal_rule(eta)
    assert rule.value == pytest.approx(2 * golden, abs=1e-8)
    assert rule.threshold == pytest.approx(golden, abs=1e-4)


# Rules that flip, and weights that are none


def test_the_error_rate_is_largest_for_the_flipped_rule():
    eta = np.array([0.1, 0.3, 0.6, 0.8])
    rule = optimal_rule(eta, FLIPPED)
    assert not rule.above and not rule.weighting.above and not rule.weighting.is_weighting
    assert rule.decide(eta).tolist() == [True, True, False, False]
    assert rule.weighting.threshold == 0.5
    assert FLIPPED.can_flip(0.5) and not fbeta().can_flip(0.5)


def test_without_either_side_the_rule_stays_above_and_says_that_it_should_flip():
    eta = np.array([0.1, 0.3, 0.6, 0.8])
    best = best_threshold(eta, eta, metric=FLIPPED)
    assert best.above and not best.weighting.above
    assert best.value < optimal_rule(eta, FLIPPED).value


def test_deciding_everybody_or_nobody_is_a_negative_weight():
    everybody = optimal_rule([0.2, 0.7], SHARE_DECIDED)
    assert everybody.decide([0.2, 0.7]).all() and everybody.weighting.threshold == -np.inf
    assert min(everybody.weighting.weights) < 0 and not everybody.weighting.is_weighting
    nobody = optimal_rule([0.2, 0.7], LinearFractional({"fn": 1, "tn": 1}, {"constant": 1}))
    assert not nobody.decide([0.2, 0.7]).any() and nobody.weighting.threshold == np.inf


def test_a_metric_of_no_decision_says_so():
    constant = LinearFractional({"constant": 1}, {"constant": 2})
    weighting = constant.weighting(0.5, 0.3)
    assert np.isnan(weighting.threshold)


# Denominators


@settings(max_examples=200)
@given(metric=fractionals(), share=st.integers(0, 8))
def test_a_denominator_that_can_be_zero_is_refused_and_no_other(metric, share):
    positives = share / 8
    cells = itertools.product([0, positives], [0, 1 - positives])
    values = [
        np.dot(metric.denominator, [1, tp, fp, positives - tp, 1 - positives - fp])
        for tp, fp in cells
    ]
    if min(values) > 0 or max(values) < 0:
        lifted = metric.with_positive_denominator(positives)
        assert min(np.sign(max(values)) * np.array(values)) > 0
        table = [[(1 - positives) / 2] * 2, [positives / 2] * 2]
        assert lifted.value(table) == pytest.approx(metric.value(table))
    else:
        with pytest.raises(InvalidInputError, match="denominator is 0"):
            metric.with_positive_denominator(positives)


def test_precision_has_no_optimum():
    with pytest.raises(InvalidInputError, match=r"precision has no optimum.*no row is decided"):
        best_threshold([0.1, 0.9], [0, 1], metric=PRECISION)
    with pytest.raises(InvalidInputError, match=r"denominator of precision is 0 for the table"):
        PRECISION.value([[3, 0], [2, 0]])


@pytest.mark.parametrize("metric", ["f1", "jaccard"])
def test_without_positives_there_is_nothing_to_optimise(metric):
    with pytest.raises(InvalidInputError, match="no rows of the positive class"):
        best_threshold([0.1, 0.9], [0, 0], metric=metric)
    with pytest.raises(InvalidInputError, match="no rows of the positive class"):
        as_metric(metric, 0.0).value([[3, 0], [0, 0]])


@pytest.mark.parametrize("positive", [[0, 0], [1, 1]])
def test_balanced_accuracy_needs_both_classes(positive):
    with pytest.raises(InvalidInputError, match="rows of both classes"):
        best_threshold([0.1, 0.9], positive, metric="balanced_accuracy")


# What is refused, and what is not


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.1, 0.9]], [1]), "scores must be one number for each"),
        (([], []), "at least one row"),
        (([0.1, np.nan], [0, 1]), "finite, got nan in row 1"),
        (([0.1, np.inf], [0, 1]), "finite, got inf in row 1"),
        (([0.1, 0.2], [0, 1, 1]), "each of the 2 scores"),
        (([0.1, 0.2], ["no", "yes"]), "y == pos_label"),
        (([0.1, 0.2], [1, 2]), "between 0 and 1"),
        (([0.1, 0.2], [0.5, np.nan]), "between 0 and 1"),
        (([0.1, 0.2], [0, 1], [1, -1]), "sample_weight"),
        (([0.1, 0.2], [0, 1], [0, 0]), "at least one row"),
    ],
)
def test_rows_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        best_threshold(*arguments)


def test_a_domain_must_ascend():
    with pytest.raises(InvalidInputError, match="ascending"):
        best_threshold([0.1, 0.2], [0, 1], domain=(1, 0))


@pytest.mark.parametrize("metric", ["f3", None, 7])
def test_unknown_metrics_are_refused_with_the_known_ones(metric):
    with pytest.raises(InvalidParameterError, match=r"'accuracy', .* got"):
        best_threshold([0.1, 0.2], [0, 1], metric=metric)


@pytest.mark.parametrize(
    ("numerator", "denominator", "message"),
    [
        ([1, 2], [1, 0, 0, 0, 0], "numerator must be five finite numbers"),
        ({"tp": 1}, {"ttp": 1}, "denominator must be five finite numbers"),
        ({"tp": np.nan}, {"constant": 1}, "numerator must be five"),
        ({"tp": "a"}, {"constant": 1}, "numerator must be five"),
        ({"tp": 1}, {}, "coefficient other than 0"),
        (3, {"constant": 1}, "numerator must be five"),
    ],
)
def test_coefficients_are_checked(numerator, denominator, message):
    with pytest.raises(InvalidParameterError, match=message):
        LinearFractional(numerator, denominator)


@pytest.mark.parametrize(
    "table", [[1, 2], [[1, -1], [0, 1]], [[1, np.nan], [0, 1]], [[0, 0], [0, 0]]]
)
def test_tables_are_checked(table):
    with pytest.raises(InvalidInputError, match="table must"):
        METRICS["accuracy"].value(table)


@pytest.mark.parametrize(
    ("true", "decided", "options", "error", "message"),
    [
        ([0, 1, 2], [0, 1, 1], {}, ClassMismatchError, "two classes, got"),
        ([1, 1], [1, 1], {}, ClassMismatchError, "pos_label= names"),
        ([0, 1], [0, 1], {"pos_label": 2}, ClassMismatchError, "pos_label must be one of"),
        (["a", "b"], [0, 1], {}, ClassMismatchError, "same type"),
        ([0, 1], [0, 1, 1], {}, InvalidInputError, "each of the 2 rows"),
        ([0, 1], [0, 1], {"sample_weight": [1]}, InvalidInputError, "sample_weight"),
    ],
)
def test_labels_are_checked(true, decided, options, error, message):
    with pytest.raises(error, match=message):
        METRICS["accuracy"].score(true, decided, **options)


@pytest.mark.parametrize(
    ("make", "value"),
    [(fbeta, 0), (fbeta, "2"), (arithmetic_mean, -0.1)],
)
def test_parameters_are_checked(make, value):
    with pytest.raises(InvalidParameterError, match="must be a number in"):
        make(value)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_a_value(name):
    metric = as_metric(name, 0.3)
    assert metric == as_metric(name, 0.3) and hash(metric) == hash(as_metric(name, 0.3))
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert eval(repr(metric)) == metric
    with pytest.raises(AttributeError):
        metric.name = "other"


def test_a_metric_survives_scikit_learns_clone():
    holder = DummyClassifier(constant=fbeta(2))
    assert clone(holder).constant == fbeta(2)
