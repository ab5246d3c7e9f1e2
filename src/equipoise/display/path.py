"""What does more robustness cost? Standard against worst-class risk along a hyper-parameter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.analysis import RobustPath, robust_path
from equipoise.display import style
from equipoise.display.classifiers import last_step
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import DEFAULT_ALPHA, alpha_grid

# Points whose value of the hyper-parameter is written beside them.
_WRITTEN = 6


@dataclass(kw_only=True, eq=False)
class RobustPathDisplay:
    """The path of standard and worst-class risk as the set of weightings grows.

    Parameters
    ----------
    path : RobustPath
        What :func:`equipoise.robust_path` found.
    chosen : int, optional
        Place of the point that was chosen.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    line_ : matplotlib Line2D of the path
    chosen_ : matplotlib Line2D of the point chosen, or None
    """

    path: RobustPath
    chosen: int | None = None
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    line_: Any = field(init=False, repr=False, default=None)
    chosen_: Any = field(init=False, repr=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        estimator: RobustLogisticRegression,
        X: Any,
        y: ArrayLike,
        *,
        values: Sequence[float] | None = None,
        judge: tuple[Any, Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """Fit along the hyper-parameter of an estimator's own set; its own value is the chosen one.

        Parameters
        ----------
        estimator : RobustLogisticRegression
            Settings of the fits; it need not be fitted, and is not changed.
        X, y : array-like
            Training rows and labels.
        values : sequence of float, optional
            As in :func:`equipoise.robust_path`; the estimator's own value is added.
        judge : tuple (X, y), optional
            Rows on which the risks are measured; the training rows by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        RobustPathDisplay
        """
        if not isinstance(estimator, RobustLogisticRegression):
            raise InvalidInputError(
                "a path is one of RobustLogisticRegression, got "
                f"{type(last_step(estimator)).__name__}; transform the rows first if it stands "
                "in a pipeline."
            )
        own = _own_value(estimator.uncertainty)
        path = robust_path(
            X,
            y,
            estimator.uncertainty,
            values=_with(values, own),
            estimator=estimator,
            judge=judge,
        )
        return cls.from_path(path, chosen=own, ax=ax)

    @classmethod
    def from_path(cls, path: RobustPath, *, chosen: float | None = None, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.robust_path` found.

        Parameters
        ----------
        path : RobustPath
        chosen : float, optional
            The value of the hyper-parameter that was chosen, one of ``path.values``.
        ax : matplotlib Axes, optional

        Returns
        -------
        RobustPathDisplay
        """
        return cls(path=path, chosen=_place(path, chosen)).plot(ax)

    def frame(self) -> Any:
        """One line for each value: the columns of the path, and which one was chosen."""
        places = np.arange(len(self.path.values))
        return style.data_frame(self.path.to_dict() | {"chosen": places == self.chosen})

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw worst-class against standard risk, hollow where no cap binds any more.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        self : RobustPathDisplay
        """
        ax = style.axes(ax)
        x, y = self.path.standard_risk, self.path.worst_class_risk
        options = {"color": style.color(0), "marker": "o", "markersize": 5, "linewidth": 1.2}
        (self.line_,) = ax.plot(x, y, **({"label": "path"} | options | kwargs))
        flat = ~self.path.caps_bind
        handles = [self.line_]
        if flat.any():
            handles.append(_hollow(ax, x[flat], y[flat]))
        if self.chosen is not None:
            self.chosen_ = self._mark(ax)
            handles.append(self.chosen_)
        self._write_values(ax)
        ax.set_xlabel("standard risk", fontsize="small")
        ax.set_ylabel("risk of the worst class", fontsize="small")
        ax.margins(0.14)
        style.tidy(ax, grid="both")
        if len(handles) > 1:
            style.legend_above(ax, handles)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Any) -> Any:
        at = self.chosen or 0
        (mark,) = ax.plot(
            self.path.standard_risk[at : at + 1],
            self.path.worst_class_risk[at : at + 1],
            linestyle="none",
            marker="*",
            markersize=14,
            color=style.color(1),
            markeredgecolor=style.INK,
            label=f"chosen: {self.path.parameter} = {self.path.values[at]:.3g}",
            zorder=4,
        )
        return mark

    def _write_values(self, ax: Any) -> None:
        x, y = self.path.standard_risk, self.path.worst_class_risk
        middle = (float(x.min()) + float(x.max())) / 2
        # Beside the path: below a rising one, above a falling one, and inside the axes.
        rising = float(np.sum((x - x.mean()) * (y - y.mean()))) > 0
        for place in _spread(self.path):
            left = x[place] > middle
            above = rising == left
            ax.annotate(
                f"{self.path.parameter} = {self.path.values[place]:.2g}",
                (x[place], y[place]),
                xytext=(-6 if left else 6, 5 if above else -5),
                textcoords="offset points",
                ha="right" if left else "left",
                va="bottom" if above else "top",
                fontsize="x-small",
                color=style.INK,
            )


def _own_value(uncertainty: Any) -> float | None:
    """The value of the hyper-parameter that a path would move by itself."""
    for knob in ("alpha", "c", "radius"):
        value = getattr(uncertainty, knob, None)
        if value is not None:
            return float(value)
    return DEFAULT_ALPHA if uncertainty is None else None


def _with(values: Sequence[float] | None, own: float | None) -> Sequence[float] | None:
    """The values of the path with the estimator's own one among them, in their direction."""
    if own is None:
        return values
    grid = alpha_grid().tolist() if values is None else list(values)
    if np.isclose(grid, own, rtol=1e-12, atol=0).any():
        return grid
    return sorted([*grid, own], reverse=grid[0] >= grid[-1])


def _place(path: RobustPath, chosen: float | None) -> int | None:
    if chosen is None:
        return None
    same = np.flatnonzero(np.isclose(path.values, chosen, rtol=1e-9, atol=0))
    if len(same) == 0:
        raise InvalidParameterError(
            f"chosen must be one of the values of {path.parameter}, {path.values.tolist()}, "
            f"got {chosen!r}."
        )
    return int(same[0])


def _spread(path: RobustPath) -> list[int]:
    """Places to write values at: far from each other on the picture, the ends first."""
    points = np.column_stack([path.standard_risk, path.worst_class_risk])
    width = np.ptp(points, axis=0)
    points = points / np.where(width > 0, width, 1.0)
    taken: list[int] = []
    for place in [0, len(points) - 1, *range(1, len(points) - 1)]:
        gaps = np.abs(points[taken] - points[place]) if taken else np.full((1, 2), np.inf)
        # Texts lie along the first axis: they collide later along the second.
        apart = (gaps[:, 0] > 0.3) | (gaps[:, 1] > 0.12)
        if apart.all() and len(taken) < _WRITTEN:
            taken.append(place)
    return taken


def _hollow(ax: Any, x: Any, y: Any) -> Any:
    (points,) = ax.plot(
        x,
        y,
        linestyle="none",
        marker="o",
        markersize=5,
        color=style.color(0),
        markerfacecolor="white",
        label="no cap binds",
        zorder=3,
    )
    return points
