"""Validation rows for early stopping: of the training part, never those that are held out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, NDArray
from equipoise.decisions.classifiers import library_of
from equipoise.decisions.folds import FOLDS, set_aside
from equipoise.exceptions import InvalidParameterError

# How the weights of validation rows are passed to fit.
_WEIGHTS = {"lightgbm": "eval_sample_weight", "xgboost": "sample_weight_eval_set"}


def with_validation_rows(
    estimator: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any], rows: Indices
) -> tuple[Indices, dict[str, Any]]:
    """The rows to train on, and arguments of ``fit`` with the others."""
    library = library_of(estimator)
    if library not in (*_WEIGHTS, "catboost"):
        raise InvalidParameterError(
            f"{type(estimator).__name__} asks for validation rows, which can be held out for a "
            "booster of LightGBM, XGBoost or CatBoost that stands alone: fix its number of rounds."
        )
    names, labels = np.unique(y[rows], return_inverse=True)
    # One row in five of each class, at least one; a single row is trained on.
    aside = set_aside(np.arange(len(labels)), labels, 1 / FOLDS, seed=0)
    validation = rows[aside]
    # XGBoost takes classes as numbers alone.
    classes = labels[aside] if library == "xgboost" else names[labels[aside]]
    part, weights = (_safe_indexing(X, validation), classes), None
    if params.get("sample_weight") is not None:
        weights = np.asarray(params["sample_weight"], dtype=np.float64)[validation]
    settings = estimator.get_params()
    arguments: dict[str, Any]
    if library == "catboost":
        from catboost import Pool

        arguments = {
            "eval_set": Pool(*part, cat_features=settings.get("cat_features"), weight=weights)
        }
    else:
        arguments = {"eval_set": [part]}
        if weights is not None:
            arguments[_WEIGHTS[library]] = [weights]
        if library == "xgboost" and settings.get("verbosity") == 0:
            # Its fit prints a line for each round unless it is told twice.
            arguments["verbose"] = False
    return rows[~aside], arguments
