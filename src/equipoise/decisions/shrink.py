r"""Decision weights between tuned ones and a reference, for classes of few rows.

.. math:: \log w = (1 - \lambda) \log w_{\mathrm{tuned}} + \lambda \log w_{\mathrm{reference}}
"""

import numpy as np

from equipoise.priors import Vector


def shrunk(weights: Vector, reference: Vector, amount: float) -> Vector:
    """The geometric mean of two weightings; an amount of 1 is the reference, 0 the weights."""
    theta = _centered(weights) * (1 - amount) + _centered(reference) * amount
    mixed = np.exp(theta - theta.max())
    return np.asarray(mixed / mixed.sum())


def _centered(weights: Vector) -> Vector:
    logs = np.log(weights)
    return np.asarray(logs - logs.mean())
