"""Tables with columns of texts as ONNX: an input for each column, encoders as in Python."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from equipoise import RobustClassifier, RobustLogisticRegression, TunedDecisionClassifier
from equipoise.exceptions import InvalidInputError, InvalidParameterError

pd = pytest.importorskip("pandas", minversion="2.1")
pytest.importorskip("onnx")
pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")

from equipoise.onnx import to_onnx  # noqa: E402

COLOURS = np.array(["red", "blue", "green", "violet", "grey"])


def table(n_rows=700, seed=0):
    """A table of texts and numbers, and labels that depend on both."""
    rng = np.random.default_rng(seed)
    place = rng.choice(len(COLOURS), n_rows, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    frame = pd.DataFrame(
        {
            "colour": COLOURS[place],
            "size": rng.normal(size=n_rows),
            "note": np.array(["ignored", "never read"])[rng.integers(2, size=n_rows)],
            "count": rng.integers(0, 4, size=n_rows),
            "shop": np.array(["north", "south"])[rng.integers(2, size=n_rows)],
        }
    )
    score = frame["size"] + (place - 1) + 0.5 * frame["count"] - 1.5
    return frame, np.where(score + rng.normal(size=n_rows) > 1, "late", "on time")


def answers(made, frame):
    """What a runtime makes of the columns that the model asks for."""
    session = runtime.InferenceSession(made.SerializeToString())
    feeds = {}
    for each in session.get_inputs():
        dtype = object if each.type == "tensor(string)" else each.type[7:-1].replace("float", "f4")
        column = frame[[each.name]].to_numpy()
        feeds[each.name] = column.astype({"double": "f8"}.get(dtype, dtype))
    return session.run(None, feeds)


def assert_same(model, frame, **settings):
    label, probabilities = answers(to_onnx(model, **settings), frame)
    np.testing.assert_array_equal(label, model.predict(frame))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-12)


def filled():
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())


STEPS = {
    "by name": lambda: make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour", "shop"]), (filled(), ["size", "count"])
    ),
    "remainder": lambda: make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["shop", "colour"]),
        ("drop", ["note"]),
        remainder="passthrough",
    ),
    "selected by type": lambda: ColumnTransformer(
        [
            (
                "texts",
                OneHotEncoder(min_frequency=30, handle_unknown="infrequent_if_exist"),
                make_column_selector(dtype_exclude="number"),
            ),
            ("numbers", filled(), make_column_selector(dtype_include="number")),
        ],
        transformer_weights={"numbers": 0.5},
    ),
    "dropped": lambda: make_column_transformer(
        (OneHotEncoder(drop="first", handle_unknown="ignore"), ["colour"]),
        (OneHotEncoder(drop="if_binary"), ["shop", "count"]),
        (StandardScaler(), ["size"]),
    ),
    "ordinal": lambda: make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["colour", "shop"]),
        ("passthrough", ["size"]),
    ),
    "filled texts": lambda: make_column_transformer(
        (
            make_pipeline(
                SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
            ),
            ["colour"],
        ),
        (filled(), ["size"]),
    ),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_tables_with_texts_are_answered_the_same(name):
    frame, y = table()
    base = make_pipeline(STEPS[name](), RandomForestClassifier(5, random_state=0))
    model = TunedDecisionClassifier(base, "worst_class", cv=3).fit(frame[:300], y[:300])
    other = frame[300:].copy()
    if name in ("by name", "remainder", "ordinal", "filled texts"):
        other.loc[other.index[:50], "colour"] = "Red"
    assert_same(model, other)
    assert_same(model, other, X=other)


def test_inputs_are_the_columns_that_are_used():
    frame, y = table()
    base = make_pipeline(STEPS["by name"](), LogisticRegression())
    model = TunedDecisionClassifier(base, "balanced").fit(frame, y)
    made = to_onnx(model, dtype="float32")
    session = runtime.InferenceSession(made.SerializeToString())
    types = {each.name: each.type for each in session.get_inputs()}
    assert types == {
        "colour": "tensor(string)",
        "size": "tensor(float)",
        "count": "tensor(float)",
        "shop": "tensor(string)",
    }
    rows = frame.astype({"size": "float32"})
    label, _ = answers(made, rows)
    np.testing.assert_array_equal(label, model.predict(rows.astype({"size": "float64"})))


def test_models_in_pipelines_behind_columns_are_written():
    frame, y = table()
    for last in (
        RobustLogisticRegression("worst_class"),
        RobustClassifier(HistGradientBoostingClassifier(max_iter=5), "worst_class", cv=3),
    ):
        assert_same(make_pipeline(STEPS["by name"](), last).fit(frame, y), frame)


def test_columns_of_numbers_by_name_are_one_input():
    frame, y = table()
    columns = make_column_transformer((OneHotEncoder(), ["count"]), (StandardScaler(), ["size"]))
    base = make_pipeline(columns, LogisticRegression())
    numbers = frame[["size", "count"]]
    model = TunedDecisionClassifier(base, "balanced").fit(numbers, y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    label, _ = session.run(None, {"X": numbers.to_numpy(dtype=float)})
    np.testing.assert_array_equal(label, model.predict(numbers))


@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder])
def test_categories_that_are_numbers_are_compared_as_they_are(encoder):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([0.5, 1.0, 1.5, -2.0], 700), rng.normal(size=700)])
    y = (X[:, 1] + X[:, 0] > rng.normal(size=700)).astype(int)
    unknown = {"handle_unknown": "ignore"}
    if encoder is OrdinalEncoder:
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    columns = make_column_transformer((encoder(**unknown), [0]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression())
    model = TunedDecisionClassifier(model, "balanced").fit(X[:300], y[:300])
    X[400:, 0] += rng.choice([0.0, 0.25, 1.0, 100.0], 300)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    label, probabilities = session.run(None, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=1e-12)


def test_a_missing_number_may_be_a_category():
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0, np.nan], (300, 2))
    y = (np.nan_to_num(X[:, 0], nan=2.0) > rng.normal(size=300)).astype(int)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model = TunedDecisionClassifier(model, "balanced").fit(X, y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"X": X})[0], model.predict(X))


# Refusals


def fitted(columns, frame, y, head=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(columns, head or LogisticRegression())
        return TunedDecisionClassifier(model, "balanced").fit(frame, y)


def test_what_onnx_has_no_texts_for_is_refused_in_a_sentence():
    frame, y = table()
    gaps = frame.assign(colour=frame["colour"].where(frame["size"] > -1, None))
    model = fitted(make_column_transformer((OneHotEncoder(), ["colour"])), gaps, y)
    with pytest.raises(InvalidParameterError, match=r"no missing texts: fill them"):
        to_onnx(model)
    model = fitted(OneHotEncoder(handle_unknown="ignore"), frame[["colour", "shop"]].to_numpy(), y)
    with pytest.raises(InvalidParameterError, match=r"no names: fit to a DataFrame"):
        to_onnx(model)
    mixed = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["shop", "count"])
    )
    with pytest.raises(InvalidParameterError, match=r"texts and of numbers.*step of its own"):
        to_onnx(fitted(mixed, frame, y))


def test_a_column_that_is_called_like_an_output_is_refused():
    frame, y = table()
    renamed = frame.rename(columns={"colour": "label"})
    columns = make_column_transformer((OneHotEncoder(), ["label"]))
    with pytest.raises(InvalidParameterError, match=r"name of the column 'label'.*rename"):
        to_onnx(fitted(columns, renamed, y))


def test_rows_to_compare_on_must_be_those_of_the_fit():
    frame, y = table()
    model = fitted(STEPS["by name"](), frame, y)
    with pytest.raises(InvalidInputError, match="X must be a DataFrame"):
        to_onnx(model, frame.to_numpy())
    model = TunedDecisionClassifier(LogisticRegression(), "balanced").fit(
        frame[["size", "count"]], y
    )
    with pytest.raises(InvalidInputError, match="2 columns of the fit, got shape"):
        to_onnx(model, frame[["size"]].to_numpy())
