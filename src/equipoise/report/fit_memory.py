"""Fits that are made once and serve every candidate.

A page compares many candidates that share most of their fits: the same learner on the same rows
with the same weights. Candidates are therefore made around a :class:`RememberedLearner`, whose
features are the numbers of rows: it is trained when it is first asked for probabilities, and what
it says of rows that it has not seen is remembered.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from html import escape
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
    repeats,
    train_weighted,
    weight_argument,
)
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning
from equipoise.report.design import Decided, Design
from equipoise.validation.folds import Parts

# Called with the share of the work that is done, from 0 to 1, and what comes next.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class FitMemory:
    """The labels of a table, and what learners say of rows that they were not trained on.

    ``most_rows`` are trained on at most, a sample of the others with the same shares of the
    classes; ``expected`` is the number of fits that are to come. ``largest`` are the sizes of
    samples by model, ``notes`` what the fits warned of. ``models`` are kept where other rows are to
    be predicted by them.
    """

    labels: Indices
    classes: NDArray[Any]
    most_rows: int
    seed: int
    expected: float
    progress: Progress | None
    largest: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    models: dict[tuple[str, bytes], Any] | None = None
    _known: dict[tuple[Any, ...], Matrix] = field(default_factory=dict)

    def tell(self, what: str) -> None:
        """Say how far the work is, and what comes next."""
        if self.progress is not None:
            self.progress(min(len(self._known) / self.expected, 0.99), what)

    def end(self) -> None:
        """Say that all is done."""
        if self.progress is not None:
            self.progress(1.0, "done")

    def note(self, label: str, caught: Iterable[warnings.WarningMessage]) -> None:
        """Of each kind of the library's warnings one is enough to be warned."""
        for each in caught:
            kind = each.category
            if issubclass(kind, EquipoiseWarning) and not issubclass(kind, InactiveCapsWarning):
                self.notes.setdefault(kind.__name__, f"{label}: {each.message}")

    def learner(self, estimator: Any, name: str, X: Any) -> Any:
        """An estimator that knows the rows of ``X`` by their numbers, and shares its fits."""

        def ask(rows: Indices, train: Indices, weights: Vector | None) -> Matrix:
            weighted = b"" if weights is None else weights.tobytes()
            key = name, train.tobytes(), weighted, rows.tobytes()
            if key not in self._known:
                self.tell(name)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    part = train, rows
                    fit = partial(self._trained, estimator, name, X, weights=weights)
                    model, self._known[key] = left_out.predict_part(fit, X, part, self.classes)
                    if self.models is not None:
                        self.models[name, weighted] = model
                self.note(name, caught)
            return self._known[key]

        if isinstance(estimator, FrozenEstimator):
            return FrozenEstimator(FittedLearner(estimator, ask))
        weighs = weight_argument(estimator) is None or is_robust(estimator)
        return (UnweightedLearner if weighs else RememberedLearner)(estimator, ask)

    def model_of(self, decided: Decided, learners: Mapping[str, Any], design: Design) -> Any:
        """The model that has decided for a candidate, of those that are kept."""
        assert self.models is not None
        name, table = decided.candidate.model, design.table
        if isinstance(learners[name], FrozenEstimator):
            return self.models[name, b""]
        given = decided.training, design.parts[0][0], table.labels, table.weights
        _, own = learners[name].trained_on(*given)
        return self.models[name, b"" if own is None else own.tobytes()]

    def _trained(
        self, estimator: Any, name: str, X: Any, train: Indices, weights: Vector | None
    ) -> Any:
        if isinstance(estimator, FrozenEstimator):
            return estimator
        if len(train) > self.most_rows:
            kept = stratified_sample(self.labels, train, self.most_rows, self.seed)
            weights = None if weights is None else weights[np.searchsorted(train, kept)]
            train = kept
            self.largest[name] = max(len(kept), self.largest.get(name, 0))
        rows, y = _safe_indexing(X, train), self.classes[self.labels[train]]
        key = weight_argument(estimator)
        if key is None or weights is None:
            return left_out.train_on(estimator, rows, y, {}, np.arange(len(y)))
        # Rows that are to be repeated are so already.
        return train_weighted(estimator, rows, y, {}, key, weights, np.ones(len(y), dtype=np.intp))


def notebook_bar() -> Progress | None:
    """A bar in the notebook that this runs in, which vanishes in the end; None elsewhere."""
    # Whoever runs in a notebook has loaded it.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display = ipython.display  # type: ignore[union-attr]
    shown = display.display(display.HTML(""), display_id=True)

    def tell(share: float, what: str) -> None:
        bar = f'<progress value="{share:.3f}" max="1"></progress> {escape(what)}'
        shown.update(display.HTML("" if share >= 1 else bar))

    return tell


class RememberedLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A learner that knows rows by their numbers, and is trained when it is needed.

    ``ask`` gives probabilities of rows, by a fit to others with weights.
    """

    def __init__(self, estimator: Any, ask: Callable[..., Matrix]) -> None:
        self.estimator = estimator
        self.ask = ask

    def __sklearn_clone__(self) -> "RememberedLearner":
        return type(self)(self.estimator, self.ask)

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
        """What the learner says of rows by these numbers."""
        rows = np.asarray(X, dtype=np.intp).ravel()
        return self.ask(rows, self._rows, self._weights)

    def held_out(
        self, parts: Parts, labels: Indices, training: Vector | None,
        weights: Vector | None,
    ) -> Matrix:  # fmt: skip
        """Probabilities of the rows of all parts, by fits with class weights to the others."""
        return np.concatenate(
            [
                self.ask(test, *self.trained_on(training, train, labels, weights))
                for train, test in parts
            ]
        )

    def trained_on(
        self, training: Vector | None, train: Indices, labels: Indices, weights: Vector | None
    ) -> tuple[Indices, Vector | None]:
        """Rows of a training part as they are trained on, and weights; equal ones are none."""
        own = None if weights is None else weights[train]
        if training is not None and not np.all(training == training[0]):
            own_labels = labels[train]
            of_class = training[own_labels]
            times = repeats(self, np.bincount(own_labels))[own_labels]
            own = np.repeat((of_class if own is None else of_class * own) / times, times)
            train = np.repeat(train, times)
        return train, None if own is None or np.all(own == own[0]) else own


class UnweightedLearner(RememberedLearner):
    """A learner that takes no weights, or that weighs the classes itself."""

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
        """Take down on which rows."""
        return super().fit(X, y)

    def held_out(
        self, parts: Parts, labels: Indices, training: Vector | None,
        weights: Vector | None,
    ) -> Matrix:  # fmt: skip
        """Probabilities of the rows of all parts, by fits to the others."""
        return super().held_out(parts, labels, None, None)


class FittedLearner(RememberedLearner):
    """A learner that is fitted already."""

    def __init__(self, estimator: Any, ask: Callable[..., Matrix]) -> None:
        super().__init__(estimator, ask)
        self.classes_ = np.asarray(estimator.classes_)

    def predict_proba(self, X: Any) -> Matrix:
        """What it says of rows by these numbers."""
        return self.ask(np.asarray(X, dtype=np.intp).ravel(), np.empty(0, dtype=np.intp), None)


def stratified_sample(labels: Indices, rows: Indices, size: int, seed: int) -> Indices:
    """At most about so many of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    by_class = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    sizes = [int(np.ceil(size / len(rows) * len(own))) for own in by_class]
    parts = [rng.choice(own, n, replace=False) for own, n in zip(by_class, sizes, strict=True)]
    return np.sort(np.concatenate(parts))
