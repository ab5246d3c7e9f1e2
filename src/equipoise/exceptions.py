"""Everything equipoise raises or warns with, in one tree.

Errors are below :class:`EquipoiseError`, warnings below :class:`EquipoiseWarning`.
"""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ClassMismatchError",
    "CostlyDecisionsWarning",
    "EmptySetError",
    "EquipoiseError",
    "EquipoiseWarning",
    "FewRowsWarning",
    "InactiveCapsWarning",
    "InvalidInputError",
    "InvalidParameterError",
    "MissingExtraError",
    "NotConvergedWarning",
    "SeenRowsWarning",
    "SeparableDataWarning",
    "UnattainableError",
    "UnidentifiableError",
]

# Characters of a message, whose names may have any length: a screen of 25 lines of 80. The middle
# of a longer one is left out.
_LONGEST_MESSAGE = 2000
# Packages whose frames are not the user's: ours, and those that call us on the user's behalf.
_NOT_THE_USER = {"equipoise", "sklearn", "joblib", "contextlib"}


class EquipoiseError(Exception):
    """Base of all errors of equipoise."""

    def __str__(self) -> str:
        return bounded(super().__str__())


class InvalidInputError(EquipoiseError, ValueError):
    """Data or parameters that break a stated rule."""


class InvalidParameterError(InvalidInputError):
    """A parameter outside its range: the message names it, the rule and the value."""


class ClassMismatchError(InvalidInputError):
    """Per-class values that name an unknown class or leave one out."""


class EmptySetError(InvalidInputError):
    """An uncertainty set that no weighting satisfies."""


class UnidentifiableError(EquipoiseError, ValueError):
    """A quantity that the fitted model does not determine."""


class UnattainableError(EquipoiseError, ValueError):
    """Recall floors that no decision weights reach, or that the rows cannot show."""


class MissingExtraError(EquipoiseError, ImportError):
    """An optional part is not installed: the message has the command that installs it."""


class EquipoiseWarning(UserWarning):
    """Base of every warning issued by equipoise."""


class FewRowsWarning(EquipoiseWarning):
    """The worst case depends on a class with few rows."""


class CostlyDecisionsWarning(EquipoiseWarning):
    """Tuned decisions raise the overall error rate by more than ten points."""


class InactiveCapsWarning(EquipoiseWarning):
    """The caps of an uncertainty set are inactive: the problem is that of the worst class."""


class SeenRowsWarning(EquipoiseWarning):
    """Predictions without an error: the model was probably trained on the rows."""


class SeparableDataWarning(EquipoiseWarning):
    """Without a penalty the optimum of separable data lies at infinity."""


class NotConvergedWarning(EquipoiseWarning, ConvergenceWarning):  # type: ignore[misc]
    """A solver stopped before its certified gap reached the tolerance."""


def warn(message: str, category: type[EquipoiseWarning]) -> None:
    """Warn at the innermost line of the user's code, however deep the call.

    Where all frames are ours, as on the command line, the outermost one takes its place.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("only 3 rows", FewRowsWarning)
    >>> caught[0].category.__name__
    'FewRowsWarning'
    """
    level, frame = 1, inspect.currentframe()
    while frame and frame.f_back and _package(frame.f_globals) in _NOT_THE_USER:
        level, frame = level + 1, frame.f_back
    warnings.warn(bounded(message), category, stacklevel=level)


def bounded(message: str) -> str:
    """A message whose middle is left out where it is very long."""
    half = _LONGEST_MESSAGE // 2
    short = len(message) <= _LONGEST_MESSAGE
    return message if short else f"{message[:half]} ... {message[-half:]}"


@contextmanager
def in_a_sentence(start: str, *kinds: type[Exception]) -> Iterator[None]:
    """Errors of these kinds that are not ours, as one sentence of ours.

    Examples
    --------
    >>> with in_a_sentence("The page cannot be read", OSError):
    ...     raise OSError("no such file")
    Traceback (most recent call last):
    equipoise.exceptions.InvalidInputError: The page cannot be read (no such file).
    """
    try:
        yield
    except EquipoiseError:
        raise
    except kinds as error:
        detail = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InvalidInputError(f"{start} ({detail}).") from error


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if the block ends in any exception."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
