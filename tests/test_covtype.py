"""Covertype from wherever it is, or a sentence that says what is wrong with it."""

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import datasets as sklearn_datasets
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from equipoise import LabelCVaR, RobustLogisticRegression, WorstClass
from equipoise.datasets import fetch_covtype
from equipoise.exceptions import InvalidInputError, InvalidParameterError

FOLDER = os.environ.get("EQUIPOISE_DATA")
STORED = Path(FOLDER or ".") / "covtype.npz"
needs_data = pytest.mark.skipif(
    not STORED.is_file(), reason="covtype.npz is not in the folder that EQUIPOISE_DATA names"
)

# As UCI publishes it.
TEXT_SHA256 = "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"


@pytest.fixture(scope="module")
def covtype():
    return fetch_covtype(STORED)


def _text(covtype, n_rows):
    """The beginning of UCI's text, written anew from the numbers."""
    lines = []
    for start in range(0, n_rows, 50_000):
        rows = slice(start, min(start + 50_000, n_rows))
        table = np.column_stack([covtype.data[rows], covtype.target[rows]]).astype(int)
        lines += [",".join(map(str, row)) + "\n" for row in table.tolist()]
    return "".join(lines).encode()


@needs_data
def test_shape_names_and_scikit_learns_form(covtype):
    assert covtype.data.shape == (581_012, 54) and covtype.data.dtype == np.float64
    assert len(covtype.feature_names) == 54 and len(covtype.target_names) == 7
    assert sorted(set(covtype.target.tolist())) == [1, 2, 3, 4, 5, 6, 7]
    assert set(np.unique(covtype.data[:, 10:])) == {0.0, 1.0}
    # Every place is in one wilderness area and has one type of soil.
    assert np.all(covtype.data[:, 10:14].sum(axis=1) == 1)
    assert np.all(covtype.data[:, 14:].sum(axis=1) == 1)


@needs_data
def test_subsets_are_ucis_split(covtype):
    parts = [fetch_covtype(STORED, subset=name) for name in ("train", "validation", "test")]
    counts = [np.bincount(part.target)[1:].tolist() for part in parts]
    assert counts[:2] == [[1620] * 7, [540] * 7]
    assert_array_equal(np.concatenate([part.target for part in parts]), covtype.target)
    for count in counts[2]:
        assert f"{count:,}" in covtype.DESCR


@needs_data
@pytest.mark.slow
def test_text_gzipped_text_and_archive_give_the_same(covtype, tmp_path, monkeypatch):
    text = _text(covtype, 581_012)
    assert hashlib.sha256(text).hexdigest() == TEXT_SHA256
    (tmp_path / "covtype.data").write_bytes(text)
    packed = tmp_path / "other" / "covtype.data.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(text, compresslevel=1))
    data, target = fetch_covtype(tmp_path, return_X_y=True)
    assert_array_equal(data, covtype.data)
    assert_array_equal(target, covtype.target)
    monkeypatch.setenv("EQUIPOISE_DATA", str(packed.parent))
    assert_array_equal(fetch_covtype(subset="train").data, covtype.data[:11_340])


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("goal", [WorstClass(), LabelCVaR(0.1)], ids=repr)
def test_a_robust_fit_of_all_rows_takes_few_passes(covtype, goal):
    X = StandardScaler().fit_transform(covtype.data)
    clf = RobustLogisticRegression(goal, tol=1e-6).fit(X, covtype.target)
    assert clf.status_ == "converged" and clf.n_evaluations_ <= 35


@needs_data
def test_truncated_text_is_refused_with_its_rows(covtype, tmp_path):
    short = _text(covtype, 1_000)[:-20]
    (tmp_path / "covtype.data").write_bytes(short)
    with pytest.raises(InvalidInputError, match="truncated"):
        fetch_covtype(tmp_path)
    (tmp_path / "covtype.data").write_bytes(short[: short.rindex(b"\n") + 1])
    with pytest.raises(InvalidInputError, match=r"has 999 rows \(expected 581,012\)"):
        fetch_covtype(tmp_path)


@needs_data
def test_a_truncated_gzip_file_is_refused(covtype, tmp_path):
    packed = gzip.compress(_text(covtype, 1_000))
    (tmp_path / "covtype.data.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InvalidInputError, match="truncated"):
        fetch_covtype(tmp_path)


@needs_data
def test_altered_numbers_are_refused_with_their_checksum(tmp_path):
    with np.load(STORED) as stored:
        arrays = dict(stored)
    arrays["X_quant"] = arrays["X_quant"].copy()
    arrays["X_quant"][1000, 3] += 1
    np.savez(tmp_path / "covtype.npz", **arrays)
    with pytest.raises(InvalidInputError, match=r"was altered.*sha256"):
        fetch_covtype(tmp_path)


@needs_data
def test_a_shortened_archive_is_refused_with_its_counts(tmp_path):
    with np.load(STORED) as stored:
        arrays = {name: stored[name][:500] for name in ("X_quant", "X_bin_packed", "y")}
    np.savez(tmp_path / "covtype.npz", **arrays)
    with pytest.raises(InvalidInputError, match=r"500 rows \(expected 581,012\) and classes of"):
        fetch_covtype(tmp_path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 nonsense", b"", b"\x93NUMPY"])
def test_a_damaged_archive_is_refused(content, tmp_path):
    (tmp_path / "covtype.npz").write_bytes(content)
    with pytest.raises(InvalidInputError, match="truncated or not a file of Covertype"):
        fetch_covtype(tmp_path)


def test_an_array_that_is_no_archive_is_refused(tmp_path):
    with (tmp_path / "covtype.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(InvalidInputError, match="truncated or not a file of Covertype"):
        fetch_covtype(tmp_path)


def test_a_path_without_a_file_names_the_files_it_looks_for(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"covtype\.data\.gz, got '.*absent'"):
        fetch_covtype(tmp_path / "absent")
    with pytest.raises(InvalidParameterError, match=r"covtype\.npz"):
        fetch_covtype(tmp_path)


def test_an_unknown_subset_is_refused():
    with pytest.raises(InvalidParameterError, match=r"subset must be .*, got 'valid'"):
        fetch_covtype(subset="valid")


def test_without_a_copy_and_a_network_the_error_says_what_to_do(monkeypatch, tmp_path):
    def offline(**options):
        raise OSError("no route to host")

    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    monkeypatch.setattr(sklearn_datasets, "fetch_covtype", offline)
    with pytest.raises(FileNotFoundError, match="no route to host") as caught:
        fetch_covtype()
    for part in ("covtype.data.gz from https://", "EQUIPOISE_DATA"):
        assert part in str(caught.value)


@needs_data
def test_scikit_learns_copy_is_taken_when_there_is_no_other(covtype, monkeypatch):
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    monkeypatch.setattr(
        sklearn_datasets,
        "fetch_covtype",
        lambda: Bunch(data=covtype.data, target=covtype.target.astype(np.int32)),
    )
    data, target = fetch_covtype(subset="validation", return_X_y=True)
    assert_array_equal(data, covtype.data[11_340:15_120])
    assert_array_equal(target, covtype.target[11_340:15_120])


def test_scikit_learns_copy_is_checked_too(monkeypatch):
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    few = Bunch(data=np.zeros((3, 54)), target=np.ones(3, dtype=np.int32))
    monkeypatch.setattr(sklearn_datasets, "fetch_covtype", lambda: few)
    with pytest.raises(InvalidInputError, match="scikit-learn's copy of Covertype is not"):
        fetch_covtype()
