"""What is compared, and which rows are held out when.

Models are tuned for several ideas of how much the classes matter, and evaluated in folds in which
no row is predicted by a fit that has seen it. Rows with equal features stay together, unless this
leaves a class of many rows without any that is held out: then new rows will repeat them, too. Every
class is spread evenly over the folds. A class of fewer distinct rows than folds only trains: it
would be missing from some of the fits, and its risk cannot be estimated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Indices, Mask, Vector
from equipoise.decisions import Evaluated, Folds
from equipoise.decisions.alphas import middle_alpha
from equipoise.decisions.folds import FOLDS_OF_A_CLASS, TRAINS_ONLY, deal, dealt_folds
from equipoise.decisions.summary import FEW_ROWS
from equipoise.decisions.trained import weight_argument
from equipoise.estimators import RobustnessCV
from equipoise.estimators.own_weights import is_robust
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals import Goal, MetricGoal, SetGoal, as_goal, format_goal
from equipoise.sets import WORDS, LabelCVaR, WorstClass
from equipoise.tables import (
    MODEL_KINDS,
    LabelledTable,
    folds_for,
    hold_out,
    learner_for,
    made_for,
)
from equipoise.text import listing
from equipoise.validation.numbers import check_count, check_number

STANDARD, BALANCED, WORST = "standard", "balanced", "worst class"
PLAIN = "plain"
_ABOUT = {
    STANDARD: "every row counts the same",
    BALANCED: "every class counts the same",
    WORST: "any weights: the class with the largest risk decides",
}

# Folds, unless others are asked for or the table is large.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, what it is made for, and the classifier, not fitted, that this comes to.

    ``made_for`` is ``"plain"``, ``"balanced"`` or the name of a goal; ``goal`` is None for the
    plain one, and so is ``price`` unless it is what the candidate is tuned for. ``training`` are
    its training weights, by name.
    """

    model: str
    made_for: str
    goal: Goal | None = None
    price: float | None = None
    training: str = PLAIN

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"{self.model}, {self.made_for}"

    def around(self, learner: Any, *, cv: Any, seed: int) -> Any:
        """The classifier, not fitted, around a learner."""
        if self.goal is None:
            return learner
        made = made_for(learner, self.goal, cv=cv, random_state=seed)
        return self.priced(made.set_params(training=self.training))

    def priced(self, made: Any) -> Any:
        """The classifier with decisions for a price, if that is what it is made for."""
        if self.price is None:
            return made
        return RobustnessCV(made.set_params(goal=None), rule="price", price=self.price)


def named_goals(goals: Any, prior: Vector) -> dict[str, Goal]:
    """The goals that candidates are made for and judged by, by name."""
    if goals is None:
        alpha = middle_alpha(prior)
        cvar = {f"CVaR {alpha:g}": LabelCVaR(alpha=alpha)}
        goals = {STANDARD: "standard", BALANCED: "balanced", **cvar, WORST: WorstClass()}
    if not isinstance(goals, Mapping):
        given = goals if isinstance(goals, list | tuple) else [goals]
        texts = [goal_text(as_goal(goal)) for goal in given]
        names = [WORST if text == "worst_class" else text for text in texts]
        goals = dict(zip(names, given, strict=True))
    if not goals:
        raise InvalidParameterError("goals must be a goal, or at least one by name, got none.")
    found = {str(name): as_goal(goal) for name, goal in goals.items()}
    for name, goal in found.items():
        if goal.confidence is not None:
            raise InvalidParameterError(
                f"goals must be such that models can be compared by them, got {name}: a "
                "confidence is about one model. Leave it out."
            )
    return found


def goal_text(goal: Goal) -> str:
    """How a goal is written on the command line and in Python: a word where there is one."""
    own: Any = goal.uncertainty if isinstance(goal, SetGoal) else goal
    own = own.metric if isinstance(own, MetricGoal) else own
    text = format_goal(own)
    return {format_goal(recipe): word for word, recipe in WORDS.items()}.get(text, text)


def about(name: str, goal: Goal) -> str:
    """What a goal means, in a few words."""
    if name in _ABOUT:
        return _ABOUT[name]
    if isinstance(goal, SetGoal):
        return goal.uncertainty.meaning()
    if isinstance(goal, MetricGoal):
        return f"one minus {name}"
    return f"the value of {name}"


def make_candidates(
    models: Mapping[str, Any], goals: Mapping[str, Goal], price: float | None = None
) -> tuple[Candidate, ...]:
    """Every model plain, with class-weighted training, and for every goal; the plainest first."""
    rank = [Candidate(name, PLAIN) for name in models]
    weighted = [name for name, each in models.items() if _takes_weights(each)]
    balanced = as_goal(BALANCED)
    rank += [Candidate(name, BALANCED, balanced, training=BALANCED) for name in weighted]
    decide = [name for name, each in models.items() if _tells_chances(each)]
    if price is not None:
        own = as_goal(LabelCVaR(1.0))
        rank += [Candidate(name, f"a price of {price:g}", own, price) for name in decide]
    for goal_name, goal in goals.items():
        if goal_name not in (STANDARD, BALANCED):
            rank += [Candidate(name, goal_name, goal) for name in decide]
    return tuple(rank)


