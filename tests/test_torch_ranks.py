"""Two processes train as one with the joint batch would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from equipoise.goals import parse_goal  # noqa: E402
from set_examples import few_examples  # noqa: E402
from torch_cases import COUNTS  # noqa: E402
from torch_ranks import batches_of, train  # noqa: E402

if not torch.distributed.is_available():
    pytest.skip("this build of torch trains in one process only", allow_module_level=True)

GOALS = [repr(recipe) for recipe in few_examples()]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What the two processes print."""
    here = Path(__file__).parent
    address = f"file://{tmp_path_factory.mktemp('ranks') / 'store'}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
    command = [sys.executable, "-W", "ignore", str(here / "torch_ranks.py")]
    started = [
        subprocess.Popen(
            [*command, str(rank), "2", address, *GOALS],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=100)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    return [json.loads(output.splitlines()[-1]) for output in outputs]


@pytest.mark.parametrize("goal", GOALS)
def test_two_processes_train_like_one_with_the_joint_batch(ranks, goal):
    alone = train(parse_goal(goal), batches_of(0, 1), lambda network: network)
    assert len(alone) == 10
    for step, (masses, parameters) in enumerate(alone):
        assert ranks[0][goal][step] == ranks[1][goal][step]
        np.testing.assert_allclose(ranks[0][goal][step][0], masses, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ranks[0][goal][step][1], parameters, rtol=0, atol=1e-9)


def test_compiled_programs_of_two_processes_hold_the_same_masses(ranks):
    (program, plain), other = (found["compiled"] for found in ranks)
    assert other == [program, plain]
    np.testing.assert_allclose(program, plain, rtol=0, atol=1e-14)
    assert not np.allclose(program, COUNTS / COUNTS.sum(), atol=1e-3)


def test_processes_with_different_sets_say_so(ranks):
    for found in ranks:
        assert "must train with the same set" in found["different sets"]
        assert "FixedWeights(weights='balanced')" in found["different sets"]
        assert "WorstClass()" in found["different sets"]
