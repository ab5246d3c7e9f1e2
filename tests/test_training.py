"""The paper's training: its gradients, its masses, and where it ends when it is given time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification

from equipoise import LabelCVaR, RobustLogisticRegression, WorstClass, class_risks
from equipoise.paper.training import (
    BlockedRows,
    ClosedFormMasses,
    LearningRates,
    TrainedLevel,
    predict,
    train,
)

SHARES = [0.6, 0.3, 0.1]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        300, 4, n_informative=4, n_redundant=0, n_classes=3, weights=SHARES, random_state=0
    )
    return X, y


@pytest.fixture(scope="module")
def rows(data):
    return BlockedRows(*data)


@pytest.fixture
def W(rows):
    return rows.starts([3, 4])


def _sklearn_scores(W, X):
    return X @ W[:, :-1].T + W[:, -1]


def test_rates_fall_linearly_from_the_first_to_the_last():
    rates = LearningRates(0.01, 0.0001, 2000).values()
    assert len(rates) == 2000 and rates[0] == 0.01 and rates[-1] == pytest.approx(0.0001)
    assert_allclose(np.diff(rates), (0.0001 - 0.01) / 1999)


def test_class_risks_are_mean_cross_entropies(data, rows, W):
    X, y = data
    found, probabilities = rows.risks(W)
    assert_allclose(probabilities.sum(axis=1), 1)
    for start in range(2):
        risks = class_risks(y, _sklearn_scores(W[start], X), loss="cross_entropy_from_scores")
        assert_allclose(found[start], np.asarray(risks))


def test_the_gradient_is_that_of_the_weighted_risk(rows, W):
    masses = np.array([[0.2, 0.5, 0.3], [0.0, 2.0, 1.0]])
    gradient = rows.gradient(rows.risks(W)[1], masses)
    step = 1e-6
    for place in [(0, 0, 0), (0, 2, 4), (1, 1, 3), (1, 0, 4)]:
        moved = W.copy()
        moved[place] += step
        change = np.sum(masses * (rows.risks(moved)[0] - rows.risks(W)[0]), axis=1) / step
        assert gradient[place] == pytest.approx(change[place[0]], abs=1e-5)


def test_starts_are_seeded_and_uniform(rows):
    starts = rows.starts([0, 1, 2])
    assert starts.shape == (3, 3, 5) and np.all(np.abs(starts) < 1)
    assert_array_equal(starts[1], rows.starts([1])[0])
    assert not np.array_equal(starts[0], starts[1])


def test_starts_are_trained_as_if_alone(rows):
    masses = ClosedFormMasses(LabelCVaR(0.5).resolve(rows.prior))
    rates = LearningRates(0.1, 0.01, 20)
    together = train(rows, masses, rates, [0, 1])
    assert_allclose(together[1], train(rows, masses, rates, [1])[0])
    level = train(rows, TrainedLevel(rows.prior / 0.5), rates, [0, 1])
    assert_allclose(level[1], train(rows, TrainedLevel(rows.prior / 0.5), rates, [1])[0])


def test_closed_form_masses_attain_the_robust_risk(rows, W):
    masses = LabelCVaR(0.5).resolve(rows.prior)
    risks = rows.risks(W)[0]
    found = ClosedFormMasses(masses).at(risks, 0.1)
    for mass, risk in zip(found, risks, strict=True):
        assert mass @ risk == pytest.approx(float(masses.support(risk)))


def test_a_trained_level_follows_its_gradient_and_never_exceeds_the_risks():
    caps, rate = np.array([0.8, 0.6]), 0.01
    masses, risks = TrainedLevel(caps), np.array([[1.0, 3.0]])
    # It starts at 10, above every risk: no class counts, and it is cut to the largest risk.
    assert_array_equal(masses.at(risks, rate), [[0, 0]])
    assert masses.level == [3.0]
    assert_array_equal(masses.at(risks, rate), [[0, 0]])
    assert masses.level == pytest.approx([3.0 - 10 * rate])
    assert_array_equal(masses.at(risks, rate), [[0, 0.6]])
    assert masses.level == pytest.approx([2.9 - 10 * rate * (1 - 0.6)])


@pytest.mark.parametrize("goal", [WorstClass(), LabelCVaR(0.5)])
def test_given_time_both_ways_reach_the_certified_optimum(data, rows, goal):
    masses = goal.resolve(rows.prior)
    caps = np.ones(3) if isinstance(goal, WorstClass) else rows.prior / 0.5
    optimum = RobustLogisticRegression(goal, C=1e4).fit(*data).lower_bound_
    for way in (ClosedFormMasses(masses), TrainedLevel(caps)):
        W = train(rows, way, LearningRates(0.5, 0.001, 4000), [0])
        risk = float(masses.support(rows.risks(W)[0][0]))
        assert optimum - 1e-6 < risk < optimum + 0.01


def test_labels_are_those_of_the_highest_score(data, rows, W):
    X, _ = data
    names = np.array(["a", "b", "c"])
    scores = _sklearn_scores(W[0], X)
    expected = [names[np.flatnonzero(row == row.max())[0]] for row in scores]
    assert predict(W[0], X, names).tolist() == expected


def test_single_precision_stays_single(data):
    X, y = data
    rows = BlockedRows(X.astype(np.float32), y)
    masses = ClosedFormMasses(WorstClass().resolve(rows.prior))
    assert train(rows, masses, LearningRates(0.1, 0.1, 3), [0]).dtype == np.float32
