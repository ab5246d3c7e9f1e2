"""Parameters that an estimator does not have, refused with what to use."""

from inspect import Signature, signature
from typing import Any, ClassVar, Self

from equipoise.text import did_you_mean

# What to use in place of parameters of other classes and libraries.
_INSTEAD = {
    "class_weight": "the weights of the classes are its goal, such as goal='balanced' or "
    "goal=FixedWeights({...})",
    "cv": "RobustLogisticRegressionCV chooses C by cross-validation",
    "penalty": "the penalty is the squared norm of the coefficients, and C its inverse strength",
    "random_state": "the fit is deterministic",
    "uncertainty": "the uncertainty set is its goal",
}


class _OfConstructor:
    """The signature of a class, which is that of its ``__init__`` and not of ``__new__``."""

    def __get__(self, _instance: Any, kind: type) -> Signature:
        full = signature(kind.__init__)  # type: ignore[misc]
        return full.replace(parameters=list(full.parameters.values())[1:])


class RefusesUnknownParameters:
    """An estimator that names itself, and what may be meant, where a parameter is unknown.

    A constructor that is inherited would name the class that it is inherited from.

    Examples
    --------
    >>> from equipoise import RobustLogisticRegression
    >>> RobustLogisticRegression(max_iters=10)
    Traceback (most recent call last):
    TypeError: RobustLogisticRegression has no parameter 'max_iters' (did you mean 'max_iter'?).
    """

    __signature__: ClassVar[Any] = _OfConstructor()
    instead: ClassVar[dict[str, str]] = _INSTEAD

    def __new__(cls, *_values: Any, **params: Any) -> Self:
        known = cls.__signature__.parameters
        for name in params:
            if name not in known:
                hint = did_you_mean(name, known)
                if name in cls.instead:
                    hint = f": {cls.instead[name]}"
                raise TypeError(f"{cls.__name__} has no parameter {name!r}{hint}.")
        return super().__new__(cls)
