"""Fits to Dask collections: the same optimum, rows that stay where they are, workers that die."""

import os
import signal
import threading
import time
import tracemalloc
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from equipoise import (
    FixedWeights,
    LabelCVaR,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
    WorstClass,
    population_proba,
)
from equipoise.blocks import from_blocks
from equipoise.blocks.base import AskedOf, Stream
from equipoise.blocks.cluster import HeldPartitions
from equipoise.blocks.partitions import from_dask
from equipoise.exceptions import InvalidInputError
from equipoise.losses import as_trained
from equipoise.objectives import RowsInBlocks
from equipoise.risks import RiskScorer, class_risks, classifier_risks
from logistic_cases import assert_same_bits, draw, few_rows_allowed
from test_logistic_optimum import (
    REFERENCE,
    each_problem,
    penalty_of,
    recipe_of,
    reference,
    tolerant,
)

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
pandas = pytest.importorskip("pandas")

pytestmark = pytest.mark.timeout(300)
SAME = 2e-6


def assert_same(found, expected):
    """Labels that are equal, numbers that are but for rounding: products of fewer rows differ."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two processes on loopback, of one thread each."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    settings["local_directory"] = str(tmp_path_factory.mktemp("workers"))
    # Dask looks fifteen seconds after a worker died whether it is back, and gives it up for good
    # where it is not: also one that was, and has just been killed by the next test.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with patient, distributed.LocalCluster(host="127.0.0.1", **settings) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client
        assert tasks_left(client) == 0


def tasks_left(client, patience=10.0):
    """Tasks that the scheduler still knows, once it has heard of everything."""
    end, left = time.monotonic() + patience, -1
    while left and time.monotonic() < end:
        left = tasks_known(client)
        time.sleep(0.02)
    return left


def tasks_known(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def settled(client, patience=10.0):
    """Tasks that the scheduler knows, once their number has not changed for a while."""
    end, numbers = time.monotonic() + patience, []
    while time.monotonic() < end and (len(numbers) < 20 or len(set(numbers[-20:])) > 1):
        numbers.append(tasks_known(client))
        time.sleep(0.02)
    return numbers[-1]


@pytest.fixture(params=["threads", "processes"])
def anywhere(request):
    return request.getfixturevalue("client") if request.param == "processes" else None


def parted(*arrays, ends=(0, 3, 50, 50, 51, 200)):
    """Arrays in partitions of unequal size, one of them empty."""
    ends = [min(end, len(arrays[0])) for end in ends]
    lengths = tuple(np.diff([*ends, len(arrays[0])]).tolist())
    return [
        None if a is None else da.from_array(np.asarray(a), chunks=rows_of(a, lengths))
        for a in arrays
    ]


def rows_of(array, lengths):
    return (lengths, -1) if np.ndim(array) == 2 else (lengths,)


def of_partitions(make, n_partitions, width=4):
    """Collections whose partitions are computed by ``make(place)`` and not known before."""
    X, y = [], []
    for place in range(n_partitions):
        both = dask.delayed(make, pure=False)(place)
        X.append(da.from_delayed(both[0], (np.nan, width), dtype=np.float64))
        y.append(da.from_delayed(both[1], (np.nan,), dtype=np.int64))
    return da.concatenate(X), da.concatenate(y)


def robust(**settings):
    return RobustLogisticRegression(WorstClass(), **settings)


# --- the optimum --------------------------------------------------------------------------------


@tolerant
@each_problem
def test_optimum_and_bounds_match_an_independent_solver(case, data):
    settings = {"C": data.C, "fit_intercept": data.fit_intercept, "class_prior": data.class_prior}
    rows = parted(data.X, data.y, data.sample_weight, ends=(0, 3, 20, 20, 21))
    clf = RobustLogisticRegression(recipe_of(case, data), **settings).fit(*rows)
    value, optimum = clf.robust_risk_ + penalty_of(clf, data), reference(case, data)
    assert clf.status_ == "converged"
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(optimum, rel=SAME)
    assert value >= optimum * (1 - REFERENCE)
    assert clf.lower_bound_ <= optimum * (1 + REFERENCE)


@pytest.mark.parametrize("kind", ["binary", "multinomial", "weights", "prior", "sparse", "hinge"])
def test_a_cluster_finds_the_optimum_in_memory(kind, client):
    X, y = draw(k=2 if kind == "binary" else 3, n=500)
    weights = np.random.default_rng(0).uniform(0.5, 2, 500) if kind == "weights" else None
    make, settings = RobustLogisticRegression, {}
    if kind == "prior":
        settings["class_prior"] = {0: 0.2, 1: 0.5, 2: 0.3}
    if kind == "hinge":
        make, settings["loss"] = RobustLinearClassifier, "squared_hinge"
    here = make(LabelCVaR(0.4), **settings).fit(X, y, weights)
    rows = parted(X, y, weights)
    if kind == "sparse":
        rows[0] = rows[0].map_blocks(sp.csr_matrix)
    there = make(LabelCVaR(0.4), **settings).fit(*rows)
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)
    assert there.status_ == "converged" and there.lower_bound_ <= here.objective_


def test_answers_do_not_depend_on_where_partitions_are(client):
    X, y = draw(k=3, n=2000)
    rows = parted(X, y, ends=range(0, 2000, 90))
    two = robust().fit(*rows)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0"
        ) as other,
        distributed.Client(other),
    ):
        one = robust().fit(*rows)
    # Products round differently in arrays that lie differently in memory, by a digit.
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-12)
    assert one.n_passes_ == two.n_passes_


def test_chunks_of_columns_are_joined(anywhere):
    X, y = draw(k=3, n=300)
    split = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    assert robust().fit(*split).objective_ == pytest.approx(robust().fit(X, y).objective_, rel=SAME)


# --- frames -------------------------------------------------------------------------------------


def framed(n=600):
    X, y = draw(k=3, n=n)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(weight=1.0 + y)
    return frame.assign(ill=np.array(["no", "perhaps", "yes"])[y], a=frame["a"].astype("float32"))


def test_frames_are_fitted_and_predicted_with_their_names(anywhere):
    frame, names = framed(), list("abcd")
    parts = dd.from_pandas(frame, npartitions=5)
    parts = parts[parts["b"] > -3]  # of lengths that nobody knows
    frame = frame[frame["b"] > -3]
    here = robust().fit(frame[names], frame["ill"], frame["weight"])
    there = robust().fit(parts[names], parts["ill"], parts["weight"])
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)
    assert there.classes_.tolist() == ["no", "perhaps", "yes"]
    assert there.feature_names_in_.tolist() == names
    methods = [getattr(there, n) for n in ("predict", "predict_proba", "decision_function")]
    for method in (*methods, partial(population_proba, there)):
        lazy = method(parts[names])
        assert isinstance(lazy, da.Array)
        expected = method(frame[names])
        assert lazy.dtype == expected.dtype and lazy.ndim == expected.ndim
        assert_same(lazy.compute(), expected)
    score = there.score(frame[names], frame["ill"], frame["weight"])
    assert there.score(parts[names], parts["ill"], parts["weight"]) == score
    with pytest.raises(ValueError, match="feature names"):
        there.predict(parts[["a", "b", "c", "weight"]])


def test_numbers_of_pandas_own_types_may_not_be_missing(anywhere):
    frame = framed().astype({"c": "Float64"})
    frame.loc[400, "c"] = pandas.NA
    parts = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(InvalidInputError, match="Partition 2: row 0 has nan in column 2"):
        robust().fit(parts[list("abcd")], parts["ill"])


def test_columns_of_text_are_named():
    parts = dd.from_pandas(framed(), npartitions=3)
    with pytest.raises(InvalidInputError, match=r"column 'ill' holds .*must be numbers: leave it"):
        robust().fit(parts[["a", "ill"]], parts["ill"])


# --- predictions --------------------------------------------------------------------------------


def test_predictions_are_lazy_and_by_the_model_as_it_was(anywhere):
    X, y = draw(k=3, n=500)
    rows, labels = parted(X, y)
    clf = robust().fit(rows, labels)
    expected = {name: getattr(clf, name)(X) for name in ("predict", "predict_proba")}
    lazy = {name: getattr(clf, name)(rows) for name in expected}
    clf.fit(-X, y)
    for name, answer in lazy.items():
        assert answer.chunks[0] == rows.chunks[0] and answer.shape == expected[name].shape
        assert_same(answer.compute(), expected[name])


def test_a_plug_in_is_fitted_to_a_sample_and_judged_on_all_partitions(anywhere):
    X, y = draw(k=3, n=3000)
    rows, labels = parted(X, y)
    clf = TunedDecisionClassifier(GaussianNB(), "worst_class", sample_rows=600).fit(rows, labels)
    assert [int(each.to_numpy().sum()) for each in clf.rows_seen_.values()] == [300, 300, 2700]
    np.testing.assert_array_equal(np.asarray(clf.predict(rows)), clf.predict(X))


def test_nothing_is_computed_before_it_is_asked_for():
    X, y = draw(k=2, n=300)
    clf, asked = robust().fit(X, y), []

    def read(place):
        asked.append(place)
        return X[100 * place : 100 * place + 100], y[100 * place : 100 * place + 100]

    rows, _ = of_partitions(read, 3)
    lazy = clf.predict_proba(rows)
    assert not asked
    assert_same(lazy.compute(scheduler="synchronous"), clf.predict_proba(X))


def test_a_wrong_width_is_refused_at_once():
    X, y = draw(k=3)
    with pytest.raises(ValueError, match="3 features, but RobustLogisticRegression is expecting 4"):
        robust().fit(X, y).predict(da.from_array(X[:, :3]))


def test_risks_and_scorers_compute(anywhere):
    X, y = draw(k=3, n=500)
    rows, labels = parted(X, y)
    clf = robust().fit(rows, labels)
    for loss, method in (("zero_one", "predict"), ("cross_entropy", "predict_proba")):
        given = getattr(clf, method)
        here, there = (
            class_risks(*one, loss=loss) for one in ((y, given(X)), (labels, given(rows)))
        )
        np.testing.assert_allclose(np.asarray(there), np.asarray(here), rtol=1e-12)
        scorer = RiskScorer(LabelCVaR(0.3), loss=loss)
        assert scorer(clf, rows, labels) == pytest.approx(scorer(clf, X, y), rel=1e-12)
    np.testing.assert_allclose(classifier_risks(clf, rows, labels), classifier_risks(clf, X, y))
    assert clf.score(rows, labels) == clf.score(X, y)


# --- a cluster ----------------------------------------------------------------------------------


@pytest.fixture
def before_pass(monkeypatch):
    """Calls a function before every pass for a sum, with its number."""
    calls = []
    total = Stream.total

    def noted(self, asked):
        for call in calls:
            call(self.n_passes)
        return total(self, asked)

    monkeypatch.setattr(Stream, "total", noted)
    return calls.append


def kill(client, count):
    pids = list(client.run(os.getpid).values())
    for pid in pids[:count]:
        os.kill(pid, signal.SIGKILL)
    return pids[:count]


@pytest.mark.parametrize("count", [1, 2], ids=["one dies", "both die"])
def test_a_worker_that_dies_costs_a_recomputation(client, before_pass, count):
    X, y = draw(k=3, n=3000)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    rows = parted(X, names, ends=range(0, 3000, 200))
    whole, dead = robust().fit(*rows), []

    def act(done):
        if done == 4:
            dead.extend(kill(client, count))

    before_pass(act)
    assert_same_bits(robust().fit(*rows), whole)
    assert len(dead) == count
    client.wait_for_workers(2, timeout=120)


def test_many_partitions_of_unequal_size_with_a_class_in_few(client):
    X, y = draw(k=3, n=4000)
    order = np.argsort(y, kind="stable")  # the last class in the last partitions
    X, y = X[order], y[order]
    ends = np.sort(np.random.default_rng(0).integers(4000, size=199))
    rows = parted(X, y, ends=[0, *ends])
    lengths = rows[0].chunks[0]
    assert len(lengths) == 200 and 0 in lengths and len(set(lengths)) > 20
    there, here = robust().fit(*rows), robust().fit(X, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME)
    np.testing.assert_array_equal(there.predict(rows[0]).compute(), there.predict(X))


def make_rows(place, n_rows):
    rng = np.random.default_rng(place)
    y = rng.choice(3, size=n_rows, p=[0.6, 0.3, 0.1])
    return y[:, None] * np.linspace(0, 1, 20) + rng.normal(size=(n_rows, 20)), y


def test_memory_of_the_client_does_not_grow_with_rows(client):
    peaks = []
    for n_rows in (4_000, 32_000):
        rows = of_partitions(lambda place, n_rows=n_rows: make_rows(place, n_rows), 5, 20)
        robust(memory="16 MiB").fit(*rows)  # what is loaded once is loaded
        tracemalloc.start()
        clf = robust(memory="16 MiB").fit(*rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert clf.status_ == "converged"
    assert 3 * peaks[1] < 40 * 8_000 * 20 * 8
    assert peaks[1] < 1.3 * peaks[0] + (4 << 20)


def note(folder, place):
    """On a worker: that something was done with a partition, once more."""
    with (folder / str(place)).open("a") as stream:
        stream.write(".")


def was_done_once(folder, count):
    return [(folder / str(place)).read_text() for place in range(count)] == ["."] * count


def test_rows_stay_where_they_are(client, tmp_path):
    """Every partition is computed once, whatever the number of passes."""
    X, y = draw(k=3, n=800)

    def read(place):
        note(tmp_path, place)
        return X[100 * place : 100 * place + 100], y[100 * place : 100 * place + 100]

    clf = robust().fit(*of_partitions(read, 8))
    assert clf.n_passes_ > 3
    assert was_done_once(tmp_path, 8)


def test_what_is_made_of_partitions_is_made_once_and_stays(client, tmp_path):
    """Even where Dask lets go of copies of what was sent out, which it does every two seconds."""
    X, y = draw(k=3, n=800)
    blocks = from_dask(*parted(X, y, ends=range(0, len(X), 50)), None, 1 << 20)

    def make(place, block):
        note(tmp_path, place)
        return block.X

    asked = AskedOf(make, lambda X: (X.sum(axis=0),))
    lengths = list(blocks.map(lambda place, block: (place, len(block.y))))
    assert lengths == [(place, 50) for place in range(16)]
    for _ in range(3):
        np.testing.assert_allclose(blocks.total(asked)[0], X.sum(axis=0), rtol=1e-12)
        client.amm.run_once()
    blocks.close()
    assert was_done_once(tmp_path, 16)


def test_parts_of_one_maker_make_room_for_those_of_the_next(client):
    X, y = draw(k=3, n=800)
    blocks = from_dask(*parted(X, y, ends=range(0, len(X), 100)), None, 1 << 20)
    sizes = []
    for factor in (1.0, 2.0, 3.0):

        def make(place, block, factor=factor):
            return factor * block.X

        total = blocks.total(AskedOf(make, lambda X: (X.sum(axis=0),)))[0]
        np.testing.assert_allclose(total, factor * X.sum(axis=0), rtol=1e-12)
        sizes.append(settled(client))
    blocks.close()
    assert sizes[0] == sizes[1] == sizes[2] > 0


def test_nothing_is_left_running_without_a_client():
    before = set(threading.enumerate())
    X, y = draw(k=3, n=500)
    rows = parted(X, y)
    np.asarray(robust().fit(*rows).predict(rows[0].rechunk((100, -1))[:1]))
    fit_threads = {t for t in set(threading.enumerate()) - before if "ThreadPool" not in t.name}
    assert not fit_threads


def test_partitions_are_kept_while_they_fit_in_memory():
    X, y = draw(k=3, n=500)
    asked = []

    def read(place):
        asked.append(place)
        return X[100 * place : 100 * place + 100], y[100 * place : 100 * place + 100]

    few, many = (from_dask(*of_partitions(read, 5), None, memory) for memory in (15_000, 1 << 20))
    for blocks, times in ((few, 2), (many, 1)):
        asked.clear()
        for _ in range(2):
            assert [len(block.y) for block in blocks] == [100] * 5
        assert asked.count(4) == times and asked.count(0) == 1


# --- what can be wrong --------------------------------------------------------------------------


def refused(rows, match, kind=InvalidInputError):
    X, y = draw(k=3)
    clf = robust().fit(X, y)
    before = dict(vars(clf))
    with pytest.raises(kind, match=match):
        clf.fit(*rows)
    assert vars(clf) == before  # nothing half-done


def good(place):
    X, y = draw(k=3, n=100, seed=place)
    return X, y


def changed(change):
    return of_partitions(lambda place: change(*good(place)) if place == 2 else good(place), 4)


def on_fire(X, y):
    raise OSError("disk on fire")


def with_nan(X, y):
    X[17, 2] = np.nan
    return X, y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (on_fire, r"Partition 2: it cannot be (read|computed) \(disk on fire\)"),
        (lambda X, y: (X[:, :3], y), "Partition 2 has 3 columns where partition 0 has 4: all part"),
        (lambda X, y: (X.astype("f4"), y), "Partition 2 is float32 where partition 0 is float64"),
        (with_nan, "Partition 2: row 17 has nan in column 2; X must hold finite numbers"),
        (lambda X, y: (X, y[:-1]), "Partition 2: X has 100 rows and y 99"),
        (lambda X, y: (X.astype(str), y), "Partition 2: X must be numbers in two dimensions"),
    ],
)
def test_partitions_that_cannot_be_used_are_named(change, message, anywhere):
    refused(changed(change), message)


def test_a_partition_that_raises_in_a_later_pass_is_named(client, before_pass):
    """It was computed, its worker died, and now it cannot be computed again."""
    gone = distributed.Event("cannot be read")

    def read(place):
        if place == 1 and distributed.Event("cannot be read").is_set():
            raise OSError("file not found")
        return good(place)

    def act(done):
        if done == 3:
            gone.set()
            kill(client, 2)

    before_pass(act)
    refused(of_partitions(read, 3), r"Partition 1: it cannot be computed \(file not found\)")
    client.wait_for_workers(2, timeout=120)


def another(place):
    """The partition in which one value is another, in a row that no sample has."""
    X, y = good(place)
    X[17, 2] += 1
    return X, y


def test_a_partition_that_comes_out_otherwise_after_its_worker_died_is_named(client, before_pass):
    gone = distributed.Event("is another")

    def read(place):
        return another(place) if distributed.Event("is another").is_set() else good(place)

    def act(done):
        if done == 3:
            gone.set()
            kill(client, 2)

    before_pass(act)
    refused(of_partitions(read, 3), r"Partition \d: its rows, labels or weights changed between")
    client.wait_for_workers(2, timeout=120)


def test_a_partition_that_is_computed_again_and_is_another_is_named():
    read = []

    def reader(place):
        read.append(place)
        return another(place) if place == 1 and read.count(1) > 2 else good(place)

    none_kept = from_dask(*of_partitions(reader, 3), None, 1)
    refused((none_kept,), "Partition 1: its rows, labels or weights changed between")


def test_labels_have_the_partitions_of_the_rows():
    X, y = draw(k=3, n=300)
    rows, labels = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=(150,))
    refused(
        (rows, labels),
        r"y must have the partitions of X, got 2 \(150, 150 rows\) where X has "
        r"3 \(100, 100, 100 rows\): use y\.rechunk\(X\.chunks\[0\]\)",
    )
    refused((rows, y), r"y must be a Dask array .* got ndarray of shape \(300,\): dask\.array")
    refused((rows, None), "y must be a Dask array .* got NoneType")
    refused((rows, rows), r"y must be a Dask array of one dim.* got Array of shape \(300, 4\)")
    refused((rows[:, 0], labels), "X must be a Dask array of two dimensions or a Dask DataFrame")
    ours = da.from_array(y, chunks=(100,))
    refused((rows, ours, np.ones(300)), "sample_weight must be a Dask array of one dimension")
    frames = (dd.from_pandas(pandas.DataFrame(X), npartitions=n) for n in (2, 3))
    two, three = frames
    refused((two, three[0]), "y must have the partitions of X, got 3 where X has 2")
    refused((rows[:0], ours[:0]), "There are no rows: every partition is empty")


@few_rows_allowed
@pytest.mark.parametrize("out_of_core", [parted, lambda X, y: (from_blocks([(X, y)]), None)])
@pytest.mark.parametrize(
    ("model", "what"),
    [
        (RobustLogisticRegression(LabelCVaR("auto")), "The level of LabelCVaR"),
        (RobustnessCV(RobustLogisticRegression()), "The level of LabelCVaR"),
        (RobustLogisticRegressionCV(), "C"),
    ],
    ids=["auto", "path", "C"],
)
def test_nothing_is_chosen_by_folds_of_rows_out_of_memory(out_of_core, model, what):
    message = f"^{what} is chosen by fits to folds of rows in memory, got out-of-core data: choose"
    with pytest.raises(InvalidInputError, match=message):
        clone(model).fit(*out_of_core(*draw(k=3)))


def test_an_asynchronous_client_is_refused(monkeypatch):
    asynchronous = SimpleNamespace(asynchronous=True)
    monkeypatch.setattr(distributed, "get_client", lambda: asynchronous)
    refused(parted(*draw(k=3)), "the client is asynchronous: use")


def test_fixed_weights_are_fitted_too(anywhere):
    X, y = draw(k=2)
    fits = [
        RobustLogisticRegression(FixedWeights("balanced")).fit(*rows)
        for rows in ((X, y), parted(X, y))
    ]
    assert fits[1].objective_ == pytest.approx(fits[0].objective_, rel=SAME)


def test_few_rows_come_to_the_client_as_a_sample(client):
    X, y = draw(k=3, n=4000)
    settings = {"fit_intercept": True, "ridge": 1e-3, "loss": as_trained("cross_entropy")}
    for fewest, most in ((100, 4000 * HeldPartitions.sampled_share + 3), (1000, 1003)):
        blocks = from_dask(*parted(X, y), None, 1 << 30)
        blocks.sampled_rows = fewest
        with RowsInBlocks(blocks, 1 << 30).open(**settings) as objective:
            assert 0.9 * most < objective.sample_rows <= most
    few = from_dask(*parted(X, y), None, 1 << 30)
    few.sampled_rows = 100
    assert robust().fit(few).objective_ == pytest.approx(robust().fit(X, y).objective_, rel=SAME)
