"""Types of arrays, and arrays of other libraries: their namespace, and copies on the host."""

import math
from functools import cache
from importlib import import_module
from types import ModuleType
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

# Libraries whose arrays speak the array API only through array-api-compat.
_WRAPPED = {"torch", "cupy", "dask", "jax", "jaxlib"}

# scikit-learn and SciPy carry a copy; an installed one is newer.
_COMPAT = (
    "array_api_compat",
    "sklearn.externals.array_api_compat",
    "scipy._lib.array_api_compat",
)


def namespace(x: Any) -> Any:
    """The array-API namespace of ``x``: NumPy for NumPy arrays, lists and the like."""
    if isinstance(x, np.ndarray):
        return np
    if library(x) in _WRAPPED:
        return _compat().array_namespace(x)
    native = getattr(x, "__array_namespace__", None)
    return np if native is None else native()


def library(x: Any) -> str:
    """The name of the library that ``x`` comes from."""
    return type(x).__module__.partition(".")[0]


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a torch tensor, or a CuPy array, which torch reads in place."""
    return library(x) in {"torch", "cupy"}


def norm(vector: Any) -> float:
    """The Euclidean length of a vector, an array or a tensor."""
    return math.sqrt(float(vector @ vector))


def weighted_sum(weights: Vector, rows: Any) -> Any:
    """Rows, an array or a tensor, added up with weights that are an array."""
    xp = namespace(rows)
    return weights @ rows if xp is np else like(weights, rows, xp) @ rows


@cache
def _compat() -> ModuleType:
    for name in _COMPAT:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError("Arrays of this type need array-api-compat: pip install array-api-compat.")


def like(values: NDArray[np.float64], x: Any, xp: Any) -> Any:
    """``values`` as an array of the namespace, dtype and device of ``x``."""
    if xp is np:
        return values
    return xp.asarray(values.copy(), dtype=x.dtype, device=x.device)


def to_numpy(x: Any) -> NDArray[np.float64]:
    """``x`` as a float64 NumPy array, brought to the host and cut from any autograd graph."""
    return np.asarray(on_host(x), dtype=np.float64)


def on_host(x: Any) -> Any:
    """What a device holds as a NumPy array of its dtype; anything else as it is."""
    if library(x) == "torch":
        return x.detach().cpu().numpy()
    return x.get() if library(x) == "cupy" else x
