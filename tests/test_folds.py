"""Folds: equal rows stay together, every class is judged, and pages have those of estimators."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from equipoise import RecallFloors, RobustClassifier, TunedDecisionClassifier
from equipoise.decisions import LabelledRows, RareClasses, Splitting, split
from equipoise.decisions.equal_rows import equal_rows

pd = pytest.importorskip("pandas", reason="equipoise[report] is not installed")

CELLS = st.sampled_from([0.0, -0.0, 1.0, -1.5, np.nan, 2.0**60])


def parts_of(cv, X, y, seed=0, **options):
    labels = np.unique(y, return_inverse=True)[1]
    y = np.asarray(y)
    rows = LabelledRows(X, y, labels, np.unique(y), np.ones(len(y)))
    found = split(rows, Splitting(cv, seed, rare=RareClasses("keep"), **options))
    return found.parts, found.few


def partition(numbers):
    """The first row that each row equals."""
    numbers = np.asarray(numbers).tolist()
    return [numbers.index(each) for each in numbers]


@settings(max_examples=60)
@given(
    st.integers(1, 3).flatmap(
        lambda d: st.lists(st.lists(CELLS, min_size=d, max_size=d), min_size=1, max_size=12)
    )
)
def test_equal_rows_are_those_whose_values_are_equal(rows):
    X = np.array(rows)
    # By hand: texts of the values, of which zeros have one and what is no number has one.
    expected = partition([str([0.0 if cell == 0 else cell for cell in row]) for row in rows])
    found = equal_rows(X)
    assert partition(found) == expected
    assert found[0] == 0 and np.all(np.diff(np.unique(found)) == 1)
    assert partition(equal_rows(np.asfortranarray(X))) == expected
    assert partition(equal_rows(pd.DataFrame(X))) == expected
    stored = sparse.csr_array(X)
    assert partition(equal_rows(stored)) == expected
    assert partition(equal_rows(sparse.csc_array(X))) == expected


def test_equal_rows_of_other_things():
    assert equal_rows(["well", "ill", "well"]).tolist() == [0, 1, 0]
    assert equal_rows(pd.Series(["well", "ill", "well"])).tolist() == [0, 1, 0]
    images = np.zeros((3, 2, 2))
    images[1, 0, 1] = 1
    assert equal_rows(images).tolist() == [0, 1, 0]
    assert equal_rows(np.array([["a", 1], ["a", 2], ["a", 1]], dtype=object)).tolist() == [0, 1, 0]
    mixed = pd.DataFrame({"x": ["a", None, "a"], "z": [1.0, 2.0, 1.0]})
    assert equal_rows(mixed).tolist() == [0, 1, 0]
    # A column's place counts, and not its values alone.
    assert equal_rows(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist() == [0, 1]
    assert equal_rows(pd.DataFrame({"x": [[1], [1]]})).tolist() == [0, 1]


@pytest.mark.parametrize("cv", [2, 5, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_copies_are_on_one_side_of_every_split(cv, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))[rng.integers(60, size=200)]
    y = (X[:, 0] > 0.5).astype(int)
    groups = equal_rows(X)
    parts, few = parts_of(cv, X, y, seed)
    assert not few.any()
    for train, test in parts:
        assert not set(groups[train]) & set(groups[test])
        assert set(y[train]) == set(y[test]) == {0, 1}
        assert len(np.union1d(train, test)) == len(y)
    shares = [len(test) / len(y) for _, test in parts]
    np.testing.assert_allclose(shares, 1 / cv if cv > 1 else cv, atol=0.07)
    # A splitter that is given is taken as it is.
    given = StratifiedKFold(3, shuffle=True, random_state=seed)
    expected = [test.tolist() for _, test in given.split(X, y)]
    assert [test.tolist() for _, test in parts_of(given, X, y)[0]] == expected


def test_rows_without_copies_are_spread_as_evenly_as_in_scikit_learn():
    y = np.repeat([0, 1, 2], [61, 27, 12])
    parts, _ = parts_of(5, np.arange(100.0)[:, None], y)
    counts = np.array([np.bincount(y[test], minlength=3) for _, test in parts])
    expected = np.array([np.bincount(y[t], minlength=3) for _, t in StratifiedKFold(5).split(y, y)])
    np.testing.assert_array_equal(np.sort(counts, axis=0), np.sort(expected, axis=0))


@pytest.mark.parametrize("cv", [5, 0.4])
def test_a_class_of_few_distinct_rows_is_judged_all_the_same(cv):
    # Two columns of few values: rows of a class differ in fewer ways than there are folds.
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(300, 2)).astype(float)
    y = np.where(rng.random(300) < 0.2 + 0.5 * X[:, 0], 1, 0)
    parts, few = parts_of(cv, X, y)
    assert not few.any()
    tested = np.concatenate([test for _, test in parts])
    assert np.all(np.bincount(y[tested]) >= 3)
    model = TunedDecisionClassifier(DecisionTreeClassifier(), "worst_class", cv=cv).fit(X, y)
    assert not np.isnan(np.asarray(model.class_risks_)).any()
    # One class of copies does not set those of others apart.
    X = np.vstack([np.zeros((50, 2)), rng.normal(size=(40, 2)).repeat(3, axis=0)])
    y = np.repeat([0, 1], [50, 120])
    groups = equal_rows(X)
    for train, test in parts_of(cv, X, y)[0]:
        assert not (set(groups[train]) & set(groups[test])) - {0}
        assert set(y[test]) == {0, 1}


def test_floors_with_a_confidence_hold_out_rows_one_by_one():
    X = np.zeros((400, 1))
    y = np.arange(400) % 2
    ((train, test),), few = parts_of(5, X, y, once=True)
    assert len(test) == 80 and len(train) == 320 and not few.any()
    floors = RecallFloors({0: 0.1}, confidence=0.9)
    TunedDecisionClassifier(DecisionTreeClassifier(), floors).fit(
        X + np.arange(400)[:, None] % 7, y
    )


def test_decisions_are_tuned_for_rows_that_no_copy_of_was_trained_on():
    """A forest knows the copies of what it has seen; new rows are none of them."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.25).astype(int)
    X = rng.normal(size=(400, 5)) + 0.8 * y[:, None]
    forest = RandomForestClassifier(30, random_state=0)
    twice, y_twice = X.repeat(3, axis=0), y.repeat(3)
    model = RobustClassifier(forest, "worst_class", cv=5).fit(twice, y_twice)
    fresh = (rng.random(4000) < 0.25).astype(int)
    new = rng.normal(size=(4000, 5)) + 0.8 * fresh[:, None]
    wrong = [np.mean(model.predict(new[fresh == each]) != each) for each in (0, 1)]
    told = np.asarray(model.class_risks_)
    # Folds that hold copies on both sides tell of hardly any error.
    apart = StratifiedKFold(5, shuffle=True, random_state=0)
    naive = RobustClassifier(forest, "worst_class", cv=apart).fit(twice, y_twice)
    assert np.asarray(naive.class_risks_).max() < 0.02
    assert max(wrong) > 0.1
    np.testing.assert_allclose(told, wrong, atol=0.1)


@pytest.mark.parametrize("cv", [3, 0.25])
def test_a_page_has_the_folds_of_an_estimator(cv):
    pytest.importorskip("jinja2", reason="equipoise[report] is not installed")
    from equipoise.report.design import design_for
    from equipoise.tables import labelled_table
    from report_tables import mixed_table

    X, y = mixed_table()
    design = design_for(labelled_table(X, y), X, cv, 1, most_rows=10_000)
    own, _ = parts_of(cv, X, np.asarray(y), 1)
    assert len(design.folds.parts) == len(own)
    for one, other in zip(design.folds.parts, own, strict=True):
        for rows, known in zip(one, other, strict=True):
            np.testing.assert_array_equal(rows, known)
