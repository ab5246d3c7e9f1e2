"""The code of the pages runs as it stands, and shows what they say.

The blocks of a page run from top to bottom in one session. What stands under ``>>>`` is compared. A
page says in comments what it needs beyond the core, ``<!-- needs: torch -->``, and by how many
points percentages may differ where they depend on the versions of other packages,
``<!-- points: 4 -->``; or the first scikit-learn whose forests and boosters give its numbers,
``<!-- since: 1.7 -->``, before which they are not compared.
"""

import doctest
import os
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    str(page.relative_to(DOCS)): page.read_text(encoding="utf-8")
    for pages in ("start.md", "guide/*.md", "theory/*.md")
    for page in sorted(DOCS.glob(pages))
}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Files of the repository that a page tells people to open.
FILES = re.compile(r"`((?:src|tests|benchmarks|docs)/[\w/.]+)`")
WITH_CODE = [name for name, text in PAGES.items() if BLOCK.search(text)]
COMPARED = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def release(version):
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2])


class Points(doctest.OutputChecker):
    """Percentages that differ by a few points are the same."""

    def __init__(self, text):
        said = re.search(r"<!-- points: (\d+) -->", text)
        self.points = int(said[1]) if said else 0
        since = re.search(r"<!-- since: ([\d.]+) -->", text)
        self.compares = not since or release(sklearn.__version__) >= release(since[1])

    def check_output(self, want, got, optionflags):
        if not self.compares:
            return True
        wanted, found = (list(map(int, re.findall(r"(\d+)%", each))) for each in (want, got))
        if len(wanted) == len(found):
            pairs = zip(wanted, found, strict=True)
            near = iter(w if abs(w - f) <= self.points else f for w, f in pairs)
            got = re.sub(r" *\d+%", lambda _: f" {next(near)}%", got)
            want = re.sub(r" *(\d+%)", r" \1", want)
        return super().check_output(want, got, optionflags)


def run(name, text, session):
    """Run the blocks of a page, those with prompts as doctests."""
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(Points(text), optionflags=COMPARED)
    said: list[str] = []
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        if match[1].startswith(">>>"):
            test = parser.get_doctest(match[1], session, name, str(DOCS / name), line)
            runner.run(test, out=said.append, clear_globs=False)
            session.update(test.globs)
        else:
            # So many empty lines that a traceback names the line of the page.
            exec(compile("\n" * line + match[1], str(DOCS / name), "exec"), session)
    return said


# Eighteen boosters a classifier take longer than other tests.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_runs_and_shows_what_it_says(name, tmp_path, monkeypatch):
    text = PAGES[name]
    needed = re.search(r"<!-- needs: (.*?) -->", text)
    for package in needed[1].split() if needed else []:
        if find_spec(package) is None:
            pytest.skip(f"{name} needs {package}, which is not installed")
    monkeypatch.chdir(tmp_path)
    said = run(name, text, {"__name__": "__main__"})
    assert not said, "".join(said)


def test_a_page_that_shows_something_else_is_found():
    page = "```python\ntwo = 1 + 1\n```\n\n```python\n>>> two\n3\n```\n"
    assert "Expected:\n    3\nGot:\n    2" in "".join(run("page.md", page, {}))
    shares = "```python\n>>> print('found  9% of 40%')\nfound 12% of 40%\n```\n"
    assert run("page.md", shares, {})
    assert not run("page.md", "<!-- points: 3 -->\n" + shares, {})
    assert run("page.md", "<!-- points: 2 -->\n" + shares, {})


def test_the_recalls_of_the_pages_are_those_of_the_study():
    study = (DOCS / "studies" / "tuner.txt").read_text(encoding="utf-8")
    confirmed = study.split("splits 4 and 5")[1]
    named = {"logistic regression": "logistic", "random forest": "forest"}
    named["histogram gradient boosting"] = "boosting"
    rules = "default", "class_weight", "inverse shares", "plain", "sqrt", "average"
    for shown, name in named.items():
        lines = (re.search(rf"^  {rule} +{name} +([\d.]+)", confirmed, re.M) for rule in rules)
        recall = {rule: f"{line[1]}%" for rule, line in zip(rules, lines, strict=True)}
        row = f"| {' | '.join([shown, *recall.values()])} |"
        assert row in PAGES["guide/should-i-weight.md"]
        assert row in (DOCS / "benchmarks.md").read_text(encoding="utf-8")


def test_the_picture_shows_what_the_study_printed():
    picture = runpy.run_path(str(DOCS / "picture.py"))
    assert picture["PICTURE"].read_text(encoding="utf-8") == picture["draw"]()


def test_the_recalls_of_networks_are_those_of_the_study():
    study = (
        (DOCS / "studies" / "long_tail.txt").read_text(encoding="utf-8").split("Imbalance 10:")[0]
    )
    named = {"class-balanced weights": "class-balanced"}
    named |= {"logit adjustment after training": "logit adjustment, post-hoc"}
    table = PAGES["guide/deep-nets.md"].split("| trained with |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert len(rows) == 5
    for shown, *cells in rows:
        name = named.get(shown, shown.replace("`", ""))
        for cell, more in zip(cells, ("", r" \+ decision weights"), strict=True):
            found = re.search(rf"^{name}{more} +([\d.]+) +[\d.]+ +([\d.]+)", study, re.MULTILINE)
            assert cell == f"{found[1]}%, {found[2]}%"


def test_the_table_of_long_tails_is_that_of_the_study():
    study = (DOCS / "studies" / "long_tail.txt").read_text(encoding="utf-8")
    table = (
        (DOCS / "deep.md").read_text(encoding="utf-8").split("| | imbalance")[1].split("\n\n")[0]
    )
    rows = [re.sub(r"[*`]|the ", "", line).strip("| ") for line in table.splitlines()[2:]]
    assert len(rows) == 10
    for name, *cells in (row.split(" | ") for row in rows):
        pattern = rf"^{re.escape(name)} +([\d.]+) +[\d.]+ +([\d.]+)"
        assert [x for pair in re.findall(pattern, study, re.MULTILINE) for x in pair] == cells


def test_the_times_of_the_guide_are_those_of_the_benchmarks():
    measured = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    table = PAGES["guide/how-it-is-fast.md"].split("| data")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert len(rows) == 8
    for data, theirs, ours, ratio in rows:
        pattern = rf"{re.escape(f'| {data} | {theirs} ')}\(\S+\) \| {ours} .*\| {ratio},"
        assert re.search(pattern, measured), f"benchmarks.md has other times for {data}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(page):
    named = FILES.findall((DOCS.parent / page).read_text(encoding="utf-8"))
    assert named and not [name for name in named if not (DOCS.parent / name).exists()]


def test_every_file_of_the_walks_is_there():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## Three walks")[1]
    walked = re.findall(r"^    .* (\w+/\w+\.py)", text, re.MULTILINE)
    rooms = DOCS.parent / "src" / "equipoise"
    assert len(walked) > 20 and not [name for name in walked if not (rooms / name).exists()]


@pytest.mark.parametrize("name", PAGES)
def test_a_link_to_another_page_leads_somewhere(name):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", PAGES[name]):
        # What `make docs` makes, git does not hold.
        made = ("auto_examples", "api/generated")
        path = os.path.relpath((DOCS / name).parent / target, DOCS)
        assert path.startswith(made) or (DOCS / path).exists(), f"{name} links to {target}"
