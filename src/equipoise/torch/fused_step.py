r"""A training step of the loss on CUDA in three launches: rows, masses, gradient.

The first kernel reads the logits once and leaves sums of losses and numbers of rows by class; the
second, of one program, moves what is remembered and the masses; the third reads the logits again
and writes the gradient. The value is a sum over classes, and needs no further look at the rows.
Sets that are not between floors and caps take their tensor operations in place of the second.

Conventions
-----------
``sums`` is a vector in double precision, zero between steps: for each class the losses and the
number of sound rows, the number of broken ones, and at last that of targets that are no class.
``rates`` are what rows of each class count in the value. ``KP`` is a power of two, at least ``K``.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch

from equipoise.sets.filling import ROUNDING
from equipoise.torch.losses_of_rows import CrossEntropyOfRows
from equipoise.torch.mass_rules import KEPT, FillingRule
from equipoise.torch.ranks import n_ranks, sum_over_ranks

try:
    import triton
    import triton.language as tl

    if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 4):
        triton = tl = None  # compiled kernels took other arguments
except ImportError:  # without Triton, steps are plain tensor operations
    triton = tl = None

# Entries of a tile of rows, and the most classes of which one program has all.
_TILE, MOST_CLASSES = 4096, 4096
_DTYPES = {torch.float32, torch.bfloat16, torch.float16}
_LABELS = {torch.int64, torch.int32}
_TYPES = {torch.Tensor, torch.nn.Parameter}
# Where Triton's interpreter stands in for a GPU.
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def fused_loss(loss: Any, logits: Any, targets: Any) -> Any:
    """The loss of a batch, of which its module remembers what it must; None where no step fits.

    What a step depends on is compared with the last one, and only what is new is looked at again.
    """
    if (
        not triton
        or not (logits.is_cuda or _INTERPRETED)
        or torch.compiler.is_compiling()
        or type(logits) not in _TYPES
        or torch._C._are_functorch_transforms_active()
    ):
        return None
    if logits.dim() != 2 or not (logits.is_contiguous() and targets.is_contiguous()):
        logits, targets = (rows.contiguous() for rows in loss._rows(logits, targets))
    device, masses = logits.get_device(), loss._buffers["masses"]
    kind = (
        logits.shape, logits.dtype, device, logits.data_ptr() % 16,
        targets.shape, targets.dtype, targets.get_device(), masses.dtype, masses.get_device(),
        loss.training, loss.window, loss.ascent, loss.reduction, loss.check, loss.ignore_index,
        loss.loss, n_ranks(loss.process_group), torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    plan = loss._plan
    if plan is None or plan.kind != kind:
        loss._rows(logits, targets)
        plan = loss._plan = Plan(kind, loss, logits, targets)
    if not plan.fits:
        return None
    if device < 0 or torch.cuda.current_device() == device:
        return _apply(logits, plan.step(loss, logits, targets))
    with torch.cuda.device(device):
        return _apply(logits, plan.step(loss, logits, targets))


def fits(loss: Any, logits: Any, labels: Any) -> bool:
    """Whether a step can be taken here: training by cross-entropy on CUDA.

    Compiled programs take plain tensors; so do deterministic ones, for rows are added in any order.
    """
    masses = loss._buffers["masses"]
    return bool(
        loss.training
        and logits.dtype in _DTYPES
        and labels.dtype in _LABELS
        and not torch.are_deterministic_algorithms_enabled()
        and logits.get_device() == labels.get_device() == masses.get_device()
        and type(loss.loss) is CrossEntropyOfRows
        and loss.reduction != "none"
        and logits.shape[1] <= MOST_CLASSES
        and logits.shape[0] < 2**31
        and masses.dtype == torch.float64
        and _works(logits.get_device())
    )


@cache
def _works(device: int) -> bool:
    """Whether Triton can launch a kernel on a device: it needs a C compiler, and a GPU it knows."""
    try:
        with torch.cuda.device(device):
            _set_one[1,](torch.zeros(1, device="cpu" if device < 0 else device))
    except Exception:
        return False
    return True


class Plan:
    """A step for batches of one kind: its kernels, and what they take besides the batch.

    It is made again where it is missing: copies and stored modules have None in its place.
    """

    def __init__(self, kind: Any, loss: Any, logits: Any, labels: Any) -> None:
        self.kind, self.fits = kind, fits(loss, logits, labels)
        if not self.fits:
            return
        self.device = logits.get_device()
        self.n, k = logits.shape
        self.loss, self.ignore_index = loss.loss, loss.ignore_index
        self.ranks, rule = n_ranks(loss.process_group), loss.rule
        self.table, self.sums = _held(loss)
        self.like = {"dtype": torch.float32, "device": logits.device}
        kp = 1 << (k - 1).bit_length()
        rows = max(1, _TILE // kp)
        self.grid = -(-self.n // rows)
        tiles = self.device, logits.dtype, labels.dtype, logits.data_ptr() % 16
        constants = k, kp, rows, loss.ignore_index, loss.loss.label_smoothing
        self.sum_rows = _launch(_sum_rows, tiles, constants, 4)
        self.write_gradient = _launch(_write_gradient, tiles, constants, 4)
        self.move = None
        if type(rule) is FillingRule and not loss.check:
            exact, mean = loss.ascent is None, loss.reduction == "mean"
            constants = k, kp, rule.whole, exact, mean, self.ranks, KEPT
            self.move = _launch(_move, self.device, constants, max(1, min(16, kp // 128)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def stream(self) -> Any:
        return torch._C._cuda_getCurrentRawStream(self.device) if self.device >= 0 else 0

    def step(self, loss: Any, logits: Any, labels: Any) -> tuple[Any, ...]:
        """Remember a batch; its labels, what rows of each class count, and the value."""
        rates = torch.empty(logits.shape[1], **self.like)
        value = torch.empty((), **self.like)
        stream, sums, held = self.stream(), self.sums, loss._buffers
        if self.n:
            self.sum_rows(self.grid, stream, (logits, labels, sums), self.n)
        local = sums
        if self.ranks > 1:
            loss._agree()
            local = sums.clone()
            sum_over_ranks(sums, loss.process_group)
        if self.move is None:
            _move_by_tensors(loss, sums, local, rates, value)
        else:
            self.move(
                1, stream,
                (sums, local, self.table, held["remembered"], held["state"], held["masses"],
                 held["step"], held["broken"], rates, value),
            )  # fmt: skip
        return self, labels, rates, value


class FusedStep(torch.autograd.Function):  # type: ignore[misc]
    """The value of a step that was taken, and its gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Any, taken: tuple[Any, ...]) -> Any:
        ctx.plan, labels, ctx.rates, value = taken
        ctx.save_for_backward(logits, labels)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        logits, labels = ctx.saved_tensors
        plan, rates = ctx.plan, ctx.rates
        if torch.is_grad_enabled():
            return _differentiable(plan, logits, labels, rates, grad), None
        found = torch.empty_like(logits)
        if plan.n:
            given = logits, labels, rates, grad, found
            plan.write_gradient(plan.grid, plan.stream(), given, plan.n)
        return found, None


