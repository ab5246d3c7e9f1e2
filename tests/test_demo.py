"""The demo prints what the comparison found, and writes its page."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("pandas")

from equipoise.datasets import load_thyroid
from equipoise.text import printable
from report_tables import assert_no_robust_row_is_worse

# The comparison is what takes long: the one that the demo makes is kept for the tests.
KEEPING = """
import json, runpy, sys
from equipoise import report

plain = report.compare

def compare(X, y):
    found = plain(X, y)
    with open(sys.argv[2], "w") as kept:
        json.dump([found.to_dict(), found.recommended], kept)
    return found

report.compare = compare
runpy.run_module("equipoise.demo", run_name="__main__")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    page, kept = folder / "page.html", folder / "kept.json"
    command = [sys.executable, "-W", "error", "-c", KEEPING, str(page), str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout, page, *json.loads(kept.read_text())


def test_the_page_is_where_the_demo_says(run):
    output, page, *_ = run
    assert output.rstrip().endswith(f"The page: {page}")
    assert "<html" in page.read_text(encoding="utf-8")


def test_class_risks_of_every_choice_stand_side_by_side(run):
    output, _, summary, recommended = run
    thyroid = load_thyroid(as_frame=True)
    counts = thyroid.target.value_counts().to_dict()
    assert {each["name"]: each["rows"] for each in summary["data"]["classes"]} == counts
    (header,) = [line for line in output.splitlines() if line.startswith("  made for")]
    assert all(name in header for name in thyroid.target_names)
    for one in summary["choices"]:
        (line,) = [row for row in output.splitlines() if row.startswith(f"  {one['label']} ")]
        risks = [f"{100 * each['risk']:.1f}%" for each in one["classes"]]
        expected = [*risks, f"{100 * one['standard']:.1f}%", f"{100 * one['worst']:.1f}%"]
        assert line.removeprefix(f"  {one['label']} ").split()[:-1] == expected
    assert f"Recommended: {recommended}." in output


def test_no_robust_row_of_the_demo_is_worse_for_its_own_purpose_than_balanced_weights(run):
    output, _, summary, _ = run
    assert_no_robust_row_is_worse(summary)
    # As it is printed: the worst class of a model made for it, 166 patients or more.
    lines = [line for line in output.splitlines() if line.startswith(("  linear,", "  boosting,"))]
    worst = {line.split("  ")[1].strip(): float(line.split()[-2].rstrip("%")) for line in lines}
    for model in ("linear", "boosting"):
        own, balanced = worst[f"{model}, worst class"], worst[f"{model}, balanced"]
        assert own <= balanced + 200 * (own / 100 * (1 - own / 100) / 166) ** 0.5


def test_sentences_lose_the_marks_around_names():
    assert printable("\u2068balanced\u2069 it is") == "balanced it is"
