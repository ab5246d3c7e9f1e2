"""Whether an ONNX model predicts the same classes as the classifier that it was written from.

The rows are generated from the fitted model: values like those of the fit, the thresholds of its
trees with the numbers beside them, and values that are unknown, far out or missing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import Indices, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.extras import require
from equipoise.goals.labelled_predictions import scores as decision_scores
from equipoise.onnx.column_steps import InputTable
from equipoise.onnx.known_columns import KnownColumn
from equipoise.onnx.set_steps import sets_and_distances

# TOLERANCE: largest difference of probabilities. Some converters of skl2onnx compute in float32
# (2**-24 is 6e-8), and sums of a hundred terms are off by some 1e-6; wrong models were off by 1e-4
# and more.
TOLERANCE = 1e-5
# _LIKELY, _STRANGE, _MISSING: rows with values like those of the fit, with unknown values, and with
# missing values.
_LIKELY, _STRANGE, _MISSING = 128, 32, 16
# _VALUES: values in the first of these at most, so that wide tables get fewer rows.
_VALUES = 1 << 20
# _THRESHOLDS: thresholds of trees to compare at, each with six numbers on it or beside it.
_THRESHOLDS = 64
# _HUGE: thresholds beyond separate missing values from all numbers.
_HUGE = 1e300
# _FAR: distance of unusual numbers, in standard deviations.
_FAR = 10.0


@dataclass(frozen=True, eq=False)
class Original:
    """The classifier that was exported, and how.

    ``parts`` are its steps and the classifier inside, ``rule`` is that of its decisions by
    probabilities, if there is one, and ``dtype`` the type of numbers that the ONNX model takes.
    """

    model: Any
    table: InputTable
    parts: list[Any]
    rule: Vector | Matrix | None
    dtype: str

    @property
    def words(self) -> str:
        """The names of its parts, for errors."""
        return ", ".join(type(each).__name__ for each in self.parts)

    @property
    def largest_weight(self) -> float:
        """That of the decisions, to which errors of probabilities are multiplied."""
        return 1.0 if self.rule is None else float(np.abs(self.rule).max())


def check_agreement(made: Any, original: Original, X: Any) -> None:
    """Refuse an ONNX model that cannot be run, or that predicts other classes."""
    session, words = _session(made, original.words), original.words
    thresholds = _thresholds(made) if len(original.parts) == 1 else []
    groups = _made_up(original.table, thresholds)
    if X is not None:
        groups.append(_given(X, original.table))
    # By groups: where the classifier refuses a group, its rows are tried one by one.
    rounded = [_rounded(group, original) for group in groups]
    rows = np.concatenate([each[_taken(original, each, np.arange(len(each)))] for each in rounded])
    if not len(rows):
        raise InvalidParameterError(
            f"{words} cannot be compared with ONNX: the classifier predicts none of the generated "
            "rows. Give rows of the fit as X."
        )
    labels, largest = _differences(session, original, rows)
    if labels or not largest <= TOLERANCE:
        raise InvalidParameterError(
            f"{words} cannot be written as ONNX: on {len(rows)} rows, {labels} labels differ from "
            f"those of predict, and probabilities or scores by up to {largest:.2g} ({TOLERANCE:g} "
            "is allowed). Use another classifier or step, or register a converter of your own with "
            "skl2onnx."
        )


def first_line(error: Exception) -> str:
    """The first line of an error of another library."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200]


