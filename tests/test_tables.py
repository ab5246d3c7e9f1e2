"""Tables: read whole and in chunks, checked in sentences, turned into what models read."""

import gzip
import os
import subprocess
import sys
import textwrap
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from equipoise.estimators import RobustClassifier
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.goals import SetGoal, as_goal
from equipoise.sets import FixedWeights, LabelCVaR, PriorBall

pd = pytest.importorskip("pandas", minversion="2.1")

from equipoise.tables import (  # noqa: E402
    MODEL_KINDS,
    AsTable,
    Column,
    LabelledTable,
    OrderedForest,
    booster_for,
    columns_of,
    conform,
    hold_out,
    labelled_table,
    labels_like,
    learner_for,
    model_for,
    plain_pipeline,
    preprocessor,
    read_chunks,
    read_table,
    split_target,
    unseen_rows,
)
from equipoise.tables.features import MAX_LEVELS, MIN_LEVEL_ROWS  # noqa: E402

DATA = os.environ.get("EQUIPOISE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA names no folder of real data")


@pytest.fixture
def table():
    """Every kind of column, with gaps."""
    return pd.DataFrame(
        {
            "size": [1.5, None, 3.0, 4.0],
            "count": [1, 2, 3, 4],
            "town": ["Ulm", "Bonn", None, "Ulm"],
            "new": [True, False, True, True],
            "nothing": [None] * 4,
            "label": ["a", "b", "a", "b"],
        }
    )


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# Reading


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "tsv", "dat"])
def test_every_form_of_a_file_gives_the_same_table(tmp_path, table, ending):
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow", exc_type=ImportError)
        table.to_parquet(path)
    else:
        marks = {"tsv": "\t", "dat": ";"}
        table.to_csv(path, index=False, sep=marks.get(ending, ","))
    columns = columns_of(table)
    found = read_table(path)
    assert list(found.columns) == list(table.columns)
    pd.testing.assert_frame_equal(conform(found, columns), conform(table, columns))


def test_the_content_of_a_file_counts_and_not_its_name(tmp_path):
    path = write(tmp_path, "table.csv", gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0))
    assert read_table(path)["b"].tolist() == ["x", "y"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = write(tmp_path, "bom.csv", "\ufeffa,b\n1,x\n")
    assert list(read_table(path).columns) == ["a", "b"]


@pytest.mark.parametrize("text", ["PAR1,b\n1,x\n", "PAR1\n1\nPAR1", "PAR1|b\n1|PAR1"])
def test_a_column_may_be_called_as_parquet_files_begin_and_end(tmp_path, text):
    path = write(tmp_path, "table.csv", text)
    assert read_table(path).columns[0] == next(read_chunks(path)).columns[0] == "PAR1"


def test_commas_within_quotes_do_not_part_columns(tmp_path):
    path = write(tmp_path, "quoted.csv", '"a, b, c";d\n1;"x;y"\n')
    found = read_table(path)
    assert list(found.columns) == ["a, b, c", "d"] and found["d"].tolist() == ["x;y"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "has a header but no rows"),
        (b"a,b,a\n1,2,3\n", "'a' more than once"),
        (b"a,b\n1,2\n1,2,3\n", "cannot be read as a table: .*line 3"),
        (b"a,b\n1,2,3\n4,5,6\n", "cannot be read as a table"),
        (b"a,b\n\xff\xfe\x01,2\n", "is not a text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is not a text in UTF-8"),
        (b"a\x00b,c\n1,2\n", "zero byte"),
        (b"PK\x03\x04rest", "is a zip archive or a spreadsheet"),
        (b"%PDF-1.7", "is a PDF document"),
        (b"PAR1\x15 is how it begins", "cannot be read as a table"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "cannot be unpacked"),
        (b"\x1f\x8b\x08 and no more", "cannot be unpacked"),
        (b'a,b\n"1,2\n3,4\n', "cannot be read as a table"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(tmp_path, text, sentence):
    if text.startswith(b"PAR1"):
        pytest.importorskip("pyarrow", exc_type=ImportError)
    path = write(tmp_path, "bad.csv", text)
    for read in (read_table, lambda place: list(read_chunks(place))):
        with pytest.raises(InvalidInputError, match=sentence) as found:
            read(path)
        assert "\n" not in str(found.value)


def test_files_that_are_not_there_and_folders_are_said(tmp_path):
    with pytest.raises(InvalidInputError, match=r"There is no file .*none\.csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match="is a folder"):
        list(read_chunks(tmp_path))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_chunks_together_are_the_table(tmp_path, ending):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=100), "t": rng.choice(["a", "1", "b"], 100)})
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow", exc_type=ImportError)
        frame.to_parquet(path, row_group_size=31)
    else:
        frame.to_csv(path, index=False)
    columns, seen = columns_of(frame), []
    chunks = list(read_chunks(path, columns, progress=seen.append, max_rows=7))
    assert len(chunks) >= 15 and all(len(chunk) <= 7 for chunk in chunks)
    assert seen == sorted(seen) and seen[-1] <= path.stat().st_size
    whole = pd.concat([conform(chunk, columns) for chunk in chunks])
    pd.testing.assert_frame_equal(whole, conform(frame, columns))


