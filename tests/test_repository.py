"""Files beside the package: readable, in agreement with it, and with nothing in them made up."""

import re
import tomllib
from pathlib import Path

import pytest

import equipoise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
YAML_FILES = [
    "CITATION.cff",
    "recipe/recipe.yaml",
    *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob(".github/**/*.yml"))),
]
TEXTS = [*YAML_FILES, "paper.md", "paper.bib", "SECURITY.md", "CODE_OF_CONDUCT.md"]
TEXTS += ["CONTRIBUTING.md", "README.md", "docs/policy.md", "pyproject.toml"]
HOSTS = {"semver.org"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(name):
    return pytest.importorskip("yaml").safe_load(read(name))


@pytest.mark.parametrize("name", YAML_FILES)
def test_every_yaml_file_can_be_read(name):
    assert isinstance(parsed(name), dict)


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_points_to_a_machine_or_an_address_that_was_made_up(name):
    text = read(name)
    assert not re.search(r"(?<![\w.])/(work|home|root|tmp|opt|usr)/", text)
    assert set(re.findall(r"https?://([^/\s)\"'>]+)", text)) <= HOSTS
    assert not re.search(r"doi\.org|10\.\d{4,}/", text)


def test_the_version_is_the_same_everywhere():
    version = equipoise.__version__
    assert f"\nversion: {version}\n" in read("CITATION.cff")
    assert f'\n  version: "{version}"\n' in read("recipe/recipe.yaml")
    assert re.search(r"\n## (\S+)", read("CHANGELOG.md"))[1] == version


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = parsed("recipe/recipe.yaml")
    found = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert found == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_every_python_that_is_claimed_is_tested_on_three_systems():
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    matrix = parsed(".github/workflows/ci.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == claimed and claimed[-1] == "3.14"
    assert matrix["os"] == ["ubuntu", "macos", "windows"]


def test_hosted_checks_run_what_is_there():
    jobs = parsed(".github/workflows/ci.yml")["jobs"]
    assert {"lint", "newest", "oldest", "extras", "docs"} <= set(jobs)
    lines = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    targets = set(re.findall(r"^(?:make) ([\w-]+)", "\n".join(lines), re.MULTILINE))
    known = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    assert {"lint", "test-extras"} <= targets <= known | {"docs"}


def test_a_release_is_built_checked_and_then_published_without_a_password():
    jobs = parsed(".github/workflows/release.yml")["jobs"]
    assert jobs["check"]["needs"] == "build" and jobs["publish"]["needs"] == "check"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in read(".github/workflows/release.yml")


def test_empty_places_are_marked_where_the_release_looks_for_them():
    (line,) = re.findall(r"grep -rn \"FILL IN\" (.*)", read(".github/workflows/release.yml"))
    marked = {name for name in TEXTS if re.search(r"FILL IN(?! \(| \.|\"|`)", read(name))}
    marked -= {"CONTRIBUTING.md", ".github/workflows/release.yml"}
    assert all(any(name.startswith(place) for place in line.split()) for name in marked), marked


def test_every_reference_of_the_paper_is_cited_and_every_citation_is_there():
    there = re.findall(r"^@\w+\{(\w+),", read("paper.bib"), re.MULTILINE)
    assert sorted(there) == sorted(set(re.findall(r"@([A-Z]\w+\d{4})", read("paper.md"))))


def test_issue_forms_have_what_a_form_needs():
    for name in ("bug", "idea"):
        form = parsed(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert {"name", "description", "body"} <= set(form)
        kinds = {part["type"] for part in form["body"]}
        assert kinds <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(set(ids)) == len(ids) > 0


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"])
def test_links_between_files_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(name))
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


def test_the_paper_has_the_sections_and_the_length_that_the_journal_asks_for():
    text = read("paper.md").split("---\n", 2)[2]
    assert re.findall(r"^# (.*)$", text, re.MULTILINE) == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "AI usage disclosure",
        "Acknowledgements",
        "References",
    ]
    # Without the list of references, which is long and made from paper.bib.
    assert 750 <= len(text.split()) <= 1750
    others = "MAPIE fairlearn imbalanced-learn TunedThresholdClassifierCV dro empulse"
    assert [name for name in others.split() if name not in text] == []
    disclosure = text.split("# AI usage disclosure")[1].split("# ")[0]
    assert "FILL IN" in disclosure or len(disclosure.split()) > 30
