"""Rules made for every level of LabelCVaR, judged on rows left out, and the one that is taken."""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions import left_out
from equipoise.decisions.search import GROUPS, excess_errors
from equipoise.decisions.tuning import Outcome
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning, warn
from equipoise.goals import Goal, SetGoal
from equipoise.risks.intervals import counted_intervals
from equipoise.sets import AlphaChoice, LabelCVaR, path_risks
from equipoise.validation.folds import Parts, folds_of, refuse_few, split_rows
from equipoise.validation.labels import encode_labels
from equipoise.weights.priors import check_prior

# How much linear models allow for the optimism of small classes where their level is chosen.
ADJUSTMENT = 0.5
# Sums over rows left out that risks and intervals are made of, as ``error_sums`` gives them.
Sums = NDArray[np.float64]


def tune_along(
    choice: AlphaChoice, tune: Callable[[Goal], Outcome], classes: NDArray[Any], prior: Vector,
    few: Mask | None = None,
) -> tuple[dict[str, Any], str, dict[str, Any]]:  # fmt: skip
    """Fields of the weights of the level that is chosen, what is to be said, and attributes."""
    # A class of too few rows is not tuned, and so tells no levels apart.
    alphas = choice.levels(prior if few is None else prior[~few])
    found = [tune(SetGoal(LabelCVaR(alpha))) for alpha in alphas.tolist()]
    first, sums = found[0][0], [fields["held_out"] for fields, _, _ in found]
    n_candidates = len(alphas) * first["n_candidates"]
    more = choose_level(
        choice, alphas, sums, classes, prior, refit=first["refit"], n_candidates=n_candidates
    )
    fields, _, words = found[more["chosen_"]]
    return fields | {"n_candidates": n_candidates}, words, more


def fit_along(
    model: Any, choice: AlphaChoice, X: Any, y: NDArray[Any], sample_weight: Any,
    *, cv: Any = 5, groups: Mapping[str, Any] | None = None, seed: int = 0, n_jobs: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Which level of its set a linear model is to be fitted with, and the path, as attributes."""
    classes, labels = encode_labels(y)
    weights = left_out.row_weights(sample_weight, labels, classes)
    totals = np.bincount(labels, weights=weights)
    prior = np.asarray(totals / totals.sum())
    if model.class_prior is not None:
        prior = check_prior(model.class_prior, classes, name="class_prior")
    alphas, model = choice.levels(prior), left_out.unfitted(model).set_params(**_allowing(model))
    used = np.where(weights > 0, labels, -1)
    parts, few, needed = split_rows(cv, X, y, used, groups or {}, seed)
    refuse_few(few, needed, np.bincount(used[used >= 0]), classes, None)
    settings = [{"uncertainty": LabelCVaR(alpha)} for alpha in alphas.tolist()]
    decided = decided_along(model, settings, X, y, weights, parts, n_jobs)
    tested = np.concatenate([test for _, test in parts])
    own = labels[tested]
    folds = folds_of(parts, own, seed)
    shape = int(folds.max()) + 1, len(classes)
    sums = [
        left_out.error_sums(
            own, np.searchsorted(classes, names), folds, weights[tested], shape=shape
        )
        for names in decided
    ]
    refit = left_out.judged_per_trained(parts)
    return choose_level(choice, alphas, sums, classes, prior, refit=refit, n_candidates=len(alphas))


def fit_at(model: Any, alpha: float, X: Any, y: Any, sample_weight: Any) -> Any:
    """A linear model, fitted at a level that was chosen."""
    with warnings.catch_warnings():
        # Where no cap binds, that is what was chosen.
        warnings.simplefilter("ignore", InactiveCapsWarning)
        settings = {"uncertainty": LabelCVaR(alpha)} | _allowing(model)
        return model.set_params(**settings).fit(X, y, sample_weight)


def _allowing(model: Any) -> dict[str, float]:
    """How much a linear model allows for what its training rows hide, unless it is told."""
    return {"adjustment": ADJUSTMENT if model.adjustment is None else model.adjustment}


def decided_along(
    model: Any, settings: Sequence[Mapping[str, Any]], X: Any, y: NDArray[Any], weights: Vector,
    parts: Parts, n_jobs: Any,
) -> NDArray[Any]:  # fmt: skip
    """Classes of the tested rows, a line for each setting of a linear model; each fit goes on."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_decided_part)(model, settings, X, y, weights, part) for part in parts
    )
    return np.concatenate(found, axis=1)


