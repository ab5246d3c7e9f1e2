"""How the site is built: ``make docs`` runs Sphinx with this file, without any network."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
# The build writes its files here, and Sphinx needs the folder at once.
(HERE / "generated/extra").mkdir(parents=True, exist_ok=True)

from computed import compute  # noqa: E402
from docstrings import complete_examples, guides, homes, written_elsewhere  # noqa: E402
from llms import listing  # noqa: E402
from searching import add_description, add_script, add_words, pages_with_words  # noqa: E402
from versions import LIST, write  # noqa: E402

import equipoise  # noqa: E402

project = "equipoise"
author = "The equipoise developers"
copyright = author  # noqa: A001  Sphinx's name for it
version = release = equipoise.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["generated", "api/examples", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]
language = "en"

# A name in a role must exist; names of other packages are not looked up, which needs a network.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(dask|matplotlib|numpy|pandas|scipy|sklearn|torch)\..*")]

# Signatures are for reading: types stand beside the parameters.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_context = {"guides": guides(HERE / "guide")}
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Copied examples have no prompts.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Formulas are drawn by files of the site itself.
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "gallery.ReadingOrder",
    "thumbnail_size": (480, 320),
    "filename_pattern": os.environ.get("EXAMPLES") or "plot_",
    "backreferences_dir": "api/examples",
    "doc_module": ("equipoise",),
    "reference_url": {"equipoise": None},
    "image_srcset": ["2x"],
    "parallel": 2,
    "min_reported_time": 60,
    "remove_config_comments": True,
    "show_signature": False,
    # Its page would fetch scripts from elsewhere.
    "write_computation_times": False,
    "download_all_examples": False,
    # Frames are shown, and return values of Matplotlib are not.
    "capture_repr": ("_repr_html_",),
}

html_theme = "pydata_sphinx_theme"
html_title = "equipoise"
html_static_path = ["_static"]
html_extra_path = ["generated/extra"]
html_favicon = html_logo = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "equipoise"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": LIST, "version_match": version},
    # The build writes the list, and needs no network to check it.
    "check_switcher": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Code of examples is wide: their pages have no list of siblings.
html_sidebars = {"index": [], "start": [], "auto_examples/plot_*": []}


HOMES = homes()


def show_imports(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: Any) -> None:
    """Show examples with the imports that they need."""
    complete_examples(HOMES, lines)


def find_at_home(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a name without its subpackage, or with the subpackage of a top-level name."""
    if node.get("refdomain") != "py":
        return None
    parts = node["reftarget"].split(".")
    place = next((at for at, part in enumerate(parts) if part in HOMES), None)
    if place is None:
        return None
    target = ".".join([HOMES[parts[place]], *parts[place:]])
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, content
    )


def sweep(app: Any) -> None:
    """Remove pages of examples and names that no longer exist."""
    examples = {path.stem for path in (HERE.parent / "examples").glob("*.py")}
    for page in Path(app.srcdir, "auto_examples").glob("plot_*"):
        if page.name.split(".")[0] not in examples:
            page.unlink()
    names = {f"{home}.{name}" for name, home in HOMES.items()}
    for page in Path(app.srcdir, "api/generated").glob("*.rst"):
        if page.stem not in names:
            page.unlink()


def finish(app: Any, error: Exception | None) -> None:
    """Remove pages of earlier builds; add ``llms.txt``, versions and the files of MathJax."""
    if error is None and app.builder.format == "html":
        Path(app.outdir, "llms.txt").write_text(listing(app.env), encoding="utf-8")
        write(HERE.parent / "CHANGELOG.md", Path(app.outdir, "_static/switcher.json"))
        for folder in ("auto_examples", "api/generated"):
            for page in Path(app.outdir, folder).glob("*.html"):
                if f"{folder}/{page.stem}" not in app.env.found_docs:
                    page.unlink()
        source = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
        target = Path(app.outdir, "_static/mathjax")
        fonts = "output/chtml/fonts/woff-v2"
        shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
        shutil.copy(source / "tex-chtml.js", target)


def setup(app: Any) -> None:
    """Connect all of this."""
    # Before autosummary and the gallery look at what is there.
    app.connect("builder-inited", sweep, priority=100)
    app.connect("builder-inited", compute)
    app.connect("autodoc-skip-member", written_elsewhere)
    # Before numpydoc makes sections of the lines.
    app.connect("autodoc-process-docstring", show_imports, priority=100)
    app.connect("missing-reference", find_at_home)
    # After the metadata of the page are collected.
    app.connect("doctree-read", add_words, priority=900)
    app.connect("env-updated", pages_with_words)
    app.connect("html-page-context", add_script)
    app.connect("html-page-context", add_description)
    app.connect("build-finished", finish)
