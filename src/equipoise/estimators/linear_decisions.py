r"""Class offsets under which the decisions of a linear model serve its own goal.

.. math:: f(x) = \arg\max_i \; f_i(x) + o_i

The offsets are tuned on scores of rows that the model has not seen: approximate leave-one-out
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

from equipoise.arrays import Indices, Matrix, NDArray, Vector, on_host, to_numpy
from equipoise.blocks.sources import is_sliced
from equipoise.decisions import LabelledRows, Splitting, split
from equipoise.decisions.folds import FOLDS_OF_A_CLASS
from equipoise.decisions.trained import unfitted
from equipoise.decisions.tune import POOLING, on_scale_of
from equipoise.estimators.leave_one_out import MOST_WORK, LinearFit, left_out_leads
from equipoise.exceptions import EquipoiseWarning
from equipoise.goals import SetGoal
from equipoise.goals.base import log_ratio, prior_among
from equipoise.goals.labelled_predictions import Predictions
from equipoise.losses import TrainedLoss
from equipoise.sets import as_uncertainty
from equipoise.validation.labels import weights_and_totals

DECISIONS = ("argmax", "tuned")
# MOST_OF_CLASS: rows of a class that are left out, whose recall is then known to 1.6 points
# (standard error); and MOST_ROWS of all classes.
MOST_OF_CLASS, MOST_ROWS = 1_000, 20_000
# _NEGLIGIBLE: logarithm of a training weight below which scores of a class do not depend on it.
_NEGLIGIBLE = np.log(1e-3)


def tuned_offsets(model: Any, loss: TrainedLoss, X: Any, y: Any, sample_weight: Any) -> Vector:
    """Offsets of mean zero for the scores of a fitted model, which serve its own goal."""
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
        rows = _sampled(labels, weights > 0)
        distinct, leads = left_out_leads(fit, X[rows], labels[rows], weights[rows], totals)
        return _offsets(model, leads, distinct.labels, distinct.weights)
    rows, leads = _held_out_leads(model, fit, X, y, labels, weights)
    return _offsets(model, leads, labels[rows], weights[rows])


def _sampled(labels: Indices, used: NDArray[np.bool_]) -> Indices:
    """The rows that are used, of each class at most ``MOST_OF_CLASS``, of all ``MOST_ROWS``."""
    rng, k = np.random.default_rng(0), int(labels.max()) + 1
    most = max(1, min(MOST_OF_CLASS, MOST_ROWS // k))
    own = (np.flatnonzero(used & (labels == i)) for i in range(k))
    chosen = [rows if len(rows) <= most else rng.permutation(rows)[:most] for rows in own]
    return np.sort(np.concatenate(chosen))


def _held_out_leads(
    model: Any, fit: LinearFit, X: Any, y: NDArray[Any], labels: Indices, weights: Vector
) -> tuple[Indices, Matrix]:
    """Rows that fits to the other folds have not seen, and their leads."""
    used = np.where(weights > 0, labels, -1)
    folds = split(LabelledRows(X, y, used, model.classes_, weights), Splitting())
    copy = unfitted(model).set_params(decisions="argmax", warm_start=False, verbose=0)
    found = []
    for train, test in folds.parts:
        with warnings.catch_warnings():
            # The fit to all rows says what is to be said.
            warnings.simplefilter("ignore", EquipoiseWarning)
            copy.fit(X[train], y[train], weights[train])
        found.append(fit.leads(np.atleast_2d(copy.decision_function(X[test]).T)))
    return folds.rows, np.concatenate(found)


def _offsets(model: Any, leads: Matrix, labels: Indices, weights: Vector) -> Vector:
    """The offsets that serve the model's goal best on rows with these leads."""
    classes, prior = model.classes_, np.asarray(model.class_prior_)
    few = np.bincount(labels, minlength=len(classes)) < FOLDS_OF_A_CLASS
    offsets = np.zeros(len(classes))
    if np.count_nonzero(~few) < 2:
        return offsets
    criterion = SetGoal(as_uncertainty(model.goal)).resolve(
        prior_among(prior, classes, ~few), classes[~few]
    )
    none = np.zeros((len(leads), 1))
    scores = np.hstack([none, leads] if leads.shape[1] == 1 else [leads, none])
    # The weights that the model was trained with: without them, scores are of the population.
    weighted = log_ratio(np.asarray(model.worst_case_masses_), prior)
    weighted[weighted < _NEGLIGIBLE] = 0.0
    rows = Predictions(softmax(scores - weighted, axis=1), labels, weights)
    among = on_scale_of(rows, prior).among(~few)
    every = [np.ones(len(among.labels), dtype=bool)]
    rule = criterion.tune(among, every, pooling=POOLING, seed=0)[0]
    tuned = np.log(np.maximum(rule, np.finfo(float).tiny)) - weighted[~few]
    offsets[~few] = tuned - tuned.mean()
    return offsets
