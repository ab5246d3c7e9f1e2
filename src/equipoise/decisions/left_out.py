r"""Predictions for rows that their model has not seen: what decision weights are judged by.

Conventions
-----------
``probabilities`` : float64, shape ``(n_rows, n_classes)``, columns in class order.
``labels`` : class index of every row; -1 for a row that is left out altogether.
``parts`` : indices of training rows and of test rows, a pair for every split.
``weights`` : decision weights :math:`w \geq 0`, one per class; only their ratios matter. A row gets
    the class :math:`\arg\max_i w_i \eta_i(x)`, the first one in a tie. For two classes this is
    :math:`\eta_1 > w_0 / (w_0 + w_1)`.
``costs`` : by true class (first) and decision (second); a row gets the class
    :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}`, the first one in a tie.
"""

import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.stopping import with_rows_to_stop_by
from equipoise.exceptions import EquipoiseWarning
from equipoise.validation.classifiers import stops_early
from equipoise.validation.folds import Parts, folds_of
from equipoise.validation.labels import known_labels, weights_and_totals
from equipoise.validation.predictions import as_probabilities

# Rows whose products stay in the cache.
_BLOCK = 1 << 12
# Weighted probabilities differ by less than this share of them where they differ by rounding alone.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Predictions:
    """Rows that decision weights can be tuned or judged on.

    Examples
    --------
    >>> rows = Predictions(np.array([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 1]), np.ones(2))
    >>> rows.confusion(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 1.]])
    """

    probabilities: Matrix
    labels: Indices
    sample_weight: Vector

    @property
    def n_classes(self) -> int:
        return int(self.probabilities.shape[1])

    @cached_property
    def totals(self) -> Vector:
        """Weight of each class."""
        totals = np.bincount(self.labels, weights=self.sample_weight, minlength=self.n_classes)
        return np.asarray(totals, dtype=np.float64)

    @cached_property
    def prior(self) -> Vector:
        """Share of each class in the rows."""
        return np.asarray(self.totals / self.totals.sum())

    @cached_property
    def effective_rows(self) -> Vector:
        """Rows of each class, those of unequal weight counted as fewer (Kish)."""
        shares = self.sample_weight / self.totals[self.labels]
        squares = np.bincount(self.labels, shares**2, minlength=self.n_classes)
        rows = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)
        # So that thirty rows of equal weight are thirty.
        return np.asarray(np.round(rows, 6), dtype=np.float64)

    @cached_property
    def by_class(self) -> list[Indices]:
        """Rows of each class that have weight."""
        # Of 16 bits, a stable sort takes one pass for each eight.
        short = self.labels.astype(np.uint16) if self.n_classes < 1 << 16 else self.labels
        order = np.argsort(short, kind="stable")
        order = order[self.sample_weight[order] > 0]
        counts = np.bincount(self.labels[order], minlength=self.n_classes)
        return np.split(order, np.cumsum(counts)[:-1])

    def confusion(self, weights: Vector) -> Matrix:
        """Weight of rows by true class (first) and decision (second)."""
        return self.table(decide(self.probabilities, weights))

    def table(self, decided: Indices) -> Matrix:
        """Weight of rows by true class (first) and given decision (second)."""
        k = self.n_classes
        counts = np.bincount(self.labels * k + decided, weights=self.sample_weight, minlength=k * k)
        return np.asarray(counts, dtype=np.float64).reshape(k, k)

    def error_sums(self, decided: Indices, folds: Indices, some: Mask) -> NDArray[np.float64]:
        """What class risks and their intervals are made of, for some of the classes."""
        rows = np.flatnonzero(some[self.labels])
        given = (self.labels[rows], decided[rows], folds[rows], self.sample_weight[rows])
        return error_sums(*given, shape=(int(folds.max()) + 1, self.n_classes))

    def take(self, rows: Indices) -> "Predictions":
        """Some of the rows."""
        return Predictions(self.probabilities[rows], self.labels[rows], self.sample_weight[rows])

    def carried(self, factors: Vector) -> "Predictions":
        """The rows, and up to a factor their odds, where classes are so many times as frequent."""
        weights = self.sample_weight * factors[self.labels]
        return Predictions(self.probabilities * factors, self.labels, weights)

    def among(self, some: Mask) -> "Predictions":
        """The rows of some classes, as if there were no others."""
        rows, classes = np.flatnonzero(some[self.labels]), np.flatnonzero(some)
        probabilities = self.probabilities[np.ix_(rows, classes)]
        # A row that only other classes are possible for has no preference among these.
        probabilities[~probabilities.any(axis=1)] = 1 / len(classes)
        labels = np.searchsorted(classes, self.labels[rows])
        return Predictions(probabilities, labels, self.sample_weight[rows])


