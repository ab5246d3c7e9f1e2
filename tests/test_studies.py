"""Stored studies say when they were run, of which code."""

import sys
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
