"""The tuner of decision weights, and the weights to train with: 91 tables, new splits.

python benchmarks/training_study.py prepare FOLDER [--splits 2 3]
python benchmarks/training_study.py run FOLDER OUT [--learners logistic forest boosting] [--jobs 2]
python benchmarks/training_study.py show OUT ... [--against OUT_OF_OTHER_CODE]

Tables are those of ``real_data_tables``, split in half with identical rows on one side, at most
3,000 rows to train on. Splits 0 and 1 were used to decide on the tuner's constants, 2 and 3 only to
confirm them; 4 and 5 decide between training weights. Logistic regression, random forest and
scikit-learn's boosting see all tables; LightGBM and XGBoost every third one in the order of their
names. Every learner is trained plain, with square-root and with balanced weights in five folds and
on all rows; ``average`` is the mean of their probabilities. ``leaves`` is plain training with
leaves that the smallest class can fill four times over, where that is fewer rows than the 20 of the
learner; elsewhere it is plain. Decision weights are tuned on the folds, and the rule's worst
recall, balanced accuracy and macro F1 are those on the other half.

``show`` prints differences in points with standard errors over tables; the learners and splits of a
table are averaged first. ``run`` uses public names alone, so that another version of the code can
be measured by it: ``--plain`` omits the other training weights.
"""

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import tune_weights

GOALS = ("worst_class", "balanced_accuracy", "f1_macro")
POWERS = {"plain": 0.0, "sqrt": 0.5, "balanced": 1.0}
BOOSTERS = ("lightgbm", "xgboost")
# Parameters by which leaves hold at least 20 rows by default, whatever the rows weigh.
LEAVES = {"boosting": "min_samples_leaf", "lightgbm": "min_child_samples"}
DEFAULT_LEAF = 20
# Of the half to test on: rows at most, but this many of a class that has them.
MOST_TESTED, LEAST_TESTED = 8_000, 300


def learner(name: str) -> Any:
    """A classifier that takes ``sample_weight``, by its last step's name in a pipeline."""
    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    if name == "forest":
        return RandomForestClassifier(100, random_state=0)
    if name == "boosting":
        return HistGradientBoostingClassifier(max_iter=60, random_state=0, early_stopping=False)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=60, random_state=0, n_jobs=1, verbose=-1)
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=60, random_state=0, n_jobs=1, verbosity=0)


def prepare(folder: Path, splits: list[int]) -> None:
    """Both halves of every table as a file."""
    import real_data_tables as tables

    folder.mkdir(parents=True, exist_ok=True)
    for name in (*tables.ALL, *tables.NOT_STUDIED):
        for split in splits:
            part = tables.halves(name, split, tables.MOST_ROWS)
            rng, y = np.random.default_rng(split), part.y_test
            kept = np.arange(len(y))
            if len(y) > MOST_TESTED:
                own = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
                share = MOST_TESTED / len(y)
                kept = np.concatenate([o[: max(LEAST_TESTED, round(share * len(o)))] for o in own])
            np.savez_compressed(
                folder / f"{name}.{split}.npz",
                X=part.X.astype(np.float32),
                y=part.y.astype(np.int16),
                X_test=part.X_test[kept].astype(np.float32),
                y_test=y[kept].astype(np.int16),
            )


class Settings(NamedTuple):
    """Class weights to train with, in the order of the classes, and rows of a leaf."""

    weights: tuple[float, ...]
    leaf: int = DEFAULT_LEAF


