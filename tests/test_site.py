"""The site's reference holds every public name, once, and its pages are all in a listing."""

import doctest
import inspect
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

import equipoise
from equipoise import exceptions, shift

REFERENCE = Path(__file__).parents[1] / "docs/api"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.rst")}


def _listed():
    """All names of the reference, in full: of its tables, its data and its errors."""
    for text in PAGES.values():
        for table in re.findall(r":nosignatures:\n\n((?:   \S+\n)+)", text):
            yield from (f"equipoise.{name.lstrip('~')}" for name in table.split())
        for room, name in re.findall(
            r"^\.\. (?:autoexception|py:data):: (\S+\.)?(\S+)$", text, re.MULTILINE
        ):
            yield f"equipoise.{room or 'exceptions.'}{name}"


LISTED = Counter(_listed())


def _offered(room):
    """The names that a room offers, as the reference has them: at the top, if they are there."""
    module = pytest.importorskip(f"equipoise.{room}", exc_type=ImportError)
    for name in module.__all__:
        at_top = name in equipoise._HOME
        yield f"equipoise.{name}" if at_top else f"equipoise.{room}.{name}"


@pytest.mark.parametrize("room", equipoise.PUBLIC_MODULES)
def test_every_public_name_is_in_the_reference(room):
    # Some names are offered by two rooms, and listed as one of these.
    listed_as = {name.rpartition(".")[2] for name in LISTED}
    missing = [name for name in _offered(room) if name.rpartition(".")[2] not in listed_as]
    assert not missing


def test_errors_and_warnings_are_in_the_reference():
    own = [
        f"{value.__module__}.{name}"
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and value.__module__ == "equipoise.exceptions"
    ]
    assert len(own) > 5 and not set(own) - set(LISTED)


def test_names_at_the_top_are_listed_there():
    assert {f"equipoise.{name}" for name in equipoise._HOME} <= set(LISTED)


def test_no_name_is_listed_twice():
    assert [name for name, times in LISTED.items() if times > 1] == []


@pytest.mark.parametrize("room", sorted({name.rpartition(".")[0] for name in LISTED}))
def test_what_the_reference_lists_is_public(room):
    module = pytest.importorskip(room, exc_type=ImportError)
    public = getattr(module, "__all__", None) or dir(module)
    listed = [name.rpartition(".")[2] for name in LISTED if name.rpartition(".")[0] == room]
    assert listed and not set(listed) - set(public)


def test_every_page_of_the_reference_is_in_its_listing():
    text = (REFERENCE / "index.md").read_text(encoding="utf-8")
    (listing,) = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    pages = [line for line in listing.splitlines() if line and line[0] != ":"]
    assert sorted(pages) == sorted(PAGES)
    assert set(re.findall(r"\((\w+)\.rst\)", text)) == set(PAGES)


def _examples(name):
    """What a public name and the methods of a public class say of themselves, where it runs."""
    room, _, name = name.rpartition(".")
    value = getattr(pytest.importorskip(room, exc_type=ImportError), name)
    members = vars(value).values() if inspect.isclass(value) else []
    for each in (value, *members):
        text = inspect.getdoc(getattr(each, "__func__", each)) or ""
        if ">>> " in text:
            yield text


def test_examples_take_no_names_that_a_reader_cannot_import():
    for package in ("torch", "onnxruntime", "skl2onnx", "matplotlib"):
        pytest.importorskip(package)
    shown = runpy.run_path(str(REFERENCE.parent / "docstrings.py"))
    known = shown["homes"]().keys() | shown["ELSEWHERE"].keys()
    parse, found = doctest.DocTestParser().get_examples, 0
    for name in LISTED:
        for text in _examples(name):
            found += 1
            source = "".join(part.source for part in parse(text))
            assert not shown["missing_names"](source) - known, name
    assert found > 100


def test_an_example_is_shown_with_the_imports_that_it_takes():
    shown = runpy.run_path(str(REFERENCE.parent / "docstrings.py"))
    lines = ["Ten.", "", "  >>> ten = np.full(1, f(5))", "  >>> [i for i in ten]", "  [10]"]
    shown["complete_examples"]({"f": "equipoise.sets", "ten": "equipoise"}, lines)
    imports = ["  >>> import numpy as np", "  >>> from equipoise.sets import f"]
    assert lines[2:4] == imports and len(lines) == 7


def test_every_study_is_shown():
    text = (REFERENCE.parent / "studies.md").read_text(encoding="utf-8")
    studies = {study.name for study in (REFERENCE.parent / "studies").glob("*.txt")}
    assert studies and set(re.findall(r"\} studies/(\S+)", text)) == studies


def test_the_newest_version_is_at_the_root_of_the_site_and_older_ones_in_folders(monkeypatch):
    monkeypatch.setenv("SITE", "https://example.org/equipoise/")
    listed = runpy.run_path(str(REFERENCE.parent / "versions.py"))
    changelog = "# Changelog\n\n## 0.2.0 (unreleased)\n\n## What\n\n## 0.1.0 (2026-12-01)\n"
    newest, older = listed["versions"](changelog)
    assert (newest["version"], newest["url"]) == ("0.2.0", "https://example.org/equipoise/")
    assert (older["version"], older["url"]) == ("0.1.0", "https://example.org/equipoise/0.1.0/")
    assert newest["preferred"] and not older["preferred"]
    assert listed["LIST"] == "https://example.org/equipoise/_static/switcher.json"


@pytest.mark.parametrize("place", ["estimators.rst", "shift.rst"])
def test_every_estimator_has_a_page_of_the_guide(place):
    guides = runpy.run_path(str(REFERENCE.parent / "docstrings.py"))["guides"]
    named = guides(REFERENCE.parent / "guide")
    assert named["PredictionSets"] == ["prediction-sets"]
    tables = re.findall(r":nosignatures:\n\n((?:   \S+\n)+)", PAGES[Path(place).stem])
    names = [line.rpartition(".")[2] for table in tables for line in table.split()]
    fitted = [
        name
        for name in names
        if hasattr(getattr(equipoise, name, None) or getattr(shift, name, None), "fit")
    ]
    assert fitted and not set(fitted) - set(named)
