"""A robust fit to rows that do not fit in memory: passes, time, and the memory that it takes.

    python benchmarks/scale.py FOLDER --rows 58_000_000

writes X.npy and y.npy to the folder unless they are there: Covertype, standardised, repeated and
with noise added, in float32; ``--simulated`` needs no data and has 20 columns and 4 classes. Then
it fits, in a process of its own, and prints what it took. The last line is JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

NOISE = 0.1
ROWS_AT_A_TIME = 1 << 16


def make(folder: Path, n_rows: int, *, simulated: bool) -> None:
    """Write the rows, a few at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    chunk, width = simulated_rows() if simulated else covertype_rows()
    with (folder / "X.npy").open("wb") as X, (folder / "y.npy").open("wb") as y:
        for stream, shape, dtype in ((X, (n_rows, width), "<f4"), (y, (n_rows,), "<i8")):
            header = {"descr": dtype, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, n_rows, ROWS_AT_A_TIME):
            rows, labels = chunk(start, min(ROWS_AT_A_TIME, n_rows - start))
            X.write(np.ascontiguousarray(rows, "<f4").data)
            y.write(np.ascontiguousarray(labels, "<i8").data)


def covertype_rows():
    from problems import PROBLEMS

    X, y = PROBLEMS["covertype-all"]()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order].astype(np.float32), y[order]

    def chunk(start, count):
        rows = np.arange(start, start + count) % len(y)
        noise = np.random.default_rng(start).standard_normal((count, X.shape[1]), dtype=np.float32)
        return X[rows] + np.float32(NOISE) * noise, y[rows]

    return chunk, X.shape[1]


def simulated_rows():
    centers = 0.5 * np.random.default_rng(0).normal(size=(4, 20)).astype(np.float32)

    def chunk(start, count):
        rng = np.random.default_rng([1, start])
        y = rng.choice(4, count, p=[0.6, 0.3, 0.08, 0.02])
        return centers[y] + rng.standard_normal((count, 20), dtype=np.float32), y

    return chunk, 20


@contextmanager
def peak_of_own_memory():
    """The largest anonymous memory of the process while the block runs, in MiB, as a list."""
    found, done = [0.0], threading.Event()

    def watch():
        while not done.wait(0.02):
            found[0] = max(found[0], own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()


def own_memory() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def drop_from_cache(folder: Path) -> None:
    for path in folder.glob("*.npy"):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def measure(folder: Path, memory: str) -> dict[str, float | int | str]:
    """Fit, then time single passes with the files in the page cache and dropped from it."""
    from equipoise import RobustLogisticRegression, WorstClass
    from equipoise.blocks import from_npy
    from equipoise.blocks.memory import check_memory
    from equipoise.losses import as_trained
    from equipoise.objectives import RowsInBlocks

    blocks, before = from_npy(folder), own_memory()
    with peak_of_own_memory() as peak:
        start, used = time.perf_counter(), time.process_time()
        clf = RobustLogisticRegression(WorstClass(), memory=memory).fit(blocks)
        seconds, used = time.perf_counter() - start, time.process_time() - used
    rows = RowsInBlocks(blocks, check_memory(memory))
    settings = {"fit_intercept": True, "ridge": 1e-6, "loss": as_trained("cross_entropy")}
    passes = {}
    n_rows = int(rows.counts.sum())
    with rows.open(**settings) as objective:
        for state in ("warm", "dropped"):
            if state == "dropped":
                drop_from_cache(folder)
            start = time.perf_counter()
            objective.evaluate(np.zeros(objective.size))
            passes[f"microseconds a row of a pass, {state}"] = (
                (time.perf_counter() - start) / n_rows * 1e6
            )
    return {
        "rows": n_rows,
        "GB on disk": sum(path.stat().st_size for path in folder.glob("*.npy")) / 1e9,
        "status": clf.status_,
        "objective": clf.objective_,
        "relative gap": clf.duality_gap_ / clf.objective_,
        "passes": clf.n_passes_,
        "seconds": seconds,
        "microseconds a row": seconds / n_rows * 1e6,
        "seconds of processors": used,
        "microseconds of processors a row": used / n_rows * 1e6,
        "memory asked for": memory,
        "own memory before, MiB": before,
        "own memory at most, MiB": peak[0],
        **passes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=58_000_000)
    parser.add_argument("--memory", default="1 GiB")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--step", choices=["make", "measure"])
    given = parser.parse_args()
    if given.step == "make":
        make(given.folder, given.rows, simulated=given.simulated)
    elif given.step == "measure":
        found = measure(given.folder, given.memory)
        for name, value in found.items():
            print(f"{name:40} {value:.6g}" if isinstance(value, float) else f"{name:40} {value}")
        print(json.dumps(found))
    else:  # what was allocated to make the rows must not count
        steps = ["measure"] if (given.folder / "y.npy").is_file() else ["make", "measure"]
        for step in steps:
            subprocess.run([sys.executable, *sys.argv, "--step", step], check=True)


if __name__ == "__main__":
    main()
