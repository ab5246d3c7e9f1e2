"""Goals as texts: what ``repr`` prints is read back, nothing is executed, errors say what to do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from equipoise.estimators.robust_classifier import TRAININGS
from equipoise.exceptions import ClassMismatchError, EquipoiseError
from equipoise.goals import (
    GOALS,
    CostMatrix,
    MetricGoal,
    RecallFloors,
    as_goal,
    bind_classes,
    format_goal,
    goal_names,
    parse_goal,
)
from equipoise.goals.metric_goal import METRIC_NAMES
from equipoise.metrics import fbeta
from equipoise.sets import (
    SETS,
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBall,
    PriorBox,
    WeightBox,
    WeightHull,
    WorstClass,
)

TEXTS = {
    "standard": FixedWeights("standard"),
    "balanced": FixedWeights("balanced"),
    "worst_class": WorstClass(),
    "FixedWeights({'a': 1, 'b': 5})": FixedWeights({"a": 1, "b": 5}),
    "lcvar:0.1": LabelCVaR(0.1),
    "LabelCVaR(alpha=0.1)": LabelCVaR(0.1),
    "LabelHCVaR(c=0.5, kappa=2)": LabelHCVaR(c=0.5, kappa=2),
    "LabelHCVaR(kappa=2)": LabelHCVaR(kappa=2),
    "PriorBox(lower={'fraud': 0.001}, upper={'fraud': 0.05})": PriorBox(
        {"fraud": 0.001}, {"fraud": 0.05}
    ),
    "PriorBox({'a': 0.1}, {'b': 0.5})": PriorBox({"a": 0.1}, {"b": 0.5}),
    "PriorBox(0.1, 0.9)": PriorBox(0.1, 0.9),
    "WeightBox({'a': 1, 'b': 0}, {'a': 3, 'b': 1e3})": WeightBox(
        {"a": 1, "b": 0}, {"a": 3, "b": 1000.0}
    ),
    "WeightBox(None, inf)": WeightBox(None, np.inf),
    "PriorBall(0.1, 'kl')": PriorBall(0.1, "kl"),
    'PriorBall(divergence="tv",radius=0.2)': PriorBall(0.2, "tv"),
    "FixedWeights({'a,b=c': 1, 'd \\'e\\n': 2})": FixedWeights({"a,b=c": 1, "d 'e\n": 2}),
    " WeightHull(['standard', {'a': 1, 2: -0.5}, (1, 2)]) ": WeightHull(
        ["standard", {"a": 1, 2: -0.5}, (1, 2)]
    ),
}


def same(one, other):
    """Whether two goals are equal, also inside."""
    if not isinstance(one, BaseEstimator):
        return one == other
    mine, others = one.get_params(deep=False), other.get_params(deep=False)
    return type(one) is type(other) and all(same(mine[name], others[name]) for name in mine)


@pytest.mark.parametrize(("text", "goal"), TEXTS.items(), ids=str)
def test_texts_are_read(text, goal):
    assert same(parse_goal(text), goal)


@pytest.mark.parametrize("goal", TEXTS.values(), ids=repr)
def test_goals_are_written_as_repr_prints_them_and_read_back(goal):
    text = format_goal(goal)
    if "(1, 2)" not in repr(goal):
        assert text == repr(goal) and same(parse_goal(text), goal)
    assert format_goal(parse_goal(text)) == text


@pytest.mark.parametrize("name", [*METRIC_NAMES, "f2", "f0.5", "f2_macro"])
def test_metrics_stay_their_names(name):
    assert format_goal(parse_goal(name)) == name
    assert as_goal(parse_goal(name)).metric == name


def test_a_metric_is_written_by_its_coefficients_too():
    metric = fbeta(2)
    text = format_goal(metric)
    assert text.startswith("LinearFractional(") and parse_goal(text) == metric
    nested = format_goal(MetricGoal(metric))
    assert nested.startswith("MetricGoal(metric=LinearFractional(")
    assert parse_goal(nested).metric == metric


@pytest.mark.parametrize(
    "goal",
    [one for kind in (*SETS.values(), *GOALS.values()) for one in kind.examples()],
    ids=repr,
)
def test_every_registered_goal_is_read_as_repr_prints_it(goal):
    text = format_goal(goal)
    assert text == " ".join(repr(goal).split()) and same(parse_goal(text), goal)


names = st.text(min_size=1, max_size=12) | st.integers()
numbers = st.floats(0.001, 1000)


@st.composite
def recipes(draw):
    weights = draw(st.dictionaries(names, numbers, min_size=1, max_size=40))
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
                CostMatrix({name: {"x": cost} for name, cost in weights.items()}),
                CostMatrix([[0.0, share], [-share, 0.0]]),
                RecallFloors(shares, confidence=draw(st.sampled_from([None, 0.9]))),
            ]
        )
    )


def in_numpy(value):
    """The same value in NumPy's types."""
    if isinstance(value, dict):
        return {key: in_numpy(item) for key, item in value.items()}
    if isinstance(value, list) and not any(isinstance(item, dict | str) for item in value):
        return np.array(value)
    return np.float64(value) if isinstance(value, float) else value


