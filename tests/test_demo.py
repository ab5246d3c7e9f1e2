"""The demo prints what the comparison found, and writes its page."""

import subprocess
import sys

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("pandas")

from equipoise.datasets import load_thyroid
from equipoise.report import compare
from equipoise.text import printable
from report_tables import assert_no_robust_row_is_worse


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    page = tmp_path_factory.mktemp("demo") / "page.html"
    command = [sys.executable, "-W", "error", "-m", "equipoise.demo", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout, page


@pytest.fixture(scope="module")
def found():
    thyroid = load_thyroid(as_frame=True)
    return compare(thyroid.data, thyroid.target)


def test_the_page_is_where_the_demo_says(run):
    output, page = run
    assert output.rstrip().endswith(f"The page: {page}")
    assert "<html" in page.read_text(encoding="utf-8")


def test_class_risks_of_every_choice_stand_side_by_side(run, found):
    output, _ = run
    (header,) = [line for line in output.splitlines() if line.startswith("  made for")]
    assert all(name in header for name in load_thyroid(as_frame=True).target_names)
    for one in found.to_dict()["choices"]:
        (line,) = [row for row in output.splitlines() if row.startswith(f"  {one['label']} ")]
        risks = [f"{100 * each['risk']:.1f}%" for each in one["classes"]]
        expected = [*risks, f"{100 * one['standard']:.1f}%", f"{100 * one['worst']:.1f}%"]
        assert line.removeprefix(f"  {one['label']} ").split()[:-1] == expected
    assert f"Recommended: {found.recommended}." in output


def test_no_robust_row_of_the_demo_is_worse_for_its_own_purpose_than_balanced_weights(run, found):
    output, _ = run
    assert_no_robust_row_is_worse(found.to_dict())
    # As it is printed: the worst class of a model made for it, 166 patients or more.
    lines = [line for line in output.splitlines() if line.startswith(("  linear,", "  boosting,"))]
    worst = {line.split("  ")[1].strip(): float(line.split()[-2].rstrip("%")) for line in lines}
    for model in ("linear", "boosting"):
        own, balanced = worst[f"{model}, worst class"], worst[f"{model}, balanced"]
        assert own <= balanced + 200 * (own / 100 * (1 - own / 100) / 166) ** 0.5


def test_sentences_lose_the_marks_around_names():
    assert printable("\u2068balanced\u2069 it is") == "balanced it is"
