r"""What confidence bounds need to know about each class.

.. math::

    n_i^{\mathrm{eff}} = \frac{(\sum w_j)^2}{\sum w_j^2}, \qquad
    s_i^2 = \frac{n_i}{n_i - 1} \, \frac{\sum w_j^2 (\ell_j - R_i)^2}{(\sum w_j)^2}

with sums over the rows of class ``i``: Kish's effective number of rows, and the squared standard
error of the class risk, linearised where the weights differ.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Vector
from equipoise.risks.class_risks import present_classes
from equipoise.risks.row_losses import RowLosses
from equipoise.validation.labels import Labels


@dataclass(frozen=True)
class ClassMoments:
    """Per class: risk, effective number of rows, standard error; arrays in class order."""

    classes: Labels
    risks: Vector
    effective: Vector
    standard_errors: Vector
    equal_weights: bool


def class_moments(rows: RowLosses) -> ClassMoments:
    """Moments of the losses within each class, all of which must have rows."""
    totals = rows.total_weights()
    present_classes(rows, totals, "raise")
    risks = rows.weighted_sums(rows.losses) / totals
    counts, effective = rows.row_counts(), _effective(rows, totals)
    # Weights that are constant within a class cancel from its risk. Cauchy-Schwarz: the effective
    # number of rows reaches the number of rows only then.
    equal = np.isclose(effective, counts, rtol=1e-9)
    return ClassMoments(
        classes=rows.classes,
        risks=risks,
        effective=np.where(equal, counts, effective),
        standard_errors=_standard_errors(rows, risks, totals, counts),
        equal_weights=bool(equal.all()),
    )


def _effective(rows: RowLosses, totals: Vector) -> Vector:
    if rows.weights is None:
        return totals
    # Scaled within the class, so that squares neither overflow nor vanish.
    relative = rows.weights / totals[rows.true]
    return 1 / rows.sums(relative**2)


def _standard_errors(rows: RowLosses, risks: Vector, totals: Vector, counts: Vector) -> Vector:
    relative = (1.0 if rows.weights is None else rows.weights) / totals[rows.true]
    squares = rows.sums((relative * (rows.losses - risks[rows.true])) ** 2)
    # One row says nothing about the spread.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 1, np.sqrt(squares * counts / (counts - 1)), np.inf)
