r"""Decision weights between tuned ones and a reference, for classes of few rows.

.. math:: \log w = (1 - \lambda) \log w_{\mathrm{tuned}} + \lambda \log w_{\mathrm{reference}}
"""

import numpy as np

from equipoise.arrays import Vector
from equipoise.decisions.evidence import from_logs


def shrunk(weights: Vector, reference: Vector, amount: float) -> Vector:
    """The geometric mean of two weightings; an amount of 1 is the reference, 0 the weights."""
    return from_logs(_centered(weights) * (1 - amount) + _centered(reference) * amount)


def _centered(weights: Vector) -> Vector:
    logs = np.log(weights)
    return np.asarray(logs - logs.mean())
