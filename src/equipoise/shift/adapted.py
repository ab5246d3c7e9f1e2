"""A fitted classifier whose predictions are for the class frequencies of new rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split

from equipoise.arrays import ROUNDING, Matrix, NDArray
from equipoise.decisions import TunedWeights
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.tuned_weights import tune_weights
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.population_probabilities import inside
from equipoise.estimators.robust_linear import RobustLinearModel, streamed
from equipoise.exceptions import InvalidInputError
from equipoise.goals import Goal, RecallFloors, SetGoal, as_goal
from equipoise.risks import RiskInterval
from equipoise.sets import LabelCVaR, PriorBall, PriorBox, WeightHull
from equipoise.shift.calibration import CalibratedProbabilities
from equipoise.shift.model_output import probabilities_of_model
from equipoise.shift.prior_estimate import PriorEstimate, calibrated, estimate_prior
from equipoise.validation.labels import as_labels, known_labels
from equipoise.validation.numbers import check_numbers, check_seed

# MOST_CORNERS: draws of the frequencies that a hull is made of; more are hardly further out.
MOST_CORNERS = 50

FLOORS_NOTE = (
    "Recalls do not depend on class frequencies: the floors hold under every class frequencies, as "
    "long as rows of a class look as before."
)


class AdaptedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier around a fitted one, for estimated class frequencies; see :func:`adapt`.

    Use it where a model is to predict for a population with other class frequencies.

    Attributes
    ----------
    model
        The fitted classifier or Pipeline, unchanged.
    estimate
        PriorEstimate, the class frequencies.
    tuned
        TunedWeights, the decision rule and its class risks on held-out rows.
    notes
        Tuple of str, what is to be known about the goal under other frequencies.
    classes_
        Class names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.datasets import make_power_imbalance
    >>> from equipoise.shift import adapt
    >>> X, y, population = make_power_imbalance(4_000, p=0.9, random_state=0, return_model=True)
    >>> rows, classes = population.sample(9_000, random_state=1)
    >>> half = np.concatenate([np.flatnonzero(classes == label)[:800] for label in (0, 1)])
    >>> clf = LogisticRegression(C=1000).fit(X[:2000], y[:2000])
    >>> adapted = adapt(clf, rows[half], held_out=(X[2000:], y[2000:]))
    >>> errors = [1 - each.score(rows[half], classes[half]) for each in (clf, adapted)]
    >>> [f"{error:.0%}" for error in errors]
    ['22%', '12%']
    """

    # Rows in arrays that are read in slices are read whole up to half of this.
    memory = "1 GiB"

    def __init__(
        self, model: Any, estimate: PriorEstimate, tuned: TunedWeights, notes: tuple[str, ...] = ()
    ) -> None:
        self.model = model
        self.estimate = estimate
        self.tuned = tuned
        self.notes = notes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Class names."""
        return self.estimate.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the model takes."""
        return int(self.model.n_features_in_)

    def fit(self, X: Any, y: Any = None) -> Any:
        """Refused: what is adapted is a fitted classifier."""
        raise InvalidInputError(
            "An adapted classifier is not fitted again: fit the model, and adapt it to new rows."
        )

    @streamed
    def predict(self, X: Any) -> NDArray[Any]:
        """The classes that serve the goal best at the estimated frequencies."""
        return self.from_probabilities(probabilities_of_model(self.model, X))[0]

    @streamed
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities at the estimated frequencies."""
        return self.from_probabilities(probabilities_of_model(self.model, X))[1]

    def from_probabilities(self, table: Matrix) -> tuple[NDArray[Any], Matrix]:
        """Classes and probabilities, from the probabilities of the model."""
        known = self.estimate.calibration
        calibrated_table = known.probabilities(table)
        moved = rescaled(calibrated_table, self.estimate.draws.mean / known.prior)
        return np.asarray(self.tuned.decide(calibrated_table)), moved

    def overall_error(self) -> RiskInterval:
        """The expected overall error rate in the new population, by class risks of held-out rows.

        The interval is for the frequencies alone.
        """
        return self.estimate.overall_error(np.asarray(self.tuned.class_risks))


def adapt(
    model: Any,
    X_new: Any = None,
    *,
    held_out: Any = None,
    goal: Any = None,
    calibration: str | CalibratedProbabilities | None = "bcts",
    estimate: PriorEstimate | None = None,
    random_state: Any = None,
) -> AdaptedClassifier:
    """A classifier for the class frequencies of unlabelled rows; the original is unchanged.

    Decisions for the goal are tuned on the held-out rows, as a population of the estimated
    frequencies has them. ``PriorBox`` and ``PriorBall`` are intersected with the region of the
    estimate; sets of weights, metrics and costs are for the estimated frequencies; floors of
    recalls hold under all frequencies.

    Parameters
    ----------
    model : fitted classifier or Pipeline
        Of this package or of any other.
    X_new : array-like, Blocks or Dask collection
        New rows as the model takes them. Not needed with ``estimate``.
    held_out : tuple (X, y), default=None
        Labelled rows that the model was not trained on. Not needed with ``estimate`` or a
        ``CalibratedProbabilities``. Where floors have a confidence, half of them calibrate the
        probabilities and half show the floors.
    goal : goal, set, metric or None, default=None
        What decisions are for; by default the goal of the model, and of models of other packages
        the overall error.
    calibration : {"bcts", "temperature", None} or CalibratedProbabilities, default="bcts"
        As in :func:`estimate_prior`.
    estimate : PriorEstimate, default=None
        An estimate that exists already.
    random_state : int, RandomState or None, default=None
        Seed of the draws and folds.

    Returns
    -------
    AdaptedClassifier

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equipoise import RecallFloors, RobustLogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.shift import adapt
    >>> X, y = load_thyroid(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), RobustLogisticRegression("balanced"))
    >>> model = model.fit(X[::2], y[::2])
    >>> adapted = adapt(model, X[1::4], held_out=(X[3::4], y[3::4]), goal=RecallFloors(0.9))
    >>> adapted.notes[0][:47]
    'Recalls do not depend on class frequencies: the'
    """
    aim = as_goal(own_goal(model) if goal is None else goal)
    shown = None
    if aim.confidence is not None and estimate is None and held_out is not None:
        held_out, shown = _halves(held_out, check_seed(random_state))
    if estimate is None:
        known = calibrated(model, held_out, calibration)
        if X_new is None:
            raise InvalidInputError("X_new must be given where there is no estimate, got None.")
        estimate = estimate_prior(model, X_new, calibration=known, random_state=random_state)
    elif aim.confidence is not None:
        shown = held_out
        if held_out is None:
            raise InvalidInputError(
                "held_out must be given beside an estimate where a goal has a confidence, got "
                "None: rows that the calibration has not used, which show it."
            )
    known = estimate.calibration
    table, labels = known.table, known.labels
    if shown is not None:
        X, y = shown
        table = known.probabilities(probabilities_of_model(model, X))
        labels = known_labels(as_labels(y, name="y"), known.classes)
    aim, notes = _for_population(aim, estimate)
    tuned = tune_weights(
        known.classes[labels],
        table,
        aim,
        classes=known.classes,
        class_prior=estimate.draws.mean,
        rare_classes="keep",
        random_state=random_state,
    )
    return AdaptedClassifier(model, estimate, replace(tuned, folds=None), notes)


def own_goal(model: Any) -> Any:
    """The goal of a fitted classifier, or the overall error where it has none."""
    while model is not None:
        if isinstance(model, DecidingClassifier | RobustLinearModel):
            level = getattr(model, "alpha_", None)
            return model.goal if level is None else LabelCVaR(level)
        model = inside(model)
    return "accuracy"


def _halves(held_out: Any, seed: int) -> tuple[Any, Any]:
    """Held-out rows for the calibration, and as many that show a goal with its confidence."""
    X, y = held_out
    first, second, y_first, y_second = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    return (first, y_first), (second, y_second)


def _for_population(goal: Goal, estimate: PriorEstimate) -> tuple[Goal, tuple[str, ...]]:
    """The goal at the estimated frequencies, and notes about it."""
    if isinstance(goal, RecallFloors):
        return goal, (FLOORS_NOTE,)
    if not isinstance(goal, SetGoal):
        return goal, ()
    if isinstance(goal.uncertainty, PriorBox):
        return _within_box(goal.uncertainty, estimate)
    if isinstance(goal.uncertainty, PriorBall):
        return _within_ball(goal.uncertainty, estimate)
    return goal, ()


def _within_box(box: PriorBox, estimate: PriorEstimate) -> tuple[Goal, tuple[str, ...]]:
    """The frequencies that both a box and the estimate allow."""
    classes, region = estimate.classes, estimate.set()
    low, high = (
        check_numbers(free if each is None else each, classes, name=name, default=free)
        for each, name, free in ((box.lower, "lower", 0.0), (box.upper, "upper", 1.0))
    )
    low = np.maximum(low, check_numbers(region.lower, classes, name="lower"))
    high = np.minimum(high, check_numbers(region.upper, classes, name="upper"))
    if np.any(low > high) or low.sum() > 1 or high.sum() < 1:
        return _region(estimate, "PriorBox")
    return SetGoal(PriorBox(low, high)), ("The box was intersected with the estimated region.",)


def _within_ball(ball: PriorBall, estimate: PriorEstimate) -> tuple[Goal, tuple[str, ...]]:
    """The hull of draws of the frequencies inside a ball."""
    prior = estimate.calibration.prior
    masses = ball.resolve(prior, estimate.classes)
    inner = [s for s in estimate.samples if np.abs(masses.project(s) - s).max() < np.sqrt(ROUNDING)]
    if not inner:
        return _region(estimate, "PriorBall")
    hull = WeightHull([sample / estimate.draws.mean for sample in inner[:MOST_CORNERS]])
    return SetGoal(hull), ("The ball was intersected with draws of the frequencies.",)


def _region(estimate: PriorEstimate, name: str) -> tuple[Goal, tuple[str, ...]]:
    note = (
        f"The {name} of the goal and the estimated region have nothing in common: the frequencies "
        "are not those that were expected, and decisions are for the estimated region."
    )
    return SetGoal(estimate.set()), (note,)
