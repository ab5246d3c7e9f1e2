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
    """A method of rows that takes blocks of them too, and answers each where it is read.

    The keyword ``costs`` has an entry for each row, and is cut with the rows.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **settings: Any) -> Any:
        costs = settings.get("costs")
        if is_dask(X):
            if costs is not None:
                raise InvalidInputError(
                    "costs need rows in memory or blocks of equipoise.blocks, got a Dask "
                    "collection: predict its partitions one by one."
                )
            return _answered_lazily(self, X, method.__name__, args, settings)
        if is_tensor(X):
            return method(self, X, *args, **settings)
        blocks = as_blocks(X, None, None, check_memory(self.memory), labelled=False)
        if blocks is None:
            return np.asarray(method(self, X[:] if is_sliced(X) else X, *args, **settings))
        parts = _Parts(costs, settings)
        answers = list(blocks.map(lambda _, block: method(self, block.X, *args, **parts(block.X))))
        if not answers:
            raise InvalidInputError("X must have at least one block of rows, got none.")
        parts.check_end()
        return np.concatenate(answers)

    return cast(Method, answer)


class _Parts:
    """Settings of a method for one block after another: costs are those of its rows."""

    def __init__(self, costs: Any, settings: dict[str, Any]) -> None:
        whole = costs is None or is_sliced(costs)
        self._costs = costs if whole else np.asarray(costs)
        self._settings, self._n_rows = settings, 0

    def __call__(self, rows: Any) -> dict[str, Any]:
        if self._costs is None:
            return self._settings
        first, self._n_rows = self._n_rows, self._n_rows + rows.shape[0]
        if self._n_rows > len(self._costs):
            self._refuse(f"at least {self._n_rows}")
        return self._settings | {"costs": self._costs[first : self._n_rows]}

    def check_end(self) -> None:
        """Refuse more costs than rows."""
        if self._costs is not None and self._n_rows < len(self._costs):
            self._refuse(str(self._n_rows))

    def _refuse(self, n_rows: str) -> None:
        raise InvalidInputError(
            f"costs must have one entry for each of the {n_rows} rows of X, got {len(self._costs)}."
        )


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
