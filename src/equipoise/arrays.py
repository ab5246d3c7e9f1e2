"""Types of arrays, and arrays of other libraries: where they come from, and copies on the host."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike as ArrayLike  # noqa: PLC0414  for all rooms
from numpy.typing import NDArray as NDArray  # noqa: PLC0414

# Arrays as they are inside the library, once for all rooms.
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# ROUNDING: relative difference below which sums of float64 are equal: 4,500 machine epsilons, what
# adding up some millions of terms loses.
ROUNDING = 1e-12


def library(x: Any) -> str:
    """The name of the library that ``x`` comes from."""
    return type(x).__module__.partition(".")[0]


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a torch tensor, or a CuPy array, which torch reads in place."""
    return library(x) in {"torch", "cupy"}


def norm(vector: Any) -> float:
    """The Euclidean length of a vector, an array or a tensor."""
    return math.sqrt(float(vector @ vector))


def like(values: NDArray[np.float64], x: Any) -> Any:
    """``values`` as an array of the library, dtype and device of ``x``, an array or a tensor."""
    if isinstance(x, np.ndarray):
        return values.astype(x.dtype, copy=False)
    return x.new_tensor(values, dtype=x.dtype)


def rounding(x: Any) -> float:
    """The relative rounding of an array or a tensor of float32 or float64."""
    return float(np.finfo(np.float32 if x.dtype.itemsize == 4 else np.float64).eps)


def zeros_like(x: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, of the library, dtype and device of ``x``, an array or a tensor."""
    return np.zeros(shape, x.dtype) if isinstance(x, np.ndarray) else x.new_zeros(shape)


def to_numpy(x: Any) -> NDArray[np.float64]:
    """``x`` as a float64 NumPy array, brought to the host and cut from any autograd graph."""
    return np.asarray(on_host(x), dtype=np.float64)


def on_host(x: Any) -> Any:
    """What a device holds as a NumPy array of its dtype; anything else as it is."""
    if library(x) == "torch":
        return x.detach().cpu().numpy()
    return x.get() if library(x) == "cupy" else x