def test_a_text_stays_a_text_in_a_chunk_of_digits(tmp_path):
    path = write(tmp_path, "codes.csv", "code\n007\n08\nx\n010\n")
    columns = columns_of(read_table(path))
    chunks = read_chunks(path, columns, max_rows=2)
    parts = [conform(chunk, columns)["code"].tolist() for chunk in chunks]
    assert parts == [["007", "08"], ["x", "010"]]


def test_reading_in_chunks_takes_a_memory_that_does_not_grow_with_the_file(tmp_path):
    pytest.importorskip("resource")
    line = b"0.123456789,1.5,some text,17\n"
    small, large = 200_000, 1_600_000
    code = textwrap.dedent("""
        import resource, sys
        from equipoise.tables import read_chunks
        rows = sum(len(chunk) for chunk in read_chunks(sys.argv[1]))
        print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """)
    peaks = []
    for rows in (small, large):
        path = tmp_path / "table.csv.gz"
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.write(b"a,b,c,d\n")
            for _ in range(rows // 1000):
                stream.write(line * 1000)
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found, peak = map(int, done.stdout.split())
        assert found == rows
        peaks.append(peak / 1024)
    # The larger table holds 38 MB more of numbers alone, and more than that of texts.
    assert peaks[1] - peaks[0] < 20


# Columns


def test_the_kinds_of_columns(table):
    kinds = {column.name: column.kind for column in columns_of(table)}
    assert kinds == {
        "size": "number",
        "count": "number",
        "town": "text",
        "new": "truth",
        "nothing": "empty",
        "label": "text",
    }


def test_columns_that_only_parquet_or_python_can_hold():
    frame = pd.DataFrame(
        {
            "day": [date(1970, 1, 2), date(2200, 1, 1), None],
            "time": pd.to_datetime(["1970-01-01 12:00", None, "1969-12-31 00:00"]),
            "span": pd.to_timedelta(["1s", "2s", None]),
            "money": [Decimal("1.5"), Decimal("2"), None],
            "kind": pd.Categorical(["x", "y", None]),
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "mixed": [1, "a", None],
            "level": pd.Categorical([1.0, 2.0, 1.0]),
        }
    )
    made = conform(frame, columns_of(frame))
    assert made["day"].tolist()[:2] == [1.0, (date(2200, 1, 1) - date(1970, 1, 1)).days]
    assert made["time"].tolist()[::2] == [0.5, -1.0]
    assert made["span"].tolist()[:2] == [1.0, 2.0]
    assert made["money"].tolist()[:2] == [1.5, 2.0]
    assert made["kind"].tolist()[:2] == ["x", "y"]
    assert made["maybe"].tolist()[::2] == ["True", "False"]
    assert made["whole"].tolist()[::2] == [1.0, 3.0]
    assert made["mixed"].tolist()[:2] == ["1", "a"]
    assert made["level"].tolist() == ["1", "2", "1"]
    missing = {"day": 2, "time": 1, "span": 2, "money": 2, "kind": 2, "maybe": 1, "whole": 1}
    assert all(made[name].isna().tolist().index(True) == place for name, place in missing.items())


def test_conforming_twice_changes_nothing(table):
    once = conform(table, columns_of(table))
    pd.testing.assert_frame_equal(conform(once, columns_of(once)), once)


def test_models_see_only_numbers_and_texts(table):
    made = conform(table, columns_of(table))
    assert "nothing" not in made
    for name, column in made.items():
        kinds = {type(value) for value in column.dropna()}
        assert column.dtype == np.float64 or kinds <= {str}, name


def test_other_orders_of_columns_and_further_ones_do_not_matter(table):
    columns = columns_of(table)
    other = table[reversed(table.columns)].assign(more=1)
    pd.testing.assert_frame_equal(conform(other, columns), conform(table, columns))


def test_truth_values_have_more_than_one_spelling():
    columns = columns_of(pd.DataFrame({"new": [True, False]}))
    other = pd.DataFrame({"new": ["TRUE", "false", "1", None]})
    assert conform(other, columns)["new"].tolist()[:3] == ["True", "False", "True"]


def test_a_missing_column_is_named(table):
    with pytest.raises(InvalidInputError, match=r"no column 'size', 'town'; its columns are"):
        conform(table.drop(columns=["size", "town"]), columns_of(table))


def test_a_text_among_the_numbers_is_quoted_with_its_row(table):
    other = table.assign(size=["1", "2", "three", "4"])
    with pytest.raises(InvalidInputError, match=r"'size' must hold numbers, got 'three' .* row 3"):
        conform(other, columns_of(table))
    dates = pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(InvalidInputError, match="'day' must hold dates, got 'soon'"):
        conform(pd.DataFrame({"day": ["soon"]}), columns_of(dates))


def test_values_that_are_no_values_are_refused():
    frame = pd.DataFrame({"x": [[1], [2, 3]]})
    with pytest.raises(InvalidInputError, match="'x' holds values of type list"):
        columns_of(frame)
    for kind in (1.0, "text"):
        with pytest.raises(InvalidInputError, match="'x' must hold"):
            conform(frame, columns_of(pd.DataFrame({"x": [kind]})))


def test_infinite_values_are_missing_and_huge_ones_are_cut():
    frame = pd.DataFrame({"x": [np.inf, 1.0, 1e300, -1e300]})
    (column,) = columns_of(frame)
    assert (column.n_missing, column.n_infinite) == (1, 1)
    values = conform(frame, [column])["x"].to_numpy()
    assert np.isnan(values[0]) and values[1] == 1 and np.all(np.abs(values[2:]) == 1e100)


def test_dates_of_any_year_are_days_or_refused():
    table = pd.DataFrame({"when": [date(2000, 1, 1), date(9999, 12, 31), None]}, dtype=object)
    if pd.to_datetime(table["when"], errors="coerce")[1] is pd.NaT:
        # An older pandas counts nanoseconds.
        with pytest.raises(InvalidInputError, match="'when' must hold dates, got '9999-12-31'"):
            conform(table, columns_of(table))
        return
    found = conform(table, columns_of(table))["when"].tolist()
    assert found[:2] == [10957.0, 2932896.0] and np.isnan(found[2])


@pytest.mark.parametrize("kind", [int, str])
def test_whole_numbers_beyond_all_floats_are_infinite(kind):
    column = Column("x", "number", "float64")
    table = pd.DataFrame({"x": [kind(10**400), kind(7), None]}, dtype=object)
    assert conform(table, [column])["x"].isna().tolist() == [True, False, True]


def test_names_that_are_no_texts_become_texts():
    frame = pd.DataFrame({0: [1.0], 1: ["a"]})
    assert list(conform(frame, columns_of(frame)).columns) == ["0", "1"]
    with pytest.raises(InvalidInputError, match="more than once"):
        columns_of(pd.DataFrame([[1, 2]], columns=[1, "1"]))


# Labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b"], ["b", "a", "b"]),
        ([3, 1, 3], [3, 1, 3]),
        ([3.0, 1.0, 3.0], [3, 1, 3]),
        ([True, False, True], ["True", "False", "True"]),
        (pd.Categorical(["x", "y", "x"]), ["x", "y", "x"]),
        (pd.Categorical([2, 1, 2]), [2, 1, 2]),
        (pd.array([2, 1, 2], dtype="Int64"), [2, 1, 2]),
        ([1, "a", "a"], ["1", "a", "a"]),
    ],
)
def test_labels_are_whole_numbers_or_texts(labels, expected):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": labels})
    _, y = split_target(frame, "y")
    assert y.tolist() == expected and y.dtype in (np.int64, object)
    assert labels_like(frame, "y", np.unique(y)).tolist() == expected


