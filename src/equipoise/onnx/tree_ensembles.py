"""Forests and boosted trees as one ONNX node in float64, which compares as they do.

Conventions
-----------
A tree is arrays with an entry a node: ``left`` and ``right`` are children, negative for a leaf.
Rows go left where their ``feature`` is at most the ``threshold`` (below it, for XGBoost), and where
it is missing if ``missing_left``. A leaf adds ``weight`` to one ``target``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.onnx.graph import Graph

_AT_MOST, _BELOW = 0, 1
_SUM = 1
# Up to this size LightGBM takes a number for zero (kZeroThreshold in its source), a float32.
_LIGHTGBM_ZERO = float(np.float32(1e-35))
_TENSORS = ("nodes_splits", "leaf_weights")
_NODES = (
    "nodes_featureids",
    "nodes_splits",
    "nodes_truenodeids",
    "nodes_falsenodeids",
    "nodes_trueleafs",
    "nodes_falseleafs",
    "nodes_missing_value_tracks_true",
    "leaf_targetids",
    "leaf_weights",
)


@dataclass(frozen=True, eq=False)
class ExportedTree:
    """One tree, as above."""

    feature: Indices
    threshold: Vector
    left: Indices
    right: Indices
    missing_left: Mask
    target: Indices
    weight: Vector


def forest(graph: Graph, model: Any, rows: str) -> str:
    """Probabilities of a tree or a forest of scikit-learn, which sees its rows in float32."""
    members = getattr(model, "estimators_", [model])
    trees = [tree for member in members for tree in _of_scikit_learn(member.tree_)]
    seen = graph.cast(graph.cast(rows, "float32"), "float64")
    total = _sums(graph, seen, trees, len(model.classes_))
    return graph.add("Div", total, graph.constant(np.float64(len(members))))


def _of_scikit_learn(tree: Any) -> Iterator[ExportedTree]:
    """A tree for the first class that each leaf has, one for the second, and so on."""
    shares = tree.value[:, 0, :]
    leaves = tree.children_left < 0
    # Classes of a node that it has first; a pure leaf has one.
    order = np.argsort(shares == 0, axis=1, kind="stable")
    for place in range(max(1, int(np.count_nonzero(shares[leaves], axis=1).max()))):
        target = order[:, place]
        weight = shares[np.arange(len(shares)), target]
        yield ExportedTree(*_splits(tree), target, weight)


def gradient_boosting(graph: Graph, model: Any, rows: str) -> str:
    """Probabilities of scikit-learn's GradientBoostingClassifier, which sees rows in float32."""
    trees = []
    for iteration in model.estimators_:
        for target, member in enumerate(iteration):
            tree = member.tree_
            trees.append(
                ExportedTree(
                    *_splits(tree),
                    np.full(tree.node_count, target),
                    model.learning_rate * tree.value[:, 0, 0],
                )
            )
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_))).ravel()
    seen = graph.cast(graph.cast(rows, "float32"), "float64")
    # The exponential loss is made for half of the log-odds.
    steepness = 2.0 if model.loss == "exponential" else 1.0
    return _boosted(graph, seen, trees, base, steepness)


def _splits(tree: Any) -> tuple[Indices, Vector, Indices, Indices, Mask]:
    missing = np.asarray(tree.missing_go_to_left, dtype=bool)
    return tree.feature, tree.threshold, tree.children_left, tree.children_right, missing


def histogram_boosting(graph: Graph, model: Any, rows: str) -> str:
    """Probabilities of scikit-learn's HistGradientBoostingClassifier."""
    if getattr(model, "is_categorical_", None) is not None:
        raise _refused(model, "it was fitted with categorical features", "Encode them as numbers.")
    trees = [
        _of_histogram(predictor.nodes, target)
        for iteration in model._predictors
        for target, predictor in enumerate(iteration)
    ]
    return _boosted(graph, rows, trees, np.asarray(model._baseline_prediction).ravel())


def _of_histogram(nodes: Any, target: int) -> ExportedTree:
    left, right = (np.where(nodes["is_leaf"], -1, nodes[n].astype(int)) for n in ("left", "right"))
    missing = nodes["missing_go_to_left"].astype(bool)
    where = nodes["feature_idx"], nodes["num_threshold"], left, right, missing
    return ExportedTree(*where, np.full(len(nodes), target), nodes["value"])


def lightgbm(graph: Graph, model: Any, rows: str) -> str:
    """Probabilities of LightGBM's classifier, which reads the tiniest numbers as zeros."""
    dump = model.booster_.dump_model()
    objective, *settings = str(dump["objective"]).split()
    if objective not in ("binary", "multiclass") or dump.get("average_output"):
        raise _refused(model, f"its objective is {dump['objective']!r}", "Use the default.")
    trees, k = [], int(dump["num_tree_per_iteration"])
    for place, info in enumerate(dump["tree_info"]):
        trees.append(_of_lightgbm(model, info["tree_structure"], place % k))
    steepness = [float(text.split(":")[1]) for text in settings if text.startswith("sigmoid:")]
    tiny = graph.add("LessOrEqual", graph.add("Abs", rows), graph.constant(_LIGHTGBM_ZERO))
    seen = graph.add("Where", tiny, graph.constant(0.0), rows)
    return _boosted(graph, seen, trees, np.zeros(k), (steepness or [1.0])[0])


