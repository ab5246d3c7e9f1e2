"""Rows to fit to that are a torch tensor or a CuPy array: checked, and where they are.

CuPy arrays are read by torch in place, through DLPack.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from equipoise.arrays import NDArray, Vector, is_tensor, library, on_host, to_numpy
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.losses import TrainedLoss, as_trained
from equipoise.objectives.matrices import DenseFeatures, Features
from equipoise.objectives.rows import TrainingRows
from equipoise.objectives.torch_losses import torch
from equipoise.objectives.torch_objective import (
    DEVICE_VALUES,
    SortedRows,
    TensorCut,
    TorchObjective,
    one_a_row,
)
from equipoise.objectives.units import standard_or_raw
from equipoise.threads import ONE_BLAS_THREAD
from equipoise.validation.labels import encode_labels, weights_and_totals

# _SAMPLE: rows from which the scale of a column is estimated.
_SAMPLE = 2_000
# _SPAN: range of integer labels that are counted in a table on the device.
_SPAN = 1 << 20
# _COPIES: memory of a fit, in copies of the rows.
_COPIES = 2.0


class RowsOnDevice(TrainingRows):
    """A tensor, and labels of its rows, which may be in memory; weights go through memory.

    Scores take ``memory`` bytes at most, or the share of a device's that is left to them.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, memory: int) -> None:
        X, self._cut = checked_rows(X), TensorCut(kept_bytes=memory)
        self.classes, labels = _encoded(_near(y, X), X)
        if len(labels) != len(X):
            raise InvalidInputError(
                f"y must have one label for each of the {len(X)} rows of X, got {len(labels)}."
            )
        counts = on_host(labels.bincount(minlength=len(self.classes)))
        self.counts, self.totals = counts, counts.astype(np.float64)
        weights = None
        if sample_weight is not None:
            places = on_host(labels)
            weights, self.totals = weights_and_totals(sample_weight, places, self.classes)
            used = weights > 0
            if not np.all(used):
                keep = labels.new_tensor(np.flatnonzero(used))
                X, labels, weights = X[keep], labels[keep], weights[used]
                self.counts = np.bincount(places[used], minlength=len(self.classes))
        self._rows = X, labels, weights

    @contextmanager
    def open(
        self, *, fit_intercept: bool, ridge: float, loss: TrainedLoss
    ) -> Iterator[TorchObjective]:
        if loss != as_trained("cross_entropy"):
            raise InvalidParameterError(
                "On tensors loss='cross_entropy' is the only one that can be fitted, got "
                f"{loss!r}: give NumPy arrays for other losses."
            )
        # What is left to NumPy is small; the threads of torch on a CPU are its own.
        on_cpu = self._rows[0].device.type == "cpu"
        with nullcontext() if on_cpu else ONE_BLAS_THREAD.held():
            yield torch_objective(
                *self._rows,
                n_classes=len(self.classes),
                fit_intercept=fit_intercept,
                ridge=ridge,
                cut=self._cut,
            )


def as_tensor(x: Any) -> Any:
    """A torch tensor, cut from any autograd graph, or a CuPy array as one."""
    return x.detach() if library(x) == "torch" else torch().from_dlpack(x)


def _near(y: Any, X: Any) -> Any:
    """Labels; those on a device must be on that of the rows."""
    if not is_tensor(y):
        return y
    y = as_tensor(y)
    if y.device != X.device:
        raise InvalidInputError(
            f"X and y must be on one device, got X on {X.device} and y on {y.device}."
        )
    return y


@contextmanager
def memory_in_words(X: Any) -> Iterator[None]:
    """A device that runs out of memory, in a sentence."""
    if not is_tensor(X):
        yield
        return
    try:
        yield
    except torch().cuda.OutOfMemoryError as error:
        asked = re.search(r"allocate ([\d.]+ \w+)", str(error))
        device, rows = as_tensor(X).device, len(X)
        free = free_memory(device)
        fitting = int(rows * free / (_COPIES * max(1, as_tensor(X).nbytes)))
        raise InvalidInputError(
            f"{device} ran out of memory: {asked[1] if asked else 'more'} was asked for, and "
            f"{free / 2**30:.2f} GiB are free now. Of rows such as these about "
            f"{min(fitting, rows // 2)} would fit: give fewer rows or features, or free memory."
        ) from error


