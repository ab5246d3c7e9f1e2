"""Everything equipoise raises or warns with, in one tree.

.. code-block:: text

    EquipoiseError
    ├── InvalidInputError (also a ValueError): data or parameters that break a rule
    │   ├── InvalidParameterError: a parameter outside its range
    │   ├── ClassMismatchError: class names that are missing or unknown
    │   └── EmptySetError: an uncertainty set without a single point
    ├── UnidentifiableError (also a ValueError): a question the fitted model cannot answer
    ├── UnattainableError (also a ValueError): recall floors that no decision weights reach
    └── MissingExtraError (also an ImportError): an optional part that is not installed

    EquipoiseWarning (a UserWarning)
    ├── FewRowsWarning: the worst case rests on a class with very few rows
    ├── InactiveCapsWarning: the caps of the set bind nowhere
    ├── SeparableDataWarning: without a penalty the optimum lies at infinity
    └── NotConvergedWarning (also scikit-learn's ConvergenceWarning)
"""

from sklearn.exceptions import ConvergenceWarning


class EquipoiseError(Exception):
    """Base of every error raised on purpose by equipoise."""


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
    """Recall floors that no decision weights reach: the message says what is attainable."""


class MissingExtraError(EquipoiseError, ImportError):
    """An optional part is not installed: the message holds the command that installs it."""


class EquipoiseWarning(UserWarning):
    """Base of every warning issued by equipoise."""


class FewRowsWarning(EquipoiseWarning):
    """The worst case rests on a class with very few rows."""


class InactiveCapsWarning(EquipoiseWarning):
    """The caps of an uncertainty set bind nowhere: it is the worst-class problem."""


class SeparableDataWarning(EquipoiseWarning):
    """Without a penalty the optimum of separable data lies at infinity."""


class NotConvergedWarning(EquipoiseWarning, ConvergenceWarning):  # type: ignore[misc]
    """A solver stopped before its certified gap reached the tolerance."""
