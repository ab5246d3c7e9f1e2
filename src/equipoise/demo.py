"""A tour on the bundled data, in a few seconds: ``python -m equipoise.demo``.

The same model is fitted for five ideas of how much each class matters. The tables show whom each
fit fails, how sure that is, and what it costs when another idea turns out to be right.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.by_class import ByClass
from equipoise.datasets import load_thyroid
from equipoise.estimators import RobustLogisticRegression
from equipoise.priors import Vector
from equipoise.risks import ClassRisks, RiskIntervals, class_risk_intervals, class_risks
from equipoise.sets import FixedWeights, LabelCVaR, Uncertainty, WorstClass

FIXED: dict[str, Uncertainty] = {
    "standard": FixedWeights("standard"),
    "balanced": FixedWeights("balanced"),
}
ROBUST: dict[str, Uncertainty] = {
    "CVaR 0.5": LabelCVaR(alpha=0.5),
    "CVaR 0.2": LabelCVaR(alpha=0.2),
    "worst class": WorstClass(),
}
CHOICES = FIXED | ROBUST

INTRODUCTION = """\
Whom does a classifier fail, and what does it cost to change that?

{n_train:,} patients to fit, {n_test:,} others to test (UCI Thyroid Disease, bundled). Logistic
regression, fitted five times; only the say of the classes differs.

  standard      every patient counts the same
  balanced      every class counts the same
  CVaR 0.5      the worst weighting in which no patient counts more than 2-fold
  CVaR 0.2      the same, 5-fold
  worst class   the worst weighting of all: the class with the largest loss decides
"""

INTERVALS = """\
The intervals are exact (Clopper-Pearson): the classifiers have not seen these patients. There are
only {rows} in the class {rarest!r}, and its intervals are up to {width:.2f} wide.
"""

WORLDS = """\
Against which weights was each fit made, and how far is it from the optimum?

A robust fit does best under the worst weights of its set, the adversary's. A weight of 2 makes a
patient count twice. The objective is the loss (cross-entropy) of the training patients under these
weights, with the penalty. The gap is certified: no coefficients bring it down by more than that.
"""

COSTS = """\
What does each choice cost if other weights are right?

Weighted share of wrong test patients. Down a column: one idea of the weights, for the robust ones
those of the table above, and what each of the five classifiers pays under it.
"""

REGRETS = """\
Regret: the same numbers, minus the smallest of their column

The last column is the most that a choice costs over the weights shown.
"""

CLOSING = """\
Read this with care. It is one split of one data set, with {rows} test patients in the smallest
class. The fits minimise the cross-entropy and the tables count errors; these need not agree.
Balanced weights are a strong baseline for linear models on small data. Robust fits are for those
who cannot say which weights are right; they do not lower every number.
"""


def main() -> None:
    """Fit, judge, and print."""
    train, test = load_thyroid(subset="train"), load_thyroid(subset="test")
    print(INTRODUCTION.format(n_train=len(train.data), n_test=len(test.data)))
    models = fit_choices(train.data, train.target)
    fits = {name: model[-1] for name, model in models.items()}
    labels = {name: model.predict(test.data) for name, model in models.items()}
    risks = {name: class_risks(test.target, labels[name]) for name in models}
    intervals = {name: class_risk_intervals(test.target, labels[name]) for name in models}
    sizes = class_sizes(test.target)
    print_risks(risks, sizes)
    print_intervals(intervals, sizes)
    print_worlds(fits)
    print_costs(risks, worlds_of(fits))
    print(CLOSING.format(rows=min(sizes.values())))


def fit_choices(X: NDArray[np.float64], y: NDArray[np.str_]) -> dict[str, Pipeline]:
    """The same model, fitted for each idea of how much the classes matter."""
    return {
        name: make_pipeline(StandardScaler(), RobustLogisticRegression(uncertainty)).fit(X, y)
        for name, uncertainty in CHOICES.items()
    }


def class_sizes(y: NDArray[np.str_]) -> ByClass:
    """Number of rows of each class."""
    classes, counts = np.unique(y, return_counts=True)
    return ByClass(counts, classes)


def worlds_of(fits: dict[str, RobustLogisticRegression]) -> dict[str, Uncertainty]:
    """The weights to judge by: the two usual ones, and the adversaries' of the robust fits."""
    return FIXED | {name: FixedWeights(fits[name].worst_case_weights_) for name in ROBUST}