def test_fractions_are_refused_with_what_to_do_and_can_be_names():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0.5, 1.5, 0.5, 2.0]})
    with pytest.raises(InvalidInputError, match=r"such as 0\.5 \(3 distinct.*pandas\.cut.*--text-"):
        split_target(frame, "y")
    _, y = split_target(frame, "y", text_labels=True)
    assert y.tolist() == ["0.5", "1.5", "0.5", "2"]
    text = pd.DataFrame({"y": ["0.50", "1.5", "2"]})
    assert labels_like(frame, "y", np.unique(y)).tolist() == y.tolist()
    assert labels_like(text, "y", np.array(["0.5", "1.5", "2"], object)).tolist()[0] == "0.5"


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a"] * 4, "only one class, 'a', in all 4 rows"),
        (["a", None, "b", None], "missing in 2 of 4 rows, first in data row 2"),
        (["a", "b", "c", "d"], "a different value in each of the 4 rows"),
        ([0.5, np.inf, 1, 2], "fractions"),
    ],
)
def test_labels_that_cannot_be_learnt_are_explained(labels, sentence):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": labels})
    with pytest.raises(InvalidInputError, match=sentence):
        split_target(frame, "y")


def test_a_target_that_is_not_there_lists_what_is(table):
    with pytest.raises(InvalidInputError, match=r"no column 'Label'.*Did you mean 'label'"):
        split_target(table, "Label")
    with pytest.raises(InvalidInputError, match="'size', 'count'"):
        split_target(table, "species")


