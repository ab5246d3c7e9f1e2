"""Decision weights for given probabilities, without any estimator."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Mask
from equipoise.decisions.left_out import FOLDS_OF_A_CLASS, Predictions, deal, row_weights
from equipoise.decisions.tuning import RARE, TunedWeights, check_shrinkage, tune_predicted
from equipoise.exceptions import InvalidInputError
from equipoise.goals import as_goal
from equipoise.validation.labels import as_labels, check_classes, encode_labels, known_labels
from equipoise.validation.numbers import check_seed, check_word
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior


def tune_weights(  # noqa: PLR0913  rows, what for, and how
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
        As in ``PlugInClassifier``; with ``rare="drop"`` a class of too few rows has weight 0.

    Returns
    -------
    TunedWeights

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import tune_weights
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tuned = tune_weights(y, eta, "worst-class")
    >>> bool(tuned.threshold < 0.3)
    True
    >>> tuned.decide([0.1, 0.6]).tolist()
    ['common', 'rare']
    """
    aim = as_goal(goal)
    amount = check_shrinkage(shrinkage, aim)
    if classes is None:
        names, labels = encode_labels(y)
    else:
        names = check_classes(classes)
        labels = known_labels(as_labels(y, name="y"), names, owner="classes")
    table = as_probabilities(probabilities, len(names))
    if len(table) != len(labels):
        raise InvalidInputError(
            f"probabilities must have one row for each of the {len(labels)} labels, got "
            f"{len(table)}."
        )
    weights = row_weights(sample_weight, labels, names)
    used = weights > 0
    predictions = Predictions(table[used], labels[used], weights[used])
    prior = predictions.prior
    if class_prior is not None:
        prior = check_prior(class_prior, names, name="class_prior")
    seed = check_seed(random_state)
    dealt = deal(predictions.labels, seed) if folds is None else _check_folds(folds, used)
    tuned = tune_predicted(
        predictions, dealt, aim, ByClass(prior, names),
        shrinkage=amount, rare=check_word(rare, "rare", RARE),
    )  # fmt: skip
    every = np.zeros(len(labels), dtype=np.intp)
    every[used] = dealt
    return replace(tuned, folds=None if aim.is_known else every)


def _check_folds(folds: Any, used: Mask) -> Indices:
    """The folds of the rows that have weight, as the user numbered them."""
    given = np.asarray(folds)
    if given.shape != used.shape or given.dtype.kind not in "iu":
        raise InvalidInputError(
            f"folds must hold a whole number for each of the {len(used)} rows, got an array of "
            f"shape {given.shape} and type {given.dtype}."
        )
    found = np.unique(given[used])
    if len(found) < FOLDS_OF_A_CLASS or not np.array_equal(found, np.arange(len(found))):
        raise InvalidInputError(
            f"folds must number at least {FOLDS_OF_A_CLASS} folds from 0 on, each with rows that "
            f"have weight, got {found[:10].tolist()}."
        )
    return np.asarray(given[used], dtype=np.intp)
