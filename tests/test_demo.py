"""The demo prints what the comparison found, and writes its page."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("pandas")

from equipoise.datasets import load_thyroid
from equipoise.text import printable

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


def test_class_risks_of_every_candidate_stand_side_by_side(run):
    output, _, summary, recommended = run
    thyroid = load_thyroid(as_frame=True)
    counts = thyroid.target.value_counts().to_dict()
    assert {each["name"]: each["rows"] for each in summary["data"]["classes"]} == counts
    (header,) = [line for line in output.splitlines() if line.startswith("  candidate")]
    assert all(name in header for name in thyroid.target_names)
    for one in summary["candidates"]:
        (line,) = [row for row in output.splitlines() if row.startswith(f"  {one['label']} ")]
        risks = [*(each["risk"] for each in one["classes"]), one["overall"], one["worst"]]
        expected = [f"{100 * risk:.1f}%" for risk in risks]
        assert line.removeprefix(f"  {one['label']} ").split() == expected
    assert f"Recommended: {recommended}." in output


def test_the_worst_class_gains_from_decisions_tuned_for_it(run):
    """Of models that fail a class: 166 patients or more, so four standard errors are 16 points."""
    by_label = {each["label"]: each for each in run[2]["candidates"]}
    assert by_label["linear, worst_class"]["worst"] < by_label["linear, plain"]["worst"] - 0.16


def test_sentences_lose_the_marks_around_names():
    assert printable("\u2068balanced\u2069 it is") == "balanced it is"
