"""Held-out predictions of the linear model, for every set of weightings and along alpha."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.analysis import RobustPath, robust_path
from equipoise.arrays import Indices as Rows
from equipoise.arrays import Vector
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning
from equipoise.report.choices import Choice
from equipoise.report.folds import MANY_ROWS, Design, stratified_sample
from equipoise.report.steps import Steps
from equipoise.sets import FixedWeights, LabelCVaR, Uncertainty, WorstClass
from equipoise.tables import LabelledTable as Table
from equipoise.tables import preprocessor
from equipoise.validation.labels import positions

# Work of a path of fits, each started from the last, in fits.
PATH_UNITS = 8.0
# Certified relative gap of the fits: shares of errors know nothing finer.
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Findings:
    """What the fits of a model have said, filled fold after fold.

    Attributes
    ----------
    predicted : dict of arrays by label of the choice
        Class index predicted for every row, -1 for rows that only train.
    notes : dict of str
        Warnings of the fits, one of each kind for each choice.
    largest_gap : list of float
        Certified relative gaps of the fits.
    """

    predicted: dict[str, Rows] = field(default_factory=dict)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)

    def take(self, key: str, n_rows: int, rows: Rows, classes: Rows) -> None:
        """Keep the classes predicted for some rows."""
        kept = self.predicted.setdefault(key, np.full(n_rows, -1, dtype=np.intp))
        kept[rows] = classes

    @contextmanager
    def listening(self, key: str) -> Iterator[None]:
        """Keep the library's warnings as notes, and drop those of the preprocessing."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            kind = warning.category
            if issubclass(kind, EquipoiseWarning) and not issubclass(kind, InactiveCapsWarning):
                self.notes.setdefault((key, kind.__name__), str(warning.message))


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """Held-out predictions along a grid of alpha.

    Attributes
    ----------
    alphas : ndarray of shape (n_values,)
    predicted : ndarray of shape (n_values, n_rows)
        Class index predicted for every row, -1 for rows that only train.
    weights : ndarray of shape (n_values, n_classes)
        Worst-case weights, mean over the folds.
    caps_bind : ndarray of bool of shape (n_values,)
    n_rows : int
        Training rows of each path at most.
    """

    alphas: Vector
    predicted: NDArray[np.int32]
    weights: Any
    caps_bind: Any
    n_rows: int


def linear_findings(
    table: Table,
    design: Design,
    choices: Sequence[Choice],
    alphas: Vector,
    steps: Steps,
    seed: int,
) -> tuple[Findings, AlphaPath]:
    """Fit on every training part, predict the rows judged there, and do so along alpha."""
    found = Findings()
    along = np.full((len(alphas), len(table.y)), -1, dtype=np.int32)
    weights, bind, largest = [], [], 0
    for fold, train, test in design.parts():
        rows = _transformed(table, train, test, found)
        steps.begin(f"linear, along alpha ({_where(fold, design)})")
        path, size = _path(table, rows, train, alphas, found, seed)
        for place, fit in enumerate(path.estimators):
            along[place, test] = positions(fit.predict(rows[1]), table.classes)
        weights.append([np.asarray(fit.worst_case_weights_) for fit in path.estimators])
        bind.append(path.caps_bind)
        largest = max(largest, size)
        steps.did(PATH_UNITS)
        known = path if size == len(train) else None
        for choice in choices:
            steps.begin(f"{choice.label} ({_where(fold, design)})")
            model = _fitted(table, choice, rows, train, known, found)
            found.gaps.append(model.duality_gap_ / max(model.objective_, 1e-3))
            predicted = positions(model.predict(rows[1]), table.classes)
            found.take(choice.label, len(table.y), test, predicted)
            steps.did(1)
    mean = np.mean(weights, axis=0)
    return found, AlphaPath(alphas, along, mean, np.any(bind, axis=0), largest)


def _where(fold: int, design: Design) -> str:
    return "hold-out" if design.n_folds == 1 else f"fold {fold + 1} of {design.n_folds}"


def _transformed(table: Table, train: Rows, test: Rows, found: Findings) -> tuple[Any, Any]:
    with found.listening("features"):
        features = preprocessor(table.X, "linear").fit(table.X.iloc[train])
        return features.transform(table.X.iloc[train]), features.transform(table.X.iloc[test])


def _fitted(
    table: Table,
    choice: Choice,
    rows: tuple[Any, Any],
    train: Rows,
    path: RobustPath | None,
    found: Findings,
) -> RobustLogisticRegression:
    """The fit for a choice; where the path to the same rows passes through it, that one."""
    place = None if path is None else _place(choice.uncertainty, path)
    if path is not None and place is not None:
        return path.estimators[place]
    model = RobustLogisticRegression(choice.uncertainty, tol=TOLERANCE)
    with found.listening(choice.label):
        model.fit(rows[0], table.y[train], sample_weight=table.weights_at(train))
    return model


def _place(uncertainty: Uncertainty, path: RobustPath) -> int | None:
    """Where a path of alpha solves the problem of a set."""
    if isinstance(uncertainty, WorstClass):
        free = np.flatnonzero(~path.caps_bind)
        return int(free[0]) if len(free) else None
    alpha = None
    if isinstance(uncertainty, LabelCVaR):
        alpha = uncertainty.alpha
    elif isinstance(uncertainty, FixedWeights) and isinstance(uncertainty.weights, str):
        alpha = 1.0 if uncertainty.weights == "standard" else None
    same: Any = np.flatnonzero(path.values == alpha) if alpha is not None else ()
    return int(same[0]) if len(same) else None


def _path(
    table: Table,
    rows: tuple[Any, Any],
    train: Rows,
    alphas: Vector,
    found: Findings,
    seed: int,
) -> tuple[RobustPath, int]:
    kept = stratified_sample(table.labels, train, MANY_ROWS, seed)
    within = np.searchsorted(train, kept)
    with found.listening("along alpha"):
        path = robust_path(
            rows[0][within],
            table.y[kept],
            LabelCVaR(alpha=1.0),
            values=alphas.tolist(),
            estimator=RobustLogisticRegression(tol=TOLERANCE),
            sample_weight=table.weights_at(kept),
        )
    return path, len(kept)
