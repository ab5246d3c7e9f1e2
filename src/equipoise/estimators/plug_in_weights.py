"""Decision weights for given probabilities, without any estimator."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices
from equipoise.decisions import Evidence
from equipoise.estimators.plug_in_folds import check_folds, deal
from equipoise.estimators.plug_in_purpose import Purpose, check_shrinkage
from equipoise.estimators.plug_in_rows import row_weights
from equipoise.estimators.plug_in_trial import (
    TunedWeights,
    judge_known,
    trial_of_one_model,
    tune_trial,
)
from equipoise.exceptions import InvalidInputError
from equipoise.goals import as_goal
from equipoise.validation.labels import as_labels, check_classes, encode_labels, known_labels
from equipoise.validation.numbers import check_seed
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.priors import check_prior


def tune_weights(
    y: ArrayLike,
    probabilities: ArrayLike,
    goal: Any = None,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    class_prior: Any = None,
    shrinkage: float | str = "auto",
    rare: str = "error",
    random_state: int | np.random.RandomState | None = None,
) -> TunedWeights:
    r"""Decision weights for probabilities of a model that has not seen the rows.

    .. math:: \arg\max_i \; w_i \eta_i(x)

    decides, with the ``w`` that are best for the goal, as in
    :class:`~equipoise.estimators.PlugInClassifier`, which also trains the model. The rows are
    dealt out to five folds; what is reported of a fold comes from weights tuned without it.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels that came true.
    probabilities : array-like of shape (n_rows, n_classes)
        Columns in the order of the sorted labels, or of ``classes``. For two classes also of shape
        (n_rows,), about the second.
    goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
        What the weights are for; None is ``LabelCVaR(0.1)``.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns, where they are not the sorted labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    folds : array-like of int of shape (n_rows,), default=None
        Fold of every row, ``0..n_folds-1``, at least three. Without it the rows are dealt out to
        five folds at random. Give it where rows belong together.
    class_prior, shrinkage, rare, random_state
        As in ``PlugInClassifier``.

    Returns
    -------
    TunedWeights

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tuned = tune_weights(y, eta, "worst-class")
    >>> bool(tuned.threshold < 0.3)
    True
    >>> tuned.decide([0.1, 0.6]).tolist()
    ['common', 'rare']
    """
    purpose = Purpose(as_goal(goal))
    amount = check_shrinkage(shrinkage, purpose)
    names, labels = _labels(y, classes)
    table = as_probabilities(probabilities, len(names))
    if len(table) != len(labels):
        raise InvalidInputError(
            f"probabilities must have one row for each of the {len(labels)} labels, got "
            f"{len(table)}."
        )
    weights = row_weights(sample_weight, labels, names)
    used = weights > 0
    evidence = Evidence(table[used], labels[used], weights[used])
    prior = evidence.prior
    if class_prior is not None:
        prior = check_prior(class_prior, names, name="class_prior")
    seed = check_seed(random_state)
    dealt = deal(evidence.labels, seed) if folds is None else check_folds(folds, used)
    trial = trial_of_one_model(evidence, names, prior, dealt, known=purpose.is_known, rare=rare)
    if purpose.is_known:
        return judge_known(trial, purpose.rule(trial.prior, trial.shares, trial.classes))
    every = np.zeros(len(labels), dtype=np.intp)
    every[used] = dealt
    return replace(tune_trial(trial, purpose, amount), folds=every)


def _labels(y: Any, classes: Any) -> tuple[NDArray[Any], Indices]:
    if classes is None:
        return encode_labels(y)
    names = check_classes(classes)
    return names, known_labels(as_labels(y, name="y"), names, owner="classes")
