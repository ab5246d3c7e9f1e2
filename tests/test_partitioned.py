"""Fits to blocks: the same optimum as in memory, valid bounds, few passes, whatever the blocks."""

import pickle
import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from equipoise import (
    LabelCVaR,
    RobustLinearClassifier,
    RobustLogisticRegression,
    WorstClass,
    population_proba,
)
from equipoise.blocks import Blocks, from_blocks
from equipoise.losses import as_trained
from equipoise.objectives import RowsInBlocks, RowsInMemory
from equipoise.objectives.partitioned import MANY_GRADIENTS, Curvature
from equipoise.objectives.sampling import TakenRows
from equipoise.solvers import SOLVERS
from logistic_cases import draw as draw_classes
from test_logistic_optimum import (
    REFERENCE,
    each_problem,
    penalty_of,
    recipe_of,
    reference,
    tolerant,
)
from test_objectives import EXACT

# How blocks may differ from the rows in memory.
SAME = 2e-6


def cut(X, y, weights=None, n_blocks=7, *, sampled=None):
    """Rows in a few blocks of unequal size, of which so many are ``sampled``: all, or a few."""
    ends = np.unique(np.linspace(0, X.shape[0] ** 0.5, n_blocks + 1).astype(int) ** 2)
    ends[-1] = X.shape[0]
    parts = [slice(*pair) for pair in pairwise(ends)]
    columns = (X, y) if weights is None else (X, y, weights)
    blocks = from_blocks([tuple(column[part] for column in columns) for part in parts])
    if sampled is not None:
        blocks.sampled_share, blocks.sampled_rows = 0.0, sampled
    return blocks


# A sample that is all of the rows, and one that is a few.
SAMPLED = pytest.mark.parametrize("sampled", [None, 24], ids=["whole", "small"])


# --- the objective ------------------------------------------------------------------------------


@pytest.fixture(params=[1, 5])
def opened(request):
    """Opens the rows of a case in memory and in blocks, seen in the same units."""

    def both(case, act):
        X, labels, weights = case.data()
        stored = sp.csr_matrix(X) if case.storage == "sparse" else X
        order = np.random.default_rng(0).permutation(len(labels))
        given = stored[order], labels[order], weights[order]
        settings = {
            "fit_intercept": case.fit_intercept,
            "ridge": 1e-3,
            "loss": as_trained(case.loss),
        }
        memory, blocks = (
            RowsInMemory(*given, 1 << 30),
            RowsInBlocks(cut(*given, request.param), 1 << 26),
        )
        assert memory.classes.tolist() == blocks.classes.tolist()
        np.testing.assert_allclose(memory.totals, blocks.totals)
        np.testing.assert_array_equal(memory.counts, blocks.counts)
        with memory.open(**settings) as one, blocks.open(**settings) as other:
            one.features = one.features.standardized(other.features.moments, other.features.unit)
            return act(one, other)

    return both


ONE_VIEW = pytest.mark.parametrize("case", [c for c in EXACT if c.view == "raw"], ids=str)


@ONE_VIEW
def test_answers_are_those_of_the_rows_in_memory(case, opened):
    def compare(one, other):
        assert (one.size, one.n_rows, one.n_classes) == (other.size, other.n_rows, other.n_classes)
        theta, mass = one.pack(*case.model()), case.mass()
        np.testing.assert_array_equal(theta, other.pack(*case.model()))
        (here, slopes), (there, others) = (o.evaluate_with_gradients(theta) for o in (one, other))
        close = {"rtol": 1e-10, "atol": 1e-13}
        np.testing.assert_allclose(there.risks, here.risks, **close)
        np.testing.assert_allclose(others, slopes, **close)
        direction = np.random.default_rng(1).normal(size=one.size)
        for ask in (
            lambda o, state: o.gradient(state, mass),
            lambda o, state: o.class_gradients(state),
            lambda o, state: o.hessian_product(state, mass, direction),
            lambda o, state: o.hessian(state.theta, mass),
        ):
            np.testing.assert_allclose(ask(other, there), ask(one, here), **close)
        np.testing.assert_allclose(other.squares, one.squares)
        assert other.evaluate(theta).kept.gradients.nbytes < 1 << 20  # and no scores

    opened(case, compare)


@ONE_VIEW
def test_centered_states_have_no_slope_in_the_intercepts(case, opened):
    def compare(one, other):
        theta, mass = one.pack(*case.model()), case.mass()
        mass[0] = 0.0  # a class that leaves the model
        mass /= mass.sum()
        here, there = (o.center(o.evaluate(theta), mass) for o in (one, other))
        assert mass @ there.risks == pytest.approx(mass @ here.risks, rel=1e-9, abs=1e-12)
        slopes = other.features.unfold(other.gradient(there, mass))[:, -1]
        if case.fit_intercept:
            assert np.abs(slopes).max() < 1e-4
        np.testing.assert_allclose(other.gradient(there, mass), one.gradient(here, mass), atol=1e-4)

    opened(case, compare)


