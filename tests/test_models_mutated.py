"""Model files with random changes in form, in their own processes: none ends, hangs or swells."""

import json
import os
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", minversion="2.1")

from equipoise.persistence.document import KINDS
from model_mutations import MODELS, columns_mutated, outcome, saved

SCRIPT = Path(__file__).parent / "model_mutations.py"
# Files for each model; in the study in so many processes.
FEW, MANY, PARTS = 60, 5000, 10
# Seconds of computing that one file may take.
LONGEST = 10.0
# Files with other columns.
COLUMN_FILES = 300


def outcomes(seed, count, *names):
    """What came of files, from a process that ended well and in time."""
    command = [sys.executable, str(SCRIPT), str(seed), str(count), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1700)
    last = [line for line in done.stderr.splitlines() if line][-30:]
    assert done.returncode == 0, f"exit {done.returncode} after {last}"
    found = json.loads(done.stdout)
    for name, each in found.items():
        assert each["loaded"] + each["refused"] == count, name
        assert each["loaded"] > 0 and each["refused"] > 0, name
        assert each["seconds"] < LONGEST, (name, each)
    return found


@pytest.mark.parametrize("names", [MODELS[::2], MODELS[1::2]], ids=["even", "odd"])
def test_changed_files_load_and_predict_or_are_refused(names):
    outcomes(0, FEW, *names)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", MODELS)
def test_thousands_of_changed_files_load_and_predict_or_are_refused(name, capsys):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(outcomes, 1 + part, MANY // PARTS, name) for part in range(PARTS)]
        parts = [job.result()[name] for job in jobs]
    total = {key: sum(part[key] for part in parts) for key in ("loaded", "refused")}
    worst = {key: max(part[key] for part in parts) for key in ("seconds", "megabytes")}
    assert sum(total.values()) == MANY
    with capsys.disabled():
        print(f"\n{name}: {total} of {MANY}; at most {worst}")  # noqa: T201


def test_hundreds_of_changed_columns_load_and_predict_or_are_refused():
    warnings.simplefilter("ignore")
    members, X = saved("plain table")
    found = Counter(
        outcome(columns_mutated(members, np.random.default_rng([9, number])), X)
        for number in range(COLUMN_FILES)
    )
    assert found["refused"] > COLUMN_FILES / 3 and found.total() == COLUMN_FILES


def test_every_kind_is_among_the_models():
    text = b"".join(saved(name)[0]["model.json"] for name in MODELS).decode()
    assert all(f'"is": "{kind}"' in text for kind in KINDS)
