"""Held-out predictions of gradient boosting, whose decisions the plug-in makes robust.

The booster is fitted once for each fold; its probabilities for the rows it has not seen serve all
sets of weightings. The decision weights that a fold is judged by are tuned on the other folds, as
:class:`equipoise.estimators.PlugInClassifier` does for what it reports of itself.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from equipoise.arrays import Indices as Rows
from equipoise.arrays import Matrix
from equipoise.decisions import Evidence, decide
from equipoise.estimators.plug_in_folds import FOLDS_OF_A_CLASS, deal
from equipoise.estimators.plug_in_purpose import Purpose
from equipoise.estimators.plug_in_rows import class_probabilities
from equipoise.estimators.plug_in_trial import Trial, TunedWeights, tune_trial
from equipoise.goals import as_goal
from equipoise.report.choices import Choice
from equipoise.report.folds import MANY_ROWS, TRAINS_ONLY, Design, stratified_sample
from equipoise.report.linear import Findings
from equipoise.report.steps import Steps
from equipoise.sets import FixedWeights
from equipoise.tables import LabelledTable as Table
from equipoise.tables import booster_for, preprocessor

# Work of a booster's fit, in linear fits, and of the tuning for one set of weightings.
FIT_UNITS = 6.0
TUNE_UNITS = 2.0
# No class is called impossible.
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Predicted:
    """Rows with probabilities by models that have not seen them.

    Attributes
    ----------
    rows : indices of the rows.
    folds : fold of each, ``0..n_folds-1``, at least three: what decides a fold is tuned on others.
    probabilities : array of shape (n_predicted, n_classes)
    """

    rows: Rows
    folds: Rows
    probabilities: Matrix


def boosting_findings(
    table: Table, design: Design, choices: Sequence[Choice], steps: Steps, seed: int
) -> tuple[Findings, int]:
    """Predictions for every choice, and how many rows the booster was fitted to at most."""
    found = Findings()
    aside = None
    if design.n_folds > 1:
        tuning, size = _across_folds(table, design, steps, seed)
    else:
        tuning, aside, size = _on_a_hold_out(table, design, steps, seed)
    judged = tuning if aside is None else aside
    for choice in choices:
        steps.begin(f"{choice.label}: decisions")
        decided = _decided(table, tuning, aside, choice)
        found.take(choice.label, len(table.y), judged.rows, decided)
        steps.did(tune_units(choice) * design.n_folds)
    return found, size


def tune_units(choice: Choice) -> float:
    """Work of finding the decisions of a choice."""
    return 0.1 if isinstance(choice.uncertainty, FixedWeights) else TUNE_UNITS


def _decided(table: Table, tuning: Predicted, aside: Predicted | None, choice: Choice) -> Rows:
    """Decisions for rows set aside; or for the rows tuned on, each by weights of other folds."""
    judged = tuning if aside is None else aside
    if isinstance(choice.uncertainty, FixedWeights):
        # Known weights need no tuning.
        known = Purpose(as_goal(choice.uncertainty))
        return known.rule(table.prior, table.prior, table.classes).decide(judged.probabilities)
    tuned = _tuned(table, tuning, choice)
    if aside is not None:
        return decide(aside.probabilities, np.asarray(tuned.weights, dtype=np.float64))
    decided = np.empty(len(tuning.rows), dtype=np.intp)
    for fold, weights in enumerate(np.asarray(tuned.fold_weights)):
        own = np.flatnonzero(tuning.folds == fold)
        decided[own] = decide(tuning.probabilities[own], weights)
    return decided


def _tuned(table: Table, tuning: Predicted, choice: Choice) -> TunedWeights:
    """The weights of the plug-in; a class of too few rows counts as it is."""
    labels, k = table.labels[tuning.rows], len(table.classes)
    n_folds = int(tuning.folds.max()) + 1
    cells = np.bincount(tuning.folds * k + labels, minlength=n_folds * k).reshape(n_folds, k)
    few = np.count_nonzero(cells, axis=0) < FOLDS_OF_A_CLASS
    weights = table.weights_at(tuning.rows)
    counted = np.ones(len(labels)) if weights is None else weights
    evidence = Evidence(tuning.probabilities, labels, counted)
    trial = Trial(evidence, tuning.folds, few, table.classes, table.prior, table.prior)
    return tune_trial(trial, Purpose(as_goal(choice.uncertainty)), "auto")


def _booster(table: Table, seed: int) -> Pipeline:
    """Features and booster, without decisions."""
    model = booster_for(table.X, random_state=seed, rarest=int(table.counts.min()))
    return Pipeline([("features", preprocessor(table.X, "boosting")), ("model", model)])


def _probabilities(table: Table, train: Rows, rows: Rows, seed: int) -> Matrix:
    model = _booster(table, seed)
    weights = table.weights_at(train)
    options: dict[str, Any] = {} if weights is None else {"model__sample_weight": weights}
    with warnings.catch_warnings():
        # The preprocessing warns of levels it has not seen, which it then treats as rare ones.
        warnings.simplefilter("ignore")
        model.fit(table.X.iloc[train], table.y[train], **options)
        found = class_probabilities(model, table.X.iloc[rows], table.classes)
    # Weights that turn a decision against a probability of nothing would have no bound.
    found = np.maximum(found, _LEAST)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _across_folds(table: Table, design: Design, steps: Steps, seed: int) -> tuple[Predicted, int]:
    judged = design.judged
    probabilities = np.zeros((len(judged), len(table.classes)))
    largest = 0
    for fold, train, test in design.parts():
        steps.begin(f"boosting (fold {fold + 1} of {design.n_folds})")
        probabilities[np.searchsorted(judged, test)] = _probabilities(table, train, test, seed)
        largest = max(largest, len(train))
        steps.did(FIT_UNITS)
    folds = design.fold[judged]
    if design.n_folds < FOLDS_OF_A_CLASS:
        folds = deal(table.labels[judged], seed)
    return Predicted(judged, folds, probabilities), largest


def _on_a_hold_out(
    table: Table, design: Design, steps: Steps, seed: int
) -> tuple[Predicted, Predicted, int]:
    """One booster, fitted to a sample; its weights are tuned on other rows than those judged."""
    steps.begin("boosting (hold-out)")
    train = np.flatnonzero(design.fold == TRAINS_ONLY)
    judged = design.judged
    # A class whose rows all stand in the sample could not be tuned: leave some of every class.
    fitted = stratified_sample(table.labels, train, min(MANY_ROWS, len(train) * 3 // 4), seed)
    others = np.setdiff1d(train, fitted)
    tuned = stratified_sample(table.labels, others, MANY_ROWS, seed)
    probabilities = _probabilities(table, fitted, np.concatenate([tuned, judged]), seed)
    steps.did(FIT_UNITS)
    mine, theirs = np.split(probabilities, [len(tuned)])
    tuning = Predicted(tuned, deal(table.labels[tuned], seed), mine)
    return tuning, Predicted(judged, design.fold[judged], theirs), len(fitted)
