"""A robust fit on a Dask cluster of this machine: one worker and two, of one thread each.

    python benchmarks/scale_dask.py --rows 2_000_000

The rows are made where they are held, in float32. Clusters take turns; each fits to few rows first,
and then some times to all, and the least time of either counts. Where other programs use the cores
too, two workers wait for them; beside the time there is that of processors: the client's and the
busiest worker's, which follow each other. What the cores themselves allow is measured by the same
passes in one process and in two that have nothing to do with each other. Beside it, where it is
installed, dask-ml's LogisticRegression, which has two classes only.
The last line is JSON.
"""

import argparse
import json
import multiprocessing
import os
import time
from operator import getitem

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from equipoise import RobustLogisticRegression
from equipoise.objectives import open_objective

N_PARTITIONS = 16
SHARES = [0.6, 0.3, 0.08, 0.02]
PASSES = 40


def part(place, n_rows, width, shares):
    """Rows of one partition."""
    centers = 0.5 * np.random.default_rng(0).normal(size=(len(shares), width)).astype(np.float32)
    rng = np.random.default_rng([1, place])
    y = rng.choice(len(shares), n_rows, p=shares)
    return centers[y] + rng.standard_normal((n_rows, width), dtype=np.float32), y


def collections(client, n_rows, width, shares):
    """Rows and labels in the memory of the workers, equally many in each."""
    rows, (X, y), homes = n_rows // N_PARTITIONS, ([], []), list(client.nthreads())
    for place in range(N_PARTITIONS):
        here = {"workers": [homes[place % len(homes)]], "pure": False}
        both = client.submit(part, place, rows, width, shares, **here)
        features, labels = (client.submit(getitem, both, which, **here) for which in (0, 1))
        X.append(da.from_delayed(features, (rows, width), dtype=np.float32))
        y.append(da.from_delayed(labels, (rows,), dtype=np.int64))
        wait([features, labels])
    return da.concatenate(X), da.concatenate(y)


def timed(client, fit):
    """Seconds of a fit; of processors, those of the client and of the busiest worker."""
    before, here = client.run(time.process_time), time.process_time()
    start = time.perf_counter()
    fitted = fit()
    seconds = time.perf_counter() - start
    here, after = time.process_time() - here, client.run(time.process_time)
    return (seconds, here, max(after[home] - before[home] for home in before)), fitted


def robust(X, y):
    return RobustLogisticRegression("worst_class").fit(X, y)


def dask_ml(X, y):
    from dask_ml.linear_model import LogisticRegression

    return LogisticRegression(solver="lbfgs").fit(X.astype(np.float64), y)


def on_workers(n_workers, n_rows, shares, fit, n_fits=1, width=20):
    """Times of fits to all rows (one to a few wakes everything up), and what the last found."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **settings) as cluster, Client(cluster) as client:
        fit(*collections(client, N_PARTITIONS * 1000, width, shares))
        X, y = collections(client, n_rows, width, shares)
        found = [timed(client, lambda: fit(X, y)) for _ in range(n_fits)]
        return [times for times, _ in found], found[-1][1]


def passes(place, ready):
    """Seconds of passes over the rows of a partition, begun together with others."""
    X, y = part(place, 125_000, 20, SHARES)
    given = {"n_classes": len(SHARES), "fit_intercept": True}
    with open_objective(X, y, np.ones(len(y)), **given) as objective:
        theta = np.full(objective.size, 0.01)
        objective.evaluate_with_gradients(theta)
        ready.wait()
        start = time.perf_counter()
        for _ in range(PASSES):
            objective.evaluate_with_gradients(theta)
        return time.perf_counter() - start


def of_the_cores(repeats):
    """How many times as much two processes do in the same time as one, at best."""
    spawning = multiprocessing.get_context("spawn")
    least = {}
    with spawning.Manager() as manager:
        for n in (1, 2):
            ready = manager.Barrier(n)
            with spawning.Pool(n) as pool:
                found = [
                    max(pool.starmap(passes, [(place, ready) for place in range(n)], 1))
                    for _ in range(repeats)
                ]
            least[n] = min(found)
    return 2 * least[1] / least[2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5, help="clusters of each size")
    parser.add_argument("--fits", type=int, default=4, help="fits on each cluster")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{cores} cores, {args.rows:,} rows, {N_PARTITIONS} partitions", flush=True)
    seconds, found = {1: [], 2: []}, None
    for _ in range(args.repeats):
        for n_workers, taken in seconds.items():
            times, found = on_workers(n_workers, args.rows, SHARES, robust, args.fits)
            taken.extend(times)
            for wall, client, worker in times:
                line = f"{wall:6.2f} s (processors: client {client:.2f} s, worker {worker:.2f} s)"
                print(f"{n_workers} worker(s): {line}, {found.n_passes_} passes", flush=True)
    one, two = (np.array(taken) for taken in seconds.values())
    least, middle = ([part(taken[:, 0]) for taken in (one, two)] for part in (np.min, np.median))
    in_a_row = [(taken[:, 1] + taken[:, 2]).min() for taken in (one, two)]
    result = {"cores": cores, "rows": args.rows, "one": least[0], "two": least[1]}
    result |= {"ratio": least[0] / least[1], "ratio of medians": middle[0] / middle[1]}
    result |= {"ratio of processor time": in_a_row[0] / in_a_row[1]}
    result |= {"passes": found.n_passes_, "gap": found.duality_gap_ / found.objective_}
    result["cores alone"] = of_the_cores(args.repeats)
    print(f"T1 {least[0]:.2f} s, T2 {least[1]:.2f} s, ratio {result['ratio']:.2f}", flush=True)
    print(f"Two processes that never wait for each other: {result['cores alone']:.2f}", flush=True)
    try:
        binary = [0.9, 0.1]
        ((ours, *_),), _ = on_workers(2, args.rows, binary, robust)
        ((theirs, *_),), _ = on_workers(2, args.rows, binary, dask_ml)
        result |= {"two classes": ours, "dask-ml": theirs}
    except ImportError as error:
        print(f"dask-ml is not there: {error}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
