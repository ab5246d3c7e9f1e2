"""The ways through the library are short, and the architecture page says how short."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("pandas")

PROJECT = Path(__file__).parents[1]
SCRIPT = PROJECT / "benchmarks" / "walks.py"
PAGE = PROJECT / "docs" / "architecture.md"
# Repositories' own files that the page tells people to open.
FILES = re.compile(r"`((?:src|tests|benchmarks|docs)/[\w/.]+)`")


@pytest.fixture(scope="module")
def printed():
    command = [sys.executable, str(SCRIPT)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_plug_in_takes_eight_classes_and_a_page_fourteen_hops(printed):
    counts = re.search(r"PlugInClassifier.fit: (\d+) classes in (\d+) files", printed)
    hops = re.search(r"to the page: (\d+) hops", printed)
    assert int(counts[1]) <= 8 and int(counts[2]) <= 8
    assert int(hops[1]) <= 14


def test_the_architecture_page_shows_what_is_printed(printed):
    shown = PAGE.read_text(encoding="utf-8")
    for paragraph in printed.split("\n\n"):
        indented = "\n".join(f"    {line}".rstrip() for line in paragraph.splitlines())
        assert indented in shown, f"python {SCRIPT.name} prints something else now:\n{paragraph}"


@pytest.mark.parametrize("page", [PAGE, PROJECT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_every_file_that_a_page_names_is_there(page):
    named = FILES.findall(page.read_text(encoding="utf-8"))
    assert named and not [name for name in named if not (PROJECT / name).exists()]
