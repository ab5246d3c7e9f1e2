r"""Filling, scaling and projecting on a device: no value is looked at, so nothing waits for it.

The algorithms of :mod:`equipoise.sets.filling` in a fixed number of tensor operations, which a
compiler takes as they are.

Conventions
-----------
Vectors have one entry per class; ``budget`` and ``total`` are numbers or tensors of no dimension.
"""

from typing import Any

import torch

from equipoise.sets.filling import ROUNDING

# Up to here all pairs of classes are compared, which a GPU does faster than it sorts.
_PAIRS, _PAIRS_ON_GPU = 64, 1024
# Newton's steps for a factor: two or three are needed after a small change of the masses.
_STEPS = 16


def fill(risks: Any, room: Any, budget: Any) -> Any:
    """Water-filling: the worst classes take all their room until the budget is spent.

    Classes that tie at the last level share what is left in proportion to their room.
    """
    reached, levels = _reached(risks, room)
    enough = reached >= budget * (1 - ROUNDING)
    level = torch.where(enough, levels, -torch.inf).max()
    above = torch.where(risks > level, room, 0.0)
    tied = torch.where(risks == level, room, 0.0)
    share = (budget - above.sum()) / tied.sum().clamp_min(torch.finfo(room.dtype).tiny)
    return above + tied * share.clamp(0.0, 1.0)


def _reached(risks: Any, room: Any) -> tuple[Any, Any]:
    """The room of all classes at least as bad as each, and the risk of each."""
    if _by_pairs(risks):
        return torch.where(risks >= risks[:, None], room, 0.0).sum(1), risks
    levels, order = torch.sort(risks, descending=True)
    return room[order].cumsum(0), levels


def scale_between(masses: Any, lower: Any, upper: Any, total: Any) -> Any:
    r"""Positive masses scaled until they sum to the total, each kept between its bounds.

    .. math:: \min_m \; KL(m, v) \quad \text{subject to} \quad
              \text{lower} \le m \le \text{upper}, \; \textstyle\sum_i m_i = \text{total}.

    The solution is ``clip(factor * v, lower, upper)``; its sum is piecewise linear in the factor.
    """
    if masses.is_cuda and torch.compiler.is_compiling():
        return scale_in_steps(masses, lower, upper, total)
    breaks = torch.cat([lower / masses, upper / masses])
    if _by_pairs(masses):
        sums = (breaks[:, None] * masses).clamp(lower, upper).sum(1)
    else:
        breaks, order = breaks.sort()
        rises = torch.cat([masses, -masses])[order].cumsum(0)[:-1] * breaks.diff()
        sums = lower.sum() + torch.cat([rises.new_zeros(1), rises.cumsum(0)])
    left = torch.where(sums <= total, breaks, breaks.min()).max()
    right = torch.where(sums >= total, breaks, breaks.max()).min()
    return _between(left, right, masses, lower, upper, total)


def scale_in_steps(masses: Any, lower: Any, upper: Any, total: Any) -> Any:
    """The same by Newton's steps for the factor, kept between factors too small and too large.

    Sums of one vector after another: a compiler makes one program of all of them.

    Examples
    --------
    >>> given, caps = torch.tensor([8.0, 1.0, 1.0]), torch.full((3,), 0.5)
    >>> [round(mass, 6) for mass in scale_in_steps(given, 0 * caps, caps, 1.0).tolist()]
    [0.5, 0.25, 0.25]
    """
    left, right = (lower / masses).min(), (upper / masses).max()
    factor = (total / masses.sum()).clamp(left, right)
    for _ in range(_STEPS):
        scaled = factor * masses
        lacking = total - scaled.clamp(lower, upper).sum()
        slope = torch.where((scaled > lower) & (scaled < upper), masses, 0.0).sum()
        left = torch.where(lacking >= 0, factor, left)
        right = torch.where(lacking <= 0, factor, right)
        step = factor + lacking / slope
        # Without a slope the step is infinite or no number; halves of the logarithm lead on.
        half = torch.where(left > 0, (left * right).sqrt(), right / 2)
        factor = torch.where((step >= left) & (step <= right), step, half)
    return _between(left, right, masses, lower, upper, total)


def _between(left: Any, right: Any, masses: Any, lower: Any, upper: Any, total: Any) -> Any:
    """Masses at the factor between two at which their sum is the total, if it is linear there."""
    low, high = ((factor * masses).clamp(lower, upper).sum() for factor in (left, right))
    way = (total - low) / (high - low).clamp_min(torch.finfo(masses.dtype).tiny)
    factor = left + way.clamp(0.0, 1.0) * (right - left).clamp_min(0.0)
    return (factor * masses).clamp(lower, upper)


def _by_pairs(vector: Any) -> bool:
    return len(vector) <= (_PAIRS_ON_GPU if vector.is_cuda else _PAIRS)


def project_to_simplex(points: Any) -> Any:
    """The nearest masses that sum to one, to each row."""
    points = points - points.amax(1, keepdim=True)
    sums = points.sort(1, descending=True).values.cumsum(1) - 1
    counts = torch.arange(1, points.shape[1] + 1, dtype=points.dtype, device=points.device)
    masses = (points - (sums / counts).amax(1, keepdim=True)).clamp_min(0.0)
    return masses / masses.sum(1, keepdim=True)
