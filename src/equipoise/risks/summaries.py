"""Risks of predictions as plain functions, each the one of the same name in `ClassRisks`.

They are scikit-learn metrics: ``make_scorer(worst_class_risk, greater_is_better=False)`` works, as
do the scorers of :mod:`equipoise.risks.scorers`, which also know about scores and probabilities.

Conventions
-----------
``y_true``, ``y_pred``, ``loss``, ``classes`` and ``sample_weight`` are those of
:func:`equipoise.risks.class_risks`. ``class_prior`` is by class name or in class order, and the
share of each class in the (weighted) rows if not given.
"""

from typing import Any

from numpy.typing import ArrayLike

from equipoise.losses import Loss
from equipoise.risks.class_risks import ClassRisks, class_risks
from equipoise.weights.by_class import ByClass


def standard_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The usual risk :math:`\sum_i p_i R_i`: the mean loss of a row.

    Examples
    --------
    >>> standard_risk([0, 0, 0, 1], [0, 0, 0, 0])
    0.25
    """
    return class_risks(
        y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight
    ).standard()


def balanced_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The mean class risk :math:`\frac{1}{k} \sum_i R_i`; one minus balanced accuracy.

    Examples
    --------
    >>> balanced_risk([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    return class_risks(
        y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight
    ).balanced()


def worst_class_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""The largest class risk :math:`\max_i R_i`; one minus the smallest recall.

    Examples
    --------
    >>> worst_class_risk([0, 0, 0, 1], [0, 0, 0, 0])
    1.0
    """
    return class_risks(
        y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight
    ).worst()


def weighted_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    weights: Any,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
) -> float:
    r"""The weighted risk :math:`\sum_i q_i p_i R_i`.

    ``weights``, by class name or in class order, are scaled so that :math:`\sum_i q_i p_i = 1`:
    only their ratios matter.

    Examples
    --------
    >>> weighted_risk([0, 0, 0, 1], [0, 0, 0, 0], {0: 1, 1: 9})
    0.75
    """
    risks = class_risks(y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight)
    return _in_population(risks, class_prior).weighted(weights)


def robust_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    uncertainty: Any = None,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
) -> float:
    r"""The robust risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i`.

    ``uncertainty`` is a recipe of :mod:`equipoise.sets`. For given class risks use
    :meth:`ClassRisks.robust`.

    Examples
    --------
    >>> from equipoise.sets import LabelCVaR
    >>> robust_risk([0, 0, 0, 1], [0, 0, 0, 0], LabelCVaR(alpha=0.5))
    0.5
    """
    risks = class_risks(y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight)
    return _in_population(risks, class_prior).robust(uncertainty)


def worst_case_weights(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    uncertainty: Any = None,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
) -> ByClass:
    r"""Weights :math:`q \in \arg\max_{q \in Q} \sum_i q_i p_i R_i` that attain the robust risk.

    Examples
    --------
    >>> from equipoise.sets import LabelCVaR
    >>> worst_case_weights([0, 0, 0, 1], [0, 0, 0, 0], LabelCVaR(alpha=0.5))[1]
    2.0
    """
    risks = class_risks(y_true, y_pred, loss=loss, classes=classes, sample_weight=sample_weight)
    return _in_population(risks, class_prior).worst_case_weights(uncertainty)


def _in_population(risks: ClassRisks, class_prior: Any) -> ClassRisks:
    return risks if class_prior is None else risks.with_prior(class_prior)
