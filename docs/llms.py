"""``llms.txt``: a listing of the site for tools that read documentation (https://llmstxt.org)."""

from __future__ import annotations

from typing import Any

from docutils.nodes import paragraph

SUMMARY = (
    "Python library for classification with imbalanced data: tunes how the probabilities of any "
    "classifier become classes, for a goal such as the worst class, macro F1, a recall that must "
    "hold or a table of costs; solves class-weighted linear models exactly over sets of weights."
)
SECTIONS = {
    "Start": ["start", "tour"],
    "Guide": "guide/",
    "Reference": "api/",
    "Theory": "theory/",
    "More": ["benchmarks", "studies", "scale", "deep", "architecture", "policy", "changelog"],
}


def listing(env: Any) -> str:
    """The pages of the site by section, each with its title and its first paragraph."""
    lines = ["# equipoise", "", f"> {SUMMARY}", ""]
    for section, named in SECTIONS.items():
        pages = _directly_in(named, env.found_docs) if isinstance(named, str) else named
        lines += [f"## {section}", "", *(_line(env, page) for page in pages), ""]
    return "\n".join(lines)


def _directly_in(folder: str, pages: Any) -> list[str]:
    """Pages of a folder, without those in folders below, such as single names of the reference."""
    return [page for page in sorted(pages) if page.startswith(folder) and page.count("/") == 1]


def _line(env: Any, page: str) -> str:
    first = next(iter(env.get_doctree(page).findall(paragraph)), None)
    about = "" if first is None else ": " + " ".join(first.astext().split())
    return f"- [{env.titles[page].astext()}]({page}.html){about}"
