"""Forests and boosted trees, rebuilt node by node.

scikit-learn's compiled code follows nodes without checks: a child, a feature or a set of categories
outside of its array would be read from memory that is not the tree's. So the nodes of all trees are
saved as plain columns, and trees are rebuilt from arrays in which every inner node has two children
behind it, every other node but the root one parent, and every feature is a column of the rows.

A leaf has no children, -1. ``node_count`` says how many nodes each tree has, and the columns hold
all nodes of the first tree, then those of the next.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from equipoise.arrays import Indices, Mask, NDArray
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.persistence.kinds import Spend, impossible, rows_of_levels, take_fitted

MAX_TREES = 100_000
MAX_DEPTH = 4096

_SPLITS = ("left", "right", "feature", "missing_go_to_left")
_TREES = {"classes_": "classes", "node_count": "int t"} | dict.fromkeys(_SPLITS, "int n")
FOREST = _TREES | {"threshold": "real n", "n_node_samples": "int n", "value": "float n k"}
FOREST |= dict.fromkeys(("impurity", "weighted_n_node_samples"), "float n")
BOOSTER = _TREES | {"num_threshold": "real n", "value": "float n", "gain": "float n"}
BOOSTER |= {"count": "int n", "is_categorical": "int n", "bits": "int s 8", "baseline": "float m"}
BOOSTER |= {"is_categorical_": "flag d?", "categories": "plain", "do_early_stopping_": "plain"}
BOOSTER |= {"train_score_": "float i", "validation_score_": "float j"}


def _nodes_of_trees(
    estimator: Any, kept: dict[str, Any], width: int
) -> tuple[list[slice], Mask, Indices]:
    """Where each tree is, which nodes are no leaves, and how deep each node is."""
    counts, left, right, feature = (
        kept[name].astype(np.int64) for name in ("node_count", "left", "right", "feature")
    )
    n = len(left)
    few = 0 < len(counts) <= MAX_TREES and 1 <= counts.min() <= counts.max() <= n
    if not few or counts.sum() != n:
        raise impossible(estimator)
    ends = np.cumsum(counts)
    start, end = np.repeat(ends - counts, counts), np.repeat(ends, counts)
    inner, here = left != -1, np.arange(n)
    children = np.stack([left, right]) + start
    # Behind its parent, so that every walk ends, and of one parent, so that it is a tree.
    below = (children > here) & (children < end)
    parents = np.bincount(children[:, inner & below.all(axis=0)].ravel(), minlength=n)
    if (
        not np.all(below[:, inner])
        or np.any(right[~inner] != -1)
        or np.any(parents != (here != start))
        or np.any((feature[inner] < 0) | (feature[inner] >= width))
    ):
        raise impossible(estimator)
    depth = np.zeros(n, dtype=np.int64)
    level = ends - counts
    for step in range(MAX_DEPTH):
        level = children[:, level[inner[level]]].ravel()
        if not len(level):
            return [slice(*pair) for pair in zip(ends - counts, ends, strict=True)], inner, depth
        depth[level] = step + 1
    raise InvalidInputError(f"its trees are deeper than {MAX_DEPTH} nodes")


def _columns(nodes: NDArray[Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: nodes[name] for name in names if name in (nodes.dtype.names or ())}


def _filled(like: NDArray[Any], columns: dict[str, Any]) -> NDArray[Any]:
    """Nodes of the type of others, column by column."""
    if set(like.dtype.names or ()) != set(columns):
        raise InvalidInputError("trees of this version of scikit-learn are not known here")
    nodes = np.zeros(len(columns["missing_go_to_left"]), like.dtype)
    for name, values in columns.items():
        nodes[name] = values
    return nodes


def keep_forest(forest: Any) -> dict[str, Any]:
    """The nodes of all trees, column by column."""
    states = [each.tree_.__getstate__() for each in forest.estimators_]
    nodes = np.concatenate([state["nodes"] for state in states])
    return _columns(nodes, FOREST) | {
        "node_count": np.array([len(state["nodes"]) for state in states]),
        "left": nodes["left_child"],
        "right": nodes["right_child"],
        "value": np.concatenate([state["values"] for state in states])[:, 0],
    }


def rebuild_forest(forest: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Fit a stump to empty rows, and take copies of it with other nodes."""
    width, classes, value = kept["n_features_in_"], kept["classes_"], kept["value"]
    parts, inner, depth = _nodes_of_trees(forest, kept, width)
    if np.any(value < 0) or np.any(np.abs(value.sum(axis=1) - 1) > 1e-6):
        raise impossible(forest)
    spend(width + len(classes))
    stump = RandomForestClassifier(1, bootstrap=False, max_depth=1)
    take_fitted(forest, stump.fit(csr_matrix((len(classes), width)), classes))
    like = stump.estimators_[0]
    columns = {
        "left_child": kept["left"],
        "right_child": kept["right"],
        "feature": np.where(inner, kept["feature"], -2),
        "threshold": np.where(inner, kept["threshold"], -2.0),
        "missing_go_to_left": kept["missing_go_to_left"] != 0,
        **{n: kept[n] for n in ("impurity", "n_node_samples", "weighted_n_node_samples")},
    }
    nodes = _filled(like.tree_.__getstate__()["nodes"], columns)
    forest.estimators_ = []
    for part in parts:
        tree = type(like.tree_)(width, np.array([len(classes)], dtype=np.intp), 1)
        state = {"nodes": nodes[part], "values": np.ascontiguousarray(value[part][:, None])}
        sizes = {"node_count": len(state["nodes"]), "max_depth": int(depth[part].max())}
        tree.__setstate__(state | sizes)
        forest.estimators_.append(copy(like))
        forest.estimators_[-1].tree_ = tree


