"""Linear models fitted along a grid of settings, each evaluated on held-out rows."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import as_blocks
from equipoise.decisions import Evaluated, LabelledRows, evaluate_labels, split
from equipoise.decisions.levels import ChosenLevel, choose_level
from equipoise.decisions.trained import unfitted
from equipoise.decisions.tuned_weights import row_weights
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning, InvalidInputError
from equipoise.sets import AlphaChoice, LabelCVaR
from equipoise.validation.labels import encode_labels
from equipoise.weights.priors import check_prior

# ADJUSTMENT: how much linear models allow for the optimism of small classes where their level is
# chosen, in standard errors (docs/studies/adjustment.txt).
ADJUSTMENT = 0.5


def refuse_out_of_core(X: Any, y: Any, sample_weight: Any, what: str) -> None:
    """Refuse rows that are not in memory, which fits to folds would pull there."""
    if as_blocks(X, y, sample_weight, check_memory("1 GiB")) is not None:
        raise InvalidInputError(
            f"{what} is chosen by fits to folds of rows in memory, got out-of-core data: choose it "
            "on a sample, and fit RobustLogisticRegression to all rows."
        )


def evaluated_along(
    model: Any, settings: Sequence[Mapping[str, Any]], X: Any, y: Any, sample_weight: Any,
    *, cv: Any, groups: Mapping[str, Any], seed: int, n_jobs: Any,
) -> tuple[list[Evaluated], LabelledRows]:  # fmt: skip
    """What a linear model predicts for held-out rows with each of some settings.

    Each fit is started from the last.
    """
    classes, labels = encode_labels(y)
    weights = row_weights(sample_weight, labels, classes)
    totals = np.bincount(labels, weights=weights)
    prior = np.asarray(totals / totals.sum())
    if model.class_prior is not None:
        prior = check_prior(model.class_prior, classes, name="class_prior")
    rows = LabelledRows(X, y, np.where(weights > 0, labels, -1), classes, weights, {})
    folds = split(cv, X, y, rows.labels, classes, params=groups, seed=seed)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_predicted_along)(model, settings, rows, part) for part in folds.parts
    )
    tested = folds.rows
    return [
        evaluate_labels(
            labels[tested], np.searchsorted(classes, names), weights[tested], folds, prior
        )
        for names in np.concatenate(found, axis=1)
    ], rows


def _predicted_along(
    model: Any, settings: Iterable[Mapping[str, Any]], rows: LabelledRows,
    part: tuple[Indices, Indices],
) -> NDArray[Any]:  # fmt: skip
    train, test = part
    fit, X, y = unfitted(model).set_params(warm_start=True, verbose=0), rows.X, rows.y
    with warnings.catch_warnings():
        # The final fit says what is to be said.
        warnings.simplefilter("ignore", EquipoiseWarning)
        return np.array(
            [
                fit.set_params(**own).fit(X[train], y[train], rows.weights[train]).predict(X[test])
                for own in settings
            ]
        )


def choose_alpha(
    model: Any, choice: AlphaChoice, X: Any, y: NDArray[Any], sample_weight: Any,
    *, cv: Any = 5, groups: Mapping[str, Any] | None = None, seed: int = 0, n_jobs: Any = None,
) -> ChosenLevel:  # fmt: skip
    """The level of its set that a linear model is to be fitted with."""
    classes, labels = encode_labels(y)
    weights = row_weights(sample_weight, labels, classes)
    prior = np.bincount(labels, weights=weights) / weights.sum()
    if model.class_prior is not None:
        prior = check_prior(model.class_prior, classes, name="class_prior")
    alphas: Vector = choice.levels(prior)
    evaluated, _ = evaluated_along(
        unfitted(model).set_params(**_allowing(model)),
        [{"goal": LabelCVaR(alpha)} for alpha in alphas.tolist()],
        X, y, sample_weight, cv=cv, groups=groups or {}, seed=seed, n_jobs=n_jobs,
    )  # fmt: skip
    return choose_level(choice, alphas, evaluated, classes)


def fit_at(model: Any, alpha: float, X: Any, y: Any, sample_weight: Any) -> Any:
    """A linear model, fitted at a level that was chosen."""
    with warnings.catch_warnings():
        # Where no cap binds, that is what was chosen.
        warnings.simplefilter("ignore", InactiveCapsWarning)
        settings = {"goal": LabelCVaR(alpha)} | _allowing(model)
        return model.set_params(**settings).fit(X, y, sample_weight)


def _allowing(model: Any) -> dict[str, float]:
    """How much a linear model allows for what its training rows hide, unless the user says."""
    return {"adjustment": ADJUSTMENT if model.adjustment is None else model.adjustment}
