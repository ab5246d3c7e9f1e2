"""Sources of blocks, and everything that can be wrong with them."""

import os
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from equipoise import LabelCVaR, RobustLogisticRegression, RobustLogisticRegressionCV, WorstClass
from equipoise.blocks import Block, Blocks, from_blocks, from_npy, from_parquet
from equipoise.blocks.base import AHEAD
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import SlicedBlocks, is_sliced
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from logistic_cases import draw

SAME = 2e-6
SMALL = 1 << 24  # the least memory: half of it is less than the rows of large() take


def large(dtype=np.float32):
    """More rows than the least memory holds, and not much work."""
    X, y = draw(k=3, n=50_000, d=50)
    return np.ascontiguousarray(X, dtype=dtype), y


def expected(X, y):
    return RobustLogisticRegression(WorstClass()).fit(X, y).objective_


def fitted(*given, **settings):
    return RobustLogisticRegression(WorstClass(), **settings).fit(*given)


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


# --- sources ------------------------------------------------------------------------------------


def test_npy_files_of_a_folder_are_read_in_pairs(tmp_path):
    X, y = draw(k=3, n=600)
    weights = np.random.default_rng(0).uniform(0.5, 2, 600)
    for place, part in enumerate((slice(0, 100), slice(100, 600))):
        np.save(tmp_path / f"X_{place}.npy", X[part])
        np.save(tmp_path / f"y_{place}.npy", y[part])
        np.save(tmp_path / f"weights_{place}.npy", weights[part])
    blocks = from_npy(tmp_path)
    np.testing.assert_array_equal(np.vstack([block.X for block in blocks]), X)
    fit = RobustLogisticRegression(WorstClass()).fit(blocks)
    here = RobustLogisticRegression(WorstClass()).fit(X, y, weights)
    assert fit.objective_ == pytest.approx(here.objective_, rel=SAME)
    np.testing.assert_array_equal(fit.predict(blocks), fit.predict(X))


def test_npy_rows_come_a_few_at_a_time(tmp_path):
    X, y = large()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    few = from_npy(tmp_path).of_at_most(100_000)
    assert len(few) == 100 and all(block.X.nbytes <= 100_000 for block in few)
    np.testing.assert_array_equal(np.concatenate([block.y for block in few]), y)


class Slices:
    """What HDF5 and Zarr give: an array that is not there until a slice of it is asked for."""

    def __init__(self, values):
        self._values, self.shape, self.dtype = values, values.shape, values.dtype
        self.asked = []

    def __len__(self):
        return len(self._values)

    def __getitem__(self, rows):
        self.asked.append(rows)
        return self._values[rows]


@pytest.mark.parametrize("memory", [SMALL, "1 GiB"])
def test_arrays_that_slice_are_fitted_in_parts_or_whole(memory, tmp_path):
    X, y = large()
    np.save(tmp_path / "X.npy", X)
    mapped, sliced = np.load(tmp_path / "X.npy", mmap_mode="r"), Slices(X)
    best = expected(X, y)
    for given in ((mapped, y), (sliced, Slices(y))):
        fit = fitted(*given, memory=memory)
        assert hasattr(fit, "n_passes_") == (memory == SMALL)
        assert fit.objective_ == pytest.approx(best, rel=SAME)
        np.testing.assert_array_equal(fit.predict(given[0]), fit.predict(X))
    whole = [rows for rows in sliced.asked if rows == slice(None)]
    assert bool(whole) == (memory != SMALL)


def test_what_is_in_memory_is_not_taken_for_a_file():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = np.zeros((3, 2))
    others = [
        X,
        X.tolist(),
        sp.csr_matrix(X),
        pandas.DataFrame(X),
        pandas.Series([1]),
        polars.DataFrame(X),
        polars.Series([1]),
    ]
    assert not any(map(is_sliced, others))


def test_parquet_is_read_by_row_group(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", exc_type=ImportError)
    X, y = draw(k=3, n=600)
    names = [f"x{i}" for i in range(X.shape[1])]
    frame = pandas.DataFrame(X, columns=names).assign(y=np.array(["a", "b", "c"])[y], w=1 + y)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100, index=False)
    blocks = from_parquet(tmp_path / "t.parquet", "y", weights="w")
    assert len(blocks) == 6 and blocks.columns == tuple(names)
    fit = RobustLogisticRegression(WorstClass()).fit(blocks)
    here = RobustLogisticRegression(WorstClass()).fit(frame[names], frame["y"], frame["w"])
    assert fit.objective_ == pytest.approx(here.objective_, rel=SAME)
    assert fit.classes_.tolist() == here.classes_.tolist()
    assert fit.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(fit.predict(frame[names]), here.predict(frame[names]))
    single = from_parquet(tmp_path / "t.parquet", "y", columns=["x1"])
    assert single[0].X.shape == (100, 1)


