"""A fitted model as plain values, and back.

=====================================  ===================================================
``3``, ``"text"``, ``null``, ``[...]``   themselves
``{"is": "tuple", "of": [...]}``       a tuple; ``"dict"`` has pairs
``{"is": "array", "of": "0.bin"}``     numbers, with their ``dtype`` and ``shape``
``{"is": "texts", "of": [...]}``       an array of texts
``{"is": "LabelCVaR", "with": {}}``    a set, a goal or a value of ours, by public name
``{..., "fitted": {}}``                an estimator, with what :mod:`~equipoise.persistence.kinds`
keeps
=====================================  ===================================================

A name stands for a public class of equipoise, a registered class, or an estimator of ``KINDS``.
Objects are built by the constructor and the checks of their ``Kind``, and by nothing else.
"""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from equipoise.decisions import TunedWeights
from equipoise.decisions.trained import AveragedTrainings
from equipoise.estimators import (
    PredictionSets,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
)
from equipoise.exceptions import InvalidInputError
from equipoise.goals import goal_names
from equipoise.persistence import kinds
from equipoise.persistence import tree_models as trees
from equipoise.persistence.archive import MAX_JSON_BYTES, array_from_bytes, array_to_bytes
from equipoise.persistence.kinds import Kind
from equipoise.tables import AsTable, OrderedForest
from equipoise.weights.by_class import ByClass

# All estimators that a model may hold, by public name.
KINDS = {
    kind.made.__name__: kind
    for kind in (
        Kind(RobustLogisticRegression, kinds.ROBUST, rebuild=kinds.rebuild_linear),
        Kind(RobustLogisticRegressionCV, kinds.ROBUST_CV, rebuild=kinds.rebuild_linear),
        Kind(RobustLinearClassifier, kinds.ROBUST, rebuild=kinds.rebuild_linear),
        Kind(TunedDecisionClassifier, kinds.PLUG_IN, rebuild=kinds.rebuild_plug_in),
        Kind(RobustClassifier, kinds.PLUG_IN, rebuild=kinds.rebuild_plug_in),
        Kind(PredictionSets, kinds.SETS, rebuild=kinds.rebuild_sets),
        Kind(AveragedTrainings, {}, check=kinds.check_averaged),
        Kind(RobustnessCV, kinds.PATH, rebuild=kinds.rebuild_path),
        Kind(LogisticRegression, kinds.LINEAR | {"n_iter_": "plain?"}),
        Kind(RandomForestClassifier, trees.FOREST, trees.keep_forest, trees.rebuild_forest),
        Kind(OrderedForest, trees.FOREST, trees.keep_forest, trees.rebuild_forest),
        Kind(
            HistGradientBoostingClassifier, trees.BOOSTER, trees.keep_booster, trees.rebuild_booster
        ),
        Kind(StandardScaler, kinds.SCALER),
        Kind(SimpleImputer, kinds.IMPUTER, kinds.keep_imputer, kinds.rebuild_imputer),
        Kind(OneHotEncoder, kinds.ENCODER, kinds.keep_encoder, kinds.rebuild_encoder),
        Kind(OrdinalEncoder, kinds.ENCODER, kinds.keep_encoder, kinds.rebuild_encoder),
        Kind(ColumnTransformer, kinds.COLUMNS, kinds.keep_columns, kinds.rebuild_columns),
        Kind(AsTable, {}, check=kinds.check_table),
        Kind(Pipeline, {}),
        Kind(FrozenEstimator, {}),
    )
}

_PLAIN = (bool, int, float, str, type(None))
# Values in all the rows that are made up to fit the estimators of a file anew, and what any such
# fit costs, in values.
MAX_CELLS, FIT = 20_000_000, 20_000
# Estimators inside each other: what scikit-learn asks of pipelines takes time that is exponential.
MAX_NESTING = 8
# What to do with a model that cannot be saved.
_ELSEWHERE = (
    "equipoise.onnx.to_onnx writes many other models, without code; joblib.dump writes all models, "
    "but loading its file runs any code that its author put there"
)
# How many processes work, where files are and what is printed is no part of a model.
_NEVER = ("n_jobs", "memory", "verbose")


def _named(name: object) -> Any:
    """The class of a public name, or None."""
    ours = {each.__name__: each for each in (ByClass, TunedWeights)}
    kind = KINDS.get(str(name))
    return kind.made if kind else {**goal_names(), **ours}.get(str(name))


