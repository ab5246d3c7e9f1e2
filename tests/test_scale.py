"""A fit to millions of rows within a bound on the memory of the process, as `make bench-scale`.

Only where EQUIPOISE_SCALE is set, as by `make test-extras`: it writes 240 MB.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).parents[1] / "benchmarks" / "scale.py"
pytestmark = [
    pytest.mark.skipif(not os.environ.get("EQUIPOISE_SCALE"), reason="EQUIPOISE_SCALE is not set"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@pytest.mark.timeout(900)
def test_three_million_rows_fit_into_300_mib(folder):
    options = ["--rows", "3_000_000", "--simulated", "--memory", "128 MiB"]
    command = [sys.executable, str(SCALE), str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == 3_000_000 and found["status"] == "converged"
    assert found["relative gap"] <= 1e-6
    assert found["passes"] <= 40
    assert found["own memory at most, MiB"] < 300


@pytest.mark.timeout(900)
@pytest.mark.parametrize("given", ["npy", "mapped", "page"])
def test_a_plug_in_on_millions_of_rows_takes_less_than_it_may(folder, given):
    if given == "page":
        pytest.importorskip("pandas")
    if not (folder / "y.npy").is_file():
        make = ["--rows", "3_000_000", "--simulated", "--step", "make"]
        subprocess.run([sys.executable, str(SCALE), str(folder), *make], check=True)
    command = [sys.executable, "-c", PLUG_IN, str(SCALE.parent), str(folder), given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["trained"] + found["evaluated"] == 3_000_000 and found["trained"] > 10_000
    assert found["rare"] == found["trained"] / 4
    assert found["grown by, MiB"] < 64


PLUG_IN = """
import json, sys
import numpy
from sklearn.naive_bayes import GaussianNB
from equipoise import TunedDecisionClassifier
from equipoise.blocks import from_npy
sys.path.insert(0, sys.argv[1])
from scale import own_memory, peak_of_own_memory

folder = sys.argv[2]
rows = [from_npy(folder)]
if sys.argv[3] == "mapped":
    rows = [numpy.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy"]
TunedDecisionClassifier(GaussianNB()).fit([[0.0], [1.0]] * 20, [0, 1] * 20)  # with what it imports
if sys.argv[3] == "page":
    from equipoise.report import compare
    first = numpy.arange(400.0).reshape(-1, 1)
    compare(first, [0, 1] * 200, {"bayes": GaussianNB()}, goals="standard")
before = own_memory()
with peak_of_own_memory() as peak:
    if sys.argv[3] == "page":
        found = compare(*rows, models={"bayes": GaussianNB()}, memory="64 MiB")
    else:
        clf = TunedDecisionClassifier(GaussianNB(), "worst_class", memory="64 MiB").fit(*rows)
if sys.argv[3] == "page":
    seen = found.to_dict()["design"]["rows_seen"]
    rare = seen["trained"] / 4
else:
    seen = {name: int(rows.to_numpy().sum()) for name, rows in clf.rows_seen_.items()}
    rare = clf.rows_seen_["trained"][3]
print(json.dumps(seen | {"rare": rare, "grown by, MiB": peak[0] - before}))
"""
