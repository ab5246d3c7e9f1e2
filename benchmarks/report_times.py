"""Seconds and memory of pages of large tables, each made in a process of its own.

python benchmarks/report_times.py [--tables NAME ...]

Three tables that ``advice_tables.generate`` makes up, numbers and texts with missing values and
classes down to five rows, and Covertype (``covtype.npz`` in the folder that ``EQUIPOISE_DATA``
names). Ceilings, decided before any run, on two cores: 240, 120, 90 and 600 seconds; 6 GiB for
Covertype. Reading or making the table does not count, importing does not either; memory is the
largest that the process has held, with that of the largest process it started. Where others use
the machine, look at the seconds that its cores have worked for the page.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from advice_tables import generate
from equipoise.datasets import fetch_covtype
from equipoise.report import compare
from real_data_show import say

# Rows, columns and classes, and the ceiling in seconds.
GENERATED = {
    "27,000 x 41 x 23": ((27_000, 41, 23), 240),
    "61,000 x 27 x 8": ((61_000, 27, 8), 120),
    "50,000 x 54 x 7": ((50_000, 54, 7), 90),
}
COVERTYPE = "Covertype"
CEILINGS = {name: seconds for name, (_, seconds) in GENERATED.items()} | {COVERTYPE: 600}
GIBIBYTES = 6.0


def load(name: str) -> tuple[Any, Any]:
    if name != COVERTYPE:
        frame = generate(*GENERATED[name][0], seed=0)
        return frame, frame.pop("label")
    folder = os.environ.get("EQUIPOISE_DATA")
    if not folder:
        raise SystemExit("Set EQUIPOISE_DATA to the folder that has covtype.npz.")
    stored = fetch_covtype(Path(folder) / "covtype.npz")
    return pd.DataFrame(stored.data, columns=stored.feature_names), stored.target


def make(name: str) -> dict[str, Any]:
    """One page, made here."""
    X, y = load(name)
    began, began_work = time.perf_counter(), time.process_time()
    found = compare(X, y)
    found.to_html()
    seconds, worked = time.perf_counter() - began, time.process_time() - began_work
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    # Kilobytes on Linux, bytes on a Mac.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    held = sum(resource.getrusage(kind).ru_maxrss for kind in kinds) / unit
    took = {"seconds": seconds, "worked": worked, "gibibytes": held}
    return took | {"recommended": found.recommended}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=CEILINGS, default=list(CEILINGS))
    parser.add_argument("--one", choices=CEILINGS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(make(given.one)))
        return
    for name in given.tables:
        command = [sys.executable, "-W", "ignore", __file__, "--one", name]
        came = subprocess.run(command, capture_output=True, text=True, check=False)
        if came.returncode:
            say(False, f"{name}: no page: {came.stderr.strip().splitlines()[-1]}")
            continue
        found = json.loads(came.stdout.splitlines()[-1])
        good = found["seconds"] <= CEILINGS[name]
        words = f"{found['seconds']:.0f} s of {CEILINGS[name]}, {found['worked']:.0f} s of a core"
        words += f", {found['gibibytes']:.1f} GiB"
        if name == COVERTYPE:
            good &= found["gibibytes"] <= GIBIBYTES
            words += f" of {GIBIBYTES:g}"
        say(good, f"{name}: {words}; {found['recommended']}")


if __name__ == "__main__":
    main()