def written(value: Any, arrays: dict[str, bytes]) -> Any:
    """A model, or a part of one, as values for JSON; ``arrays`` gets those in it, by member."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _PLAIN and (type(value) is not int or abs(value) < 2**63):
        return value
    if isinstance(value, list):
        return [written(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"is": "tuple", "of": written(list(value), arrays)}
    if type(value) is dict:
        return {"is": "dict", "of": [written(list(pair), arrays) for pair in value.items()]}
    if isinstance(value, np.ndarray):
        return _written_array(value, arrays)
    name = type(value).__name__
    if _named(name) is not type(value):
        raise _not_kept(value)
    node = {"is": name, "with": _written_items(_parameters(value), arrays)}
    if name in KINDS and KINDS[name].is_fitted(value):
        node["fitted"] = _written_items(KINDS[name].kept(value), arrays)
    if hasattr(value, "_sklearn_output_config"):
        node["output"] = value._sklearn_output_config.get("transform")
    return node


def _not_kept(value: Any) -> InvalidInputError:
    """What is said of an object that no model file holds."""
    name = type(value).__name__
    if callable(value):
        return InvalidInputError(
            f"it holds a function ({name}), and a model file holds no code: give the columns of a "
            f"ColumnTransformer by name instead of a selector. {_ELSEWHERE}"
        )
    return InvalidInputError(
        f"it holds an object of the class {name!r}, and a model file holds only estimators of "
        f"the kinds {', '.join(KINDS)} with plain parameters, and sets and goals, of which one "
        f"of your own is registered first, as in SETS.register(MySet). {_ELSEWHERE}"
    )


def _written_items(values: Mapping[str, Any], arrays: dict[str, bytes]) -> dict[str, Any]:
    return {name: written(value, arrays) for name, value in values.items()}


def _written_array(array: Any, arrays: dict[str, bytes]) -> dict[str, Any]:
    if array.dtype.kind in "OU" and array.ndim == 1:
        return {"is": "texts", "dtype": array.dtype.kind, "of": written(array.tolist(), arrays)}
    name = f"{len(arrays)}.bin"
    said, arrays[name] = array_to_bytes(array)
    return {"is": "array", "of": name, **said}


def _parameters(value: Any) -> dict[str, Any]:
    """What a constructor was given, but for what it takes anyway."""
    if isinstance(value, ByClass):
        return {"values": value.to_numpy(), "classes": value.classes}
    if not isinstance(value, BaseEstimator):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    known = inspect.signature(type(value)).parameters
    parameters = {k: v for k, v in value.get_params(deep=False).items() if k not in _NEVER}
    return {k: v for k, v in parameters.items() if not _is_default(v, known[k].default)}


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


class ModelReader:
    """Reads the values that :func:`written` gives, each array once."""

    def __init__(self, arrays: dict[str, bytes]) -> None:
        self._arrays = arrays
        self._cells, self._nesting = MAX_CELLS, 0

    def read(self, node: Any) -> Any:
        """The value of a node."""
        if type(node) in _PLAIN:
            return node
        if isinstance(node, list):
            return [self.read(item) for item in node]
        match node.get("is"):
            case "tuple" | "dict" as name:
                return {"tuple": tuple, "dict": dict}[name](self.read(node["of"]))
            case "array":
                return array_from_bytes(node, self._arrays.pop(node["of"]))
            case "texts":
                return _texts(node)
        return self._object(node)

    def _object(self, node: dict[str, Any]) -> Any:
        name = str(node.get("is"))
        made = _named(name)
        if made is None:
            raise InvalidInputError(
                f"it holds an object of the class {name[:200]!r}, which is not known here; if it "
                "is a set or a goal of yours, register it first, as in SETS.register(MySet)"
            )
        if name in KINDS:
            return self._estimator(node, KINDS[name])
        return made(**self._parameters(node, made))

    def _estimator(self, node: dict[str, Any], kind: Kind) -> Any:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise InvalidInputError(f"it nests more than {MAX_NESTING} estimators")
        self._spend(0)
        value = kind.made(**self._parameters(node, kind.made))
        # Of the parameters of scikit-learn this says what they may be.
        if hasattr(kind.made, "_parameter_constraints"):
            value._validate_params()
        kind.check(value)
        if "fitted" in node:
            kept = {key: self.read(item) for key, item in node["fitted"].items()}
            kind.restore(value, kept, self._spend)
        if node.get("output") in ("default", "pandas", "polars"):
            value._sklearn_output_config = {"transform": node["output"]}
        self._nesting -= 1
        return value

    def _parameters(self, node: dict[str, Any], made: Any) -> dict[str, Any]:
        parameters = {key: self.read(item) for key, item in node["with"].items()}
        known = inspect.signature(made).parameters
        strange = [key for key in parameters if key in _NEVER or key not in known]
        if strange:
            raise InvalidInputError(
                f"it sets {strange[0][:60]!r} of {made.__name__}, which no model file does"
            )
        return parameters

    def _spend(self, cells: int) -> None:
        self._cells -= cells + FIT
        if self._cells < 0:
            raise InvalidInputError("its estimators are larger than a model can need")


def _texts(node: dict[str, Any]) -> Any:
    items = node["of"]
    if type(items) is not list or not all(type(item) in _PLAIN for item in items):
        raise InvalidInputError("it holds an array in an unknown form")
    if node["dtype"] == "O":
        made = np.empty(len(items), dtype=object)
        made[:] = items
        return made
    # Every text of such an array takes the room of the longest.
    if 4 * len(items) * max(map(len, items), default=0) > MAX_JSON_BYTES:
        raise InvalidInputError("it holds texts that are longer than a model can need")
    return np.array(items, dtype=np.str_)
