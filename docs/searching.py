"""What searches find: words that people type, excerpts without formulas, descriptions of pages.

A page names such words in its first lines, ``searched: rare class, recall at least 90%``. A query
that is one of them, or most of one, finds the page before others. ``docs/scorer.js`` says how other
results are ordered.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils.nodes import math, paragraph, section
from sphinx.addnodes import desc_content, index

# LETTERS: of a description, after which search engines cut.
LETTERS = 160


def add_words(app: Any, doctree: Any) -> None:
    """Add the words of a page to the index of the search."""
    named = app.env.metadata[app.env.docname].get("searched", "")
    words = [word.strip() for word in named.split(",") if word.strip()]
    if words:
        doctree += index(entries=[("single", word, "", "main", None) for word in words])


def pages_with_words(_app: Any, env: Any) -> list[str]:
    """Pages to write in every build: Sphinx does not keep such words of pages that it skips."""
    return [page for page, fields in env.metadata.items() if "searched" in fields]


def add_script(app: Any, page: str, _template: str, _context: Any, _doctree: Any) -> None:
    """Load on the page of the search what removes formulas and code from its excerpts."""
    if page == "search":
        app.add_js_file("excerpts.js", loading_method="defer")


def add_description(_app: Any, _page: str, _template: str, context: Any, doctree: Any) -> None:
    """Describe a page to search engines by its first paragraph, without notes and links."""
    paragraphs = (
        each
        for each in (doctree.findall(paragraph) if doctree else ())
        if isinstance(each.parent, section | desc_content) and not each["classes"]
    )
    first = next(paragraphs, None)
    if first is not None and not list(first.findall(math)):
        text = " ".join(first.astext().split())
        # Whole words.
        text = text if len(text) <= LETTERS else text[:LETTERS].rpartition(" ")[0] + " ..."
        context["metatags"] += f'<meta name="description" content="{escape(text)}" />'
