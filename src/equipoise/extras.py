"""Optional dependencies: loaded where they are used, with the install line in the error."""

from importlib import import_module
from typing import Any

from equipoise.exceptions import MissingExtraError


def require(module: str, *, extra: str) -> Any:
    """A module of an optional dependency; ``extra`` is the part of equipoise that it comes with.

    Examples
    --------
    >>> require("json", extra="cli").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        raise MissingExtraError(
            f"{package} is needed for this and could not be imported ({error}). "
            f"Install it with: pip install 'equipoise[{extra}]'"
        ) from error
