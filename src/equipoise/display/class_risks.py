"""Whom does each classifier fail? Class risks with intervals, side by side."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Vector
from equipoise.display import style
from equipoise.display.classifiers import known_classes, named, named_estimators, responses
from equipoise.exceptions import ClassMismatchError
from equipoise.losses import Loss, as_loss
from equipoise.risks import RiskIntervals, class_risk_intervals


@dataclass(kw_only=True, eq=False)
class ClassRisksDisplay:
    r"""The risk :math:`R_i` of every class with its confidence interval, for several classifiers.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`.

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
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    points_ : list of matplotlib ErrorbarContainer, one for each classifier
    """

    intervals: dict[str, RiskIntervals]
    rows: NDArray[np.intp]
    loss: str = "zero_one"
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
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
        confidence, simultaneous, loss, sample_weight
            As in :func:`equipoise.risks.class_risk_intervals`.
        name : str, optional
            The name of a single classifier.
        ax : matplotlib Axes, optional

        Returns
        -------
        ClassRisksDisplay

        Examples
        --------
        >>> from equipoise import RobustLogisticRegression
        >>> from equipoise.datasets import load_thyroid
        >>> X, y = load_thyroid(return_X_y=True)
        >>> clf = RobustLogisticRegression("balanced").fit(X[:3772], y[:3772])
        >>> display = ClassRisksDisplay.from_estimator(clf, X[3772:], y[3772:])  # doctest: +SKIP
        >>> len(display.frame())  # doctest: +SKIP
        3
        """
        estimators = named_estimators(estimator, name)
        return cls.from_predictions(
            y,
            responses(estimators, X, loss),
            confidence=confidence,
            simultaneous=simultaneous,
            loss=loss,
            labels=known_classes(estimators, loss),
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
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Judge predictions, or several by the name of their classifier.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        y_pred : array-like, or dict of arrays by name
        confidence, simultaneous, loss, labels, sample_weight
            As in :func:`equipoise.risks.class_risk_intervals`.
        name : str, optional
            The name of a single classifier.
        ax : matplotlib Axes, optional

        Returns
        -------
        ClassRisksDisplay
        """
        intervals = {
            key: class_risk_intervals(
                y_true,
                values,
                confidence=confidence,
                simultaneous=simultaneous,
                loss=loss,
                labels=labels,
                sample_weight=sample_weight,
            )
            for key, values in named(y_pred, name, what="classifier").items()
        }
        classes = next(iter(intervals.values())).risks.classes
        truth = np.asarray(y_true)
        rows = np.array([np.count_nonzero(truth == label) for label in classes])
        display = cls(intervals=intervals, rows=rows, loss=as_loss(loss).name)
        return display.plot(ax)

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

    def frame(self) -> Any:
        """One line for each classifier and class: rows, risk, lower and upper end."""
        k, found = len(self.classes), list(self.intervals.values())
        return style.data_frame(
            {
                "classifier": np.repeat(list(self.intervals), k),
                "class": np.tile(self.classes, len(found)),
                "rows": np.tile(self.rows, len(found)),
                "risk": _joined([each.risks for each in found]),
                "lower": _joined([each.lower for each in found]),
                "upper": _joined([each.upper for each in found]),
            }
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the risks from the first class down, a marker and a bar for each classifier.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.errorbar``.

        Returns
        -------
        self : ClassRisksDisplay
        """
        k, n = len(self.classes), len(self.intervals)
        ax = style.axes(ax, height=style.height_for(k * max(1.6, 0.62 * n)))
        names = style.all_shown(self.intervals, width=22, lines=2)
        self.points_ = [
            self._draw(ax, found, place, names[place], kwargs)
            for place, found in enumerate(self.intervals.values())
        ]
        self._label(ax)
        if n > 1:
            style.legend_above(ax, self.points_, share=0.62)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(
        self, ax: Any, found: RiskIntervals, place: int, label: str, kwargs: dict[str, Any]
    ) -> Any:
        n = len(self.intervals)
        heights = np.arange(len(self.classes)) + (place - (n - 1) / 2) * 0.74 / n
        risks, lower, upper = (np.asarray(v) for v in (found.risks, found.lower, found.upper))
        # An interval without an end, as of a class of one row, has a bar to the risk alone.
        reach = np.where(np.isfinite(upper), upper, risks)
        options = {
            "fmt": style.marker(place),
            "color": style.color(place),
            "label": label,
            "markersize": 4.5,
            "elinewidth": 1.2,
            "capsize": 1.5,
        }
        ends = np.maximum([risks - lower, reach - risks], 0.0)
        return ax.errorbar(risks, heights, xerr=ends, **(options | kwargs))

    def _label(self, ax: Any) -> None:
        names = style.all_shown(self.classes)
        counts = [f"{name}\n{rows:,} rows" for name, rows in zip(names, self.rows, strict=True)]
        ax.set_yticks(np.arange(len(names)), counts)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.axhline(-0.5, color=style.GRID, linewidth=0.6)
        for edge in range(1, len(names)):
            ax.axhline(edge - 0.5, color=style.GRID, linewidth=0.6)
        first = next(iter(self.intervals.values()))
        kind = "share of errors" if self.loss == "zero_one" else self.loss.replace("_", " ")
        together = ", all together" if first.simultaneous else ""
        ax.set_xlabel(f"{kind}, {first.confidence:.0%} intervals{together}", fontsize="small")
        top = max(float(ax.dataLim.x1), 0.05)
        # Markers at zero are whole, and the axis of a share ends at one.
        ax.set_xlim(-0.02 * top, min(1.02, 1.05 * top) if self.loss == "zero_one" else 1.05 * top)
        style.tidy(ax, grid="x")


def _joined(parts: list[Any]) -> Vector:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
