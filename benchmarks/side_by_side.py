"""Two versions of the library on the same problems, by turns: is anything slower or less exact?

python benchmarks/side_by_side.py OTHER [--only NAME ...] [--repeats N]

OTHER is the folder of another checkout with an environment of its own (its ``.venv``).
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ladder

HERE = Path(__file__).parents[1]
# Keys that are not our measurements: times of other libraries, and ratios to such times.
SKIPPED = ("theirs", "argsort", "speedup", "times_argmax", "per_row", "balanced", "ends_at")
SMALL = ("decisions", "simplex", "cvxpy", "paper", "group-dro", "rows")


def run(checkout: Path, *arguments: str) -> str:
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout).stdout


def robust(checkout: Path, problem: str) -> dict[str, float]:
    """Seconds, evaluations and objective of the robust fits of one problem."""
    found = {}
    for goal in ("worst_class", "lcvar-0.1"):
        script = str(checkout / "benchmarks" / "measure.py")
        line = run(checkout, script, "ours", problem, goal, str(ladder.TARGET))
        measured = json.loads(line.splitlines()[-1])
        for name in ("seconds", "evaluations", "objective"):
            found[f"{goal} {name}"] = measured[name]
    return found


def small(checkout: Path, name: str) -> dict[str, float]:
    """The numbers of one of the other benchmarks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        run(checkout, str(checkout / "benchmarks" / "run.py"), "--only", name, "--out", str(out))
        return dict(numbers(json.loads(out.read_text())[name], ""))


def numbers(found: Any, path: str) -> Iterator[tuple[str, float]]:
    """All numbers of nested results, by their path."""
    if isinstance(found, dict):
        for key, value in found.items():
            if not any(word in key for word in SKIPPED):
                yield from numbers(value, f"{path} {key}")
    elif isinstance(found, list):
        for place, value in enumerate(found):
            yield from numbers(value, f"{path} {place}")
    elif isinstance(found, int | float):
        yield path.strip(), float(found)


def by_turns(other: Path, name: str, repeats: int) -> Iterator[tuple[str, float, float]]:
    """Each number before and after: of times the shortest, of everything else the largest."""
    measure = small if name in SMALL else robust
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    for _ in range(repeats):
        for checkout, found in ((other, before), (HERE, after)):
            for key, value in measure(checkout, name).items():
                found.setdefault(key, []).append(value)
    for key, earlier in before.items():
        if key in after:
            is_time = "seconds" in key or key in ("ours", "maximize", "project")
            place = min if is_time else max
            yield key, place(earlier), place(after[key])


def main() -> None:
    names = [*SMALL, *ladder.CEILINGS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'':18} {'':34} {'before':>12} {'after':>12} {'after/before':>12}")
    for name in arguments.only:
        for key, before, after in by_turns(arguments.other.resolve(), name, arguments.repeats):
            ratio = after / before if before else float("nan")
            print(f"{name:18} {key:34} {before:12.6g} {after:12.6g} {ratio:12.3f}", flush=True)


if __name__ == "__main__":
    main()
