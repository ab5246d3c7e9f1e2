r"""Decision weights averaged over resamples: steadier than the exact optimum of a few rows.

The optimum of a piecewise constant value fits the very rows it was tuned on. The mean of the
log-weights of many resamples, each class drawn from its own rows, keeps what they agree on; their
spread says how uncertain the choice is. Classes of few rows do not lend themselves to it: their
resamples hold too few different rows to show where risks rise and fall.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Matrix
from equipoise.decisions.evidence import Evidence, from_logs
from equipoise.decisions.goal import Goal, Tuned


@dataclass(frozen=True, eq=False)
class Bagged:
    """Averaged decision weights, and the log-weights of each resample (centred)."""

    tuned: Tuned
    resampled: Matrix


def bagged(evidence: Evidence, goal: Goal, n_resamples: int, seed: int = 0) -> Bagged:
    """The geometric mean of the decision weights of resamples."""
    rng = np.random.default_rng(seed)
    theta = goal.sibling(evidence)
    found = []
    for _ in range(n_resamples):
        rows = np.concatenate([rng.choice(own, len(own)) for own in evidence.by_class])
        point = goal.retune(evidence.take(rows), theta)
        found.append(point - point.mean())
    resampled = np.array(found)
    weights = from_logs(resampled.mean(axis=0))
    confusion = evidence.confusion(weights)
    risks = 1 - np.diag(confusion) / evidence.totals
    return Bagged(Tuned(weights, goal.value(confusion), risks), resampled)
