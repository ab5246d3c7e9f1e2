"""Predicted probabilities against observed frequencies, in bins."""

from __future__ import annotations

import numpy as np

from equipoise.arrays import Mask, Vector
from equipoise.risks.intervals import class_risk_intervals


def reliability_curve(
    events: Mask, probabilities: Vector, weights: Vector, edges: Vector
) -> dict[str, Vector]:
    """Of each bin between the edges that has rows: mean probability, frequency, interval, rows.

    Examples
    --------
    >>> events, probabilities = np.array([False, True, True]), np.array([0.1, 0.3, 0.8])
    >>> curve = reliability_curve(events, probabilities, np.ones(3), np.array([0.5]))
    >>> curve["predicted"].tolist(), curve["observed"].tolist(), curve["rows"].tolist()
    ([0.2, 0.8], [0.5, 1.0], [2, 1])
    """
    found = np.searchsorted(edges, probabilities, side="right")
    bins = np.unique(found, return_inverse=True)[1]
    # A bin is a class whose errors are the events: the same exact binomial interval.
    shares = class_risk_intervals(bins, np.where(events, -1, bins), sample_weight=weights)
    return {
        "predicted": np.bincount(bins, weights * probabilities) / np.bincount(bins, weights),
        "observed": np.asarray(shares.risks),
        "lower": np.asarray(shares.lower),
        "upper": np.asarray(shares.upper),
        "rows": np.bincount(bins),
    }
