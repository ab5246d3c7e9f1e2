"""``adapt``: a classifier of ours for the class frequencies of unlabelled rows."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import train_test_split

from equipoise.goals import Goal, as_goal
from equipoise.sets import LabelCVaR
from equipoise.shift import AdaptedClassifier, CalibratedProbabilities, estimate_prior
from equipoise.validation.numbers import check_seed


class Adaptable:
    """A fitted classifier that can be adapted to other class frequencies."""

    def adapt(
        self,
        X_new: Any,
        *,
        held_out: Any = None,
        goal: Any = None,
        calibration: str | CalibratedProbabilities | None = "bcts",
        random_state: Any = None,
    ) -> AdaptedClassifier:
        """A classifier for the class frequencies of unlabelled rows; this one is unchanged.

        ``predict`` is for the estimated frequencies, and ``predict_proba`` on their scale: see
        :func:`equipoise.shift.estimate_prior`, which takes other models and pipelines too.

        Parameters
        ----------
        X_new : array-like, Blocks or Dask collection
            Unlabelled rows of the new population, as ``predict`` takes them.
        held_out : tuple (X, y), default=None
            Labelled rows that this classifier was not fitted to. Not needed with a
            ``CalibratedProbabilities``. Where floors have a confidence, half of them calibrate
            the probabilities and half show the floors.
        goal : goal, set, metric or None, default=None
            What decisions are for; by default the goal of this classifier. ``PriorBox`` and
            ``PriorBall`` are intersected with the region of the estimate, floors of recalls hold
            under any frequencies, and all else is for the estimated frequencies.
        calibration : {"bcts", "temperature", None} or CalibratedProbabilities, default="bcts"
            A temperature and class biases; a temperature; none; or a result of
            :func:`equipoise.shift.calibrate`.
        random_state : int, RandomState or None, default=None
            Seed of the draws and folds.

        Returns
        -------
        equipoise.shift.AdaptedClassifier
        """
        aim, shown = as_goal(fitted_goal(self) if goal is None else goal), held_out
        known = isinstance(calibration, CalibratedProbabilities)
        if aim.confidence is not None and held_out is not None and not known:
            held_out, shown = halves(held_out, check_seed(random_state))
        estimate = estimate_prior(
            self, X_new, held_out=held_out, calibration=calibration, random_state=random_state
        )
        return estimate.adapt(aim, held_out=shown, random_state=random_state)


def fitted_goal(model: Any) -> Goal | Any:
    """The goal of a fitted classifier; the overall error where it is not one of ours."""
    if not isinstance(model, Adaptable):
        return "accuracy"
    level = getattr(model, "alpha_", None)
    return model.goal if level is None else LabelCVaR(level)  # type: ignore[attr-defined]


def halves(held_out: Any, seed: int) -> tuple[Any, Any]:
    """Held-out rows for the calibration, and as many that show a goal with its confidence."""
    X, y = held_out
    first, second, y_first, y_second = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    return (first, y_first), (second, y_second)
