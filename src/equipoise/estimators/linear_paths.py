"""Linear models fitted along a grid of settings, each evaluated on held-out rows."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from equipoise.arrays import Indices, NDArray, on_host
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import as_blocks
from equipoise.decisions import Evaluated, LabelledRows, Splitting, split
from equipoise.decisions.alphas import AlphaChoice
from equipoise.decisions.levels import choose_level
from equipoise.decisions.trained import unfitted
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning, InvalidInputError
from equipoise.sets import LabelCVaR
from equipoise.validation.labels import complete_labels, encode_labels, weights_and_totals

# ADJUSTMENT: allowance of linear models for the optimism of small classes where their level is
# chosen, in standard errors (docs/studies/adjustment.txt).
ADJUSTMENT = 0.5


def path_rows(model: Any, X: Any, y: Any, sample_weight: Any, what: str) -> LabelledRows:
    """Rows in memory, as a linear model takes them; ``what`` is chosen by fits to folds of them."""
    if as_blocks(X, y, sample_weight, check_memory("1 GiB")) is not None:
        raise InvalidInputError(
            f"{what} is chosen by fits to folds of rows in memory, got out-of-core data: choose it "
            "on a sample, and fit RobustLogisticRegression to all rows."
        )
    X, y, sample_weight = on_host(X), complete_labels(on_host(y)), on_host(sample_weight)
    X, y = validate_data(model, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    classes, labels = encode_labels(y)
    weights, _ = weights_and_totals(sample_weight, labels, classes)
    return LabelledRows(X, y, np.where(weights > 0, labels, -1), classes, weights)


def evaluated_along(
    model: Any, settings: Sequence[Mapping[str, Any]], rows: LabelledRows, how: Splitting,
    n_jobs: int | None = None,
) -> list[Evaluated]:  # fmt: skip
    """Held-out rows and the model's predictions for them with each of some settings.

    Each fit is started from the last.
    """
    prior, folds = rows.prior(model.class_prior), split(rows, how)
    names = Parallel(n_jobs=n_jobs)(
        delayed(_predicted_along)(model, settings, rows, part) for part in folds.parts
    )
    tested, few = folds.rows, np.zeros(len(prior), dtype=bool)
    labels, weights, ratio = rows.labels[tested], rows.weights[tested], folds.tested_per_trained
    predicted = np.searchsorted(rows.classes, np.concatenate(names, axis=1))
    return [Evaluated(labels, p, p, folds.fold, weights, few, prior, ratio) for p in predicted]


def _predicted_along(
    model: Any, settings: Iterable[Mapping[str, Any]], rows: LabelledRows,
    part: tuple[Indices, Indices],
) -> NDArray[Any]:  # fmt: skip
    (train, test), X, y = part, rows.X, rows.y
    copy = unfitted(model).set_params(warm_start=True, verbose=0)
    # The final fit repeats what matters.
    with warnings.catch_warnings(action="ignore", category=EquipoiseWarning):
        fits = (copy.set_params(**each).fit(X[train], y[train], rows.weights[train])
                for each in settings)  # fmt: skip
        return np.array([fit.predict(X[test]) for fit in fits])


def fit_level(
    model: Any, choice: AlphaChoice, X: Any, y: Any, sample_weight: Any, how: Splitting,
    n_jobs: int | None = None,
) -> Any:  # fmt: skip
    """A linear model, fitted at the level of LabelCVaR that is chosen on held-out rows."""
    rows = path_rows(model, X, y, sample_weight, "The level of LabelCVaR")
    alphas = choice.levels(rows.prior(model.class_prior))
    goals = [LabelCVaR(alpha) for alpha in alphas.tolist()]
    if model.adjustment is None:
        model = unfitted(model).set_params(adjustment=ADJUSTMENT)
    evaluated = evaluated_along(model, [{"goal": goal} for goal in goals], rows, how, n_jobs)
    level = choose_level(choice, alphas, evaluated, rows.classes)
    # A level at which no cap binds was chosen as such.
    with warnings.catch_warnings(action="ignore", category=InactiveCapsWarning):
        final = model.set_params(goal=goals[level.index]).fit(X, y, sample_weight)
    final.__dict__ |= level.attributes()
    return final


def adopt(model: Any, final: Any) -> None:
    """Give a model what another has learned in its fit."""
    vars(model).update({name: v for name, v in vars(final).items() if name.endswith("_")})
