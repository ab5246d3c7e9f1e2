"""What a loss is.

``true`` holds the position of each row's class, an integer array of shape ``(n,)``.
What is predicted comes in one of three kinds:

* ``labels``: positions of predicted classes, shape ``(n,)``; -1 stands for any other class;
* ``probabilities``: shape ``(n, k)``, rows summing to one;
* ``scores``: shape ``(n, k)``, the larger the likelier.

Two-class probabilities and scores may also be ``(n,)`` or ``(n, 1)``, about the second class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.losses.trained import TrainedLoss, in_blocks

Kind = Literal["labels", "probabilities", "scores"]
Range = Literal["{0, 1}", "[0, 1]", "[0, inf)"]

_RESPONSE_METHODS = {
    "labels": "predict",
    "probabilities": "predict_proba",
    "scores": "decision_function",
}


@dataclass(frozen=True)
class Loss:
    """A named loss, with what it reads and the values it can take.

    Parameters
    ----------
    name : str
        Key in the registry :data:`equipoise.losses.LOSSES`.
    rows : callable
        ``rows(true, predictions)`` gives the loss of every row, shape ``(n,)``.
    reads : {"labels", "probabilities", "scores"}
        The kind of prediction that ``rows`` takes.
    range : {"{0, 1}", "[0, 1]", "[0, inf)"}
        The values of the loss; confidence intervals depend on it.
    trained : TrainedLoss, optional
        The loss in the scores with its derivatives, where it can be trained.

    Examples
    --------
    >>> import numpy as np
    >>> def absolute(true, probabilities):
    ...     return 1 - np.asarray(probabilities)[np.arange(len(true)), true]
    >>> loss = Loss("absolute", absolute, reads="probabilities", range="[0, 1]")
    >>> loss(np.array([0, 1]), [[0.75, 0.25], [0.5, 0.5]]).tolist()
    [0.25, 0.5]
    """

    name: str
    rows: Callable[[Indices, Any], Vector]
    reads: Kind
    range: Range
    trained: TrainedLoss | None = None

    @classmethod
    def of_scores(cls, name: str, trained: TrainedLoss) -> "Loss":
        """A loss of scores that can be trained, known by its values and derivatives."""
        return cls(name, ScoreRows(trained), "scores", "[0, inf)", trained)

    def __call__(self, true: Indices, predictions: Any) -> Vector:
        """The loss of every row."""
        return self.rows(true, predictions)

    @property
    def response_method(self) -> str:
        """The scikit-learn method whose output this loss reads."""
        return _RESPONSE_METHODS[self.reads]

    def response(self, estimator: Any, X: Any) -> tuple[NDArray[Any], Any]:
        """What it reads of a fitted classifier, and the classes that the columns belong to.

        Labels name their class, and have no columns: the classes are then None.
        """
        method = getattr(estimator, self.response_method, None)
        if method is None:
            raise InvalidInputError(
                f"loss={self.name!r} needs an estimator with {self.response_method}, got "
                f"{estimator!r}."
            )
        return np.asarray(method(X)), None if self.reads == "labels" else estimator.classes_


@dataclass(frozen=True)
class ScoreRows:
    """Losses of rows of scores that a user gives, by a loss that can be trained."""

    trained: TrainedLoss

    def __call__(self, true: ArrayLike, scores: ArrayLike) -> Vector:
        return in_blocks(lambda labels, block: self.trained.values(block, labels))(true, scores)
