"""What the search of the site finds: words that people type, and excerpts without formulas.

A page names such words in its first lines, ``searched: rare class, recall at least 90%``. A query
that is one of them, or most of one, finds the page before others. ``docs/scorer.js`` says how other
results are ordered.
"""

from __future__ import annotations

from typing import Any

from sphinx.addnodes import index


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