def test_a_table_of_labels_alone_has_nothing_to_learn_from(table):
    with pytest.raises(InvalidInputError, match="nothing to learn from"):
        split_target(table[["label"]], "label")
    with pytest.raises(InvalidInputError, match="nothing to learn from"):
        split_target(table[["label", "nothing"]], "label")


def test_labels_of_another_table_are_found_by_their_text():
    classes = np.array([1, 2, 10])
    for labels in ([2, 10], [2.0, 10.0], ["2", "10"], ["2.0", "10"]):
        assert labels_like(pd.DataFrame({"y": labels}), "y", classes).tolist() == [2, 10]
    with pytest.raises(ClassMismatchError, match="holds '3', which is not a class of the model"):
        labels_like(pd.DataFrame({"y": [1, 3]}), "y", classes)
    with pytest.raises(InvalidInputError, match="missing in data row 2"):
        labels_like(pd.DataFrame({"y": [1, None]}), "y", classes)
    truths = np.array(["False", "True"], dtype=object)
    assert labels_like(pd.DataFrame({"y": ["TRUE"]}), "y", truths).tolist() == ["True"]


# Features


def test_numbers_are_filled_marked_and_scaled():
    X = pd.DataFrame({"x": [1.0, 2.0, np.nan, 6.0]})
    made = preprocessor(X).fit_transform(X)
    filled = np.array([1.0, 2.0, 2.0, 6.0])
    assert made[:, 0] == pytest.approx((filled - filled.mean()) / filled.std())
    mark = np.array([0.0, 0.0, 1.0, 0.0])
    assert made[:, 1] == pytest.approx((mark - mark.mean()) / mark.std())


def test_texts_become_a_column_for_each_level():
    texts = ["a"] * 6 + ["b"] * 7 + [np.nan] * 5 + ["rare"] * (MIN_LEVEL_ROWS - 1)
    X = pd.DataFrame({"t": pd.Series(texts, dtype=object)})
    made = preprocessor(X).fit(X)
    array = made.transform(X)
    array = array.toarray() if hasattr(array, "toarray") else array
    names = made.get_feature_names_out().tolist()
    assert names == ["t_(missing)", "t_a", "t_b", "t_infrequent_sklearn"]
    reference = pd.get_dummies(X["t"].fillna("(missing)"))[["(missing)", "a", "b", "rare"]]
    assert np.array_equal(array, reference.to_numpy(dtype=float))
    # What was never seen is as rare as can be.
    unseen = made.transform(pd.DataFrame({"t": pd.Series(["new"], dtype=object)}))
    assert np.asarray(unseen.toarray() if hasattr(unseen, "toarray") else unseen).tolist() == [
        [0, 0, 0, 1]
    ]


