"""What the study of remarks computes: one function for each remark that can be checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from equipoise.datasets import PowerImbalance
from equipoise.paper.appendix_d import conditional_bounds
from equipoise.paper.fits import SYNTHETIC_C, exact_fit
from equipoise.paper.methods import Method
from equipoise.paper.ramps import (
    SETS,
    P,
    RampSample,
    bound_record,
    corners_of,
    options,
    population_risks,
)
from equipoise.paper.records import Record
from equipoise.paper.splits import synthetic_split
from equipoise.paper.training import (
    BlockedRows,
    ClosedFormMasses,
    LearningRates,
    StepMasses,
    TrainedLevel,
    train,
)
from equipoise.risks import ClassRisks
from equipoise.sets import LabelCVaR, LabelHCVaR
from equipoise.theory import (
    LocalPolynomialClassifier,
    conditional_bound,
    robust_bayes,
    robust_bayes_known,
)

LOCAL, KERNEL, NEIGHBOURS = "local polynomials, degree 1", "kernel regression", "nearest neighbours"
MARGIN, LIPSCHITZ = "margin loss, 4k", "Lipschitz loss of two classes"
CLOSED, TRAINED, SCALED = "closed form", "trained level", "trained, masses scaled"
# The margin loss of f_1 = -f_0 changes twice as fast as f_1.
_SLOPE = 2.0
# Points of the interval at which estimates are compared with the regression function.
_N_POINTS = 2_000
# Where the class frequencies alone change, the classes look as they do at this p.
FIXED_P = 0.9
# A point is near the boundary where its probability is within this of one half.
_NEAR = 0.25
# The prior at which the levels of LHCVaR are shown.
SHOWN_PRIOR = (0.6, 0.3, 0.1)


def estimators(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """The L1 distance of three estimates of the regression function."""
    model = PowerImbalance(P)
    points, weights = model.quadrature(_N_POINTS)
    truth, shares = model.eta(points[:, 0]), weights / weights.sum()
    made: dict[str, Any] = {
        LOCAL: LocalPolynomialClassifier(degree=1),
        KERNEL: LocalPolynomialClassifier(degree=0),
        # The number of neighbours of the best rate for functions of smoothness one.
        NEIGHBOURS: KNeighborsClassifier(n_neighbors=round(n_rows ** (2 / 3))),
    }
    records = []
    for seed in seeds:
        rows = model.sample(n_rows, seed)
        for name, estimator in made.items():
            estimate = estimator.fit(*rows).predict_proba(points)[:, 1]
            distance = float(shares @ np.abs(estimate - truth))
            records.append({"estimator": name, "n_rows": n_rows, "seed": seed, "l1": distance})
    return records


@dataclass(frozen=True)
class ScaledMasses(StepMasses):
    """Masses of others, scaled to sum to one, so that steps are as long as those of a weighting."""

    masses: StepMasses

    def at(self, risks: NDArray[Any], rate: float) -> NDArray[Any]:
        masses = self.masses.at(risks, rate)
        total = masses.sum(axis=1, keepdims=True)
        return masses / np.where(total > 0, total, 1.0)


def levels(
    *, method: dict[str, Any], n_rows: int, epochs: list[int], seeds: list[int]
) -> list[Record]:
    """How far above the optimum training ends, with the level in closed form or trained."""
    chosen = Method(**method)
    split = synthetic_split(P, n_rows, 1, seeds[0])
    rows = BlockedRows(split.X.astype(np.float32), split.y)
    masses = chosen.uncertainty().resolve(rows.prior)
    optimum = exact_fit(chosen, split.X, split.y, C=SYNTHETIC_C).robust_risk_
    records = []
    for count in epochs:
        rates = LearningRates(0.1, 0.001, count)
        caps = chosen.caps(rows.prior)
        ways: dict[str, StepMasses] = {
            CLOSED: ClosedFormMasses(masses),
            TRAINED: TrainedLevel(caps),
            SCALED: ScaledMasses(TrainedLevel(caps)),
        }
        for name, step_masses in ways.items():
            risks, _ = rows.risks(train(rows, step_masses, rates, seeds))
            for seed, row in zip(seeds, risks.astype(np.float64), strict=True):
                above = float(masses.support(row)) - optimum
                case = {"set": chosen.label, "level": name, "epochs": count, "seed": seed}
                records.append({**case, "above": above})
    return records


def lipschitz(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """Appendix D's bound, and the one for a Lipschitz loss of one decision function."""
    truth, records = population_risks(), []
    for seed in seeds:
        sample = RampSample.draw(n_rows, seed)
        for method in SETS:
            settings = options(method, lipschitz=_SLOPE)
            rows = sample.counts, sample.complexity
            by_slope = (
                conditional_bound(*rows, risks=sample.risks[0], **settings),
                conditional_bound(*rows, **settings),
            )
            bounds = {MARGIN: conditional_bounds(sample, method), LIPSCHITZ: by_slope}
            for name, pair in bounds.items():
                record = bound_record(sample.risks, truth, corners_of(method), pair)
                case = {"loss": name, "set": method.label, "n_rows": n_rows, "seed": seed}
                records.append({**case, **record})
    return records


