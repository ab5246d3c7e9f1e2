"""Rows that do not fit in memory: one small protocol, and readers for files and sequences.

Blocks have a length and are read by index, ``blocks[i]``, as ``(X, y, weights)``; see
:class:`Blocks`. ``RobustLogisticRegression.fit(blocks)`` reads all of them once per pass, a few
at a time.
"""

from equipoise.blocks.base import Block, Blocks
from equipoise.blocks.row_groups import from_parquet
from equipoise.blocks.sources import from_blocks, from_npy

__all__ = ["Block", "Blocks", "from_blocks", "from_npy", "from_parquet"]
