r"""Probabilities of a fitted classifier on the scale of the population, for any training weights.

A classifier of this package says two things of its training, both by class:

``class_prior_``
    Class frequencies :math:`p` of the population.
``training_masses_``
    The shares :math:`m` that the classes had in the training, weights included: those on whose
    scale its ``predict_proba`` is. A classifier around another may leave it to that one.

By Bayes' rule the odds of class ``i`` at frequencies :math:`\pi` are those of ``predict_proba``
times :math:`\pi_i / m_i`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import ROUNDING, NDArray, Vector, is_tensor
from equipoise.blocks.partitions import is_dask
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.robustness_cv import RobustnessCV
from equipoise.estimators.tensor_rows import probabilities_of
from equipoise.exceptions import InvalidParameterError
from equipoise.risks.population import odds_factors, reweighted
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior

_NO_MASS_REMEDY = (
    "Use a set whose weights stay positive (WeightBox with a lower bound), or a prior of 0 for it."
)


def population_proba(model: Any, X: Any, class_prior: Any = None) -> Any:
    r"""Class probabilities on the scale of the population, or at any class frequencies.

    ``predict_proba`` of a model that was trained with class weights is on the scale of these
    weights: those of a population in which class ``i`` has the share :math:`m_i = p_i q_i`. By
    Bayes' rule, multiplying the odds by :math:`\pi_i / m_i` gives the probabilities at the class
    frequencies :math:`\pi`. Use it where the probabilities of a linear model are read or averaged.
    For other classifiers with known class weights use :func:`rescale_proba`.

    Parameters
    ----------
    model : classifier
        A fitted classifier of this package with ``predict_proba``, alone, as the last step of a
        fitted ``Pipeline`` (whose other steps transform ``X``), or inside a fitted search.
    X : array-like
        Rows, as ``model.predict_proba`` takes them.
    class_prior : dict by class or array-like of shape (n_classes,), optional
        The class frequencies :math:`\pi`. By default ``class_prior_`` of the model: its
        ``class_prior``, or the frequencies of the training rows.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Columns in the order of ``model.classes_``; of tensors a tensor, of Dask collections a Dask
        array. A class that was dropped from the training has probability 0.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from equipoise import RobustLogisticRegression, population_proba
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), RobustLogisticRegression("balanced")).fit(X, y)
    >>> [f"{share:.0%}" for share in model.predict_proba(X).mean(axis=0)]
    ['12%', '4%', '84%']
    >>> [f"{share:.0%}" for share in population_proba(model, X).mean(axis=0)]
    ['4%', '3%', '93%']
    """
    last, rows = _behind_steps(model, X)
    check_is_fitted(last)
    population, masses = prior_of(last), masses_of(last)
    if population is None or not hasattr(last, "predict_proba"):
        raise InvalidParameterError(
            f"model must be a classifier of equipoise with predict_proba, got {type(last).__name__}"
            ": for other probabilities, whose weights you know, use rescale_proba."
        )
    classes = np.asarray(last.classes_)
    if masses is None:
        masses = population
    mass = np.array([masses.get(name, 0.0) for name in classes.tolist()])
    if class_prior is None:
        # One that was dropped has a share of the population, and no probability.
        known = np.array([name in masses for name in classes.tolist()])
        target = np.where(known, np.asarray(population), 0.0)
    else:
        target = check_prior(class_prior, classes)
    factors = odds_factors(mass, target, classes, negligible=ROUNDING, remedy=_NO_MASS_REMEDY)
    return _moved(last, rows, factors)


def inside(model: Any) -> Any:
    """The fitted classifier that answers for one around it; None for one that is not around any."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, RobustnessCV | DecidingClassifier):
        check_is_fitted(model)
        return model.estimator_
    return getattr(model, "best_estimator_", None)


def prior_of(model: Any) -> ByClass | None:
    """Class frequencies of the population that a classifier was fitted for; None if unknown."""
    return _stated(model, "class_prior_")


def masses_of(model: Any) -> ByClass | None:
    """Shares of the classes on whose scale probabilities are; None for those of the rows."""
    return _stated(model, "training_masses_")


def _stated(model: Any, name: str) -> ByClass | None:
    """Values by class that a classifier has, or the first of those inside it that has them."""
    while model is not None and not isinstance(getattr(model, name, None), ByClass):
        model = inside(model)
    return None if model is None else getattr(model, name)


def _behind_steps(model: Any, X: Any) -> tuple[Any, Any]:
    """The classifier behind the steps of pipelines and searches, and the rows as it gets them."""
    while True:
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model.steps) > 1 else X
        elif isinstance(model, RobustnessCV | DecidingClassifier) or inside(model) is None:
            return model, X
        model = inside(model)


def _moved(model: Any, X: Any, factors: Vector) -> Any:
    """Probabilities of rows, with their odds times factors."""
    if hasattr(model, "predict_log_proba"):
        with np.errstate(divide="ignore"):
            move, table = partial(_shifted, shift=np.log(factors)), model.predict_log_proba(X)
    else:
        move, table = partial(reweighted, factors=factors), model.predict_proba(X)
    return table.map_blocks(move, dtype=np.float64) if is_dask(table) else move(table)


def _shifted(logarithms: Any, shift: Vector) -> Any:
    """Probabilities from logarithms of them, moved by those of factors."""
    if is_tensor(logarithms):
        return probabilities_of(logarithms, shift)
    shifted: NDArray[np.float64] = softmax(logarithms + shift, axis=1)
    return shifted
