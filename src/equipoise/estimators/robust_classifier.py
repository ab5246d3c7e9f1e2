"""Any classifier, with training weights and decision weights chosen together for one goal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import Mask, NDArray, Vector
from equipoise.decisions import TunedWeights, left_out
from equipoise.decisions.search import excess_errors, last_as_good
from equipoise.estimators.class_weighted import (
    ClassWeighted,
    is_robust,
    refuse_own_weights,
    weight_argument,
)
from equipoise.estimators.plug_in import DecidingClassifier, Judged
from equipoise.estimators.robust_linear import streamed
from equipoise.exceptions import EquipoiseWarning, InvalidParameterError, warn
from equipoise.goals import Criterion
from equipoise.goals.base import prior_among
from equipoise.sets import LabelCVaR, MassSet
from equipoise.sets.alphas import NOISE_OF_SETS
from equipoise.validation.numbers import check_numbers, check_verbosity, check_word
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import weights_of

# Training weights that have a name, the plainest first: powers of one over the class share.
TRAININGS = {"plain": 0.0, "between": 0.5, "balanced": 1.0}
# For a set, those that all others depend on: where the plain one does as well, no more are tried.
_FIRST = ("plain", "balanced")
# Rounds in which the classes that fail most get more weight, and by which factor the worst does.
ROUNDS = 2
_FACTOR = 2.0
# Trainings that are worse than the best by fewer standard errors than this are as good for a
# metric.
_NOISE = 1.0
# Rows of every class by which one training may be called better in all of them.
_MANY = 25
# Rows of a class, three a fold, below which folds hardly tell trainings apart where decisions are
# guessed too: half way between plain and balanced is then the better guess, unless another is so
# much better on the rows left out.
_HANDFUL, _CLEARLY = 15, 0.02


class RobustClassifier(DecidingClassifier):
    r"""Any classifier made good for a goal: how it is trained, and how it decides.

    .. math:: f(x) = \arg\max_i \; w_i \eta_i(x)

    with probabilities :math:`\eta` of a model that is trained with class weights :math:`v`. Both
    are chosen on rows left out: for training weights from none over balanced ones to those that an
    adversary asks for after seeing which classes fail, decision weights are tuned as in
    :class:`PlugInClassifier`. Of trainings that do as well as the best, up to a standard error, the
    plainest is taken, and the model trained once more on all rows. For a set of weightings, whose
    value hangs on a class or two, it is two standard errors, unless another training gets no class
    more wrong and is better in the mean by as much; and no others are tried where the plain one
    does as well as the balanced one. For macro F1 of two classes the tuned weights are drawn to
    half way between decisions as trained and balanced ones, the more the fewer rows the smaller
    class has (with 50, they and the tuned ones count the same); with fewer than 15, which hardly
    tell trainings apart, the training is half way as well unless another is better by two points.
    For other metrics that count rows, such as accuracy or macro F1 of more classes, a model that
    was trained with weights decides as it was trained unless tuned weights are better by a standard
    error. Trees whose leaves must hold so many rows cannot set apart a class of fewer, whatever its
    weight: of two classes, training with weights repeats the rows of the smaller one for them.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` or ``decision_function``, and ``sample_weight`` in ``fit``: of
        scikit-learn, LightGBM, XGBoost or CatBoost, a pipeline or a search. One that takes no
        weights, or that is robust by itself as :class:`RobustLogisticRegression` is for a set, is
        trained as it is, and its decisions are tuned. A booster that stops early is given rows of
        its training part to stop by.
    goal : Uncertainty, str, metric, RecallFloors or None, default=None
        As in :class:`PlugInClassifier`; None is ``LabelCVaR(0.1)``. With ``LabelCVaR("auto")`` the
        training is chosen for the level in the middle, ``sets.middle_alpha``.
    training : str, dict or array-like of shape (n_classes,), default="auto"
        Training weights by class: ``"plain"``, ``"balanced"``, ``"between"`` (the geometric mean of
        the two) or numbers; ``"auto"`` chooses them.
    cv, class_prior, rare, min_rows, n_jobs, random_state, memory, sample_rows
        As in :class:`PlugInClassifier`.
    verbose : int, default=0
        Above 0, a line for each training that is judged.

    Attributes
    ----------
    training_weights_ : ByClass
        Weights that the classes were trained with, of mean 1 over the rows.
    candidates_ : dict of arrays
        What each training would have given on rows left out: ``training`` (a word), ``weights`` and
        ``class_risks`` of shape (n_candidates, n_classes), ``value`` (the lower the better: the
        robust risk, one minus the metric, or for floors the risk and a price of missing them) and
        ``seconds``.
    worst_case_weights_ : ByClass
        For a set of weightings, the one under which the risk of the decisions is largest. Neither
        this nor the two above are there for an estimator that was fitted before.
    classes_, estimator_, tuned_, weights_, class_risks_, class_risk_intervals_, ...
        As in :class:`PlugInClassifier`; the intervals allow for the choice among candidates.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from equipoise import RobustClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    >>> clf = RobustClassifier(tree, "worst-class", cv=3).fit(X, y)
    >>> bool(clf.class_risks_.max() < 0.1)
    True
    """

    # A model is trained on all rows in the end, and weights are steadied, as by default elsewhere.
    refit = True
    shrinkage = "auto"
    chooses_training = True

    def __init__(
        self,
        estimator: Any,
        goal: Any = None,
        *,
        training: Any = "auto",
        cv: Any = 5,
        class_prior: Any = None,
        rare: str = "error",
        min_rows: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        memory: int | str = "1 GiB",
        sample_rows: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.training = training
        self.cv = cv
        self.class_prior = class_prior
        self.rare = rare
        self.min_rows = min_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory = memory
        self.sample_rows = sample_rows
        self.verbose = verbose

    def _fitted(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[Any, TunedWeights, dict[str, Any]]:
        model, tuned, more = super()._fitted(X, y, sample_weight, params)
        if isinstance(model, ClassWeighted):
            # Weights for the probabilities as the model gives them.
            own = np.asarray(more["training_weights_"])
            rule = tuned.rule / (own if tuned.rule.ndim == 1 else own[:, None])
            folds = None if tuned.fold_weights is None else tuned.fold_weights / own
            model, tuned = model.estimator_, replace(tuned, rule=rule, fold_weights=folds)
        if "alpha_" in more and "class_shares_" in more:
            risks = np.asarray(tuned.class_risks)
            masses = LabelCVaR(more["alpha_"]).resolve(
                prior_among(tuned.prior, tuned.classes, ~np.isnan(risks))
            )
            more["worst_case_weights_"] = _worst(masses, risks, more["class_shares_"])
        return model, tuned, more

    def _check_estimator(self) -> None:
        if hasattr(self.estimator, "predict_proba") or not hasattr(
            self.estimator, "decision_function"
        ):
            super()._check_estimator()

    def _choose(
        self, judged: Callable[..., Judged], criterion: Criterion, classes: NDArray[Any],
        shares: Vector, few: Mask,
    ) -> tuple[Judged, dict[str, Any]]:  # fmt: skip
        verbose = check_verbosity(self.verbose)
        trainings, weights = self._first(criterion, classes, shares), []
        found: list[Judged] = []
        values: list[float] = []
        seconds: list[float] = []
        while len(found) < len(trainings):
            name, v = list(trainings.items())[len(found)]
            began = time.perf_counter()
            weights.append(v / (shares @ v))
            estimator = self._weighted(weights[-1], classes)
            told = estimator is not self.estimator or self._is_told(criterion)
            found.append(judged(estimator, weights[-1] if told else None))
            table = found[-1][2][1]
            values.append(criterion.of_table(table.sum(axis=0)) if len(table) else np.nan)
            seconds.append(time.perf_counter() - began)
            if verbose:
                sys.stdout.write(f"{name} training: {values[-1]:.4f} ({seconds[-1]:.1f} s)\n")
            place = _plainest(list(trainings), found, criterion)
            if criterion.masses is not None and len(found) == len(trainings) > 1 and place > 0:
                best, rounds = int(np.argmin(values)), len(found) - len(TRAININGS)
                if rounds < 0:
                    trainings["between"] = shares ** -TRAININGS["between"]
                # After a round that was no better, the next would be the same.
                elif rounds < ROUNDS and (rounds == 0 or best == len(found) - 1):
                    raised = weights[best] * _raised(_risks(found[best]), few)
                    trainings[f"round {rounds + 1}"] = raised
        risks = np.array([_risks(each) for each in found])
        candidates = {
            "training": np.array(list(trainings)),
            "weights": np.array(weights),
            "class_risks": risks,
            "value": np.array(values),
            "seconds": np.array(seconds),
        }
        more: dict[str, Any] = {
            "training_weights_": ByClass(weights[place], classes),
            "candidates_": candidates,
            "class_shares_": ByClass(shares, classes),
        }
        if criterion.masses is not None:
            own = np.where(few, np.nan, risks[place])
            more["worst_case_weights_"] = _worst(criterion.masses, own, more["class_shares_"])
        estimator, model, outcome, at = found[place]
        # Of as many as might have been tried, which was not known before.
        of = len(TRAININGS) + ROUNDS if len(found) > 1 else 1
        outcome[0]["n_candidates"] = of
        return (estimator, model, outcome, at and partial(at, n_candidates=of)), more

    def _first(
        self, criterion: Criterion, classes: NDArray[Any], shares: Vector
    ) -> dict[str, Vector]:
        """Training weights that are tried before any risk is known, by name."""
        refuse_own_weights(self.estimator)
        given = self.training
        known = {name: shares**-power for name, power in TRAININGS.items()}
        if weight_argument(self.estimator) is None or is_robust(self.estimator):
            why = "is robust by itself" if is_robust(self.estimator) else "takes no sample_weight"
            warn(
                f"{type(self.estimator).__name__} {why}: it is trained as it is, and its decisions "
                "are tuned alone, as PlugInClassifier does.",
                EquipoiseWarning,
            )
            return {"plain": known["plain"]}
        if isinstance(given, str):
            check_word(given, "training", ("auto", *TRAININGS))
            if given != "auto":
                return {given: known[given]}
            if criterion.masses is None and criterion.confidence is None:
                return known
            # A confidence allows for no choice by the rows that it is about.
            wanted = _FIRST if criterion.confidence is None else _FIRST[:1]
            return {name: known[name] for name in wanted}
        own = check_numbers(given, classes, name="training")
        if not np.all((own > 0) & np.isfinite(own)):
            raise InvalidParameterError(
                f"training must hold positive weights, got {own.tolist()}: a class without weight "
                "would not be learnt at all."
            )
        return {"given": own}

    def _is_told(self, criterion: Criterion) -> bool:
        """Whether what is trained without weights decides by a guess, too, which it needs."""
        return criterion.lean is not None and not is_robust(self.estimator)

    def _weighted(self, weights: Vector, classes: NDArray[Any]) -> Any:
        if np.all(weights == weights[0]):
            return self.estimator
        by_class = dict(zip(classes.tolist(), weights.tolist(), strict=True))
        return ClassWeighted(self.estimator, by_class)

    @streamed
    def predict_population_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities on the scale of the population, whatever the training weights."""
        check_is_fitted(self)
        table = left_out.class_probabilities(self.estimator_, X, self.classes_)
        own = getattr(self, "training_weights_", 1.0)
        shares = np.asarray(getattr(self, "class_shares_", self.class_prior_))
        factors = np.asarray(self.class_prior_) / np.where(shares > 0, own * shares, 1.0)
        table = table * factors
        return np.asarray(table / table.sum(axis=1, keepdims=True))


def _worst(masses: MassSet, risks: Vector, shares: ByClass) -> ByClass:
    """The weights under which risks are largest; a class that was not judged has none."""
    worst = np.zeros(len(risks))
    judged = ~np.isnan(risks)
    worst[judged] = np.asarray(masses.maximize(risks[judged]))
    return ByClass(weights_of(worst, shares), shares.classes)


def _plainest(names: list[str], found: list[Judged], criterion: Criterion) -> int:
    """The place of the plainest training that is as good as the best, or of the one to guess."""
    tables, few = [each[2][1] for each in found], _fewest(found[0]) < _HANDFUL
    if (
        criterion.lean is not None
        and few
        and len(found) == len(TRAININGS)
        and all(map(len, tables))
    ):
        values = [criterion.of_table(table.sum(axis=0)) for table in tables]
        guess, best = names.index("between"), int(np.argmin(values))
        return guess if values[guess] <= values[best] + _CLEARLY else best
    ranks = [*TRAININGS, *names]
    # The last that is as good is taken, so that the plainest comes last.
    order = sorted(range(len(found)), key=lambda place: -ranks.index(names[place]))
    if all(map(len, tables)):
        # What is to be kept is tuned for, and so kept or missed up to noise: then risks decide.
        short = np.array([criterion.short(tables[each].sum(axis=0)) for each in order])
        order = [order[at] for at in np.flatnonzero(short <= max(1.0, short.min()))]
        criterion = criterion.free()
    noise = _NOISE if criterion.masses is None else NOISE_OF_SETS
    place = order[last_as_good([tables[each] for each in order], criterion, noise)]
    if criterion.masses is not None:
        for other in reversed(order):
            place = other if _is_better(found[other], found[place]) else place
    return place


def _is_better(one: Judged, other: Judged) -> bool:
    """Whether one gets no class more wrong, and all together less by more than noise.

    For a set this is told apart where no single class tells.
    """
    tables = [each[2][1] for each in (one, other)]
    if not all(map(len, tables)) or _fewest(one) < _MANY:
        return False
    totals = np.array([table.sum(axis=0) for table in tables])
    without = np.array([total - table for total, table in zip(totals, tables, strict=True)])
    own, means = _recalls(totals), _recalls(without).mean(axis=2)
    error = excess_errors(means, 1)[0]
    gain = own[0].mean() - own[1].mean()
    return bool(np.all(own[0] >= own[1]) and gain > NOISE_OF_SETS * error)


def _fewest(judged: Judged) -> float:
    """Rows left out of the smallest class of those judged; none where nothing was."""
    held_out = judged[2][0].get("held_out")
    rows = np.zeros(1) if held_out is None else held_out.sum(axis=0)[0]
    return float(rows[rows > 0].min(initial=np.inf)) if np.any(rows) else 0.0


def _recalls(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of rows that are right, by class, of tables by class and decision."""
    return np.asarray(np.diagonal(tables, axis1=-2, axis2=-1) / tables.sum(axis=-1))


def _risks(judged: Judged) -> Vector:
    """Class risks on rows left out; nan for a class that is not judged."""
    held_out = judged[2][0].get("held_out")
    if held_out is None:
        return np.full(judged[2][1].shape[2], np.nan)
    _, totals, errors = held_out.sum(axis=0)[:3]
    return np.asarray(errors / np.where(totals > 0, totals, np.nan))


def _raised(risks: Vector, few: Mask) -> Vector:
    """Factors of training weights: the worst class's is the largest, the mean risk's is one."""
    excess = np.where(few, 0.0, risks - risks[~few].mean())
    return np.asarray(_FACTOR ** (excess / max(float(excess.max()), 1e-12)))
