"""Public docstrings, messages and pages use the terms of the field, in plain English.

The test reads docstrings of public modules, classes and functions, string literals of ``raise`` and
``warn`` calls, and pages of the documentation, for the terms in ``TERMS``. It reads the folders and
pages that ``PARTS`` and ``PAGES`` name. To switch on another one, edit its text and add its name:
a folder or file directly below ``src/equipoise`` to ``PARTS``, a path below the repository's root
to ``PAGES`` (a folder stands for all pages in it). What is still to be edited is printed by
``python tests/test_plain_words.py PART_OR_PAGE ...``.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "equipoise"

PARTS = [
    "arrays",
    "blocks",
    "decisions",
    "estimators",
    "exceptions",
    "extras",
    "goals",
    "metrics",
    "risks",
    "sets",
    "shift",
    "text",
    "torch",
    "validation",
    "weights",
    "losses",
    "objectives",
    "solvers",
    "threads.py",
    "cli",
    "datasets",
    "files.py",
    "onnx",
    "paper",
    "persistence",
    "theory",
]
PAGES = [
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs/api",
    "docs/architecture.md",
    "docs/benchmarks.md",
    "docs/deep.md",
    "docs/guide",
    "docs/index.md",
    "docs/more.md",
    "docs/paper.md",
    "docs/policy.md",
    "docs/scale.md",
    "docs/start.md",
    "docs/studies.md",
    "docs/theory",
    "docs/tour.md",
    "paper.md",
]

# A pattern to avoid, and what to write instead.
TERMS = {
    r"rows? ((that is|that are) )?left out|left-out rows?|ha(s|ve) not seen": "held-out rows",
    r"judg(e|es|ed|ing|ement|ments?)": "evaluate",
    r"(never|rightly|wrongly) decided|decides? a class": "never predicted, misclassified",
    r"decided (rightly|wrongly)": "correctly classified, misclassified",
    r"(decisions?|predictions?) as trained": "default predictions",
    r"trainings": "training weights",
    r"made (good )?for a (goal|level)": "fitted for, tuned for",
    r"errors? (in all|over all rows)": "overall error",
    r"learnt|by heart": "memorised, fitted",
    r"chances": "probabilities",
    r"told|got hold of|had from": "reported, read from",
    r"hangs? on|lives? by": "depends on",
    r"slopes|foretold": "gradients, predicted",
    r"drawn towards|half ?way between": "shrunk towards, the geometric mean of",
    r"up to noise|up to so many": "within one standard error",
    r"so (many|large) (a |rows|as)": "(the number)",
    r"a handful": "fewer than N rows",
    r"draws its (own )?rows": "resamples",
    r"price of robustness": "cost in overall error",
    r"steadied|steady": "regularised, averaged over resamples",
    r"rows? in blocks|had in blocks": "out-of-core data, chunks",
    r"of a kind|of its kind": "(name the class or type)",
    r"left alone|made again|run again": "unchanged, recomputed, rerun",
    r"mend(s|ed|ing)?": "fix",
    r"whoever|whatever|wherever|of one's own": "(delete)",
    r"(?<!there )(is|are|was|were) no (class(es)?|numbers?|probabilit\w+|array|word|name)": (
        "is not a ..."
    ),
}


def _texts(path):
    """Public docstrings and messages of a source file, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield 1, ast.get_docstring(tree) or ""
    yield from _docstrings(tree.body)
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Raise) or getattr(called, "id", "") == "warn":
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def _docstrings(body):
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.lineno, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from _docstrings(node.body)


def _files(root, name, ending):
    path = root / name
    if path.is_dir():
        return sorted(path.rglob(f"*{ending}"))
    return [path if path.suffix else path.with_suffix(ending)]


def _to_edit(texts):
    """Lines in which a term stands, with the term and what to write."""
    for line, text in texts:
        for pattern, instead in TERMS.items():
            for match in re.finditer(rf"\b({pattern})\b", text, flags=re.IGNORECASE):
                yield f"line {line}: {match[0]!r}, write: {instead}"


def words_of_part(name):
    return [
        f"{path.relative_to(ROOT)} {found}"
        for path in _files(SOURCE, name, ".py")
        for found in _to_edit(_texts(path))
    ]


def words_of_page(name):
    paths = [each for ending in (".md", ".rst") for each in _files(ROOT, name, ending)]
    return [
        f"{path.relative_to(ROOT)} {found}"
        for path in dict.fromkeys(paths)
        for found in _to_edit(enumerate(path.read_text(encoding="utf-8").split("\n"), 1))
    ]


def without_a_use(name):
    """Public classes with ``fit`` whose docstring does not say when to use them."""
    missing = []
    for path in _files(SOURCE, name, ".py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                text = " ".join((ast.get_docstring(node) or "").split())
                if "fit" in methods and not re.search(r"(^|\s)Use (it|this|one|them)\b", text):
                    missing.append(f"{path.relative_to(ROOT)}: {node.name}")
    return missing


@pytest.mark.parametrize("name", PARTS)
def test_docstrings_and_messages_use_plain_words(name):
    assert words_of_part(name) == []


@pytest.mark.parametrize("name", PARTS)
def test_estimators_say_when_to_use_them(name):
    """One sentence of the docstring begins 'Use it ...' (or 'Use this ...')."""
    assert without_a_use(name) == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_use_plain_words(name):
    assert words_of_page(name) == []


def test_terms_are_found(tmp_path):
    source = tmp_path / "odd.py"
    source.write_text(
        '"""Rows left out."""\ndef f():\n    """A class is never decided."""\n'
        '    raise ValueError(f"{1} are no probabilities")\ndef _g():\n    """Mended."""\n'
    )
    found = list(_to_edit(_texts(source)))
    assert [line.split(":")[0] for line in found] == ["line 1", "line 2", "line 4"]
    assert not list(_to_edit([(1, "There are no classes; class risks of held-out rows.")]))


if __name__ == "__main__":
    for each in sys.argv[1:]:
        is_page = (ROOT / each).exists()
        for line in words_of_page(each) if is_page else words_of_part(each) + without_a_use(each):
            sys.stdout.write(f"{line}\n")
