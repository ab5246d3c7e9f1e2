"""Compare probabilities that were computed elsewhere, for rows that their models have not seen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Matrix
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.report.compare import bound_goals, compared
from equipoise.report.comparison import Comparison
from equipoise.report.evaluations import Progress
from equipoise.report.request import Request
from equipoise.report.written import GivenColumns
from equipoise.tables import find_column, read_labelled, unseen_rows
from equipoise.validation.predictions import as_probabilities, check_rows


def compare_predictions(  # noqa: PLR0913  rows, what to compare, and how
    y: Any,
    predictions: Mapping[str, Any],
    *,
    goals: Any = None,
    price: float | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare probabilities from anywhere, for rows that the models have not seen.

    Candidates are the default predictions of each model, and decisions by weights tuned for each
    goal, as :func:`~equipoise.tune_weights` does; a row is evaluated by weights tuned without it.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels.
    predictions : dict of array-like of shape (n_rows, n_classes)
        Probabilities by the name of the model, columns in the order of ``classes``. For two classes
        also of shape (n_rows,), of the second.
    goals, price, sample_weight, random_state, progress
        As in :func:`compare`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns; by default the sorted labels.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> compare_predictions(y, {"mine": eta}, goals="worst_class").recommended
    'mine, worst_class'
    """
    if not isinstance(predictions, Mapping) or not predictions:
        raise InvalidParameterError(
            "predictions must be a dict of probabilities by the name of a model, got "
            f"{type(predictions).__name__}."
        )
    table = unseen_rows(y, classes, sample_weight)
    models, tables, k = {}, list[Matrix](), len(table.classes)
    for name, values in predictions.items():
        probabilities = as_probabilities(values, k, name=f"predictions[{name!r}]")
        check_rows(probabilities, len(table.labels), name=f"predictions[{name!r}]")
        columns = slice(k * len(tables), k * len(tables) + k)
        models[str(name)] = FrozenEstimator(GivenColumns(columns, table.classes))
        tables.append(probabilities)
    request = Request(models, goals, price, random_state, progress, sample_weight=sample_weight)
    return compared(request, table, np.hstack(tables))


def compare_predictions_file(  # noqa: PLR0913  the file, what to compare, and how
    path: str | Path,
    target: str,
    columns: Mapping[str, Sequence[str]],
    *,
    goals: Any = None,
    price: float | None = None,
    text_labels: bool = False,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare probabilities in the columns of a file, as :func:`compare_predictions` does.

    ``columns`` has, for each model, a column for each class in the order of the sorted labels; for
    two classes one is enough, that of the second. The others are as in :func:`compare_file`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> table = pd.DataFrame({"y": ["a"] * 60 + ["b"] * 60, "p": [0.1] * 59 + [0.8] * 61})
    >>> with TemporaryDirectory() as folder:
    ...     table.to_csv(f"{folder}/p.csv", index=False)
    ...     compare_predictions_file(f"{folder}/p.csv", "y", {"mine": ["p"]}).recommended
    'mine, plain'
    """
    rows = read_labelled(path, target, text_labels=text_labels)
    probabilities = {}
    for name, model_columns in columns.items():
        named = [find_column(rows.X, column) for column in model_columns]
        if strange := [name for name in named if rows.X[name].dtype.kind != "f"]:
            raise InvalidInputError(f"Column {strange[0]!r} must hold probabilities, got texts.")
        probabilities[name] = rows.X[named].to_numpy(dtype=np.float64)
        if len(model_columns) == 1:
            probabilities[name] = probabilities[name][:, 0]
    comparison = compare_predictions(
        rows.y,
        probabilities,
        goals=bound_goals(goals, rows.classes),
        price=price,
        random_state=random_state,
        progress=progress,
    )
    return Comparison(comparison.to_dict() | {"title": f"Report on {Path(path).name}"})
