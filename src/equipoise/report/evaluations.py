"""Every candidate on held-out rows: split, predict, tune, evaluate; models are fitted once."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Mask, Matrix, Vector
from equipoise.decisions import (
    Evaluated,
    Fits,
    HeldOut,
    Task,
    Training,
    evaluate,
    predict,
    tune,
)
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.trained import class_probabilities, weight_argument
from equipoise.estimators.own_weights import refuse_own_weights
from equipoise.exceptions import EquipoiseError, EquipoiseWarning, InactiveCapsWarning
from equipoise.goals import Goal, Predictions, as_goal
from equipoise.report.candidates import Candidate
from equipoise.report.design import Design, rows_of
from equipoise.risks import RiskInterval, RiskIntervals
from equipoise.risks.intervals import counted_intervals

# CONFIDENCE: of every interval on the page, by itself; the usual one.
CONFIDENCE = 0.95
# Called with the share of the work that is done, from 0 to 1, and what comes next.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class EvaluatedCandidate:
    """What a candidate predicts for the held-out rows.

    ``evaluated`` has all classes with held-out rows; ``few`` are those with too few to count.
    ``rule`` and ``factors`` are what other rows are predicted by, from the probabilities of
    ``held_out.model``.
    """

    candidate: Candidate
    evaluated: Evaluated
    few: Mask
    held_out: HeldOut
    rule: Any
    factors: Vector

    @cached_property
    def counting(self) -> Evaluated:
        """The rows of the classes that count."""
        return replace(self.evaluated, few=self.few)

    def value(self, goal: Goal, classes: Any) -> float:
        """The value of a goal among the classes that count."""
        return self.counting.value(self._criterion(goal, classes))

    def measures(self, goal: Goal, classes: Any) -> str:
        """What that value is: a risk, one minus a metric, or something else."""
        return str(self._criterion(goal, classes).measures)

    def _criterion(self, goal: Goal, classes: Any) -> Any:
        return goal.resolve_some(self.evaluated.prior, classes, self.few)

    @cached_property
    def shares(self) -> Matrix:
        """By true class, the share of the held-out rows that are predicted as each class."""
        counts = self.evaluated.counts
        totals = counts.sum(axis=1, keepdims=True)
        return np.asarray(counts / np.where(totals > 0, totals, 1.0))

    @cached_property
    def precisions(self) -> Vector:
        """Share of the rows predicted as each class that are of it; nan where none is."""
        counts = self.evaluated.counts
        totals = counts.sum(axis=0)
        nothing = np.full(len(totals), np.nan)
        return np.asarray(np.divide(np.diag(counts), totals, out=nothing, where=totals > 0))

    @cached_property
    def intervals(self) -> RiskIntervals:
        """Class risks with intervals, by class index."""
        classes = np.arange(len(self.few))
        refit = self.evaluated.tested_per_trained
        return counted_intervals(self.evaluated.sums, classes, CONFIDENCE, refit=refit)

    def overall(self) -> RiskInterval:
        """The overall error of all held-out rows."""
        return self._mean(self.evaluated, np.ones(len(self.few)))

    def balanced(self) -> RiskInterval:
        """The mean of the class risks of the classes that count."""
        totals = self.evaluated.counts.sum(axis=1)
        return self._mean(self.counting, np.divide(1.0, totals, where=totals > 0, out=totals * 0))

    def worst(self) -> int:
        """The class that counts with the largest risk."""
        risks = np.where(self.few, -1.0, np.asarray(self.intervals.risks))
        return int(np.nanargmax(risks))

    @staticmethod
    def _mean(evaluated: Evaluated, class_weights: Vector) -> RiskInterval:
        """A weighted mean of class risks: rows of one class with these weights."""
        labels, squares = evaluated.labels, evaluated.squares
        one = replace(
            evaluated,
            labels=evaluated.few[labels].astype(np.intp),
            predicted=(evaluated.predicted != labels).astype(np.intp),
            final=(evaluated.final != labels).astype(np.intp),
            default=None,
            weights=evaluated.weights * class_weights[labels],
            squares=None if squares is None else squares * class_weights[labels] ** 2,
            few=np.array([False, True]),
            prior=np.array([1.0, 0.0]),
        )
        refit = evaluated.tested_per_trained
        return counted_intervals(one.sums, np.arange(2), CONFIDENCE, refit=refit)[0]


@dataclass(eq=False)
class Evaluator:
    """The models, fitted once for each fold, and what their fits warned of.

    ``models`` are those of all folds, which are kept where they predict further rows.
    """

    design: Design
    learners: Mapping[str, Any]
    seed: int
    progress: Progress | None
    notes: dict[str, str] = field(default_factory=dict)
    held_out: dict[str, HeldOut] = field(default_factory=dict)
    keeps_models: bool = False
    models: dict[str, list[Any]] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)

    def tell(self, what: str) -> None:
        """Report the share of the models that are fitted, and what comes next."""
        if self.progress is not None:
            self.progress(0.99 * len(self.held_out) / len(self.learners), what)

    def end(self) -> None:
        """Report that all is done."""
        if self.progress is not None:
            self.progress(1.0, "done")

    def all(self, candidates: Sequence[Candidate]) -> list[EvaluatedCandidate]:
        """The candidates that can be evaluated; ``unfinished`` are those after an interrupt."""
        done: list[EvaluatedCandidate] = []
        for position, candidate in enumerate(candidates):
            try:
                self.tell(candidate.label)
                done.append(self.evaluation(candidate))
            except EquipoiseError as reason:
                # A goal that one model cannot reach may be reached by another.
                if candidate.goal is None:
                    raise
                self.notes[candidate.label] = f"{candidate.label} was left out: {reason}"
            except KeyboardInterrupt:
                if not done:
                    raise
                self.unfinished = [each.label for each in candidates[position:]]
                break
        return done

    def evaluation(self, candidate: Candidate) -> EvaluatedCandidate:
        """One candidate: predicted, tuned, and evaluated by rules tuned without each fold."""
        design, table = self.design, self.design.table
        estimator = self.learners[candidate.model]
        if candidate.goal is not None:
            refuse_own_weights(estimator)
        held_out = self._predicted(candidate.model)
        goal = candidate.goal or as_goal("standard")
        task = Task(goal, table.classes, table.prior, design.folds.few, seed=self.seed)
        tuned = tune(held_out, task)
        evaluated = replace(
            evaluate(held_out, tuned, task), few=~design.evaluated, clusters=design.clusters
        )
        few, factors = ~design.counts, self.training.factors_for(held_out.model)
        return EvaluatedCandidate(candidate, evaluated, few, held_out, tuned.rule, factors)

    @property
    def training(self) -> Training:
        """Models are trained without class weights."""
        prior = self.design.table.prior
        return Training(np.ones((1, len(prior))), prior, prior)

    def _predicted(self, name: str) -> HeldOut:
        """Probabilities of the held-out rows by a model that has not seen them."""
        if name in self.held_out:
            return self.held_out[name]
        design, estimator = self.design, self.learners[name]
        rows, key = rows_of(design.table, design.X), weight_argument(estimator)
        if key is not None and design.table.weights is not None:
            rows = replace(rows, params={key: rows.weights})
        if isinstance(estimator, FrozenEstimator):
            order = design.folds.rows
            table = class_probabilities(estimator, rows.features(order), rows.classes)
            table = rescaled(table, self.training.factors_for(estimator))
            predictions = Predictions(table, design.table.labels[order], rows.weights[order])
            held_out = HeldOut(predictions, design.folds.fold, estimator)
            self.models[name] = [estimator]
        else:
            with warnings.catch_warnings(record=True, action="always") as caught:
                fits = Fits(quiet=False)
                held_out = predict(estimator, rows, design.folds, self.training, fits)
            if self.keeps_models:
                (parts,) = fits.tables.values()
                self.models[name] = [part.model for part in parts]
            for each in caught:
                kind = each.category
                if issubclass(kind, EquipoiseWarning) and kind is not InactiveCapsWarning:
                    self.notes.setdefault(kind.__name__, f"{name}: {each.message}")
        if design.kind == "sample":
            # The model is kept: none is fitted to all rows.
            held_out = replace(held_out, tested_per_trained=0.0)
        self.held_out[name] = held_out
        return held_out


def notebook_bar() -> Progress | None:
    """A progress bar in a notebook, nothing elsewhere."""
    # Only a notebook has loaded it.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    display = ipython.display  # type: ignore[union-attr]
    shown = display.display(display.HTML(""), display_id=True)

    def tell(share: float, what: str) -> None:
        bar = f'<progress value="{share:.3f}" max="1"></progress> {escape(what)}'
        shown.update(display.HTML("" if share >= 1 else bar))

    return tell