def error_sums(
    labels: Indices, decided: Indices, folds: Indices, weights: Vector, *, shape: tuple[int, int],
    times: Indices | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Sums over the rows of every fold and class, of shape (n_folds, 4, n_classes).

    They are the number of rows, their weight, the weight of wrong decisions, and the squares of
    shares in the weight of the class: all that risks and their intervals depend on. A row may stand
    for several, ``times`` of them.
    """
    n_folds, k = shape
    often = np.ones(len(labels)) if times is None else times
    shares = weights / np.bincount(labels, weights=weights * often, minlength=k)[labels]
    cells, wrong = folds * k + labels, weights * (decided != labels)
    sums = [
        np.bincount(cells, weights=values * often, minlength=n_folds * k).reshape(n_folds, k)
        for values in (np.ones(len(labels)), weights, wrong, shares**2)
    ]
    return np.stack(sums, axis=1).astype(np.float64)


def row_weights(sample_weight: Any, labels: Indices, classes: NDArray[Any]) -> Vector:
    """Weights of the rows; no class that has rows may be without weight."""
    present, among_present = np.unique(labels, return_inverse=True)
    return weights_and_totals(sample_weight, among_present, classes[present])[0]


# Decisions


def steadied(rule: Vector) -> Vector:
    """Decision weights by which the first of classes wins that rounding alone keeps apart."""
    return np.asarray(rule * (1 - _ROUNDING * np.arange(len(rule))))


def decide(probabilities: Matrix, rule: Vector | Matrix) -> Indices:
    """Class indices chosen by decision weights, or by a matrix of costs.

    Weighted probabilities that differ by rounding alone are equal, as votes of trees often are: the
    first class is taken, in whatever order the weights were multiplied.

    Examples
    --------
    >>> table = np.array([[0.5, 0.3, 0.2]])
    >>> decide(table, np.array([1.0, 1, 3])), decide(table, np.array([[0, 1, 9]] * 3))
    (array([2]), array([0]))
    """
    if rule.ndim == 2:
        return np.asarray(np.argmax(scores(probabilities, rule), axis=1), dtype=np.intp)
    rule = steadied(rule)
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1] * rule[1] > probabilities[:, 0] * rule[0]
        return np.asarray(second, dtype=np.intp)
    out = np.empty(len(probabilities), dtype=np.intp)
    for start in range(0, len(out), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.argmax(probabilities[block] * rule, axis=1, out=out[block])
    return out


def decide_by_folds(
    probabilities: Matrix, rule: Vector | Matrix, fold_weights: Matrix | None, parts: Parts,
    labels: Indices, seed: int,
) -> Indices:  # fmt: skip
    """Every row decided by the weights that were tuned without its fold, or by one rule."""
    decided, folds = decide(probabilities, rule), folds_of(parts, labels, seed)
    for fold, line in enumerate(() if fold_weights is None else fold_weights):
        decided[folds == fold] = decide(probabilities[folds == fold], line)
    return decided


def scores(probabilities: Matrix, rule: Vector | Matrix) -> NDArray[np.float64]:
    """What the decision goes by: the largest of a row decides.

    For two classes and weights it is one number a row, positive for the second class.
    """
    if rule.ndim == 1:
        weighted = probabilities * steadied(rule)
        return weighted if len(rule) > 2 else np.asarray(weighted[:, 1] - weighted[:, 0])
    found = np.zeros_like(probabilities)
    # Class by class and not as one product, whose rounding depends on the number of rows.
    for column, prices in zip(probabilities.T, rule, strict=True):
        found -= column[:, None] * prices
    return found


# Training, and the probabilities that come out


def rows_of(values: Any, rows: Indices, n_rows: int) -> Any:
    """Some rows, in order; all of them without a copy."""
    return values if len(rows) == n_rows else _safe_indexing(values, rows)


def train_on(
    estimator: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any], rows: Indices,
    *, quiet: bool = False,
) -> Any:  # fmt: skip
    """A copy of the estimator, fitted to some rows; arguments with an entry a row follow them.

    If ``quiet``, what is to be said of the training is left to another one, on all rows.
    """
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EquipoiseWarning)
            return train_on(estimator, X, y, params, rows)
    n_rows, stopping = len(y), dict[str, Any]()
    if stops_early(estimator):
        rows, stopping = with_rows_to_stop_by(estimator, X, y, params, rows)
    own = params if len(rows) == n_rows else _check_method_params(X, params, rows)
    own = {**own, **stopping}
    features, names = rows_of(X, rows, n_rows), rows_of(y, rows, n_rows)
    try:
        return unfitted(estimator).fit(features, names, **own)
    except (TypeError, ValueError) as error:
        classes = np.unique(names)
        if classes.dtype.kind in "biu" and np.array_equal(classes, np.arange(len(classes))):
            raise
        # Some take classes as numbers from 0 on alone; what else is wrong goes wrong again.
        try:
            return NumberedClasses(estimator).fit(features, names, **own)
        except Exception as with_numbers:
            raise error from with_numbers


def unfitted(estimator: Any) -> Any:
    """A copy without what was fitted, also of an estimator that scikit-learn refuses to clone."""
    try:
        return clone(estimator)
    except RuntimeError:
        # Its constructor copies what it is given, as CatBoost's does with lists of columns.
        return deepcopy(estimator)


class NumberedClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that takes classes as numbers 0, 1, ... alone, for classes of any names.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> NumberedClasses(LogisticRegression()).fit([[0.0], [1.0]], ["a", "b"]).predict([[2.0]])
    array(['b'], dtype='<U1')
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit a copy of the estimator to the places of the classes among their sorted names."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.estimator_ = unfitted(self.estimator).fit(X, numbers, **params)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The names of the classes that the estimator predicts."""
        return np.asarray(self.classes_[np.asarray(self.estimator_.predict(X), dtype=np.intp)])

    def predict_proba(self, X: Any) -> Any:
        """The estimator's probabilities, columns in the order of the sorted names."""
        return self.estimator_.predict_proba(X)


def predict_parts(
    train: Callable[[Indices], Any], X: Any, labels: Indices, weights: Vector, parts: Parts,
    *, classes: NDArray[Any], n_jobs: Any,
) -> tuple[Predictions, Any]:  # fmt: skip
    """Predictions for all test rows, one split after the other, and the model of the first."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(predict_part)(train, X, part, classes) for part in parts
    )
    models, tables = zip(*found, strict=True)
    tested = np.concatenate([test for _, test in parts])
    return Predictions(np.concatenate(tables), labels[tested], weights[tested]), models[0]


def predict_part(
    train: Callable[[Indices], Any], X: Any, part: tuple[Indices, Indices], classes: NDArray[Any]
) -> tuple[Any, Matrix]:
    """A model that was trained on the rows of a part, and what it says of the others."""
    model = train(part[0])
    return model, class_probabilities(model, _safe_indexing(X, part[1]), classes)


def judged_per_trained(parts: Parts) -> float:
    """Rows judged for each row of a training part."""
    return float(sum(len(test) for _, test in parts) / np.mean([len(train) for train, _ in parts]))


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Matrix:
    """Probabilities of a fitted model, with a column of zeros for a class it has never seen.

    Those of a model that has scores alone are their logistic transformation.
    """
    known = np.asarray(getattr(model, "classes_", classes))
    if hasattr(model, "predict_proba"):
        source = f"predict_proba of {type(model).__name__}"
        given = as_probabilities(model.predict_proba(X), len(known), name=source)
    else:
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        scores = np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores
        given = softmax(scores, axis=1)
    if np.array_equal(known, classes):
        return given
    aligned = np.zeros((len(given), len(classes)))
    aligned[:, known_labels(known, classes, owner="the classifier")] = given
    return aligned
