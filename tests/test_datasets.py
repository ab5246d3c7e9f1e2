"""The bundled data: whole, in UCI's order, and in scikit-learn's form."""

import hashlib
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from equipoise.datasets import load_thyroid
from equipoise.exceptions import InvalidParameterError

NAMES = ["hypothyroid", "compensated", "normal"]


def _counts(target):
    return [int((target == name).sum()) for name in NAMES]


@pytest.fixture(scope="module")
def thyroid():
    return load_thyroid()


def test_shape_and_classes(thyroid):
    assert thyroid.data.shape == (7200, 21) and thyroid.data.dtype == np.float64
    assert thyroid.data.flags.c_contiguous and np.isfinite(thyroid.data).all()
    assert thyroid.target_names == NAMES
    assert _counts(thyroid.target) == [166, 368, 6666]


def test_features_are_named_for_what_they_hold(thyroid):
    columns = dict(zip(thyroid.feature_names, thyroid.data.T, strict=True))
    numbers = {"age", "TSH", "T3", "TT4", "T4U", "FTI"}
    binary = {name for name, column in columns.items() if set(column) == {0.0, 1.0}}
    assert binary == set(columns) - numbers and len(binary) == 15


def test_the_description_says_true_things(thyroid):
    data, target = thyroid.data, thyroid.target
    lab = data[:, [thyroid.feature_names.index(name) for name in ("TSH", "TT4")]]
    medians = {name: np.median(lab[target == name], axis=0) for name in NAMES}
    ratios = {name: medians[name] / medians["normal"] for name in NAMES}
    assert ratios["hypothyroid"] == pytest.approx([35.3, 0.290], rel=0.01)
    assert ratios["compensated"] == pytest.approx([6.47, 0.826], rel=0.01)
    assert len(np.unique(data, axis=0)) == 7200 - 71
    seen = {row.tobytes() for row in data[:3772]}
    assert not any(row.tobytes() in seen for row in data[3772:])


def test_the_description_names_source_and_licence(thyroid):
    for fact in (
        "Quinlan",
        "10.24432/C5D010",
        "CC BY 4.0",
        "3,772",
        "names of the classes are ours",
    ):
        assert fact in thyroid.DESCR


def test_values_are_those_of_uci(thyroid):
    code = {name: number for number, name in enumerate(NAMES, start=1)}
    rows = np.column_stack([thyroid.data, [code[name] for name in thyroid.target]])
    digest = hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).hexdigest()
    assert digest == "f91f9732299c71cd2cb6618a7bb3913a55413aaa3e64b3ba760009ddd8bf2201"


def test_subsets_are_the_rows_of_uci(thyroid):
    train, test = load_thyroid(subset="train"), load_thyroid(subset="test")
    assert (len(train.data), len(test.data)) == (3772, 3428)
    assert _counts(train.target) == [93, 191, 3488] and _counts(test.target) == [73, 177, 3178]
    assert_array_equal(np.vstack([train.data, test.data]), thyroid.data)


def test_return_X_y(thyroid):
    data, target = load_thyroid(return_X_y=True)
    assert_array_equal(data, thyroid.data)
    assert_array_equal(target, thyroid.target)


def test_every_call_returns_its_own_data(thyroid):
    load_thyroid().data[:] = 0
    assert_array_equal(load_thyroid().data, thyroid.data)


def test_as_frame(thyroid):
    bunch = load_thyroid(as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame) and isinstance(bunch.target, pd.Series)
    assert list(bunch.frame) == [*thyroid.feature_names, "target"]
    assert_array_equal(bunch.data, thyroid.data)
    assert_array_equal(bunch.target, thyroid.target)
    data, target = load_thyroid(as_frame=True, return_X_y=True)
    assert data.equals(bunch.data) and target.equals(bunch.target)


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is needed .* pip install"):
        load_thyroid(as_frame=True)


def test_an_unknown_subset_is_refused():
    with pytest.raises(InvalidParameterError, match=r"subset must be .*, got 'valid'"):
        load_thyroid(subset="valid")
