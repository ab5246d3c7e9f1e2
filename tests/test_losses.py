"""Losses: laws that each loss in the registry meets, and values by hand and by scikit-learn."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax
from sklearn.metrics import hinge_loss, log_loss, zero_one_loss

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.losses import (
    LOSSES,
    Loss,
    as_loss,
    as_trained,
    cross_entropy,
    cross_entropy_from_scores,
    hinge,
    margin_loss,
    margins,
    zero_one,
)
from equipoise.losses.base import ClassScores
from equipoise.losses.hinges import SmoothedHinge

SCORE_LOSSES = [name for name, loss in LOSSES.items() if loss.reads == "scores"]
MATRIX_LOSSES = [name for name, loss in LOSSES.items() if loss.reads != "labels"]


TRAINED = {name: loss.trained for name, loss in LOSSES.items() if loss.trained}


def softmax(scores):
    return scipy_softmax(scores, axis=1)


@st.composite
def scored_rows(draw, bound=30.0):
    n, k = draw(st.integers(1, 8)), draw(st.integers(2, 5))
    values = st.floats(-bound, bound, width=32)
    scores = draw(arrays(np.float64, (n, k), elements=values))
    return draw(arrays(np.intp, n, elements=st.integers(0, k - 1))), scores


def predictions_for(loss, scores):
    """What the loss reads, all of it derived from the same scores."""
    kinds = {"labels": scores.argmax(axis=1), "probabilities": softmax(scores), "scores": scores}
    return kinds[loss.reads]


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=30)
@given(rows=scored_rows())
def test_values_lie_in_the_declared_range(name, rows):
    true, scores = rows
    losses = LOSSES[name](true, predictions_for(LOSSES[name], scores))
    assert losses.shape == true.shape
    assert losses.dtype == np.float64
    assert np.isfinite(losses).all()
    assert (losses >= 0).all()
    if LOSSES[name].range == "{0, 1}":
        assert set(losses) <= {0.0, 1.0}
    if LOSSES[name].range == "[0, 1]":
        assert (losses <= 1).all()


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=30)
@given(rows=scored_rows())
def test_each_row_stands_alone(name, rows):
    true, scores = rows
    loss, predictions = LOSSES[name], predictions_for(LOSSES[name], scores)
    together = loss(true, predictions)
    alone = [loss(true[i : i + 1], predictions[i : i + 1])[0] for i in range(len(true))]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", SCORE_LOSSES)
@settings(max_examples=30)
@given(rows=scored_rows())
def test_a_score_loss_ignores_shifts_and_renamed_classes(name, rows):
    true, scores = rows
    loss, order = LOSSES[name], np.arange(scores.shape[1])[::-1]
    plain = loss(true, scores)
    np.testing.assert_allclose(loss(true, scores + 5.0), plain, atol=1e-12)
    np.testing.assert_allclose(loss(order[true], scores[:, order]), plain, atol=1e-12)


@pytest.mark.parametrize("name", SCORE_LOSSES)
@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_is_the_two_class_score(name, shape):
    f, true = np.array([-3.0, -0.25, 0.5, 2.0, -1.5]), np.array([0, 0, 1, 1, 1])
    short = LOSSES[name](true, f.reshape(shape))
    np.testing.assert_array_equal(short, LOSSES[name](true, np.column_stack([-f / 2, f / 2])))


def test_binary_margin_is_the_signed_decision():
    f, true = np.array([-3.0, 2.0, 2.0]), np.array([0, 0, 1])
    assert margins(true, f).tolist() == [3.0, -2.0, 2.0]


def test_binary_cross_entropy_is_the_logistic_loss():
    f = np.array([-3.0, 2.0, 2.0, 50.0, -50.0])
    expected = np.log1p(np.exp(-np.array([3.0, -2.0, 2.0, 50.0, -50.0])))
    np.testing.assert_allclose(cross_entropy_from_scores([0, 0, 1, 1, 1], f), expected, rtol=1e-14)


@settings(max_examples=50)
@given(rows=scored_rows())
def test_cross_entropy_of_scores_is_that_of_their_softmax(rows):
    true, scores = rows
    reference = logsumexp(scores, axis=1) - scores[np.arange(len(true)), true]
    np.testing.assert_allclose(cross_entropy_from_scores(true, scores), reference, atol=1e-12)
    close = scores / 10
    np.testing.assert_allclose(
        cross_entropy_from_scores(true, close), cross_entropy(true, softmax(close)), atol=1e-12
    )


def test_cross_entropy_of_scores_neither_overflows_nor_rounds_to_zero():
    huge = cross_entropy_from_scores([0, 1], [[1e4, 0.0, 0.0], [1e4, 0.0, 0.0]])
    assert huge.tolist() == [0.0, 1e4]
    tiny = cross_entropy_from_scores([0], [[50.0, 0.0, 0.0]])
    np.testing.assert_allclose(tiny, 2 * np.exp(-50.0), rtol=1e-12)


def test_many_rows_are_the_same_as_few():
    rng = np.random.default_rng(0)
    scores, true = rng.normal(size=(60_000, 7)), rng.integers(0, 7, 60_000)
    part = slice(30_000, 30_050)
    for name in SCORE_LOSSES:
        whole = LOSSES[name](true, scores)
        np.testing.assert_array_equal(whole[part], LOSSES[name](true[part], scores[part]))


@settings(max_examples=50)
@given(rows=scored_rows(bound=3.0))
def test_margin_by_brute_force(rows):
    true, scores = rows
    for y, f, margin, bounded, convex in zip(
        true,
        scores,
        margins(true, scores),
        margin_loss(true, scores),
        hinge(true, scores),
        strict=True,
    ):
        a = f[y] - max(f[j] for j in range(len(f)) if j != y)
        assert margin == pytest.approx(a)
        assert bounded == pytest.approx(1.0 if a <= 0 else (1 - a if a <= 1 else 0.0))
        assert convex == pytest.approx(max(0.0, 1 - a))


@settings(max_examples=50)
@given(rows=scored_rows(bound=3.0))
def test_hinge_is_above_margin_is_above_zero_one(rows):
    true, scores = rows
    wrong = zero_one(true, scores.argmax(axis=1))
    assert (margin_loss(true, scores) >= wrong).all()
    assert (hinge(true, scores) >= margin_loss(true, scores)).all()


def test_means_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    scores, true = rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
    assert zero_one(true, scores.argmax(axis=1)).mean() == pytest.approx(
        zero_one_loss(true, scores.argmax(axis=1))
    )
    assert hinge(true, scores).mean() == pytest.approx(hinge_loss(true, scores))
    assert cross_entropy(true, softmax(scores)).mean() == pytest.approx(
        log_loss(true, softmax(scores))
    )


def test_binary_hinge_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    f, true = rng.normal(size=100), rng.integers(0, 2, 100)
    assert hinge(true, f).mean() == pytest.approx(hinge_loss(true, f))


@pytest.mark.parametrize(("dtype", "ceiling"), [(np.float64, 36.04), (np.float32, 15.94)])
def test_a_probability_of_zero_costs_the_logarithm_of_the_spacing(dtype, ceiling):
    predicted = np.array([[1, 0], [1, 0]], dtype=dtype)
    losses = cross_entropy([0, 1], predicted)
    assert losses[0] == 0.0
    assert not np.signbit(losses[0])
    assert losses[1] == pytest.approx(ceiling, abs=0.01)
    assert losses[1] == pytest.approx(log_loss([1], predicted[1:], labels=[0, 1]), rel=1e-5)


def test_binary_probabilities_are_of_the_second_class():
    np.testing.assert_allclose(cross_entropy([1, 0], [0.25, 0.25]), [np.log(4), np.log(4 / 3)])


def test_widened_single_precision_probabilities_are_accepted():
    rng = np.random.default_rng(0)
    single = softmax(rng.normal(size=(500, 50))).astype(np.float32)
    assert cross_entropy(np.zeros(500, dtype=int), single.astype(np.float64)).shape == (500,)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_survive_pickling(name):
    assert pickle.loads(pickle.dumps(LOSSES[name])) == LOSSES[name]


def test_names_and_losses_are_accepted():
    own = Loss("absolute", lambda true, f: np.abs(true - f), reads="scores", range="[0, inf)")
    assert as_loss(own) is own
    assert as_loss("hinge") is LOSSES["hinge"]


def test_response_methods_are_those_of_scikit_learn():
    methods = {name: loss.response_method for name, loss in LOSSES.items()}
    assert methods == {
        "zero_one": "predict",
        "cross_entropy": "predict_proba",
        "cross_entropy_from_scores": "decision_function",
        "margin": "decision_function",
        "hinge": "decision_function",
        "squared_hinge": "decision_function",
        "smoothed_hinge": "decision_function",
    }


@pytest.mark.parametrize("bad", ["log", None, 3])
def test_unknown_loss_is_refused_by_name(bad):
    with pytest.raises(InvalidParameterError, match=r"loss must be one of 'zero_one'.*got"):
        as_loss(bad)


@pytest.mark.parametrize("name", MATRIX_LOSSES)
@pytest.mark.parametrize(
    ("true", "predictions", "message"),
    [
        ([0, 1], [[0.5, 0.5]], "one for each row"),
        ([0.0], [[0.5, 0.5]], "integer positions"),
        ([2], [[0.5, 0.5]], "0 to 1, got values from 2 to 2"),
        ([-1], [[0.5, 0.5]], "got values from -1 to -1"),
        ([0], [[np.nan, 1.0]], "must be finite, got nan in row 0, column 0"),
        ([0], [[[0.5, 0.5]]], r"must have shape \(n, n_classes\)"),
    ],
)
def test_bad_matrices_are_refused(name, true, predictions, message):
    with pytest.raises(InvalidInputError, match=message):
        LOSSES[name](true, predictions)


def test_infinite_scores_are_refused_but_huge_ones_are_not():
    with pytest.raises(InvalidInputError, match="must be finite, got inf in row 1, column 0"):
        margins([0, 0], [[1.0, 2.0], [np.inf, 0.0]])
    assert hinge([0, 0], [[1e308, 0.0], [1e308, 0.0]]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (
            [[0.5, 0.6]],
            r"must sum to 1 in every row, got .* in row 0 \(sum 1.1\).*CalibratedClassifierCV",
        ),
        ([[1.5, -0.5]], r"must be at least 0, got \[1.5, -0.5\] in row 0"),
        ([1.5], "must be at least 0"),
    ],
)
def test_what_is_no_probability_is_refused(probabilities, message):
    with pytest.raises(InvalidInputError, match=message):
        cross_entropy([0], probabilities)


def test_zero_one_refuses_arrays_of_different_length():
    with pytest.raises(InvalidInputError, match=r"equally long, got shapes \(2,\) and \(3,\)"):
        zero_one([0, 1], [0, 1, 1])


# Losses that can be trained: scores of shape (k, rows)


def drawn_scores(k, n=40, spread=1.5, seed=0):
    """Scores without ties and away from the corners of derivatives, and labels of all classes."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return spread * rng.normal(size=(k, n)), labels