def test_parquet_in_single_precision_stays_so(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", exc_type=ImportError)
    frame = pandas.DataFrame(np.ones((4, 2), np.float32), columns=["a", "b"]).assign(y=[0, 1] * 2)
    for part in range(2):
        frame.to_parquet(tmp_path / f"{part}.parquet")
    blocks = from_parquet(tmp_path, "y")
    assert len(blocks) == 2 and blocks[1].X.dtype == np.float32


# --- the stream ---------------------------------------------------------------------------------


class Counted(Blocks):
    def __init__(self, n_blocks):
        self.n_blocks, self.read = n_blocks, []

    def __len__(self):
        return self.n_blocks

    def __getitem__(self, place):
        self.read.append(place)
        return Block(np.full((1, 1), place))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_blocks_are_read_ahead_but_not_far(n_threads):
    blocks = Counted(50)
    for done, place in enumerate(blocks.map(lambda place, block: int(block.X[0, 0]), n_threads)):
        assert place == done
        time.sleep(0.001)
        assert len(blocks.read) <= done + 1 + n_threads + AHEAD
    assert blocks.read == list(range(50))


def test_an_error_ends_the_stream():
    def fail(place, block):
        if place == 7:
            raise KeyError("seven")
        return place

    blocks, seen = Counted(50), []
    with pytest.raises(KeyError, match="seven"):
        seen.extend(blocks.map(fail, 3))
    assert len(blocks.read) < 20


def test_memory_is_written_as_people_write_it():
    assert check_memory("500 MB") == 500_000_000 and check_memory(" 2GiB ") == 1 << 31
    for bad in ("much", "1 GiBB", -1, 0, "1 KiB", True, None, 1.5):
        with pytest.raises(InvalidParameterError, match=r"memory must be .*'1 GiB'.*got"):
            check_memory(bad)
    X, y = draw()
    with pytest.raises(InvalidParameterError, match="memory must be"):
        fitted(X, y, memory="lots")


# --- what can be wrong --------------------------------------------------------------------------


def good(n_blocks=5):
    X, y = draw(k=3, n=100 * n_blocks)
    return [(X[100 * i : 100 * i + 100], y[100 * i : 100 * i + 100]) for i in range(n_blocks)]


def refused(blocks, match):
    clf = RobustLogisticRegression(WorstClass()).fit(from_blocks(good()))
    before = dict(vars(clf))
    with pytest.raises(InvalidInputError, match=match):
        clf.fit(blocks)
    assert vars(clf) == before  # nothing half-done


def changed(place, change):
    blocks = good()
    blocks[place] = change(*blocks[place])
    return from_blocks(blocks)


def with_nan(X, y):
    X = X.copy()
    X[17, 2] = np.nan
    return X, y


def with_inf_sparse(X, y):
    X = sp.csr_matrix(X)
    X[17, 2] = np.inf
    return X, y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :3], y), "Block 3 has 3 columns where block 0 has 4: all blocks must"),
        (lambda X, y: (X.astype("f4"), y), "Block 3 is float32 where block 0 is float64: convert"),
        (lambda X, y: (sp.csr_matrix(X), y), "Block 3 is sparse float64 where block 0 is float64"),
        (with_nan, "Block 3: row 17 has nan in column 2; X must hold finite numbers"),
        (with_inf_sparse, "Block 3: row 17 has inf in column 2"),
        (lambda X, y: (X, y[:-1]), "Block 3: X has 100 rows and y 99"),
        (lambda X, y: (X, y.astype(str)), "labels of one type: some blocks hold text"),
        (lambda X, y: (X, None), r"Block 3: it has no labels; give \(X, y\)"),
        (lambda X, y: (X, y, -np.ones(100)), "Block 3: sample_weight must not be negative"),
        (lambda X, y: (X.astype(str), y), "Block 3: X must be numbers in two dimensions"),
        (lambda X, y: (X[0], y), "Block 3: X must be numbers in two dimensions"),
        (lambda X, y: X, r"Block 3: it must be \(X, y\) or \(X, y, weights\), got ndarray"),
        (lambda X, y: (X, np.where(y > 0, np.nan, y)), "Block 3: y must not have missing labels"),
    ],
)
def test_blocks_that_cannot_be_used_are_named(change, message):
    refused(changed(3, change), message)


def test_numbers_that_are_no_classes_are_refused_as_in_memory():
    with pytest.raises(ValueError, match="Unknown label type"):
        fitted(changed(3, lambda X, y: (X, y + 0.5)))


def test_labels_that_appear_late_are_classes_like_others():
    X, y = draw(k=4, n=1000)
    order = np.argsort(y, kind="stable")
    blocks = [(X[order[i : i + 100]], y[order[i : i + 100]]) for i in range(0, 1000, 100)]
    fit = fitted(from_blocks(blocks))
    assert fit.classes_.tolist() == [0, 1, 2, 3]
    assert fit.objective_ == pytest.approx(expected(X, y), rel=SAME)


def test_names_that_grow_longer_are_not_cut():
    X, y = draw(k=3, n=900)
    names = np.array(["a", "bb", "a long name"], dtype=object)[y]
    order = np.argsort(y, kind="stable")
    blocks = [(X[part], names[part].astype(str)) for part in np.split(order, 9)]
    assert fitted(from_blocks(blocks)).classes_.tolist() == ["a", "a long name", "bb"]


