"""Every benchmark of the project in one run: prints tables, writes JSON.

python benchmarks/run.py [--only NAME ...] [--solvers NAME ...] [--out FILE]
"""

import argparse
import json
import os
import platform
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import baselines
import decisions
import ladder
import scaling
from equipoise.exceptions import EquipoiseWarning
from equipoise.threads import n_threads

OUT = Path(__file__).parent / "results" / "bench.json"
ROWS = "Rows of Covertype (worst class, certified relative gap 1e-6)"


def show_ladder(names: list[str], solvers: list[str]) -> list[dict[str, Any]]:
    print("Robust fits (ours, certified gap 1e-6) against the fastest plain fit of scikit-learn")
    print("Power laws: gap 1e-3. Below each line, plain fits of other packages")
    rows = []
    for name in names:
        rows.append(ladder.compare(name, solvers))
        print(*[ladder.line(rows[-1]), *ladder.lines_of_others(rows[-1])], sep="\n", flush=True)
        if name == "covertype-all":
            mine = rows[-1]["worst_class"]
            print(
                f"{'':18} peak memory {mine['peak_mib']:.0f} MiB, of which the fit added "
                f"{mine['added_mib']:.0f} MiB to a matrix of {mine['matrix_mib']:.0f} MiB: "
                f"{1 + mine['added_mib'] / mine['matrix_mib']:.2f} times the matrix"
            )
    return rows


def show_baseline(name: str, found: dict[str, Any]) -> dict[str, Any]:
    ends = f", which ends at {found['ends_at']:.4f}" if "ends_at" in found else ""
    print(
        f"{name}: {found['theirs']:.2f} s{ends} (optimum {found['optimum']:.4f}); "
        f"ours {found['ours'] * 1000:.1f} ms: {found['speedup']:.0f} times faster",
        flush=True,
    )
    return found


def show_rows() -> list[dict[str, Any]]:
    print(ROWS)
    found = scaling.rows()
    for row in found:
        print(
            f"{row['rows']:8d} rows: {row['seconds']:6.2f} s, "
            f"{row['microseconds_per_row']:5.1f} us a row, {row['evaluations']} evaluations",
            flush=True,
        )
    return found


def show_simplex() -> dict[str, float]:
    found = scaling.capped_simplex()
    print(
        f"Capped simplex at 1,000,000 classes: maximize {found['maximize']:.1f} and project "
        f"{found['project']:.1f} times np.argsort ({found['argsort_seconds'] * 1000:.0f} ms)"
    )
    return found


def show_defaults() -> list[str]:
    print("scikit-learn's LogisticRegression() at its defaults, and ours (certified gap 1e-6)")
    found = []
    for problem in ladder.CEILINGS:
        found.append(ladder.against_defaults(problem))
        print(found[-1], flush=True)
    return found


def show_decisions() -> dict[str, Any]:
    many, two = decisions.many_classes(), decisions.two_classes()
    print(
        f"Decision weights, 1,000,000 rows, 10 classes: optimal-classification-cutoffs takes "
        f"{many['theirs_seconds']:.1f} s, one argmax {many['argmax_seconds'] * 1000:.0f} ms"
    )
    for name, row in many["goals"].items():
        print(
            f"  {name:15} {row['seconds']:.2f} s ({row['speedup']:.0f} times faster, "
            f"{row['times_argmax']:.0f} times one argmax): ours {row['value']:.4f}, theirs "
            f"{row['theirs']:.4f}, balanced weights {row['balanced']:.4f}"
        )
    print(
        f"Exact F1 threshold of two classes: {two['seconds'] * 1000:.0f} ms, scikit-learn's "
        f"precision_recall_curve and argmax {two['theirs_seconds'] * 1000:.0f} ms; F1 "
        f"{two['value']:.6f} and {two['theirs']:.6f}",
        flush=True,
    )
    folds = decisions.on_folds()
    print("Tuning on five folds, seconds of one core")
    for row in folds:
        value = row["metric"] if row["risk"] is None else row["risk"]
        limit = "" if row["ceiling"] is None else f" (ceiling {row['ceiling']} s)"
        over = "" if not limit or row["seconds"] <= row["ceiling"] else ", OVER ITS CEILING"
        print(
            f"  {row['rows']:9,} rows, {row['classes']:5,} classes, {row['goal']:20} "
            f"{row['seconds']:.3f} s{limit}{over}, value {value:.4f}",
            flush=True,
        )
    exponent = decisions.growth(folds)
    print(f"Growth by classes, 50 to 1,000, per row: k^{exponent:.2f}")
    return {"many_classes": many, "two_classes": two, "on_folds": folds}


BENCHMARKS = {
    "decisions": show_decisions,
    "simplex": show_simplex,
    "cvxpy": lambda: show_baseline("CVXPY/CLARABEL, 2,000 x 20 x 5", baselines.against_cvxpy()),
    "paper": lambda: show_baseline(
        "The paper's training, 2,000 epochs, Covertype's first rows, LabelCVaR(0.05)",
        baselines.against_training(baselines.paper_training),
    ),
    "group-dro": lambda: show_baseline(
        "Group DRO (exponentiated gradient), 2,000 epochs, the same rows",
        baselines.against_training(baselines.group_dro),
    ),
    "rows": show_rows,
    "defaults": show_defaults,
}


def main() -> None:
    names = [*BENCHMARKS, *ladder.CEILINGS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    solvers = list(ladder.FIRST_RUNGS)
    parser.add_argument("--solvers", nargs="+", choices=solvers, default=solvers)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EquipoiseWarning)
    versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__}
    # A limit in the environment, such as OMP_NUM_THREADS=1, would show here first.
    machine = {"cores": os.cpu_count(), "threads": n_threads()}
    results: dict[str, Any] = {"python": platform.python_version(), **versions, **machine}
    print(", ".join(f"{name} {value}" for name, value in results.items()), flush=True)
    for name, benchmark in BENCHMARKS.items():
        if name in arguments.only:
            results[name] = benchmark()
    problems = [name for name in ladder.CEILINGS if name in arguments.only]
    results["ladder"] = show_ladder(problems, arguments.solvers) if problems else []
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2))
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
