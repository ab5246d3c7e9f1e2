r"""Class risks, every risk that is a function of them, and a scorer.

.. math::

    R_q = \sum_i q_i p_i R_i \quad\text{with}\quad \sum_i q_i p_i = 1,
    \qquad R_Q = \max_{q \in Q} R_q

References
----------
Xu, Dan, Khim and Ravikumar (2020), Definition 1 (weighted risk) and Definition 2 (robust risk).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from equipoise.arrays import ArrayLike, Mask, NDArray, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.extras import require
from equipoise.losses import Loss, as_loss
from equipoise.risks.row_losses import row_losses
from equipoise.sets import as_uncertainty
from equipoise.text import listing
from equipoise.validation.numbers import check_numbers, check_word
from equipoise.weights.by_class import ByClass, class_html, class_lines
from equipoise.weights.priors import check_prior, masses_of, normalize_weights, weights_of

Absent = Literal["raise", "drop"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ClassRisks(Mapping[Any, float]):
    r"""The risk :math:`R_i` and the prior :math:`p_i` of every class; it does not change.

    Reads like a dictionary of risks by class name. From predictions, see :func:`class_risks`.

    Parameters
    ----------
    risks : mapping by class name, or array-like of shape (n_classes,)
        Class risks; those of an array belong to the classes ``0..k-1``, unless it is a `ByClass`.
    class_prior : mapping by class name, or array-like of shape (n_classes,)
        Class frequencies of the population, at least 0 and summing to one.
    loss : str, default="zero_one"
        The name of the loss whose risks they are.

    Attributes
    ----------
    risks, prior : ByClass

    Examples
    --------
    >>> from equipoise.sets import LabelCVaR
    >>> risks = ClassRisks({"common": 0.2, "rare": 0.6}, {"common": 0.9, "rare": 0.1})
    >>> round(risks.standard(), 6), round(risks.balanced(), 6), risks.worst()
    (0.24, 0.4, 0.6)
    >>> risks.recall()
    common: 0.8
    rare:   0.4
    >>> round(risks.robust(LabelCVaR(alpha=0.5)), 6)
    0.28
    >>> risks.worst_case_weights(LabelCVaR(alpha=0.5)).to_dict()["rare"]
    2.0
    """

    risks: ByClass
    prior: ByClass
    loss: str

    def __init__(self, risks: Any, class_prior: Any, *, loss: str = "zero_one") -> None:
        named = risks if isinstance(risks, ByClass) else ByClass(risks)
        values = np.asarray(named, dtype=np.float64)
        if not np.isfinite(values).all():
            raise InvalidInputError(f"risks must be finite, got {named.to_dict()}.")
        classes = named.classes
        object.__setattr__(self, "risks", ByClass(values, classes))
        object.__setattr__(self, "prior", ByClass(check_prior(class_prior, classes), classes))
        object.__setattr__(self, "loss", loss)

    def __getitem__(self, name: Any) -> float:
        return float(self.risks[name])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.risks)

    def __len__(self) -> int:
        return len(self.risks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.risks.__array__(dtype, copy)

    def __eq__(self, other: object) -> bool:
        # Equal to a dictionary of the same risks; two objects of this class must agree on both.
        if isinstance(other, ClassRisks):
            return self.risks == other.risks and self.prior == other.prior
        return bool(self.risks == other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(class_lines(shares=self._shares, risk=self.risks, prior=self.prior))

    def _repr_html_(self) -> str:
        return class_html(shares=self._shares, risk=self.risks, prior=self.prior)

    @property
    def _shares(self) -> tuple[str, ...]:
        """Risks of the zero-one loss are shares of rows."""
        return ("risk",) if self.loss == "zero_one" else ()

    @property
    def classes(self) -> NDArray[Any]:
        """Class names, in order."""
        return self.risks.classes

    def with_prior(self, class_prior: Any, classes: ArrayLike | None = None) -> ClassRisks:
        """The same class risks in a population with another class prior, if one is given.

        Where the population has more ``classes``, its prior is that given these.
        """
        if class_prior is None:
            return self
        names = self.classes if classes is None else classes
        prior = ByClass(check_prior(class_prior, names), names)
        here = {name: prior[name] for name in self if name in prior}
        present = check_numbers(here, self.classes, name="class_prior")
        return ClassRisks(self.risks, present / present.sum(), loss=self.loss)

    def recall(self) -> ByClass:
        """The share of each class that is correctly classified, one minus its zero-one risk."""
        if self.loss != "zero_one":
            raise InvalidInputError(
                "recalls are one minus risks of the zero-one loss, and these are of "
                f"{self.loss!r}: call class_risks of predicted labels."
            )
        return ByClass(1 - np.asarray(self.risks), self.classes)

    def to_frame(self) -> Any:
        """Prior and risk, one line a class, as a pandas DataFrame; recalls of the zero-one loss."""
        return class_frame(self.loss, prior=self.prior, risk=self.risks)

    def standard(self) -> float:
        r"""The usual risk :math:`\sum_i p_i R_i`."""
        return float(np.asarray(self.prior) @ np.asarray(self.risks))

    def balanced(self) -> float:
        r"""The mean :math:`\frac{1}{k} \sum_i R_i` of the class risks."""
        return float(np.asarray(self.risks).mean())

    def weighted(self, weights: Any) -> float:
        r"""The weighted risk :math:`\sum_i q_i p_i R_i`, with ``weights`` scaled to mean one."""
        q = check_numbers(weights, self.classes, name="weights")
        masses = masses_of(normalize_weights(q, self.prior), self.prior)
        return float(masses @ np.asarray(self.risks))

    def worst(self) -> float:
        r"""The largest class risk :math:`\max_i R_i`."""
        return float(self.risks.max())

    def worst_class(self) -> Any:
        """The name of the class with the largest risk, the first of them if they tie."""
        return self.risks.idxmax()

    def robust(self, goal: Any = None) -> float:
        r"""The robust risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i`."""
        return float(self.worst_case_masses(goal).to_numpy() @ np.asarray(self.risks))

    def worst_case_weights(self, goal: Any = None) -> ByClass:
        r"""Weights :math:`q \in Q` that attain the robust risk.

        A class of prior 0 that carries mass, as a set of priors may have it, has weight infinity.
        """
        return ByClass(weights_of(self.worst_case_masses(goal), self.prior), self.classes)

    def worst_case_masses(self, goal: Any = None) -> ByClass:
        r"""Masses :math:`m_i = q_i p_i`, each class's share of the robust risk's weight."""
        masses = as_uncertainty(goal).resolve(np.asarray(self.prior), self.classes)
        return ByClass(masses.maximize(np.asarray(self.risks)), self.classes)


def class_risks(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
    absent: Absent = "raise",
) -> ClassRisks:
    r"""The risk of every class, and the share of the rows that belong to it.

    .. math:: R_i = \frac{\sum_{y_j = i} w_j \ell_j}{\sum_{y_j = i} w_j}, \qquad
              p_i = \frac{\sum_{y_j = i} w_j}{\sum_j w_j}

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True class labels.
    y_pred : array-like of shape (n,) or (n, n_classes)
        Predicted labels, or probabilities or scores for losses of these. For two classes,
        probabilities and scores of the second class may have the shape ``(n,)`` or ``(n, 1)``.
    loss : str or Loss, default="zero_one"
        See :mod:`equipoise.losses`.
    classes : array-like of shape (n_classes,), optional
        The classes, in the order of the columns of scores. Those in ``y_true``, sorted, if not
        given. A predicted label that is not among them counts as misclassified.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    class_prior : mapping by class name, or array-like in class order, optional
        Class frequencies of the population; the share :math:`p_i` of the rows if not given.
    absent : {"raise", "drop"}, default="raise"
        Whether to refuse a class in ``classes`` without a row of positive weight, which has no
        risk, or to leave it out of the result.

    Examples
    --------
    >>> risks = class_risks(["cat", "cat", "dog", "dog"], ["cat", "dog", "dog", "dog"])
    >>> risks["cat"], risks["dog"]
    (0.5, 0.0)
    >>> risks
    class risk prior
    cat:   50%   50%
    dog:    0%   50%
    """
    rows = row_losses(y_true, y_pred, as_loss(loss), classes, sample_weight)
    totals = rows.total_weights()
    present = present_classes(rows.classes, totals, absent)
    risks = rows.weighted_sums(rows.losses)[present] / totals[present]
    named, prior = ByClass(risks, rows.classes[present]), totals[present] / totals.sum()
    of_rows = ClassRisks(named, prior, loss=as_loss(loss).name)
    return of_rows.with_prior(class_prior, rows.classes)


def present_classes(
    classes: NDArray[Any], totals: Vector, absent: Absent, *, of: str = "y_true"
) -> Mask:
    """Which classes have any weight; the others are an error unless ``absent`` drops them."""
    check_word(absent, "absent", ("raise", "drop"))
    present = totals > 0
    if absent == "raise" and not present.all():
        raise ClassMismatchError(
            f"every class needs a row of positive weight in {of}, "
            f"[{listing(classes[~present].tolist())}] has none, so its risk is undefined; "
            "absent='drop' leaves it out."
        )
    return present


def class_frame(loss: str, **columns: ByClass) -> Any:
    """A line for each class as a pandas DataFrame; of zero-one risks also the recalls."""
    values: dict[str, Any] = {name: each.to_numpy() for name, each in columns.items()}
    if loss == "zero_one":
        values["recall"] = 1 - values["risk"]
    names = columns["risk"].classes
    return require("pandas", extra="report").DataFrame({"class": names, **values})


class RiskScorer(BaseEstimator):  # type: ignore[misc]
    r"""Minus the robust risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i` of a fitted classifier.

    Use it as ``scoring`` in cross-validation and grid search. Every risk of this package is a
    robust risk over some set of weights, so a single scorer is enough: the worst class is the whole
    simplex (``"worst_class"``), fixed weights are a single point (``"balanced"``,
    ``FixedWeights(...)``).

    It holds hyper-parameters only: it can be cloned and pickled, and it takes part in
    scikit-learn's metadata routing (``set_score_request``).

    A class of the estimator without a row in ``y``, as may happen in small folds, has no risk. It
    is left out, and the maximum is over the weights of the other classes. A ``goal`` that names
    such a class is an error: stratify the folds.

    Parameters
    ----------
    goal : recipe of :mod:`equipoise.sets`, or its name, optional
        The set of weights.
    loss : str or Loss, default="zero_one"
        Its predictions come from ``predict`` (labels), ``predict_proba`` (probabilities) or
        ``decision_function`` (scores) of the estimator.
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
        self, goal: Any = None, *, loss: str | Loss = "zero_one", class_prior: Any = None
    ) -> None:
        self.goal = goal
        self.loss = loss
        self.class_prior = class_prior

    def score(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the risk of the estimator on these rows."""
        options: Any = {"sample_weight": sample_weight, "class_prior": self.class_prior}
        risks = classifier_risks(estimator, X, y, loss=self.loss, **options)
        return -risks.robust(self.goal)

    # Routing goes by the method's name, cross-validation calls the scorer.
    __call__ = score

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
    class_prior: Any = None,
) -> ClassRisks:
    """Class risks of a fitted classifier on these rows; classes without a row are left out.

    ``class_prior`` is in the order of ``estimator.classes_``, all else as in :func:`class_risks`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = [[0], [0], [0]], ["a", "a", "b"]
    >>> dict(classifier_risks(DummyClassifier().fit(X, y), X, y))
    {'a': 0.0, 'b': 1.0}
    """
    predicted, classes = as_loss(loss).response(estimator, X)
    options: Any = {"sample_weight": sample_weight, "absent": "drop"}
    of_rows = class_risks(y, predicted, loss=loss, classes=classes, **options)
    return of_rows.with_prior(class_prior, estimator.classes_)