def test_the_number_of_levels_is_capped():
    levels = np.repeat([f"level {i}" for i in range(200)], 6).astype(object)
    X = pd.DataFrame({"t": levels})
    assert preprocessor(X).fit_transform(X).shape[1] == MAX_LEVELS
    codes = preprocessor(X, "boosting").fit_transform(X)
    assert len(np.unique(codes)) == 200 and codes.max() < 255


def test_boosting_reads_whole_numbers_with_gaps():
    texts = pd.Series(["a"] * 6 + ["b"] * 6 + [np.nan], dtype=object)
    X = pd.DataFrame({"t": texts, "x": [np.nan, *np.arange(12.0)]})
    made = preprocessor(X, "boosting").fit(X)
    array = made.transform(X)
    # Two levels are read in their order, more than eight as categories.
    assert booster_for(X).categorical_features is None
    many = pd.DataFrame({"x": X["x"], "t": texts, "u": pd.Series(list("abcdefghijklm"))})
    assert booster_for(many).categorical_features == [2]
    assert np.array_equal(array[:, 0], X["x"], equal_nan=True)
    assert array[:12, 1].tolist() == [0] * 6 + [1] * 6 and np.isnan(array[12, 1])
    other = pd.DataFrame({"t": pd.Series(["new"], dtype=object), "x": [1.0]})
    assert np.isnan(made.transform(other)[0, 1])


@pytest.mark.parametrize("kind", ["linear", "boosting"])
def test_a_column_that_is_empty_in_a_fold_breaks_nothing(kind, recwarn):
    X = pd.DataFrame(
        {
            "x": [np.nan] * 5 + [1.0],
            "t": pd.Series([np.nan] * 5 + ["a"], dtype=object),
            "z": np.arange(6.0),
        }
    )
    made = preprocessor(X, kind).fit(X.iloc[:5])
    assert made.transform(X).shape[0] == 6
    assert not recwarn.list


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_a_plain_pipeline_is_the_same_classifier_without_needless_steps(table, kind):
    table = conform(table, columns_of(table))
    y = np.where(np.arange(len(table)) % 2, "a", "b")
    whole = learner_for(table, kind)
    own = plain_pipeline(whole, table)
    assert not any(isinstance(step, AsTable) for _, step in own.steps)
    np.testing.assert_array_equal(
        own.fit(table, y).predict_proba(table), whole.fit(table, y).predict_proba(table)
    )
    kept = plain_pipeline(whole)
    assert isinstance(kept[0], AsTable)
    numbers = np.arange(40.0).reshape(-1, 2)
    bare = plain_pipeline(learner_for(numbers, kind), numbers)
    assert "ColumnTransformer" not in repr(bare)
    # What only the first step brings into order needs it.
    gaps = pd.Series([None, "a"] * 10, dtype=object)
    for column in ([True, False] * 10, gaps, [np.inf, 1.0] * 10):
        odd = pd.DataFrame({"x": np.arange(20.0), "odd": column})
        assert isinstance(plain_pipeline(learner_for(odd, kind), odd)[0], AsTable)


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_the_plain_learner_is_outermost_only_for_standard_weights(table, kind):
    plain = learner_for(table, kind, C=0.5, random_state=3)
    assert [name for name, _ in plain.steps] == ["table", "features", "model"]
    last = plain[-1]
    if kind == "linear":
        assert (last.goal, last.C) == ("standard", 0.5)
    else:
        assert last.random_state == 3
    for goal in ("standard", FixedWeights("standard")):
        assert repr(model_for(table, kind, goal, C=0.5, random_state=3)) == repr(plain)
    some = FixedWeights({"a": 1.0, "b": 2.0}), LabelCVaR("auto"), LabelCVaR(0.3), PriorBall(0.1)
    for goal in ("worst_class", None, "balanced", "f1_macro", *some):
        model = model_for(table, kind, goal, C=0.5, cv=3, random_state=3)
        assert isinstance(model, RobustClassifier) and repr(model.estimator) == repr(plain)
        assert (model.random_state, model.cv, model.rare_classes) == (3, 3, "keep")
        assert model.training == ("balanced" if goal == "balanced" else "plain")
        recipe = as_goal(goal)
        known = recipe.uncertainty if isinstance(recipe, SetGoal) else recipe
        assert repr(model.goal) == repr(known)


