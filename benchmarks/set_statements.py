"""Prediction sets: how often what is proven of them holds.

python benchmarks/set_statements.py [--redraws 500] [--learners "naive Bayes"]

Decided before the first run. Gaussian classes in 8 columns around random means; 3, 10 and 30
classes of equal size, or of sizes that fall evenly on a logarithmic scale to a tenth; 40
calibration rows of a class on average. Every redraw trains on as many rows as it calibrates on, at
level 0.9, and is evaluated on 200 new rows of each class.

mean        The mean coverage over redraws must be 0.9 at least: over all rows (standard), over
            classes (balanced), of each class (by class; the lowest is printed), at 200 vectors of
            class frequencies drawn from the set, and at the worst of the set (robust). The lowest
            of many means is low by chance: the worst class, draw or weighting is chosen on the even
            redraws and its mean is printed of the odd ones, with its standard error. "inside" is
            the mean where every redraw has class frequencies of its own from inside the set.
confidence  With confidence 0.9 the coverage of a fitted rule, at the worst class, draw or
            weighting, must be 0.9 in 0.9 of the redraws. New rows tell a coverage to some points:
            redraws count that reach 0.9 less two standard errors of the new rows. "inside" is the
            share of redraws with the coverage at class frequencies of their own.

The vectors drawn from a set are, in turn, projections of Dirichlet draws into it, which are on its
surface but for the most part not corners, and means of two such, which are inside.
"""

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from equipoise import LabelCVaR, PriorBox
from equipoise.decisions.conformal import CoverageTask, calibration_rows, in_sets, thresholds
from equipoise.decisions.set_goals import coverage_task
from equipoise.sets import Uncertainty, as_uncertainty

COVERAGE, CONFIDENCES = 0.9, (None, 0.9)
LEARNERS = {
    "naive Bayes": GaussianNB(),
    "logistic": LogisticRegression(max_iter=200),
    "tree of depth 6": DecisionTreeClassifier(max_depth=6, random_state=0),
}
N_CLASSES = (3, 10, 30)
ROWS_OF_A_CLASS, NEW_ROWS, PRIORS = 40, 200, 200


def goals(k: int) -> dict[str, Any]:
    """What sets are made for, by name."""
    return {
        "standard": "standard",
        "balanced": "balanced",
        "by class": {0: COVERAGE},
        "LabelCVaR(0.2)": LabelCVaR(0.2),
        "PriorBox(2/k)": PriorBox(upper=2 / k),
    }


class Blobs(NamedTuple):
    """Classes around means, and the rows of each."""

    means: np.ndarray
    counts: np.ndarray

    @property
    def prior(self) -> np.ndarray:
        return self.counts / self.counts.sum()

    def rows(self, rng: np.random.Generator, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat(np.arange(len(counts)), counts)
        return self.means[y] + rng.normal(size=(len(y), self.means.shape[1])), y


def blobs(k: int, long_tailed: bool) -> Blobs:
    shares = np.geomspace(1, 0.1, k) if long_tailed else np.ones(k)
    counts = np.maximum(np.round(ROWS_OF_A_CLASS * k * shares / shares.sum()), 2).astype(int)
    return Blobs(np.random.default_rng(k).normal(size=(k, 8)), counts)


def coverages(problem: Blobs, learner: Any, seed: int, tasks: list[CoverageTask]) -> np.ndarray:
    """Coverage of each class on new rows, for each task."""
    rng = np.random.default_rng(seed)
    model = clone(learner).fit(*problem.rows(rng, problem.counts))
    X, y = problem.rows(rng, problem.counts)
    X_new, y_new = problem.rows(rng, np.full(len(problem.counts), NEW_ROWS))
    rows, new = calibration_rows(model.predict_proba(X), y), model.predict_proba(X_new)
    own = new[np.arange(len(y_new)), y_new][:, None]
    lowest = np.array([thresholds(rows, task) for task in tasks])
    return in_sets(own, lowest.T[y_new]).reshape(-1, NEW_ROWS, len(tasks)).mean(axis=1).T


def weightings(name: str, goal: Any, prior: np.ndarray) -> tuple[np.ndarray, Any]:
    """Weightings at which the coverage is promised, and the set whose worst one is."""
    k = len(prior)
    if name == "by class":
        return np.eye(k), None
    masses = as_uncertainty(goal).resolve(prior)
    if not isinstance(goal, Uncertainty):
        return np.asarray(masses.project(prior))[None], None
    rng = np.random.default_rng(0)
    surface = np.array([masses.project(p) for p in rng.dirichlet(np.full(k, 0.3), PRIORS)])
    inside = np.arange(PRIORS) % 2 == 1
    return np.where(inside[:, None], (surface + surface[::-1]) / 2, surface), masses


def of_each(table: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The coverage of each redraw at class frequencies of its own, from inside the set."""
    own = drawn[1::2][np.arange(len(table)) % (PRIORS // 2)]
    return np.sum(table * own, axis=1)


def mean_line(table: np.ndarray, drawn: np.ndarray, masses: Any) -> str:
    """The mean coverage at the weighting that is the worst on the even redraws, of the odd ones."""
    even, odd = table[::2].mean(axis=0), table[1::2]
    worst = drawn[np.argmin(drawn @ even)]
    line = f"mean coverage {with_error(odd @ worst)}"
    if masses is not None:
        line += f", at the worst of the set {with_error(odd @ masses.maximize(1 - even))}"
        line += f", inside {with_error(of_each(table, drawn))}"
    return line


def with_error(values: np.ndarray) -> str:
    return f"{values.mean():.3f} (standard error {values.std() / np.sqrt(len(values)):.3f})"


def confidence_line(table: np.ndarray, drawn: np.ndarray, masses: Any) -> str:
    """The share of redraws whose rule has the coverage, at the worst weighting."""
    lowest = (table @ drawn.T).min(axis=1)
    if masses is not None:
        lowest = np.array([1 - masses.support(1 - row) for row in table])
    top = drawn if masses is None else masses.bounds[1][None]
    squares = float(np.minimum((top**2).sum(axis=1), 1).max())
    error = np.sqrt(COVERAGE * (1 - COVERAGE) / NEW_ROWS * squares)
    held = np.mean(lowest >= COVERAGE - 2 * error)
    line = f"holds in {held:.3f} of redraws, mean of the lowest coverage {lowest.mean():.3f}"
    if masses is not None:
        line += f", inside in {np.mean(of_each(table, drawn) >= COVERAGE - 2 * error):.3f}"
    return line


def statements(learners: list[str], redraws: int) -> None:
    for learner in learners:
        for k in N_CLASSES:
            for long_tailed in (False, True):
                problem = blobs(k, long_tailed)
                named = [(c, *each) for c in CONFIDENCES for each in goals(k).items()]
                tasks = [
                    coverage_task(goal, COVERAGE, confidence, problem.prior, np.arange(k))
                    for confidence, _, goal in named
                ]
                held = [coverages(problem, LEARNERS[learner], s, tasks) for s in range(redraws)]
                for (confidence, name, goal), table in zip(
                    named, np.array(held).transpose(1, 0, 2), strict=True
                ):
                    line = mean_line if confidence is None else confidence_line
                    promise = "mean" if confidence is None else "confidence"
                    print(
                        f"{learner:15} {k:2} classes, {'long tail' if long_tailed else 'equal':9} "
                        f"{promise:10} {name:14} "
                        f"{line(table, *weightings(name, goal, problem.prior))}",
                        flush=True,
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redraws", type=int, default=500)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    statements(given.learners, given.redraws)


if __name__ == "__main__":
    main()
