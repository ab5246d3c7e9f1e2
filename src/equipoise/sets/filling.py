r"""The two exact algorithms behind every polyhedral set: filling, and projecting onto a box.

Both run in :math:`O(k \log k)` by sorting, without iteration.

Conventions
-----------
All arguments but ``total`` and ``budget`` are float64 vectors with one entry per class; those of
``fill`` may be torch tensors as well, which it looks at without waiting for a value.
"""

from typing import Any

import numpy as np

from equipoise.arrays import Vector

# Relative rounding of a sum of up to some hundred masses: ten caps of 0.1 must reach 1.
SUM_ROUNDING = 1e-14
# Corrections of a shift for rounding: one is exact unless it moves an entry across a bound.
_MAX_CORRECTIONS = 4


def fill(risks: Any, room: Any, budget: Any) -> Any:
    r"""Water-filling: the worst classes take all their room until the budget is spent.

    .. math:: \max_f \; \langle f, r \rangle \quad \text{subject to} \quad
              0 \le f \le \text{room}, \; \textstyle\sum_i f_i = \text{budget}.

    Classes that tie at the last level share what is left in proportion to their room, so the
    result does not depend on the order of the classes.
    """
    level = _level(risks, room, budget)
    above, tied = room * (risks > level), room * (risks == level)
    tied_room = tied.sum()
    share = (budget - above.sum()) / (tied_room + (tied_room == 0))
    return above + tied * share.clip(0.0, 1.0)


def fill_level(risks: Vector, room: Vector, budget: float) -> float:
    """The risk of the first class, from the worst down, with which the room reaches the budget.

    This is the minimiser lambda of the dual of propositions 4 and 5 of the paper.
    """
    return float(_level(risks, room, budget)[0])


def _level(risks: Any, room: Any, budget: Any) -> Any:
    """The same, as a vector of one entry: to look up a number would wait for a device."""
    order = (-risks).argsort()
    short = room[order].cumsum(0) < budget * (1 - SUM_ROUNDING)
    return risks[order[short.sum().clip(max=len(order) - 1)[None]]]


def project_box(point: Vector, lower: Vector, upper: Vector, total: float) -> Vector:
    r"""Euclidean projection onto a box cut by a hyperplane.

    .. math:: \min_m \; \|m - v\|_2^2 \quad \text{subject to} \quad
              \text{lower} \le m \le \text{upper}, \; \textstyle\sum_i m_i = \text{total}.

    The solution is ``clip(v - shift, lower, upper)``, and its sum is piecewise linear in the
    shift, with breakpoints ``v - upper`` and ``v - lower``. Rounding of the running sums leaves
    the shift slightly off; spread over the entries strictly inside, the rest of the total is exact.
    """
    near = _drawn_near(point, total)
    shifted = near - _box_shift(near, lower, upper, total)
    for _ in range(_MAX_CORRECTIONS):
        masses = np.clip(shifted, lower, upper)
        excess = float(masses.sum()) - total
        inside = np.count_nonzero((masses > lower) & (masses < upper))
        if abs(excess) <= SUM_ROUNDING * total or inside == 0:
            break
        shifted = shifted - excess / inside
    return masses


def project_simplex(point: Vector, total: float) -> Vector:
    """Euclidean projection onto the simplex of masses that sum to ``total``."""
    return project_box(point, np.zeros_like(point), np.full_like(point, total), total)


def _box_shift(point: Vector, lower: Vector, upper: Vector, total: float) -> float:
    breaks = np.concatenate([point - upper, point - lower])
    order = np.argsort(breaks)
    breaks = breaks[order]
    # Past v - upper a class gives way, past v - lower it gives no more.
    giving = np.cumsum(np.where(order < len(point), 1.0, -1.0))
    given_up = np.cumsum(giving[:-1] * np.diff(breaks))
    surplus = float(upper.sum()) - total
    last = int(np.count_nonzero(given_up < surplus))
    if last == 0:
        return float(breaks[0]) + max(surplus, 0.0) / float(giving[0])
    if last == len(given_up):
        return float(breaks[-1])
    return float(breaks[last]) + (surplus - float(given_up[last - 1])) / float(giving[last])


def _drawn_near(point: Vector, total: float) -> Vector:
    """The point with gaps between neighbouring entries cut to the total, measured from the top.

    Entries farther apart than any mass are never both strictly inside their bounds, so the
    projection stays the same; but floats above 1e16 hold no masses beside them.
    """
    order = np.argsort(-point)
    near = np.empty_like(point)
    near[order] = np.append(0.0, np.cumsum(np.maximum(np.diff(point[order]), -total)))
    return near
