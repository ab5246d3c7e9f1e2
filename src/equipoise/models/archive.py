"""The zip archive of a model: written with public names, and looked through before it is believed.

Our own classes stand in it under public names, ``equipoise.LabelCVaR``, whatever file of the
package they are in; so do sets and goals that a user has registered. A type of others is known only
if creating it from any attributes runs nothing but its own harmless code.

A hostile archive may unpack to more than a machine holds, nest deeper than Python can follow, or
name types that run code. Each is refused with the sizes and names read from the archive's own
tables, before skops sees it. Trees of gradient boosting hold raw positions of children, features
and bit sets, and encoders the columns they write to; scikit-learn does not look whether these lie
inside their arrays, and a hostile file could end the process, or loop for ever. So each is looked
at once, after loading.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn._loss._loss import CyHalfBinomialLoss, CyHalfMultinomialLoss
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import OneHotEncoder

from equipoise import estimators
from equipoise.estimators.local_moments import Smoother
from equipoise.exceptions import InvalidInputError
from equipoise.goals import goal_names
from equipoise.metrics.fractional import Coefficients
from equipoise.risks import RiskIntervals
from equipoise.weights.by_class import ByClass

SCHEMA, FACTS = "schema.json", "equipoise.json"

MAX_BYTES = 1 << 30
MAX_SCHEMA_BYTES = 1 << 27
MAX_FACTS_BYTES = 1 << 24
MAX_MEMBERS = 1 << 20
MAX_DEPTH = 200
_TOO_LARGE = "would unpack to more than a model can need"

# The module that our classes have in a file; skops finds them in this one.
PACKAGE = "equipoise"

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
_NUMPY = {f"numpy.{name}" for name in _SCALARS.split()}
_PYTHON = {"builtins.bool", "builtins.float", "builtins.int", "builtins.str"}

# Loaders of the skops format with the types of others that each may make. Loaders that are missing
# (methods, operators, sparse matrices, ...) occur in no model of ours.
_ALLOWED: dict[str, set[str]] = {
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "FunctionNode": {"sklearn.utils.validation.check_array"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "LossNode": {f"{one.__module__}.{one.__name__}" for one in _LOSSES},
    "NdArrayNode": {"numpy.ndarray"} | _NUMPY,
    "ObjectNode": _SKLEARN,
    "PartialNode": {"functools.partial"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": _PYTHON | _NUMPY,
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


def written(dumped: bytes, facts: str) -> bytes:
    """What skops wrote, with public names and the facts beside it.

    Equal models and facts make equal bytes: skops names objects and arrays by their addresses in
    memory, and here they are numbered.
    """
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members.pop(SCHEMA))
    names = {(one.__module__, one.__name__): name for name, one in _public_classes().items()}
    numbers: dict[str, int] = {}
    for node in _nodes(schema):
        public = names.get((node["__module__"], node["__class__"]))
        if public is not None:
            node.update({"__module__": PACKAGE, "__class__": public})
        if isinstance(node.get("__id__"), int):
            node["__id__"] = numbers.setdefault(str(node["__id__"]), len(numbers) + 1)
        if isinstance(node.get("file"), str):
            node["file"] = _numbered(node["file"], numbers)
    arrays = {_numbered(name, numbers): data for name, data in members.items()}
    text = json.dumps(schema, indent=2).encode()
    return _packed({**arrays, SCHEMA: text, FACTS: facts.encode()}, zipfile.ZIP_DEFLATED)


def _numbered(name: str, numbers: dict[str, int]) -> str:
    address, dot, ending = name.partition(".")
    return f"{numbers.setdefault(address, len(numbers) + 1)}{dot}{ending}"


def _packed(members: dict[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            # Without a date of its own a member has the first that the format knows.
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return buffer.getvalue()


def read_facts(data: bytes) -> bytes:
    """The text of the training facts, from an archive of reasonable size."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _members(archive)
        return archive.read(FACTS)


