"""Hostile problems: every solver and every place where rows can be, compared with each other.

Few rows or many of two to thirty classes, separable or not, in columns of unlike units, far from
zero, constant, empty, copies of each other or all zero but for a few; rows that are copies, weights
of any size; every set of the registry, every loss that can be trained, any strength of the penalty.

What a fit reports is compared with the objective of the numbers that it returned, formed anew from
differences that are exact, and with the best objective of all fits and of an independent solver
(CVXPY with Clarabel, where it is installed). ::

    PYTHONPATH=src:tests python tests/hostile_problems.py 0 500

prints how the fits to problems 0 to 499 ended, for each place of rows and each solver.
"""

import sys
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from equipoise import RobustLinearClassifier
from equipoise.arrays import to_numpy
from equipoise.blocks import from_blocks
from equipoise.exceptions import EquipoiseError, SeparableDataWarning
from equipoise.sets import as_uncertainty
from equipoise.solvers import SOLVERS
from equipoise.solvers.base import FLOOR
from equipoise.text import text_table
from linear_models import class_risks, cp, optimal_model
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
MAX_ITER = 100
PLACES = ("memory", "sparse", "blocks", "sparse blocks", "Dask", "tensors")
# "auto" takes "sqp-newton" of problems as small as these.
NAMED = tuple(name for name in SOLVERS if name != "sqp-newton")
WAYS = tuple((place, solver) for place in PLACES for solver in ("auto", *NAMED))
# How a fit ends: as good as the best of all fits and converged, stationary with a loss that is not
# convex, with a warning, refused with a sentence, or wrong without a word.
ENDS = ("agreed", "not convex", "warned", "refused", "silently off")
# The independent solver on a problem: within twice the tolerance of the best fit, better or worse
# than it, without a result, or not asked because the loss is not convex.
REFERENCES = ("agrees", "is better", "is worse", "fails", "is not asked")
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

    @property
    def convex(self):
        return self.settings["loss"] != "margin"

    @property
    def prior(self):
        """Shares of the classes."""
        return np.bincount(self.labels, self.weights) / self.total

    def objective(self, model):
        """The objective of the coefficients and intercepts that a model has."""
        used = self.weights > 0
        rows, labels, weights = self.X[used].astype(float), self.labels[used], self.weights[used]
        coef, intercept = to_numpy(model.coef_), to_numpy(model.intercept_)
        moved = exact_scores(coef, intercept, rows[0])
        risks = class_risks(rows - rows[0], labels, weights, coef, moved, self.settings["loss"])
        return self.support(risks) + float((coef**2).sum()) / (2 * model.C * self.total)

    def support(self, risks):
        """The robust risk of class risks."""
        return as_uncertainty(self.settings["goal"]).resolve(self.prior).support(risks)

    def independent(self):
        """The objective at the optimum of another solver, in centred columns of unit scale."""
        used, loss = self.weights > 0, self.settings["loss"]
        rows, labels, weights = self.X[used].astype(float), self.labels[used], self.weights[used]
        if cp is None or not self.convex:
            return np.inf
        if self.settings["fit_intercept"]:
            rows = rows - rows[0]
            rows = rows - rows.mean(axis=0)
        ridge = 1 / (self.settings["C"] * self.total)
        size = np.maximum(np.sqrt((rows**2).mean(axis=0)), np.sqrt(ridge))
        size[size == 0] = 1.0
        rows, ridge = rows / size, ridge / size**2
        from set_constraints import constraints  # needs CVXPY

        found = optimal_model(
            (rows, labels, weights),
            lambda mass: constraints(as_uncertainty(self.settings["goal"]), mass, self.prior),
            ridge,
            fit_intercept=self.settings["fit_intercept"],
            loss=loss,
            sure=False,  # a point proves what it attains
        )
        if found is None:
            return np.inf
        _, coef, intercept = found
        risks = class_risks(rows, labels, weights, coef, intercept, loss)
        return self.support(risks) + float((ridge * coef**2).sum()) / 2


def exact_scores(coef, intercept, row):
    """Scores of a row, each rounded once."""
    values = [Fraction(value) for value in row.tolist()]
    pairs = zip(coef.tolist(), intercept.tolist(), strict=True)
    return np.array(
        [
            float(Fraction(b) + sum(Fraction(w) * x for w, x in zip(each, values, strict=True)))
            for each, b in pairs
        ]
    )


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
        "goal": examples[rng.integers(len(examples))],
        "loss": loss,
        "C": C,
        "fit_intercept": bool(rng.random() < 0.85),
        "tol": TOL,
        "max_iter": MAX_ITER,
    }
    return Hostile(
        X.astype(np.float32 if rng.random() < 0.2 else np.float64),
        labels,
        _weights(rng, labels),
        settings,
    )


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
        np.zeros((n, 2)),
        np.full((n, 1), 10.0 ** rng.integers(-3, 12)),
        X[:, :1],
        2 * X[:, -1:],
    ]
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
    """A fitted model, with the categories that it warned of, or the error that refused it."""

    model: Any = None
    warned: tuple[type, ...] = ()
    error: Exception | None = None

    @property
    def trusted(self):
        """Whether the model claims to be optimal."""
        fine = self.model.status_ in ("converged", "stationary")
        return fine and not any(issubclass(one, SeparableDataWarning) for one in self.warned)


