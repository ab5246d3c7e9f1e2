"""The site that ``make docs`` has built, file by file: links lead somewhere, files are its own."""

import json
import os
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[1] / "build/docs"
if not (SITE / "search.html").exists():
    pytest.skip("there is no site: `make docs` builds it", allow_module_level=True)

PAGES = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
# What a browser fetches with a page, in contrast to where a reader may go from it.
FETCHED = {"script": ["src"], "img": ["src", "srcset"], "link": ["href"], "iframe": ["src"]}


class Page(HTMLParser):
    """Links, anchors and fetched files of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        for each in FETCHED.get(tag, []):
            self.fetched += [part.split()[0] for part in (found.get(each) or "").split(",") if part]


@cache
def read(path):
    return Page(path.read_text(encoding="utf-8"))


@cache
def leads_nowhere(page, link):
    """Whether a link on a page, or on any page of a folder, has no target."""
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return False
    target = Path(os.path.normpath(page / unquote(address.path)))
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return True
    if target.suffix != ".html" or not address.fragment:
        return False
    return unquote(address.fragment) not in read(target).anchors


def test_every_link_leads_somewhere():
    assert len(PAGES) > 200
    broken = [
        f"{page.relative_to(SITE)}: {link}"
        for page in PAGES
        for link in [*read(page).links, *read(page).fetched]
        # Pages of a folder share most of their links.
        if leads_nowhere(page if link.startswith("#") else page.parent, back_link(page, link))
    ]
    assert broken == []


def back_link(page, link):
    """A link; without its anchor where a page of source code links back to the reference.

    Sphinx takes one name of the module for all names of a file, and pages there hold one name each.
    """
    is_back = "_modules" in page.parts and "api/generated" in link
    return link.partition("#")[0] if is_back else link


def test_nothing_is_fetched_from_elsewhere():
    elsewhere = [
        f"{page.relative_to(SITE)}: {link}"
        for page in PAGES
        for link in read(page).fetched
        if urlsplit(link).netloc
    ]
    assert elsewhere == []


def test_the_listing_for_tools_names_pages_that_are_there():
    text = (SITE / "llms.txt").read_text(encoding="utf-8")
    pages = re.findall(r"^- \[.+?\]\((\S+\.html)\)", text, re.MULTILINE)
    assert {"start.html", "guide/should-i-weight.html", "api/estimators.html"} <= set(pages)
    assert [page for page in pages if not (SITE / page).exists()] == []


def test_every_example_can_be_downloaded_as_a_notebook():
    pages = list((SITE / "auto_examples").glob("plot_*.html"))
    examples = SITE.parents[1] / "examples"
    assert {page.stem for page in pages} == {path.stem for path in examples.glob("plot_*.py")}
    for page in pages:
        (link,) = {link for link in read(page).links if link.endswith(".ipynb")}
        notebook = json.loads((page.parent / link).read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        code = "\n".join("".join(cell["source"]) for cell in cells)
        compile(code, page.stem, "exec")
        assert "from equipoise" in code or "import equipoise" in code


@pytest.mark.parametrize("folder", ["guide", "auto_examples", "api/generated"])
def test_pages_describe_themselves_to_search_engines(folder):
    described = re.compile(r'<meta name="description" content="([^"]+)"')
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (SITE / folder).glob("*.html")}
    found = {name: described.findall(text) for name, text in pages.items()}
    assert len(found) > 10 and max(map(len, found.values())) == 1
    # A page whose first paragraph has a formula has no description.
    texts = [unescape(each[0]) for each in found.values() if each]
    assert len(texts) > 0.8 * len(found)
    assert not [text for text in texts if "\\(" in text or not 15 < len(text) < 170]
    assert not [text for text in texts if re.match("Go to the end|In the guide", text)]
