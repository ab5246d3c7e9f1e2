"""Macro F-beta and the geometric mean of the recalls: by scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix, fbeta_score, recall_score

from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.metrics import fbeta, geometric_mean, macro_fbeta


@st.composite
def decisions(draw):
    """Labels of up to five classes, decisions for them, and weights."""
    n, k = draw(st.integers(1, 30)), draw(st.integers(2, 5))
    labels = arrays(np.int64, n, elements=st.integers(0, k - 1))
    return draw(labels), draw(labels), draw(arrays(np.int64, n, elements=st.integers(1, 4))), k


@settings(max_examples=40)
@given(rows=decisions(), beta=st.sampled_from([0.5, 1.0, 2.0]))
def test_macro_f_beta_is_scikit_learns(rows, beta):
    true, decided, weights, k = rows
    present = np.unique(true)
    table = confusion_matrix(true, decided, labels=range(k), sample_weight=weights)
    expected = fbeta_score(
        true, decided, beta=beta, labels=present, average="macro", sample_weight=weights
    )
    assert macro_fbeta(table, beta, absent="drop") == pytest.approx(expected)


@settings(max_examples=40)
@given(rows=decisions())
def test_the_geometric_mean_is_that_of_scikit_learns_recalls(rows):
    true, decided, weights, k = rows
    present = np.unique(true)
    table = confusion_matrix(true, decided, labels=range(k), sample_weight=weights)
    recalls = recall_score(
        true, decided, labels=present, average=None, sample_weight=weights, zero_division=0
    )
    expected = np.prod(recalls) ** (1 / len(present))
    assert geometric_mean(table, absent="drop") == pytest.approx(expected)


@given(table=arrays(np.float64, (2, 2), elements=st.integers(0, 9)), beta=st.floats(0.2, 5))
def test_two_classes_average_the_f_beta_of_either(table, beta):
    assume(table.sum(axis=1).min() > 0)
    metric = fbeta(beta)
    mean = (metric.value(table) + metric.value(table[::-1, ::-1])) / 2
    assert macro_fbeta(table, beta) == pytest.approx(mean)


@given(
    table=arrays(np.float64, (3, 3), elements=st.integers(1, 9)),
    order=st.permutations(range(3)),
    scale=st.floats(1e-6, 1e6),
)
def test_neither_the_order_of_the_classes_nor_the_scale_matters(table, order, scale):
    again = scale * table[np.ix_(order, order)]
    for metric in (macro_fbeta, geometric_mean):
        assert metric(again) == pytest.approx(metric(table))


@given(table=arrays(np.float64, (3, 3), elements=st.integers(1, 9)), rows=st.integers(2, 50))
def test_the_geometric_mean_does_not_know_how_common_a_class_is(table, rows):
    more = table.copy()
    more[1] *= rows
    assert geometric_mean(more) == pytest.approx(geometric_mean(table))


def test_perfect_decisions_are_one_and_a_lost_class_is_zero():
    assert macro_fbeta(np.diag([3, 1, 9])) == geometric_mean(np.diag([3, 1, 9])) == 1
    lost = [[3, 0, 0], [0, 2, 0], [0, 1, 0]]
    assert geometric_mean(lost) == 0 and 0 < macro_fbeta(lost) < 1


def test_many_classes_do_not_underflow():
    table = np.full((3000, 3000), 0.0)
    np.fill_diagonal(table, 1.0)
    table[:, 0] += 1
    table[0, 0] = 1
    assert geometric_mean(table) == pytest.approx(0.5 ** (2999 / 3000))


# Classes without rows


@pytest.mark.parametrize("metric", [macro_fbeta, geometric_mean])
def test_a_class_without_rows_is_named(metric):
    table = [[2, 1, 0], [0, 3, 1], [0, 0, 0]]
    with pytest.raises(ClassMismatchError, match=r"\[2\] has none.*absent='drop'"):
        metric(table)
    with pytest.raises(ClassMismatchError, match=r"\['eel'\] has none"):
        metric(table, classes=["cat", "dog", "eel"])
    with pytest.raises(ClassMismatchError, match="name each of the 3 classes"):
        metric(table, classes=["cat", "dog"])


@pytest.mark.parametrize("metric", [macro_fbeta, geometric_mean])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([1, 2], "a row and a column for each class"),
        ([[1, 2, 3], [4, 5, 6]], "a row and a column for each class"),
        ([[1, -1], [0, 1]], "finite values of at least 0"),
        ([[1, np.nan], [0, 1]], "finite values of at least 0"),
        ([[0, 0], [0, 0]], "at least one row"),
    ],
)
def test_tables_are_checked(metric, table, message):
    with pytest.raises(InvalidInputError, match=message):
        metric(table)


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match="beta must be a number in"):
        macro_fbeta([[1, 0], [0, 1]], beta=0)
    with pytest.raises(InvalidParameterError, match="absent must be"):
        geometric_mean([[1, 0], [0, 1]], absent="ignore")