@settings(max_examples=200)
@given(recipe=recipes())
def test_reading_what_was_written_gives_the_recipe_back(recipe):
    text = format_goal(recipe)
    found = parse_goal(text)
    assert same(found, recipe)
    assert format_goal(found) == text


@settings(max_examples=50)
@given(recipe=recipes())
def test_numbers_of_numpy_are_written_as_plain_ones(recipe):
    values = {k: in_numpy(v) for k, v in recipe.get_params(deep=False).items()}
    assert format_goal(type(recipe)(**values)) == format_goal(recipe)


def test_every_recipe_of_the_library_can_be_named():
    import equipoise

    concrete = {n for n in dir(equipoise) if hasattr(getattr(equipoise, n), "resolve")}
    assert set(goal_names()) >= concrete - {"Uncertainty"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no goal: the words are worst_class, balanced, standard"),
        ("robust", "is no goal: the words are"),
        ("lcvar", r"did you mean 'lcvar:0\.1'\?"),
        ("lcvar:", r"did you mean 'lcvar:0\.1'\?"),
        ("lcvar:ten", "'ten' should be a number"),
        ("lcvar:nan", "alpha must be a number"),
        ("lcvar:0", r"alpha must be a number in \(0, 1\], got 0"),
        ("lcvar:1.5", r"alpha must be a number in \(0, 1\], got 1.5"),
        ("LabelHCVaR(a=0.5)", "LabelHCVaR takes c, kappa, alphas, not 'a'"),
        ("LabelHCVaR(c=2)", r"c must be a number in \(0, 1\], got 2"),
        ("FixedWeights(", "cannot be read as Python"),
        ("FixedWeights(a)", "'a' should be a number, a text, a list or a dict"),
        ("FixedWeights({'a': 1,, 'b': 2})", "cannot be read as Python"),
        ("FixedWeights({**{'a': 1}})", r"'\*\*' should be a number"),
        ("FixedWeights({'a': 1, 'a': 2})", "names 'a' twice"),
        ("FixedWeights({['a']: 1})", "should be a number, a text"),
        ("FixedWeights({1, 2})", "should be a number, a text, a list or a dict"),
        ("PriorBox(0.1, 0.2, 0.3)", "PriorBox takes lower, upper: too many positional arguments"),
        ("PriorBox(lower=0.1, lower=0.2)", "says 'lower' twice"),
        ("PriorBox(lower=1 + 1)", r"'1 \+ 1' should be a number"),
        ("PriorBox(0.9, 0.95)", "empty unless the sum of lower"),
        ("PriorBox(**{'lower': 1})", r"takes lower, upper, not '\*\*'"),
        ("PriorBall(0.1, 'euclid')", "divergence must be one of 'kl', 'chi2', 'tv', 'l2'"),
        ("PriorBall(-1)", r"radius must be a number in \[0, inf\)"),
        ("set.json", "is no goal: the words are"),
        ("{", "is no goal: the words are"),
        ("Sphere(1)", "with one of FixedWeights, WorstClass"),
        ("LabelCVAR(0.1)", r"did you mean LabelCVaR\?"),
        ("LabelCVaR()", "LabelCVaR takes alpha: missing a required argument"),
        ("LabelCVaR", r"write it as a call, LabelCVaR\(...\)"),
        ("LabelCVaR('x')", "alpha must be a number"),
        ("LabelCVaR(alpha=True)", "alpha must be a number"),
        ("sets.LabelCVaR(0.1)", "is no goal"),
        ("WeightHull([LabelCVAR(0.1)])", r"did you mean LabelCVaR\?"),
        ("jacard", r"did you mean 'jaccard'\?"),
        ("marco_f1", r"did you mean 'f1_macro'\?"),
        ("RecallFloors(0.5, confidence=2)", "confidence must be a number in"),
        ("CostMatrix('x')", "costs, as a matrix, must hold numbers"),
        ("MetricGoal('f1 ')", "metric must be"),
        ("MetricGoal(open)", "'open' should be a number"),
        ("SetGoal(uncertainty=Sphere())", "is no goal"),
        ("f0", "beta must be"),
        ("SetGoal(0.1)", "uncertainty must be an uncertainty set .* got 0.1"),
        ("SetGoal('x')", "uncertainty must be an uncertainty set .* got 'x'"),
        ("SetGoal(SetGoal(WorstClass()))", "uncertainty must be an uncertainty set .* got SetGoal"),
        ("LinearFractional(1, 2)", "must be five finite numbers"),
        ("LinearFractional([1], [2])", "must be five finite numbers"),
        ("LinearFractional({'xx': 1}, {'tp': 1})", "by these names, got"),
        ("MetricGoal(1.5)", "metric must be"),
        ("MetricGoal(WorstClass())", "metric must be"),
        ("LabelCVaR(WorstClass())", "alpha must be a number"),
        ("WorstClass() or WorstClass()", "is no goal: the words are"),
        ("[" * 300 + "]" * 300, "is no goal: the words are"),
        ("LabelCVaR(" + "-" * 100_000 + "1)", "is no goal"),
        ("LabelCVaR(" + "1" * 5000 + ")", "is no goal"),
        ("x" * (1 << 21), "is no goal: the words are"),
        ("LabelCVaR(0.1)\x00", "cannot be read as Python"),
    ],
    ids=lambda text: text[:40],
)
def test_errors_say_what_is_wrong_and_what_to_write(text, sentence):
    with pytest.raises(EquipoiseError, match=sentence) as found:
        parse_goal(text)
    assert "\n" not in str(found.value) and len(str(found.value)) < 1000


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch executed')",
        "LabelCVaR(alpha=__import__('os').system('touch executed'))",
        "FixedWeights(weights=open('executed', 'w'))",
        "(lambda: open('executed', 'w'))()",
        'LabelCVaR(alpha=f\'{open("executed", "w")}\')',
        "WeightHull([x for x in open('executed', 'w')])",
    ],
)
def test_nothing_in_a_text_is_executed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EquipoiseError, match="is no goal"):
        parse_goal(text)
    assert not list(tmp_path.iterdir())


