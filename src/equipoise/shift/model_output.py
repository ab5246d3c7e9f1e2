"""Probabilities of a fitted model for rows in memory, chunks or partitions, as likelihoods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import Matrix
from equipoise.blocks.memory import check_memory
from equipoise.blocks.partitions import is_dask
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.decisions.trained import class_probabilities
from equipoise.exceptions import InvalidParameterError
from equipoise.shift.calibration import CalibratedProbabilities
from equipoise.shift.new_rows import NewRows
from equipoise.validation.predictions import as_probabilities

# MEMORY: of an array that is read in slices, from which it is read a few rows at a time.
MEMORY = check_memory("1 GiB")


def is_model(value: Any) -> bool:
    """Whether a value predicts, rather than being predictions."""
    return hasattr(value, "predict")


def probabilities_of_model(model: Any, X: Any) -> Matrix:
    """What ``predict_proba`` returns; of a model without it, the softmax of its scores.

    CalibratedProbabilities finds the temperature of scores, so that their scale does not matter.
    """
    check_is_fitted(model)
    if not hasattr(model, "classes_"):
        raise InvalidParameterError(
            f"model must be a fitted classifier, got {type(model).__name__}, which has no classes_."
        )
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        raise InvalidParameterError(
            "model must have predict_proba or decision_function, which "
            f"{type(model).__name__} has not: its predictions alone say too little of frequencies."
        )
    return class_probabilities(model, X, np.asarray(model.classes_))


def likelihoods_of_rows(model: Any, X: Any, calibration: CalibratedProbabilities) -> NewRows:
    """Likelihoods of the classes for new rows; out-of-core data are read chunk by chunk.

    Without a model, ``X`` are probabilities.
    """
    k = len(calibration.classes)
    filled = (part for part in parts_of(X) if (part.shape[0] if hasattr(part, "shape") else part))
    return calibration.new_rows(
        as_probabilities(part if model is None else probabilities_of_model(model, part), k)
        for part in filled
    )


def parts_of(X: Any) -> Iterator[Any]:
    """Rows in memory as they are; others chunk by chunk, and Dask collections by partitions."""
    if is_dask(X):
        whole = X.rechunk({1: -1}) if hasattr(X, "rechunk") else X
        for place in range(whole.npartitions):
            yield whole.partitions[place].compute()
        return
    blocks = as_blocks(X, None, None, MEMORY, labelled=False)
    if blocks is None:
        yield X[:] if is_sliced(X) else X
    else:
        yield from blocks.map(lambda _, block: block.X)
