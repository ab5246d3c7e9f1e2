"""When the stored studies were run, and what has changed in their code since.

python benchmarks/studies_age.py

Every output in ``docs/studies`` begins with ``$ command`` and a note that names a commit and a day.
For each, this prints how many commits since then changed the script of the command or the scripts
that it imports, and how many lines changed in the parts of the package that they import, directly
or through others. Rerun a study whose numbers may have changed. ``tests/test_studies.py`` warns.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import equipoise

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/equipoise"
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


@cache
def imported(path: Path) -> frozenset[Path]:
    """Scripts beside a file, and files or folders of the package, that the file imports."""
    named = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                named |= {each.name for each in node.names}
            case ast.ImportFrom(module="equipoise"):
                homes = equipoise._HOME
                named |= {f"equipoise.{homes.get(each.name, each.name)}" for each in node.names}
            case ast.ImportFrom(module=str(module)):
                named.add(module)
    found = set()
    for module in named:
        first, _, rest = module.partition(".")
        ours = SOURCE / rest.partition(".")[0] if first == "equipoise" and rest else None
        place = ours or path.parent / first
        found |= {each for each in (place, place.with_suffix(".py")) if each.exists()}
    return frozenset(found - {SOURCE, path.parent})


@cache
def called(script: str) -> frozenset[Path]:
    """A script and all that it imports, directly or through others."""
    found, waiting = set(), {ROOT / script}
    while waiting:
        place = waiting.pop()
        found.add(place)
        for file in [place] if place.is_file() else place.rglob("*.py"):
            waiting |= imported(file) - found
    return frozenset(found)


def changes(study: Study) -> tuple[int, int] | None:
    """Commits to the scripts since the study, and changed lines of the package that they call."""
    since = f"{study.commit}..HEAD"
    if study.commit is None or study.script is None or not git("cat-file", "-t", study.commit):
        return None
    ours = {place for place in called(study.script) if place.is_relative_to(SOURCE)}
    scripts = called(study.script) - ours
    commits = git("log", "--format=%h", since, "--", *map(str, scripts)).split()
    shortstat = git("diff", "--shortstat", since, "--", *map(str, ours)) if ours else ""
    return len(commits), sum(map(int, re.findall(r"(\d+) (?:insert|delet)", shortstat)))


def main() -> None:
    print(f"{'study':24} {'run on':10}  {'commit':8} {'script':>7} {'package':>8}  command")
    for study in studies():
        script, package = changes(study) or ("?", "?")
        run = f"{study.day or '?':10}  {(study.commit or '?')[:7]:8}"
        print(f"{study.file:24} {run} {script:>7} {package:>8}  {study.command[:60]}")


if __name__ == "__main__":
    main()
