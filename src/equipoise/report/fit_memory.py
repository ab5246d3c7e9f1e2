"""Fits that are made once and serve every candidate.

A page compares many candidates that share most of their fits: the same learner on the same rows
with the same weights. Candidates are therefore made around a :class:`RememberedLearner`, whose
features are the numbers of rows: it is trained when it is first asked for probabilities, and what
it says of rows that it has not seen is remembered.
"""

import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.decisions import left_out
from equipoise.estimators.class_weighted import (
    is_robust,
    stops_early,
    train_weighted,
    weight_argument,
)
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning

# Called with the share of the work that is done, from 0 to 1, and what comes next.
Progress = Callable[[float, str], None]


class FitMemory:
    """The rows of a table, and what learners say of those that they were not trained on.

    ``most_rows`` are trained on at most, a sample of the others with the same shares of the
    classes; ``expected`` is the number of fits that are to come.
    """

    def __init__(
        self, labels: Indices, classes: NDArray[Any], *, most_rows: int, seed: int,
        expected: float, progress: Progress | None,
    ) -> None:  # fmt: skip
        self.labels, self.classes = labels, classes
        self.most_rows, self.seed = most_rows, seed
        self.largest: dict[str, int] = {}
        self.notes: dict[str, str] = {}
        self._expected, self._done, self._progress = expected, 0.0, progress
        self._known: dict[tuple[Any, ...], Matrix] = {}

    def __deepcopy__(self, memo: Any) -> "FitMemory":
        # One for all copies of a learner.
        return self

    def tell(self, what: str) -> None:
        """Say how far the work is, and what comes next."""
        if self._progress is not None:
            self._progress(min(self._done / self._expected, 0.99), what)

    def end(self) -> None:
        """Say that all is done."""
        if self._progress is not None:
            self._progress(1.0, "done")

    def note(self, label: str, caught: Iterable[warnings.WarningMessage]) -> None:
        """Of each kind of the library's warnings one is enough to be warned."""
        for each in caught:
            kind = each.category
            if issubclass(kind, EquipoiseWarning) and not issubclass(kind, InactiveCapsWarning):
                self.notes.setdefault(kind.__name__, f"{label}: {each.message}")

    def probabilities(
        self, learner: "RememberedLearner", rows: Indices, train: Indices, weights: Vector | None
    ) -> Matrix:
        """Probabilities of rows, by a learner that was trained on others."""
        key = learner.name, train.tobytes(), b"" if weights is None else weights.tobytes()
        if (*key, rows.tobytes()) not in self._known:
            self.tell(learner.name)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = self._trained(learner, train, weights)
                found = left_out.class_probabilities(model, _at(learner.X, rows), self.classes)
            self.note(learner.name, caught)
            self._done += 1
            self._known[(*key, rows.tobytes())] = found
        return self._known[(*key, rows.tobytes())]

    def _trained(self, learner: "RememberedLearner", train: Indices, weights: Vector | None) -> Any:
        if isinstance(learner.estimator, FrozenEstimator):
            return learner.estimator
        if len(train) > self.most_rows:
            kept = stratified_sample(self.labels, train, self.most_rows, self.seed)
            weights = None if weights is None else weights[np.searchsorted(train, kept)]
            train = kept
            self.largest[learner.name] = max(len(kept), self.largest.get(learner.name, 0))
        X, y = _at(learner.X, train), self.classes[self.labels[train]]
        key = weight_argument(learner.estimator)
        if key is None or (weights is None and not stops_early(learner.estimator)):
            return left_out.train_on(learner.estimator, X, y, {}, np.arange(len(y)))
        own = np.ones(len(y)) if weights is None else weights
        return train_weighted(learner.estimator, X, y, {}, key, own)


def _at(X: Any, rows: Indices) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else _safe_indexing(X, rows)


class RememberedLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A learner that knows rows by their numbers, and is trained when it is needed.

    ``X`` are the features of all rows, as the learner takes them.
    """

    def __init__(self, estimator: Any, name: str, X: Any, memory: FitMemory) -> None:
        self.estimator = estimator
        self.name = name
        self.X = X
        self.memory = memory

    def __sklearn_clone__(self) -> "RememberedLearner":
        return type(self)(self.estimator, self.name, self.X, self.memory)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take down on which rows, and with which weights."""
        self._rows = np.asarray(X, dtype=np.intp).ravel()
        self.classes_, self._weights = np.unique(y), None
        if sample_weight is not None:
            given = np.asarray(sample_weight, dtype=np.float64)
            # Equal weights are none.
            self._weights = None if np.all(given == given[0]) else given
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """What the learner says of rows by these numbers; all classes of the table are there."""
        rows = np.asarray(X, dtype=np.intp).ravel()
        found = self.memory.probabilities(self, rows, self._rows, self._weights)
        places = np.searchsorted(self.memory.classes, self.classes_)
        return found if len(places) == found.shape[1] else np.asarray(found[:, places])


class UnweightedLearner(RememberedLearner):
    """A learner that takes no weights, or that weighs the classes itself."""

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Take down on which rows."""
        return super().fit(X, y)


class FittedLearner(RememberedLearner):
    """A learner that is fitted already."""

    def __init__(self, estimator: Any, name: str, X: Any, memory: FitMemory) -> None:
        super().__init__(estimator, name, X, memory)
        self.classes_ = np.asarray(estimator.classes_)

    def predict_proba(self, X: Any) -> Matrix:
        """What it says of rows by these numbers."""
        none = np.empty(0, dtype=np.intp)
        return self.memory.probabilities(self, np.asarray(X, dtype=np.intp).ravel(), none, None)


def remembered(estimator: Any, name: str, X: Any, memory: FitMemory) -> Any:
    """A learner by the numbers of rows, of the kind that an estimator is."""
    if isinstance(estimator, FrozenEstimator):
        return FrozenEstimator(FittedLearner(estimator, name, X, memory))
    weighs = weight_argument(estimator) is None or is_robust(estimator)
    return (UnweightedLearner if weighs else RememberedLearner)(estimator, name, X, memory)


def stratified_sample(labels: Indices, rows: Indices, size: int, seed: int) -> Indices:
    """At most about so many of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    by_class = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    sizes = [int(np.ceil(size / len(rows) * len(own))) for own in by_class]
    parts = [rng.choice(own, n, replace=False) for own, n in zip(by_class, sizes, strict=True)]
    return np.sort(np.concatenate(parts))
