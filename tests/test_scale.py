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


@pytest.mark.timeout(900)
def test_three_million_rows_fit_into_300_mib(tmp_path):
    options = ["--rows", "3_000_000", "--simulated", "--memory", "128 MiB"]
    command = [sys.executable, str(SCALE), str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == 3_000_000 and found["status"] == "converged"
    assert found["relative gap"] <= 1e-6
    assert found["passes"] <= 40
    assert found["own memory at most, MiB"] < 300
