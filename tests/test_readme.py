"""The README's Python runs as it stands, from top to bottom, in one session."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import CostMatrix, PlugInClassifier

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_code_of_the_readme_runs(capsys):
    assert len(BLOCKS) >= 3
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), session)
    assert "0." in capsys.readouterr().out


@pytest.mark.parametrize("goal", ["worst-class", CostMatrix([[0, 1, 5], [1, 0, 1], [2, 1, 0]])])
def test_what_a_fit_leaves_is_named(goal):
    (sentence,) = re.findall(r"After `fit`: (.*?)\.\n", TEXT, re.DOTALL)
    named = set(re.findall(r"`(\w+_)`", sentence))
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    clf = PlugInClassifier(LogisticRegression(), goal, cv=3).fit(X, y)
    decides = {name for name in ("weights_", "costs_") if hasattr(clf, name)}
    assert len(decides) == 1 and decides <= named
