"""The choice of one level of LabelCVaR from the held-out risks of all levels."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ROUNDING, Matrix, NDArray, Vector
from equipoise.decisions.alphas import AlphaChoice, path_risks
from equipoise.decisions.evaluated import GROUPS, Evaluated
from equipoise.decisions.select import select
from equipoise.exceptions import EquipoiseWarning, warn
from equipoise.risks.intervals import counted_intervals


@dataclass(frozen=True, eq=False)
class ChosenLevel:
    """The level that is taken, and what each of all levels does to held-out rows.

    ``columns`` are arrays with an entry, or a line, for each level.
    """

    alpha: float
    index: int
    columns: dict[str, NDArray[Any]]

    def attributes(self) -> dict[str, Any]:
        """The same as fitted attributes."""
        return {"alpha_": self.alpha, "best_index_": self.index, "path_": self.columns}


def choose_level(
    choice: AlphaChoice, alphas: Vector, evaluated: list[Evaluated], classes: NDArray[Any]
) -> ChosenLevel:
    """The level that is taken by a rule: see :class:`~equipoise.decisions.alphas.AlphaChoice`."""
    prior, n = evaluated[0].prior, len(alphas)
    sums = [each.sums for each in evaluated]
    refit, k = evaluated[0].tested_per_trained, len(classes)

    def intervals(counted: Matrix, names: NDArray[Any], choices: int) -> Matrix:
        estimates = counted_intervals(counted, names, refit=refit, choices=choices)
        return np.array([estimates.risks, estimates.lower, estimates.upper])

    by_class = np.array([intervals(each, classes, n) for each in sums])
    # That no class is worse than the worst takes the lower ends of all of them together.
    lowest = np.array([intervals(each, classes, k * n)[1] for each in sums])
    # Of a class that the population lacks, or that was not evaluated, nothing is said.
    counted = (prior > 0) & ~np.isnan(by_class[:, 0]).any(axis=0)
    share = np.where(counted, prior, 0.0) / prior[counted].sum()
    every = np.array([intervals(_pooled(each, share), np.zeros(1), n) for each in sums])
    columns = {
        "alpha": alphas,
        "class_risks": by_class[:, 0],
        "class_risks_lower": by_class[:, 1],
        "class_risks_upper": by_class[:, 2],
        "standard_risk_lower": every[:, 1, 0],
        "standard_risk_upper": every[:, 2, 0],
        "worst_class_risk_lower": lowest[:, counted].max(axis=1),
        "worst_class_risk_upper": by_class[:, 2, counted].max(axis=1),
    } | path_risks(by_class[:, 0], alphas, prior)
    regrets = select(columns["largest_regret"], _regrets_without(evaluated, alphas))
    columns["largest_regret_error"] = regrets.errors
    index = regrets.index
    if choice.rule != "regret":
        index = choice.choose(by_class[:, 0], alphas, prior)
    if choice.verbose:
        _print(columns, index)
    reached = 1 - columns["worst_class_risk"][index]
    if choice.recall is not None and reached < choice.recall - ROUNDING:
        warn(
            f"No level of robustness reaches a recall of {choice.recall:g} for every class on the "
            f"held-out rows: alpha = {alphas[index]:.3g} comes closest, with {reached:.3g} for the "
            "worst class. Lower the recall, give lower alphas, or use a model that separates the "
            "classes better.",
            EquipoiseWarning,
        )
    return ChosenLevel(float(alphas[index]), index, columns)


def _regrets_without(evaluated: list[Evaluated], alphas: Vector) -> Matrix:
    """Largest regrets of the levels with each of the jackknife's groups left out."""
    without = []
    for group in range(GROUPS):
        risks = np.array([each.class_risks_without(group) for each in evaluated])
        without.append(path_risks(risks, alphas, evaluated[0].prior)["largest_regret"])
    return np.array(without).T


def _pooled(counted: NDArray[np.float64], share: Vector) -> NDArray[np.float64]:
    """The same sums as if all rows were of one class, in which classes have these shares."""
    totals = counted[:, 1].sum(axis=0)
    scale = np.divide(share, totals, out=np.zeros_like(share), where=share > 0)
    factors = [np.where(share > 0, 1.0, 0.0), scale, scale, share**2, scale]
    return np.asarray((counted * factors).sum(axis=2, keepdims=True))


def _print(columns: dict[str, NDArray[Any]], index: int) -> None:
    shown = (columns[n] for n in ("alpha", "standard_risk", "worst_class_risk", "largest_regret"))
    for line, (alpha, standard, worst, regret) in enumerate(zip(*shown, strict=True)):
        sys.stdout.write(
            f"alpha {alpha:.3g}: standard risk {standard:.4f}, worst class {worst:.4f}, largest "
            f"regret {regret:.4f}{', chosen' if line == index else ''}\n"
        )
