"""Hostile problems: every solver and every place where rows can be, compared with each other.

Few rows or many of two to thirty classes, separable or not, in columns of unlike units, far from
zero, constant, empty, copies of each other or all zero but for a few; rows that are copies, weights
of any size; every set of the registry, every loss that can be trained, any strength of the penalty.

What a fit says of itself is compared with the objective of the numbers that it returned, formed
anew from differences that are exact, and with the best objective of all fits.
"""

import warnings
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from equipoise import RobustLinearClassifier
from equipoise.arrays import to_numpy
from equipoise.blocks import from_blocks
from equipoise.exceptions import EquipoiseError, SeparableDataWarning
from equipoise.sets import as_uncertainty
from equipoise.solvers.base import FLOOR
from linear_models import class_risks
from set_examples import every_example

try:
    import dask.array as da
except ImportError:
    da = None
try:
    import torch
except ImportError:
    torch = None

TOL = 1e-6
MAX_ITER = 150
# Solvers that "auto" may take of larger problems, on an array in memory; of these it takes
# "sqp-newton". And places of rows, with "auto".
SOLVERS = ("sqp-lbfgs", "multipliers")
PLACES = ("memory", "sparse", "blocks", "sparse blocks", "Dask", "tensors")
TRAINED = ("cross_entropy", "cross_entropy", "squared_hinge", "smoothed_hinge", "margin")
# Rounding of risks, relative to the objective: of sums of some hundred rows in float64, and of rows
# whose standardised copy is in float32.
EXACT, SINGLE = 1e-9, 3e-7


class Hostile(NamedTuple):
    """Rows, and the model to fit."""

    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    settings: dict[str, Any]

    @property
    def total(self):
        return float(self.weights.sum())

    def objective(self, model):
        """The objective of the coefficients and intercepts that a model has."""
        used = self.weights > 0
        rows, labels, weights = self.X[used].astype(float), self.labels[used], self.weights[used]
        coef, intercept = to_numpy(model.coef_), to_numpy(model.intercept_)
        moved = exact_scores(coef, intercept, rows[0])
        risks = class_risks(rows - rows[0], labels, weights, coef, moved, self.settings["loss"])
        prior = np.bincount(labels, weights) / self.total
        masses = as_uncertainty(self.settings["uncertainty"]).resolve(prior, model.classes_)
        return masses.support(risks) + float((coef**2).sum()) / (2 * model.C * self.total)


def exact_scores(coef, intercept, row):
    """Scores of a row, each rounded once."""
    values = [Fraction(value) for value in row.tolist()]
    pairs = zip(coef.tolist(), intercept.tolist(), strict=True)
    return np.array([
        float(Fraction(b) + sum(Fraction(w) * x for w, x in zip(each, values, strict=True)))
        for each, b in pairs
    ])  # fmt: skip


def draw(index):
    """The problem of a number."""
    rng = np.random.default_rng([index, 20])
    k, d = int(rng.choice([2, 2, 3, 4, 5, 8, 15, 30])), int(rng.choice([1, 2, 3, 5, 8]))
    n = int(rng.choice([0, 20, 60, 150]))
    labels = np.concatenate([np.arange(k).repeat(2), rng.choice(k, n, p=rng.dirichlet(np.ones(k)))])
    centers = rng.choice([0.0, 0.3, 1.0, 4.0, 30.0]) * rng.normal(size=(k, d))
    X = centers[labels] + rng.normal(size=(len(labels), d))
    X = _hostile_columns(rng, X)
    if rng.random() < 0.3:  # copies of rows, of other classes too
        copies = rng.choice(len(X), len(X) // 2)
        X[: len(copies)] = X[copies]
    loss = str(rng.choice(TRAINED))
    C = float(10.0 ** rng.uniform(-4, 6))
    if loss != "margin" and rng.random() < 0.2:
        C = np.inf
    examples = every_example()
    settings = {
        "uncertainty": examples[rng.integers(len(examples))],
        "loss": loss,
        "C": C,
        "fit_intercept": bool(rng.random() < 0.85),
        "tol": TOL,
        "max_iter": MAX_ITER,
    }
    return Hostile(
        X.astype(np.float32 if rng.random() < 0.2 else np.float64), labels, _weights(rng, labels),
        settings,
    )  # fmt: skip


def _hostile_columns(rng, X):
    n, d = X.shape
    if rng.random() < 0.3:  # mostly zeros
        X = X * (rng.random(X.shape) < rng.choice([0.05, 0.3]))
    if rng.random() < 0.4:
        some = rng.random(d) < 0.5
        X = X + some * rng.normal(size=d) * 10.0 ** rng.uniform(0, rng.choice([4, 13]), d)
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-6, 6, d)
    more = [
        np.zeros((n, 2)), np.full((n, 1), 10.0 ** rng.integers(-3, 12)), X[:, :1], 2 * X[:, -1:],
    ]  # fmt: skip
    chosen = [columns for columns in more if rng.random() < 0.15]
    return np.hstack([X, *chosen])