def checked(data: bytes) -> bytes:
    """The archive with only known types and honest arrays in it, as skops can load it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = _members(archive)
        schema = json.loads(archive.read(SCHEMA))
        arrays = []
        for node in _nodes(schema):
            check_type(node)
            if "file" in node:
                arrays.append(node["file"])
        if any(name not in members for name in arrays):
            raise InvalidInputError("it refers to a member that it does not hold")
        if sum(members[name].file_size for name in arrays) > MAX_BYTES:
            raise InvalidInputError(f"its arrays {_TOO_LARGE}")
        needed = sorted(set(arrays))
        for name in needed:
            _check_array(archive, members[name])
        contents = {name: archive.read(name) for name in needed}
    return _packed({**contents, SCHEMA: json.dumps(schema).encode()}, zipfile.ZIP_STORED)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found = archive.infolist()
    members = {member.filename: member for member in found}
    if len(members) != len(found):
        raise InvalidInputError("it holds two members of one name")
    for name, limit in ((SCHEMA, MAX_SCHEMA_BYTES), (FACTS, MAX_FACTS_BYTES)):
        if name not in members:
            raise InvalidInputError(f"it holds no {name}, so it is no model of equipoise")
        if members[name].file_size > limit:
            raise InvalidInputError(f"{name} {_TOO_LARGE}")
    if len(members) > MAX_MEMBERS or sum(m.file_size for m in found) > MAX_BYTES:
        raise InvalidInputError(f"it {_TOO_LARGE}")
    return members


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Everything in a schema that stands for an object."""
    stack = [(schema, 0)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise InvalidInputError("it nests deeper than a model can")
        if isinstance(value, list):
            stack.extend((item, depth + 1) for item in value)
        elif isinstance(value, dict):
            stack.extend((item, depth + 1) for item in value.values())
            # A class of that name may be the key of a dictionary, and its value then is a node.
            if not isinstance(value.get("__loader__", {}), dict):
                yield value


def _check_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse an array whose header asks for other than the bytes that follow it."""
    with archive.open(member) as stream:
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        read = readers.get(np.lib.format.read_magic(stream))
        if read is None:
            raise InvalidInputError("it holds an array in an unknown form")
        shape, _, dtype = read(stream)
        rest = member.file_size - stream.tell()
    if dtype.hasobject or dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != rest:
        raise InvalidInputError("it holds an array that is not as long as it says")


def check_positions(model: Any) -> None:
    """Refuse a loaded model whose trees or encoders point outside their arrays."""
    checks = {HistGradientBoostingClassifier: _booster_fits, OneHotEncoder: _encoder_fits}
    for part in _parts_of(model):
        for kind, fits in checks.items():
            if isinstance(part, kind) and not fits(part):
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
    categorical, stages = mapper.is_categorical_, booster._predictors
    return (
        type(width) is int
        and categorical.shape == (width,)
        and categorical.dtype == np.uint8
        and len(mapper.bin_thresholds_) == width
        and all(_inside(mapper.bin_thresholds_[i], 256) for i in np.flatnonzero(categorical))
        and {len(stage) for stage in stages} == {booster.n_trees_per_iteration_}
        and booster._baseline_prediction.shape == (1, booster.n_trees_per_iteration_)
        and all(_tree_fits(tree, categorical) for stage in stages for tree in stage)
    )


def _inside(values: Any, length: Any) -> bool:
    return bool(np.all((values >= 0) & (values < length)))


def _tree_fits(tree: Any, categorical: Any) -> bool:
    nodes, bits = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.ndim != 1 or len(nodes) == 0 or nodes.dtype.names is None:
        return False
    if bits.ndim != 2 or bits.shape[1] != 8 or bits.dtype != np.uint32:
        return False
    places = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[places]
    feature = inner["feature_idx"]
    # Children come after their parent, so every path ends.
    below = [(inner[side] > places) & (inner[side] < len(nodes)) for side in ("left", "right")]
    if not (np.all(below) and _inside(feature, len(categorical))):
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
    return all(
        0 < len(levels) <= (width if places is None else len(places))
        and (places is None or _inside(places, width))
        for levels, places, width in zip(encoder.categories_, maps, widths, strict=True)
    )