def test_wide_gradients_are_not_formed_unless_asked_for():
    X, y = draw_classes(k=4)
    X = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((len(X), MANY_GRADIENTS // 16))], format="csr")
    settings = {"fit_intercept": True, "ridge": 1e-3, "loss": as_trained("cross_entropy")}
    blocks = RowsInBlocks(cut(X, y), 1 << 26)
    with (
        RowsInMemory(X, y, None, 1 << 30).open(**settings) as one,
        blocks.open(**settings) as other,
    ):
        theta, mass = np.full(one.size, 0.1), np.array([0.1, 0.2, 0.3, 0.4])
        here, there = one.evaluate(theta), other.evaluate(theta)
        assert there.kept.gradients is None
        np.testing.assert_allclose(other.gradient(there, mass), one.gradient(here, mass))
        np.testing.assert_allclose(other.class_gradients(there), one.class_gradients(here))


def test_questions_can_be_sent_away():
    X, y = draw_classes(k=3)
    blocks = RowsInBlocks(cut(X, y), 1 << 26)
    sent = []

    class Elsewhere(Blocks):
        def __len__(self):
            return len(blocks.stream.blocks)

        def __getitem__(self, place):
            return blocks.stream.blocks[place]

        def map(self, function, n_threads=1, begin=None):
            sent.append(pickle.dumps(function))
            there = pickle.loads(sent[-1])
            return (pickle.loads(pickle.dumps(there(i, self[i]))) for i in range(len(self)))

    clf = RobustLogisticRegression(WorstClass()).fit(Elsewhere())
    assert clf.status_ == "converged" and len(sent) == clf.n_passes_
    assert clf.objective_ == pytest.approx(
        RobustLogisticRegression(WorstClass()).fit(X, y).objective_, rel=SAME
    )


# --- the optimum --------------------------------------------------------------------------------


@tolerant
@each_problem
@SAMPLED
def test_optimum_and_bounds_match_an_independent_solver(case, data, sampled):
    blocks = cut(data.X, data.y, data.sample_weight, sampled=sampled)
    settings = {"C": data.C, "fit_intercept": data.fit_intercept}
    recipe = recipe_of(case, data)
    clf = RobustLogisticRegression(recipe, class_prior=data.class_prior, **settings).fit(blocks)
    value, optimum = clf.robust_risk_ + penalty_of(clf, data), reference(case, data)
    assert clf.status_ == "converged"
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(optimum, rel=SAME)
    assert value >= optimum * (1 - REFERENCE)
    assert clf.lower_bound_ <= optimum * (1 + REFERENCE)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared_hinge", "smoothed_hinge", "margin"])
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "descent-ascent"])
@SAMPLED
def test_every_loss_and_solver_finds_the_optimum_in_memory(storage, loss, solver, sampled):
    X, y = draw_classes(k=3, n=400)
    X[::3, 1] = 0
    settings = {"loss": loss, "solver": solver, "C": 0.1}
    here = RobustLinearClassifier(LabelCVaR(0.4), **settings).fit(storage(X), y)
    blocks = cut(storage(X), y, sampled=sampled)
    there = RobustLinearClassifier(LabelCVaR(0.4), **settings).fit(blocks)
    # Of a loss that is not convex, each finds a stationary point on a way of its own.
    same = 1e-3 if loss == "margin" else SAME
    assert there.objective_ == pytest.approx(here.objective_, rel=same)
    assert there.status_ == here.status_
    assert there.lower_bound_ <= here.objective_


def test_without_a_penalty_the_optimality_conditions_hold():
    X, y = draw_classes(k=3, n=500)
    here, there = (
        RobustLogisticRegression(LabelCVaR(0.4), C=np.inf).fit(*given)
        for given in ((X, y), (cut(X, y),))
    )
    assert there.status_ == "stationary" and there.lower_bound_ == -np.inf
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_blocks_keep_their_dtype(dtype):
    X, y = draw_classes(k=3, n=500)
    X = (100 * X).astype(dtype)
    here = RobustLogisticRegression(WorstClass()).fit(X, y)
    assert RobustLogisticRegression(WorstClass()).fit(cut(X, y)).objective_ == pytest.approx(
        here.objective_, rel=SAME
    )


