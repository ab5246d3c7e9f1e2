"""Every candidate, predicted, tuned and evaluated on held-out rows; fits are shared."""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.decisions import (
    Evaluated,
    Fits,
    Folds,
    HeldOut,
    LabelledRows,
    Task,
    Training,
    Tuned,
    decide,
    evaluate,
    predict,
    predict_fitted,
    tune,
)
from equipoise.decisions.alphas import AlphaChoice
from equipoise.decisions.levels import choose_level
from equipoise.decisions.trained import weight_argument
from equipoise.estimators.own_weights import refuse_own_weights
from equipoise.estimators.robust_classifier import training_weights
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning
from equipoise.goals import Goal, SetGoal
from equipoise.report.design import PLAIN, Candidate, Decided, Design
from equipoise.sets import LabelCVaR

# Called with the share of the work that is done, from 0 to 1, and what comes next.
Progress = Callable[[float, str], None]


@dataclass(eq=False)
class CandidateFits:
    """The rows of a table, and what models say of them that have not seen them.

    ``notes`` are what the fits warned of.
    """

    design: Design
    learners: Mapping[str, Any]
    folds: Folds
    X: Any
    seed: int
    progress: Progress | None
    fits: Fits = field(default_factory=lambda: Fits(quiet=False))
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> LabelledRows:
        """The rows of the table."""
        table = self.design.table
        weights = np.ones(len(table.labels)) if table.weights is None else table.weights
        return LabelledRows(self.X, table.y, table.labels, table.classes, weights, {})

    @property
    def trainable(self) -> int:
        """Training rows of the largest fold, if none were left out."""
        held_out = [np.count_nonzero(self.design.fold == f) for f in range(self.design.n_folds)]
        return int(len(self.design.fold) - min(held_out))

    def tell(self, what: str) -> None:
        """Say how far the work is, and what comes next."""
        if self.progress is not None:
            expected = 2.0 * len(self.learners)
            self.progress(min(len(self.fits.tables) / expected, 0.99), what)

    def end(self) -> None:
        """Say that all is done."""
        if self.progress is not None:
            self.progress(1.0, "done")

    def note(self, label: str, caught: Iterable[warnings.WarningMessage]) -> None:
        """Of each kind of the library's warnings one is enough to be warned."""
        for each in caught:
            kind = each.category
            if issubclass(kind, EquipoiseWarning) and not issubclass(kind, InactiveCapsWarning):
                self.notes.setdefault(kind.__name__, f"{label}: {each.message}")

    def training(self, name: str) -> Training:
        """Class weights by name, on the class frequencies of the table."""
        prior = self.design.table.prior
        return Training(training_weights(name, self.design.table.classes, prior), prior, prior)

    def held_out(self, candidate: Candidate) -> HeldOut:
        """Predictions for the held-out rows."""
        estimator, rows = self.learners[candidate.model], self.rows
        key = weight_argument(estimator)
        if key is not None and self.design.table.weights is not None:
            rows = replace(rows, params={key: rows.weights})
        if isinstance(estimator, FrozenEstimator):
            order = self.folds.rows
            labels = np.full(len(rows.labels), -1, dtype=np.intp)
            labels[order] = rows.labels[order]
            plain = self.training(PLAIN)
            found = predict_fitted(estimator, replace(rows, labels=labels), plain, self.seed)
            return replace(found, fold=self.folds.fold)
        if candidate.goal is not None:
            refuse_own_weights(estimator)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            training = self.training(candidate.training)
            found = predict(estimator, rows, self.folds, training, self.fits)
        self.note(candidate.label, caught)
        return found

    def decided(self, candidate: Candidate) -> Decided:
        """What a candidate predicts for the held-out rows."""
        held_out = self.held_out(candidate)
        own = self.training(PLAIN if self._is_fitted(candidate) else candidate.training)
        given = held_out.model, own.factors_for(held_out.model)
        if candidate.goal is None:
            k = len(self.design.table.classes)
            tuned = Tuned(np.ones(k), np.ones((1, k)), 0.0)
            return Decided(candidate, self._default(held_out), tuned.rule, *given)
        if candidate.price is None:
            tuned, evaluated = self.tuned(held_out, candidate.goal)
            return Decided(candidate, self.judged(evaluated), tuned.rule, *given)
        choice = AlphaChoice("price", price=candidate.price)
        alphas = choice.levels(self.design.prior)
        found = [self.tuned(held_out, SetGoal(LabelCVaR(alpha))) for alpha in alphas.tolist()]
        every = [evaluated for _, evaluated in found]
        index = choose_level(choice, alphas, every, self.design.table.classes).index
        tuned, evaluated = found[index]
        return Decided(candidate, self.judged(evaluated), tuned.rule, *given, len(alphas))

    def _is_fitted(self, candidate: Candidate) -> bool:
        return isinstance(self.learners[candidate.model], FrozenEstimator)

    def tuned(self, held_out: HeldOut, goal: Goal) -> tuple[Tuned, Evaluated]:
        """A rule for a goal, tuned and evaluated."""
        design = self.design
        task = Task(goal, design.table.classes, design.table.prior, self.folds.few, seed=self.seed)
        held_out = replace(held_out, tested_per_trained=design.tested_per_trained)
        tuned = tune(held_out, task)
        return tuned, evaluate(held_out, tuned, task)

    def _default(self, held_out: HeldOut) -> Evaluated:
        """Default predictions: the class of the largest probability."""
        rows, design = held_out.predictions, self.design
        predicted = decide(rows.probabilities, np.ones(rows.n_classes))
        return Evaluated(
            rows.labels, predicted, predicted, held_out.fold, rows.sample_weight,
            ~design.estimable, design.table.prior, design.tested_per_trained,
        )  # fmt: skip

    def judged(self, evaluated: Evaluated) -> Evaluated:
        """The same, with classes that are not tuned evaluated as well."""
        return replace(evaluated, few=~self.design.estimable)


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
