"""Numbers in a loaded model that compiled code would trust blindly.

Trees of gradient boosting hold raw positions of children, features and bit sets, and encoders the
columns they write to. scikit-learn does not look whether these lie inside their arrays: a hostile
file could end the process, or loop for ever. Here each is looked at once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.exceptions import InvalidInputError

_WORDS = 8
_CATEGORIES = 256


def check_sound(model: Any) -> None:
    """Refuse a loaded model whose trees or encoders point outside their arrays."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import OneHotEncoder

    for part in parts_of(model):
        sound = True
        if isinstance(part, HistGradientBoostingClassifier):
            sound = _booster_is_sound(part)
        elif isinstance(part, OneHotEncoder):
            sound = _encoder_is_sound(part)
        if not sound:
            raise InvalidInputError(f"its {type(part).__name__} points outside its own arrays")


def parts_of(model: Any) -> Iterator[Any]:
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


def _booster_is_sound(booster: Any) -> bool:
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
        and all(_tree_is_sound(tree, categorical) for tree in trees)
    )


def _are_categories(values: Any) -> bool:
    return bool(np.all((values >= 0) & (values < _CATEGORIES)))


def _tree_is_sound(tree: Any, categorical: Any) -> bool:
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


def _encoder_is_sound(encoder: Any) -> bool:
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