def test_results_are_the_same_for_any_number_of_threads():
    X, y = draw_classes(k=4, n=3000)
    fits = []
    for count in (1, 2, 5):
        with threadpool_limits(count):
            fits.append(RobustLogisticRegression(WorstClass()).fit(cut(X, y, n_blocks=20)))
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)
        assert other.lower_bound_ == fits[0].lower_bound_


@SAMPLED
def test_few_passes_are_enough(sampled):
    X, y = draw_classes(k=5, n=20_000, d=10)
    before = threading.active_count()
    clf = RobustLogisticRegression(WorstClass()).fit(cut(X, y, sampled=sampled))
    assert clf.status_ == "converged" and clf.n_passes_ <= 40
    assert threading.active_count() == before


def test_hessians_are_of_the_sample_alone(monkeypatch):
    """One of all rows costs as much as many passes; a start far away asks for several."""
    X, y = draw_classes(k=4, n=20_000, d=10)
    blocks = cut(np.exp(X / 2), y, sampled=10_000)
    clf = RobustLogisticRegression(WorstClass(), C=1e-4, warm_start=True).fit(blocks)

    def refuse(*_):
        raise AssertionError("A Hessian of all rows was asked for.")

    monkeypatch.setattr(Curvature, "__call__", refuse)
    far = clf.set_params(C=1.0).fit(blocks)
    assert far.status_ == "converged" and far.n_passes_ <= 20
    best = RobustLogisticRegression(WorstClass()).fit(np.exp(X / 2), y).objective_
    assert far.objective_ == pytest.approx(best, rel=SAME)


@pytest.mark.parametrize("form", ["normal", "skewed"])
def test_rows_that_a_sample_knows_little_of_need_few_passes(form):
    """Where classes are all but separate, next to no row of a sample tells where they part."""
    rng, shares = np.random.default_rng(0), np.array([0.6, 0.3, 0.1])
    y = rng.choice(3, size=100_000, p=shares)
    X = 0.9 * rng.normal(size=(3, 30))[y] + rng.normal(size=(len(y), 30))
    X = (np.exp(X / 2) if form == "skewed" else X).astype(np.float32)
    there = RobustLogisticRegression(WorstClass()).fit(cut(X, y, sampled=20_000))
    assert there.status_ == "converged" and there.n_passes_ <= 30
    here = RobustLogisticRegression(WorstClass()).fit(X, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)


def test_rows_that_weigh_nothing_do_not_count():
    X, y = draw_classes(k=3, n=500)
    weights = np.ones(len(y))
    weights[100:300] = 0
    X[100:300] = 1e300
    used = weights > 0
    here = RobustLogisticRegression(WorstClass()).fit(X[used], y[used])
    there = RobustLogisticRegression(WorstClass()).fit(cut(X, y, weights, n_blocks=20))
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)


def test_a_warm_start_is_a_short_way():
    X, y = draw_classes(k=3, n=2000)
    blocks = cut(X, y, sampled=24)
    clf = RobustLogisticRegression(WorstClass(), warm_start=True).fit(blocks)
    cold = clf.n_passes_
    assert clf.fit(blocks).n_passes_ < cold


def test_predictions_of_blocks_are_those_of_their_rows():
    X, y = draw_classes(k=3, n=500)
    clf = RobustLogisticRegression(LabelCVaR(0.5)).fit(cut(X, y))
    blocks = from_blocks([(X[:100],), (X[100:],)])
    for name in ("decision_function", "predict_proba", "predict_log_proba"):
        np.testing.assert_allclose(getattr(clf, name)(blocks), getattr(clf, name)(X), rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(blocks), clf.predict(X))
    found, wanted = (population_proba(clf, rows) for rows in (blocks, X))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_sample_of_rare_columns_is_unbiased():
    """Over many draws, weights of the rows taken add up to those of all rows, column by column."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=4000), rng.random(4000) < 0.002]).astype(float)
    y = rng.integers(3, size=4000)
    found = RowsInBlocks(from_blocks([(X, y)]), 1 << 26)
    settings = {"fit_intercept": True, "ridge": 1e-3, "loss": as_trained("cross_entropy")}
    with found.open(**settings) as objective:
        taker, sums = TakenRows(objective._maker, np.full((400, 3), 50)), []
        for place in range(400):
            taken = taker.of_rows(place, X, y, np.ones(4000))
            sums.append([taken[2].sum(), taken[2] @ taken[0][:, 0], taken[2] @ taken[0][:, 1]])
    sums = np.array(sums)
    truth = np.array([4000, X[:, 0].sum(), X[:, 1].sum()])
    error = sums.std(axis=0) / np.sqrt(400)
    assert np.all(np.abs(sums.mean(axis=0) - truth) <= 5 * error)
    assert error[2] == 0  # all rows of the rare column are taken, of 150 in 4000
