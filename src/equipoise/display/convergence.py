"""How did a fit get to its optimum, and how far from it is it certain to be?"""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.display import style
from equipoise.display.classifiers import fitted_attribute
from equipoise.exceptions import InvalidParameterError

Axis = Literal["seconds", "evaluations", "iteration"]
_AXES = {
    "seconds": "seconds",
    "evaluations": "evaluations of all class risks",
    "iteration": "iteration",
}


@dataclass(kw_only=True, eq=False)
class ConvergenceDisplay:
    """Objective and gap of a fit along its solve.

    Gaps along the way are estimates: the intercepts, which carry no penalty, are taken as they
    are. The last one, ``duality_gap_``, is proven.

    Parameters
    ----------
    history : dict of ndarray
        ``iteration``, ``evaluations``, ``objective``, ``gap`` and ``seconds``.
    certified_gap : float
        The proven gap at the end; infinite where there is no bound.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    line_ : matplotlib Line2D of the estimated gaps
    certificate_ : matplotlib Line2D of the certified gap, or None
    """

    history: dict[str, NDArray[Any]]
    certified_gap: float
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    line_: Any = field(init=False, repr=False, default=None)
    certificate_: Any = field(init=False, repr=False, default=None)

    @classmethod
    def from_estimator(cls, estimator: Any, *, along: Axis = "evaluations", ax: Any = None) -> Self:
        """The history of a fitted classifier, or of the last step of a pipeline.

        Parameters
        ----------
        estimator : classifier with ``history_`` and ``duality_gap_``
        along : {"evaluations", "seconds", "iteration"}, default="evaluations"
            The horizontal axis.
        ax : matplotlib Axes, optional

        Returns
        -------
        ConvergenceDisplay
        """
        history = fitted_attribute(estimator, "history_", wanted="the convergence")
        gap = fitted_attribute(estimator, "duality_gap_", wanted="the convergence")
        return cls(history=dict(history), certified_gap=float(gap)).plot(ax, along=along)

    def frame(self) -> Any:
        """One line for each record: the last one holds the certified gap where there is one."""
        columns = {name: np.array(values) for name, values in self.history.items()}
        certified = np.zeros(len(columns["gap"]), dtype=bool)
        if np.isfinite(self.certified_gap):
            columns["gap"] = columns["gap"].astype(np.float64)
            columns["gap"][-1] = self.certified_gap
            certified[-1] = True
        return style.data_frame(columns | {"certified": certified})

    def plot(self, ax: Any = None, *, along: Axis = "evaluations", **kwargs: Any) -> Self:
        """Draw the gap on a logarithmic scale: estimates hollow, the certificate solid.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        along : {"evaluations", "seconds", "iteration"}, default="evaluations"
        **kwargs
            For ``Axes.plot``.

        Returns
        -------
        self : ConvergenceDisplay
        """
        if along not in _AXES:
            raise InvalidParameterError(f"along must be one of {sorted(_AXES)}, got {along!r}.")
        ax = style.axes(ax)
        x = np.asarray(self.history[along], dtype=np.float64)
        self.line_ = self._draw_estimates(ax, x, kwargs)
        handles = [self.line_]
        if np.isfinite(self.certified_gap):
            self.certificate_ = self._draw_certificate(ax, x[-1])
            handles.append(self.certificate_)
        else:
            ax.set_title("no bound without a penalty", fontsize="small", loc="right")
        ax.set_yscale("log")
        ax.set_xlabel(_AXES[along], fontsize="small")
        ax.set_ylabel("gap to the optimum", fontsize="small")
        style.tidy(ax, grid="both")
        style.legend_above(ax, handles)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_estimates(self, ax: Any, x: Any, kwargs: dict[str, Any]) -> Any:
        gaps = np.asarray(self.history["gap"], dtype=np.float64)
        if np.isfinite(self.certified_gap):
            x, gaps = x[:-1], gaps[:-1]
        # An estimate may lie below the optimum, and a logarithm cannot show it.
        usable = np.isfinite(gaps) & (gaps > 0)
        options = {
            "color": style.color(0),
            "linestyle": "--",
            "linewidth": 1.0,
            "marker": "o",
            "markersize": 4.5,
            "markerfacecolor": "white",
            "label": "estimated on the way",
        }
        (line,) = ax.plot(x, np.where(usable, gaps, np.nan), **(options | kwargs))
        return line

    def _draw_certificate(self, ax: Any, x: float) -> Any:
        # Rounding may leave nothing of a gap, and a logarithm cannot show that.
        least = np.finfo(np.float64).eps * max(abs(float(self.history["objective"][-1])), 1e-3)
        (mark,) = ax.plot(
            [x],
            [max(self.certified_gap, least)],
            linestyle="none",
            marker="D",
            markersize=7,
            color=style.color(1),
            markeredgecolor=style.INK,
            label=f"certified: {self.certified_gap:.1e}",
            zorder=4,
        )
        return mark
