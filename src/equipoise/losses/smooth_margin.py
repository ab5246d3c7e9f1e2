r"""The paper's margin loss with its corners rounded: bounded, smooth, and not convex."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from equipoise.arrays import Indices, Matrix, NDArray, Vector
from equipoise.losses.base import (
    Loss,
    TrainedLoss,
    curvature_by_scores,
    gradients_by_scores,
    leads,
)
from equipoise.losses.cross_entropy import CrossEntropy
from equipoise.losses.hinges import margin_loss


@dataclass(frozen=True)
class SmoothMargin(TrainedLoss):
    r"""The bounded margin loss, with the softmax in place of its maximum and of its corners.

    .. math:: \ell(f, y) = \sigma
              \log \bigl( 1 + (e^{1 / \sigma} - 1) (1 - \pi_y) \bigr), \qquad
              \pi = \operatorname{softmax} \Bigl( \frac{f}{\sigma \rho_y} \Bigr),

    with the ``width`` :math:`\rho` of the margin, one for all classes or one each, and the
    ``smoothing`` :math:`\sigma` in parts of it. It lies in the unit interval and has all
    derivatives. With the lead :math:`s = \sigma \log \sum_{j \neq y} e^{(f_j - f_y) /
    (\sigma \rho_y)}` of the rivals it is

    .. math:: \sigma \log (1 + e^{(1 + s) / \sigma}) - \sigma \log (1 + e^{s / \sigma}),

    and differs by at most :math:`\sigma \log k` from the margin loss
    :math:`\min(1, \max(0, 1 - a / \rho_y))` of the margin :math:`a`, which is that of Sec. 2 of Xu
    et al. (2020) for :math:`\rho = 1`. As :math:`\rho` falls to zero it becomes the zero-one loss,
    and :math:`1 - \pi_y` if :math:`\sigma \rho` stays as it is.

    A penalty gives the width its meaning: a model of width :math:`\rho` and inverse penalty ``C``
    has :math:`\rho` times the scores of one of width 1 and :math:`C / \rho^2`, and decides alike.
    In training, a width given for all is that of the largest class, and others have
    :math:`\rho (n_{\max} / n_i)^{1/4}`: the fewer rows a class has, the farther its errors on other
    rows are from those on its own, and these widths give the least bound (Cao et al. 2019,
    "Learning imbalanced datasets with label-distribution-aware margin loss").

    The curvature is that of the loss where it is convex in :math:`s`; where it is concave, that
    part is left out, and what remains is positive semidefinite.

    Examples
    --------
    >>> SmoothMargin().for_classes(np.array([160.0, 10.0]))
    SmoothMargin(width=(1.0, 2.0), smoothing=0.25)
    """

    width: float | tuple[float, ...] = 1.0
    smoothing: float = 0.25

    reaches_zero = True

    @property
    def way(self) -> tuple[TrainedLoss, ...]:
        return CrossEntropy(), replace(self, smoothing=4 * self.smoothing)

    def for_classes(self, totals: Vector) -> "SmoothMargin":
        if isinstance(self.width, tuple):
            return self
        return replace(self, width=tuple((self.width * (totals.max() / totals) ** 0.25).tolist()))

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        chances = expit(self._lead(scores, labels)[0])
        values: Vector = self.smoothing * np.log1p(np.expm1(1 / self.smoothing) * chances)
        return np.minimum(values, 1.0)

    def gradients(self, scores: Matrix, labels: Indices) -> Matrix:
        lead, shares, width = self._lead(scores, labels)
        return gradients_by_scores(labels, shares * (self._derivatives(lead)[0] / width))

    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        lead, shares, width = self._lead(scores, labels)
        slope, bend = self._derivatives(lead)
        slope /= self.smoothing * width**2
        bend = np.maximum(bend, 0.0) / width**2
        out = shares[:, None] * (shares * (bend - slope))
        np.einsum("aan->an", out)[:] += shares * slope
        return curvature_by_scores(labels, out)

    def _lead(self, scores: Matrix, labels: Indices) -> tuple[Vector, Matrix, Vector]:
        r"""The lead :math:`s / \sigma`, the share of each rival in it, and the widths of rows."""
        width = np.asarray(self.width)
        width = width[labels] if width.ndim else np.full(len(labels), width)
        shares = leads(labels, scores)
        shares /= self.smoothing * width
        top = shares.max(axis=0)
        np.exp(shares - top, out=shares)
        total = shares.sum(axis=0)
        shares /= total
        return top + np.log(total), shares, width

    def _derivatives(self, lead: Vector) -> tuple[Vector, Vector]:
        """First and second derivatives by the lead of the rivals."""
        higher = lead + 1 / self.smoothing
        high, low = expit(higher), expit(lead)
        return high - low, (high * expit(-higher) - low * expit(-lead)) / self.smoothing


MARGIN = Loss("margin", margin_loss, "scores", "[0, 1]", SmoothMargin())
