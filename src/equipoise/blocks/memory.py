"""How much memory may be used, as users write it."""

import os
import re
from numbers import Integral
from typing import Any

from equipoise.exceptions import InvalidParameterError

# Bytes of the units in which users write memory.
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
# Bytes that any fit may use beside its data, 16 MiB: what the interpreter itself needs.
LEAST_MEMORY = 1 << 24


def check_memory(value: Any) -> int:
    """A number of bytes, or a text such as ``"1 GiB"``; at least 16 MiB.

    Examples
    --------
    >>> check_memory("1 GiB"), check_memory("1.5 GB"), check_memory(50_000_000)
    (1073741824, 1500000000, 50000000)
    """
    n_bytes = -1
    if isinstance(value, Integral) and not isinstance(value, bool):
        n_bytes = int(value)
    elif isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        if match and match[2].lower() in _UNITS:
            n_bytes = int(float(match[1]) * _UNITS[match[2].lower()])
    if n_bytes < LEAST_MEMORY:
        raise InvalidParameterError(
            f"memory must be a number of bytes or a text such as '1 GiB', and at least '16 MiB', "
            f"got {value!r}."
        )
    return n_bytes


def allowed_memory(value: Any = None) -> int:
    """The same, or half of the machine's memory where nobody has said.

    Examples
    --------
    >>> allowed_memory("1 GiB"), allowed_memory() > LEAST_MEMORY
    (1073741824, True)
    """
    if value is not None:
        return check_memory(value)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not every system says
        return 1 << 32