def _of_lightgbm(model: Any, root: dict[str, Any], target: int) -> ExportedTree:
    nodes: list[dict[str, Any]] = [root]
    left, right = [], []
    for node in nodes:
        # Children come after their parents, whatever the depth.
        inner = "split_feature" in node
        left.append(len(nodes) if inner else -1)
        right.append(len(nodes) + 1 if inner else -1)
        if inner:
            if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
                raise _refused(
                    model,
                    "it splits by categories or takes zeros for missing values",
                    "Encode categories as numbers, and leave zero_as_missing at False.",
                )
            nodes += [node["left_child"], node["right_child"]]
    threshold = np.array([node.get("threshold", 0.0) for node in nodes], dtype=np.float64)
    # Where training has seen no missing value, one counts as zero.
    missing = [
        node["default_left"] if node.get("missing_type") == "NaN" else limit >= 0
        for node, limit in zip(nodes, threshold, strict=True)
    ]
    return ExportedTree(
        np.array([node.get("split_feature", 0) for node in nodes]),
        threshold,
        np.array(left),
        np.array(right),
        np.array(missing, dtype=bool),
        np.full(len(nodes), target),
        np.array([node.get("leaf_value", 0.0) for node in nodes]),
    )


def xgboost(graph: Graph, model: Any, rows: str) -> str:
    """Probabilities of XGBoost's classifier, which sees its rows in float32."""
    booster = model.get_booster()
    if model.get_params().get("early_stopping_rounds"):
        booster = booster[: model.best_iteration + 1]
    learner = json.loads(booster.save_raw("json"))["learner"]
    objective, kind = learner["objective"]["name"], learner["gradient_booster"]["name"]
    if objective not in ("binary:logistic", "multi:softprob", "multi:softmax") or kind != "gbtree":
        raise _refused(model, f"it is {kind!r} with {objective!r}", "Use the defaults.")
    grown = learner["gradient_booster"]["model"]
    trees = []
    for tree, target in zip(grown["trees"], grown["tree_info"], strict=True):
        if any(tree["split_type"]):
            raise _refused(model, "it splits by categories", "Encode categories as numbers.")
        limits = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        missing = np.array(tree["default_left"], dtype=bool)
        features = np.array(tree["split_indices"])
        targets = np.full(len(limits), target)
        trees.append(ExportedTree(features, limits, left, right, missing, targets, limits))
    base = np.atleast_1d(json.loads(learner["learner_model_param"]["base_score"]))
    if objective == "binary:logistic":
        base = np.log(base / (1 - base))
    k = max(2, len(model.classes_))
    base = np.broadcast_to(base, 1 if k == 2 else k).astype(np.float64)
    seen = graph.cast(graph.cast(rows, "float32"), "float64")
    if not np.isnan(model.missing):
        # Such a number is read as missing, and so is nan.
        same = graph.add("Equal", seen, graph.constant(np.float64(np.float32(model.missing))))
        seen = graph.add("Where", same, graph.constant(np.nan), seen)
    return _boosted(graph, seen, trees, base, compare=_BELOW)


def _boosted(
    graph: Graph,
    rows: str,
    trees: list[ExportedTree],
    base: Vector,
    steepness: float = 1.0,
    *,
    compare: int = _AT_MOST,
) -> str:
    """Probabilities from sums of leaves: one a row for two classes, else one a class."""
    total = _sums(graph, rows, trees, len(base), compare)
    scores = graph.add("Add", total, graph.constant(base))
    return probabilities_of(graph, scores, len(base), steepness)


def probabilities_of(graph: Graph, scores: str, n_scores: int, steepness: float = 1.0) -> str:
    """Probabilities of two classes from one score a row, or of more from one a class."""
    if n_scores > 1:
        return graph.add("Softmax", scores, axis=1)
    second = graph.add("Mul", scores, graph.constant(np.float64(steepness)))
    both = [graph.add("Sigmoid", graph.add("Neg", second)), graph.add("Sigmoid", second)]
    return graph.add("Concat", *both, axis=1)


def _sums(
    graph: Graph, rows: str, trees: list[ExportedTree], n_targets: int, compare: int = _AT_MOST
) -> str:
    """What the leaves of all trees add up to, a column for each target."""
    columns: dict[str, list[Any]] = {name: [] for name in _NODES}
    n_nodes = n_leaves = 0
    roots = []
    for tree in trees:
        inner = np.flatnonzero(tree.left >= 0)
        leaf = np.flatnonzero(tree.left < 0)
        place = np.empty(len(tree.left), dtype=np.int64)
        place[inner], place[leaf] = n_nodes + np.arange(len(inner)), n_leaves + np.arange(len(leaf))
        # A tree that is one leaf has a node with that leaf on both sides.
        some = inner if len(inner) else leaf
        left, right = (some, some) if not len(inner) else (tree.left[inner], tree.right[inner])
        roots.append(n_nodes)
        arrays = (
            np.maximum(tree.feature[some], 0),
            tree.threshold[some],
            place[left],
            place[right],
            tree.left[left] < 0,
            tree.left[right] < 0,
            tree.missing_left[some],
            tree.target[leaf],
            tree.weight[leaf],
        )
        for name, values in zip(_NODES, arrays, strict=True):
            columns[name].append(values)
        n_nodes, n_leaves = n_nodes + len(some), n_leaves + len(leaf)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    tensors = {n: graph.tensor(joined.pop(n).astype(np.float64)) for n in _TENSORS}
    whole = {n: v.astype(np.int64).tolist() for n, v in joined.items()}
    return graph.add(
        "TreeEnsemble",
        rows,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=_SUM,
        nodes_modes=graph.tensor(np.full(n_nodes, compare, dtype=np.uint8)),
        tree_roots=roots,
        **tensors,
        **whole,
    )


def _refused(model: Any, why: str, remedy: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"{type(model).__name__} cannot be written as ONNX: {why}. {remedy}"
    )
