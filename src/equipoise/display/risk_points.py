"""Whom does each classifier fail? Class risks with intervals, side by side."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices
from equipoise.display import style
from equipoise.display.base import Display, named, responses
from equipoise.exceptions import ClassMismatchError
from equipoise.losses import Loss, as_loss
from equipoise.risks import RiskIntervals, class_risk_intervals


@dataclass(kw_only=True, eq=False)
class ClassRisksDisplay(Display):
    r"""The risk :math:`R_i` of every class with its confidence interval, for several classifiers.

    Drawn by ``Axes.errorbar`` from the first class down.

    Parameters
    ----------
    intervals : dict of RiskIntervals by classifier name
        Estimates and intervals, all over the same classes.
    rows : ndarray of shape (n_classes,)
        Rows of each class that the risks were measured on.
    loss : str
        The loss, for the label of the axis.

    Attributes
    ----------
    points_ : list of matplotlib ErrorbarContainer, one for each classifier

    Examples
    --------
    >>> from equipoise import RobustLogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLogisticRegression("balanced").fit(X[:3772], y[:3772])
    >>> display = ClassRisksDisplay.from_estimator(clf, X[3772:], y[3772:])
    >>> display.to_frame()["rows"].tolist()
    [177, 73, 3178]
    """

    intervals: dict[str, RiskIntervals]
    rows: Indices
    loss: str = "zero_one"
    points_: list[Any] = field(init=False, repr=False, default_factory=list)

    @classmethod
    def from_estimator(  # noqa: PLR0913  rows, how to judge them, and where to draw
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        loss: str | Loss = "zero_one",
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Judge one fitted classifier, or several by name, on rows they have not seen.

        Parameters
        ----------
        estimator : classifier, or dict of classifiers by name
        X, y : array-like
            Rows and labels.
        confidence, simultaneous, loss, sample_weight, name, ax
            As in :meth:`from_predictions`.
        """
        predicted, classes = responses(estimator, X, loss, name)
        return cls.from_predictions(
            y,
            predicted,
            confidence=confidence,
            simultaneous=simultaneous,
            loss=loss,
            classes=classes,
            sample_weight=sample_weight,
            ax=ax,
        )

    @classmethod
    def from_predictions(  # noqa: PLR0913  predictions, how to judge them, and where to draw
        cls,
        y_true: ArrayLike,
        y_pred: Any,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        loss: str | Loss = "zero_one",
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Judge predictions, or several by the name of their classifier.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        y_pred : array-like, or dict of arrays by name
        confidence, simultaneous, loss, classes, sample_weight
            As in :func:`equipoise.class_risk_intervals`.
        name : str, optional
            The name of a single classifier.
        ax : matplotlib Axes, optional
        """
        intervals = {
            key: class_risk_intervals(
                y_true,
                values,
                confidence=confidence,
                simultaneous=simultaneous,
                loss=loss,
                classes=classes,
                sample_weight=sample_weight,
            )
            for key, values in named(y_pred, name, what="classifier").items()
        }
        found = next(iter(intervals.values())).risks.classes
        truth = np.asarray(y_true)
        rows = np.array([np.count_nonzero(truth == each) for each in found])
        return cls(intervals=intervals, rows=rows, loss=as_loss(loss).name).plot(ax)

    def __post_init__(self) -> None:
        names = [each.risks.classes.tolist() for each in self.intervals.values()]
        if not names or any(other != names[0] for other in names):
            raise ClassMismatchError(
                "intervals must be of the same classes in the same order for every classifier, "
                f"got {names}."
            )

    @property
    def classes(self) -> NDArray[Any]:
        """Class names, in order."""
        return next(iter(self.intervals.values())).risks.classes

    def to_dict(self) -> dict[str, Any]:
        """One line for each classifier and class: rows, risk, lower and upper end."""
        k, found = len(self.classes), list(self.intervals.values())
        fields = {"risk": "risks", "lower": "lower", "upper": "upper"}
        return {
            "classifier": np.repeat(list(self.intervals), k),
            "class": np.tile(self.classes, len(found)),
            "rows": np.tile(self.rows, len(found)),
        } | {
            column: np.concatenate([np.asarray(getattr(each, name)) for each in found])
            for column, name in fields.items()
        }

    def _size(self) -> tuple[float, float]:
        return 4.8, style.height_for(len(self.classes) * max(1.6, 0.62 * len(self.intervals)))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        n = len(self.intervals)
        names = style.all_shown(self.intervals, width=22, lines=2)
        self.points_ = []
        for place, found in enumerate(self.intervals.values()):
            heights = np.arange(len(self.classes)) + (place - (n - 1) / 2) * 0.74 / n
            risks, lower, upper = (np.asarray(v) for v in (found.risks, found.lower, found.upper))
            # An interval without an end, as of a class of one row, has a bar to the risk alone.
            ends = style.reach(risks, lower, np.where(np.isfinite(upper), upper, risks))
            look = style.series(place, names[place]) | {"elinewidth": 1.2} | kwargs
            self.points_.append(ax.errorbar(risks, heights, xerr=ends, **look))
        self._label(ax)
        if n > 1:
            style.legend_above(ax, self.points_, share=0.62)

    def _label(self, ax: Any) -> None:
        shown = zip(style.all_shown(self.classes), self.rows, strict=True)
        first = next(iter(self.intervals.values()))
        kind = "share of errors" if self.loss == "zero_one" else self.loss.replace("_", " ")
        together = ", all together" if first.simultaneous else ""
        counts = [f"{name}\n{rows:,} rows" for name, rows in shown]
        style.name_lines(ax, counts, f"{kind}, {first.confidence:.0%} intervals{together}")
        for edge in range(len(counts)):
            ax.axhline(edge - 0.5, color=style.GRID, linewidth=0.6)
        top = max(float(ax.dataLim.x1), 0.05)
        # Markers at zero are whole, and the axis of a share ends at one.
        ax.set_xlim(-0.02 * top, min(1.02, 1.05 * top) if self.loss == "zero_one" else 1.05 * top)
