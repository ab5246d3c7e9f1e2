"""How prediction sets grow on the way from coverage over all rows to coverage of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.decisions.coverage_path import CoveragePath
from equipoise.display import style
from equipoise.display.base import Display
from equipoise.estimators import PredictionSets
from equipoise.exceptions import InvalidInputError


@dataclass(kw_only=True, eq=False)
class CoveragePathDisplay(Display):
    """Coverage against the mean size of sets, from all rows (alpha = 1) to each class.

    Drawn by ``Axes.plot``.

    Parameters
    ----------
    path : CoveragePath
        What :meth:`equipoise.PredictionSets.coverage_path` found.
    wanted : float, optional
        The coverage that was asked for.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D, of all rows, the mean over classes, and the lowest class

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise import PredictionSets
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X[::3], y[::3])
    >>> sets = PredictionSets(FrozenEstimator(model), 0.9).fit(X[1::3], y[1::3])
    >>> path = sets.coverage_path(X[2::3], y[2::3], alphas=[1.0, 0.2, 0.02])
    >>> CoveragePathDisplay(path=path).to_frame()["alpha"].tolist()
    [1.0, 0.2, 0.02]
    """

    path: CoveragePath
    wanted: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: PredictionSets, X: Any, y: Any, *, alphas: Any = None, ax: Any = None
    ) -> Self:
        """The path of fitted sets, on rows that nothing was fitted to."""
        if not isinstance(estimator, PredictionSets):
            raise InvalidInputError(
                f"estimator must be fitted PredictionSets, got {type(estimator).__name__}: of a "
                "pipeline give pipeline[-1], and pipeline[:-1].transform(X) as the rows."
            )
        path = estimator.coverage_path(X, y, alphas)
        return cls.from_path(path, wanted=float(estimator.coverage), ax=ax)

    @classmethod
    def from_path(cls, path: CoveragePath, *, wanted: float | None = None, ax: Any = None) -> Self:
        """Draw what :meth:`equipoise.PredictionSets.coverage_path` found."""
        return cls(path=path, wanted=wanted).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each alpha: the columns of the path."""
        return self.path.to_dict()

    def _title(self) -> str:
        return "Sets of labels: from all rows to each class"

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        path = self.path
        series = {
            "all rows": path.coverage,
            "mean over classes": path.macro_coverage,
            "lowest class": path.worst_class_coverage,
        }
        self.lines_ = []
        for index, (label, values) in enumerate(series.items()):
            self.lines_ += ax.plot(path.mean_size, values, **(style.line(index, label) | kwargs))
        handles = list(self.lines_)
        if self.wanted is not None:
            look = {"color": style.INK, "linewidth": 0.8, "linestyle": "--"}
            handles.append(ax.axhline(self.wanted, label="asked for", **look))
        self._write_ends(ax)
        ax.margins(0.14)
        style.label_axes(ax, "mean number of labels", "coverage", grid="both")
        style.in_percent(ax.yaxis)
        style.legend_above(ax, handles)

    def _write_ends(self, ax: Any) -> None:
        """The levels of the first and the last point, below the lowest class."""
        path = self.path
        for index in np.unique([0, len(path.alphas) - 1]).tolist():
            middle = (float(path.mean_size.min()) + float(path.mean_size.max())) / 2
            right = path.mean_size[index] > middle
            look = {"ha": "right" if right else "left", "va": "top", "fontsize": "x-small"}
            point = (path.mean_size[index], path.worst_class_coverage[index])
            style.beside(ax, f"alpha = {path.alphas[index]:.2g}", point, (0, -6), look)
