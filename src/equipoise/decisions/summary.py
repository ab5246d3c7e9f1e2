"""What tuned decisions gain and what they cost, class by class, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Vector
from equipoise.extras import require
from equipoise.risks.intervals import RiskIntervals
from equipoise.text import text_table

# FEW_ROWS: rows of a class below which its recall is known to 20 points at best (95% intervals).
FEW_ROWS = 20

_HEADER = (
    "class",
    "rows",
    "recall: default",
    "tuned",
    "95% interval",
    "precision: default",
    "tuned",
)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionSummary:
    """Tuned decisions beside default predictions, the most probable class, on held-out rows.

    Attributes
    ----------
    class_prior : class frequencies of the population, which overall errors and precisions are for.
    rows : held-out rows of each class.
    default, tuned : class risks of default predictions and of tuned decisions, with intervals of
        95% confidence; those of tuned decisions are approximate.
    default_shares, tuned_shares : shares of the population that are predicted as each class.
    costs : further lines of the table, such as the time of the fit.

    Examples
    --------
    >>> from equipoise import tune_weights
    >>> y, probabilities = [0] * 90 + [1] * 60, [0.1] * 80 + [0.3] * 35 + [0.8] * 35
    >>> print(tune_weights(y, probabilities, "worst_class").summary())
    class         rows recall: default  tuned   95% interval precision: default  tuned
    0               90          100.0%  88.9%  80.5 to 94.5%              78.3% 100.0%
    1               60           58.3% 100.0% 94.0 to 100.0%             100.0%  85.7%
    overall error                16.7%   6.7%
    """

    class_prior: Vector
    rows: Indices
    default: RiskIntervals
    tuned: RiskIntervals
    default_shares: Vector
    tuned_shares: Vector
    costs: Mapping[str, str] = field(default_factory=dict)

    @property
    def default_error(self) -> float:
        """Overall error rate of default predictions."""
        return self._error(self.default)

    @property
    def tuned_error(self) -> float:
        """Overall error rate of tuned decisions."""
        return self._error(self.tuned)

    def _error(self, intervals: RiskIntervals) -> float:
        risks = np.asarray(intervals.risks)
        known = ~np.isnan(risks)
        return float(self.class_prior[known] @ risks[known] / self.class_prior[known].sum())

    def _precisions(self, intervals: RiskIntervals, shares: Vector) -> Vector:
        right = self.class_prior * (1 - np.asarray(intervals.risks))
        nothing = np.full(len(shares), np.nan)
        return np.asarray(np.divide(right, shares, out=nothing, where=shares > 0))

    def with_costs(self, **costs: str) -> DecisionSummary:
        """The same table with further lines; underscores in their names are spaces."""
        named = {name.replace("_", " "): value for name, value in costs.items()}
        return replace(self, costs={**self.costs, **named})

    def to_frame(self) -> Any:
        """The classes as a pandas DataFrame, shares as numbers from 0 to 1."""
        return require("pandas", extra="report").DataFrame(
            {
                "class": self.tuned.risks.classes,
                "rows": self.rows,
                "recall_default": 1 - np.asarray(self.default.risks),
                "recall_tuned": 1 - np.asarray(self.tuned.risks),
                "recall_tuned_lower": 1 - np.asarray(self.tuned.upper),
                "recall_tuned_upper": 1 - np.asarray(self.tuned.lower),
                "precision_default": self._precisions(self.default, self.default_shares),
                "precision_tuned": self._precisions(self.tuned, self.tuned_shares),
            }
        )

    def _lines(self) -> list[tuple[str, ...]]:
        recalls = [1 - np.asarray(each.risks) for each in (self.default, self.tuned)]
        ends = [1 - np.asarray(each) for each in (self.tuned.upper, self.tuned.lower)]
        precisions = [
            self._precisions(self.default, self.default_shares),
            self._precisions(self.tuned, self.tuned_shares),
        ]
        lines = [
            (
                str(name), f"{self.rows[i]:,}", percent(recalls[0][i]), percent(recalls[1][i]),
                f"{100 * ends[0][i]:.1f} to {percent(ends[1][i])}",
                percent(precisions[0][i]), percent(precisions[1][i]),
            )
            for i, name in enumerate(self.tuned.risks.classes.tolist())
        ]  # fmt: skip
        return [
            *lines,
            ("overall error", "", percent(self.default_error), percent(self.tuned_error))
            + ("",) * 3,
        ]

    def __repr__(self) -> str:
        *classes, overall = self._lines()
        table = text_table(_HEADER, [*classes, overall], right=True, shorten=True)
        return "\n".join([*table, *(f"{name}: {value}" for name, value in self.costs.items())])

    def _repr_html_(self) -> str:
        header = "".join(f"<th>{name}</th>" for name in _HEADER)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>"
            for line in self._lines()
        )
        costs = "".join(f"<p>{escape(n)}: {escape(v)}</p>" for n, v in self.costs.items())
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{costs}"


def percent(share: float) -> str:
    """A share as a percentage with one decimal, a dash where it is unknown.

    Examples
    --------
    >>> percent(0.123456), percent(float("nan"))
    ('12.3%', '-')
    """
    return "-" if np.isnan(share) else f"{100 * share:.1f}%"
