"""Rows that a booster stops by: those of its own training part, never the ones it is judged by."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, NDArray
from equipoise.exceptions import InvalidParameterError
from equipoise.validation.classifiers import library_of

# What rows to stop by weigh is given under names of their own.
_WEIGHTS = {"lightgbm": "eval_sample_weight", "xgboost": "sample_weight_eval_set"}
# Of each class, the share that is held out.
_HELD_OUT = 0.15


def with_rows_to_stop_by(
    estimator: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any], rows: Indices
) -> tuple[Indices, dict[str, Any]]:
    """The rows that are left to train on, and what is passed to ``fit`` of the others.

    A row may be there several times: all of them are on one side.
    """
    library = library_of(estimator)
    if library not in (*_WEIGHTS, "catboost"):
        raise InvalidParameterError(
            f"{type(estimator).__name__} asks for rows to stop by, which can be held out for a "
            "booster of LightGBM, XGBoost or CatBoost that stands alone: fix its number of rounds."
        )
    each, times = np.unique(rows, return_counts=True)
    names, places = np.unique(y[each], return_inverse=True)
    aside = _held_out(places)
    stop = each[aside]
    # XGBoost takes classes as numbers alone.
    part = _safe_indexing(X, stop), places[aside] if library == "xgboost" else names[places[aside]]
    weights = None
    if params.get("sample_weight") is not None:
        weights = np.asarray(params["sample_weight"], dtype=np.float64)[stop] * times[aside]
    elif np.any(times > 1):
        weights = times[aside].astype(np.float64)
    own: dict[str, Any]
    if library == "catboost":
        from catboost import Pool

        columns = estimator.get_params().get("cat_features")
        own = {"eval_set": Pool(*part, cat_features=columns, weight=weights)}
    else:
        own = {"eval_set": [part]}
        if weights is not None:
            own[_WEIGHTS[library]] = [weights]
    return rows[~np.isin(rows, stop)], own


def _held_out(labels: Indices) -> NDArray[np.bool_]:
    """A share of each class at random, of a class of a few rows one; a single row is trained on.

    Examples
    --------
    >>> int(_held_out(np.array([0] * 20 + [1] * 2 + [2])).sum())
    4
    """
    rng, aside = np.random.default_rng(0), np.zeros(len(labels), dtype=bool)
    for label, count in enumerate(np.bincount(labels)):
        wanted = max(round(_HELD_OUT * count), 1) if count > 1 else 0
        aside[rng.permutation(np.flatnonzero(labels == label))[:wanted]] = True
    return aside
