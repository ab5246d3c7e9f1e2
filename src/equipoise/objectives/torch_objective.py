r"""Class risks and derivatives of a linear model whose rows are a torch tensor, on its device.

Rows are copied once: sorted by class, standardised, with the intercept's column. Passes go over
this copy in blocks, in float64 even where it is float32, and only sums by class come back. Few
classes of narrow float32 rows on CUDA are evaluated by one fused pass instead, and very many
classes first in float32, with half of the digits; certificates are computed in float64.

Conventions
-----------
Scores and what is kept of them have shape ``(rows, n_scores)``. Parameters and gradients are NumPy
arrays, or, where they are long, float64 tensors on the device: ``vector`` makes either.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector, on_host, to_numpy
from equipoise.losses.base import ScoreKernel
from equipoise.objectives.base import (
    FEW_DIGITS_PATIENCE,
    SINGLE_ROUNDING,
    Evaluation,
    Objective,
)
from equipoise.objectives.centering import MANY_INTERCEPTS, ShiftMoments
from equipoise.objectives.kept_scores import KeptScores, ScoreRoom
from equipoise.objectives.matrices import Features, with_last_score
from equipoise.objectives.torch_losses import LogisticTensors, SoftmaxTensors, positive, torch

# CPU_VALUES, DEVICE_VALUES: numbers of a block and its temporaries that stay in the cache of a
# core, and that fill a device; DEVICE_SHARE: of its memory, where that is more.
CPU_VALUES, DEVICE_VALUES, DEVICE_SHARE = 1 << 18, 1 << 25, 1 / 128
# HESSIAN_ROWS: of which a Hessian is formed; more would hardly make its steps better.
HESSIAN_ROWS = 1 << 19
# DEVICE_ROWS: a device takes as long for fewer.
DEVICE_ROWS = 1 << 16
# DEVICE_KEPT: share of a device's memory that the scores at a point may take in any case.
DEVICE_KEPT = 1 / 32


@dataclass(frozen=True)
class TensorCut:
    """From where on work is cut, or left on a device."""

    few_classes: int = 64  # up to which blocks end where a class does: sums by class are of blocks
    short_sum: int = 256  # rows whose sum one thread of a device forms
    fused_rows: int = 1 << 15  # fewer are evaluated in float64 as fast as in float32
    long: int = 1500  # parameters and gradients with more numbers stay on the device
    block_rows: int | None = None  # None for what the cache of a core, or a device, has room for
    kept_bytes: int = 1 << 30  # of the scores at a point; where more, they are computed again


@dataclass(frozen=True)
class SortedRows:
    """Rows sorted by class, class ``i`` in ``bounds[i]:bounds[i + 1]``, and each one's share."""

    values: Any  # standardised, the intercept's column last; columns of zeros may follow
    bounds: Indices
    shares: Any  # float64
    weighted: bool  # whether shares differ within a class

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @cached_property
    def labels(self) -> Any:
        counts = np.diff(self.bounds)
        return one_a_row(np.arange(len(counts)), counts, self.shares, dtype=torch().int64)

    def take(self, probabilities: Any) -> "SortedRows":
        """A sample by probabilities, which sum to one at least in every class."""
        ends = (probabilities.cumsum(0) + 0.5).floor()
        index = (ends.diff(prepend=ends.new_zeros(1)) > 0).nonzero()[:, 0]
        counts = on_host(self.labels[index].bincount(minlength=len(self.bounds) - 1))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        shares, values = (self.shares / probabilities)[index], self.values[index]
        totals = np.add.reduceat(to_numpy(shares), bounds[:-1])
        shares *= one_a_row(1 / totals, counts, shares)
        return SortedRows(values, bounds, shares, weighted=True)


def one_a_row(values: Any, counts: Indices, like: Any, dtype: Any = None) -> Any:
    """A value a class as a tensor of one a row, on the device of ``like``."""
    repeats = like.new_tensor(counts, dtype=torch().int64)
    class_values = like.new_tensor(values, dtype=dtype or like.dtype)
    return class_values.repeat_interleave(repeats, output_size=int(counts.sum()))


def _sums(values: Any, counts: Any) -> Any:
    """Sums of so many rows each; the counts are not looked at, for which a device would wait."""
    return torch().segment_reduce(values, "sum", lengths=counts, unsafe=True)


