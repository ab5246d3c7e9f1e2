"""Linear classifiers of any convex loss, optimal over a whole set of class weightings."""

from typing import Any

from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.losses import Loss, TrainedLoss, as_trained
from equipoise.sets import Uncertainty


class RobustLinearClassifier(RobustLinearModel):
    r"""Linear classifier that minimises the worst weighted risk over an uncertainty set.

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean loss over the rows of class ``i``, :math:`p_i` the class prior and
    ``n`` the sum of the sample weights. Two classes have one coefficient vector, more have one
    each; intercepts are not penalised. There are no probabilities: for those take
    :class:`RobustLogisticRegression`, this model with the cross-entropy.

    Parameters
    ----------
    uncertainty : Uncertainty, "standard", "balanced" or "worst-class", default=None
        The set of weightings. None means ``LabelCVaR(alpha=0.1)``: no class counts more than ten
        times its share.
    loss : str or Loss, default="squared_hinge"
        ``"squared_hinge"``, ``"smoothed_hinge"``, ``"cross_entropy"``, or another registered loss
        that can be trained (see :mod:`equipoise.losses`).
    C, fit_intercept, tol, max_iter, solver, class_prior, warm_start, verbose
        As in :class:`RobustLogisticRegression`.

    Attributes
    ----------
    classes_, coef_, intercept_
        Class names, coefficients and intercepts.
    class_risks_ : ByClass
        Mean loss of each class on the training rows.
    robust_risk_, objective_, lower_bound_, duality_gap_ : float
        The largest weighted risk over the set, the same plus the penalty, a proven lower bound of
        the optimum, and the difference of the last two.
    worst_case_weights_, worst_case_masses_, class_prior_ : ByClass
        The weights that attain the robust risk at the optimum, the same times the priors, and
        the class priors that were used.
    caps_bind_, n_iter_, n_evaluations_, status_, message_, history_
        As in :class:`RobustLogisticRegression`.

    Examples
    --------
    >>> from equipoise import LabelCVaR, RobustLinearClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLinearClassifier(LabelCVaR(alpha=0.05), loss="smoothed_hinge").fit(X, y)
    >>> bool(clf.duality_gap_ <= 1e-6 * clf.objective_)
    True
    """

    def __init__(
        self,
        uncertainty: Uncertainty | str | None = None,
        loss: str | Loss = "squared_hinge",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str = "auto",
        class_prior: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.uncertainty = uncertainty
        self.loss = loss
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.class_prior = class_prior
        self.warm_start = warm_start
        self.verbose = verbose

    def _trained_loss(self) -> TrainedLoss:
        return as_trained(self.loss)
