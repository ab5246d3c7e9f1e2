"""The paper's synthetic model: two classes on the unit interval, as unequal as one likes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.validation.numbers import check_count, check_number
from equipoise.weights.priors import masses_of, scaled_weights


@dataclass(frozen=True)
class PowerImbalance:
    r"""The paper's synthetic model, in closed form.

    .. math:: X \sim U[0, 1], \quad P(Y = 1 \mid X = x) = \eta(x) = x^{a}, \quad a = \frac{p}{1 - p}

    so that :math:`P(Y = 0) = p`, because :math:`\int_0^1 x^a \, dx = 1/(a + 1) = 1 - p`.

    ``weights`` are the class weights :math:`(q_0, q_1)` as a pair, a dict by class (0 and 1),
    ``"standard"`` or ``"balanced"``, scaled so that :math:`p q_0 + (1 - p) q_1 = 1`. The rule of an
    ``x_threshold`` predicts 1 above it; class risks have the classes in their last axis.

    Parameters
    ----------
    p : float in (0, 1)
        Prior of class 0.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), Section 5, with the risk of class 0 corrected to
    :math:`1 - \frac{1 + p}{p} 2^{-1/p}`.

    Examples
    --------
    >>> model = PowerImbalance(p=0.5)
    >>> model.bayes_class_risks("standard")
    array([0.25, 0.25])
    >>> rare = PowerImbalance(p=0.9)
    >>> round(rare.threshold("balanced"), 6), round(rare.bayes_threshold_x("balanced"), 6)
    (0.1, 0.774264)
    """

    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", check_number(self.p, "p", "(0, 1)"))

    @property
    def exponent(self) -> float:
        r"""The exponent :math:`a = p / (1 - p)` of the regression function."""
        return self.p / (1 - self.p)

    @property
    def prior(self) -> Vector:
        """Priors of the classes 0 and 1."""
        return np.array([self.p, 1 - self.p])

    @property
    def classes(self) -> NDArray[np.int64]:
        """The classes 0 and 1."""
        return np.array([0, 1], dtype=np.int64)

    def eta(self, x: ArrayLike) -> Matrix:
        r"""The regression function :math:`\eta(x) = x^a`."""
        return np.asarray(_unit(x, "x") ** self.exponent)

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """True class probabilities of rows as :func:`make_power_imbalance` draws them."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 1:
            raise InvalidInputError(
                f"X must have one row per point and x in its first column, got shape {rows.shape}."
            )
        eta = self.eta(rows[:, 0])
        return np.column_stack([1 - eta, eta])

    def sample(
        self, n_samples: int = 1000, random_state: Any = None
    ) -> tuple[Matrix, NDArray[np.int64]]:
        """Independent draws: ``X`` of shape (n_samples, 1) and ``y`` in {0, 1}."""
        rng = check_random_state(random_state)
        x = rng.uniform(size=check_count(n_samples, "n_samples"))
        y = (rng.uniform(size=len(x)) < self.eta(x)).astype(np.int64)
        return x[:, None], y

    def quadrature(self, n_points: int = 20_000) -> tuple[Matrix, Vector]:
        """Points of shape (n_points, 1) and weights that stand for the distribution of ``X``.

        The midpoint rule. A risk is off by at most a point's weight for each jump of its rule.
        """
        n = check_count(n_points, "n_points")
        return ((np.arange(n) + 0.5) / n)[:, None], np.full(n, 1 / n)

    def weights(self, weights: Any) -> Vector:
        r"""The weights :math:`(q_0, q_1)`, scaled so that :math:`p q_0 + (1 - p) q_1 = 1`."""
        return scaled_weights(weights, self.prior, self.classes)

    def threshold(self, weights: Any = "standard") -> float:
        r"""The threshold :math:`t_q = q_0 / (q_0 + q_1)` on :math:`\eta` (Lemma 1)."""
        q = self.weights(weights)
        return float(q[0] / q.sum())

    def bayes_threshold_x(self, weights: Any = "standard") -> float:
        r"""Where :math:`\eta` crosses it: :math:`x_q = t_q^{(1-p)/p}`."""
        return float(self.threshold(weights) ** (1 / self.exponent))

    def class_risks_at(self, x_threshold: ArrayLike) -> Matrix:
        r"""Class risks of the rule that predicts 1 above :math:`s`, of shape ``(..., 2)``.

        .. math:: R_0(s) = \frac{(1 - s) - (1 - p) (1 - s^{1/(1-p)})}{p}, \qquad
                  R_1(s) = s^{1/(1-p)}
        """
        s = _unit(x_threshold, "x_threshold")
        missed = s ** (1 / (1 - self.p))
        false_alarms = ((1 - s) - (1 - self.p) * (1 - missed)) / self.p
        # Near s = 1 both terms vanish, and their difference may round to less than nothing.
        return np.stack([np.clip(false_alarms, 0.0, 1.0), missed], axis=-1)

    def weighted_risk(self, x_threshold: ArrayLike, weights: Any = "standard") -> Any:
        r"""The risk :math:`\sum_i q_i p_i R_i(s)` of the rule that predicts 1 above :math:`s`."""
        masses = masses_of(self.weights(weights), self.prior)
        risk = self.class_risks_at(x_threshold) @ masses
        return float(risk) if np.ndim(risk) == 0 else risk

    def bayes_class_risks(self, weights: Any = "standard") -> Vector:
        """Class risks of the rule that is optimal under the weights."""
        return self.class_risks_at(self.bayes_threshold_x(weights))

    def bayes_risk(self, weights: Any = "standard") -> float:
        """The smallest weighted risk that any rule attains."""
        return float(self.weighted_risk(self.bayes_threshold_x(weights), weights))


def make_power_imbalance(
    n_samples: int = 1000,
    *,
    p: float = 0.9,
    n_noise_features: int = 0,
    random_state: Any = None,
    return_model: bool = False,
) -> Any:
    """Draw from the paper's synthetic model, :class:`PowerImbalance`.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    p : float in (0, 1), default=0.9
        Prior of class 0.
    n_noise_features : int, default=0
        Further columns, uniform on [0, 1] and independent of the class.
    random_state : int, RandomState or None, default=None
        Seed. The noise does not change the first column and the labels.
    return_model : bool, default=False
        Whether to return the model as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 1 + n_noise_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    model : PowerImbalance
        Only if ``return_model``.

    Examples
    --------
    >>> X, y, model = make_power_imbalance(500, p=0.9, random_state=0, return_model=True)
    >>> X.shape, round(model.bayes_risk("balanced"), 4)
    ((500, 1), 0.1129)
    """
    model = PowerImbalance(p)
    noise = check_count(n_noise_features, "n_noise_features", 0)
    rng = check_random_state(random_state)
    X, y = model.sample(n_samples, rng)
    if noise:
        X = np.hstack([X, rng.uniform(size=(len(X), noise))])
    return (X, y, model) if return_model else (X, y)


def _unit(values: ArrayLike, name: str) -> Matrix:
    """Numbers in the unit interval."""
    array = np.asarray(values, dtype=np.float64)
    # Comparisons with NaN are false, so NaN is refused as well.
    inside = (array >= 0) & (array <= 1)
    if not np.all(inside):
        raise InvalidInputError(f"{name} must lie in [0, 1], got {array[~inside].ravel()[0]:.6g}.")
    return array
