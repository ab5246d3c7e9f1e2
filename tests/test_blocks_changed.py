"""Blocks that do not hold the same in every pass are refused, whatever changed and when."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from equipoise import RobustLogisticRegression, TunedDecisionClassifier, WorstClass
from equipoise.blocks import from_blocks
from equipoise.blocks.checksum import checksum
from equipoise.exceptions import InvalidInputError
from logistic_cases import draw

N_BLOCKS, N_ROWS = 5, 1000
CHANGED = "Block 3: its rows, labels or weights changed between passes, and a fit reads the same"
# A row that no sample of 64 rows at equal distances has.
ROW = 17


class Changing:
    """Blocks of which one is another from its third reading on, after the look and the sample."""

    def __init__(self, change, n_passes=2, blocks=None):
        self.blocks = good() if blocks is None else blocks
        self.change, self.n_passes, self.n_read = change, n_passes, 0

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, place):
        if place != 3:
            return self.blocks[place]
        self.n_read += 1
        return self.blocks[3] if self.n_read <= self.n_passes else self.change(*self.blocks[3])


def good(storage=np.asarray, **settings):
    X, y = draw(k=3, n=N_BLOCKS * N_ROWS, **settings)
    w = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    cuts = [slice(N_ROWS * i, N_ROWS * (i + 1)) for i in range(N_BLOCKS)]
    return [(storage(X[rows]), y[rows], w[rows]) for rows in cuts]


def set_at(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def traded(values, one, other):
    values = values.copy()
    values[[one, other]] = values[[other, one]]
    return values


CHANGES = {
    "weights": lambda X, y, w: (X, y, 20 * w),
    "one weight": lambda X, y, w: (X, y, set_at(w, ROW, 3.0)),
    "no weights": lambda X, y, _: (X, y),
    "a missing weight": lambda X, y, w: (X, y, set_at(w, ROW, np.nan)),
    "a negative weight": lambda X, y, w: (X, y, set_at(w, ROW, -1.0)),
    "one value": lambda X, y, w: (set_at(X, (ROW, 2), 1e3), y, w),
    "a missing value": lambda X, y, w: (set_at(X, (ROW, 2), np.nan), y, w),
    "an infinite value": lambda X, y, w: (set_at(X, (ROW, 2), np.inf), y, w),
    "two rows": lambda X, y, w: (traded(X, ROW, ROW + 1), y, w),
    "two values": lambda X, y, w: (set_at(X, ROW, X[ROW, [1, 0, 2, 3]]), y, w),
    "a label": lambda X, y, w: (X, set_at(y, ROW, (y[ROW] + 1) % 3), w),
    "a new label": lambda X, y, w: (X, set_at(y, ROW, 9), w),
    "a missing label": lambda X, y, w: (X, set_at(y.astype(float), ROW, np.nan), w),
    "no labels": lambda X, _y, w: (X, None, w),
    "fewer rows": lambda X, y, w: (X[:-1], y[:-1], w[:-1]),
    "fewer labels": lambda X, y, w: (X, y[:-1], w),
    "no rows": lambda X, y, w: (X[:0], y[:0], w[:0]),
    "fewer columns": lambda X, y, w: (X[:, :3], y, w),
    "the dtype": lambda X, y, w: (X.astype(np.float32), y, w),
    "texts": lambda X, y, w: (X.astype(str), y, w),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def refused(blocks, message=CHANGED):
    with pytest.raises(InvalidInputError, match=message):
        RobustLogisticRegression(WorstClass()).fit(from_blocks(blocks))


@pytest.mark.parametrize("apart", [1, 1021, 2 * 1021])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_rows_that_trade_places_have_another_checksum(width, apart):
    X = np.random.default_rng(0).normal(size=(3000, width))
    y = np.zeros(len(X))
    assert checksum(traded(X, ROW, ROW + apart), y, None) != checksum(X, y, None)
    ones = np.ones((3000, width))
    twos = set_at(ones, slice(ROW, None, 512), 2.0)
    assert checksum(ones, y, None) != checksum(twos, y, None)


@each_change
@pytest.mark.parametrize("n_passes", [1, 2, 5])
def test_whatever_changes_between_passes_is_noticed(change, n_passes):
    refused(Changing(change, n_passes))


def test_entries_of_sparse_rows_that_trade_columns_are_noticed():
    def change(X, y, w):
        columns, entries = X.indices.copy(), slice(*X.indptr[ROW : ROW + 2])
        columns[entries] = columns[entries][::-1]
        return sp.csr_matrix((X.data, columns, X.indptr), X.shape), y, w

    refused(Changing(change, blocks=good(sp.csr_matrix)))


@pytest.mark.parametrize("before", ["no rows", "no weight"])
def test_rows_that_did_not_count_at_first_are_noticed_when_they_do(before):
    blocks = good()
    X, y, w = blocks[3]
    blocks[3] = (X[:0], y[:0], w[:0]) if before == "no rows" else (X, y, 0 * w)
    refused(Changing(lambda *_: (X, y, w), blocks=blocks))


@pytest.mark.parametrize("later", [6, 4])
def test_another_number_of_blocks_is_noticed(later):
    class Growing(list):
        """A list that has another length as soon as it was read once."""

        was_read = False

        def __len__(self):
            return later if self.was_read else N_BLOCKS

        def __getitem__(self, place):
            self.was_read = place == N_BLOCKS - 1 or self.was_read
            return super().__getitem__(place)

    blocks = good()
    refused(
        Growing([*blocks, blocks[0]]),
        f"The number of blocks changed between passes, from 5 to {later}: store",
    )


@each_change
def test_a_fit_to_a_sample_notices_it_when_all_rows_are_counted(change):
    clf = TunedDecisionClassifier(GaussianNB(), "worst_class", sample_rows=1000)
    with pytest.raises(InvalidInputError, match=CHANGED):
        clf.fit(from_blocks(Changing(change)))


@pytest.mark.parametrize("column", ["size", "town", "kind", "tags"])
def test_cells_of_tables_that_change_are_noticed(column):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "size": rng.normal(size=500),
            "town": rng.choice(["Ulm", "Bonn"], 500).astype(object),
            "kind": pandas.Categorical(rng.choice(["a", "b"], 500)),
            "tags": [[1, 2]] * 500,
        }
    )
    value = {
        "size": 9.0,
        "town": "Köln",
        "kind": {"a": "b", "b": "a"}[frame["kind"][ROW]],
        "tags": [3],
    }[column]
    other = frame.copy()
    other.at[ROW, column] = value
    y = rng.integers(2, size=500)
    assert checksum(frame, y, None) == checksum(frame.copy(), y, None) != checksum(other, y, None)


@given(
    shape=st.tuples(st.integers(1, 400), st.integers(1, 40)),
    dtype=st.sampled_from([np.float64, np.float32, np.float16, np.int8, np.bool_]),
    seed=st.integers(0, 2**16),
)
def test_a_value_that_changes_and_values_that_trade_places_have_other_checksums(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2 if dtype == np.bool_ else 100, size=shape).astype(dtype)
    y = np.zeros(len(X))
    before = checksum(X, y, None)
    one, other = (tuple(rng.integers(0, shape)) for _ in range(2))
    for changed in (set_at(X, one, not X[one]), set_at(set_at(X, one, X[other]), other, X[one])):
        assert (checksum(changed, y, None) == before) == np.array_equal(changed, X)
    assert checksum(np.asfortranarray(X), y, None) == before


def test_checksums_are_the_same_in_every_process():
    code = (
        "import numpy as np; from equipoise.blocks.checksum import checksum;"
        "print(checksum(np.eye(2), np.array(['ham', 'spam'], dtype=object), None),"
        "checksum(np.eye(2), np.array(['ham', 1], dtype=object), np.ones(2)))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
