"""The gallery: a page asks a question, and its code prints every number of the answer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")


def _answer(path: Path) -> str:
    """The first paragraph below the title."""
    return path.read_text("utf-8").split('"""')[1].split("\n\n")[1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_title_is_a_question_and_the_end_says_where_to_read_on(path):
    text = path.read_text("utf-8")
    title, underline = text.split('"""')[1].split("\n")[1:3]
    assert title.endswith("?") and underline == "=" * len(title)
    assert "# See also" in text.split("# %%")[-1]
    assert len(text.splitlines()) <= 130


def test_the_gallery_has_a_place_for_every_example():
    text = (Path(__file__).parents[1] / "docs/gallery.py").read_text("utf-8")
    places = re.findall(r'"(\w+)",', text)
    assert sorted(f"plot_{name}" for name in places) == [path.stem for path in EXAMPLES]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_every_number_of_its_answer(path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    ran = subprocess.run(
        [sys.executable, "-W", "error", path],
        env=os.environ | {"MPLBACKEND": "Agg"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    # What stands between backquotes is code, and may hold settings.
    words = re.sub(r"``[^`]*``", "", _answer(path))
    missing = set(NUMBER.findall(words)) - set(NUMBER.findall(ran.stdout))
    assert not missing, f"the answer has {missing}, and this is printed:\n{ran.stdout}"
    kept = (path.parents[1] / "docs/studies/examples.txt").read_text("utf-8")
    said = kept.split(f"$ python examples/{path.name}\n")[1].split("\n$ ")[0]
    # Last digits may differ from machine to machine, words and lines may not.
    assert NUMBER.sub("#", said).split() == NUMBER.sub("#", ran.stdout).split()
