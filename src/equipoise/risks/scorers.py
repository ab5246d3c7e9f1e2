"""Scores for model selection: minus a risk, so that greater is better."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from equipoise.losses import Loss, as_loss
from equipoise.risks.class_risks import ClassRisks, class_risks
from equipoise.validation.numbers import check_numbers
from equipoise.weights.by_class import ByClass


class RiskScorer(BaseEstimator):  # type: ignore[misc]
    r"""Minus the robust risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i` of a fitted classifier.

    Every risk of this package is a robust risk over some set of weights, so one scorer does for
    all: the worst class is the whole simplex (``"worst-class"``), fixed weights are a single point
    (``"balanced"``, ``FixedWeights(...)``).

    Called as ``scorer(estimator, X, y, sample_weight=None)``, it can be given as ``scoring`` to
    cross-validation and grid search. It holds hyper-parameters only: it can be cloned and
    pickled, and it takes part in scikit-learn's metadata routing (``set_score_request``).

    A class that the estimator knows and that ``y`` lacks, as happens in small folds, has no risk
    to estimate. It is left out, and the maximum runs over the weights of the classes present. An
    ``uncertainty`` that names such a class is an error: stratify the folds.

    Parameters
    ----------
    uncertainty : recipe of :mod:`equipoise.sets`, or its name, optional
        The set of weights.
    loss : str or Loss, default="zero_one"
        It decides what is asked of the estimator: ``predict`` for labels, ``predict_proba`` for
        probabilities, ``decision_function`` for scores.
    class_prior : mapping by class name, or array-like in the order of ``estimator.classes_``
        Class frequencies of the population, restricted to the classes present. Their share of the
        rows scored if not given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.sets import LabelCVaR
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RiskScorer(LabelCVaR(alpha=0.5), loss="cross_entropy")
    >>> score = scorer(LogisticRegression(max_iter=500).fit(X, y), X, y)
    >>> f"{score:.2f}"
    '-0.17'
    """

    # What scikit-learn's routing must not offer to route.
    __metadata_request__score: ClassVar = {"estimator": UNUSED}

    def __init__(
        self, uncertainty: Any = None, *, loss: str | Loss = "zero_one", class_prior: Any = None
    ) -> None:
        self.uncertainty = uncertainty
        self.loss = loss
        self.class_prior = class_prior

    def score(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the risk of the estimator on these rows."""
        risks = classifier_risks(estimator, X, y, loss=self.loss, sample_weight=sample_weight)
        if self.class_prior is not None:
            risks = risks.with_prior(self._present_prior(estimator, risks))
        return -risks.robust(self.uncertainty)

    # Routing goes by the method's name, cross-validation calls the scorer.
    __call__ = score

    def _present_prior(self, estimator: Any, risks: ClassRisks) -> ByClass:
        """The given prior, conditional on the classes present."""
        given = check_numbers(self.class_prior, estimator.classes_, name="class_prior")
        known = ByClass(given, estimator.classes_)
        here = {name: known[name] for name in risks if name in known}
        present = check_numbers(here, risks.classes, name="class_prior")
        return ByClass(present / present.sum(), risks.classes)

    def _accept_sample_weight(self) -> bool:
        # Without metadata routing, scikit-learn's multimetric scorer asks this of its scorers.
        return True


def classifier_risks(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    loss: str | Loss = "zero_one",
    sample_weight: ArrayLike | None = None,
) -> ClassRisks:
    """Class risks of a fitted classifier on these rows; classes without a row are left out.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = [[0], [0], [0]], ["a", "a", "b"]
    >>> dict(classifier_risks(DummyClassifier().fit(X, y), X, y))
    {'a': 0.0, 'b': 1.0}
    """
    predicted, classes = as_loss(loss).response(estimator, X)
    return class_risks(
        y, predicted, loss=loss, classes=classes, sample_weight=sample_weight, absent="drop"
    )
