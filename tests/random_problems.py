"""Random problems whose optimum is known from better columns: what every solver is tried on.

Without a penalty the optimum depends on the span of the columns alone. Each problem is drawn with
columns that are easy, which give the reference, and given to solvers with the same span in columns
that are not: of wild units and offsets, collinear, nearly so, or among many empty ones.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from equipoise import LabelCVaR, PriorBall, PriorBox, RobustLinearClassifier, WeightBox, WorstClass
from equipoise.exceptions import NotConvergedWarning, SeparableDataWarning
from equipoise.solvers import SOLVERS
from equipoise.solvers.base import FLOOR
from linear_models import class_risks

TOL = 1e-6
LOSSES = ("cross_entropy", "cross_entropy", "squared_hinge", "smoothed_hinge")
COLUMNS = ("as they are", "units", "collinear", "nearly collinear", "nearly collinear", "empty")


class RandomProblem(NamedTuple):
    """Rows in easy and in hard columns, and the model to fit."""

    easy: np.ndarray
    hard: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    recipe: Any
    settings: dict[str, Any]

    def fit(self, solver, *, easy=False, **settings):
        """The fitted model, and whether it said that it might not be at the optimum."""
        model = RobustLinearClassifier(self.recipe, solver=solver, **{**self.settings, **settings})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(self.easy if easy else self.hard, self.labels, sample_weight=self.weights)
        told = (NotConvergedWarning, SeparableDataWarning)
        return model, any(issubclass(one.category, told) for one in caught)

    def plain_optimum(self, masses):
        """The least weighted risk under fixed masses, by SciPy and formulas of its own."""
        k, d = len(masses), self.easy.shape[1]
        shape = (1 if k == 2 else k, d + 1)
        free = np.ones(shape)
        free[:, -1] = self.settings["fit_intercept"]

        def risk(theta):
            table = theta.reshape(shape) * free
            given = table[:, :-1], table[:, -1]
            risks = class_risks(self.easy, self.labels, self.weights, *given, self.settings["loss"])
            return masses @ risks

        return minimize(risk, np.zeros(free.size), method="BFGS", options={"gtol": 1e-9}).fun


def draw(seed, *, penalty):
    """A problem of any kind: few rows or many, separable or not, of two to eight classes."""
    rng = np.random.default_rng([seed, penalty])
    k, d = int(rng.choice([2, 2, 3, 4, 8])), int(rng.integers(1, 9))
    n = int(rng.choice([4, 30, 100, 300]))
    labels = np.concatenate([np.repeat(np.arange(k), 3), rng.choice(k, n, p=_shares(rng, k))])
    centers = rng.choice([0.0, 0.3, 1.0, 4.0]) * rng.normal(size=(k, d))
    easy = centers[labels] + rng.normal(size=(len(labels), d))
    recipes = [
        "standard",
        "balanced",
        WorstClass(),
        LabelCVaR(float(rng.choice([0.2, 0.5, 0.9]))),
        PriorBall(0.1),
        WeightBox(0.5, 3.0),
        PriorBox(0.0, 0.95),
    ]
    settings = {
        "C": 10.0 ** rng.uniform(-3, 6) if penalty else np.inf,
        "fit_intercept": bool(rng.random() < 0.8),
        "loss": str(rng.choice(LOSSES)),
        "tol": TOL,
    }
    hard = _hard_columns(rng, easy, str(rng.choice(COLUMNS)), settings["fit_intercept"])
    recipe = recipes[rng.integers(len(recipes))]
    return RandomProblem(easy, hard, labels, rng.uniform(0.2, 2, len(labels)), recipe, settings)


def _shares(rng, k):
    return rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k


def _hard_columns(rng, easy, kind, offsets):
    """Other columns of the same span, with that of the intercept where there is one."""
    n, d = easy.shape
    if kind == "units":
        shift = 10.0 ** rng.uniform(-2, 3, d) if offsets else 0.0
        return (easy + shift) * 10.0 ** rng.uniform(-6, 6, d)
    if kind == "collinear":
        return easy @ np.hstack([np.eye(d), rng.normal(size=(d, 3))])
    if kind == "nearly collinear":
        # The first column, and each other one only as a small difference from it.
        return easy[:, :1] + easy * 10.0 ** rng.uniform(-7, -1, d) * (np.arange(d) > 0)
    if kind == "empty":
        close = _hard_columns(rng, easy, "nearly collinear", offsets)
        return np.hstack([close, np.zeros((n, 20))])
    return easy


class Outcome(NamedTuple):
    """How solvers fared on a problem."""

    silent: dict[str, float]  # by how much those were off that said nothing
    told: list[str]  # those that said that they might not be at the optimum
    agrees: bool  # whether SciPy's optimum under the same masses is the reference


def judge(seed, *, penalty, solvers=tuple(SOLVERS), max_iter=1000, check=False):
    """Fit a problem with every solver, and compare with the best that is known."""
    problem = draw(seed, penalty=penalty)
    slow = {"descent-ascent": 200}  # it hardly ever ends before
    fits = {name: problem.fit(name, max_iter=slow.get(name, max_iter)) for name in solvers}
    best, _ = problem.fit("sqp-newton", easy=not penalty, tol=1e-10)
    least = min(best.objective_, *(model.objective_ for model, _ in fits.values()))
    off = {
        name: (model.objective_ - least) / max(FLOOR, model.objective_)
        for name, (model, told) in fits.items()
        if not told
    }
    agrees = True
    if check and not penalty:
        plain = problem.plain_optimum(np.asarray(best.worst_case_masses_))
        agrees = abs(plain - best.objective_) <= 1e-5 * max(FLOOR, best.objective_)
    # A point may be better than the reference by rounding.
    silent = {name: excess for name, excess in off.items() if excess > TOL * (1 + 1e-3)}
    return Outcome(silent, [name for name, (_, told) in fits.items() if told], agrees)
