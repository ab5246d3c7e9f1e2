"""What a robust fit is: its path, and the way to its optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.analysis import RobustPath, robust_path
from equipoise.analysis.path import moved_parameter
from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.decisions.alphas import alpha_grid
from equipoise.decisions.classifiers import last_step
from equipoise.display import style
from equipoise.display.base import Display, fitted_attributes
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import as_uncertainty
from equipoise.validation.numbers import check_word

# Points whose value of the hyper-parameter is written beside them.
_WRITTEN = 6
# Levels that are written along an axis.
_ALPHAS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)

_ALONG = {
    "evaluations": "evaluations of all class risks",
    "seconds": "seconds",
    "iteration": "iteration",
}


@dataclass(kw_only=True, eq=False)
class RobustPathDisplay(Display):
    """The cost of robustness: standard against worst-class risk along a hyper-parameter.

    Hollow points are those where no cap binds any more. Drawn by ``Axes.plot``.

    Parameters
    ----------
    path : RobustPath
        What :func:`equipoise.robust_path` found.
    chosen : float, optional
        The value of the hyper-parameter that was chosen, one of ``path.values``.

    Attributes
    ----------
    line_ : matplotlib Line2D of the path
    chosen_ : matplotlib Line2D of the point chosen, or None

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> path = robust_path(*load_thyroid(return_X_y=True), values=[1.0, 0.5])
    >>> display = RobustPathDisplay.from_path(path, chosen=0.5)
    >>> display.to_frame()["chosen"].tolist()
    [False, True]
    """

    path: RobustPath
    chosen: float | None = None

    @classmethod
    def from_estimator(  # noqa: PLR0913  data, what moves, and how it is evaluated
        cls,
        estimator: RobustLogisticRegression,
        X: Any,
        y: ArrayLike,
        *,
        values: Sequence[float] | None = None,
        sample_weight: ArrayLike | None = None,
        held_out: tuple[Any, Any] | None = None,
        loss: str = "zero_one",
        ax: Any = None,
    ) -> Self:
        """Fit along the hyper-parameter of an estimator's own set; its own value is the chosen one.

        The estimator need not be fitted, and is not changed; its value is added to ``values``. All
        else is as in :func:`equipoise.robust_path`.
        """
        if not isinstance(estimator, RobustLogisticRegression):
            raise InvalidInputError(
                f"a robust path of {type(last_step(estimator)).__name__} cannot be shown, but one "
                "of RobustLogisticRegression: transform the rows first if it stands in a pipeline. "
                "PathDisplay shows RobustnessCV, which takes any tuned classifier."
            )
        recipe = as_uncertainty(estimator.goal)
        chosen = getattr(recipe, moved_parameter(recipe))
        if chosen is not None:
            values = list(alpha_grid() if values is None else values)
            if not np.isclose(values, chosen, rtol=1e-12, atol=0).any():
                values = sorted([*values, float(chosen)], reverse=values[0] >= values[-1])
        how: Any = {"sample_weight": sample_weight, "held_out": held_out, "loss": loss}
        path = robust_path(X, y, recipe, values=values, estimator=estimator, **how)
        return cls.from_path(path, chosen=chosen, ax=ax)

    @classmethod
    def from_path(cls, path: RobustPath, *, chosen: float | None = None, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.robust_path` found."""
        return cls(path=path, chosen=chosen).plot(ax)

    def __post_init__(self) -> None:
        if self.chosen is not None and not self.to_dict()["chosen"].any():
            raise InvalidParameterError(
                f"chosen must be one of the values of {self.path.parameter}, "
                f"{self.path.values.tolist()}, got {self.chosen!r}."
            )

    def to_dict(self) -> dict[str, Any]:
        """One line for each value: the columns of the path, and which one was chosen."""
        chosen = np.nan if self.chosen is None else self.chosen
        same = np.isclose(self.path.values, chosen, rtol=1e-9, atol=0)
        return self.path.to_dict() | {"chosen": same}

    def _title(self) -> str:
        return f"Risks along {self.path.parameter}: all rows and the worst class"

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        x, y = self.path.standard_risk, self.path.worst_class_risk
        look = style.line(0, "path")
        (self.line_,) = ax.plot(x, y, **(look | kwargs))
        handles, self.chosen_ = [self.line_], None
        flat = ~self.path.caps_bind
        if flat.any():
            hollow = {"linestyle": "none", "markerfacecolor": "white", "zorder": 3}
            handles += ax.plot(x[flat], y[flat], **(look | hollow | {"label": "no cap binds"}))
        if self.chosen is not None:
            at = self.to_dict()["chosen"]
            label = f"chosen: {self.path.parameter} = {self.chosen:.3g}"
            self.chosen_ = style.mark(ax, x[at], y[at], label, marker="*", markersize=14)
            handles.append(self.chosen_)
        self._write_values(ax, x, y)
        ax.margins(0.14)
        style.label_axes(ax, "standard risk", "risk of the worst class", grid="both")
        if self.path.loss == "zero_one":
            style.in_percent(ax.xaxis, ax.yaxis)
        if len(handles) > 1:
            style.legend_above(ax, handles)

    def _write_values(self, ax: Any, x: Vector, y: Vector) -> None:
        middle = (float(x.min()) + float(x.max())) / 2
        # Beside the path: below a rising one, above a falling one, and inside the axes.
        rising = float(np.sum((x - x.mean()) * (y - y.mean()))) > 0
        for index in _spread(np.column_stack([x, y])):
            across, ha = (-6, "right") if x[index] > middle else (6, "left")
            up, va = (5, "bottom") if rising == (across < 0) else (-5, "top")
            text = f"{self.path.parameter} = {self.path.values[index]:.2g}"
            look = {"ha": ha, "va": va, "fontsize": "x-small"}
            style.beside(ax, text, (x[index], y[index]), (across, up), look)


