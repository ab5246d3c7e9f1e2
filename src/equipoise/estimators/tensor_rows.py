"""Predictions on torch tensors and CuPy arrays: in their library, precision and on their device."""

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from equipoise.arrays import NDArray, library, on_host, to_numpy
from equipoise.extras import require
from equipoise.objectives.torch_rows import as_tensor, checked_rows


def handed_back(values: Any, like: Any) -> Any:
    """A tensor, or numbers as one, as an array of the library of another array."""
    if isinstance(values, np.ndarray):
        torch, tensor = require("torch", extra="torch"), as_tensor(like)
        double = tensor.dtype == torch.float64
        kind = torch.float64 if double else torch.float32
        values = torch.as_tensor(values).to(tensor.device, kind)
    return values if library(like) == "torch" else import_module(library(like)).from_dlpack(values)


def scores_of(estimator: Any, X: Any, intercept: NDArray[Any]) -> Any:
    """Scores of rows by these intercepts: one each for two classes, else one per class."""
    rows = checked_rows(X)
    validate_data(estimator, rows, reset=False, skip_check_array=True)
    coef, intercept = (rows.new_tensor(each) for each in (to_numpy(estimator.coef_), intercept))
    scores = (rows @ coef.T).add_(intercept)
    return handed_back(scores[:, 0] if len(estimator.classes_) == 2 else scores, X)


def labels_of(scores: Any, classes: NDArray[Any]) -> Any:
    """The class of the highest score of every row; names that are texts come as NumPy."""
    rows = as_tensor(scores)
    best = (rows > 0).long() if rows.ndim == 1 else rows.argmax(1)
    if classes.dtype.kind not in "biuf":
        return classes[on_host(best)]
    table = require("torch", extra="torch").as_tensor(classes).to(best.device)
    return handed_back(table[best], scores)


def probabilities_of(scores: Any, shift: Any = None, *, logarithms: bool = False) -> Any:
    """The softmax of scores, one for two classes, perhaps shifted; or its logarithms."""
    torch = require("torch", extra="torch")
    rows = as_tensor(scores)
    if rows.ndim == 1:
        rows = torch.stack([rows * 0, rows], 1)
    if shift is not None:
        rows = rows + rows.new_tensor(shift)
    table = rows.log_softmax(1) if logarithms else rows.softmax(1)
    return handed_back(table, scores)
