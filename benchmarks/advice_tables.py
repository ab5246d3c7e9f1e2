"""The tables of the test of the advice, how they are split, and large ones that are made up.

Decided before any run, and not changed by its outcome:

* The tables: every ``NAME.csv.gz`` in the folder that ``EQUIPOISE_DATA`` names, and the twenty of
  KEEL's of the study on real data. Columns stay as they are, texts included. Classes of one row
  are dropped, tiny ones are kept.
* The variants: each table as it is; and, if it has 1,000 rows, with two tiny classes, of 3 and of 8
  rows, cut out of its largest class: a random row and its nearest neighbours, where columns have
  mean 0 and deviation 1 and texts are columns of 0 and 1. No other row is identical to one of
  them. Labels are texts then.
* The split: three fifths of the rows for the page, two fifths to judge by, of every class;
  identical rows are on one side. A class has rows on both sides where it has two that differ.

Changed after several runs: in ``led7digit``, 500 rows of 85 kinds, some classes are most of the
rows of fewer than ten kinds. With all rows of a kind on one side the parts are no samples of the
same rows (a class has 14 rows in one and 43 in the other, and no row of another class can be told
by what was seen), so rows of such a table, of which there is no other, are dealt one by one.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from real_data_tables import KEEL, of_folder, of_keel

AS_IT_IS, TINY = "as it is", "two tiny classes"
VARIANTS = (AS_IT_IS, TINY)
TINY_ROWS = (3, 8)
ENOUGH_ROWS = 1_000
HELD_OUT = 0.4
# A class of so many rows has so many kinds of rows of its own, or rows are dealt one by one.
KINDS = 10
# Of a table that is made up: rows that look like those of another class, values that are missing
# in columns where some are, rows of the smallest class, distance of groups in deviations.
MIXED = 0.1
MISSING = 0.05
FEWEST = 5
DISTANCE = 8.0


class Table(NamedTuple):
    """Features as users have them, and labels."""

    X: pd.DataFrame
    y: np.ndarray


def names() -> list[str]:
    """All tables, those of the folder first."""
    folder = os.environ.get("EQUIPOISE_DATA")
    if not folder:
        raise SystemExit("Set EQUIPOISE_DATA to the folder of the data sets.")
    ours = sorted(path.name.removesuffix(".csv.gz") for path in Path(folder).glob("*.csv.gz"))
    return [*(name for name in ours if name != "covertype"), *KEEL]


def load(name: str, variant: str = AS_IT_IS) -> Table | None:
    """A table in a variant; None where it has too few rows for it."""
    X, y = of_keel(name) if name in KEEL else of_folder(name)
    _, places, counts = np.unique(y.astype(str), return_inverse=True, return_counts=True)
    kept = counts[places] > 1
    table = take(Table(X, y), np.flatnonzero(kept))
    if variant == AS_IT_IS:
        return table
    return with_tiny_classes(table, seed=0) if len(table.y) >= ENOUGH_ROWS else None


def take(table: Table, rows: np.ndarray) -> Table:
    """Some rows, numbered anew."""
    return Table(table.X.iloc[rows].reset_index(drop=True), table.y[rows])


def identical(X: pd.DataFrame) -> np.ndarray:
    """A number for each row, the same for identical ones."""
    return X.groupby(list(X.columns), dropna=False, sort=False).ngroup().to_numpy()


def with_tiny_classes(table: Table, seed: int) -> Table:
    """Two regions of the largest class become classes of a few rows."""
    rng, y = np.random.default_rng(seed), table.y.astype(str).astype(object)
    space = pd.get_dummies(table.X).to_numpy(dtype=float)
    space = np.nan_to_num((space - np.nanmean(space, axis=0)) / (np.nanstd(space, axis=0) + 1e-12))
    labels, counts = np.unique(y.astype(str), return_counts=True)
    groups = identical(table.X)
    free = (y == labels[np.argmax(counts)]) & (np.bincount(groups)[groups] == 1)
    for n_rows in TINY_ROWS:
        rows = np.flatnonzero(free)
        centre = space[rng.choice(rows)]
        nearest = rows[np.argsort(((space[rows] - centre) ** 2).sum(axis=1))[:n_rows]]
        y[nearest] = f"rare {n_rows}"
        free[nearest] = False
    return Table(table.X, y)


def split(table: Table, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the page, and rows to judge by.

    Identical rows of several classes go with the rarest of them.
    """
    rng, groups = np.random.default_rng(seed), identical(table.X)
    _, labels, counts = np.unique(table.y.astype(str), return_inverse=True, return_counts=True)
    rows = np.zeros((len(counts), groups.max() + 1), dtype=int)
    np.add.at(rows, (labels, groups), 1)
    own_kinds = np.bincount(np.argmax(rows, axis=0), minlength=len(counts))
    if np.any((counts >= KINDS) & (own_kinds < KINDS)):
        groups = np.arange(len(labels))
        rows = (labels == np.arange(len(counts))[:, None]).astype(int)
    assigned, held_out = np.zeros((2, rows.shape[1]), dtype=bool)
    for label in np.argsort(counts, kind="stable"):
        own = rng.permutation(np.flatnonzero((rows[label] > 0) & ~assigned))
        assigned[own] = True
        if len(own) > 1:
            wanted = HELD_OUT * counts[label] - rows[label, held_out].sum()
            nearest = np.argmin(np.abs(np.cumsum(rows[label, own])[:-1] - wanted))
            held_out[own[: nearest + 1]] = True
    return np.flatnonzero(~held_out[groups]), np.flatnonzero(held_out[groups])


