r"""Class offsets under which the decisions of a linear model serve its own goal.

.. math:: f(x) = \arg\max_i \; f_i(x) + o_i

The offsets are tuned on scores of held-out rows: approximate leave-one-out
scores where a Hessian is at hand, and else those of fits to five folds. Scores are those of a model
that was trained with the worst-case weights; without these they go through the tuner of any
probabilities.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import validate_data

from equipoise.arrays import ROUNDING, Indices, Mask, Matrix, NDArray, Vector, on_host, to_numpy
from equipoise.blocks.sources import is_sliced
from equipoise.decisions import (
    HeldOut,
    LabelledRows,
    Splitting,
    Task,
    Tuned,
    TunedWeights,
    evaluate,
    split,
)
from equipoise.decisions.folds import FOLDS_OF_A_CLASS
from equipoise.decisions.trained import unfitted
from equipoise.decisions.tune import rules_for
from equipoise.decisions.tuned_weights import reported
from equipoise.estimators.leave_one_out import MOST_WORK, LinearFit, left_out_leads
from equipoise.exceptions import EquipoiseWarning
from equipoise.goals import SetGoal
from equipoise.goals.base import log_ratio
from equipoise.goals.labelled_predictions import Predictions
from equipoise.losses import TrainedLoss
from equipoise.objectives.sampling import evenly, rows_of_classes
from equipoise.sets import as_uncertainty
from equipoise.validation.labels import weights_and_totals
from equipoise.validation.numbers import check_number

# DECISIONS: values of the parameter decisions.
DECISIONS = ("argmax", "tuned")
# MOST_OF_CLASS: rows of a class that are left out, whose recall is then known to 1.6 points
# (standard error); MOST_ROWS: rows of all classes.
MOST_OF_CLASS, MOST_ROWS = 1_000, 20_000
# MOST_PRODUCTS: multiplications for all rows that are left out, about half a second of one core.
MOST_PRODUCTS = 2e9


def tuned_decisions(
    model: Any, loss: TrainedLoss, X: Any, y: Any, sample_weight: Any
) -> tuple[Vector, TunedWeights | None]:
    """Offsets of mean zero for the scores of a fitted model, and their decision weights.

    They serve the model's own goal; there are no weights where nothing can be tuned.
    """
    X, y = (part[:] if is_sliced(part) else on_host(part) for part in (X, y))
    X, y = validate_data(
        model, X, y, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
    )
    labels = np.searchsorted(model.classes_, y)
    weights, totals = weights_and_totals(on_host(sample_weight), labels, model.classes_)
    fit = LinearFit(
        to_numpy(model.coef_), to_numpy(model.intercept_), bool(model.fit_intercept),
        np.asarray(model.worst_case_masses_), 1 / (float(model.C) * float(totals.sum())),
        loss.kernel(len(totals)),
    )  # fmt: skip
    if loss.convex and fit.work <= MOST_WORK:
        rows = _sampled(labels, weights > 0, fit.work)
        distinct, leads = left_out_leads(fit, X[rows], labels[rows], weights[rows], totals)
        return _decisions(model, leads, distinct.labels, distinct.weights)
    rows, leads = _held_out_leads(model, fit, X, y, labels, weights)
    return _decisions(model, leads, labels[rows], weights[rows])


def _sampled(labels: Indices, used: Mask, work: int) -> Indices:
    """Rows that are used: of each class at most ``MOST_OF_CLASS``, and as the limits of all say."""
    rows = np.flatnonzero(used)
    in_all = min(MOST_ROWS, int(MOST_PRODUCTS / work))
    wanted = np.minimum(evenly(np.bincount(labels[rows]), in_all), MOST_OF_CLASS)
    return rows[rows_of_classes(labels[rows], wanted)]


def _held_out_leads(
    model: Any, fit: LinearFit, X: Any, y: NDArray[Any], labels: Indices, weights: Vector
) -> tuple[Indices, Matrix]:
    """Held-out rows of five folds, and their leads."""
    used = np.where(weights > 0, labels, -1)
    folds = split(LabelledRows(X, y, used, model.classes_, weights), Splitting())
    copy = unfitted(model).set_params(decisions="argmax", warm_start=False, verbose=0)
    leads = []
    for train, test in folds.parts:
        # The fit to all rows says what is to be said.
        with warnings.catch_warnings(action="ignore", category=EquipoiseWarning):
            copy.fit(X[train], y[train], weights[train])
        leads.append(fit.leads(np.atleast_2d(copy.decision_function(X[test]).T)))
    return folds.rows, np.concatenate(leads)


def _decisions(
    model: Any, leads: Matrix, labels: Indices, weights: Vector
) -> tuple[Vector, TunedWeights | None]:
    """The offsets that serve the model's goal best on rows with these leads."""
    classes, prior = model.classes_, np.asarray(model.class_prior_)
    few = np.bincount(labels, minlength=len(classes)) < FOLDS_OF_A_CLASS
    offsets = np.zeros(len(classes))
    if np.count_nonzero(~few) < 2:
        return offsets, None
    none = np.zeros((len(leads), 1))
    scores = np.hstack([none, leads] if leads.shape[1] == 1 else [leads, none])
    # The weights that the model was trained with: without them, scores are of the population.
    masses = np.asarray(model.worst_case_masses_)
    # Scores of a class without mass say nothing of its frequency.
    weighted = np.where(masses > ROUNDING, log_ratio(masses, prior), 0.0)
    rows = Predictions(softmax(scores - weighted, axis=1), labels, weights)
    pooling = check_number(model.pooling, "pooling", "[0, inf)")
    task = Task(SetGoal(as_uncertainty(model.goal)), classes, prior, few, pooling=pooling)
    rule = rules_for(rows, [np.ones(len(labels), dtype=bool)], task)[0]
    logs = np.log(np.maximum(rule, np.finfo(float).tiny)) - weighted
    offsets[~few] = (logs - logs[~few].mean())[~few]
    tuned = Tuned(rule, rule[None], pooling)
    evaluated = evaluate(HeldOut(rows, np.zeros(len(labels), dtype=np.intp)), tuned, task)
    return offsets, reported(task, tuned, evaluated)
