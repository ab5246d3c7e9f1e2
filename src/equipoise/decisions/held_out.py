"""Probabilities of held-out rows, predicted by models of the other folds; fits are shared."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.parallel import Parallel, delayed

from equipoise.arrays import ROUNDING, Indices, Matrix, Vector
from equipoise.decisions.classifiers import last_of
from equipoise.decisions.folds import Folds, LabelledRows, deal
from equipoise.decisions.trained import (
    AveragedTrainings,
    NumberedClasses,
    class_probabilities,
    mean_probabilities,
    train,
)
from equipoise.exceptions import EquipoiseError, EquipoiseWarning, InvalidInputError
from equipoise.goals.labelled_predictions import Predictions
from equipoise.goals.sparse_rows import Table, rows_of, with_values
from equipoise.text import listing
from equipoise.weights.priors import weights_of


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for held-out rows, on the scale of the population.

    ``predictions`` are those of a model, or the mean over models that were trained with several
    class weights; ``fold`` is the fold of each row, ``model`` the model of the first split.
    ``seconds`` are those of one fit of a model, and of its predictions for all these rows.
    ``tested_per_trained`` are held-out rows per training row where a model trained on all rows
    replaces these, 0 where ``model`` is kept, None where one fit alone is evaluated.
    """

    predictions: Predictions
    fold: Indices
    model: Any = None
    seconds: tuple[float, float] | None = None
    tested_per_trained: float | None = 0.0


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
        """Factors from probabilities at the training class frequencies to the population's."""
        ones = np.ones_like(self.shares)
        return np.divide(self.prior, self.shares, out=ones, where=self.shares > 0)

    @property
    def weights_of_model(self) -> Vector:
        """Class weights of the one model; models that are averaged divide by theirs themselves."""
        one = len(self.class_weights) == 1
        return np.asarray(self.class_weights[0] if one else np.ones_like(self.shares))

    def factors_for(self, model: Any) -> Vector:
        """Factors from the probabilities of a fitted model to those of the population."""
        weights = self.weights_of_model
        return np.asarray(self.factors / (weights * own_scale(model, self.shares * weights)))

    def on_population(self, tables: Sequence[Matrix]) -> Matrix:
        """Probabilities of the models, on the scale of the population; their mean."""
        weights = self.class_weights
        if len(tables) == 1:
            return np.asarray(rescaled(tables[0], self.factors / weights[0]))
        rows = mean_probabilities([each / v for each, v in zip(tables, weights, strict=True)])
        return np.asarray(rescaled(rows, self.factors))


def rescaled(probabilities: Table, factors: Vector) -> Table:
    """Probabilities times factors by class, rows summing to one; equal factors do nothing."""
    if np.all(factors == factors[0]):
        return probabilities
    if issparse(probabilities):
        held = with_values(probabilities, probabilities.data * factors[probabilities.indices])
        return with_values(held, held.data / (held @ np.ones(len(factors)))[rows_of(held)])
    products = probabilities * factors
    totals = products.sum(axis=1, keepdims=True)
    # A row in which only classes without weight are possible stays zero.
    return np.asarray(np.divide(products, totals, out=np.zeros_like(products), where=totals > 0))


def own_scale(model: Any, shares: Vector) -> Vector:
    """Class weights on whose scale a model that weighs the classes itself gives probabilities.

    Linear models over a set state it as their ``training_masses_``; ``shares`` are those of the
    classes in the weight of the training rows, class weights of the training included.
    """
    masses = getattr(last_of(model), "training_masses_", None)
    ones = np.ones_like(shares)
    if masses is None or len(masses) != len(shares):
        return ones
    masses = np.asarray(masses, dtype=np.float64)
    if np.allclose(masses, shares, rtol=ROUNDING, atol=0.0):
        return ones
    # A class without mass has no probabilities to rescale.
    return np.where((shares > 0) & (masses > ROUNDING), weights_of(masses, shares), 1.0)


