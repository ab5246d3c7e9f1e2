"""Probabilities of held-out rows, by models that have not seen them; fits are shared."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from equipoise.arrays import ROUNDING, Indices, Matrix, Vector
from equipoise.decisions.folds import Folds, deal
from equipoise.decisions.trained import (
    AveragedTrainings,
    LabelledRows,
    NumberedClasses,
    class_probabilities,
    mean_probabilities,
    train,
)
from equipoise.exceptions import EquipoiseError, EquipoiseWarning, InvalidInputError
from equipoise.goals.labelled_predictions import Predictions
from equipoise.validation.classifiers import last_of


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for held-out rows, on the scale of the population.

    ``predictions`` are those of a model, or the mean over models that were trained with several
    class weights; ``fold`` says which fold each row is in, ``model`` is the one of the first split.
    ``seconds`` are those of one fit of a model, and of its predictions for all these rows.
    """

    predictions: Predictions
    fold: Indices
    model: Any = None
    seconds: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """Class weights to train with, a line for each model; and the scale of the population.

    ``shares`` are the class frequencies of the training rows, ``prior`` those of the population.
    """

    class_weights: Matrix
    shares: Vector
    prior: Vector

    @property
    def factors(self) -> Vector:
        """What turns probabilities of the training rows' scale into those of the population."""
        ones = np.ones_like(self.shares)
        return np.divide(self.prior, self.shares, out=ones, where=self.shares > 0)

    def on_population(self, tables: Sequence[Matrix]) -> Matrix:
        """Probabilities of the models, on the scale of the population; their mean."""
        weighted = self.class_weights
        if len(tables) == 1:
            return rescaled(tables[0], self.factors / weighted[0])
        rows = mean_probabilities([each / v for each, v in zip(tables, weighted, strict=True)])
        return rescaled(rows, self.factors)


def rescaled(probabilities: Matrix, factors: Vector) -> Matrix:
    """Probabilities times factors by class, with rows that sum to one; equal factors do nothing."""
    if np.all(factors == factors[0]):
        return probabilities
    found = probabilities * factors
    totals = found.sum(axis=1, keepdims=True)
    # A row that only classes without weight are possible for says nothing.
    return np.asarray(np.divide(found, totals, out=np.zeros_like(found), where=totals > 0))


def own_scale(model: Any, shares: Vector) -> Vector:
    """Class weights on whose scale a model that weighs the classes itself gives probabilities.

    Linear models over a set say so by their ``training_masses_``; ``shares`` are those of the
    classes in the weight of the training rows, class weights of the training included.
    """
    masses = getattr(last_of(model), "training_masses_", None)
    ones = np.ones_like(shares)
    if masses is None or len(masses) != len(shares):
        return ones
    own = np.asarray(masses, dtype=np.float64)
    if np.allclose(own, shares, rtol=ROUNDING, atol=0.0):
        return ones
    # Of a class without mass the model says nothing.
    return np.divide(own, shares, out=ones, where=(shares > 0) & (own > ROUNDING))


class PredictedPart(NamedTuple):
    """The model of a fold, its probabilities of the held-out rows, and seconds of both."""

    model: Any
    table: Matrix
    seconds: tuple[float, float]


@dataclass(eq=False)
class FitCache:
    """Probabilities of held-out rows by model and class weights, for candidates that share fits."""

    tables: dict[tuple[str, bytes], list[PredictedPart]] = field(default_factory=dict)


def predict(  # noqa: PLR0913  what is fitted, to what, and how
    estimator: Any, rows: LabelledRows, folds: Folds, training: Training, *, n_jobs: Any = None,
    cache: FitCache | None = None, name: str = "", quiet: bool = True,
) -> HeldOut:  # fmt: skip
    """Held-out rows, predicted by copies of the estimator that were trained on the other folds.

    If ``quiet``, the library's warnings are left to the final fit. ``cache`` knows fits by ``name``
    and class weights.
    """
    known = FitCache() if cache is None else cache
    found = []
    for class_weights in training.class_weights:
        key = name, class_weights.tobytes()
        if key not in known.tables:
            known.tables[key] = _predicted(
                estimator, rows, folds, training, class_weights, n_jobs, quiet
            )
        found.append(known.tables[key])
    tables = [np.concatenate([part.table for part in parts]) for parts in found]
    models = [parts[0].model for parts in found]
    fit, predicted = np.array([part.seconds for parts in found for part in parts]).T
    tested = folds.rows
    predictions = Predictions(
        training.on_population(tables), rows.labels[tested], rows.weights[tested]
    )
    seconds = float(fit.mean()), float(predicted.sum() / len(found))
    return HeldOut(predictions, folds.fold, _together(models, training, rows), seconds)


def _together(models: Sequence[Any], training: Training, rows: LabelledRows) -> Any:
    """One model, or several whose probabilities are averaged."""
    if len(models) == 1:
        return models[0]
    return AveragedTrainings(list(models), training.class_weights, rows.classes)


def predict_fitted(model: Any, rows: LabelledRows, training: Training, seed: int) -> HeldOut:
    """Rows that a fitted model has not seen, dealt out to folds for the tuning."""
    used = rows.used
    table = class_probabilities(model, rows.features(used), rows.classes)
    table = rescaled(table, 1 / own_scale(model, training.shares))
    predictions = Predictions(
        training.on_population([table]), rows.labels[used], rows.weights[used]
    )
    return HeldOut(predictions, deal(predictions.labels, seed), model)


def refit(estimator: Any, rows: LabelledRows, training: Training) -> Any:
    """The model, or models, trained on all rows that are used."""
    models = [train(estimator, rows, rows.used, v) for v in training.class_weights]
    return _together(models, training, rows)


def _predicted(
    estimator: Any, rows: LabelledRows, folds: Folds, training: Training, class_weights: Vector,
    n_jobs: Any, quiet: bool,
) -> list[PredictedPart]:  # fmt: skip
    """What the model of each fold predicts for its held-out rows."""
    shares = training.shares * class_weights
    found = Parallel(n_jobs=n_jobs)(
        delayed(_predicted_part)(estimator, rows, folds, place, class_weights, shares, quiet)
        for place in range(len(folds.parts))
    )
    numbered = [isinstance(part.model, NumberedClasses) for part in found]
    if any(numbered) and not all(numbered):
        place = numbered.index(True)
        raise InvalidInputError(
            f"{type(estimator).__name__} failed in fold {place} and not in others: "
            f"{found[place].model.reason_}"
        )
    return list(found)


def _predicted_part(
    estimator: Any, rows: LabelledRows, folds: Folds, place: int, class_weights: Vector,
    shares: Vector, quiet: bool,
) -> PredictedPart:  # fmt: skip
    trained, tested = folds.parts[place]
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", EquipoiseWarning)
        try:
            began = perf_counter()
            model = train(estimator, rows, trained, class_weights)
            fitted = perf_counter()
            table = class_probabilities(model, rows.features(tested), rows.classes)
        except (EquipoiseError, TypeError):
            raise
        except Exception as error:  # LightGBM and CatBoost have errors of their own
            raise InvalidInputError(
                f"{type(estimator).__name__} failed in fold {place} of {len(folds.parts)}: {error}"
            ) from error
    seconds = fitted - began, perf_counter() - fitted
    return PredictedPart(model, rescaled(table, 1 / own_scale(model, shares)), seconds)
