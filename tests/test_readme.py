"""The Python of the README and of the tour runs as it stands, each in one session."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import CostMatrix, TunedDecisionClassifier

ROOT = Path(__file__).parents[1]
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def printed_by(name, capsys):
    """What the blocks of a page print, one after the other."""
    blocks, session, said = re.findall(r"```python\n(.*?)```", read(name), re.DOTALL), {}, []
    for block in blocks:
        exec(compile(block, name, "exec"), session)
        said.append(capsys.readouterr().out)
    return said


def test_the_code_of_the_readme_runs_and_prints_what_stands_below_it(capsys):
    said = printed_by("README.md", capsys)
    assert len(said) == 2
    (shown,) = re.findall(r"```text\n(.*?)```", read("README.md"), re.DOTALL)
    found = said[0].strip()
    assert re.sub(NUMBER, "#", found).split() == re.sub(NUMBER, "#", shown).split()
    numbers = [[float(x) for x in re.findall(NUMBER, text)] for text in (found, shown)]
    # Other versions may decide a row or two otherwise.
    np.testing.assert_allclose(*numbers, rtol=0.02, atol=1e-6)


def test_the_code_of_the_tour_runs(capsys):
    said = printed_by("docs/tour.md", capsys)
    assert len(said) >= 6 and "0." in said[0]


def test_the_readme_is_short_and_says_how_to_test():
    text = read("README.md")
    assert len(text.split()) < 900
    assert "\nmake test " in text and "`.ci/run`" in text


def test_numbers_of_the_readme_stand_on_the_page_of_benchmarks():
    table = read("README.md").split("## Measured")[1].split("## Where")[0]
    measured = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][1:]
    page = read("docs/benchmarks.md")
    for cell in measured:
        for number in re.findall(r"(?<![\w.,])\d+\.\d+(?= s|,|$| )", cell):
            assert number in page, number


@pytest.mark.parametrize("page", ["docs/benchmarks.md", "README.md"])
def test_commands_that_print_numbers_are_there(page):
    scripts = re.findall(r"benchmarks/\w+\.py", read(page))
    targets = re.findall(r"`make ([\w-]+)", read(page))
    assert scripts and all((ROOT / script).exists() for script in scripts)
    known = re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE)
    assert targets and set(targets) <= set(known)


@pytest.mark.parametrize("goal", ["worst_class", CostMatrix([[0, 1, 5], [1, 0, 1], [2, 1, 0]])])
def test_what_a_fit_leaves_is_named(goal):
    (sentence,) = re.findall(r"After `fit`: (.*?)\.\n", read("docs/tour.md"), re.DOTALL)
    named = set(re.findall(r"`(\w+_)`", sentence))
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 3
    clf = TunedDecisionClassifier(LogisticRegression(), goal, cv=3).fit(X, y)
    decides = {name for name in ("weights_", "costs_") if hasattr(clf, name)}
    assert len(decides) == 1 and decides <= named
