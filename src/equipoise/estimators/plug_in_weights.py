"""Decision weights for given probabilities, without any estimator."""

from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices
from equipoise.decisions import Evidence
from equipoise.estimators.plug_in_folds import Rare, as_seed
from equipoise.estimators.plug_in_purpose import Purpose, check_shrinkage, choose_purpose
from equipoise.estimators.plug_in_rows import row_weights
from equipoise.estimators.plug_in_trial import (
    Trial,
    TunedWeights,
    judge_known,
    trial_of_one_model,
    tune_trial,
)
from equipoise.estimators.plug_in_tuning import Shrinkage
from equipoise.exceptions import InvalidInputError
from equipoise.validation.labels import as_labels, check_classes, encode_labels, known_labels
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.priors import check_prior


class TuningOptions(TypedDict, total=False):
    """Everything that :func:`tune_weights` takes beside its purpose."""

    sample_weight: ArrayLike | None
    classes: ArrayLike | None
    class_prior: Any
    shrinkage: Shrinkage
    floor_confidence: float | None
    rare: Rare
    random_state: int | np.random.RandomState | None


def tune_weights(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    weights: Any = None,
    metric: Any = None,
    uncertainty: Any = None,
    min_recall: Any = None,
    **options: Unpack[TuningOptions],
) -> TunedWeights:
    r"""Decision weights for probabilities of a model that has not seen the rows.

    .. math:: \arg\max_i \; w_i \eta_i(x)

    decides, with the ``w`` that are best for the purpose: one of ``weights``, ``metric``,
    ``uncertainty`` and ``min_recall``, as in
    :class:`~equipoise.estimators.PlugInClassifier`, which also trains the model. The rows are
    dealt out to five folds; what is reported of a fold comes from weights tuned without it.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels that came true.
    probabilities : array-like of shape (n_rows, n_classes)
        Columns in the order of the sorted labels, or of ``classes``. For two classes also of shape
        (n_rows,), about the second.
    weights, metric, uncertainty, min_recall
        The purpose; none means ``uncertainty=LabelCVaR(0.1)``.
    **options
        ``sample_weight``; ``classes``, the names of the columns; ``class_prior``, ``shrinkage``,
        ``floor_confidence``, ``rare`` and ``random_state`` as in ``PlugInClassifier``.

    Returns
    -------
    TunedWeights

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tuned = tune_weights(y, eta, uncertainty="worst-class")
    >>> bool(tuned.threshold < 0.3)
    True
    >>> tuned.decide([0.1, 0.6]).tolist()
    ['common', 'rare']
    """
    given = _known_options(options)
    purpose = choose_purpose(
        weights=weights, metric=metric, uncertainty=uncertainty, min_recall=min_recall,
        floor_confidence=given.get("floor_confidence"),
    )  # fmt: skip
    shrinkage = check_shrinkage(given.get("shrinkage", "auto"), purpose)
    trial = _trial(y, probabilities, purpose, given)
    if purpose.is_known:
        return judge_known(trial, purpose.rule(trial.prior, trial.shares, trial.classes))
    return tune_trial(trial, purpose, shrinkage)


def _known_options(options: TuningOptions) -> TuningOptions:
    """Type checkers see a misspelt option, and so shall everybody else."""
    unknown = [name for name in options if name not in TuningOptions.__annotations__]
    if unknown:
        known = ", ".join(TuningOptions.__annotations__)
        raise TypeError(
            f"tune_weights() takes no argument {unknown[0]!r}; its options are {known}."
        )
    return options


def _trial(y: Any, probabilities: Any, purpose: Purpose, options: TuningOptions) -> Trial:
    classes, labels = _labels(y, options.get("classes"))
    table = as_probabilities(probabilities, len(classes))
    if len(table) != len(labels):
        raise InvalidInputError(
            f"probabilities must have one row for each of the {len(labels)} labels, got "
            f"{len(table)}."
        )
    weights = row_weights(options.get("sample_weight"), labels, classes)
    used = weights > 0
    evidence = Evidence(table[used], labels[used], weights[used])
    given, prior = options.get("class_prior"), evidence.prior
    if given is not None:
        prior = check_prior(given, classes, name="class_prior")
    return trial_of_one_model(
        evidence, classes, prior,
        known=purpose.is_known, rare=options.get("rare", "error"),
        seed=as_seed(options.get("random_state")),
    )  # fmt: skip


def _labels(y: Any, classes: Any) -> tuple[NDArray[Any], Indices]:
    if classes is None:
        return encode_labels(y)
    names = check_classes(classes)
    return names, known_labels(as_labels(y, name="y"), names, owner="classes")
