"""What tuned decisions gain and what they cost, class by class, as a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from equipoise.arrays import Indices, Vector
from equipoise.exceptions import UnidentifiableError
from equipoise.extras import require
from equipoise.risks.intervals import RiskIntervals
from equipoise.text import share_text, text_table

# FEW_ROWS: rows of a class below which its recall is known to 20 points at best (95% intervals).
FEW_ROWS = 20


@dataclass(frozen=True, eq=False, repr=False)
class SummaryTable:
    """A table of texts with notes below it, for the console and for notebooks.

    Examples
    --------
    >>> SummaryTable(("class", "risk"), [("cat", "25.0%"), ("dog", "5.0%")], {"rows": "120"})
    class  risk
    cat   25.0%
    dog    5.0%
    rows: 120
    """

    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        table = text_table(self.header, self.lines, right=True, shorten=True)
        return "\n".join([*table, *(f"{name}: {value}" for name, value in self.notes.items())])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

        notes = "".join(f"<p>{escape(n)}: {escape(v)}</p>" for n, v in self.notes.items())
        body = "".join(row(line, "td") for line in self.lines)
        head = f"<thead>{row(self.header, 'th')}</thead>"
        return f"<table>{head}<tbody>{body}</tbody></table>{notes}"


class ShownAsTable(ABC):
    """Numbers that a console and a notebook show as a table."""

    @property
    @abstractmethod
    def _table(self) -> SummaryTable:
        """What is shown."""

    def __repr__(self) -> str:
        return repr(self._table)

    def _repr_html_(self) -> str:
        return self._table._repr_html_()


class Summarised:
    """An estimator whose notebook representation shows its ``summary()`` once it is fitted."""

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            with suppress(UnidentifiableError, NotFittedError):
                bundle["text/html"] += self.summary()._repr_html_()  # type: ignore[attr-defined]
        return bundle


@dataclass(frozen=True, eq=False, repr=False)
class DecisionSummary(ShownAsTable):
    """Tuned decisions beside default predictions, the most probable class, on held-out rows.

    Attributes
    ----------
    class_prior
        Class frequencies of the population, which overall errors and precisions are for.
    rows
        Held-out rows of each class.
    default, tuned
        Class risks of default predictions and of tuned decisions, with intervals of 95% confidence;
        those of tuned decisions are approximate.
    default_shares, tuned_shares
        Shares of the population that are predicted as each class.
    abstained
        Share of the population that tuned decisions leave without a class, which counts as errors
        of the classes; None where they never abstain.
    costs
        Further lines of the table, such as the time of the fit.

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
    abstained: float | None = None
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

    @property
    def _table(self) -> SummaryTable:
        recalls = [1 - np.asarray(each.risks) for each in (self.default, self.tuned)]
        lower, upper = (1 - np.asarray(each) for each in (self.tuned.upper, self.tuned.lower))
        before = self._precisions(self.default, self.default_shares)
        after = self._precisions(self.tuned, self.tuned_shares)
        header = "class", "rows", "recall: default", "tuned", "95% interval"
        lines = []
        for i, name in enumerate(self.tuned.risks.classes.tolist()):
            recall, precision = [share_text(each[i]) for each in recalls], (before[i], after[i])
            interval = f"{100 * lower[i]:.1f} to {share_text(upper[i])}"
            lines.append(
                [str(name), f"{self.rows[i]:,}", *recall, interval, *map(share_text, precision)]
            )
        errors = share_text(self.default_error), share_text(self.tuned_error)
        lines.append(["overall error", "", *errors, "", "", ""])
        notes = dict(self.costs)
        if self.abstained is not None:
            share = share_text(self.abstained)
            notes = {"no class": f"{share} of rows, which count as errors"} | notes
        return SummaryTable((*header, "precision: default", "tuned"), lines, notes)
