r"""Any function of the confusion matrix as a goal: your own, or a scorer of scikit-learn.

The function takes the shares :math:`C_{ij}` of the population that are of class ``i`` and predicted
as ``j``, which sum to one, and returns a number that is to be large. Its derivatives are given, or
taken by differences along the weight of each class, of :math:`2 k` values: on the way the shares
stay those of a confusion matrix with the same class frequencies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import get_scorer, get_scorer_names

from equipoise.arrays import Indices, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals.base import SoftCriterion
from equipoise.goals.labelled_predictions import confusion_table
from equipoise.goals.smooth import Rows, Soft
from equipoise.goals.sparse_rows import Table, dense
from equipoise.text import brief
from equipoise.validation.prefitted import Prefitted

TableFunction = Callable[[Matrix], float]
# ROWS_TO_CHECK: of random labels and decisions, on which a scorer must equal its value for their
# confusion matrix; and so the most classes of a scorer, as each must be among them.
ROWS_TO_CHECK = 200
# ORDERS: of those rows, in each of which the scorer must have that value.
ORDERS = 10


@dataclass(frozen=True, eq=False)
class TableMetric(SoftCriterion):
    """One minus a function of the confusion matrix of population shares."""

    prior: Vector
    function: TableFunction
    gradient: Callable[[Matrix], Any] | None = None
    measures = "metric"

    def value(self, table: Matrix) -> float:
        shares = table * (self.prior / table.sum(axis=1))[:, None]
        # Decisions for classes that are not evaluated are errors of no class's own.
        square = np.zeros((table.shape[1], table.shape[1]))
        square[: len(shares)] = shares
        return 1 - self.of_shares(square)

    def of_shares(self, shares: Matrix) -> float:
        """The function's value, which must be a finite number."""
        found = self.function(shares)
        with suppress(TypeError, ValueError):
            value = np.asarray(found, dtype=np.float64)
            if not value.ndim and np.isfinite(value):
                return float(value)
        raise InvalidInputError(
            "metric, as a function of the confusion matrix, must return a finite number, got "
            f"{found!r} for {shares.tolist()}."
        )

    def by_cell(self, shares: Matrix) -> Matrix:
        """The derivatives by the cells that the user gives: finite numbers, one for each cell."""
        assert self.gradient is not None
        found = self.gradient(shares)
        with suppress(TypeError, ValueError):
            slopes = np.asarray(found, dtype=np.float64)
            if slopes.shape == shares.shape and np.isfinite(slopes).all():
                return slopes
        raise InvalidInputError(
            f"gradient must return a finite number for each of the {shares.shape} cells of the "
            f"confusion matrix, got {brief(found)}."
        )

    def slope(self, shares: Matrix, direction: Matrix) -> float:
        """The derivative of the function as the shares move in a direction."""
        # Central differences are the most exact at the cube root of the rounding error.
        step = float(np.cbrt(np.finfo(np.float64).eps))
        up, down = (self.of_shares(shares + each * direction) for each in (step, -step))
        return (up - down) / (2 * step)

    @property
    def centre(self) -> Vector:
        return super().centre / 2

    def soft(self, table: Table, rows: Rows) -> Soft:
        """One minus the function of soft predictions, and its gradient, by factors of classes."""
        table = dense(table)
        n, k = table.shape
        of_class = csr_array((rows.share, (rows.labels, np.arange(n))), shape=(k, n))

        def value_and_gradient(factors: Vector) -> tuple[float, Vector]:
            soft = table * factors
            soft /= np.maximum(soft.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            shares = of_class @ soft
            if self.gradient is None:
                slopes = [self.slope(shares, towards(soft, shares, j)) for j in range(k)]
                return 1 - self.of_shares(shares), -np.array(slopes)
            by_row = self.by_cell(shares)[rows.labels]
            added = soft * (by_row - np.sum(by_row * soft, axis=1, keepdims=True))
            return 1 - self.of_shares(shares), -(rows.share @ added)

        def towards(soft: Matrix, shares: Matrix, j: int) -> Matrix:
            """How the shares move with the log-weight of a class, none by more than itself."""
            direction = -(of_class @ (soft * soft[:, [j]]))
            direction[:, j] += shares[:, j]
            return np.asarray(direction)

        return value_and_gradient


class _Decided(Prefitted):
    """A classifier whose rows hold the class index that it predicts."""

    def __init__(self, classes: Any) -> None:
        self.classes = classes

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes that the rows say."""
        return np.asarray(self.classes_[np.asarray(X)[:, 0]])


def check_function(function: Any) -> None:
    """Refuse a function that cannot be called with a confusion matrix alone."""
    try:
        signature(function).bind(None)
    except ValueError:
        return  # Written in C: nothing is known of its arguments.
    except TypeError as error:
        raise InvalidParameterError(
            f"metric, as a function, must take the confusion matrix alone, got {function!r}, which "
            f"takes {signature(function)}: a function of labels and predictions goes into "
            "sklearn.metrics.make_scorer."
        ) from error


def is_scorer(value: Any) -> bool:
    """Whether a value is a scorer of scikit-learn, or names one of predicted classes.

    Examples
    --------
    >>> is_scorer("matthews_corrcoef"), is_scorer("roc_auc"), is_scorer("nonsense")
    (True, False, False)
    """
    if isinstance(value, str):
        return value in get_scorer_names() and _is_of_predictions(value)
    return hasattr(value, "set_score_request") and callable(value)


@cache
def _is_of_predictions(name: str) -> bool:
    """Whether the confusion matrix determines the scorer, as far as two classes tell."""
    try:
        scorer_function(name, np.arange(2))
    except InvalidParameterError:
        return False
    return True


def scorer_function(scorer: Any, classes: NDArray[Any]) -> TableFunction:
    """A scorer as a function of the confusion matrix, if that is what it is.

    Examples
    --------
    >>> accuracy = scorer_function("accuracy", np.array(["a", "b"]))
    >>> round(accuracy(np.array([[0.5, 0.1], [0.2, 0.2]])), 6)
    0.7
    """
    made = get_scorer(scorer) if isinstance(scorer, str) else scorer
    model, k = _Decided(classes), len(classes)
    if k > ROWS_TO_CHECK:
        raise InvalidParameterError(
            f"metric must be one of the library's own, such as 'f1_macro', or have a gradient, for "
            f"more than {ROWS_TO_CHECK} classes, got the scorer {scorer!r} for {k}: its gradient "
            f"would take {2 * k} values of {k * k:,} cells. Give MetricGoal(function, gradient)."
        )
    true, decided = (each.ravel() for each in np.indices((k, k)))

    def score(true: Indices, decided: Indices, weights: Vector) -> float:
        return float(made(model, decided[:, None], classes[true], sample_weight=weights))

    def of_table(shares: Matrix) -> float:
        # More decisions than true classes: those are of classes that are not evaluated.
        return score(true, decided, shares[:k, :k].ravel())

    rng, ones = np.random.default_rng(0), np.ones(ROWS_TO_CHECK)
    labels, predicted = rng.integers(k, size=(2, ROWS_TO_CHECK))
    labels[:k] = predicted[:k] = np.arange(k)
    table = confusion_table(labels, predicted, ones, k) / ROWS_TO_CHECK
    refusal = f"metric must be determined by the confusion matrix, and the scorer {scorer!r} is not"
    try:
        values = score(labels, predicted, ones), of_table(table)
    except AttributeError as error:
        raise InvalidParameterError(
            f"{refusal}: it evaluates probabilities or rankings, which decision weights do not "
            "improve."
        ) from error
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise InvalidParameterError(
                f"metric must take sample_weight, the shares of the confusion matrix, and the "
                f"scorer {scorer!r} does not: add the argument, or give a function of the "
                "confusion matrix."
            ) from error
        raise InvalidParameterError(f"{refusal}: {error}") from error
    orders = (rng.permutation(ROWS_TO_CHECK) for _ in range(ORDERS))
    others = [values[1], *(score(labels[each], predicted[each], ones) for each in orders)]
    for other in others:
        if not np.isclose(values[0], other, rtol=1e-9, atol=1e-12):
            raise InvalidParameterError(
                f"{refusal}: {values[0]:.6g} and {other:.6g} for rows of the same confusion matrix."
            )
    return of_table
