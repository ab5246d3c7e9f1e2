r"""Class risks of predictions with their intervals, as the commands show them.

.. math:: R_i = P(\text{prediction} \ne i \mid \text{class } i), \qquad
          \max_i R_i, \qquad \max_{q \in Q} \sum_i q_i p_i R_i
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.cli.output import percent, shown, table
from equipoise.models import HeldOut
from equipoise.risks import ClassRisks, RiskInterval, class_risk_intervals, class_risks
from equipoise.risks import worst_class_interval as interval_of_worst
from equipoise.sets import Uncertainty


@dataclass(frozen=True)
class ClassRow:
    """One class: its rows and, where it has any, its risk with an interval."""

    name: Any
    rows: int
    risk: float | None
    lower: float | None
    upper: float | None

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {
            "class": self.name,
            "rows": self.rows,
            "risk": self.risk,
            "lower": self.lower,
            "upper": self.upper,
        }


@dataclass(frozen=True)
class Judgement:
    """What predictions are worth, class by class and together."""

    classes: tuple[ClassRow, ...]
    risks: ClassRisks
    worst: RiskInterval
    robust: float | None
    confidence: float

    @property
    def absent(self) -> list[Any]:
        """Classes without a row, whose risk nobody knows."""
        return [row.name for row in self.classes if row.rows == 0]

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        return {
            "classes": [row.to_dict() for row in self.classes],
            "confidence": self.confidence,
            "standard_risk": self.risks.standard(),
            "balanced_risk": self.risks.balanced(),
            "worst_class": {
                "class": self.risks.worst_class(),
                "risk": self.worst.estimate,
                "lower": self.worst.lower,
                "upper": self.worst.upper,
            },
            "robust_risk": self.robust,
        }

    def lines(self) -> list[str]:
        """The table of classes."""
        header = ("class", "rows", "risk", f"{percent(self.confidence)} interval")
        rows = [
            (shown(row.name), f"{row.rows:,}", percent(row.risk), _range(row))
            for row in self.classes
        ]
        return table(header, rows)

    def held_out(self, share: float) -> HeldOut:
        """The class risks as facts to keep beside a model."""
        return HeldOut(
            rows=tuple(row.rows for row in self.classes),
            risks=tuple(row.risk for row in self.classes),
            lower=tuple(row.lower for row in self.classes),
            upper=tuple(row.upper for row in self.classes),
            confidence=self.confidence,
            share=share,
        )


def _range(row: ClassRow) -> str:
    return "not estimable" if row.risk is None else f"{percent(row.lower)} to {percent(row.upper)}"


def judge(
    y_true: NDArray[Any],
    y_pred: NDArray[Any],
    classes: NDArray[Any],
    uncertainty: Uncertainty,
    *,
    confidence: float = 0.95,
) -> Judgement:
    """Class risks with exact intervals, the worst class, and the robust risk over a set.

    The robust risk takes the class shares of these rows, and is None where a class has no row:
    no weighting of an unknown risk is known.
    """
    risks = class_risks(y_true, y_pred)
    intervals = class_risk_intervals(y_true, y_pred, confidence=confidence)
    counts = dict(
        zip(*(part.tolist() for part in np.unique(y_true, return_counts=True)), strict=True)
    )
    rows = tuple(_row(name, counts.get(name, 0), intervals) for name in classes.tolist())
    complete = len(counts) == len(classes)
    return Judgement(
        rows,
        risks,
        interval_of_worst(y_true, y_pred, confidence=confidence),
        risks.robust(uncertainty) if complete else None,
        confidence,
    )


def _row(name: Any, rows: int, intervals: Any) -> ClassRow:
    if rows == 0:
        return ClassRow(name, 0, None, None, None)
    found = intervals[name]
    return ClassRow(name, rows, found.estimate, found.lower, found.upper)
