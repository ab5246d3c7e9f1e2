r"""The metrics that have a name: linear-fractional ones of two classes, averages over many.

Of two classes ``"accuracy"``, ``"balanced_accuracy"`` (also ``"arithmetic_mean"``), ``"f1"`` and
``"jaccard"`` can be given by name. F-beta, mixes of precision and recall, and weighted accuracies
have a parameter: see :func:`fbeta`, :func:`precision_recall_mix` and :func:`weighted_accuracy`.

Of many classes, with :math:`h_i` the rows of class ``i`` decided right, :math:`n_i` all its rows,
and :math:`d_i` the rows decided to be of it, there are the macro F-beta and the geometric mean:

.. math::

    F_\beta = \frac{1}{k} \sum_i \frac{(1 + \beta^2) h_i}{\beta^2 n_i + d_i}, \qquad
    G = \Bigl( \prod_i \frac{h_i}{n_i} \Bigr)^{1/k}
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Mask, Matrix, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.metrics.fractional import Coefficients, LinearFractional, check_table
from equipoise.risks.class_risks import Absent, present_classes
from equipoise.validation.labels import class_names
from equipoise.validation.numbers import check_number

Metric = str | LinearFractional | Callable[[float], LinearFractional]


def accuracy() -> LinearFractional:
    r"""The share :math:`TP + TN` of right decisions.

    Examples
    --------
    >>> accuracy().value([[90, 5], [2, 3]])
    0.93
    """
    return LinearFractional(Coefficients(tp=1, tn=1), Coefficients(constant=1), "accuracy")


def weighted_accuracy(negative: float, positive: float) -> LinearFractional:
    r"""Right decisions by the weight of their class.

    .. math:: \frac{q_1 TP + q_0 TN}{q_1 (TP + FN) + q_0 (TN + FP)}

    One minus the paper's weighted risk with the weights :math:`q_0` of the negative and :math:`q_1`
    of the positive class, scaled to mean one.

    Examples
    --------
    >>> round(weighted_accuracy(1, 19).value([[90, 5], [2, 3]]), 6)
    0.773684
    """
    q0 = check_number(negative, "negative", "[0, inf)")
    q1 = check_number(positive, "positive", "[0, inf)")
    name = f"accuracy with weights ({q0:g}, {q1:g})"
    everything = Coefficients(tp=q1, fn=q1, tn=q0, fp=q0)
    return LinearFractional(Coefficients(tp=q1, tn=q0), everything, name)


def arithmetic_mean(positive_share: float) -> LinearFractional:
    r"""The mean of the two recalls, balanced accuracy: :math:`TP / (2\pi) + TN / (2 (1 - \pi))`.

    Its coefficients depend on the share of positives, so that it is made for one population.

    Examples
    --------
    >>> round(arithmetic_mean(0.05).value([[90, 5], [2, 3]]), 6)
    0.773684
    """
    share = check_number(positive_share, "positive_share", "[0, 1]")
    if share in (0, 1):
        raise InvalidInputError(
            "balanced accuracy needs rows of both classes, got a share of positives of "
            f"{share:g}: the recall of a class without rows is undefined."
        )
    recalls = Coefficients(tp=1 / (2 * share), tn=1 / (2 * (1 - share)))
    return LinearFractional(recalls, Coefficients(constant=1), "balanced accuracy")


def fbeta(beta: float = 1.0) -> LinearFractional:
    r"""F-beta, the harmonic mean of precision and recall with recall weighted by beta squared.

    .. math:: \frac{(1 + \beta^2) TP}{(1 + \beta^2) TP + FP + \beta^2 FN}

    The threshold of the optimal rule is :math:`F^* / (1 + \beta^2)`.

    Examples
    --------
    >>> fbeta(2).denominator
    Coefficients(constant=0.0, tp=5.0, fp=1.0, fn=4.0, tn=0.0)
    """
    square = check_number(beta, "beta", "(0, inf)") ** 2
    denominator = Coefficients(tp=1 + square, fp=1, fn=square)
    return LinearFractional(Coefficients(tp=1 + square), denominator, f"F{beta:g}")


def jaccard() -> LinearFractional:
    r"""The Jaccard index :math:`TP / (TP + FP + FN)`.

    Examples
    --------
    >>> jaccard().value([[90, 5], [2, 3]])
    0.3
    """
    return LinearFractional(Coefficients(tp=1), Coefficients(tp=1, fp=1, fn=1), "Jaccard")


def precision_recall_mix(precision: float) -> LinearFractional:
    r"""The harmonic mean of precision, with the given weight :math:`\lambda`, and recall.

    .. math:: \left( \frac{\lambda}{\mathrm{precision}} + \frac{1 - \lambda}{\mathrm{recall}}
              \right)^{-1} = \frac{TP}{TP + \lambda FP + (1 - \lambda) FN}

    An arithmetic mix of the two is no ratio of linear functions; this is the mix that is one.
    With :math:`\lambda = 1` it is precision itself, whose denominator is 0 when no row is decided
    positive, with :math:`\lambda = 1/2` it is F1, with :math:`\lambda = 0` recall.

    Examples
    --------
    >>> precision_recall_mix(1.0).value([[90, 5], [2, 3]])
    0.375
    """
    weight = check_number(precision, "precision", "[0, 1]")
    name = {0.0: "recall", 1.0: "precision"}.get(weight, f"precision-recall mix ({weight:g})")
    return LinearFractional(Coefficients(tp=1), Coefficients(tp=1, fp=weight, fn=1 - weight), name)


# A metric by its name, for a share of positives.
METRICS: dict[str, Callable[[float], LinearFractional]] = {
    "accuracy": lambda positive_share: accuracy(),
    "arithmetic_mean": arithmetic_mean,
    "balanced_accuracy": arithmetic_mean,
    "f1": lambda positive_share: fbeta(1),
    "jaccard": lambda positive_share: jaccard(),
}


def as_metric(metric: Metric, positive_share: float) -> LinearFractional:
    """The metric of that name, or from that function of the share of positives, or as it is.

    Examples
    --------
    >>> as_metric("balanced_accuracy", 0.25).numerator.tp
    2.0
    """
    if isinstance(metric, LinearFractional):
        return metric
    make = METRICS.get(metric) if isinstance(metric, str) else metric
    if make is None or not callable(make):
        names = ", ".join(repr(name) for name in METRICS)
        raise InvalidParameterError(
            f"metric must be one of {names}, a LinearFractional, or a function that makes one from "
            f"the share of positives, got {metric!r}."
        )
    return make(positive_share)


def macro_fbeta(
    table: ArrayLike,
    beta: float = 1.0,
    *,
    classes: ArrayLike | None = None,
    absent: Absent = "raise",
) -> float:
    r"""The mean over the classes of their F-beta.

    Parameters
    ----------
    table : array-like of shape (n_classes, n_classes)
        Counts or weights of rows, by true class (rows) and decision (columns).
    beta : float, default=1.0
        How many times as much recall counts as precision.
    classes : array-like of shape (n_classes,), optional
        Names for the messages.
    absent : {"raise", "drop"}, default="raise"
        Whether a class without a row is an error, or left out of the mean. Decisions for it stay
        what they are for the other classes, wrong.

    Examples
    --------
    >>> macro_fbeta([[2, 0], [1, 1]])
    0.7333333333333334
    """
    number = check_number(beta, "beta", "(0, inf)")
    cells, present = _present(table, classes, absent)
    hits, decided, totals = np.diag(cells), cells.sum(axis=0), cells.sum(axis=1)
    return float(mean_fbeta(hits[present], decided[present], totals[present], number))


def geometric_mean(
    table: ArrayLike, *, classes: ArrayLike | None = None, absent: Absent = "raise"
) -> float:
    r"""The geometric mean of the recalls; 0 as soon as one class is always missed.

    Parameters
    ----------
    table, classes, absent
        As in :func:`macro_fbeta`.

    Examples
    --------
    >>> geometric_mean([[4, 0], [3, 1]])
    0.5
    """
    cells, present = _present(table, classes, absent)
    return float(root_of_recalls(np.diag(cells)[present], cells.sum(axis=1)[present]))


def mean_fbeta(hits: Matrix, decided: Matrix, totals: Vector, beta: float) -> Vector:
    """Macro F-beta of each way to decide: a line with a column for each class."""
    square = beta**2
    return np.asarray(((1 + square) * hits / (square * totals + decided)).mean(axis=-1))


def root_of_recalls(hits: Matrix, totals: Vector) -> Vector:
    """The geometric mean of the recalls of each way to decide."""
    # Rounding of sums can leave less than nothing.
    recalls = np.maximum(hits / totals, 0.0)
    # Roots first: a product of a thousand recalls would vanish.
    return np.asarray(np.prod(recalls ** (1 / recalls.shape[-1]), axis=-1))


def _present(table: ArrayLike, classes: ArrayLike | None, absent: Absent) -> tuple[Matrix, Mask]:
    """The table, and which classes have rows."""
    cells = check_table(table)
    names = class_names(classes, len(cells))
    return cells, present_classes(names, cells.sum(axis=1), absent, of="the table")