def weighted_risks(risks: dict[str, ClassRisks], worlds: dict[str, Uncertainty]) -> Vector:
    """Risk of each classifier (rows) under each weighting (columns)."""
    return np.array([[risk.robust(world) for world in worlds.values()] for risk in risks.values()])


def print_risks(risks: dict[str, ClassRisks], sizes: ByClass) -> None:
    """Class risks next to the three usual summaries."""
    rows = {
        name: _decimals([*risk.values(), risk.standard(), risk.balanced(), risk.worst()])
        for name, risk in risks.items()
    }
    counts = [f"{size}" for size in sizes.values()]
    print("Whom does each classifier fail? Share of wrong test patients\n")
    print_table(
        [*sizes, "standard", "balanced", "worst class"],
        {"(test patients)": [*counts, "", "", ""], **rows},
    )


def print_intervals(intervals: dict[str, RiskIntervals], sizes: ByClass) -> None:
    """The ends of the confidence intervals of the class risks."""
    rows = {
        name: [f"{each.lower:.3f} to {each.upper:.3f}" for each in by_class.values()]
        for name, by_class in intervals.items()
    }
    print("How sure is that? Each with 95% confidence\n")
    print_table(list(sizes), rows)
    rarest = min(sizes, key=sizes.__getitem__)
    widest = max(each.upper[rarest] - each.lower[rarest] for each in intervals.values())
    print(INTERVALS.format(rarest=rarest, rows=sizes[rarest], width=widest))


def print_worlds(fits: dict[str, RobustLogisticRegression]) -> None:
    """The weights that each fit was made for, its objective and its certificate."""
    rows = {
        name: [
            *(f"{weight:.2f}" for weight in fit.worst_case_weights_.values()),
            f"{fit.objective_:.4f}",
            f"{fit.duality_gap_:.0e}",
        ]
        for name, fit in fits.items()
    }
    print(WORLDS)
    print_table([*next(iter(fits.values())).classes_, "objective", "gap"], rows)


def print_costs(risks: dict[str, ClassRisks], worlds: dict[str, Uncertainty]) -> None:
    """Each classifier under the weightings that the others were made for, and its regrets."""
    costs = weighted_risks(risks, worlds)
    regrets = costs - costs.min(axis=0)
    largest = regrets.max(axis=1)
    print(COSTS)
    print_table(list(worlds), _by_name(risks, costs))
    print(REGRETS)
    print_table([*worlds, "largest"], _by_name(risks, np.column_stack([regrets, largest])))
    best = int(largest.argmin())
    print(f"Smallest largest regret: {list(risks)[best]} ({largest[best]:.3f}).\n")


def print_table(header: list[str], rows: dict[str, list[str]]) -> None:
    """Columns of cells, right-aligned under their header."""
    names = ["fitted for", *rows]
    columns = zip(header, *rows.values(), strict=True)
    cells = [[name.ljust(max(map(len, names))) for name in names]]
    cells += [[cell.rjust(max(map(len, column))) for cell in column] for column in columns]
    for line in zip(*cells, strict=True):
        print(("  " + "  ".join(line)).rstrip())
    print()


def _by_name(names: Iterable[str], matrix: Vector) -> dict[str, list[str]]:
    return dict(zip(names, map(_decimals, matrix), strict=True))


def _decimals(values: list[float] | Vector) -> list[str]:
    return [f"{value:.3f}" for value in values]


if __name__ == "__main__":
    main()