def _room(device: Any) -> int:
    """Values of a block and its temporaries on a device: more where there is much memory."""
    if device.type != "cuda":
        return CPU_VALUES if device.type == "cpu" else DEVICE_VALUES
    memory = torch().cuda.get_device_properties(device).total_memory
    return max(DEVICE_VALUES, int(memory * DEVICE_SHARE) // 8)


def _most_kept(device: Any, kept_bytes: int) -> float:
    """Bytes that the scores at one point may take."""
    if device.type != "cuda":
        return kept_bytes
    share = torch().cuda.get_device_properties(device).total_memory * DEVICE_KEPT
    return float(max(kept_bytes, share))


class TorchObjective(Objective):
    """Class risks of a linear model with the cross-entropy, on a tensor's device."""

    def __init__(
        self,
        layout: Features,
        kernel: ScoreKernel,
        rows: SortedRows,
        cut: TensorCut = TensorCut(),
        *,
        fused: bool,
        exact: "TorchObjective | None" = None,
    ) -> None:
        super().__init__(layout, kernel, len(rows.bounds) - 1)
        self._exact, self._dtype = exact, torch().float32 if exact else torch().float64
        self.rows, self.n_rows, self._cut, self._fused = rows, rows.n_rows, cut, fused
        self._long = layout.size > cut.long
        self._tensors = SoftmaxTensors() if kernel.n_scores > 1 else LogisticTensors()
        self.precision = np.float64 if rows.values.dtype == torch().float64 else np.float32
        per_row = layout.width + 4 * kernel.n_scores
        room = _room(rows.values.device)
        self._block_rows = cut.block_rows or max(256, room // per_row)
        shape, dtype, device = (rows.n_rows, kernel.n_scores), self._dtype, rows.values.device
        fits = shape[0] * shape[1] * dtype.itemsize <= _most_kept(device, cut.kept_bytes)
        make = partial(torch().empty, shape, dtype=dtype, device=device)
        self._room = ScoreRoom(make, fits=fits)
        self._by_class = self.n_classes <= cut.few_classes
        self._known: tuple[Evaluation, Any] | None = None  # what the last pass found besides risks
        self._counted: dict[tuple[int, int], tuple[int, Any]] = {}  # rows by class, of blocks
        if rows.values.device.type != "cpu":
            self.coarse_rows = DEVICE_ROWS
        if self._pass is not None:
            self.patience = FEW_DIGITS_PATIENCE
        if exact is not None:
            self.patience, self.rounding = FEW_DIGITS_PATIENCE, SINGLE_ROUNDING

    @cached_property
    def _pass(self) -> Any:
        """The pass in fewer digits; None where there is none."""
        if not self._fused:
            return None
        from equipoise.objectives import fused_pass  # it loads Triton

        values, bounds = self.rows.values, self.rows.bounds
        if not fused_pass.fits(values, self.n_classes):
            return None
        weights = None
        if self.rows.weighted:
            scale = self.rows.shares.new_tensor(np.diff(bounds))[self.rows.labels]
            weights = (self.rows.shares * scale).to(values)
        return fused_pass.FusedPass(values, bounds, weights)

    def vector(self, values: Vector) -> Any:
        return self._tensor(values) if self._long else values

    def unpack(self, theta: Vector) -> tuple[Matrix, Vector]:
        return super().unpack(to_numpy(theta))

    def evaluate(self, theta: Vector) -> Evaluation:
        if self._pass is not None:
            self._known = self.evaluate_with_gradients(theta)
            return self._known[0]
        self.n_evaluations += 1
        return self._evaluated(theta)

    def exactly(self, state: Evaluation) -> Evaluation:
        return self._evaluated(state.theta) if state.kept is None else state

    def rougher(self) -> "TorchObjective | None":
        if self._exact is not None or self._pass is not None or self.kernel.n_scores == 1:
            return None
        rows = self.features, self.kernel, self.rows, self._cut
        return self._like(TorchObjective(*rows, fused=False, exact=self))

    def sharper(self) -> "TorchObjective | None":
        if self._pass is None:
            return self._exact
        out = TorchObjective(self.features, self.kernel, self.rows, self._cut, fused=False)
        out.n_evaluations = self.n_evaluations
        return self._like(out)

    def _evaluated(self, theta: Vector) -> Evaluation:
        """Risks, summed in float64, and what is kept."""
        raw, sums = self._unfolded(theta), []

        def at(block: slice, room: Any = None) -> tuple[Any, Any]:
            scores = self._load(block) @ raw.T
            return self._tensors.losses(scores, self.rows.labels[block], room)

        kept = KeptScores(self._room, lambda block: at(block)[1])
        room = kept.write()
        for block in self._blocks():
            losses = at(block, None if room is None else room[block])[0]
            sums.append(losses * self.rows.shares[block])
        return Evaluation(theta, self._class_sums(sums) + self.offsets, kept)

    def blur(self, theta: Vector) -> float:  # rows are stored in units without it
        return 0.0

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Any]:
        if self._pass is None:
            state = self.evaluate(theta)
            return state, self.class_gradients(state)
        self.n_evaluations += 1
        risks, gradients = self._pass(self.features.unfold(to_numpy(theta)))
        return Evaluation(theta, risks + self.offsets, None), self._handed(gradients)

    def class_gradients(self, state: Evaluation, spent: Any = None) -> Any:
        if self._known is not None and self._known[0] is state:
            return self._known[1]
        if state.kept is None:
            assert self._pass is not None
            return self._handed(self._pass(self.features.unfold(to_numpy(state.theta)))[1])
        out = self._zeros(self.n_classes, self._shape[0], self._padded)
        shares = self.rows.shares.to(self._dtype)
        for block in self._blocks():
            rows = self._load(block)
            kept, labels = state.kept[block], self.rows.labels[block]
            residual = self._tensors.residual(kept, labels, shares[block])
            for i, part in self._classes_in(block):
                out[i] += residual[part].T @ rows[part]
        return self._handed(out[..., : self._shape[1]].reshape(self.n_classes, -1))

    def gradient(self, state: Evaluation, mass: Vector) -> Any:
        if state.kept is None:
            gradients = self.class_gradients(state)
            return (self._tensor(mass) if self._long else mass) @ gradients
        scale, total = self._scale(mass), self._zeros(self._shape[0], self._padded)
        for block in self._blocks():
            total += state.kept[block].T @ (self._load(block) * scale[block][:, None])
        # Not taken off the probabilities, which would be two more passes over all scores.
        total -= self._tensors.targets(self._class_means * self._rounded(mass)[:, None])
        return self._handed(total[:, : self._shape[1]].reshape(-1))

    @cached_property
    def _class_means(self) -> Any:
        """Mean rows of the classes, by their shares."""
        shares = self.rows.shares
        out = shares.new_zeros(self.n_classes, self._padded)
        for block in self._blocks():
            classes, sums = self._class_rows(block, shares[block])
            out[classes] += sums @ self.rows.values[block].to(shares)
        return out.to(self._dtype)

    def _class_rows(self, block: slice, weights: Any) -> tuple[slice, Any]:
        """The classes of a block, which lie side by side, and a matrix that sums its rows by class.

        Weighted; as one product it adds in a fixed order.
        """
        first, counts = self._counts(block)
        out = weights.new_zeros((len(counts), len(weights)))
        out.scatter_(0, self.rows.labels[block][None] - first, weights[None])
        return slice(first, first + len(counts)), out

    def hessian_product(self, state: Evaluation, mass: Vector, direction: Vector) -> Any:
        kept, scale, along = self.exactly(state).kept, self._scale(mass), self._unfolded(direction)
        total = self._zeros(self._shape[0], self._padded)
        for block in self._blocks():
            rows = self._load(block)
            change = self._tensors.hessian_product(kept[block], scale[block], rows @ along.T)
            total += change.T @ rows
        return self._handed(total[:, : self._shape[1]].reshape(-1))

    @property
    def keeps_probabilities(self) -> bool:
        """Yes: only the cross-entropy has tensors."""
        return True

    def hessian_diagonal(self, state: Evaluation, mass: Vector) -> Any:
        kept, scale = self.exactly(state).kept, self._scale(mass)
        total = self._zeros(self._shape[0], self._padded)
        for block in self._blocks():
            p = kept[block]
            total += (p * (1 - p) * scale[block][:, None]).T @ self._load(block).square()
        return self._handed(total[:, : self._shape[1]].reshape(-1))

    def hessian(self, theta: Vector, mass: Vector, *, single: bool = False) -> Matrix:
        if self.n_rows > 2 * HESSIAN_ROWS:
            return self._few.hessian(theta, mass)
        raw, scale = self._unfolded(theta), self._scale(mass)
        free = self._shape[0] - (self._shape[0] > 1)
        total = self._zeros(free * self._shape[1], free * self._shape[1])
        step = max(256, self._block_rows * self._shape[1] // self.size)
        for first in range(0, self.n_rows, step):  # whatever the classes
            block = slice(first, first + step)
            rows = self._load(block)
            kept = self._tensors.losses(rows @ raw.T, self.rows.labels[block])[1]
            total += self._tensors.hessian(rows[:, : self._shape[1]], kept, scale[block])
        matrix = to_numpy(total)
        return matrix if self._shape[0] == 1 else with_last_score(self.features, matrix)

    @cached_property
    def _few(self) -> "TorchObjective":
        """The rows that a Hessian is formed of."""
        return self.thin(max(1, HESSIAN_ROWS // self.n_classes))

    def thin(self, rows_per_class: int) -> "TorchObjective":
        rows = self.rows.take((rows_per_class * self._sizes).clamp(max=1.0))
        fused = self._pass is not None
        return self._like(TorchObjective(self.features, self.kernel, rows, self._cut, fused=fused))

    @cached_property
    def _sizes(self) -> Any:
        """Sizes of rows as in memory; they sum to one in each class."""
        rows, shares = self.rows, self.rows.shares
        blocks = list(self._blocks())
        means = sum(shares[block].to(rows.values) @ rows.values[block].square() for block in blocks)
        units = 1 / (means / self.n_classes).clamp(min=torch().finfo(rows.values.dtype).tiny)
        lengths = torch().cat([rows.values[block].square() @ units for block in blocks])
        out = lengths.nan_to_num(nan=rows.n_rows, posinf=rows.n_rows).to(shares) * shares
        sums = self._class_sums([out[block] for block in self._blocks()])
        # Rows of zeros all have the same length.
        known = sums > np.finfo(np.float64).tiny
        factors = np.divide(1.0, sums, out=np.zeros_like(sums), where=known)
        parts = [one_a_row(each, np.diff(rows.bounds), shares) for each in (factors, 2.0 - known)]
        return (out * parts[0] + shares * parts[1]) / 2

    def growths(self, state: Evaluation, shift: Vector) -> Vector:
        kept, by = self.exactly(state).kept, self._rounded(shift)
        return self._class_sums([self._growth(kept[at], at, by) for at in self._reads(kept)])

    def moments_at(self, state: Evaluation, shift: Vector, mass: Vector) -> ShiftMoments:
        kept, by, scale = self.exactly(state).kept, self._rounded(shift), self._scale(mass)
        many, grown, sums = len(shift) > MANY_INTERCEPTS, [], []
        for block in self._blocks():
            here = kept[block]
            if np.any(shift):
                grown.append(self._growth(here, block, by))
                here = self._tensors.moved(here, by)
            mean, curvature = self._tensors.moments(here, scale[block], diagonal=many)
            sums.append(torch().cat([mean, curvature.reshape(-1)]))
        growths = self._class_sums(grown) if grown else np.zeros(self.n_classes)
        total = sum(sums)
        slope = to_numpy(total[: len(shift)]) - self._tensors.own(mass)
        curvature = total[len(shift) :].reshape((-1,) if many else (len(shift), -1))
        few = len(shift) <= self._cut.few_classes
        return ShiftMoments(growths, slope, to_numpy(curvature) if few else curvature)

    def risk_gradients(self, state: Evaluation, shift: Vector) -> tuple[Vector, Any]:
        kept, by = self.exactly(state).kept, self._rounded(shift)
        out, grown = self._zeros(self.n_classes, self.n_classes), []
        for block in self._blocks():
            here, labels, shares = kept[block], self.rows.labels[block], self.rows.shares[block]
            sums = positive(here @ by.exp())
            grown.append((sums.log() - by[labels]) * shares)
            classes, by_class = self._class_rows(block, (shares / sums).to(self._dtype))
            out[classes] += by_class @ here
        out *= by.exp()
        # Rows sum to zero: a small difference to one keeps its digits as a sum of the others.
        diagonal = out.diagonal().zero_()
        diagonal.sub_(out.sum(1))
        return self._class_sums(grown), out

    def mean_probabilities(self, state: Evaluation, shift: Vector, mass: Vector) -> Vector:
        kept, odds, scale = self.exactly(state).kept, self._rounded(shift).exp(), self._scale(mass)
        return to_numpy(self._weighted(kept, odds, scale, lambda sums, _: 1 / sums) * odds)

    def intercept_product(
        self, state: Evaluation, shift: Vector, mass: Vector
    ) -> Callable[[Vector], Vector] | None:
        if self._shape[0] == 1:
            return None
        kept, odds, scale = self.exactly(state).kept, self._rounded(shift).exp(), self._scale(mass)
        mean = self._weighted(kept, odds, scale, lambda sums, _: 1 / sums) * odds

        def product(direction: Vector) -> Vector:
            along = self._rounded(direction)
            moved = self._weighted(
                kept, odds, scale, lambda sums, here: here @ (odds * along) / sums**2
            )
            return to_numpy(mean * along - odds * moved)

        return product

    def _weighted(self, kept: Any, odds: Any, scale: Any, weight: Callable[[Any, Any], Any]) -> Any:
        """What is kept, times a weight of each row from its sum of odds, summed over rows."""
        total = self._zeros(self.n_classes)
        for block in self._reads(kept):
            here = kept[block]
            total += (scale[block] * weight(positive(here @ odds), here)) @ here
        return total

    def shifted(self, state: Evaluation, shift: Vector, theta: Vector, risks: Vector) -> Evaluation:
        by = self._rounded(shift)
        kept, room = self.exactly(state).kept.changed(lambda part: self._tensors.moved(part, by))
        if room is not None:
            for block in self._reads(kept):
                self._tensors.moved(room[block], by, room[block])
        return Evaluation(theta, risks, kept)

    def _with_step(self, theta: Any, step: Vector) -> Any:
        if not self._long:
            return super()._with_step(theta, step)
        out = theta.clone()
        out.view(self._shape)[:, -1] += self._tensor(step)
        return out

    @property
    def _shape(self) -> tuple[int, int]:
        return self.features.n_scores, self.features.width

    @property
    def _padded(self) -> int:
        """The width of rows with columns of zeros: products of odd ones take half as long again."""
        return int(self.rows.values.shape[1])

    def _tensor(self, values: Any) -> Any:
        """Numbers on the device, in the precision of sums."""
        return torch().as_tensor(values).to(self.rows.shares)

    def _rounded(self, values: Any) -> Any:
        """Numbers on the device, in the precision of passes."""
        return torch().as_tensor(values).to(self.rows.shares.device, self._dtype)

    def _zeros(self, *shape: int) -> Any:
        return self.rows.shares.new_zeros(shape, dtype=self._dtype)

    def _unfolded(self, theta: Vector) -> Any:
        coefficients = self._rounded(theta).reshape(self._shape)
        return torch().nn.functional.pad(coefficients, (0, self._padded - coefficients.shape[1]))

    def _handed(self, gradients: Any) -> Any:
        """Gradients as solvers take them."""
        return self._tensor(gradients) if self._long else to_numpy(gradients)

    def _load(self, block: slice) -> Any:
        return self.rows.values[block].to(self._dtype)

    def _scale(self, mass: Vector) -> Any:
        """Each row's share of the weighted risk."""
        return (self.rows.shares * self._tensor(mass)[self.rows.labels]).to(self._dtype)

    def _growth(self, kept: Any, block: slice, by: Any) -> Any:
        growth = self._tensors.growth(kept, self.rows.labels[block], by)
        return growth * self.rows.shares[block]

    def _class_sums(self, blocks: list[Any]) -> Vector:
        """Values of all rows, a tensor a block, summed by class."""
        if self._by_class:
            starts = [block.start for block in self._blocks()]
            owners = np.searchsorted(self.rows.bounds, starts, side="right") - 1
            sums = to_numpy(torch().stack([values.sum() for values in blocks]))
            totals = np.bincount(owners, weights=sums, minlength=self.n_classes)
            return totals.astype(np.float64, copy=False)
        values = blocks[0] if len(blocks) == 1 else torch().cat(blocks)
        if int(np.diff(self.rows.bounds).max()) > self._cut.short_sum:
            return np.add.reduceat(to_numpy(values), self.rows.bounds[:-1])
        _, counts = self._counts(slice(0, self.n_rows))
        return to_numpy(_sums(values, counts))

    def _classes_in(self, block: slice) -> Iterator[tuple[int, slice]]:
        """Classes with rows in a block, and where in it these are."""
        bounds = self.rows.bounds
        first = int(np.searchsorted(bounds, block.start, side="right")) - 1
        for i in range(first, self.n_classes):
            if bounds[i] >= block.stop:
                return
            start, stop = max(bounds[i], block.start), min(bounds[i + 1], block.stop)
            yield i, slice(start - block.start, stop - block.start)

    def _counts(self, block: slice) -> tuple[int, Any]:
        """The first class with rows in a block, and how many it and those after it have there."""
        place = block.start, block.stop
        if place not in self._counted:
            counts = np.diff(self.rows.bounds.clip(block.start, block.stop))
            there = np.flatnonzero(counts)
            present_counts = torch().as_tensor(counts[there[0] : there[-1] + 1])
            self._counted[place] = int(there[0]), present_counts.to(self.rows.shares.device)
        return self._counted[place]

    def _reads(self, kept: Any) -> Iterator[slice]:
        """Blocks for passes that only read what is kept: a single one where memory holds it."""
        return self._blocks(self.n_rows if self._room.belongs_to(kept) else None)

    def _blocks(self, step: int | None = None) -> Iterator[slice]:
        step = step or self._block_rows
        for start, stop in pairwise(self.rows.bounds if self._by_class else [0, self.n_rows]):
            for first in range(start, stop, step):
                yield slice(first, min(first + step, stop))
