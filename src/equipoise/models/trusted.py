"""What a model file may hold: types by name, and numbers that stay inside their arrays.

Our own classes stand in a file under public names, ``equipoise.LabelCVaR``, whatever file of the
package they are in; so do sets and goals that a user has registered. A type of others belongs here
only if creating it from any attributes runs nothing but its own harmless code.

Trees of gradient boosting hold raw positions of children, features and bit sets, and encoders the
columns they write to. scikit-learn does not look whether these lie inside their arrays: a hostile
file could end the process, or loop for ever. So each is looked at once, after loading.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn._loss._loss import CyHalfBinomialLoss, CyHalfMultinomialLoss

from equipoise import estimators
from equipoise.estimators.local_moments import Smoother
from equipoise.exceptions import InvalidInputError
from equipoise.goals import goal_names
from equipoise.metrics.fractional import Coefficients
from equipoise.risks import RiskIntervals
from equipoise.weights.by_class import ByClass

# The module that our classes have in a file; skops finds them in this one.
PACKAGE = "equipoise"

_WORDS = 8
_CATEGORIES = 256

_SKLEARN = {
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",  # up to scikit-learn 1.6
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._label.LabelEncoder",
}
# Under their own names, which depend on the version of scikit-learn.
_LOSSES = (CyHalfBinomialLoss, CyHalfMultinomialLoss)
_SCALARS = "bool bool_ float32 float64 int32 int64 str_ uint32 uint64"
_NUMPY_SCALARS = {f"numpy.{name}" for name in _SCALARS.split()}

# Loaders of the skops format with the types of others that each may make. Loaders that are missing
# (methods, operators, sparse matrices, ...) occur in no model of ours.
_ALLOWED: dict[str, set[str]] = {
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "FunctionNode": {"sklearn.utils.validation.check_array"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "LossNode": {f"{loss.__module__}.{loss.__name__}" for loss in _LOSSES},
    "NdArrayNode": {"numpy.ndarray"} | _NUMPY_SCALARS,
    "ObjectNode": _SKLEARN,
    "PartialNode": {"functools.partial"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {"builtins.bool", "builtins.float", "builtins.int", "builtins.str"}
    | _NUMPY_SCALARS,
}
# How our classes are made, other than by setting their attributes.
_LOADERS: dict[type, str] = {ByClass: "ConstructorFromReduceNode", Coefficients: "TupleNode"}


def _public_classes() -> dict[str, Any]:
    """Our classes that a model may hold, and those that were registered, by name."""
    ours = {name: getattr(estimators, name) for name in estimators.__all__}
    ours |= {each.__name__: each for each in (ByClass, Coefficients, RiskIntervals, Smoother)}
    return {name: each for name, each in {**goal_names(), **ours}.items() if isinstance(each, type)}


def __getattr__(name: str) -> Any:
    """Where skops finds our classes."""
    found = _public_classes().get(name)
    if found is None:
        raise AttributeError(f"no class {name!r} is known to models")
    return found


def public_names() -> dict[tuple[str, str], str]:
    """The public name of each of our classes, by its module and name of today."""
    return {(each.__module__, each.__name__): name for name, each in _public_classes().items()}


def trusted_types() -> list[str]:
    """What skops is told to trust, beside its own defaults."""
    ours = {f"{__name__}.{name}" for name in _public_classes()}
    return sorted(set().union(ours, *_ALLOWED.values()))


def check_type(node: dict[str, Any]) -> None:
    """Refuse a node of an unknown type, and let skops find one of ours."""
    loader, module, name = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
    if module == PACKAGE and loader in {"ObjectNode", *_LOADERS.values()}:
        found = _public_classes().get(str(name))
        if found is None:
            raise InvalidInputError(
                f"it holds an object of the class {str(name)[:200]!r}, which is not known here; if "
                "it is a set or a goal of yours, register it first, as in SETS.register(MySet)"
            )
        if loader == _LOADERS.get(found, "ObjectNode"):
            node["__module__"] = __name__
            return
    if not isinstance(loader, str) or f"{module}.{name}" not in _ALLOWED.get(loader, ()):
        raise InvalidInputError(
            f"it holds an object of type {f'{module}.{name}'[:200]!r}, which no model of equipoise "
            "has; a file that asks for unknown types may want to run code"
        )


def check_positions(model: Any) -> None:
    """Refuse a loaded model whose trees or encoders point outside their arrays."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import OneHotEncoder

    for part in _parts_of(model):
        fits = True
        if isinstance(part, HistGradientBoostingClassifier):
            fits = _booster_fits(part)
        elif isinstance(part, OneHotEncoder):
            fits = _encoder_fits(part)
        if not fits:
            raise InvalidInputError(f"its {type(part).__name__} points outside its own arrays")


