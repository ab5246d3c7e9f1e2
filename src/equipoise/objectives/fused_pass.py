r"""All class risks and gradients in one read of the rows: a Triton kernel for float32 on CUDA.

A program reads the rows of one class in blocks. While a block is in registers it forms scores,
softmax and residuals, and multiplies these with the rows again. Tensor cores read only the first 11
bits of a float32; every product is made of three, of the leading and of the following bits of its
factors (Ootomo and Yokota 2022), so that 22 count. They also cut where they should round when they
add up: sums over more than a block are formed outside of them, and those over programs in float64.

Conventions
-----------
``rows`` is a contiguous float32 tensor, sorted by class, whose width is a multiple of four.
``parts`` are the parameters as three float32 matrices ``(columns, scores)`` of 11 bits each.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix, NDArray, Vector
from equipoise.extras import require

try:
    import triton
    import triton.language as tl
except ImportError:  # without Triton, rows are evaluated by plain torch
    triton = tl = None

# What the kernel was measured to be fastest with: rows in a block, rows of a program, and warps.
BLOCK, CHUNK, WARPS, STAGES = 32, 2048, 2, 3
# The widest rows and the most scores of which a block stays in registers.
MOST_COLUMNS, MOST_SCORES = 128, 16
# Bits of a float32 that tensor cores read, and half of the last of them, to round to it.
_READ, _HALF = np.int32(-8192), np.int32(4096)


def fits(rows: Any, n_classes: int) -> bool:
    """Whether the kernel takes such rows: a float32 tensor on CUDA, narrow, of few classes."""
    narrow = rows.shape[1] <= MOST_COLUMNS and n_classes <= MOST_SCORES
    return bool(triton and narrow and rows.is_cuda and str(rows.dtype) == "torch.float32")


@dataclass(frozen=True)
class FusedPass:
    """The rows of a problem, cut into the pieces that programs read.

    Class ``i`` holds the rows ``bounds[i]:bounds[i + 1]``; ``weights``, where there are any, have a
    mean of one in every class.
    """

    rows: Any
    bounds: Indices
    weights: Any = None

    @property
    def n_classes(self) -> int:
        return len(self.bounds) - 1

    @property
    def columns(self) -> int:
        """Columns of a block: a power of two, of which tensor cores take sixteen at least."""
        return max(16, 1 << (int(self.rows.shape[1]) - 1).bit_length())

    @property
    def scores(self) -> int:
        return 8 if self.n_classes <= 8 else MOST_SCORES

    @cached_property
    def pieces(self) -> tuple[Any, Any, int]:
        """Start, end and class of every piece, a matrix that averages them, and their number."""
        cuts = [
            (start, min(start + CHUNK, stop), owner)
            for owner, (first, stop) in enumerate(pairwise(self.bounds.tolist()))
            for start in range(first, stop, CHUNK)
        ]
        table = np.array(cuts, dtype=np.int32)
        sums = (table[:, 2] == np.arange(self.n_classes)[:, None]) / np.diff(self.bounds)[:, None]
        torch, device = require("torch", extra="torch"), self.rows.device
        return torch.from_numpy(table).to(device), torch.from_numpy(sums).to(device), len(cuts)

    def __call__(self, unfolded: Matrix) -> tuple[Vector, Matrix]:
        """Class risks, and class gradients of shape ``(n_classes, n_scores * width)``."""
        torch = require("torch", extra="torch")
        table, sums, count = self.pieces
        shape, device = (self.scores, self.columns), self.rows.device
        parts = torch.from_numpy(self._parts(unfolded)).to(device)
        by_piece = torch.empty((count, 1 + shape[0] * shape[1]), dtype=torch.float64, device=device)
        with torch.cuda.device(device):
            weights = self.rows if self.weights is None else self.weights
            _pass[(count,)](self.rows, parts, weights, table, by_piece, **self._constants)
        by_class = (sums @ by_piece).cpu().numpy()
        n_scores, width = unfolded.shape
        by_score = by_class[:, 1:].reshape(-1, *shape)[:, :, :width]
        used = by_score[:, 1:2] if n_scores == 1 else by_score[:, :n_scores]
        return by_class[:, 0].copy(), used.reshape(self.n_classes, -1)

    @property
    def _constants(self) -> dict[str, Any]:
        """What the kernel is compiled for."""
        return {
            "D": self.rows.shape[1],
            "DP": self.columns,
            "K": self.n_classes,
            "KP": self.scores,
            "BLOCK": BLOCK,
            "WEIGHTED": self.weights is not None,
            "num_warps": WARPS,
            "num_stages": STAGES,
        }

    def _parts(self, unfolded: Matrix) -> NDArray[np.float32]:
        """A parameter in three parts of 11 bits; one score is that of the second of two classes."""
        n_scores, width = unfolded.shape
        left = np.zeros((self.columns, self.scores))
        left[:width, 1 if n_scores == 1 else 0 : 2 if n_scores == 1 else n_scores] = unfolded.T
        parts = np.empty((3, *left.shape), np.float32)
        for part in parts:
            bits = left.astype(np.float32).view(np.int32)
            part[:] = ((bits + _HALF) & _READ).view(np.float32)
            left = left - part
        return parts


if triton:

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _leading(x):  # type: ignore[no-untyped-def]
        """Rounded to the bits that tensor cores read."""
        return ((x.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def _pass(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917  Triton knows no structures
        values,
        parts,
        weights,
        pieces,
        by_piece,
        D: tl.constexpr,
        DP: tl.constexpr,
        K: tl.constexpr,
        KP: tl.constexpr,
        BLOCK: tl.constexpr,
        WEIGHTED: tl.constexpr,
    ):
        """Risk and gradient of a piece: rows of ``D`` columns in ``DP``, ``K`` scores in ``KP``."""
        piece = tl.program_id(0)
        start = tl.load(pieces + 3 * piece)
        n = tl.load(pieces + 3 * piece + 1) - start
        cols, scores, rows = tl.arange(0, DP), tl.arange(0, KP), tl.arange(0, BLOCK)
        place = cols[:, None] * KP + scores[None, :]
        w0 = tl.load(parts + place)
        w1 = tl.load(parts + DP * KP + place)
        w2 = tl.load(parts + 2 * DP * KP + place)
        at_label = (scores == tl.load(pieces + 3 * piece + 2))[None, :]
        total = tl.zeros((DP, KP), tl.float32)
        risk = tl.zeros((BLOCK,), tl.float32)
        base = values + start.to(tl.int64) * D
        for first in range(0, n, BLOCK):
            at = first + rows
            here = at < n
            inside = here[:, None] & (cols < D)[None, :]
            z = tl.load(base + at[:, None] * D + cols[None, :], mask=inside, other=0.0)
            z0 = _leading(z)
            z1 = z - z0
            s = tl.dot(z1, w0, input_precision="tf32")
            s = tl.dot(z0, w2, s, input_precision="tf32")
            s = tl.dot(z0, w1, s, input_precision="tf32")
            s = tl.dot(z0, w0, s, input_precision="tf32")
            s = tl.where((scores < K)[None, :], s, float("-inf"))
            top = tl.max(s, 1)
            mine = tl.sum(tl.where(at_label, s, 0.0), 1)
            e = tl.exp(s - top[:, None])
            whole = tl.sum(e, 1)
            if WEIGHTED:
                weight = tl.load(weights + start + at, mask=here, other=0.0)
            else:
                weight = tl.where(here, 1.0, 0.0)
            risk += (tl.log(whole) + (top - mine)) * weight
            r = tl.where(at_label, weight[:, None], 0.0) - e * (weight / whole)[:, None]
            r0 = _leading(r)
            r1 = r - r0
            t0, t1 = tl.trans(z0), tl.trans(z1)
            g = tl.dot(t1, r0, input_precision="tf32")
            g = tl.dot(t0, r1, g, input_precision="tf32")
            g = tl.dot(t0, r0, g, input_precision="tf32")
            # Written as a sum it would be added up by the tensor cores.
            total -= g
        out = by_piece + piece.to(tl.int64) * (1 + KP * DP)
        tl.store(out, tl.sum(risk.to(tl.float64), 0))
        tl.store(out + 1 + scores[None, :] * DP + cols[:, None], total.to(tl.float64))