def named_learners(
    models: Any, columns: Any, seed: int, n_rows: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Classifiers by name, not fitted, and which of them are ours."""
    if isinstance(models, Mapping):
        for name, each in models.items():
            if not hasattr(each, "fit") or isinstance(each, type):
                raise InvalidParameterError(
                    f"models must hold classifiers by name, got {each!r} as {name!r}."
                )
            if not hasattr(each, "predict_proba") and not hasattr(each, "decision_function"):
                raise InvalidParameterError(
                    f"models must have predict_proba or decision_function, which {name!r} has not: "
                    "wrap it in scikit-learn's CalibratedClassifierCV."
                )
        if not models:
            raise InvalidParameterError("models must hold at least one classifier, got none.")
        return {str(name): each for name, each in models.items()}, []
    given = MODEL_KINDS if models is None else (models,) if isinstance(models, str) else models
    kinds = [kind for kind in MODEL_KINDS if kind in given]
    if not kinds or any(kind not in MODEL_KINDS for kind in given):
        names = ", ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(
            f"models must be some of {names}, or a dict of classifiers by name, got {models!r}."
        )
    made = partial(learner_for, columns, random_state=seed, n_rows=n_rows)
    return {kind: made(kind) for kind in kinds}, kinds


def _takes_weights(estimator: Any) -> bool:
    """Whether balanced weights change its training; one that is fitted can decide by them."""
    weighs = weight_argument(estimator) is not None and not is_robust(estimator)
    return (weighs or isinstance(estimator, FrozenEstimator)) and _tells_chances(estimator)


def _tells_chances(estimator: Any) -> bool:
    return hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")


@dataclass(frozen=True, eq=False)
class Design:
    """Which rows are held out in which fold; 1 fold is a hold-out, and rows of -1 only train."""

    table: LabelledTable
    fold: Indices
    n_folds: int

    @classmethod
    def for_table(cls, table: LabelledTable, cv: float, seed: int) -> "Design":
        """Folds for a table, or one part held out where it is large and nothing else is asked."""
        wanted = folds_for(len(table.labels), len(table.classes))
        wanted = wanted if isinstance(wanted, float) and cv == FOLDS else cv
        if isinstance(wanted, float):
            check_number(wanted, "cv", "(0, 1)")
            fold = np.full(len(table.labels), TRAINS_ONLY, dtype=np.intp)
            fold[hold_out(table, wanted, seed)[1]] = 0
            design = cls(table, fold, 1)
        else:
            folds = check_count(wanted, "cv", least=2)
            few = table.counts < max(folds, FEW_ROWS)
            fold = dealt_folds(table.groups, table.labels, folds, seed, few)
            design = cls(table, fold, folds)
        if np.count_nonzero(design.estimable) < 2:
            raise InvalidInputError(
                f"At least two classes need {wanted} different rows or more, to be judged on rows "
                "that a fit has not seen; the classes have "
                f"{listing(table.counts.tolist())} rows."
            )
        return design

    @classmethod
    def for_predictions(cls, table: LabelledTable) -> "Design":
        """All rows are judged, by what was said of them before."""
        return cls(table, np.zeros(len(table.labels), dtype=np.intp), 1)

    @cached_property
    def judged(self) -> Indices:
        """The rows that are judged."""
        return np.flatnonzero(self.fold >= 0)

    @cached_property
    def tested(self) -> Indices:
        """Rows judged of each class."""
        return self.table.counts_at(self.judged)

    @cached_property
    def estimable(self) -> Mask:
        """Classes that are judged."""
        return self.tested > 0

    @cached_property
    def deciding(self) -> Mask:
        """Classes with rows enough to decide; all that are judged where fewer than two have."""
        enough = self.tested >= FEW_ROWS
        return enough if np.count_nonzero(enough) >= 2 else self.estimable

    @cached_property
    def untuned(self) -> Mask:
        """Classes without tuned decisions, as with ``rare_classes="keep"`` in the printed code."""
        few = self.tested < FOLDS_OF_A_CLASS
        wanted = few | (self.table.counts < FEW_ROWS), few, ~self.estimable
        return next(own for own in wanted if np.count_nonzero(~own) >= 2)

    @cached_property
    def prior(self) -> Vector:
        """Shares of the classes that decide, among themselves."""
        prior = self.table.prior[self.deciding]
        return np.asarray(prior / prior.sum())

    @property
    def n_repeated(self) -> int:
        """Rows that repeat the features of an earlier one."""
        return len(self.fold) - int(self.table.groups.max()) - 1

    @property
    def tested_per_trained(self) -> float | None:
        """Held-out rows for each row of a training part; None where one fit is evaluated."""
        return None if self.n_folds == 1 else self.n_folds / (self.n_folds - 1)

    def folds(self, most_rows: int, seed: int) -> Folds:
        """Training and held-out rows of every fold, at most so many of the former."""
        labels, parts = self.table.labels, []
        for fold in range(self.n_folds):
            train = np.flatnonzero(self.fold != fold)
            test = np.flatnonzero(self.fold == fold)
            parts.append((stratified_sample(labels, train, most_rows, seed), test))
        order = np.concatenate([test for _, test in parts])
        few = self.n_folds < FOLDS_OF_A_CLASS
        return Folds(parts, self.untuned, deal(labels[order], seed) if few else self.fold[order])


def stratified_sample(labels: Indices, rows: Indices, size: int, seed: int) -> Indices:
    """At most about so many of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    by_class = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    sizes = [int(np.ceil(size / len(rows) * len(own))) for own in by_class]
    parts = [rng.choice(own, n, replace=False) for own, n in zip(by_class, sizes, strict=True)]
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class Decided:
    """What a candidate predicts for held-out rows, with all judged classes in ``evaluated``.

    ``rule`` is what other rows are predicted by, given the probabilities of ``model`` times
    ``factors``; ``n_candidates`` are the rules among which it was chosen on the same rows.
    """

    candidate: Candidate
    evaluated: Evaluated
    rule: Any = None
    model: Any = None
    factors: Any = None
    n_candidates: int = 1