def test_forests_say_the_same_with_any_number_of_threads():
    rng = np.random.default_rng(0)
    # Few distinct rows of several classes, so that leaves hold fractions.
    X, y = rng.integers(0, 4, (2000, 2)).astype(float), rng.integers(0, 3, 2000)
    forest = OrderedForest(50, random_state=0).fit(X, y)
    again = RandomForestClassifier(50, random_state=0).fit(X, y)
    expected = again.predict_proba(X)
    for _ in range(20):
        with parallel_config("threading", n_jobs=4):
            assert np.array_equal(forest.predict_proba(X), expected)


def test_dates_that_are_days_already_stay_as_they_are():
    frame = pd.DataFrame(
        {
            "born": np.array(["2020-02-29T12:00", "NaT", "1066-10-14"], dtype="datetime64[s]"),
            "new": [True, False, None],
            "n": [1, None, 3],
            "town": ["Ulm", None, "7"],
        }
    )
    columns = columns_of(frame)
    once = conform(frame, columns)
    assert once["born"].iloc[0] == 18321.5 and once["born"].iloc[2] < -300_000
    pd.testing.assert_frame_equal(conform(once, columns), once)


def test_columns_are_brought_into_form_from_tables_and_arrays_of_any_order(table):
    columns = [(column.name, column.kind) for column in columns_of(table)]
    made = AsTable(columns)
    expected = conform(table, columns_of(table))
    for rows in (table, table.iloc[:, ::-1], expected, table.astype(object)):
        pd.testing.assert_frame_equal(made.fit(rows).transform(rows), expected)
    assert made.n_features_in_ == len(columns) and made.feature_names_in_[0] == columns[0][0]
    assert clone(made).columns == columns
    with pytest.raises(InvalidInputError, match="The table has no column"):
        made.transform(table.iloc[:, 1:])
    with pytest.raises(InvalidInputError, match="sparse matrix"):
        AsTable([("x0", "number")]).transform(csr_matrix([[1.0]]))


def test_unknown_kinds_are_refused(table):
    for made in (preprocessor, learner_for, model_for):
        with pytest.raises(InvalidParameterError, match="'forest', 'boosting', got 'trees'"):
            made(table, "trees")
    with pytest.raises(InvalidInputError, match="no column with any value"):
        preprocessor(table[["nothing"]])


def test_an_ordinary_classifier_takes_the_features(table):
    from sklearn.linear_model import LogisticRegression

    X, y = split_target(pd.concat([table] * 5, ignore_index=True), "label")
    model = make_pipeline(preprocessor(X), LogisticRegression()).fit(X, y)
    assert model.score(X, y) == 1.0


# Facts


def test_facts_of_a_plain_table_have_no_warnings(table):
    facts = labelled_table(table[["size", "count", "town", "new"]], table["label"])
    assert len(facts.X) == 4 and facts.classes.tolist() == ["a", "b"]
    assert facts.counts.tolist() == [2, 2]
    assert [column.n_missing for column in facts.columns] == [1, 0, 1, 0]
    assert facts.warnings == ()


