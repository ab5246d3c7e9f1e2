"""The container of per-class results."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from equipoise.exceptions import ClassMismatchError
from equipoise.validation.numbers import check_numbers
from equipoise.weights.by_class import ByClass


@pytest.fixture
def pets():
    return ByClass([0.25, 0.5, 0.125], ["cat", "dog", "fish"])


def test_it_is_a_mapping_by_name(pets):
    assert (pets["dog"], len(pets), list(pets)) == (0.5, 3, ["cat", "dog", "fish"])
    assert list(pets.values()) == [0.25, 0.5, 0.125]
    assert "dog" in pets
    assert "horse" not in pets
    assert pets == {"fish": 0.125, "dog": 0.5, "cat": 0.25}
    assert pets != {"fish": 0.125, "dog": 0.5, "cat": 0.5}
    assert pets.to_dict() == dict(pets)
    assert type(pets.to_dict()) is dict


def test_an_unknown_name_is_a_key_error_with_the_names(pets):
    with pytest.raises(KeyError, match="'horse' is not among the classes"):
        pets["horse"]


def test_integer_names_are_names_not_positions():
    values = ByClass([0.1, 0.2], [7, 3])
    assert (values[7], values[3], values[np.int64(3)]) == (0.1, 0.2, 0.2)
    with pytest.raises(KeyError):
        values[0]


def test_values_are_plain_numbers(pets):
    assert type(pets["dog"]) is float
    assert type(pets.max()) is float
    assert type(next(iter(ByClass([1.0], np.array([3]))))) is int


def test_it_is_an_array(pets):
    np.testing.assert_array_equal(np.asarray(pets), [0.25, 0.5, 0.125])
    assert np.asarray(pets, dtype=np.float32).dtype == np.float32
    assert np.dot(pets, [1, 1, 0]) == 0.75


def test_largest_value_and_its_name(pets):
    assert (pets.max(), pets.idxmax()) == (0.5, "dog")
    assert ByClass([1, 3, 3], ["a", "b", "c"]).idxmax() == "b"


def test_it_does_not_change(pets):
    with pytest.raises(AttributeError, match="does not change"):
        pets.classes = ["a"]
    with pytest.raises(TypeError):
        pets["dog"] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        pets.classes[0] = "cow"
    assert not pets.__array__(copy=False).flags.writeable
    for array in (np.asarray(pets), pets.to_numpy()):
        array[0] = 9.0
    assert pets["cat"] == 0.25


def test_it_does_not_follow_the_array_it_was_made_from():
    values = np.array([1.0, 2.0])
    held = ByClass(values)
    values[0] = 9.0
    assert held[0] == 1.0


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))]
)
def test_copies_are_equal_and_still_do_not_change(pets, copied):
    twin = copied(pets)
    assert twin == pets
    assert list(twin) == list(pets)
    with pytest.raises(AttributeError):
        twin.classes = None


def test_names_are_aligned_in_print():
    assert repr(ByClass([0.25, 0.5], ["cat", "mouse"])) == "cat:   0.25\nmouse:  0.5"
    assert "<th>mouse</th><td>0.5</td>" in ByClass([0.5], ["mouse"])._repr_html_()
    assert repr(ByClass([0.123456])) == "0: 0.1235"


def test_a_long_listing_is_cut_in_the_middle():
    lines = repr(ByClass(np.arange(100.0))).splitlines()
    assert len(lines) == 21
    assert lines[10] == "... (100 in all)"
    assert lines[0] == "0:   0"
    assert lines[-1] == "99: 99"


def test_it_is_matched_by_name_where_values_per_class_are_taken(pets):
    assert check_numbers(pets, ["fish", "cat", "dog"], name="q").tolist() == [0.125, 0.25, 0.5]


def test_mappings_bring_their_names_and_arrays_count():
    assert list(ByClass({"b": 1, "a": 2})) == ["b", "a"]
    assert ByClass({"b": 1, "a": 2}, ["a", "b"]).to_numpy().tolist() == [2, 1]
    assert list(ByClass([5, 6])) == [0, 1]


def test_pandas_reads_it_as_a_series(pets):
    pd.testing.assert_series_equal(pd.Series(pets), pd.Series(dict(pets)))


@pytest.mark.parametrize(
    ("values", "classes", "message"),
    [
        ([1, 2], ["a"], "one for each class"),
        ([], [], "at least one"),
        ([[1, 2]], [0, 1], "one for each class"),
        ([1, 2], ["a", "a"], "must be distinct"),
    ],
)
def test_misfits_are_refused(values, classes, message):
    with pytest.raises(ClassMismatchError, match=message):
        ByClass(values, classes)