# As ``FusedStep.apply``, without a look at transforms of functions: none is at work here.
_apply = super(torch.autograd.Function, FusedStep).apply


class Launch:
    """A kernel with its constants; once compiled, it is launched without a look at its arguments.

    That look, and one at each pointer, take the host longer than all else in a launch.
    """

    def __init__(self, jitted: Any, constants: tuple[Any, ...], warps: int) -> None:
        self.jitted, self.constants, self.warps = jitted, constants, warps
        self.compiled: Any = None

    def __call__(self, grid: int, stream: int, tensors: tuple[Any, ...], *numbers: int) -> None:
        if self.compiled:
            run, function, packed = self.compiled
            places = map(torch.Tensor.data_ptr, tensors)
            run(
                grid, 1, 1, stream, function, packed, None, None, None,
                *places, *numbers, *self.constants,
            )  # fmt: skip
            return
        given = *tensors, *numbers, *self.constants
        found = self.jitted[grid,](*given, num_warps=self.warps)
        if found is not None:  # as the interpreter has it
            self.compiled = found.run, found.function, found.packed_metadata


@cache
def _launch(jitted: Any, kind: Any, constants: tuple[Any, ...], warps: int) -> Launch:
    """The kernel; ``kind`` and ``constants`` are all that a compiled one depends on."""
    return Launch(jitted, constants, warps)


def _held(loss: Any) -> tuple[Any, Any]:
    """Constants of the loss in one vector, and zeros for sums; kept as long as they are valid."""
    key = loss.window, loss.ascent, loss.masses.device
    if loss._fused is None or loss._fused[0] != key:
        rule, n_rows = loss.rule, loss.n_rows.reshape(1)
        bounds = [rule.lower, rule.upper, rule.start] if type(rule) is FillingRule else []
        numbers = [n_rows, *(torch.full_like(n_rows, number or 0.0) for number in key[:2])]
        table = torch.cat([*numbers, loss.shares, loss.prior, *bounds])
        loss._fused = key, table, table.new_zeros(3 * len(loss.masses) + 1)
    _, table, sums = loss._fused
    return table, sums


def _move_by_tensors(loss: Any, sums: Any, local: Any, rates: Any, value: Any) -> None:
    """What the second kernel does, by the tensor operations of the loss."""
    k, ours, joint = len(rates), local.clone(), sums.clone()
    sums.zero_()
    weights, total = loss._remember(joint[: 2 * k].reshape(2, k), joint[2 * k :])
    if loss.reduction == "mean":
        weights = weights * (n_ranks(loss.process_group) / total.clamp_min(1.0))
    rates.copy_(weights)
    whole = (weights * ours[:k]).sum()
    value.copy_(torch.where((ours[2 * k :] > 0).any(), torch.nan, whole))


def _differentiable(plan: Plan, logits: Any, labels: Any, rates: Any, grad: Any) -> Any:
    """The gradient by tensor operations, where it is to be differentiated in turn."""
    counted = (labels != plan.ignore_index) & (labels >= 0) & (labels < len(rates))
    labels = torch.where(counted, labels, 0)
    losses = torch.where(counted, plan.loss(logits.float(), labels), 0.0) * rates[labels]
    return torch.autograd.grad(losses.sum(), logits, grad, create_graph=True)[0]


if triton:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _set_one(place):  # type: ignore[no-untyped-def]
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
    def _sum_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  as Triton has it
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
    def _write_gradient(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  as above
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
    def _move(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0915, PLR0917  as above
        sums, local, table, remembered, state, masses, steps, broken, rates, value,
        K: tl.constexpr, KP: tl.constexpr, WHOLE: tl.constexpr, EXACT: tl.constexpr,
        MEAN: tl.constexpr, RANKS: tl.constexpr, KEPT: tl.constexpr,
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
            rate = tl.load(table + 2) * passes
            pushed = tl.load(state + at, mask=here, other=0.0) * tl.exp(rate * (risks - top))
            pushed += KEPT * start
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
            tl.store(state + at, found, mask=here)
        tl.store(masses + at, found, mask=here)
        tl.store(rates + at, weights.to(tl.float32), mask=here)
        tl.store(value, whole.to(tl.float32))
        for part in tl.static_range(3):
            tl.store(sums + part * K + at, tl.zeros((KP,), tl.float64), mask=here)
        tl.store(sums + 3 * K, 0.0)
