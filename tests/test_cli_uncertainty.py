"""Uncertainty sets on the command line: texts and recipes agree, and errors say what to do."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.cli.uncertainty import (
    RECIPES,
    bind_classes,
    check_for,
    format_uncertainty,
    parse_uncertainty,
)
from equipoise.exceptions import (
    ClassMismatchError,
    EmptySetError,
    EquipoiseError,
    InvalidInputError,
)
from equipoise.sets import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBall,
    PriorBox,
    WeightBox,
    WeightHull,
    WorstClass,
)

SHORT_FORMS = {
    "standard": FixedWeights("standard"),
    "balanced": FixedWeights("balanced"),
    "worst-class": WorstClass(),
    "weights:a=1,b=5": FixedWeights({"a": 1, "b": 5}),
    "lcvar:0.1": LabelCVaR(0.1),
    "lcvar:alpha=0.1": LabelCVaR(0.1),
    "lhcvar:c=0.5,kappa=2": LabelHCVaR(c=0.5, kappa=2),
    "lhcvar:kappa=2": LabelHCVaR(kappa=2),
    "prior-box:fraud=0.001..0.05": PriorBox({"fraud": 0.001}, {"fraud": 0.05}),
    "prior-box:a=0.1..,b=..0.5": PriorBox({"a": 0.1}, {"b": 0.5}),
    "prior-box:0.1..0.9": PriorBox(0.1, 0.9),
    "weight-box:a=1..3,b=0..1e3": WeightBox({"a": 1, "b": 0}, {"a": 3, "b": 1000}),
    "weight-box:..2": WeightBox(None, 2),
    "prior-ball:kl=0.1": PriorBall(0.1, "kl"),
    "prior-ball:tv=0.2": PriorBall(0.2, "tv"),
    'weights:"a,b=c"=1, d e =2': FixedWeights({"a,b=c": 1, "d e": 2}),
    " worst-class ": WorstClass(),
}


def same(one, other):
    return type(one) is type(other) and one.get_params() == other.get_params()


@pytest.mark.parametrize(("text", "recipe"), SHORT_FORMS.items(), ids=str)
def test_short_forms_are_read(text, recipe):
    assert same(parse_uncertainty(text), recipe)


@pytest.mark.parametrize("recipe", SHORT_FORMS.values(), ids=repr)
def test_recipes_are_written_as_short_forms_and_read_back(recipe):
    text = format_uncertainty(recipe)
    assert not text.startswith("{")
    assert same(parse_uncertainty(text), recipe)


names = st.text(min_size=1, max_size=12)
numbers = st.floats(0.001, 1000)


@st.composite
def recipes(draw):
    weights = draw(st.dictionaries(names, numbers, min_size=1, max_size=4))
    shares = draw(st.dictionaries(names, st.floats(0, 0.2), min_size=1, max_size=4))
    share = draw(st.floats(0.01, 1))
    return draw(
        st.sampled_from(
            [
                FixedWeights(weights),
                FixedWeights(list(weights.values())),
                LabelCVaR(share),
                LabelHCVaR(c=share, kappa=draw(numbers)),
                LabelHCVaR(alphas=weights),
                PriorBox(upper=shares),
                PriorBox(lower=shares, upper=dict.fromkeys(shares, 0.5)),
                WeightBox(lower=weights),
                WeightBox(0.5, draw(st.floats(1, 100))),
                PriorBall(share, draw(st.sampled_from(["kl", "chi2", "tv", "l2"]))),
                PriorBall(share, "tv", center=shares),
                WeightHull(["standard", weights, [1.0, 2.0]]),
                WorstClass(),
            ]
        )
    )


@settings(deadline=None, max_examples=200)
@given(recipe=recipes())
def test_reading_what_was_written_gives_the_recipe_back(recipe):
    text = format_uncertainty(recipe)
    found = parse_uncertainty(text)
    assert same(found, recipe)
    assert format_uncertainty(found) == text


@settings(deadline=None, max_examples=50)
@given(recipe=recipes())
def test_a_json_file_says_what_the_object_says(recipe, tmp_path_factory):
    given_values = {k: v for k, v in recipe.get_params(deep=False).items() if v is not None}
    path = tmp_path_factory.mktemp("sets") / "set.json"
    path.write_text(json.dumps({"set": type(recipe).__name__, **given_values}), encoding="utf-8")
    assert same(parse_uncertainty(str(path)), recipe)


def test_every_recipe_of_the_library_can_be_named():
    import equipoise

    concrete = {n for n in dir(equipoise) if hasattr(getattr(equipoise, n), "resolve")}
    assert set(RECIPES) == concrete - {"Uncertainty"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no uncertainty set; the forms are standard, balanced"),
        ("robust", "is no uncertainty set; the forms are"),
        ("lcvar", "is no uncertainty set; the forms are"),
        ("lcvar:", "'' should be a number"),
        ("lcvar:ten", "'ten' should be a number"),
        ("lcvar:nan", "'nan' should be a number"),
        ("lcvar:0", r"alpha must be a number in \(0, 1\], got 0"),
        ("lcvar:1.5", r"alpha must be a number in \(0, 1\], got 1.5"),
        ("lhcvar:a=0.5", "lhcvar takes c and kappa, got 'a'"),
        ("lhcvar:c=2", r"c must be a number in \(0, 1\], got 2"),
        ("weights:", "NAME=VALUE pair is missing"),
        ("weights:a", "NAME=VALUE pairs"),
        ("weights:a=1,,b=2", "NAME=VALUE pairs"),
        ("weights:a=1,", "pair is missing"),
        ("weights:a=1,a=2", "names 'a' twice"),
        ("weights:a=1=2", "NAME=VALUE pairs"),
        (r'weights:"\x"=1', "is no JSON string"),
        ("prior-box:a=0.1", "'0.1' should be a range such as 0.001..0.05"),
        ("prior-box:a=..", "should be a range"),
        ("prior-box:a=x..1", "'x' should be a number"),
        ("prior-box:0.9..0.95", "empty unless the sum of lower"),
        ("prior-ball:kl=0.1,tv=0.2", "takes one divergence and its radius"),
        ("prior-ball:euclid=0.1", "divergence must be one of 'kl', 'chi2', 'tv', 'l2'"),
        ("prior-ball:kl=-1", r"radius must be a number in \[0, inf\)"),
        ("none.json", "There is no file none.json"),
        ("{", "is not valid JSON"),
        ('{"set": "Sphere"}', "one of the sets FixedWeights, LabelCVaR"),
        ('{"set": ["LabelCVaR"]}', "one of the sets"),
        ('{"set": "LabelCVaR"}', "LabelCVaR takes alpha"),
        ('{"set": "LabelCVaR", "beta": 1}', "has no 'beta'; it takes alpha"),
        ('{"set": "LabelCVaR", "alpha": "x"}', "alpha must be a number"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_write(text, sentence):
    with pytest.raises(EquipoiseError, match=sentence) as found:
        parse_uncertainty(text)
    assert "\n" not in str(found.value)


def test_files_that_are_no_descriptions_are_said(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="not a text in UTF-8"):
        parse_uncertainty(str(bad))
    bad.write_bytes(b"[" * 100_000)
    with pytest.raises(InvalidInputError, match="is not valid JSON"):
        parse_uncertainty(str(bad))
    bad.write_bytes(b" " * (1 << 20) + b"{}")
    with pytest.raises(InvalidInputError, match="too large"):
        parse_uncertainty(str(bad))


def test_class_names_are_bound_to_the_classes_they_stand_for():
    classes = np.array([1, 2, 30])
    bound = bind_classes(parse_uncertainty("prior-box:1=0.1..0.2,30=..0.5"), classes)
    assert same(bound, PriorBox({1: 0.1}, {1: 0.2, 30: 0.5}))
    hull = bind_classes(WeightHull(["standard", {"1": 1, "2": 2, "30": 3}]), classes)
    assert hull.weightings == ["standard", {1: 1, 2: 2, 30: 3}]
    texts = np.array(["1", "2"], dtype=object)
    assert bind_classes(parse_uncertainty("weights:1=1,2=3"), texts).weights == {"1": 1, "2": 3}
    # Written with its classes and read again it is the same.
    again = bind_classes(parse_uncertainty(format_uncertainty(bound)), classes)
    assert same(again, bound)


def test_classes_that_are_not_there_are_named():
    with pytest.raises(ClassMismatchError, match="names class 'fraud'; the classes are 'a', 'b'"):
        bind_classes(parse_uncertainty("prior-box:fraud=0..1"), np.array(["a", "b"]))
    with pytest.raises(ClassMismatchError, match="'b' is missing"):
        check_for(parse_uncertainty("weights:a=1"), [0.5, 0.5], np.array(["a", "b"]))
    with pytest.raises(EmptySetError, match="empty unless"):
        check_for(parse_uncertainty("prior-box:a=..0.1,b=..0.1"), [0.5, 0.5], np.array(["a", "b"]))
    with pytest.raises(InvalidInputError):
        check_for(FixedWeights({"a": "x", "b": 1}), [0.5, 0.5], np.array(["a", "b"]))