def settings(training: str, counts: Any) -> Settings:
    """How a learner is trained, by the rows of the classes."""
    if training == "leaves":
        quarter = max(1, int(counts[counts > 0].min()) // 4)
        return Settings((1.0,) * len(counts), min(quarter, DEFAULT_LEAF))
    shares = counts / counts.sum()
    v = np.where(shares > 0, shares, 1.0) ** -POWERS[training]
    return Settings(tuple(v / (shares @ v)))


def probabilities(name: str, X: Any, y: Any, X_test: Any, how: Settings) -> Any:
    """Those of a model trained with class weights, on the scale of the training rows."""
    model, weights = learner(name), np.array(how.weights)
    if how.leaf < DEFAULT_LEAF:
        model.set_params(**{LEAVES[name]: how.leaf})
    given = {}
    if np.any(weights != weights[0]):
        key = "logisticregression__sample_weight" if name == "logistic" else "sample_weight"
        given = {key: weights[y]}
    model.fit(X, y, **given)
    table = np.zeros((len(X_test), len(weights)))
    table[:, model.classes_] = model.predict_proba(X_test) / weights[model.classes_]
    return table / table.sum(axis=1, keepdims=True)


def scores(predicted: Any, y: Any, k: int) -> dict[str, float]:
    """Worst recall, balanced accuracy and macro F1 of the classes that have rows."""
    table = np.bincount(y * k + predicted, minlength=k * k).reshape(k, k)
    some = table.sum(axis=1) > 0
    hits, rows, columns = np.diag(table)[some], table.sum(axis=1)[some], table.sum(axis=0)[some]
    recalls = hits / rows
    values = recalls.min(), recalls.mean(), (2 * hits / (rows + columns)).mean()
    return dict(zip(GOALS, map(float, values), strict=True))


def baselines(new: dict[str, Any], shares: Any, y_test: Any) -> dict[str, Any]:
    """Scores of rules that nothing is tuned for, ``class_weight="balanced"`` among them."""
    found, k = dict[str, Any](), len(shares)
    rules = {"default": new["plain"], "inverse shares": new["plain"] / shares}
    if "balanced" in new:
        # Probabilities on the scale of the weights that the model was trained with.
        rules["class_weight"] = new["balanced"] / shares
    for rule, table in rules.items():
        for goal, value in scores(np.argmax(table, axis=1), y_test, k).items():
            found[f"{rule}|{goal}"] = {"value": value}
    return found


def work(path: Path, name: str, trainings: list[str]) -> dict[str, Any]:
    """Scores of every training and goal on the other half, and of the baselines."""
    warnings.simplefilter("ignore")
    part = np.load(path)
    X, y, X_test, y_test = (part[key] for key in ("X", "y", "X_test", "y_test"))
    y, y_test = y.astype(int), y_test.astype(int)
    k = int(max(y.max(), y_test.max())) + 1
    shares = np.bincount(y, minlength=k) / len(y)
    folds = np.empty(len(y), dtype=int)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    for fold, (_, test) in enumerate(splits):
        folds[test] = fold
    held_out, new, found = {}, {}, dict[str, Any]()
    for training in trainings:
        how = settings(training, np.bincount(y, minlength=k))
        if training == "leaves" and how == settings("plain", np.bincount(y, minlength=k)):
            held_out[training], new[training] = held_out["plain"], new["plain"]
            continue
        held_out[training] = np.zeros((len(y), k))
        for train, test in splits:
            held_out[training][test] = probabilities(name, X[train], y[train], X[test], how)
        new[training] = probabilities(name, X, y, X_test, how)
    if len(trainings) >= len(POWERS):
        for each in (held_out, new):
            each["average"] = np.mean([each[training] for training in POWERS], axis=0)
    for training, table in held_out.items():
        for goal in GOALS:
            began = time.process_time()
            weights = tune_weights(
                y,
                table,
                goal,
                classes=np.arange(k),
                folds=folds,
                rare_classes="keep",
                random_state=0,
            ).weights
            seconds = time.process_time() - began
            predicted = np.argmax(new[training] * np.asarray(weights), axis=1)
            own = scores(predicted, y_test, k)[goal]
            found[f"{training}|{goal}"] = {"value": own, "seconds": seconds}
    found |= baselines(new, shares, y_test)
    table, split = path.stem.rsplit(".", 1)
    return {"table": table, "split": int(split), "learner": name, "found": found}


def run(folder: Path, out: Path, names: list[str], jobs: int, *, plain: bool) -> None:
    """All pieces that are not in the file yet, one line each."""
    files = sorted(folder.glob("*.npz"))
    every = sorted({file.stem.rsplit(".", 1)[0] for file in files})
    third = set(every[::3])
    done = {(r["table"], r["split"], r["learner"]) for r in read(out)} if out.exists() else set()
    pieces = [
        (file, name)
        for name in names
        for file in files
        for table, split in [file.stem.rsplit(".", 1)]
        if (name not in BOOSTERS or table in third) and (table, int(split), name) not in done
    ]
    # Small tables first, so that a run that is stopped holds most of them.
    pieces.sort(key=lambda piece: piece[0].stat().st_size)
    weighted = ["plain"] if plain else list(POWERS)
    every_piece = (
        delayed(work)(file, name, weighted + ["leaves"] * (name in LEAVES and not plain))
        for file, name in pieces
    )
    with out.open("a") as file:
        for found in Parallel(jobs, return_as="generator_unordered", batch_size=1)(every_piece):
            file.write(json.dumps(found) + "\n")
            file.flush()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def difference(pieces: list[tuple[str, float]]) -> str:
    """The mean over tables with its standard error, and the 95% interval, in points."""
    by_table = defaultdict(list)
    for table, value in pieces:
        by_table[table].append(100 * value)
    means = np.array([np.mean(values) for values in by_table.values()])
    error = means.std(ddof=1) / np.sqrt(len(means))
    low, high = means.mean() - 1.96 * error, means.mean() + 1.96 * error
    return f"{means.mean():+6.2f} ({error:.2f})  [{low:+.2f}, {high:+.2f}]  {len(means):3d} tables"


def compared(found: list[dict[str, Any]], one: str, other: str) -> None:
    """One way minus another, pooled and learner by learner."""
    for goal in GOALS:
        pieces = [
            (r["learner"], r["table"], *(r["found"].get(f"{w}|{goal}") for w in (one, other)))
            for r in found
        ]
        pieces = [piece for piece in pieces if None not in piece]
        if not pieces:
            continue
        print(f"{one} - {other}, {goal}")
        for name in ("pooled", *sorted({piece[0] for piece in pieces})):
            own = [(t, a["value"] - b["value"]) for n, t, a, b in pieces if name in ("pooled", n)]
            print(f"  {name:9s} {difference(own)}")


def levels(found: list[dict[str, Any]]) -> None:
    """Means of every rule, learner by learner."""
    print("\nmeans over tables, in percent: worst recall, balanced accuracy, macro F1")
    for rule in ("default", "inverse shares", "class_weight", *POWERS, "average", "leaves"):
        for name in sorted({piece["learner"] for piece in found}):
            own = [piece for piece in found if piece["learner"] == name]
            values = [[p["found"].get(f"{rule}|{g}") for p in own] for g in GOALS]
            if None not in values[0]:
                means = [100 * np.mean([each["value"] for each in line]) for line in values]
                print(f"  {rule:15s} {name:9s} " + " ".join(f"{mean:5.1f}" for mean in means))
    print()


def show(paths: list[Path], against: list[Path]) -> None:
    """All comparisons."""
    found = [piece for path in paths for piece in read(path)]
    for split in sorted({piece["split"] for piece in found}):
        print(f"split {split}: {sum(piece['split'] == split for piece in found)} pieces")
    levels(found)
    for other in ("default", "inverse shares", "class_weight"):
        compared(found, "plain", other)
    for one, other in (
        ("sqrt", "plain"),
        ("balanced", "plain"),
        ("average", "plain"),
        ("average", "sqrt"),
        ("leaves", "plain"),
    ):
        compared(found, one, other)
    if against:
        old = {(r["table"], r["split"], r["learner"]): r["found"] for p in against for r in read(p)}
        joined = []
        for piece in found:
            key = piece["table"], piece["split"], piece["learner"]
            own = {f"this|{g}": piece["found"][f"plain|{g}"] for g in GOALS}
            if key in old:
                own |= {f"other code|{g}": old[key][f"plain|{g}"] for g in GOALS}
                joined.append({**piece, "found": own})
        compared(joined, "this", "other code")
        for name in ("this", "other code"):
            spent = [piece["found"][f"{name}|{g}"]["seconds"] for piece in joined for g in GOALS]
            print(f"{name}: {np.mean(spent):.4f} s of CPU for one tuning on five folds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("prepare", "run", "show"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--splits", nargs="+", type=int, default=[2, 3])
    parser.add_argument("--learners", nargs="+", default=["logistic", "forest", "boosting"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--against", nargs="+", type=Path, default=[])
    given = parser.parse_args()
    if given.what == "prepare":
        prepare(given.paths[0], given.splits)
    elif given.what == "run":
        run(*given.paths, given.learners, given.jobs, plain=given.plain)
    else:
        show(given.paths, given.against)


if __name__ == "__main__":
    sys.exit(main())