def differences(function, scores, step=1e-6):
    """Central differences of a function of the scores along each score, in the first axis."""
    moved = [step * np.eye(len(scores))[:, [a]] for a in range(len(scores))]
    return np.array([(function(scores + e) - function(scores - e)) / (2 * step) for e in moved])


each_trained = pytest.mark.parametrize("name", TRAINED)
class_counts = pytest.mark.parametrize("k", [2, 3, 6])


@each_trained
@class_counts
def test_what_is_trained_is_the_loss(name, k):
    scores, labels = drawn_scores(k)
    predicted = softmax(scores.T) if LOSSES[name].reads == "probabilities" else scores.T
    loss, expected = LOSSES[name].trained, LOSSES[name](labels, predicted)
    if loss.convex:
        np.testing.assert_allclose(loss.values(scores, labels), expected, rtol=1e-12)
    else:
        rounded = loss.smoothing * np.log(k)
        np.testing.assert_allclose(loss.values(scores, labels), expected, atol=rounded)


@each_trained
@class_counts
def test_slopes_and_curvature_match_differences(name, k):
    loss, (scores, labels) = LOSSES[name].trained, drawn_scores(k)
    before = scores.copy()
    slopes, curvature = loss.gradients(scores, labels), loss.curvature(scores, labels)
    expected = differences(lambda moved: loss.values(moved, labels), scores)
    np.testing.assert_allclose(slopes, expected, atol=1e-7)
    expected = differences(lambda moved: loss.gradients(moved, labels), scores)
    bowl = np.linalg.eigvalsh(expected.transpose(2, 0, 1))[:, 0] > -1e-6
    assert np.all(bowl) == loss.convex
    np.testing.assert_allclose(curvature[..., bowl], expected[..., bowl], atol=1e-6)
    diagonal = np.einsum("aan->an", curvature)
    np.testing.assert_allclose(loss.diagonal(scores, labels), diagonal, atol=1e-12)
    np.testing.assert_array_equal(scores, before)


