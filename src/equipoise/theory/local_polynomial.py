"""Class probabilities by local polynomials, the estimator behind the paper's plug-in rates."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError, unchanged_on_failure
from equipoise.theory.local_moments import Smoother, n_monomials
from equipoise.validation.labels import complete_labels, encode_labels, weights_and_totals
from equipoise.validation.numbers import check_number
from equipoise.weights.by_class import ByClass

# _MOST_TERMS: monomials at most; with more, a window needs thousands of rows.
_MOST_TERMS = 512


@dataclass(eq=False, repr=False)
class LocalPolynomialClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Class probabilities by local polynomial regression of the class indicators.

    .. math:: \hat\eta_i(x) = \hat\theta_0, \qquad
              \hat\theta = \arg\min_\theta \sum_j w_j K\Bigl(\frac{x_j - x}{h}\Bigr)
              \Bigl(1\{y_j = i\} - \textstyle\sum_a \theta_a
              \phi_a\bigl(\frac{x_j - x}{h}\bigr)\Bigr)^2 + \lambda \sum_{a > 0} \theta_a^2

    with :math:`\phi` the monomials up to ``degree`` and :math:`K(u) = (1 - |u|^2)_+`. The
    estimates of all classes sum to one; they are clipped to [0, 1] and scaled to do so again.
    Degree 0 is kernel regression (Nadaraya and Watson). Where no row lies within a bandwidth, the
    nearest rows decide.

    Use it when you try the paper's rates, which are those of this estimator, on rows of few
    features: windows that hold enough rows grow with each feature.

    Time and memory: a tree finds the rows in reach and predictions are made block by block, on
    a line by running sums.

    Parameters
    ----------
    degree : {0, 1, 2}, default=1
        Degree of the polynomials.
    bandwidth : "rate", float, or array-like of shape (n_features,), default="rate"
        Radius :math:`h` of the windows, for each feature. ``"rate"`` is

        .. math:: h_j = c \, s_j \, n^{-1/(2 \beta + d)}

        with :math:`s_j` the standard deviation of the feature, :math:`n` the sum of the sample
        weights, :math:`d` the number of features, and :math:`c` such that the kernel has standard
        deviation one along each feature. Numbers are in the unit of the features.
    smoothness : float in (0, degree + 1], default=None
        The smoothness :math:`\beta` of the class probabilities; ``degree + 1`` if not given, the
        most that the degree can make use of.
    ridge : float, default=0.3
        The penalty :math:`\lambda` of all coefficients but the constant, in rows: it keeps
        polynomials bounded where a window holds few rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class names.
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidths, in the unit of the features.
    n_features_in_ : int
        Number of features.
    class_prior_ : ByClass
        Class frequencies of the rows.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), Propositions 1 and 3: the excess risk of the plug-in rule
    decays as :math:`n^{-\beta / (2 \beta + d)}`.

    Examples
    --------
    >>> from equipoise.datasets import make_power_imbalance
    >>> from equipoise.theory import LocalPolynomialClassifier
    >>> X, y, model = make_power_imbalance(20_000, p=0.8, random_state=0, return_model=True)
    >>> clf = LocalPolynomialClassifier(degree=1).fit(X, y)
    >>> x = [[0.5], [0.8]]
    >>> bool(abs(clf.predict_proba(x) - model.predict_proba(x)).max() < 0.05)
    True
    """

    degree: int = 1
    _: KW_ONLY
    bandwidth: Any = "rate"
    smoothness: float | None = None
    ridge: float = 0.3

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows ``X`` with labels ``y``.

        A sample weight of two is a row that occurs twice, so the sum of the weights is the number
        of rows that the bandwidth goes by.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        X, y = validate_data(self, X, complete_labels(y), dtype=np.float64)
        self._check_parameters(X.shape[1])
        self.classes_, labels = encode_labels(y)
        weights, _ = weights_and_totals(sample_weight, labels, self.classes_)
        # The estimates of all classes sum to one, so the first class needs no regression.
        targets = (labels[:, None] == np.arange(1, len(self.classes_))).astype(np.float64)
        if isinstance(self.bandwidth, str) and self.bandwidth == "rate":
            self.bandwidth_ = self._rate(X, weights)
        else:
            self.bandwidth_ = _given_bandwidth(self.bandwidth, X.shape[1])
        self._origin = np.average(X, axis=0, weights=weights)
        used, degree = weights > 0, int(self.degree)
        points = (X[used] - self._origin) / self.bandwidth_
        self._smoother = Smoother(points, weights[used], targets[used], degree, float(self.ridge))

    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities, one column per class in the order of ``classes_``."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return _probabilities(self._smoother((X - self._origin) / self.bandwidth_))

    @property
    def class_prior_(self) -> ByClass:
        """Class frequencies of the rows."""
        weights, targets = self._smoother.weights, self._smoother.targets
        others = weights @ targets / weights.sum()
        return ByClass(np.concatenate([[1 - others.sum()], others]), self.classes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of largest probability, the first one if several tie."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _check_parameters(self, width: int) -> None:
        if isinstance(self.degree, bool | np.bool_) or self.degree not in (0, 1, 2):
            raise InvalidParameterError(f"degree must be 0, 1 or 2, got {self.degree!r}.")
        check_number(self.ridge, "ridge", "[0, inf)")
        if self.smoothness is not None:
            most = self.degree + 1
            check_number(self.smoothness, f"smoothness at degree {self.degree}", f"(0, {most}]")
        terms = n_monomials(int(self.degree), width)
        if terms > _MOST_TERMS:
            raise InvalidInputError(
                f"a polynomial of degree {self.degree} in {width} features has {terms} terms, "
                f"more than {_MOST_TERMS}: choose a lower degree or fewer features."
            )

    def _rate(self, X: Matrix, weights: Vector) -> Vector:
        """Bandwidths that shrink at the paper's rate."""
        d = X.shape[1]
        mean = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        # A constant feature has no spread, and any bandwidth does.
        spread = np.where(spread > 0, spread, 1.0)
        smoothness = self.degree + 1 if self.smoothness is None else self.smoothness
        # The kernel has variance 1 / (d + 4) along each feature.
        width = np.sqrt(d + 4)
        return np.asarray(width * spread * weights.sum() ** (-1 / (2 * smoothness + d)))


def _probabilities(others: Matrix) -> Matrix:
    """Probabilities of all classes from regressions of all but the first."""
    raw = np.column_stack([1 - others.sum(axis=1), others])
    clipped = np.clip(raw, 0.0, 1.0)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


def _given_bandwidth(bandwidth: Any, n_features: int) -> Vector:
    try:
        bandwidths = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), (n_features,)).copy()
    except (TypeError, ValueError):
        bandwidths = np.zeros(1)
    if not np.all(np.isfinite(bandwidths) & (bandwidths > 0)):
        raise InvalidParameterError(
            f'bandwidth must be "rate", a positive finite number, or one for each of the '
            f"{n_features} features, got {bandwidth!r}."
        )
    return bandwidths