@dataclass(kw_only=True, eq=False)
class PathDisplay(Display):
    """The chosen level of robustness, and the held-out risks of all levels.

    The standard risk and that of the worst class from the least robust level to the most, with
    intervals that hold for all levels together as bands, and the level that was chosen; of a rule
    with a price or a recall also the risk that it allows. Drawn by ``Axes.plot``.

    Parameters
    ----------
    path : dict of arrays
        ``path_`` of :class:`~equipoise.RobustnessCV`.
    chosen : int
        The position of the level that was chosen.
    classes : array-like of shape (n_classes,)
        Class names.
    allowed : tuple of str and float, optional
        Words for a risk that the rule allows, and that risk.

    Attributes
    ----------
    lines_, bands_ : tuples of two matplotlib artists: all rows, and the worst class
    chosen_ : matplotlib Line2D of the two points of the level chosen
    allowed_ : matplotlib Line2D of the risk allowed, or None

    Examples
    --------
    >>> from equipoise import RobustLogisticRegression, RobustnessCV
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustnessCV(RobustLogisticRegression(), rule="price", price=1, alphas=[1, 0.5, 0.2])
    >>> display = PathDisplay.from_estimator(clf.fit(X[::4], y[::4]))
    >>> display.to_frame()["alpha"].tolist()
    [1.0, 0.5, 0.2]
    """

    path: dict[str, Any]
    chosen: int
    classes: Any
    allowed: tuple[str, float] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """The path of a fitted classifier, or of the last step of a pipeline.

        That is a ``RobustnessCV``, or a classifier that was fitted with ``LabelCVaR("auto")``.
        """
        wanted = ("path_", "best_index_", "classes_")
        what = "the path of levels", "RobustnessCV"
        path, chosen, classes = fitted_attributes(estimator, *what, *wanted)
        fitted, allowed = last_step(estimator), None
        if getattr(fitted, "price", None) is not None:
            lowest = float(path["standard_risk"].min())
            points = "point" if fitted.price == 1 else "points"
            allowed = f"price: {fitted.price:g} {points}", lowest + fitted.price / 100
        elif getattr(fitted, "recall", None) is not None:
            allowed = f"recall: {fitted.recall:g}", 1 - fitted.recall
        return cls(path=path, chosen=chosen, classes=classes, allowed=allowed).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each level: risks with intervals, regret, class by class, and the choice."""
        flat = {name: values for name, values in self.path.items() if np.ndim(values) == 1}
        names = np.asarray(self.classes).tolist()
        by_class = {
            f"risk[{name}]{end}": self.path[f"class_risks{end}"][:, index]
            for index, name in enumerate(names)
            for end in ("", "_lower", "_upper")
        }
        return flat | by_class | {"chosen": np.arange(len(flat["alpha"])) == self.chosen}

    def _title(self) -> str:
        return "How robust: errors on held-out rows at each level"

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        alphas, labels = self.path["alpha"], ("all rows", "worst class")
        lines, bands = [], []
        for index, name in enumerate(("standard_risk", "worst_class_risk")):
            risk, lower, upper = (self.path[f"{name}{end}"] for end in ("", "_lower", "_upper"))
            look = style.line(index, labels[index])
            lines += ax.plot(alphas, risk, **(look | kwargs))
            band = {"color": look["color"], "alpha": 0.16, "lw": 0}
            bands.append(ax.fill_between(alphas, lower, upper, **band))
        chosen = alphas[self.chosen]
        gone = {"color": style.INK, "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        ax.axvline(chosen, **gone)
        risks = [self.path[f"{n}_risk"][self.chosen] for n in ("standard", "worst_class")]
        star = {"marker": "*", "markersize": 13}
        self.chosen_ = style.mark(ax, [chosen] * 2, risks, f"chosen: {chosen:.3g}", **star)
        self.lines_, self.bands_, shown = tuple(lines), tuple(bands), lines
        handles, self.allowed_ = [*shown, self.chosen_], None
        if self.allowed is not None:
            words, risk = self.allowed
            line = {"color": style.INK, "linestyle": "--", "linewidth": 1.0, "label": words}
            self.allowed_ = ax.axhline(risk, **line)
            handles.append(self.allowed_)
        ax.set_xscale("log")
        ax.set_xlim(max(alphas) * 1.1, min(alphas) / 1.1)
        ticks = [a for a in _ALPHAS if min(alphas) / 1.05 <= a <= max(alphas) * 1.05]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        ax.set_xticks([], minor=True)
        style.label_axes(
            ax, "alpha, from standard risk to worst class", "share of errors, 95% intervals",
            grid="both",
        )  # fmt: skip
        style.in_percent(ax.yaxis)
        style.legend_above(ax, handles)


@dataclass(kw_only=True, eq=False)
class ConvergenceDisplay(Display):
    """How a fit converged, and its certified distance from the optimum.

    Gaps along the way are estimates: the intercepts, which carry no penalty, are taken as they
    are. The last one, ``duality_gap_``, is proven. Drawn by ``Axes.plot`` on a logarithmic scale,
    estimates hollow and the certificate solid.

    Parameters
    ----------
    history : dict of ndarray
        ``iteration``, ``evaluations``, ``objective``, ``gap`` and ``seconds``.
    certified_gap : float
        The proven gap at the end; infinite where there is no bound.

    Attributes
    ----------
    line_ : matplotlib Line2D of the estimated gaps
    certificate_ : matplotlib Line2D of the certified gap, or None

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> clf = RobustLogisticRegression().fit(*load_thyroid(return_X_y=True))
    >>> frame = ConvergenceDisplay.from_estimator(clf).to_frame()
    >>> bool(frame["gap"].iloc[-1] == clf.duality_gap_)
    True
    """

    history: dict[str, NDArray[Any]]
    certified_gap: float

    @classmethod
    def from_estimator(cls, estimator: Any, *, along: str = "evaluations", ax: Any = None) -> Self:
        """The history of a fitted classifier, or of the last step of a pipeline.

        It needs ``history_`` and ``duality_gap_``; ``along`` and ``ax`` are as in :meth:`plot`.
        """
        what = "the way to the optimum", "RobustLogisticRegression"
        history, gap = fitted_attributes(estimator, *what, "history_", "duality_gap_")
        return cls(history=dict(history), certified_gap=float(gap)).plot(ax, along=along)

    def plot(self, ax: Any = None, *, along: str = "evaluations", **kwargs: Any) -> Self:
        """Draw as any display, along ``"evaluations"``, ``"seconds"`` or ``"iteration"``."""
        check_word(along, "along", tuple(_ALONG))
        return super().plot(ax, along=along, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """One line for each record: the last one holds the certified gap where there is one."""
        columns = {name: np.array(values) for name, values in self.history.items()}
        columns["certified"] = np.zeros(len(columns["gap"]), dtype=bool)
        if np.isfinite(self.certified_gap):
            columns["gap"] = np.append(columns["gap"][:-1], self.certified_gap)
            columns["certified"][-1] = True
        return columns

    def _title(self) -> str:
        return "The way to the optimum, and what is certain at its end"

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        along, columns = kwargs.pop("along"), self.to_dict()
        proven, x, gaps = columns["certified"], columns[along], columns["gap"]
        line = {"color": style.COLORS[0], "linestyle": "--", "linewidth": 1.0}
        dots = {"marker": "o", "markersize": 4.5, "markerfacecolor": "white"}
        options = {"label": "estimated on the way"} | line | dots
        # An estimate may lie below the optimum, and a logarithm cannot show it.
        shown = np.where(np.isfinite(gaps) & (gaps > 0), gaps, np.nan)
        handles = ax.plot(x[~proven], shown[~proven], **(options | kwargs))
        self.certificate_ = None
        if proven.any():
            # Rounding may leave nothing of a gap either.
            least = np.finfo(np.float64).eps * max(abs(float(columns["objective"][-1])), 1e-3)
            label = f"certified: {self.certified_gap:.1e}"
            gap = np.maximum(gaps[proven], least)
            self.certificate_ = style.mark(ax, x[proven], gap, label, markersize=7)
            handles.append(self.certificate_)
        else:
            ax.set_title("no bound without a penalty", fontsize="small", loc="right")
        ax.set_yscale("log")
        style.label_axes(ax, _ALONG[along], "gap to the optimum", grid="both")
        style.legend_above(ax, handles)
        self.line_ = handles[0]


def _spread(points: Matrix) -> list[int]:
    """Places to write values at: far from each other on the picture, the ends first."""
    width = np.ptp(points, axis=0)
    points = points / np.where(width > 0, width, 1.0)
    taken: list[int] = []
    for index in [0, len(points) - 1, *range(1, len(points) - 1)]:
        gaps = np.abs(points[taken] - points[index])
        # Texts lie along the first axis: they collide later along the second.
        apart = (gaps[:, 0] > 0.3) | (gaps[:, 1] > 0.12)
        if apart.all() and len(taken) < _WRITTEN:
            taken.append(index)
    return taken