def test_each_oddity_of_a_table_is_one_sentence():
    n = 60
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "code": [f"row {i}" for i in range(n)],
            "nothing": np.full(n, np.nan),
            "wild": np.where(np.arange(n) < 3, np.inf, 1.0),
            "age": [*(str(i % 9) for i in range(n - 1)), "old"],
            "fine": rng.normal(size=n),
            "town": np.resize(["Ulm", "Bonn"], n),
        }
    )
    y = np.array(["common"] * (n - 1) + ["alone"], dtype=object)
    warnings = labelled_table(X, y).warnings
    starts = [
        "Column 'nothing': left out",
        "Column 'id'",
        "Column 'code'",
        "Column 'wild' has 3 infinite",
    ]
    starts += ["Column 'age' is read as text because of values such as 'old'"]
    starts += ["Class 'alone': used for training"]
    assert len(warnings) == len(starts)
    assert all(any(text.startswith(start) for text in warnings) for start in starts)
    assert sum("looks like an identifier" in text for text in warnings) == 2


def test_a_stray_text_among_numbers_makes_no_identifier():
    numbers = [str(place / 7) for place in range(99)]
    frame = pd.DataFrame(
        {"price": [*numbers, "on request"], "id": [f"row {i}" for i in range(100)]}
    )
    price, name = labelled_table(frame, ["a", "b"] * 50).warnings
    assert "'price' is read as text because of values such as 'on request' among" in price
    assert "'id' names nearly every row differently" in name


def test_amounts_that_repeat_and_fractions_are_no_identifiers():
    X = pd.DataFrame({"amount": np.arange(60) // 2, "length": np.arange(60) + 0.5})
    assert labelled_table(X, np.arange(60) % 2).warnings == ()


# Rows set aside


@st.composite
def labelled_tables(draw):
    n = draw(st.integers(1, 60))
    values = draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return pd.DataFrame({"x": np.array(values, dtype=float)}), np.array(labels)


def rows_of(X, y):
    return LabelledTable(X, *np.unique(y, return_inverse=True), (), ())


def test_rows_with_weights_may_lack_a_class_that_is_named():
    table = unseen_rows(["a", "b", "a"], classes=["a", "b", "c"], sample_weight=[1, 2, 0])
    assert table.weights.tolist() == [1, 2, 0]
    with pytest.raises(InvalidInputError, match="zero for every row of class 'a'"):
        unseen_rows(["a", "b"], classes=["a", "b", "c"], sample_weight=[0, 1])


@settings(max_examples=80)
@given(rows=labelled_tables(), share=st.sampled_from([0.0, 0.2, 0.5, 0.9]), seed=st.integers(0, 99))
def test_rows_set_aside_keep_every_class_in_training_and_repeats_together(rows, share, seed):
    X, y = rows
    train, test = hold_out(rows_of(X, y), share, seed)
    assert sorted([*train, *test]) == list(range(len(y)))
    assert not set(X["x"].iloc[train]) & set(X["x"].iloc[test])
    assert set(y[train]) == set(y)
    again = hold_out(rows_of(X, y), share, seed)
    assert np.array_equal(again[0], train) and np.array_equal(again[1], test)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_the_share_is_met_in_every_class_of_distinct_rows(share):
    y = np.repeat([0, 1, 2], [1000, 100, 10])
    X = pd.DataFrame({"x": np.arange(len(y))})
    _, test = hold_out(rows_of(X, y), share, 3)
    assert np.bincount(y[test]).tolist() == [round(share * n) for n in (1000, 100, 10)]


def test_a_row_repeated_too_often_stays_in_training():
    X = pd.DataFrame({"x": np.r_[np.zeros(500), np.arange(1.0, 501.0)]})
    _, test = hold_out(rows_of(X, np.zeros(1000, dtype=int)), 0.2, 0)
    assert len(test) == 200 and test.min() >= 500


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(InvalidParameterError, match=r"share must be a number in \[0, 1\)"):
        hold_out(rows_of(pd.DataFrame({"x": [1.0]}), [0]), 1.0)


# Real data


@needs_data
@pytest.mark.parametrize("name", ["adult", "abalone", "kr_vs_k", "wine_quality"])
def test_real_tables_are_fitted_as_they_are(name):
    frame = read_table(Path(DATA) / f"{name}.csv.gz").iloc[::20].reset_index(drop=True)
    X, y = split_target(frame, "target")
    model = model_for(X, "linear", "balanced").fit(X, y)
    assert set(model.predict(X)) <= set(y)
    if name == "adult":
        assert X.isna().to_numpy().any() and not (X == "?").to_numpy().any()