def test_class_names_are_bound_to_the_classes_they_stand_for():
    classes = np.array([1, 2, 30])
    for text in (
        "PriorBox({'1': 0.1}, {'1': 0.2, '30': 0.5})",
        "PriorBox({1: 0.1}, {1: 0.2, 30: 0.5})",
    ):
        bound = bind_classes(parse_goal(text), classes)
        assert same(bound, PriorBox({1: 0.1}, {1: 0.2, 30: 0.5}))
    hull = bind_classes(WeightHull(["standard", {"1": 1, "2": 2, "30": 3}]), classes)
    assert hull.weightings == ["standard", {1: 1, 2: 2, 30: 3}]
    texts = np.array(["1", "2"], dtype=object)
    assert bind_classes(parse_goal("FixedWeights({1: 1, '2': 3})"), texts).weights == {
        "1": 1,
        "2": 3,
    }
    # Written with its classes and read again it is the same.
    again = bind_classes(parse_goal(format_goal(bound)), classes)
    assert same(again, bound)


def test_classes_that_are_not_there_are_named():
    with pytest.raises(ClassMismatchError, match="names class 'fraud'; the classes are 'a', 'b'"):
        bind_classes(parse_goal("PriorBox({'fraud': 0.0})"), np.array(["a", "b"]))


def test_trainings_have_the_words_of_the_classifier():
    pytest.importorskip("click", reason="click is not installed")
    from equipoise.cli.fit import fit

    (option,) = [each for each in fit.params if each.name == "training"]
    assert sorted(option.type.choices) == sorted(TRAININGS) and option.default is None
