"""Linear classifiers of other losses than the cross-entropy, over a set of class weightings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from equipoise.estimators.parameters import documented
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.losses import Loss, TrainedLoss, as_trained


@documented
@dataclass(eq=False, repr=False)
class RobustLinearClassifier(RobustLinearModel):
    r"""Linear classifier that minimises the worst weighted risk over an uncertainty set.

    Has no ``predict_proba``: it minimises a margin loss in place of the cross-entropy of
    :class:`RobustLogisticRegression`. Use it where a linear model is to be fitted to errors or
    margins and no probabilities are needed. The problem is

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean loss over the rows of class ``i``, :math:`p_i` the class prior,
    :math:`Q` the set of class weights :math:`q`, and ``n`` the sum of the sample weights.

    Parameters
    ----------
    $goal_set
    loss : str or Loss, default="squared_hinge"
        ``"squared_hinge"``, ``"smoothed_hinge"``, ``"cross_entropy"``, ``"margin"``, or another
        registered loss that can be trained (see :mod:`equipoise.losses`).
    $C
    $fit
    $warm_start
    $verbose

    Attributes
    ----------
    $linear_attributes

    Notes
    -----
    ``"margin"`` is the bounded margin loss of the paper with its corners rounded and with wider
    margins for classes of fewer rows; ``equipoise.losses.smooth_margin.SmoothMargin`` has the
    formula. A misclassified row counts as at most one error, however far it is on the wrong side.
    Use this loss where a robust fit of another loss has equal class risks but unequal class errors.
    A class of fewer than twenty rows is easily memorised: tune the decisions then. They are tuned
    on five folds for this loss.

    The loss is not convex. The fit minimises the cross-entropy over the same set first, then a
    smoother loss, and descends from the better of the two optima. It ends at a stationary point
    (``status_`` is ``"stationary"``) without a certificate: ``lower_bound_`` is minus infinity and
    ``duality_gap_`` infinite. ``n_iter_`` and ``history_`` describe the descent alone;
    ``n_evaluations_`` counts all evaluations. ``C`` must be finite.

    Examples
    --------
    >>> from equipoise import RobustLinearClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> for goal in ("balanced", "worst_class"):
    ...     clf = RobustLinearClassifier(goal, loss="smoothed_hinge").fit(X, y)
    ...     print(f"{goal:11} largest class risk {clf.class_risks_.max():.3f}")
    balanced    largest class risk 0.359
    worst_class largest class risk 0.310
    >>> bool(clf.duality_gap_ <= 1e-6 * clf.objective_)
    True
    >>> clf = RobustLinearClassifier("worst_class", loss="margin").fit(X, y)
    >>> clf.status_, clf.duality_gap_
    ('stationary', inf)
    """

    loss: str | Loss = "squared_hinge"
    adjustment: ClassVar[None] = None  # type: ignore[misc]

    def _trained_loss(self) -> TrainedLoss:
        return as_trained(self.loss)
