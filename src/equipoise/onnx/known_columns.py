"""What the fitted steps of a model know of the columns that they read: values, and how they spread.

From it follows which columns hold texts, and the rows that an export is compared on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from equipoise.arrays import NDArray

# Public attributes of fitted estimators that hold points among the rows, a column for each feature.
_POINTS = (
    "mean_",
    "center_",
    "means_",
    "theta_",
    "data_min_",
    "data_max_",
    "max_abs_",
    "statistics_",
    "support_vectors_",
    "quantiles_",
    "centroids_",
)
# Those that hold fitted estimators of the same rows.
_MEMBERS = ("estimators_", "calibrated_classifiers_", "estimator_", "estimator")


@dataclass(frozen=True, eq=False)
class KnownColumn:
    """Values of a column, and the standard deviation of others around them: 0 for categories."""

    values: NDArray[Any]
    spread: float

    @property
    def is_text(self) -> bool:
        """Whether any value is a text."""
        return any(isinstance(value, str) for value in self.values.tolist())


def known_columns(stages: Iterable[Any], n_columns: int) -> list[KnownColumn | None]:
    """What is known of each column that enters the first of these steps; None is nothing."""
    columns: list[KnownColumn | None] = [None] * n_columns
    for stage in stages:
        stage_columns = _known_to(stage, n_columns)
        columns = [one or other for one, other in zip(columns, stage_columns, strict=True)]
        if not _keeps_columns(stage):
            break
    return columns


def positions_by_part(transformer: ColumnTransformer) -> Iterator[tuple[str, Any, list[int]]]:
    """The parts of a fitted column transformer, each with its name and its columns."""
    for name, part, _ in transformer.transformers_:
        if part != "drop":
            yield name, part, list(transformer._transformer_to_input_indices[name])


def _known_to(stage: Any, n_columns: int) -> list[KnownColumn | None]:
    """What one fitted step knows of its columns."""
    if isinstance(stage, Pipeline):
        return known_columns([step for _, step in stage.steps], n_columns)
    columns: list[KnownColumn | None] = [None] * n_columns
    if isinstance(stage, ColumnTransformer):
        for _, part, places in positions_by_part(stage):
            for place, known in zip(places, known_columns([part], len(places)), strict=True):
                columns[place] = columns[place] or known
        return columns
    categories = getattr(stage, "categories_", ())
    if len(categories) == n_columns:
        return [KnownColumn(np.asarray(levels), 0.0) for levels in categories]
    if hasattr(stage, "vocabulary_") and n_columns == 1:
        return [KnownColumn(np.array(list(stage.vocabulary_), dtype=object), 0.0)]
    if (points := _points(stage, n_columns)) is not None:
        return points
    for name in _MEMBERS:
        for member in np.ravel(getattr(stage, name, [])):
            member_columns = _known_to(member, n_columns)
            columns = [one or other for one, other in zip(columns, member_columns, strict=True)]
    return columns


def _points(stage: Any, n_columns: int) -> list[KnownColumn | None] | None:
    """Columns of the training points that an estimator stores; None if it stores none."""
    attributes = (getattr(stage, name, None) for name in _POINTS)
    tables = [np.atleast_2d(values) for values in attributes if isinstance(values, np.ndarray)]
    tables = [table for table in tables if table.ndim == 2 and table.shape[1] == n_columns]
    if not tables:
        return None
    return [_around(np.concatenate([t[:, j] for t in tables]), stage, j) for j in range(n_columns)]


def _around(values: NDArray[Any], stage: Any, place: int) -> KnownColumn:
    """Points of one column, and how far apart rows are."""
    if values.dtype.kind not in "fiu":
        known = KnownColumn(values, 0.0)
        return known if known.is_text else KnownColumn(values.astype(np.float64), 1.0)
    values = values[np.isfinite(values)]
    variances = getattr(stage, "var_", None)
    if isinstance(variances, np.ndarray):
        spread = float(np.sqrt(np.atleast_2d(variances)[:, place].max()))
    else:
        spread = float(values.std()) if len(values) > 1 else float(np.abs(values).max(initial=0.0))
    return KnownColumn(values if len(values) else np.zeros(1), spread or 1.0)


def _keeps_columns(stage: Any) -> bool:
    """Whether the next step reads the same columns on the same scale."""
    filled = isinstance(stage, SimpleImputer) and not stage.add_indicator
    return filled or stage is None or stage == "passthrough"