def test_empty_blocks_are_passed_over():
    X, y = draw(k=3, n=500)
    blocks = [(X[:0], y[:0]), (X[:200], y[:200]), (X[:0], y[:0]), (X[200:], y[200:])]
    assert fitted(from_blocks(blocks)).objective_ == pytest.approx(expected(X, y), rel=SAME)


def test_nothing_to_read_is_refused(tmp_path):
    refused(from_blocks([]), "There are no rows")
    refused(from_blocks([(np.zeros((0, 4)), np.zeros(0))]), "There are no rows")
    with pytest.raises(InvalidInputError, match=r"There is no file X\*\.npy"):
        from_npy(tmp_path)
    with pytest.raises(InvalidInputError, match="is not a folder"):
        from_npy(tmp_path / "none")
    with pytest.raises(InvalidInputError, match="There is no Parquet file"):
        from_parquet(tmp_path)
    with pytest.raises(InvalidInputError, match="at least one block of rows, got none"):
        fitted(from_blocks(good())).predict(from_blocks([]))


def test_what_is_used_up_after_one_pass_is_refused_with_what_to_do():
    with pytest.raises(InvalidInputError, match=r"got generator, which is used up.*give a list"):
        from_blocks(block for block in good())


def test_other_rows_in_a_later_pass_are_noticed():
    blocks = good()

    class Shuffled:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def __len__(self):
            return len(blocks)

        def __getitem__(self, place):
            X, y = blocks[place]
            order = self.rng.permutation(len(y))
            return X[order], y[order]

    refused(from_blocks(Shuffled()), "Block 0: its rows, labels or weights changed between passes")


def test_a_block_that_cannot_be_read_is_named():
    class Broken(list):
        def __getitem__(self, place):
            if place == 2:
                raise OSError("disk on fire")
            return super().__getitem__(place)

    refused(from_blocks(Broken(good())), r"Block 2: it cannot be read \(disk on fire\)")


@pytest.mark.parametrize("reader", ["npy", "map"])
def test_a_file_that_shrinks_while_it_is_read_is_a_sentence(tmp_path, reader):
    X, y = large()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = from_npy(tmp_path) if reader == "npy" else SlicedBlocks(mapped, y)

    class Shrinking(Blocks):
        """The file is cut off in the middle of the second pass."""

        asked = 0

        def __len__(self):
            return len(few)

        def __getitem__(self, place):
            self.asked += 1
            if self.asked == 30:
                os.truncate(tmp_path / "X.npy", X.nbytes // 2)
            return few[place]

    few = source.of_at_most(1 << 19)
    refused(Shrinking(), r"Block \d+: .*has shrunk while it was read")


def test_npy_files_that_do_not_fit_together_are_refused(tmp_path):
    X, y = draw()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y[:-1])
    with pytest.raises(InvalidInputError, match="y must have one entry for each of the 300 rows"):
        from_npy(tmp_path)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "X_1.npy", X)
    with pytest.raises(InvalidInputError, match=r"There is no y_1\.npy"):
        from_npy(tmp_path)
    np.save(tmp_path / "y_1.npy", y)
    np.save(tmp_path / "X_1.npy", np.asfortranarray(X))
    with pytest.raises(InvalidInputError, match="stored column by column"):
        from_npy(tmp_path)
    (tmp_path / "X_1.npy").write_bytes(b"not numpy")
    with pytest.raises(InvalidInputError, match="is not a whole npy file"):
        from_npy(tmp_path)


def test_parquet_that_cannot_be_used_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", exc_type=ImportError)
    frame = pandas.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"], "y": [0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"has no column 'z'; its columns are a, town, y"):
        from_parquet(tmp_path / "t.parquet", "z")
    with pytest.raises(InvalidInputError, match=r"Block 0: column 'town' holds .*string"):
        fitted(from_parquet(tmp_path / "t.parquet", "y"))
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InvalidInputError, match="cannot be read as a Parquet file"):
        from_parquet(tmp_path / "t.parquet", "y")


def test_what_blocks_cannot_do_is_said():
    blocks, y = from_blocks(good()), draw()[1]
    with pytest.raises(InvalidInputError, match="Labels and weights come with the blocks"):
        fitted(blocks, y)
    with pytest.raises(InvalidInputError, match="level of LabelCVaR is chosen"):
        RobustLogisticRegression(LabelCVaR("auto")).fit(blocks)
    with pytest.raises(InvalidInputError, match="fits to folds of rows in memory, got out-of-core"):
        RobustLogisticRegressionCV().fit(blocks)
    with pytest.raises(InvalidInputError, match="y must be given beside X"):
        fitted(Slices(large()[0]), memory=SMALL)


def test_an_interrupt_leaves_nothing_behind():
    class Interrupting(list):
        def __getitem__(self, place):
            if place == 3:
                raise KeyboardInterrupt
            return super().__getitem__(place)

    clf = RobustLogisticRegression(WorstClass())
    with pytest.raises(KeyboardInterrupt):
        clf.fit(from_blocks(Interrupting(good())))
    assert not hasattr(clf, "coef_")
