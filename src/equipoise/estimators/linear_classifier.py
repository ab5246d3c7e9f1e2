"""Linear classifiers of other losses than the cross-entropy, over a set of class weightings."""

from __future__ import annotations

from typing import Any

from equipoise.decisions.tune import POOLING
from equipoise.estimators.parameters import documented
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.losses import Loss, TrainedLoss, as_trained
from equipoise.sets import Uncertainty


@documented
class RobustLinearClassifier(RobustLinearModel):
    r"""Linear classifier that minimises the worst weighted risk over an uncertainty set.

    The model of :class:`RobustLogisticRegression` with another loss than the cross-entropy:
    :math:`R_i` is its mean over the rows of class ``i``. There are no probabilities.

    Use it for scores that are fitted to errors or margins rather than to probabilities.

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
    formula. Rows far on the wrong side count as one error each, where they would otherwise decide
    for their class: it is for data on which a robust fit of another loss has equal risks but
    unequal errors. A class of fewer than twenty rows is soon memorised; tune its decisions on
    held-out rows then. Decisions of this loss are tuned on five folds.

    That loss is not convex. The fit starts at the optimum of the cross-entropy over the same set,
    passes a smoother loss on its way, and descends from the better of the two: ``objective_`` is
    never above that at either. It ends at a stationary point (``status_`` is ``"stationary"``), of
    which nothing is proven: ``lower_bound_`` is minus infinity and ``duality_gap_`` infinite.
    ``n_iter_`` and ``history_`` are of the descent, ``n_evaluations_`` counts the way there too. It
    needs a finite ``C``.

    Examples
    --------
    >>> from equipoise import LabelCVaR, RobustLinearClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLinearClassifier(LabelCVaR(alpha=0.05), loss="smoothed_hinge").fit(X, y)
    >>> bool(clf.duality_gap_ <= 1e-6 * clf.objective_)
    True
    >>> clf = RobustLinearClassifier("worst_class", loss="margin").fit(X, y)
    >>> clf.status_, clf.duality_gap_
    ('stationary', inf)
    """

    def __init__(
        self,
        goal: Uncertainty | str | None = None,
        loss: str | Loss = "squared_hinge",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str = "auto",
        decisions: str = "argmax",
        pooling: float = POOLING,
        class_prior: Any = None,
        warm_start: bool = False,
        memory: int | str = "1 GiB",
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        super().__init__(
            goal,
            C=C,
            fit_intercept=fit_intercept,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            decisions=decisions,
            pooling=pooling,
            class_prior=class_prior,
            warm_start=warm_start,
            memory=memory,
            verbose=verbose,
        )

    def _trained_loss(self) -> TrainedLoss:
        return as_trained(self.loss)