def generate(n_rows: int, n_columns: int, n_classes: int, seed: int) -> pd.DataFrame:
    """A table of numbers, texts and missing values, whose last column is ``label``.

    Sizes of classes fall geometrically to five rows. A class has up to three groups of rows, a
    small one has one. One row in ten looks like a row of a class drawn by its share, which is what
    the best decisions get wrong of any class, beside a few rows between groups. A quarter of the
    columns are texts, a quarter says nothing, some of the numbers are skewed or whole.

    Examples
    --------
    >>> generate(1_000, 12, 4, seed=0).shape
    (1000, 13)
    """
    rng = np.random.default_rng(seed)
    sizes = _sizes(n_rows, n_classes)
    labels = np.repeat(np.arange(n_classes), sizes)
    mixed = rng.random(n_rows) < MIXED
    looks = np.where(mixed, rng.choice(labels, n_rows), labels)
    n_groups = np.where(sizes < 50, 1, 3)
    group = np.cumsum(n_groups)[looks] - 1 - rng.integers(n_groups[looks])
    n_texts, n_empty = n_columns // 4, n_columns // 4
    columns = [
        *_numbers(group, n_columns - n_texts - n_empty, rng),
        *(_texts(group, rng) for _ in range(n_texts)),
        *rng.normal(size=(n_empty, n_rows)),
    ]
    order, frame = rng.permutation(n_columns), {}
    for place, which in enumerate(order):
        missing = (rng.random(n_rows) < MISSING) & (place % 3 == 0)
        frame[f"column {place}"] = pd.Series(columns[which]).mask(missing)
    frame["label"] = pd.Series([f"class {label}" for label in labels])
    return pd.DataFrame(frame).sample(frac=1, random_state=seed, ignore_index=True)


def _sizes(n_rows: int, n_classes: int) -> np.ndarray:
    """Rows of each class, the largest first, each a fixed share of the one before."""
    powers = np.arange(n_classes)[::-1]
    ratio = brentq(lambda ratio: FEWEST * np.sum(ratio**powers) - n_rows, 1.0, n_rows / FEWEST)
    sizes = np.round(FEWEST * ratio**powers).astype(int)
    sizes[0] += n_rows - sizes.sum()
    return sizes


def _numbers(group: np.ndarray, n_columns: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Groups whose centres are so many deviations apart on average, whatever the columns."""
    scale = DISTANCE / np.sqrt(2 * n_columns)
    centres = rng.normal(scale=scale, size=(group.max() + 1, n_columns))
    values = (centres[group] + rng.normal(size=(len(group), n_columns))).T
    shapes = (lambda v: v, np.exp, lambda v: np.round(10 * v))
    return [shapes[place % 3](column) for place, column in enumerate(values)]


def _texts(group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_levels = int(rng.integers(3, 13))
    shares = rng.dirichlet(np.full(n_levels, 0.5), size=group.max() + 1)
    drawn = (rng.random(len(group))[:, None] > np.cumsum(shares, axis=1)[group]).sum(axis=1)
    levels = np.array([f"level {place}" for place in range(n_levels)], dtype=object)
    return levels[np.minimum(drawn, n_levels - 1)]
