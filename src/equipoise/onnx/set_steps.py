"""The sets of labels of :class:`~equipoise.PredictionSets` as nodes of an ONNX graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from equipoise.arrays import Mask, Vector
from equipoise.decisions.trained import AveragedTrainings
from equipoise.estimators.population_probabilities import inside
from equipoise.estimators.prediction_sets import PredictionSets
from equipoise.exceptions import InvalidParameterError
from equipoise.onnx.graph import Graph


@dataclass(frozen=True, eq=False)
class SetSteps:
    """Thresholds of probabilities times ``factors``, and weights for the label of a set."""

    factors: Vector
    thresholds: Vector
    label_weights: Vector

    def write(self, graph: Graph, probabilities: str) -> tuple[str, str]:
        """Which classes are in each row's set, and the index of the likeliest class of it.

        Of an empty set it is the likeliest of all classes.
        """
        in_set = graph.add("GreaterOrEqual", probabilities, graph.constant(self.thresholds))
        counts = graph.cast(in_set, "float64")
        size = graph.add("MatMul", counts, graph.constant(np.ones((len(self.thresholds), 1))))
        empty = graph.add("Less", size, graph.constant(np.array([[0.5]])))
        weighted = graph.add("Mul", probabilities, graph.constant(self.label_weights))
        allowed = graph.add("Or", in_set, empty)
        among = graph.add("Where", allowed, weighted, graph.constant(np.array([[-1.0]])))
        return in_set, graph.add("ArgMax", among, axis=1, keepdims=0)


def set_steps(model: PredictionSets) -> SetSteps:
    """The steps of a fitted model that was calibrated on one split."""
    if isinstance(model.estimator_, AveragedTrainings):
        raise InvalidParameterError(
            "model must be calibrated on one split to be written as ONNX, got PredictionSets with "
            "several folds, whose sets need the calibration rows of each: fit with cv=0.25."
        )
    return SetSteps(
        model.set_factors(model.estimator_), np.asarray(model.thresholds_), model.label_weights_
    )


def sets_and_distances(model: Any, X: Any) -> tuple[Mask, Vector]:
    """The sets of rows, and how far the probabilities of each are from the nearest threshold."""
    while not isinstance(model, PredictionSets):
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X)
        model = inside(model)
    gaps = np.abs(model.set_probabilities(X) - np.asarray(model.thresholds_))
    return model.predict_set(X), np.asarray(gaps.min(axis=1))
