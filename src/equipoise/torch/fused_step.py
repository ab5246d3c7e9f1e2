r"""A training step of the loss on CUDA in three launches: rows, masses, gradient.

The first kernel reads the logits once and leaves sums of losses and numbers of rows by class; the
second, of one program, moves what is remembered and the masses; the third reads the logits again
and writes the gradient. The value is a sum over classes, and needs no further look at the rows.
Sets that are not between floors and caps take their tensor operations in place of the second.
"""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any

import torch

from equipoise.torch import fused_kernels as kernels
from equipoise.torch.losses_of_rows import CrossEntropyOfRows
from equipoise.torch.mass_rules import KEPT, SPAN, STEPS_LATE, FillingRule
from equipoise.torch.ranks import n_ranks, sum_over_ranks

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
        torch.compiler.is_compiling()
        or not kernels.AVAILABLE
        or not (logits.is_cuda or _INTERPRETED)
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
    if device < 0 or torch._C._cuda_getDevice() == device:
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
            kernels.set_one[1,](torch.zeros(1, device="cpu" if device < 0 else device))
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
        self.rates, self.value = (
            torch.empty(shape, dtype=torch.float32, device=logits.device) for shape in (k, ())
        )
        self.stream: Any = int  # zero, for the interpreter
        if self.device >= 0:
            self.stream = partial(torch._C._cuda_getCurrentRawStream, self.device)
        kp = 1 << (k - 1).bit_length()
        rows = max(1, _TILE // kp)
        self.grid = -(-self.n // rows)
        tiles = self.device, logits.dtype, labels.dtype, logits.data_ptr() % 16
        constants = k, kp, rows, loss.ignore_index, loss.loss.label_smoothing
        self.sum_rows = kernels.launch_of(kernels.sum_rows, tiles, constants, 4)
        self.write_gradient = kernels.launch_of(kernels.write_gradient, tiles, constants, 4)
        self.move = None
        if type(rule) is FillingRule and not loss.check:
            exact, mean = loss.ascent is None, loss.reduction == "mean"
            choices = k, kp, rule.whole, exact, mean, self.ranks, KEPT, SPAN, STEPS_LATE
            warps = max(1, min(16, kp // 128))
            self.move = kernels.launch_of(kernels.move, self.device, choices, warps)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def step(self, loss: Any, logits: Any, labels: Any) -> tuple[Any, ...]:
        """Remember a batch; what rows of each class count, its labels, and the value."""
        rates, value = torch.empty_like(self.rates), torch.empty_like(self.value)
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
        return self, rates, labels, value


class FusedStep(torch.autograd.Function):  # type: ignore[misc]
    """The value of a step that was taken, and its gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Any, taken: tuple[Any, ...]) -> Any:
        ctx.taken = taken[:2]
        ctx.save_for_backward(logits, taken[2])
        return taken[3]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        logits, labels = ctx.saved_tensors
        plan, rates = ctx.taken
        if torch.is_grad_enabled():
            return _differentiable(plan, logits, labels, rates, grad), None
        found = torch.empty_like(logits)
        if plan.n:
            given = logits, labels, rates, grad, found
            plan.write_gradient(plan.grid, plan.stream(), given, plan.n)
        return found, None


# As ``FusedStep.apply``, without a look at transforms of functions: none is at work here.
_apply = super(torch.autograd.Function, FusedStep).apply


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
