"""Methods of rows that take out-of-core rows too, and answer each chunk where it is read."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import NDArray, is_tensor
from equipoise.blocks.memory import check_memory
from equipoise.blocks.partitions import is_dask, lazily
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.exceptions import InvalidInputError

Method = TypeVar("Method", bound=Callable[..., Any])


def streamed(method: Method) -> Method:
    """A method of rows that takes blocks of them too, and answers each where it is read."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **settings: Any) -> Any:
        if is_dask(X):
            return _answered_lazily(self, X, method.__name__, args, settings)
        if is_tensor(X):
            return method(self, X, *args, **settings)
        blocks = as_blocks(X, None, None, check_memory(self.memory), labelled=False)
        if blocks is None:
            return np.asarray(method(self, X[:] if is_sliced(X) else X, *args, **settings))
        answers = list(blocks.map(lambda _, block: method(self, block.X, *args, **settings)))
        if not answers:
            raise InvalidInputError("X must have at least one block of rows, got none.")
        return np.concatenate(answers)

    return cast(Method, answer)


def _answered_lazily(model: Any, X: Any, method: str, args: Any, settings: Any) -> Any:
    """A Dask array of a method's answers, by the model as it is now."""
    check_is_fitted(model)
    answer = partial(_answer, copy(model), method, args, settings)
    row = np.zeros((1, model.n_features_in_ if np.isnan(X.shape[1]) else X.shape[1]))
    if hasattr(X, "columns"):
        row = type(X._meta)(row, columns=X.columns)
    return lazily(X, answer, answer(row))


def _answer(model: Any, method: str, args: Any, settings: Any, rows: Any) -> NDArray[Any]:
    return np.asarray(getattr(model, method)(rows, *args, **settings))