def _weights(rng, labels):
    kind = rng.choice(["none", "none", "some", "wild", "zeros"])
    weights = np.ones(len(labels))
    if kind == "some":
        weights = rng.uniform(0.2, 2.0, len(labels))
    elif kind == "wild":
        weights = 10.0 ** rng.uniform(-3, 3, len(labels))
    elif kind == "zeros":
        weights = (rng.random(len(labels)) < 0.7).astype(float)
        weights[: 2 * (labels.max() + 1)] = 1.0
    return weights


class Fit(NamedTuple):
    """How a fit ended: a word, the model, and whether it warned that there may be no optimum."""

    status: str
    model: Any = None
    warned: bool = False


def fit(problem, solver="auto", place="memory"):
    """A fit with a solver to rows in a place; None where rows cannot be there."""
    given = _rows(problem, place)
    if given is None:
        return None
    X, y, weights = given
    model = RobustLinearClassifier(solver=solver, **problem.settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight=weights)
        except EquipoiseError as error:
            return Fit(f"refused: {error}")
    warned = any(issubclass(one.category, SeparableDataWarning) for one in caught)
    return Fit(model.status_, model, warned)


def _rows(problem, place):
    X, y, weights, half = problem.X, problem.labels, problem.weights, len(problem.labels) // 2
    if place.startswith("sparse"):
        X = sp.csr_matrix(X)
    if place.endswith("blocks"):
        parts = slice(0, half), slice(half, None)
        return from_blocks([(X[part], y[part], weights[part]) for part in parts]), None, None
    if place == "Dask" and da is not None:
        return (da.from_array(part, chunks=(half, *part.shape[1:])) for part in (X, y, weights))
    if place == "tensors" and torch is not None and problem.settings["loss"] == "cross_entropy":
        return torch.tensor(X), torch.tensor(y), weights
    return None if place in ("Dask", "tensors") else (X, y, weights)


class Outcome(NamedTuple):
    """How all fits of a problem ended, and what those that said nothing have wrong."""

    statuses: Counter  # by place or solver, and word
    wrong: list[str]


def judge(index):
    """Fit the problem of a number everywhere and with every solver, and compare."""
    problem = draw(index)
    fits = {place: fit(problem, place=place) for place in PLACES}
    fits |= {solver: fit(problem, solver=solver) for solver in SOLVERS}
    known = {name: found for name, found in fits.items() if found is not None}
    objectives = {n: problem.objective(f.model) for n, f in known.items() if f.model is not None}
    convex = problem.settings["loss"] != "margin"
    best, wrong = min(objectives.values(), default=np.inf), []
    for name, value in objectives.items():
        status, model, warned = known[name]
        rounding = SINGLE if name == "tensors" and problem.X.dtype == np.float32 else EXACT
        unit = max(FLOOR, abs(value))
        if not abs(model.objective_ - value) <= rounding * unit:
            wrong.append(f"{name}, {status}: objective_ is off by {model.objective_ - value:.1e}")
        if not model.lower_bound_ <= best + rounding * unit:
            wrong.append(f"{name}, {status}: bound too high by {model.lower_bound_ - best:.1e}")
        fine = status in ("converged", "stationary") and not warned and convex
        if fine and not value - best <= (TOL + 2 * rounding) * unit:
            wrong.append(f"{name}, {status}: {value - best:.1e} above {best:.6g}")
    statuses = Counter((name, _word(found)) for name, found in known.items())
    return Outcome(statuses, wrong)


def _word(found):
    return found.status.partition(":")[0] + (", with a warning" if found.warned else "")
