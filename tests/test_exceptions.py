"""Warnings point at the user's line, however deep the call and whoever passed it on."""

import inspect
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import RobustLogisticRegression, WorstClass
from equipoise.exceptions import EquipoiseWarning, FewRowsWarning, NotConvergedWarning, warn
from equipoise.theory import robust_bayes

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], [80, 8])
X = RNG.normal(size=(88, 2)) + Y[:, None]
CLF = RobustLogisticRegression(WorstClass())


def in_a_pipeline():
    make_pipeline(StandardScaler(), CLF).fit(X, Y)


def in_cross_validation():
    cross_validate(CLF, X, Y, cv=2, error_score="raise")


def through_joblib():
    Parallel(n_jobs=1)(delayed(CLF.fit)(X, Y) for _ in range(2))


def directly():
    CLF.fit(X, Y)


@pytest.mark.parametrize("call", [directly, in_a_pipeline, in_cross_validation, through_joblib])
def test_a_warning_points_at_the_line_that_led_to_it(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [one for one in caught if issubclass(one.category, FewRowsWarning)]
    assert found
    lines, first = inspect.getsourcelines(call)
    for one in found:
        assert one.filename == __file__
        assert first < one.lineno < first + len(lines)


def test_the_robust_bayes_rule_warns_at_the_line_that_asked():
    # All but hard, with classes of next to no frequency: too few digits are left for ties.
    probabilities = np.random.default_rng(0).dirichlet(np.full(4, 1e-3), size=50) + 1e-300
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    with pytest.warns(NotConvergedWarning, match="certified to") as caught:
        robust_bayes(probabilities, WorstClass())
    assert caught[0].filename == __file__


def test_where_all_frames_are_ours_the_outermost_stands_for_the_users():
    names = {"__name__": "equipoise.cli", "warn": warn, "category": EquipoiseWarning}
    with pytest.warns(EquipoiseWarning, match="hello") as caught:
        exec(compile("warn('hello', category)", "<ours>", "exec"), names)
    assert caught[0].filename == __file__
