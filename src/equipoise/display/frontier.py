"""The frontier: overall error against the error of the worst class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.analysis.dominance import undominated
from equipoise.arrays import ArrayLike
from equipoise.display import style
from equipoise.display.base import Display, named, responses
from equipoise.exceptions import InvalidInputError
from equipoise.risks import class_risk_intervals, class_risks

_ENDS = ("", "_lower", "_upper")
_COLUMNS = tuple(f"{name}{end}" for name in ("overall", "worst") for end in _ENDS)


@dataclass(kw_only=True, eq=False)
class FrontierDisplay(Display):
    """Overall error against the error of the worst class, a point for each candidate.

    One point for each candidate; those that no other beats in both errors are joined, and named
    with their intervals, as is the advised one. Drawn by ``Axes.errorbar``.

    Parameters
    ----------
    candidates : dict of dict of float by name
        ``overall``, ``worst``, and their intervals as ``overall_lower``, ``overall_upper``,
        ``worst_lower`` and ``worst_upper``.
    advised : str, optional
        The name of the one that is advised.

    Attributes
    ----------
    line_ : matplotlib Line2D that joins the frontier
    points_ : list of matplotlib ErrorbarContainer, one for each candidate that is named
    others_ : matplotlib Line2D of all other candidates

    Examples
    --------
    >>> made = {"plain": ["no", "no", "no"], "tuned": ["no", "yes", "yes"]}
    >>> FrontierDisplay.from_predictions(["no", "no", "yes"], made).to_frame()["worst"].tolist()
    [1.0, 0.5]
    """

    candidates: Mapping[str, Mapping[str, float]]
    advised: str | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidInputError("candidates must hold at least one entry by name.")

    @classmethod
    def from_comparison(cls, comparison: Any, *, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.compare` found."""
        summary = comparison.to_dict()
        kept = [each for each in summary["candidates"] if each["same_as"] is None]
        candidates = {each["label"]: {name: each[name] for name in _COLUMNS} for each in kept}
        return cls(candidates=candidates, advised=comparison.recommended).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Evaluate fitted classifiers by name, as :meth:`from_predictions` does."""
        predicted, _ = responses(estimator, X, "zero_one")
        return cls.from_predictions(y, predicted, sample_weight=sample_weight, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: Any, *, sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Evaluate predicted labels, by the name of the classifier.

        Parameters
        ----------
        y_true, sample_weight : array-like of shape (n,)
            Labels, and optional weights of the rows.
        y_pred : dict of arrays of labels by name, or one array
        ax : matplotlib Axes, optional
        """
        truth = np.asarray(y_true)
        weights: Any = {"sample_weight": sample_weight}
        candidates = {}
        for name, predicted in named(y_pred, "classifier").items():
            by_class = class_risk_intervals(truth, predicted, **weights)
            worst = by_class[class_risks(truth, predicted, **weights).worst_class()]
            right = np.asarray(predicted) == truth
            one = np.zeros(len(truth), dtype=int)
            overall = class_risk_intervals(one, np.where(right, 0, 1), **weights)[0]
            ends = [(each.estimate, each.lower, each.upper) for each in (overall, worst)]
            candidates[name] = dict(zip(_COLUMNS, np.ravel(ends).tolist(), strict=True))
        return cls(candidates=candidates).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each candidate: both errors with intervals, and whether on the frontier."""
        every = self.candidates.values()
        columns = {name: np.array([each[name] for each in every]) for name in _COLUMNS}
        on = undominated(np.column_stack([columns["overall"], columns["worst"]]))
        return {"candidate": list(self.candidates), **columns, "frontier": on}

    def _title(self) -> str:
        return "Errors overall and in the worst class"

    def _size(self) -> tuple[float, float]:
        return 5.4, 4.2

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        columns = self.to_dict()
        x, y, on = columns["overall"], columns["worst"], columns["frontier"]
        order = np.flatnonzero(on)[np.lexsort((-y[on], x[on]))]
        look = {"color": style.COLORS[0], "linestyle": "--", "linewidth": 1.0, "zorder": 1}
        (self.line_,) = ax.plot(x[order], y[order], **look)
        rest = {"color": style.COLORS[5], "linestyle": "none", "marker": "o", "alpha": 0.6}
        (self.others_,) = ax.plot(x[~on], y[~on], markersize=4, label="dominated", **rest)
        names = style.all_shown(columns["candidate"], width=30)
        self.points_ = []
        advised = np.array([name == self.advised for name in columns["candidate"]])
        # The advised one is named where others beat it, too: a goal has other measures.
        named_ones = [*order.tolist(), *np.flatnonzero(advised & ~on).tolist()]
        for index, i in enumerate(named_ones):
            label = f"{names[i]} (advised)" if advised[i] else names[i]
            ends = [
                style.reach(columns[n][[i]], columns[f"{n}_lower"][[i]], columns[f"{n}_upper"][[i]])
                for n in ("overall", "worst")
            ]
            dots = style.series(index, label) | {"elinewidth": 1.0}
            self.points_.append(ax.errorbar(x[[i]], y[[i]], ends[1], ends[0], **(dots | kwargs)))
        ax.margins(0.08)
        style.label_axes(ax, "errors overall", "errors in the worst class", grid="both")
        style.in_percent(ax.xaxis, ax.yaxis)
        style.legend_above(ax, [*self.points_, *([self.others_] if (~on).any() else [])])