@each_trained
@class_counts
def test_a_trained_loss_is_convex_if_it_says_so_and_blind_to_equal_shifts(name, k):
    loss, (scores, labels) = LOSSES[name].trained, drawn_scores(k)
    other, _ = drawn_scores(k, seed=1)
    values = [loss.values(point, labels) for point in (scores, other, (scores + other) / 2)]
    below = values[2] <= (values[0] + values[1]) / 2 + 1e-12
    assert np.all(below) == loss.convex
    np.testing.assert_allclose(loss.values(scores + 3.0, labels), values[0], atol=1e-12)
    np.testing.assert_allclose(loss.gradients(scores, labels).sum(axis=0), 0, atol=1e-12)
    curvature = loss.curvature(scores, labels)
    np.testing.assert_allclose(curvature.sum(axis=0), 0, atol=1e-12)
    assert np.linalg.eigvalsh(curvature.transpose(2, 0, 1)).min() > -1e-12


@each_trained
@pytest.mark.parametrize("k", [2, 3, 6, 40])
@pytest.mark.parametrize("d", [1, 4])
def test_kernels_compute_what_the_derivatives_say(name, k, d):
    """The loss with its own kernel, and with the one that is made of derivatives alone."""
    n, n_scores = 60, 1 if k == 2 else k
    rng = np.random.default_rng(k)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    scores, X, scale = rng.normal(size=(n_scores, n)), rng.normal(size=(n, d)), rng.random(n)
    shift = 0.3 * rng.normal(size=n_scores)
    answers = []
    trained = LOSSES[name].trained
    for kernel in (trained.kernel(k), ClassScores(trained, k)):
        kept, moved = scores.copy(), scores + shift[:, None]
        losses, later = kernel.losses(kept, labels), kernel.losses(moved, labels)
        np.testing.assert_allclose(kernel.growth(kept, labels, shift), later - losses, atol=1e-12)
        np.testing.assert_allclose(kernel.moved(kept, shift), moved, atol=1e-12)
        slope, curvature = kernel.moments(kept, labels, scale, diagonal=False)
        residual = kernel.residual(kept, labels, scale)
        np.testing.assert_allclose(slope, residual.sum(axis=1), atol=1e-12)
        diagonal = kernel.moments(kept, labels, scale, diagonal=True)[1]
        if k > 2:
            np.testing.assert_allclose(diagonal, np.diag(curvature), atol=1e-12)
        hessian = kernel.hessian(X, kept, labels, scale)
        single = [array.astype(np.float32) for array in (X, kept, scale)]
        close = kernel.hessian(*single[:2], labels, single[2])
        assert close.dtype == np.float32
        np.testing.assert_allclose(close, hessian, atol=1e-4)
        answers.append([losses, residual, curvature, hessian])
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@settings(max_examples=50)
@given(rows=scored_rows(bound=3.0))
def test_squared_hinge_by_brute_force(rows):
    true, scores = rows
    found = LOSSES["squared_hinge"](true, scores)
    for y, f, value in zip(true, scores, found, strict=True):
        rivals = [max(0.0, 1 - (f[y] - f[j])) ** 2 for j in range(len(f)) if j != y]
        assert value == pytest.approx(sum(rivals))
    assert (found >= zero_one(true, scores.argmax(axis=1))).all()