def _parts_of(model: Any) -> Iterator[Any]:
    """A model and everything inside it that has attributes."""
    seen: set[int] = set()
    stack = [model]
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, str | bytes | np.generic | type):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, np.ndarray):
            stack.extend(value.ravel().tolist() if value.dtype == object else ())
        elif hasattr(value, "__dict__"):
            yield value
            stack.extend(vars(value).values())


def _booster_fits(booster: Any) -> bool:
    """Whether a fitted booster's trees stay inside their arrays; one not fitted has none."""
    if not hasattr(booster, "_predictors"):
        return True
    width, mapper = booster._n_features, booster._bin_mapper
    categorical = mapper.is_categorical_
    trees = [tree for stage in booster._predictors for tree in stage]
    per_stage = {len(stage) for stage in booster._predictors}
    return (
        type(width) is int
        and categorical.shape == (width,)
        and categorical.dtype == np.uint8
        and len(mapper.bin_thresholds_) == width
        and all(_are_categories(mapper.bin_thresholds_[i]) for i in np.flatnonzero(categorical))
        and per_stage == {booster.n_trees_per_iteration_}
        and booster._baseline_prediction.shape == (1, booster.n_trees_per_iteration_)
        and all(_tree_fits(tree, categorical) for tree in trees)
    )


def _are_categories(values: Any) -> bool:
    return bool(np.all((values >= 0) & (values < _CATEGORIES)))


def _tree_fits(tree: Any, categorical: Any) -> bool:
    nodes, bits = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.ndim != 1 or len(nodes) == 0 or nodes.dtype.names is None:
        return False
    if bits.ndim != 2 or bits.shape[1] != _WORDS or bits.dtype != np.uint32:
        return False
    places = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[places]
    feature = inner["feature_idx"]
    # Children come after their parent, so every path ends.
    below = [(inner[side] > places) & (inner[side] < len(nodes)) for side in ("left", "right")]
    if not (np.all(below) and np.all((feature >= 0) & (feature < len(categorical)))):
        return False
    by_set = inner["is_categorical"] != 0
    known = categorical[feature] != 0
    return bool(np.all(~by_set | (known & (inner["bitset_idx"] < len(bits)))))


def _encoder_fits(encoder: Any) -> bool:
    """Whether a fitted encoder writes to columns that it has; one not fitted writes none."""
    if not hasattr(encoder, "categories_"):
        return True
    widths = encoder._n_features_outs
    maps = getattr(encoder, "_default_to_infrequent_mappings", None)
    maps = maps if maps is not None and encoder._infrequent_enabled else [None] * len(widths)
    if encoder.drop is not None or encoder._drop_idx_after_grouping is not None:
        return False
    if not len(widths) == len(maps) == len(encoder.categories_):
        return False
    return all(map(_levels_fit, encoder.categories_, maps, widths))


def _levels_fit(levels: Any, mapping: Any, width: Any) -> bool:
    if mapping is None:
        return bool(0 < len(levels) <= width)
    inside = bool(np.all((mapping >= 0) & (mapping < width)))
    return len(mapping) >= len(levels) > 0 and inside
