r"""The paper's margin loss with its corners rounded: bounded, smooth, and not convex."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.losses.base import (
    Loss,
    TrainedLoss,
    curvature_by_scores,
    leads,
    slopes_by_scores,
)
from equipoise.losses.cross_entropy import CrossEntropy
from equipoise.losses.hinges import margin_loss


@dataclass(frozen=True)
class SmoothMargin(TrainedLoss):
    r"""The bounded margin loss, with the softmax in place of its maximum and of its corners.

    .. math:: \ell(f, y) = \frac{\mu}{\rho}
              \log \bigl( 1 + (e^{\rho / \mu} - 1) (1 - \pi_y) \bigr), \qquad
              \pi = \operatorname{softmax}(f / \mu),

    with the ``width`` :math:`\rho` of the margin and the ``smoothing`` :math:`\mu`. It lies in the
    unit interval and has all derivatives. With :math:`s = \mu \log \sum_{j \neq y}
    e^{(f_j - f_y) / \mu}`, the lead of the rivals, it is

    .. math:: \frac{\mu}{\rho} \log (1 + e^{(s + \rho) / \mu})
              - \frac{\mu}{\rho} \log (1 + e^{s / \mu}),

    and differs by at most :math:`\mu \log(k) / \rho` from the margin loss
    :math:`\min(1, \max(0, 1 - a / \rho))` of the margin :math:`a`: that of Sec. 2 of Xu et al.
    (2020) for :math:`\rho = 1`. As :math:`\rho` falls to zero it becomes :math:`1 - \pi_y`, and
    with both the zero-one loss.

    A penalty gives the width its meaning: a model of width :math:`\rho` and inverse penalty ``C``
    has :math:`\rho` times the scores of one of width 1 and :math:`C / \rho^2`, and decides alike.

    The curvature is that of the loss where it is convex in :math:`s`; where it is concave, that
    part is left out, and what remains is positive semidefinite.
    """

    width: float = 1.0
    smoothing: float = 0.25

    reaches_zero = True

    @property
    def way(self) -> tuple[TrainedLoss, ...]:
        return CrossEntropy(), replace(self, smoothing=4 * self.smoothing)

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        lead, _ = self._lead(scores, labels)
        ratio = self.width / self.smoothing
        values: Vector = np.log1p(np.expm1(ratio) * expit(lead)) / ratio
        return np.minimum(values, 1.0)

    def slopes(self, scores: Matrix, labels: Indices) -> Matrix:
        lead, shares = self._lead(scores, labels)
        return slopes_by_scores(labels, shares * self._slope_and_bend(lead)[0])

    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        lead, shares = self._lead(scores, labels)
        slope, bend = self._slope_and_bend(lead)
        slope /= self.smoothing
        out = shares[:, None] * (shares * (np.maximum(bend, 0.0) - slope))
        np.einsum("aan->an", out)[:] += shares * slope
        return curvature_by_scores(labels, out)

    def _lead(self, scores: Matrix, labels: Indices) -> tuple[Vector, Matrix]:
        r"""The lead :math:`s / \mu` of the rivals, and the share that each has in it."""
        shares = leads(labels, scores)
        shares /= self.smoothing
        top = shares.max(axis=0)
        np.exp(shares - top, out=shares)
        total = shares.sum(axis=0)
        shares /= total
        return top + np.log(total), shares

    def _slope_and_bend(self, lead: Vector) -> tuple[Vector, Vector]:
        """First and second derivatives by the lead of the rivals."""
        high, low = expit(lead + self.width / self.smoothing), expit(lead)
        bend = high * expit(-lead - self.width / self.smoothing) - low * expit(-lead)
        return (high - low) / self.width, bend / (self.width * self.smoothing)


MARGIN = Loss("margin", margin_loss, "scores", "[0, 1]", SmoothMargin())