def _decided_part(
    model: Any, settings: Iterable[Mapping[str, Any]], X: Any, y: NDArray[Any], weights: Vector,
    part: tuple[Indices, Indices],
) -> NDArray[Any]:  # fmt: skip
    train, test = part
    fit = left_out.unfitted(model).set_params(warm_start=True, verbose=0)
    with warnings.catch_warnings():
        # The final fit says what is to be said.
        warnings.simplefilter("ignore", EquipoiseWarning)
        return np.array(
            [
                fit.set_params(**own).fit(X[train], y[train], weights[train]).predict(X[test])
                for own in settings
            ]
        )


def choose_level(
    choice: AlphaChoice, alphas: Vector, sums: list[Sums], classes: NDArray[Any], prior: Vector,
    *, refit: float | None, n_candidates: int,
) -> dict[str, Any]:  # fmt: skip
    """The level that is taken and the path it was taken from, as fitted attributes."""
    k = len(classes)

    def intervals(counted: Sums, names: NDArray[Any], choices: int) -> Matrix:
        found = counted_intervals(counted, names, refit=refit, choices=choices)
        return np.array([found.risks, found.lower, found.upper])

    by_class = np.array([intervals(each, classes, n_candidates) for each in sums])
    # That no class is worse than the worst takes the lower ends of all of them together.
    lowest = np.array([intervals(each, classes, k * n_candidates)[1] for each in sums])
    # Of a class that no weighting counts, or that was not judged, nothing is said.
    counted = (prior > 0) & ~np.isnan(by_class[:, 0]).any(axis=0)
    share = np.where(counted, prior, 0.0) / prior[counted].sum()
    every = np.array([intervals(_pooled(each, share), np.zeros(1), n_candidates) for each in sums])
    path = {
        "alpha": alphas,
        "class_risks": by_class[:, 0],
        "class_risks_lower": by_class[:, 1],
        "class_risks_upper": by_class[:, 2],
        "standard_risk_lower": every[:, 1, 0],
        "standard_risk_upper": every[:, 2, 0],
        "worst_class_risk_lower": lowest[:, counted].max(axis=1),
        "worst_class_risk_upper": by_class[:, 2, counted].max(axis=1),
    } | path_risks(by_class[:, 0], alphas, prior)
    path["largest_regret_error"] = _regret_errors(sums, alphas, prior, path["largest_regret"])
    place = choice.choose(by_class[:, 0], alphas, prior, path["largest_regret_error"])
    if choice.verbose:
        _say(path, place)
    reached = 1 - path["worst_class_risk"][place]
    if choice.recall is not None and reached < choice.recall - 1e-12:
        warn(
            f"No level of robustness reaches a recall of {choice.recall:g} for every class on the "
            f"rows left out: alpha = {alphas[place]:.3g} comes closest, with {reached:.3g} for the "
            "worst class. Ask for less, give lower alphas, or use a model that tells the classes "
            "apart better.",
            EquipoiseWarning,
        )
    return {"alpha_": float(alphas[place]), "chosen_": place, "path_": path}


def _regret_errors(sums: list[Sums], alphas: Vector, prior: Vector, regrets: Vector) -> Vector:
    """Standard errors of how far largest regrets lie above the smallest, from folds left out."""
    # Of very many folds, some are left out together.
    groups, without = np.arange(len(sums[0])) % GROUPS, []
    for group in np.unique(groups):
        kept = np.array([each[groups != group].sum(axis=0) for each in sums])
        totals, errors = kept[:, 1], kept[:, 2]
        risks = np.divide(errors, totals, out=np.full_like(errors, np.nan), where=totals > 0)
        without.append(path_risks(risks, alphas, prior)["largest_regret"])
    best = int(np.flatnonzero(regrets <= regrets.min() + 1e-12)[0])
    return excess_errors(np.array(without).T, best)


def _pooled(counted: Sums, share: Vector) -> Sums:
    """The same sums as if all rows were of one class, in which classes have these shares."""
    totals = counted[:, 1].sum(axis=0)
    scale = np.divide(share, totals, out=np.zeros_like(share), where=share > 0)
    factors = [np.where(share > 0, 1.0, 0.0), scale, scale, share**2, scale]
    return np.asarray((counted * factors[: counted.shape[1]]).sum(axis=2, keepdims=True))


def _say(path: Mapping[str, Vector], place: int) -> None:
    columns = (path[n] for n in ("alpha", "standard_risk", "worst_class_risk", "largest_regret"))
    for line, (alpha, standard, worst, regret) in enumerate(zip(*columns, strict=True)):
        sys.stdout.write(
            f"alpha {alpha:.3g}: standard risk {standard:.4f}, worst class {worst:.4f}, largest "
            f"regret {regret:.4f}{', chosen' if line == place else ''}\n"
        )