def imbalance(*, p: float) -> list[Record]:
    """The Bayes rules of the synthetic model, and what imbalance alone does."""
    model, fixed = PowerImbalance(p), PowerImbalance(FIXED_P)
    points, weights = model.quadrature(_N_POINTS)
    near = np.abs(model.eta(points[:, 0]) - 0.5) <= _NEAR
    probabilities = fixed.predict_proba(points)
    alone = robust_bayes(
        probabilities, "worst_class", class_prior=[p, 1 - p], sample_weight=weights
    )
    risks = model.bayes_class_risks("standard")
    return [
        {
            "p": p,
            "risk[0]": float(risks[0]),
            "risk[1]": float(risks[1]),
            "near": float(weights @ near / weights.sum()),
            "worst": robust_bayes_known(model, "worst_class").risk,
            "worst_of_fixed_classes": alone.risk,
        }
    ]


def duals(*, n_classes: int, seeds: list[int]) -> list[Record]:
    """Propositions 4 and 5, and that LCVaR is the CVaR of the risk of a row's class.

    ``value`` is LHCVaR of risks that grow evenly from 0 to 1 at levels from 0.2 to 0.8.
    """
    records = []
    even = (np.arange(n_classes) + 0.5) / n_classes
    uniform = np.full(n_classes, 1 / n_classes)
    limit = _primal_and_dual(even, uniform, 0.2 + 0.6 * even)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        # Risks of no bounded loss, over several orders of magnitude.
        risks, prior = rng.lognormal(0, 4, n_classes), rng.dirichlet(np.ones(n_classes))
        alphas = rng.uniform(0.05, 1, n_classes)
        alpha = float(rng.uniform(0.05, 1))
        primal, dual = _primal_and_dual(risks, prior, alphas)
        cvar = ClassRisks(risks, prior).robust(LabelCVaR(alpha))
        gaps = abs(primal - dual) / primal, abs(cvar - _tail_mean(risks, prior, alpha)) / cvar
        records.append(
            {
                "n_classes": n_classes,
                "seed": seed,
                "dual_gap": gaps[0],
                "cvar_gap": gaps[1],
                "value": limit[0],
                "value_gap": abs(limit[0] - limit[1]),
            }
        )
    return records


def _primal_and_dual(risks: Any, prior: Any, alphas: Any) -> tuple[float, float]:
    """LHCVaR by its masses, and the smallest value of its dual, which is at one of the risks."""
    primal = ClassRisks(risks, prior).robust(LabelHCVaR(alphas=alphas))
    order = np.argsort(-risks)
    caps, sorted_risks = (prior / alphas)[order], risks[order]
    # Sums over the risks above each candidate: of caps, and of caps times risks.
    sums, moments = np.cumsum(caps), np.cumsum(caps * sorted_risks)
    values = sorted_risks + moments - sorted_risks * sums
    return primal, float(values.min())


def _tail_mean(risks: Any, prior: Any, alpha: float) -> float:
    """The mean risk of the worst share of a population whose rows suffer their class's risk."""
    order = np.argsort(-risks)
    before = np.concatenate([[0.0], np.cumsum(prior[order])])
    shares = np.diff(np.minimum(before, alpha))
    return float(shares @ risks[order]) / float(shares.sum())


def kappas(*, kappa: float, c: float) -> list[Record]:
    """The levels of LHCVaR, and the largest weights that they allow."""
    p = np.array(SHOWN_PRIOR)
    powers = p ** (1 / kappa)
    alphas = c * powers / powers.sum()
    fields = {f"alpha[{i}]": float(alpha) for i, alpha in enumerate(alphas)}
    caps = LabelHCVaR(c=c, kappa=kappa).resolve(p).upper
    fields |= {f"largest_mass[{i}]": float(cap) for i, cap in enumerate(np.minimum(caps, 1))}
    return [{"kappa": kappa, "c": c, **fields}]
