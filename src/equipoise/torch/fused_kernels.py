"""Kernels of a training step on CUDA, and how they are launched: rows, masses, gradient.

Conventions
-----------
``sums`` is a vector in double precision, zero between steps: for each class the losses and the
number of sound rows, the number of broken ones, and at last that of targets that are no class.
``rates`` are what rows of each class count in the value. ``KP`` is a power of two, at least ``K``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from equipoise.sets.filling import ROUNDING

try:
    import triton
    import triton.language as tl

    _VERSION = tuple(map(int, triton.__version__.split(".")[:2]))
    if _VERSION < (3, 4):
        triton = tl = None  # compiled kernels took other arguments
except ImportError:  # without Triton, steps are plain tensor operations
    triton = tl = None

AVAILABLE = triton is not None
_PLACE = torch.Tensor.data_ptr


class Launch:
    """A kernel with its constants; once compiled, it is launched without a look at its arguments.

    That look, and one at each pointer, take the host longer than all else in a launch.
    """

    def __init__(self, jitted: Any, constants: tuple[Any, ...], warps: int) -> None:
        self.jitted, self.constants, self.warps = jitted, constants, warps
        self.run: Any = None
        self.handles: tuple[Any, ...] = ()

    def __call__(self, grid: int, stream: int, tensors: tuple[Any, ...], *numbers: int) -> None:
        if self.run is not None:
            places = map(_PLACE, tensors)
            self.run(grid, 1, 1, stream, *self.handles, *places, *numbers, *self.constants)
            return
        given = *tensors, *numbers, *self.constants
        found = self.jitted[grid,](*given, num_warps=self.warps)
        if found is None:  # interpreted
            return
        self.run = run = found.run
        # Of launches there are no hooks and no data for them.
        self.handles = found.function, found.packed_metadata, None, None, None
        if _VERSION == (3, 6) and hasattr(run, "launch_pdl") and not _scratch(run):
            # Behind the launcher is a function in C, which also takes places for scratch.
            flags = run.launch_cooperative_grid, run.launch_pdl, None, None
            self.run, self.handles = run.launch, (found.function, *flags, *self.handles[1:])


def _scratch(run: Any) -> int:
    return int(run.global_scratch_size + run.profile_scratch_size)


@cache
def launch_of(jitted: Any, kind: Any, constants: tuple[Any, ...], warps: int) -> Launch:  # noqa: ARG001
    """The kernel; ``kind`` and ``constants`` are all that a compiled one depends on."""
    return Launch(jitted, constants, warps)


if triton:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def set_one(place):  # type: ignore[no-untyped-def]
        """Write a one."""
        tl.store(place, 1.0)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _tile(  # type: ignore[no-untyped-def]
        logits, labels, n,
        K: tl.constexpr, KP: tl.constexpr, ROWS: tl.constexpr, IGNORED: tl.constexpr,
    ):  # fmt: skip
        """Logits of some rows less the largest of each, in single precision; and their labels.

        Further: which rows count, which have a target that is no class, which entries there are,
        and where.
        """
        rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        cols = tl.arange(0, KP)
        there = rows < n
        label = tl.load(labels + rows, mask=there, other=0).to(tl.int64)
        counted = there & (label != IGNORED)
        stray = counted & ((label < 0) | (label >= K))
        inside = there[:, None] & (cols < K)[None, :]
        place = rows[:, None] * K + cols[None, :]
        x = tl.load(logits + place, mask=inside, other=float("-inf")).to(tl.float32)
        # Rows beyond the last are zero: nothing of them is no number.
        x = tl.where(there[:, None], x, 0.0)
        x = x - tl.max(x, 1)[:, None]
        return x, label, counted & (stray == 0), stray, inside, place

    @triton.jit(  # type: ignore[untyped-decorator, unused-ignore]
        do_not_specialize=["n"], do_not_specialize_on_alignment=["labels", "sums"]
    )
    def sum_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  as Triton has it
        logits, labels, sums, n,
        K: tl.constexpr, KP: tl.constexpr, ROWS: tl.constexpr, IGNORED: tl.constexpr,
        SMOOTHING: tl.constexpr,
    ):  # fmt: skip
        """Add the losses of a tile of rows, and their numbers, to the sums of their classes."""
        x, label, counted, stray, inside, _ = _tile(logits, labels, n, K, KP, ROWS, IGNORED)
        own = (label[:, None] == tl.arange(0, KP)[None, :]) & counted[:, None]
        whole = tl.log(tl.sum(tl.exp(x), 1))
        mine = tl.sum(tl.where(own, x, 0.0), 1)
        loss = whole - mine
        if SMOOTHING > 0:
            loss += SMOOTHING * (mine - tl.sum(tl.where(inside, x, 0.0), 1) / K)
        sound = counted & (tl.abs(loss) < float("inf"))
        broken = counted & (sound == 0)
        if ROWS >= 32:  # of few classes: their sums would be waited for by all tiles
            cols = tl.arange(0, KP)
            count = tl.sum((own & sound[:, None]).to(tl.int32), 0)
            found = tl.sum(tl.where(own & sound[:, None], loss[:, None], 0.0).to(tl.float64), 0)
            bad = tl.sum((own & broken[:, None]).to(tl.int32), 0)
            tl.atomic_add(sums + cols, found, mask=count > 0)
            tl.atomic_add(sums + K + cols, count.to(tl.float64), mask=count > 0)
            tl.atomic_add(sums + 2 * K + cols, bad.to(tl.float64), mask=bad > 0)
        else:
            one = tl.full((ROWS,), 1.0, tl.float64)
            tl.atomic_add(sums + label, loss.to(tl.float64), mask=sound)
            tl.atomic_add(sums + K + label, one, mask=sound)
            tl.atomic_add(sums + 2 * K + label, one, mask=broken)
        tl.atomic_add(sums + 3 * K + 0 * label, tl.full((ROWS,), 1.0, tl.float64), mask=stray)

    @triton.jit(  # type: ignore[untyped-decorator, unused-ignore]
        do_not_specialize=["n"], do_not_specialize_on_alignment=["labels", "rates", "grad"]
    )
    def write_gradient(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  as above
        logits, labels, rates, grad, found, n,
        K: tl.constexpr, KP: tl.constexpr, ROWS: tl.constexpr, IGNORED: tl.constexpr,
        SMOOTHING: tl.constexpr,
    ):  # fmt: skip
        """Softmax less the target, times what the row counts."""
        x, label, counted, _, inside, place = _tile(logits, labels, n, K, KP, ROWS, IGNORED)
        rate = tl.load(rates + label, mask=counted, other=0.0) * tl.load(grad)
        own = label[:, None] == tl.arange(0, KP)[None, :]
        target = tl.where(own, 1.0 - SMOOTHING, 0.0) + SMOOTHING / K
        e = tl.exp(x)
        slope = (e / tl.sum(e, 1)[:, None] - target) * rate[:, None]
        slope = tl.where(counted[:, None], slope, 0.0)
        tl.store(found + place, slope.to(found.dtype.element_ty), mask=inside)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _clipped(factor, masses, lower, upper):  # type: ignore[no-untyped-def]
        return tl.minimum(tl.maximum(factor * masses, lower), upper)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _scaled(  # type: ignore[no-untyped-def]
        masses, lower, upper, STEPS: tl.constexpr = 64, NEAR: tl.constexpr = 1e-15
    ):
        """Masses scaled between bounds until they sum to one: ``scale_in_steps``."""
        held = masses > 0
        divisor = tl.where(held, masses, 1.0)
        left = tl.min(tl.where(held, lower / divisor, float("inf")), 0)
        right = tl.max(tl.where(held, upper / divisor, 0.0), 0)
        factor = tl.minimum(tl.maximum(1.0 / tl.sum(masses, 0), left), right)
        step = 0
        while step < STEPS:
            scaled = factor * masses
            lacking = 1.0 - tl.sum(_clipped(factor, masses, lower, upper), 0)
            slope = tl.sum(tl.where((scaled > lower) & (scaled < upper), masses, 0.0), 0)
            left = tl.where(lacking >= -NEAR, factor, left)
            right = tl.where(lacking <= NEAR, factor, right)
            newton = factor + lacking / tl.where(slope > 0, slope, 1e-300)
            half = tl.where(left > 0, tl.sqrt(left * right), right / 2)
            factor = tl.where((newton >= left) & (newton <= right), newton, half)
            step = tl.where(tl.abs(lacking) <= NEAR, STEPS, step + 1)
        low = tl.sum(_clipped(left, masses, lower, upper), 0)
        high = tl.sum(_clipped(right, masses, lower, upper), 0)
        way = (1.0 - low) / tl.maximum(high - low, 1e-300)
        way = tl.minimum(tl.maximum(way, 0.0), 1.0)
        return _clipped(left + way * tl.maximum(right - left, 0.0), masses, lower, upper)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _filled(  # type: ignore[no-untyped-def]
        risks, here, lower, upper, ROUNDING: tl.constexpr = ROUNDING
    ):
        """The worst masses between bounds: ``fill``, its level found by halving."""
        room = upper - lower
        budget = 1.0 - tl.sum(lower, 0)
        # Numbers that are not negative are in the order of their bits.
        bits = tl.where(risks > 0, risks, 0.0).to(tl.int64, bitcast=True)
        level = tl.min(tl.where(here, bits, 0x7FF0000000000000), 0)
        over = tl.max(tl.where(here, bits, 0), 0) + 1
        while over - level > 1:
            trial = level + (over - level) // 2
            enough = tl.sum(tl.where(bits >= trial, room, 0.0), 0) >= budget * (1 - ROUNDING)
            level = tl.where(enough, trial, level)
            over = tl.where(enough, over, trial)
        above = tl.where(bits > level, room, 0.0)
        tied = tl.where(bits == level, room, 0.0)
        share = (budget - tl.sum(above, 0)) / tl.maximum(tl.sum(tied, 0), 1e-300)
        return lower + above + tied * tl.minimum(tl.maximum(share, 0.0), 1.0)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _mean_losses(losses, rows, prior):  # type: ignore[no-untyped-def]
        """Risks of the classes; the mean of the others, by priors, where there are no rows."""
        known = rows > 0
        risks = tl.where(known, losses / tl.where(known, rows, 1.0), 0.0)
        prior = tl.where(known, prior, 0.0)
        others = tl.sum(prior * risks, 0) / tl.maximum(tl.sum(prior, 0), 1e-300)
        return tl.where(known, risks, others)

    @triton.jit(  # type: ignore[untyped-decorator, unused-ignore]
        do_not_specialize_on_alignment=list(range(10))
    )
    def move(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0915, PLR0917  as above
        sums, local, table, remembered, state, masses, steps, broken, rates, value,
        K: tl.constexpr, KP: tl.constexpr, WHOLE: tl.constexpr, EXACT: tl.constexpr,
        MEAN: tl.constexpr, RANKS: tl.constexpr, KEPT: tl.constexpr,
        SPAN: tl.constexpr, STEPS_LATE: tl.constexpr,
    ):  # fmt: skip
        """Remember the sums of a batch, move the masses, and say what rows count."""
        at = tl.arange(0, KP)
        here = at < K
        losses = tl.load(sums + at, mask=here, other=0.0)
        rows = tl.load(sums + K + at, mask=here, other=0.0)
        bad = tl.load(sums + 2 * K + at, mask=here, other=0.0)
        stray = tl.load(sums + 3 * K)
        ours = tl.load(local + at, mask=here, other=0.0)
        unsound = tl.sum(tl.load(local + 2 * K + at, mask=here, other=0.0), 0)
        unsound += tl.load(local + 3 * K)
        number = tl.load(steps) + 1
        first = tl.load(broken + at, mask=here, other=0)
        first_stray = tl.load(broken + K)
        total = tl.sum(rows, 0)
        passes = total / tl.load(table)
        fade = tl.exp(-passes / tl.load(table + 1))
        shares = tl.load(table + 3 + at, mask=here, other=1.0)
        prior = tl.load(table + 3 + K + at, mask=here, other=0.0)
        lower = tl.load(table + 3 + 2 * K + at, mask=here, other=0.0)
        upper = tl.load(table + 3 + 3 * K + at, mask=here, other=0.0)
        kept_losses = tl.load(remembered + at, mask=here, other=0.0) * fade + losses
        kept_rows = tl.load(remembered + K + at, mask=here, other=0.0) * fade + rows
        risks = _mean_losses(kept_losses, kept_rows, prior)
        top = tl.max(tl.where(here, risks, 0.0), 0)
        if EXACT:
            worst = tl.where(here & (risks == top), 1.0, 0.0).to(tl.float64)
            found = worst / tl.sum(worst, 0) if WHOLE else _filled(risks, here, lower, upper)
        else:
            start = tl.load(table + 3 + 4 * K + at, mask=here, other=0.0)
            rate = tl.load(table + 2)
            mean = tl.load(state + at, mask=here, other=0.0)
            pushed = mean * tl.exp(rate * (risks - top)) + KEPT * start
            found = pushed / tl.sum(pushed, 0) if WHOLE else _scaled(pushed, lower, upper)
        weights = found / shares
        if MEAN:
            counted = total + tl.sum(bad, 0) + stray
            weights = weights * (RANKS / tl.maximum(counted, 1.0))
        whole = tl.where(unsound > 0, float("nan"), tl.sum(weights * ours, 0))
        # All of what is written below has been read by all.
        tl.debug_barrier()
        tl.store(steps, number)
        tl.store(broken + at, tl.where((bad > 0) & (first == 0), number, first), mask=here)
        tl.store(broken + K, tl.where((stray > 0) & (first_stray == 0), number, first_stray))
        tl.store(remembered + at, kept_losses, mask=here)
        tl.store(remembered + K + at, kept_rows, mask=here)
        if not EXACT:
            share = passes / (SPAN * (STEPS_LATE * passes + tl.load(table + 1)))
            tl.store(state + at, mean + share * (found - mean), mask=here)
        tl.store(masses + at, found, mask=here)
        tl.store(rates + at, weights.to(tl.float32), mask=here)
        tl.store(value, whole.to(tl.float32))
        for part in tl.static_range(3):
            tl.store(sums + part * K + at, tl.zeros((KP,), tl.float64), mask=here)
        tl.store(sums + 3 * K, 0.0)
