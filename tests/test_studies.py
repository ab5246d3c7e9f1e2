"""Stored studies say when they were run, of which code; a warning names those of older code."""

import sys
import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import studies_age  # noqa: E402

STUDIES = list(studies_age.studies())


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: f"{study.file}: {study.command[:60]}")
def test_a_study_names_its_commit_and_day(study):
    assert study.commit is not None, "write '# commit HASH, YYYY-MM-DD' below the command"
    assert "2025-01-01" < study.day < "2100"


def test_scripts_of_studies_exist():
    scripts = {study.script for study in STUDIES} - {None}
    assert len(scripts) > 10
    assert all((BENCHMARKS.parent / script).is_file() for script in scripts)


def test_a_note_is_read_and_a_missing_one_is_noticed(tmp_path):
    text = "$ python benchmarks/run.py\n# commit 0123abc, 2026-11-19; alone\n1.0\n$ make bench\n2\n"
    (tmp_path / "some.txt").write_text(text)
    first, second = studies_age.studies(tmp_path)
    assert first[2:] == ("0123abc", "2026-11-19", "benchmarks/run.py")
    assert second[2:] == (None, None, "benchmarks/run.py")
    assert studies_age.changes(second) is None


class OldStudyWarning(UserWarning):
    """Code that a stored study calls has changed since its commit."""


# A warning and not an error: whether numbers change is for those who changed the code to say.
@pytest.mark.filterwarnings("default::test_studies.OldStudyWarning")
def test_studies_of_code_that_has_changed_are_named():
    changed = {study: studies_age.changes(study) for study in STUDIES}
    old = sorted({study.file for study, found in changed.items() if found and any(found)})
    if old:
        warnings.warn(
            "code of these studies has changed since; see `python benchmarks/studies_age.py`: "
            f"{', '.join(old)}",
            OldStudyWarning,
            stacklevel=1,
        )
    assert all(found is None or min(found) >= 0 for found in changed.values())


def test_the_code_of_a_study_is_what_its_script_imports():
    source = studies_age.SOURCE
    called = studies_age.called("benchmarks/cells.py")
    assert {source / "decisions", source / "goals", BENCHMARKS / "cells.py"} <= called
    assert not {source / "torch", source / "report", source / "cli"} & called
    # Scripts import others, and classes at the top have a home below.
    assert BENCHMARKS / "problems.py" in studies_age.called("benchmarks/measure.py")
    assert source / "estimators" in studies_age.called("benchmarks/measure.py")


def test_a_change_in_called_code_is_counted(monkeypatch):
    """Lines of the folders that the script calls, and commits to scripts."""
    study = next(each for each in STUDIES if each.script == "benchmarks/cells.py")
    asked = []

    def git(*command):
        asked.append(command)
        kinds = {"cat-file": "commit", "log": "0123abc\n4567def\n"}
        return kinds.get(command[0], " 2 files changed, 30 insertions(+), 12 deletions(-)")

    monkeypatch.setattr(studies_age, "git", git)
    assert studies_age.changes(study) == (2, 42)
    (log,) = [command for command in asked if command[0] == "log"]
    (diff,) = [command for command in asked if command[0] == "diff"]
    assert [Path(each).name for each in log[4:]] == ["cells.py"]
    assert {"decisions", "goals"} <= {Path(each).name for each in diff[4:]}
