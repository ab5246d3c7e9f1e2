"""In what order rows in memory are, by class, and how they are cut into blocks."""

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Indices, Vector


@dataclass(frozen=True)
class RowCut:
    """How rows are cut into pieces for workers, and these into blocks."""

    block_bytes: int = 1 << 21  # of a block of rows with its scores: the cache of one core
    pieces: int = 16  # enough for the cores of most machines to share
    wide: int = 1 << 18  # numbers of a sum of which adding up more than two would cost a pass
    least_rows: int = 256  # of a block, however many the classes: its scores are copied row by row
    kept_bytes: int = 1 << 30  # of the scores at a point; where more, they are computed again


def by_class(
    labels: Indices, weights: Vector, totals: Vector
) -> tuple[Indices | None, Indices, Vector]:
    """The order that sorts rows by class, where each class begins, each row's share of its class.

    ``totals`` are the sums of weights over the classes, of all rows and not of these alone. The
    order is None where the rows are sorted already.
    """
    counts = np.bincount(labels, minlength=len(totals))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    order = None
    if not np.all(labels[:-1] <= labels[1:]):
        # Of 16 bits, a stable sort takes one pass for each eight.
        short = labels.astype(np.uint16) if len(totals) < 1 << 16 else labels
        order = np.argsort(short, kind="stable")
        weights = weights[order]
    return order, bounds, weights / np.repeat(totals, counts)