class PredictedPart(NamedTuple):
    """The model of a fold, its probabilities of the held-out rows, and seconds of both."""

    model: Any
    table: Matrix
    seconds: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Fits:
    """How folds are fitted, and the fits so far, which candidates share.

    ``tables`` are held-out probabilities by the identity of an unfitted estimator, which must
    outlive them, and class weights. If ``quiet``, the library's warnings are left to the final fit;
    ``verbose`` is joblib's.
    """

    n_jobs: Any = None
    quiet: bool = True
    verbose: int = 0
    tables: dict[tuple[int, bytes], list[PredictedPart]] = field(default_factory=dict)


def predict(
    estimator: Any, rows: LabelledRows, folds: Folds, training: Training, fits: Fits | None = None
) -> HeldOut:
    """Held-out rows, predicted by copies of the estimator that were trained on the other folds."""
    fits, parts = Fits() if fits is None else fits, []
    for class_weights in training.class_weights:
        key = id(estimator), class_weights.tobytes()
        if key not in fits.tables:
            one = replace(training, class_weights=class_weights[None])
            fits.tables[key] = _predicted(estimator, rows, folds, one, fits)
        parts.append(fits.tables[key])
    tables = [np.concatenate([part.table for part in each]) for each in parts]
    fit, predicted = np.array([part.seconds for each in parts for part in each]).T
    tested, probabilities = folds.rows, training.on_population(tables)
    return HeldOut(
        Predictions(probabilities, rows.labels[tested], rows.weights[tested]),
        folds.fold,
        _together([each[0].model for each in parts], training, rows),
        (float(fit.mean()), float(predicted.sum() / len(parts))),
        folds.tested_per_trained,
    )


def _together(models: Sequence[Any], training: Training, rows: LabelledRows) -> Any:
    """One model, or several whose probabilities are averaged."""
    if len(models) == 1:
        return models[0]
    return AveragedTrainings(list(models), training.class_weights, rows.classes)


def predict_fitted(model: Any, rows: LabelledRows, training: Training, seed: int) -> HeldOut:
    """Held-out rows of a fitted model, dealt out to folds for the tuning."""
    used = rows.used
    table = class_probabilities(model, rows.features(used), rows.classes)
    table = rescaled(table, training.factors_for(model))
    predictions = Predictions(table, rows.labels[used], rows.weights[used])
    return HeldOut(predictions, deal(predictions.labels, seed), model)


def refit(estimator: Any, rows: LabelledRows, training: Training) -> Any:
    """The model, or models, trained on all rows that are used."""
    models = [train(estimator, rows, rows.used, weights) for weights in training.class_weights]
    return _together(models, training, rows)


def _predicted(
    estimator: Any, rows: LabelledRows, folds: Folds, training: Training, fits: Fits
) -> list[PredictedPart]:
    """The model of each fold and its predictions for the held-out rows."""
    parts: list[PredictedPart] = Parallel(n_jobs=fits.n_jobs, verbose=fits.verbose)(
        delayed(_predicted_part)(estimator, rows, folds, index, training, fits.quiet)
        for index in range(len(folds.parts))
    )
    numbered = [isinstance(part.model, NumberedClasses) for part in parts]
    if any(numbered) and not all(numbered):
        index = numbered.index(True)
        raise InvalidInputError(
            f"{type(estimator).__name__} failed in fold {index} and not in others: "
            f"{parts[index].model.reason_}"
        )
    return parts


def _predicted_part(
    estimator: Any, rows: LabelledRows, folds: Folds, index: int, training: Training, quiet: bool
) -> PredictedPart:
    trained, tested = folds.parts[index]
    weights = training.class_weights[0]
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", EquipoiseWarning)
        try:
            began = perf_counter()
            model = train(estimator, rows, trained, weights)
            fitted = perf_counter()
            table = class_probabilities(model, rows.features(tested), rows.classes)
        except (EquipoiseError, TypeError):
            raise
        except Exception as error:  # LightGBM and CatBoost have errors of their own
            shown = listing(float(f"{weight:.4g}") for weight in weights)
            raise InvalidInputError(
                f"{type(estimator).__name__} failed in fold {index} of {len(folds.parts)}"
                f"{f' with training weights {shown}' if np.ptp(weights) else ''}: {error}"
            ) from error
    seconds = fitted - began, perf_counter() - fitted
    scale = own_scale(model, training.shares * weights)
    return PredictedPart(model, rescaled(table, 1 / scale), seconds)
