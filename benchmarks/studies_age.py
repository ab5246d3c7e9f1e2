"""When the stored studies were run, and what has changed in their code since.

python benchmarks/studies_age.py

Every output in ``docs/studies`` begins with ``$ command`` and a note that names a commit and a day.
For each, this prints how many commits since then changed the script of the command, and how many
lines of the package itself; a study whose script or package changed much should be run again.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NOTE = re.compile(r"commit (?P<commit>[0-9a-f]{7,40}), (?P<day>\d{4}-\d\d-\d\d)")
SCRIPT = re.compile(r"\b(?:benchmarks|examples|tests)/\w+\.py")
TARGETS = {
    "make bench": "benchmarks/run.py",
    "make bench-quick": "benchmarks/quick.py",
    "make bench-scale": "benchmarks/scale.py",
}


class Study(NamedTuple):
    """A command, the commit and the day of its output, and the script that it runs."""

    file: str
    command: str
    commit: str | None
    day: str | None
    script: str | None


def studies(folder: Path = ROOT / "docs/studies") -> Iterator[Study]:
    """The outputs of each file; those without a note have no commit."""
    for path in sorted(folder.glob("*.txt")):
        blocks = re.split(r"^\$ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for block in blocks:
            command, *lines = block.splitlines()
            notes = " ".join(line for line in lines if line.startswith("#"))
            note, script = NOTE.search(notes), SCRIPT.search(command)
            of_target = TARGETS.get(command.strip())
            yield Study(
                path.name,
                command,
                note["commit"] if note else None,
                note["day"] if note else None,
                script[0] if script else of_target,
            )


def git(*command: str) -> str:
    """What git prints; nothing where there is no such commit."""
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def changes(study: Study) -> tuple[int, int] | None:
    """Commits to the script since the study, and changed lines of the package."""
    since = f"{study.commit}..HEAD"
    if study.commit is None or not git("cat-file", "-t", study.commit):
        return None
    commits = git("log", "--format=%h", since, "--", study.script).split() if study.script else []
    shortstat = git("diff", "--shortstat", since, "--", "src")
    return len(commits), sum(map(int, re.findall(r"(\d+) (?:insert|delet)", shortstat)))


def main() -> None:
    print(f"{'study':24} {'run on':10}  {'commit':8} {'script':>7} {'package':>8}  command")
    for study in studies():
        script, package = changes(study) or ("?", "?")
        run = f"{study.day or '?':10}  {(study.commit or '?')[:7]:8}"
        print(f"{study.file:24} {run} {script:>7} {package:>8}  {study.command[:60]}")


if __name__ == "__main__":
    main()