@settings(max_examples=50)
@given(rows=scored_rows(bound=3.0), smoothing=st.sampled_from([0.1, 1.0, 4.0]))
def test_smoothed_hinge_is_the_best_over_shares(rows, smoothing):
    (true, scores), loss = rows, SmoothedHinge(smoothing)
    own = np.arange(len(true)), true
    values = loss.values(scores.T, true)
    assert np.all(values <= hinge(true, scores) + 1e-12)
    assert np.all(values >= hinge(true, scores) - smoothing / 2 - 1e-12)
    excess, shares = scores - scores[own][:, None] + 1, loss.gradients(scores.T, true).T
    shares[own] = 0
    assert np.all(shares >= 0) and np.all(shares.sum(axis=1) <= 1 + 1e-12)
    best = np.sum(shares * excess - smoothing / 2 * shares**2, axis=1)
    np.testing.assert_allclose(values, best, atol=1e-12)
    # Optimal: no other shares gain along the slope of what they maximise.
    slope = excess - smoothing * shares
    slope[own] = 0
    gain = np.maximum(slope.max(axis=1), 0) - np.sum(slope * shares, axis=1)
    assert np.all(gain <= 1e-12)


def test_two_class_hinges_by_hand():
    f, true = np.array([-2.0, 0.0, 0.5, 1.0, 3.0]), np.ones(5, dtype=int)
    assert LOSSES["squared_hinge"](true, f).tolist() == [9.0, 1.0, 0.25, 0.0, 0.0]
    assert LOSSES["smoothed_hinge"](true, f).tolist() == [2.5, 0.5, 0.125, 0.0, 0.0]


def test_only_some_losses_can_be_trained():
    names = "cross_entropy cross_entropy_from_scores margin squared_hinge smoothed_hinge"
    assert list(TRAINED) == names.split()
    for name in set(LOSSES) - set(TRAINED):
        message = rf"can be trained \('cross_entropy'.*got '{name}'"
        with pytest.raises(InvalidParameterError, match=message):
            as_trained(name)
