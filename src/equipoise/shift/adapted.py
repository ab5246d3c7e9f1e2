"""A fitted classifier whose predictions are for the class frequencies of new rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import Matrix, NDArray
from equipoise.blocks.answers import streamed
from equipoise.decisions import TunedWeights
from equipoise.decisions.abstained import ScoredWithAbstentions
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.summary import DecisionSummary
from equipoise.decisions.tuned_weights import tune_weights
from equipoise.exceptions import InvalidInputError
from equipoise.goals import Goal
from equipoise.risks import RiskInterval
from equipoise.shift.model_output import probabilities_of_model
from equipoise.shift.shifted_goals import for_population
from equipoise.validation.labels import as_labels, known_labels

if TYPE_CHECKING:
    from equipoise.shift.prior_estimate import PriorEstimate


class AdaptedClassifier(ScoredWithAbstentions, BaseEstimator):  # type: ignore[misc]
    """A classifier around a fitted one, for estimated class frequencies; made by ``adapt``.

    Use it where a model is to predict for a population with other class frequencies; ``adapt`` of
    an estimate, and of every classifier of ours, makes it.

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
    >>> from equipoise.shift import estimate_prior
    >>> X, y, population = make_power_imbalance(4_000, p=0.9, random_state=0, return_model=True)
    >>> rows, classes = population.sample(9_000, random_state=1)
    >>> half = np.concatenate([np.flatnonzero(classes == label)[:800] for label in (0, 1)])
    >>> clf = LogisticRegression(C=1000).fit(X[:2000], y[:2000])
    >>> adapted = estimate_prior(clf, rows[half], held_out=(X[2000:], y[2000:])).adapt()
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

    def __sklearn_clone__(self) -> Self:
        # As of a FrozenEstimator: a copy without the fitted model could not be fitted.
        return self

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

    @property
    def may_abstain(self) -> bool:
        """Whether ``predict`` may give None instead of a class."""
        return self.tuned.may_abstain

    @streamed
    def predict(self, X: Any, *, costs: Any = None) -> NDArray[Any]:
        """The classes that serve the goal best at the estimated frequencies.

        Parameters
        ----------
        X : array-like
            Rows, as the model takes them.
        costs : array-like of shape (n_rows, n_classes, n_classes) or (n_rows, n_classes), optional
            Costs of each row, which take the place of the goal
            (:func:`~equipoise.goals.decide_by_costs`).
        """
        labels, table = self.from_probabilities(probabilities_of_model(self.model, X))
        return labels if costs is None else self.tuned.of_table(table, costs)

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

    def summary(self) -> DecisionSummary:
        """Recall and precision by class at the estimated frequencies, on held-out rows."""
        return self.tuned.summary()

    def overall_error(self) -> RiskInterval:
        """The expected overall error rate in the new population, by class risks of held-out rows.

        The interval contains the uncertainty of the frequencies and of the class risks.
        """
        rows = self.summary().rows
        return self.estimate.overall_error(np.asarray(self.tuned.class_risks), rows)


def adapted_to(
    estimate: PriorEstimate,
    goal: Goal,
    shown: tuple[Matrix, Any] | None = None,
    random_state: Any = None,
) -> AdaptedClassifier:
    """The model of an estimate, with decisions that are tuned for the estimated frequencies.

    They are tuned on the held-out rows of the calibration, as a population of the estimated
    frequencies has them; a goal with a confidence is ``shown`` by other rows, of which these are
    the model's probabilities and the labels.
    """
    known = estimate.calibration
    table, labels = known.table, known.labels
    aim, notes = for_population(goal, estimate.region())
    if aim.confidence is not None:
        if shown is None:
            raise InvalidInputError(
                "held_out must be given where a goal has a confidence, got None: labelled rows "
                "that neither the model nor the calibration has used, which show it."
            )
        probabilities, y = shown
        table = known.probabilities(probabilities)
        labels = known_labels(as_labels(y, name="y"), known.classes)
    tuned = tune_weights(
        known.classes[labels],
        table,
        aim,
        classes=known.classes,
        class_prior=estimate.draws.mean,
        rare_classes="keep",
        random_state=random_state,
    )
    return AdaptedClassifier(estimate.model, estimate, replace(tuned, folds=None), notes)