def _session(made: Any, words: str) -> Any:
    """The model in a runtime: some of its operators are there for float32 alone."""
    runtime = require("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(
            made.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise InvalidParameterError(
            f"{words} cannot be run as ONNX in float64: onnxruntime says {first_line(error)!r}. "
            "Do that step before, or use another one."
        ) from error


# Rows


def _made_up(table: InputTable, thresholds: list[tuple[int, float]]) -> list[NDArray[Any]]:
    """Generated rows to compare on, by group; the same for equal models."""
    rng = np.random.default_rng(0)
    columns = _columns(table, thresholds)
    n_rows = int(np.clip(_VALUES // len(columns), _MISSING, _LIKELY))
    likely = np.empty((n_rows, len(columns)), dtype=object if table.by_name else np.float64)
    for place, column in enumerate(columns):
        values = rng.choice(column.values.astype(object), n_rows)
        noise = column.spread * rng.normal(size=n_rows)
        likely[:, place] = values if column.spread == 0 else values + noise
    groups = [likely, _strange(likely[:_STRANGE], columns, rng)]
    if not all(table.texts):
        missing = likely[:_MISSING].copy()
        numbers = np.flatnonzero(~np.array(table.texts))
        missing[np.arange(_MISSING), rng.choice(numbers, _MISSING)] = np.nan
        groups.append(missing)
    if thresholds:
        groups.append(_beside(likely, thresholds, rng))
    return groups


def _columns(table: InputTable, thresholds: list[tuple[int, float]]) -> list[KnownColumn]:
    """The known values of each column, else thresholds of trees, else standard normal values."""
    cuts: dict[int, list[float]] = {}
    for feature, threshold in thresholds:
        cuts.setdefault(feature, []).append(threshold)
    columns = []
    for place, column in enumerate(table.columns):
        values = np.array(cuts.get(place, [0.0]))
        columns.append(column or KnownColumn(values, float(np.std(values)) or 1.0))
    return columns


def _strange(
    rows: NDArray[Any], columns: list[KnownColumn], rng: np.random.Generator
) -> NDArray[Any]:
    """The rows with unknown categories or numbers far out, in one column or more."""
    rows = rows.copy()
    changed = rng.random(rows.shape) < 0.25
    changed[::2] = False
    changed[np.arange(len(rows)), rng.integers(len(columns), size=len(rows))] = True
    for row, place in zip(*np.nonzero(changed), strict=True):
        value, spread = rows[row, place], columns[place].spread
        if isinstance(value, str):
            rows[row, place] = rng.choice(np.array(["", f"{value} ", value.swapcase()], object))
        elif value is not None:
            far = rng.choice([-_FAR, _FAR]) * spread
            rows[row, place] = float(value) + (far or rng.choice([-0.5, 0.5, 1e-9, 1000.0]))
    return rows


def _beside(
    rows: NDArray[Any], thresholds: list[tuple[int, float]], rng: np.random.Generator
) -> NDArray[Any]:
    """Rows on thresholds of trees, and beside them, in the precision that trees may see them in."""
    features, cuts = np.array(thresholds)[rng.permutation(len(thresholds))[:_THRESHOLDS]].T
    values = []
    for kind in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            cut, far = cuts.astype(kind), kind(np.inf)
            values += [np.nextafter(cut, -far), cut, np.nextafter(cut, far)]
    places = np.tile(features.astype(int), len(values))
    beside = rows[rng.integers(len(rows), size=len(places))]
    beside[np.arange(len(beside)), places] = np.concatenate(values)
    return beside


def _thresholds(made: Any) -> list[tuple[int, float]]:
    """Features and thresholds of the trees in a model that read the rows as they are."""
    onnx = require("onnx", extra="onnx")
    cuts: list[tuple[int, float]] = []
    for node in made.graph.node:
        if node.op_type == "TreeEnsemble":
            values = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            splits = onnx.numpy_helper.to_array(values["nodes_splits"])
            pairs = zip(values["nodes_featureids"], splits.tolist(), strict=True)
            cuts += [(int(feature), split) for feature, split in pairs if abs(split) < _HUGE]
    return cuts


def _given(X: Any, table: InputTable) -> NDArray[Any]:
    """The user's rows."""
    if table.by_name and not hasattr(X, "columns"):
        raise InvalidInputError(
            f"X must be a DataFrame with the columns of the fit, got {type(X).__name__}."
        )
    names = table.names if hasattr(X, "columns") else None
    columns = None if names is None else [np.asarray(X[name], dtype=object) for name in names]
    dense = X.toarray() if issparse(X) else X
    rows = np.asarray(dense, dtype=object) if columns is None else np.column_stack(columns)
    if rows.ndim != 2 or rows.shape[1] != len(table.columns):
        raise InvalidInputError(
            f"X must have the {len(table.columns)} columns of the fit, got shape {rows.shape}."
        )
    return rows


def _rounded(rows: NDArray[Any], original: Original) -> NDArray[Any]:
    """The rows with numbers as the ONNX model gets them."""
    rows, table = rows.copy(), original.table
    for place in np.flatnonzero(~np.array(table.texts) & np.array(table.used)):
        with np.errstate(over="ignore"):
            rows[:, place] = rows[:, place].astype(original.dtype).astype(np.float64)
    return rows


# Answers


def _differences(session: Any, original: Original, rows: NDArray[Any]) -> tuple[int, float]:
    """How many labels differ on rows, and by how much probabilities or scores do at most."""
    names = [output.name for output in session.get_outputs()]
    try:
        outputs = dict(zip(names, session.run(None, _feeds(rows, original)), strict=True))
    except Exception as error:
        raise InvalidParameterError(
            f"{original.words} cannot be written as ONNX: onnxruntime fails on rows that predict "
            f"takes, {first_line(error)!r}. Use another classifier or step."
        ) from error
    label, values, sets = outputs["label"], outputs[names[1]], outputs.get("sets")
    model, frame = original.model, _frame(rows, original.table)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        wanted, scores = model.predict(frame), np.asarray(model.decision_function(frame))
        # Scores of a linear model count by their size, weighted probabilities by the weights.
        truth, scale = scores, np.maximum(1.0, np.abs(scores))
        if "probabilities" in names:
            truth, scale = getattr(model, "predict_proba", lambda _: values)(frame), 1.0
        same = np.isnan(truth) & np.isnan(values)
        off = np.where(same, 0.0, np.abs(truth - values) / scale)
        if original.rule is not None and "abstained" in names:
            # The margin of the decision, abstaining included.
            scores = decision_scores(truth, original.rule)
    clear = _margins(scores) > 2 * TOLERANCE * max(1.0, original.largest_weight)
    different = label != wanted
    abstained = np.array([each is None for each in wanted.tolist()])
    if "abstained" in names:
        different = (different & ~abstained) | (outputs["abstained"] != abstained)
    if sets is not None:
        # Abstentions are not written, and near a threshold the set and its label may differ.
        wanted_sets, distances = sets_and_distances(model, frame)
        clear &= distances > 2 * TOLERANCE
        different = (different & ~abstained) | np.any(sets != wanted_sets, axis=1)
    return int(np.count_nonzero(different & clear)), float(np.max(off))


def _margins(scores: NDArray[Any]) -> NDArray[Any]:
    """By how much the predicted class exceeds the next."""
    if scores.ndim == 1:
        return np.asarray(np.abs(scores))
    best = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(best[:, 1] - best[:, 0])


def _taken(original: Original, rows: NDArray[Any], places: Indices) -> Indices:
    """Positions of the rows that the classifier predicts."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            original.model.predict(_frame(rows[places], original.table))
    except Exception:
        if len(places) == 1:
            return places[:0]
        half = len(places) // 2
        halves = [_taken(original, rows, part) for part in (places[:half], places[half:])]
        return np.concatenate(halves)
    return places


def _frame(rows: NDArray[Any], table: InputTable) -> Any:
    """Rows as the classifier takes them."""
    if table.names is None:
        return rows.astype(np.float64)
    numeric = ~np.array(table.texts) & np.array(table.used)
    columns = [rows[:, j].astype(np.float64 if numeric[j] else object) for j in range(len(numeric))]
    pandas = require("pandas", extra="cli")
    return pandas.DataFrame(dict(zip(table.names, columns, strict=True)))


def _feeds(rows: NDArray[Any], original: Original) -> dict[str, NDArray[Any]]:
    """Rows as the ONNX model takes them."""
    table = original.table
    if not table.by_name or table.names is None:
        return {"X": rows.astype(original.dtype)}
    each = enumerate(zip(table.names, table.texts, table.used, strict=True))
    return {
        name: rows[:, [place]].astype(object if text else original.dtype)
        for place, (name, text, used) in each
        if used
    }