def keep_booster(booster: Any) -> dict[str, Any]:
    """The nodes of all trees, column by column, and the categories that they know."""
    trees = [tree for stage in booster._predictors for tree in stage]
    nodes = np.concatenate([tree.nodes for tree in trees])
    by_set = [tree.nodes["bitset_idx"][tree.nodes["is_categorical"] != 0] for tree in trees]
    sets = [tree.raw_left_cat_bitsets[rows] for tree, rows in zip(trees, by_set, strict=True)]
    leaf = nodes["is_leaf"] != 0
    encoder = booster._preprocessor and booster._preprocessor.named_transformers_["encoder"]
    return _columns(nodes, BOOSTER) | {
        "node_count": np.array([len(tree.nodes) for tree in trees]),
        **{side: np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right")},
        "feature": nodes["feature_idx"],
        "bits": np.concatenate(sets).reshape(-1, 8),
        "baseline": np.ravel(booster._baseline_prediction),
        "categories": list(encoder.categories_) if encoder else [],
    }


def rebuild_booster(booster: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Fit a single leaf to rows with all categories, and take it with other trees."""
    parts, inner, depth = _nodes_of_trees(booster, kept, kept["n_features_in_"])
    by_set, bits = inner & (kept["is_categorical"] != 0), kept["bits"]
    per_stage = len(kept["baseline"])
    # Columns of categories come first in what the trees read.
    mask, n_sets = kept["is_categorical_"], len(kept["categories"])
    if (
        len(parts) % per_stage
        or n_sets != (0 if mask is None else mask.sum())
        or len(bits) != by_set.sum()
        or np.any(kept["feature"][by_set] >= n_sets)
    ):
        raise impossible(booster)
    small = _single_leaf(kept, spend)
    take_fitted(booster, small)
    like = small._predictors[0][0]
    columns = {name: kept[name] for name in ("value", "count", "num_threshold", "gain")} | {
        "feature_idx": np.where(inner, kept["feature"], 0),
        "missing_go_to_left": kept["missing_go_to_left"] != 0,
        **{side: np.where(inner, kept[side], 0) for side in ("left", "right")},
        "depth": depth,
        "is_leaf": ~inner,
        "is_categorical": by_set,
        # Of rows put into bins, which only a fit has.
        "bin_threshold": 0,
        "bitset_idx": 0,
    }
    nodes, trees, seen = _filled(like.nodes, columns), [], 0
    for part in parts:
        tree = nodes[part].copy()
        places = np.flatnonzero(tree["is_categorical"])
        tree["bitset_idx"][places] = np.arange(len(places))
        sets = bits[seen : seen + len(places)].astype(np.uint32)
        seen += len(places)
        trees.append(type(like)(tree, np.zeros_like(sets), sets))
    booster._predictors = [trees[i : i + per_stage] for i in range(0, len(trees), per_stage)]
    booster._baseline_prediction = kept["baseline"].reshape(small._baseline_prediction.shape)


def _single_leaf(kept: dict[str, Any], spend: Spend) -> Any:
    """A booster of one leaf, fitted to rows with all the classes and categories."""
    width, classes, levels = (kept[n] for n in ("n_features_in_", "classes_", "categories"))
    mask, names = kept["is_categorical_"], kept["feature_names_in_"]
    n_bins = max([2, *map(len, levels)])
    n_rows = max(n_bins, len(classes))
    spend(width * (n_rows + 4 * n_bins))
    rows = np.zeros((n_rows, width))
    if mask is not None:
        known = rows_of_levels(levels, spend, n_rows)
        rows = rows.astype(np.result_type(rows, known))
        rows[:, mask] = known
    settings = {"max_iter": 1, "min_samples_leaf": n_rows, "early_stopping": False}
    small = HistGradientBoostingClassifier(
        categorical_features=mask, max_bins=min(n_bins, 255), **settings
    )
    table = rows if names is None else require("pandas", extra="cli").DataFrame(rows, columns=names)
    return small.fit(table, np.resize(classes, n_rows))
