"""Sets of labels from coverage over all rows to coverage of each class, on labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.alphas import alpha_grid
from equipoise.decisions.set_summary import evaluated_sets
from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.text import brief


@dataclass(frozen=True, eq=False)
class CoveragePath:
    """Coverage and sizes of sets for ``LabelCVaR(alpha)``, one entry for each alpha.

    At ``alpha=1`` the sets are those for all rows, at the frequency of the smallest class and below
    those for each class.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Levels, in the order they were given.
    classes : ndarray of shape (n_classes,)
        Class names.
    class_coverage : ndarray of shape (n_alphas, n_classes)
        The share of the rows of each class whose set holds it; NaN for a class without rows.
    coverage, macro_coverage, worst_class_coverage : ndarray of shape (n_alphas,)
        Coverage at the class frequencies of the population, the mean over classes, and the lowest.
    mean_size : ndarray of shape (n_alphas,)
        Mean number of labels at the class frequencies of the population.

    Examples
    --------
    >>> path = CoveragePath(
    ...     np.array([1.0]), np.array(["a", "b"]), np.array([[1.0, 0.5]]), np.array([0.9]),
    ...     np.array([1.2]),
    ... )
    >>> path.macro_coverage, path.worst_class_coverage
    (array([0.75]), array([0.5]))
    """

    alphas: Vector
    classes: NDArray[Any]
    class_coverage: Matrix
    coverage: Vector
    mean_size: Vector

    @property
    def macro_coverage(self) -> Vector:
        """The mean of the classes' coverages."""
        return np.asarray(np.nanmean(self.class_coverage, axis=1))

    @property
    def worst_class_coverage(self) -> Vector:
        """The lowest of the classes' coverages."""
        return np.asarray(np.nanmin(self.class_coverage, axis=1))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns by name: alpha, the summaries, and one column per class."""
        names = ("coverage", "macro_coverage", "worst_class_coverage", "mean_size")
        columns = {"alpha": self.alphas} | {name: getattr(self, name) for name in names}
        by_class = zip(self.classes.tolist(), self.class_coverage.T, strict=True)
        return columns | {f"coverage[{name}]": column for name, column in by_class}

    def to_frame(self) -> Any:
        """The columns of :meth:`to_dict` as a pandas DataFrame."""
        return require("pandas", extra="report").DataFrame(self.to_dict())


def coverage_path(
    sets_for: Callable[[float], Mask],
    labels: Indices,
    classes: NDArray[Any],
    prior: Vector,
    alphas: Any = None,
) -> CoveragePath:
    """What the sets of each level cover on rows with these labels."""
    levels = np.asarray(alpha_grid(prior) if alphas is None else alphas)
    if levels.ndim != 1 or not len(levels) or levels.dtype.kind not in "iuf":
        raise InvalidParameterError(
            f"alphas must be a list of at least one level, got {brief(alphas)}."
        )
    levels = levels.astype(np.float64)
    each = [evaluated_sets(sets_for(alpha), labels, classes, prior) for alpha in levels.tolist()]
    return CoveragePath(
        levels,
        classes,
        np.array([np.asarray(found.class_coverage) for found in each]),
        np.array([found.coverage for found in each]),
        np.array([found.mean_size for found in each]),
    )
