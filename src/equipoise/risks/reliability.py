"""Predicted probabilities against observed frequencies, in bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.arrays import Mask, Vector
from equipoise.risks.intervals import binomial_interval


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
    positions = np.searchsorted(edges, probabilities, side="right")
    bins = np.unique(positions, return_inverse=True)[1]
    totals = np.bincount(bins, weights)
    observed = np.bincount(bins, weights * events) / totals
    # Kish's effective numbers of rows: those of the bins where all weights are equal.
    effective = totals**2 / np.bincount(bins, weights**2)
    lower, upper = binomial_interval(observed, effective)
    predicted = np.bincount(bins, weights * probabilities) / totals
    rows: Any = np.bincount(bins)
    ends = {"lower": lower, "upper": upper}
    return {"predicted": predicted, "observed": observed, **ends, "rows": rows}
