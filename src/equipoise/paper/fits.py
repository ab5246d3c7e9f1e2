"""The three ways in which a study fits the same model, and how each fit is judged.

``exact``
    :class:`~equipoise.RobustLogisticRegression` to its certificate.
``text``
    Gradient descent as the paper's text says: rates from 0.01 down to 0.0001 over 2,000 epochs,
    the worst case in closed form. The text says nothing about the start; it is that of the
    scripts.
``scripts``
    Gradient descent as the authors' published scripts do: the level of the dual trained beside
    the model, and schedules of their own.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import FewRowsWarning, InactiveCapsWarning
from equipoise.paper.methods import Method
from equipoise.paper.sources import Floats, Split
from equipoise.paper.study import Record
from equipoise.paper.training import (
    ClosedFormMasses,
    Masses,
    Rates,
    Rows,
    TrainedLevel,
    Weights,
    predict,
    train,
)
from equipoise.risks import ClassRisks, class_risks

WAYS = {
    "exact": "solved exactly",
    "text": "trained as the text says",
    "scripts": "trained as the scripts do",
}

# A mass within this of its cap has reached it.
_AT_CAP = 1e-6
_MAX_ITER = 5000

Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Training:
    """A recipe of gradient descent.

    Attributes
    ----------
    way : str
        One of :data:`WAYS`.
    first, last : float
        Rates of the first and the last epoch.
    last_fixed : float
        Rate of the last epoch for the standard and the balanced risk.
    trained_level : bool
        Whether the level of the dual is trained beside the model.
    """

    way: str
    first: float
    last: float
    last_fixed: float
    trained_level: bool

    def rates(self, method: Method, epochs: int) -> Rates:
        """The rates for a method."""
        return Rates(self.first, self.last_fixed if method.is_fixed else self.last, epochs)

    def masses(self, method: Method, rows: Rows) -> Masses:
        """How the masses come about for a method."""
        if self.trained_level and not method.is_fixed:
            return TrainedLevel(method.caps(rows.prior))
        return ClosedFormMasses(method.uncertainty().resolve(rows.prior))


TRAININGS = {
    "text": Training("text", 0.01, 0.0001, 0.0001, trained_level=False),
    "synthetic-scripts": Training("scripts", 0.1, 0.001, 0.001, trained_level=True),
    "covertype-scripts": Training("scripts", 0.01, 0.0001, 0.01, trained_level=True),
}


def exact_fit(method: Method, X: Floats, y: NDArray[Any], *, C: float) -> RobustLogisticRegression:
    """The optimum, with its certificate."""
    with warnings.catch_warnings():
        # Studies say themselves where caps bind, and repeat what rests on few rows over seeds.
        warnings.simplefilter("ignore", InactiveCapsWarning)
        warnings.simplefilter("ignore", FewRowsWarning)
        fit = RobustLogisticRegression(method.uncertainty(), C=C, max_iter=_MAX_ITER)
        return fit.fit(X, y)


def exact_records(methods: Sequence[Method], split: Split, *, C: float) -> list[Record]:
    """One record per method: the exact fit, its certificate and its test risks."""
    fits = _per_set(methods, split.y, lambda method: exact_fit(method, split.X, split.y, C=C))
    return [
        {
            "method": method.label,
            "way": "exact",
            "C": C,
            "caps": caps_state(fit, method),
            "train_risk": fit.robust_risk_,
            "objective": fit.objective_,
            "gap": fit.duality_gap_,
            **risk_fields(class_risks(split.y_test, fit.predict(split.X_test))),
        }
        for method, fit in fits
    ]


def trained_records(
    methods: Sequence[Method],
    split: Split,
    *,
    training: str,
    epochs: int,
    seeds: list[int],
    C: float,
) -> list[Record]:
    """One record per method and seed: where training ends, and the optimum it should reach.

    The optimum is the training risk of the exact fit with penalty ``C``. It lies above that of the
    problem without a penalty, which training pursues: the distance shown is at least so large.
    """
    rows = Rows(split.X.astype(np.float32), split.y)
    recipe = TRAININGS[training]

    def run(method: Method) -> Weights:
        return train(rows, recipe.masses(method, rows), recipe.rates(method, epochs), seeds)

    def optimum(method: Method) -> float:
        return exact_fit(method, split.X, split.y, C=C).robust_risk_

    # With a trained level the steps depend on how far the caps lie above one.
    runs = zip(methods, map(run, methods), strict=True)
    ends = runs if recipe.trained_level else _per_set(methods, split.y, run)
    optima = _per_set(methods, split.y, optimum)
    return [
        {"method": method.label, "way": recipe.way, "seed": seed, "optimum": lowest, **judged}
        for (method, W), (_, lowest) in zip(ends, optima, strict=True)
        for seed, judged in zip(seeds, _judged(method, W, rows, split), strict=True)
    ]


def _judged(method: Method, W: Weights, rows: Rows, split: Split) -> Iterator[Record]:
    """Training risk and test risks of every start."""
    masses = method.uncertainty().resolve(rows.prior)
    at_end, _ = rows.risks(W)
    for weights, risks in zip(W, at_end.astype(np.float64), strict=True):
        predicted = predict(weights, split.X_test, rows.classes)
        fields = risk_fields(class_risks(split.y_test, predicted))
        yield {"train_risk": float(masses.support(risks)), **fields}


def caps_state(fit: RobustLogisticRegression, method: Method) -> str:
    """What the caps of the set do at the optimum.

    ``none``: the set is the whole simplex; ``idle``: there are caps, but the optimum reaches none
    of them, so that it is the optimum of the worst-class problem as well; ``active``: it does
    reach one. Empty for the standard and the balanced risk.
    """
    if method.is_fixed:
        return ""
    if not fit.caps_bind_:
        return "none"
    reached = np.asarray(fit.worst_case_masses_) >= method.caps(fit.class_prior_) - _AT_CAP
    return "active" if np.any(reached) else "idle"


def risk_fields(risks: ClassRisks) -> Record:
    """Class risks and their summaries, as fields of a record."""
    return {
        "standard_risk": risks.standard(),
        "worst_class_risk": risks.worst(),
        "worst_class": risks.worst_class(),
        **{f"risk[{name}]": risk for name, risk in risks.items()},
    }


def _per_set(
    methods: Sequence[Method], y: NDArray[Any], run: Callable[[Method], Fitted]
) -> Iterator[tuple[Method, Fitted]]:
    """Each method with what ``run`` makes of it, made once for methods with the same set."""
    prior = np.unique(y, return_counts=True)[1] / len(y)
    made: dict[tuple[float, ...], Fitted] = {}
    for method in methods:
        masses = method.uncertainty().resolve(prior)
        # The largest mass of every class tells points and capped simplices apart.
        key = tuple(round(float(masses.support(row)), 12) for row in np.eye(len(prior)))
        if key not in made:
            made[key] = run(method)
        yield method, made[key]
