r"""The two exact algorithms behind every polyhedral set: filling, and projecting onto a box.

Both run in :math:`O(k \log k)` by sorting, without iteration, in the namespace ``xp`` of their
input.

Conventions
-----------
All arguments but ``total`` and ``budget`` are vectors with one entry per class.
"""

from typing import Any

from equipoise.arrays import concat, cumulative_sum

# Ten caps of 0.1 must count as reaching 1: sums are compared up to this rounding.
ROUNDING = 1e-14
# A sum of masses that is farther off has lost digits to the size of the point.
_LOST_ULPS = 100


def fill(risks: Any, room: Any, budget: float, xp: Any) -> Any:
    r"""Water-filling: the worst classes take all their room until the budget is spent.

    .. math:: \max_f \; \langle f, r \rangle \quad \text{subject to} \quad
              0 \le f \le \text{room}, \; \textstyle\sum_i f_i = \text{budget}.

    Classes that tie at the last level share what is left in proportion to their room, so the
    result does not depend on the order of the classes.
    """
    level = fill_level(risks, room, budget, xp)
    above = xp.where(risks > level, room, 0.0)
    tied = xp.where(risks == level, room, 0.0)
    tied_room = float(xp.sum(tied))
    rest = budget - float(xp.sum(above))
    share = min(max(rest / tied_room, 0.0), 1.0) if tied_room > 0 else 0.0
    return above + tied * share


def fill_level(risks: Any, room: Any, budget: float, xp: Any) -> float:
    """The risk of the first class, from the worst down, with which the room reaches the budget.

    This is the minimiser lambda of the dual of propositions 4 and 5 of the paper.
    """
    order = xp.argsort(-risks)
    reached = cumulative_sum(xp.take(room, order), xp)
    last = int(xp.count_nonzero(reached < budget * (1 - ROUNDING)))
    return float(risks[int(order[min(last, order.shape[0] - 1)])])


def project_box(point: Any, lower: Any, upper: Any, total: float, xp: Any) -> Any:
    r"""Euclidean projection onto a box cut by a hyperplane.

    .. math:: \min_m \; \|m - v\|_2^2 \quad \text{subject to} \quad
              \text{lower} \le m \le \text{upper}, \; \textstyle\sum_i m_i = \text{total}.

    The solution is ``clip(v - shift, lower, upper)``, and its sum is piecewise linear in the
    shift, with breakpoints ``v - upper`` and ``v - lower``.
    """
    shift = _box_shift(point, lower, upper, total, xp)
    masses, settled = _settle(point - shift, lower, upper, total, xp)
    if not settled:
        point = _drawn_near(point, total, xp)
        shift = _box_shift(point, lower, upper, total, xp)
        masses, _ = _settle(point - shift, lower, upper, total, xp)
    return masses


def _box_shift(point: Any, lower: Any, upper: Any, total: float, xp: Any) -> float:
    breaks = concat((point - upper, point - lower), xp)
    order = xp.argsort(breaks)
    breaks = xp.take(breaks, order)
    # Past v - upper a class gives way, past v - lower it gives no more.
    one = xp.ones_like(breaks)
    giving = cumulative_sum(xp.where(order < point.shape[0], one, -one), xp)
    given = cumulative_sum(giving[:-1] * (breaks[1:] - breaks[:-1]), xp)
    surplus = float(xp.sum(upper)) - total
    last = int(xp.count_nonzero(given < surplus))
    if last == 0:
        return float(breaks[0]) + max(surplus, 0.0) / float(giving[0])
    if last == given.shape[0]:
        return float(breaks[-1])
    return float(breaks[last]) + (surplus - float(given[last - 1])) / float(giving[last])


def _drawn_near(point: Any, total: float, xp: Any) -> Any:
    """The point with gaps between neighbouring entries cut to the total, measured from the top.

    Entries farther apart than any mass are never both strictly inside their bounds, so the
    projection stays the same; but floats above 1e16 hold no masses beside them.
    """
    order = xp.argsort(-point)
    falling = xp.take(point, order)
    gaps = xp.clip(falling[:-1] - falling[1:], 0.0, total)
    near = concat((xp.zeros_like(point[:1]), -cumulative_sum(gaps, xp)), xp)
    return xp.take(near, xp.argsort(order))


def project_simplex(point: Any, total: float, xp: Any) -> Any:
    r"""Euclidean projection onto the scaled simplex.

    .. math:: \min_m \; \|m - v\|_2^2 \quad \text{subject to} \quad
              m \ge 0, \; \textstyle\sum_i m_i = \text{total}.

    The shift is :math:`\max_j (v_{(1)} + \dots + v_{(j)} - \text{total}) / j`, entries sorted
    from the largest.
    """
    # Measured from the largest entry, the entries that matter keep all their digits.
    point = point - xp.max(point)
    sums = -cumulative_sum(xp.sort(-point), xp)
    counts = cumulative_sum(xp.ones_like(point), xp)
    shift = float(xp.max((sums - total) / counts))
    return _settle(point - shift, 0.0, total, total, xp)[0]


def _settle(shifted: Any, lower: Any, upper: Any, total: float, xp: Any) -> tuple[Any, bool]:
    """Clip, then spread what rounding left of the sum over the entries strictly inside.

    A shift found from running sums over far-flung entries is off by the rounding of the largest;
    measured from it the entries are small, and one more step is exact. Also says whether the sum
    is right at last.
    """
    for _ in range(4):
        masses = xp.clip(shifted, lower, upper)
        excess = float(xp.sum(masses)) - total
        if abs(excess) <= ROUNDING * total:
            return masses, True
        inside = int(xp.count_nonzero((masses > lower) & (masses < upper)))
        if inside == 0:
            break
        shifted = shifted - excess / inside
    return masses, abs(excess) <= _LOST_ULPS * float(xp.finfo(masses.dtype).eps) * total