def fit(problem, place="memory", solver="auto"):
    """A fit to rows in a place; None where rows cannot be there."""
    given = _rows(problem, place)
    if given is None:
        return None
    X, y, weights = given
    model = RobustLinearClassifier(solver=solver, **problem.settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, sample_weight=weights)
        except Exception as error:  # one that is not ours counts as silently off
            return Fit(error=error)
    return Fit(model, tuple(one.category for one in caught))


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


def ways(index):
    """Every place with "auto"; every other solver in memory and in a place that takes turns."""
    other = PLACES[1 + index % (len(PLACES) - 1)]
    return [way for way in WAYS if way[1] == "auto" or way[0] in ("memory", other)]


class Outcome(NamedTuple):
    """How the fits to a problem ended, by place and solver, and what is silently off."""

    ends: dict[tuple[str, str], str]
    wrong: dict[tuple[str, str], list[str]]
    reference: str  # whether the independent solver is as good as the best fit


def compare(index):
    """Fit the problem of a number everywhere and with every solver, and compare."""
    problem = draw(index)
    fits = {way: fit(problem, *way) for way in ways(index)}
    fits = {way: found for way, found in fits.items() if found is not None}
    values = {w: problem.objective(found.model) for w, found in fits.items() if found.model}
    fitted, independent = min(values.values(), default=np.inf), problem.independent()
    best = min(fitted, independent)
    wrong = {
        way: _complaints(problem, way[0], found, values.get(way, np.inf), best)
        for way, found in fits.items()
    }
    ends = {way: _end(problem, found, wrong[way]) for way, found in fits.items()}
    wrong = {way: sentences for way, sentences in wrong.items() if sentences}
    return Outcome(ends, wrong, _reference(problem, fitted, independent))


def _reference(problem, fitted, independent):
    if cp is None or not problem.convex:
        return "is not asked"
    if not np.isfinite(independent):
        return "fails"
    if abs(fitted - independent) <= 2 * TOL * max(FLOOR, abs(independent)):
        return "agrees"
    return "is better" if independent < fitted else "is worse"


def _complaints(problem, place, found, value, best):
    """What is silently off in a fit whose model attains a value, where the best is known."""
    if found.model is None:
        refused = isinstance(found.error, EquipoiseError)
        return [] if refused else [f"raised {found.error!r}"]
    model, out = found.model, []
    rounding = SINGLE if place == "tensors" and problem.X.dtype == np.float32 else EXACT
    unit = max(FLOOR, abs(value))
    if not abs(model.objective_ - value) <= rounding * unit:
        out.append(f"objective_ is off by {model.objective_ - value:.1e}")
    if not model.lower_bound_ <= best + rounding * unit:
        out.append(f"the bound is too high by {model.lower_bound_ - best:.1e}")
    if found.trusted and problem.convex and not value - best <= (TOL + 2 * rounding) * unit:
        out.append(f"{value - best:.1e} above {best:.6g}")
    if not found.trusted and not found.warned:
        out.append("it did not converge and does not warn")
    return [f"{model.status_}: {sentence}" for sentence in out]


def _end(problem, found, wrong):
    if wrong:
        return "silently off"
    if found.model is None:
        return "refused"
    if not found.trusted:
        return "warned"
    return "agreed" if problem.convex else "not convex"


def report(numbers, outcomes):
    """Lines that say how the fits to some problems ended."""
    counts = Counter((way, end) for outcome in outcomes for way, end in outcome.ends.items())
    lines = [[*way, *(str(counts[way, end]) for end in ENDS)] for way in WAYS]
    yield f"Problems {numbers[0]} to {numbers[-1]}: how fits ended."
    yield from text_table(["rows", "solver", *ENDS], lines)
    for reference in REFERENCES:
        those = [
            n for n, each in zip(numbers, outcomes, strict=True) if each.reference == reference
        ]
        which = f": {those}" if reference != REFERENCES[0] and those else ""
        yield f"The independent solver {reference} for {len(those)}{which}"
    for number, outcome in zip(numbers, outcomes, strict=True):
        for (place, solver), sentences in outcome.wrong.items():
            yield f"{number}: {place}, {solver}: {'; '.join(sentences)}"


def main(start, stop, n_jobs=1):
    """Print how the fits to some problems ended; False where one is silently off."""
    numbers = range(start, stop)
    outcomes = Parallel(n_jobs=n_jobs)(delayed(compare)(number) for number in numbers)
    sys.stdout.writelines(f"{line}\n" for line in report(numbers, outcomes))
    return not any(outcome.wrong for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:])) else 1)
