"""Prediction sets for other class frequencies, from the calibration rows that they keep."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import NDArray, Vector
from equipoise.decisions.calibrated_sets import named_thresholds
from equipoise.decisions.conformal import Calibration, CoverageTask, same_task, thresholds
from equipoise.decisions.set_goals import coverage_task, rule_of
from equipoise.goals import SetGoal
from equipoise.sets import as_uncertainty
from equipoise.shift import CalibratedProbabilities, estimate_prior
from equipoise.shift.shifted_goals import for_population, note_of_sets
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior


class AdaptableSets:
    """Fitted sets that can be adapted to other class frequencies."""

    goal: Any
    coverage: Any
    confidence: Any
    class_prior: Any
    classes_: NDArray[Any]
    class_prior_: ByClass
    calibration_: dict[str, Any]
    tuned_: Any
    thresholds_: ByClass
    summary_: Any
    estimate_: Any
    notes_: tuple[str, ...]

    @property
    def label_weights_(self) -> Vector:
        """Weights of the probabilities that sets are compared with, for the label of a set."""
        return np.asarray(self.tuned_.rule * self._moved)

    @property
    def _moved(self) -> Vector:
        """The ratios of the class frequencies to those of the calibration, 1 unless adapted."""
        before = np.asarray(self.calibration_["prior"])
        after, ratios = np.asarray(self.class_prior_), np.ones(len(before))
        return np.asarray(np.divide(after, before, out=ratios, where=before > 0))

    @property
    def _calibration(self) -> Calibration:
        kept = self.calibration_
        return Calibration(kept["own"], kept["labels"], kept["fold"], len(self.classes_))

    def _task_of(self, goal: Any) -> CoverageTask:
        """What a goal covers at the class frequencies, with the scale of the calibration."""
        prior, before = np.asarray(self.class_prior_), np.asarray(self.calibration_["prior"])
        estimated = self.class_prior is None and np.array_equal(prior, before)
        task = coverage_task(
            goal, self.coverage, self.confidence, prior, self.classes_, estimated=estimated
        )
        return replace(task, prior=before)

    def adapted(self, class_prior: Any) -> Self:
        """The same model with sets for new class frequencies, from the same calibration rows.

        Goals that no class frequencies enter, such as ``"balanced"`` and ``{class: level}``, keep
        their sets; ``"standard"`` and sets of weightings relative to the class frequencies change.
        What is proven is as before, at new frequencies that do not depend on the calibration rows;
        the sets are the smallest for rows of the old ones.

        Parameters
        ----------
        class_prior : dict by class or array-like of shape (n_classes,)
            The new class frequencies.
        """
        check_is_fitted(self)
        model = copy(self)
        # The rule is for probabilities at the new frequencies.
        model.tuned_ = replace(self.tuned_, prior=check_prior(class_prior, self.classes_))
        task = model._task_of(self.goal)
        lowest = thresholds(self._calibration, task)
        for name, value in named_thresholds(task, lowest, self.classes_).items():
            setattr(model, name, value)
        moved, rule = model._moved, rule_of(task, lowest)
        rule = np.divide(rule, moved, out=np.zeros_like(rule), where=moved > 0)
        model.tuned_ = replace(model.tuned_, rule=rule)
        model.summary_ = None
        return model

    def adapt(
        self,
        X_new: Any,
        *,
        held_out: Any = None,
        calibration: str | CalibratedProbabilities | None = "bcts",
        random_state: Any = None,
    ) -> Self:
        """The same model with sets for the class frequencies of unlabelled rows.

        As :meth:`adapted` with estimated frequencies. ``estimate_`` of the result is the estimate,
        and ``notes_`` say what becomes of the coverage. ``PriorBox`` and ``PriorBall`` are
        intersected with the region of the estimate.

        Parameters
        ----------
        X_new : array-like, Blocks or Dask collection
            Unlabelled rows of the new population, as ``predict`` takes them.
        held_out : tuple (X, y), default=None
            Labelled rows that these sets were not fitted to. Not needed with a
            ``CalibratedProbabilities``.
        calibration : {"bcts", "temperature", None} or CalibratedProbabilities, default="bcts"
            As in :func:`equipoise.shift.estimate_prior`.
        random_state : int, RandomState or None, default=None
            Seed of the draws.
        """
        check_is_fitted(self)
        estimate = estimate_prior(
            self, X_new, held_out=held_out, calibration=calibration, random_state=random_state
        )
        inner, notes = copy(self), tuple[str, ...]()
        if not isinstance(self.goal, Mapping):
            wanted = SetGoal(as_uncertainty("balanced" if self.goal is None else self.goal))
            moved, notes = for_population(wanted, estimate.region())
            inner.goal = moved.uncertainty
        model = inner.adapted(estimate.draws.mean)
        error = estimate.overall_error(
            self._calibration.shares_missed(np.asarray(model.thresholds_))
        )
        same = same_task(self._task_of(self.goal), model._task_of(inner.goal))
        note = note_of_sets(None if same else error)
        model.estimate_, model.notes_ = estimate, (*notes, note)
        return model
