"""The demo prints what an independent calculation finds."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, recall_score

from equipoise import demo
from equipoise.datasets import load_thyroid
from equipoise.risks import class_risks


@pytest.fixture(scope="module")
def models():
    return demo.fit_choices(*load_thyroid(subset="train", return_X_y=True))


@pytest.fixture(scope="module")
def test_rows():
    return load_thyroid(subset="test")


@pytest.fixture(scope="module")
def output():
    command = [sys.executable, "-W", "error", "-m", "equipoise.demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tables(output):
    """The cells of each table by row name, without its header."""
    blocks = [block.splitlines() for block in output.split("\n\n") if "  fitted for" in block]
    return [{name: _cells(block, name) for name in demo.CHOICES} for block in blocks]


def _cells(block, name):
    (line,) = [line for line in block if line.startswith(f"  {name} ")]
    return line.removeprefix(f"  {name} ").split()


def _rounded(values):
    return [f"{value:.3f}" for value in values]


def test_class_risks_are_one_minus_recalls(models, test_rows, tables):
    for name, model in models.items():
        predicted = model.predict(test_rows.data)
        wrong = predicted != test_rows.target
        risks = 1 - recall_score(test_rows.target, predicted, average=None)
        balanced = 1 - balanced_accuracy_score(test_rows.target, predicted)
        assert tables[0][name] == _rounded([*risks, wrong.mean(), balanced, risks.max()])


def test_class_sizes_are_shown(output):
    (line,) = [line for line in output.splitlines() if "(test patients)" in line]
    assert line.split()[2:] == ["177", "73", "3178"]


def test_intervals_contain_the_risks(tables):
    for name in demo.CHOICES:
        ends = np.array([float(cell) for cell in tables[1][name] if cell != "to"]).reshape(-1, 2)
        risks = np.array(tables[0][name][:3], dtype=float)
        assert np.all(ends[:, 0] <= risks) and np.all(risks <= ends[:, 1])


def test_robust_fits_respect_their_caps_and_their_certificate(tables):
    for name, cap in {"CVaR 0.5": 2, "CVaR 0.2": 5}.items():
        weights = np.array(tables[2][name][:3], dtype=float)
        assert weights.max() == pytest.approx(cap, abs=0.005)
    assert all(0 <= float(row[-1]) < 1e-6 for row in tables[2].values())


def test_the_objective_grows_with_the_set(tables):
    objectives = [float(tables[2][name][-2]) for name in ("standard", *demo.ROBUST)]
    assert objectives == sorted(objectives)


def test_costs_are_weighted_risks(models, test_rows, tables):
    fits = {name: model[-1] for name, model in models.items()}
    for name, model in models.items():
        risks = class_risks(test_rows.target, model.predict(test_rows.data))
        weights = [fits[other].worst_case_weights_ for other in demo.ROBUST]
        expected = [risks.standard(), risks.balanced(), *map(risks.weighted, weights)]
        assert tables[3][name] == _rounded(expected)


def test_regrets_are_costs_minus_the_best(tables):
    costs, regrets = (np.array(list(table.values()), dtype=float) for table in tables[3:])
    # Both are rounded to three decimals.
    assert regrets[:, :-1] == pytest.approx(costs - costs.min(axis=0), abs=0.0016)
    assert regrets[:, -1] == pytest.approx(regrets[:, :-1].max(axis=1))


def test_the_robust_fit_helps_the_worst_class(tables):
    assert float(tables[0]["worst class"][-1]) < float(tables[0]["standard"][-1])