def checked_rows(X: Any) -> Any:
    """A finite floating tensor of two dimensions, cut from any autograd graph."""
    X = as_tensor(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InvalidInputError(
            "X must have two dimensions, at least one row and one feature, got a tensor of shape "
            f"{tuple(X.shape)}."
        )
    if X.is_complex() or X.layout != torch().strided:
        raise InvalidInputError(f"X must be a dense tensor of real numbers, got {X.dtype}.")
    if X.dtype not in (torch().float32, torch().float64):
        X = X.to(torch().get_default_dtype() if not X.is_floating_point() else torch().float32)
    if X.device.type == "mps":
        raise InvalidInputError("X is on mps, a device without float64: give X.cpu().")
    low, high = (float(end) for end in X.aminmax())
    if not (np.isfinite(low) and np.isfinite(high)):
        row, column = (~X.isfinite()).nonzero()[0].tolist()
        raise InvalidInputError(
            f"X must hold finite numbers, got {float(X[row, column])} in row {row}, column "
            f"{column}."
        )
    return X


def _encoded(y: Any, X: Any) -> tuple[NDArray[Any], Any]:
    """Class names, and class indices on the device of the rows."""
    if is_tensor(y) and y.ndim == 1 and len(y) and not (y.is_floating_point() or y.is_complex()):
        whole = y.to(torch().int64)
        low, high = (int(end) for end in whole.aminmax())
        if high - low < _SPAN and high > low:
            present = (whole - low).bincount(minlength=high - low + 1) > 0
            places = present.cumsum(0) - 1
            names = to_numpy(present.nonzero()[:, 0] + low).astype(np.int64)
            kind = np.bool_ if y.dtype == torch().bool else str(y.dtype).removeprefix("torch.")
            if 2 * len(names) <= len(y):
                return names.astype(kind), places[whole - low]
    classes, labels = encode_labels(y)
    return classes, torch().as_tensor(labels).to(X.device)


def torch_objective(
    X: Any,
    labels: Any,
    weights: Vector | None,
    *,
    n_classes: int,
    fit_intercept: bool,
    ridge: float,
    cut: TensorCut | None = None,
) -> TorchObjective:
    """An objective over the rows of ``X`` with class indices ``labels`` on the same device.

    Raises
    ------
    InvalidInputError
        If the device has no room for a copy of the rows.
    """
    kernel, cut = as_trained("cross_entropy").kernel(n_classes), cut or TensorCut()
    layout: Features = DenseFeatures(
        np.empty((0, X.shape[1])), kernel.n_scores, bool(fit_intercept)
    )
    sample = to_numpy(X[:: max(1, len(X) // _SAMPLE)])
    moments = layout.column_moments(sample)
    for column in np.flatnonzero(moments.one_value):  # of the sample
        moments.one_value[column] = bool((X[:, column] == X[0, column]).all())
    layout = _representable(standard_or_raw(layout, moments, ridge), X.dtype)
    rows = sorted_rows(X, labels, weights, layout, n_classes)
    return TorchObjective(layout, kernel, rows, cut, fused=rows.n_rows >= cut.fused_rows)


def _representable(layout: Features, dtype: Any) -> Features:
    """The layout with shifts of the dtype and scales of powers of two: the copy is then exact.

    But for values that need more digits once the shift is taken off.
    """
    as_stored = np.float32 if dtype == torch().float32 else np.float64
    unit = float(as_stored(layout.unit))
    if layout.moments is None:
        return layout.standardized(None, unit)
    shift, scale = layout.moments
    shift, scale = shift.astype(as_stored).astype(np.float64), np.exp2(np.round(np.log2(scale)))
    origin = layout.origin
    if origin is not None:
        origin = origin.astype(as_stored).astype(np.float64)
    return layout.standardized((shift, scale), unit, layout.fixed, origin)


def sorted_rows(
    X: Any, labels: Any, weights: Vector | None, layout: Features, n_classes: int
) -> SortedRows:
    """A standardised copy of the rows, sorted by class."""
    counts = to_numpy(torch().bincount(labels, minlength=n_classes)).astype(np.intp)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    n, width = X.shape[0], layout.width
    wide = -(-width // 4) * 4  # rows that begin on 16 bytes are read faster
    if X.device.type == "cuda":
        check_room(X, n * wide * X.element_size() + 24 * n, free_memory(X.device))
    short = torch().uint8 if n_classes < 1 << 8 else torch().int32
    order = labels.to(short).argsort(stable=True)
    values = X.new_zeros((n, wide))
    step = max(1, DEVICE_VALUES // wide)
    for start in range(0, n, step):
        part = X[order[start : start + step]]
        if layout.origin is not None:
            part = part - X.new_tensor(layout.origin)
        if layout.moments is not None:
            shift, scale = (X.new_tensor(column) for column in layout.moments)
            part = (part - shift) / scale
        values[start : start + step, : layout.n_features] = part
    if layout.fit_intercept:
        values[:, layout.n_features] = layout.unit
    if weights is None:
        sorted_weights = torch().ones(n, dtype=torch().float64, device=X.device)
        totals = counts.astype(np.float64)
    else:
        in_order = np.asarray(weights)[to_numpy(order).astype(np.intp)]
        sorted_weights = torch().as_tensor(in_order).to(X.device)
        totals = np.add.reduceat(in_order, bounds[:-1])
    shares = sorted_weights * one_a_row(1 / totals, counts, sorted_weights)
    return SortedRows(values, bounds, shares, weighted=weights is not None)


def free_memory(device: Any) -> int:
    """Bytes that are free on a CUDA device, or held by torch without being used."""
    held = torch().cuda.memory_reserved(device) - torch().cuda.memory_allocated(device)
    return int(torch().cuda.mem_get_info(device)[0] + held)


def check_room(X: Any, needed: int, free: int) -> None:
    """Refuse what a device has no room for, in words."""
    if needed > free:
        raise InvalidInputError(
            f"A fit copies the rows, which takes {needed / 2**30:.2f} GiB on {X.device}, where "
            f"{free / 2**30:.2f} GiB are free: give at most {len(X) * free // needed} rows, or "
            "free memory there."
        )
