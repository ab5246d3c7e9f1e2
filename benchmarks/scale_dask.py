"""A robust fit on a Dask cluster of this machine: one worker and two, of one thread each.

    python benchmarks/scale_dask.py --rows 2_000_000

The rows are made where they are held, in float32; clusters take turns, and the least time of each
counts. Beside it, where it is installed, dask-ml's LogisticRegression, which has two classes only.
The last line is JSON.
"""

import argparse
import json
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from equipoise import RobustLogisticRegression

N_PARTITIONS = 16


def part(place, n_rows, width, shares):
    """Rows of one partition."""
    centers = 0.5 * np.random.default_rng(0).normal(size=(len(shares), width)).astype(np.float32)
    rng = np.random.default_rng([1, place])
    y = rng.choice(len(shares), n_rows, p=shares)
    return centers[y] + rng.standard_normal((n_rows, width), dtype=np.float32), y


def collections(n_rows, width, shares):
    """Rows and labels in the memory of the workers."""
    rows, (X, y) = n_rows // N_PARTITIONS, ([], [])
    for place in range(N_PARTITIONS):
        both = dask.delayed(part, pure=False)(place, rows, width, shares)
        X.append(da.from_delayed(both[0], (rows, width), dtype=np.float32))
        y.append(da.from_delayed(both[1], (rows,), dtype=np.int64))
    X, y = dask.persist(da.concatenate(X), da.concatenate(y))
    wait([X, y])
    return X, y


def timed(fit):
    start = time.perf_counter()
    fitted = fit()
    return time.perf_counter() - start, fitted


def robust(X, y):
    return RobustLogisticRegression("worst-class").fit(X, y)


def dask_ml(X, y):
    from dask_ml.linear_model import LogisticRegression

    return LogisticRegression(solver="lbfgs").fit(X.astype(np.float64), y)


def on_workers(n_workers, n_rows, shares, fit, width=20):
    """Seconds of a second fit (the first wakes everything up), and what it found."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **settings) as cluster, Client(cluster):
        fit(*collections(N_PARTITIONS * 1000, width, shares))
        X, y = collections(n_rows, width, shares)
        return timed(lambda: fit(X, y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    seconds, found = {1: [], 2: []}, None
    for _ in range(args.repeats):
        for n_workers, taken in seconds.items():
            time_taken, found = on_workers(n_workers, args.rows, [0.6, 0.3, 0.08, 0.02], robust)
            taken.append(time_taken)
            print(
                f"{n_workers} worker(s): {time_taken:6.2f} s, {found.n_passes_} passes", flush=True
            )
    one, two = (min(taken) for taken in seconds.values())
    result = {"rows": args.rows, "one": one, "two": two, "ratio": one / two}
    result |= {"passes": found.n_passes_, "gap": found.duality_gap_ / found.objective_}
    try:
        binary = [0.9, 0.1]
        ours, _ = on_workers(2, args.rows, binary, robust)
        theirs, _ = on_workers(2, args.rows, binary, dask_ml)
        result |= {"two classes": ours, "dask-ml": theirs}
    except ImportError as error:
        print(f"dask-ml is not there: {error}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
