"""Inputs of a model, steps of a pipeline by their columns, and encoders, as nodes in float64.

skl2onnx compares categories that are numbers as whole numbers, and takes no table with columns of
texts and of numbers; what is here does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.onnx.graph import Graph
from equipoise.onnx.known_columns import KnownColumn, known_columns, positions_by_part


@dataclass(frozen=True, eq=False)
class InputTable:
    """What a model reads: what is known of each column, which are used, and names, if any."""

    columns: list[KnownColumn | None]
    used: list[bool]
    names: list[str] | None

    @property
    def texts(self) -> list[bool]:
        """Whether each column holds texts."""
        return [column is not None and column.is_text for column in self.columns]

    @property
    def by_name(self) -> bool:
        """Whether each column is an input of its own: where some are texts, they are."""
        return any(self.texts)

    def enter(self, graph: Graph) -> GraphColumns:
        """The features of a graph, whose inputs are these."""
        width = len(self.columns)
        if not self.by_name:
            return GraphColumns(graph, width, matrix=graph.input("X", width))
        if self.names is None:
            raise InvalidParameterError(
                "columns of texts have no names: fit to a DataFrame, whose columns become inputs "
                "of the ONNX model by name."
            )
        each = zip(self.names, self.texts, self.used, strict=True)
        parts = [graph.input(name, 1, text=text) if used else "" for name, text, used in each]
        return GraphColumns(graph, width, parts=parts, texts=self.texts)


def input_table(stages: list[Any], n_features: int, names: Any) -> InputTable:
    """What steps and a classifier read of so many features."""
    first = next((stage for stage in stages if not changes_nothing(stage)), None)
    used = [True] * n_features
    if isinstance(first, ColumnTransformer):
        kept = {place for *_, places in positions_by_part(first) for place in places}
        used = [place in kept for place in range(n_features)]
    known = known_columns(stages, n_features)
    return InputTable(known, used, None if names is None else [str(name) for name in names])


class GraphColumns:
    """Columns inside of a graph: one matrix of numbers, or a value for each column."""

    def __init__(
        self,
        graph: Graph,
        width: int,
        *,
        matrix: str = "",
        parts: list[str] | None = None,
        texts: list[bool] | None = None,
    ) -> None:
        self.graph, self.width = graph, width
        self._matrix, self._parts = matrix, parts
        self._texts = [False] * width if texts is None else texts

    @property
    def is_text(self) -> bool:
        """Whether all columns hold texts."""
        return all(self._texts)

    def column(self, place: int) -> tuple[str, bool]:
        """One column, and whether it holds texts."""
        if self._parts is not None:
            return self._parts[place], self._texts[place]
        where = self.graph.constant(np.array([place]))
        return self.graph.add("Gather", self._matrix, where, axis=1), False

    def take(self, places: list[int]) -> GraphColumns:
        """Some of the columns."""
        if self._parts is not None:
            parts = [self._parts[place] for place in places]
            texts = [self._texts[place] for place in places]
            return GraphColumns(self.graph, len(places), parts=parts, texts=texts)
        where = self.graph.constant(np.array(places, dtype=np.int64))
        chosen = self.graph.add("Gather", self._matrix, where, axis=1)
        return GraphColumns(self.graph, len(places), matrix=chosen)

    def matrix(self) -> str:
        """All columns beside each other."""
        if self._parts is None:
            return self._matrix
        if any(self._texts) and not self.is_text:
            raise InvalidParameterError(
                "a step that reads columns of texts and of numbers cannot be written as ONNX: give "
                "each to a step of its own in a ColumnTransformer."
            )
        return self.graph.add("Concat", *self._parts, axis=1)


def encoded(encoder: OneHotEncoder | OrdinalEncoder, features: GraphColumns) -> GraphColumns:
    """What an encoder makes of categories, which are compared as they are."""
    graph, parts, width = features.graph, [], 0
    for place, levels in enumerate(encoder.categories_):
        codes, unknown = _codes(encoder, place)
        values, is_text = features.column(place)
        same = _same(graph, values, levels, is_text=is_text)
        coded = graph.add("MatMul", same, graph.constant(codes))
        known = graph.add("ReduceMax", same, axes=[1], keepdims=1)
        known = graph.add("Greater", known, graph.constant(0.0))
        parts.append(graph.add("Where", known, coded, graph.constant(unknown[None])))
        width += codes.shape[1]
    return GraphColumns(graph, width, matrix=graph.add("Concat", *parts, axis=1))


def imputed(imputer: SimpleImputer, features: GraphColumns) -> GraphColumns:
    """Missing values filled in float64; of texts there are none in ONNX."""
    missing, filled = imputer.missing_values, np.asarray(imputer.statistics_)
    is_plain = isinstance(missing, float) and np.isnan(missing) and not imputer.add_indicator
    if features.is_text and is_plain:
        return features
    rows = features.matrix()
    if not is_plain or np.isnan(filled).any():
        raise InvalidParameterError(
            "SimpleImputer cannot be written as ONNX but with nan for missing, some values, and no "
            "indicators: use another step."
        )
    graph = features.graph
    values = graph.add("Where", graph.add("IsNaN", rows), graph.constant(filled[None]), rows)
    return GraphColumns(graph, len(filled), matrix=values)


def _same(graph: Graph, values: str, levels: NDArray[Any], *, is_text: bool) -> str:
    """Ones where values of a column are a category, zeros elsewhere."""
    if not is_text:
        numbers = levels.astype(np.float64)[None]
        same = graph.cast(graph.add("Equal", values, graph.constant(numbers)), "float64")
        if not np.isnan(numbers).any():
            return same
        missing = graph.cast(graph.add("IsNaN", values), "float64")
        where = graph.constant(np.isnan(numbers).astype(np.float64))
        return graph.add("Add", same, graph.add("Mul", missing, where))
    if not all(isinstance(level, str) for level in levels.tolist()):
        raise InvalidParameterError(
            "an encoder whose categories are texts and missing values cannot be written as ONNX, "
            "which has no missing texts: fill them with a text before the fit."
        )
    one_hot = graph.add(
        "OneHotEncoder", values, domain="ai.onnx.ml", cats_strings=levels.tolist(), zeros=1
    )
    flat = graph.add("Reshape", one_hot, graph.constant(np.array([-1, len(levels)])))
    return graph.cast(flat, "float64")


def _codes(encoder: OneHotEncoder | OrdinalEncoder, place: int) -> tuple[Matrix, Vector]:
    """The row that stands for each category of a column, and the one for any other value."""
    levels, n = encoder.categories_[place], len(encoder.categories_[place])
    ranks, infrequent = np.arange(n), getattr(encoder, "infrequent_categories_", None)
    together = None if infrequent is None else infrequent[place]
    if together is not None:
        rare = np.isin(levels, together)
        ranks = np.where(rare, n - rare.sum(), np.cumsum(~rare) - 1)
    if isinstance(encoder, OrdinalEncoder):
        codes = ranks[:, None].astype(np.float64)
        if levels.dtype.kind == "f" and np.isnan(levels[-1]):
            raise InvalidParameterError(
                "OrdinalEncoder with missing values cannot be written as ONNX: fill them before."
            )
        other = encoder.unknown_value if encoder.handle_unknown == "use_encoded_value" else np.nan
        return codes, np.array([other], dtype=np.float64)
    codes = np.eye(ranks.max() + 1)
    joins = encoder.handle_unknown in ("infrequent_if_exist", "warn") and together is not None
    unknown = codes[-1] if joins else np.zeros(len(codes))
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[place]
    kept = np.ones(len(codes), dtype=bool)
    if dropped is not None:
        kept[ranks[dropped]] = False
    return codes[ranks][:, kept], unknown[kept]


def by_columns(
    transformer: ColumnTransformer,
    features: GraphColumns,
    write: Callable[[list[Any], GraphColumns], GraphColumns],
) -> GraphColumns:
    """What the parts of a column transformer make of their columns, beside each other."""
    graph, parts, width = features.graph, [], 0
    weights = transformer.transformer_weights or {}
    for name, part, places in positions_by_part(transformer):
        if not places:
            continue
        made = write([part], features.take(places))
        values, width = made.matrix(), width + made.width
        if name in weights:
            values = graph.add("Mul", values, graph.constant(np.float64(weights[name])))
        parts.append(values)
    return GraphColumns(graph, width, matrix=graph.add("Concat", *parts, axis=1))


def changes_nothing(step: Any) -> bool:
    """Whether a step passes its columns on."""
    if isinstance(step, FunctionTransformer):
        return step.func is None
    return step is None or (isinstance(step, str) and step == "passthrough")
