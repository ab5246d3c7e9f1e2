"""Two million cells of 300 types: random and capped training samples, and tuned decisions.

python benchmarks/cells.py [--rows 2_000_000] [--types 300]

The generated data have the shape of single-cell annotation: 50 components a cell, cell types in 30
lineages, sizes of types by a power law (the exponent of `SHARE`), and twelve donors, each with a
shift of all its cells. Donors 0 to 5 train, 6 to 8 tune, 9 to 11 test. How far types lie apart was
set in small runs (100,000 and 200,000 cells): most cells are easy, most small types are not.
Decided before the first run at full size:

* two training samples with the same number of cells: at random, and at most `CAP` cells of each
  type; scikit-learn's logistic regression at its penalty and tolerance, 200 iterations at most;
* decisions: the default ones; for the capped sample, those after the probabilities are put back on
  the scale of the population (what ``rescale_proba`` does); and weights tuned on the 20 largest
  probabilities of each cell, with the tuning donors as folds;
* printed are the mean recalls of the thirds of the types by size, macro F1 and the overall error
  on the test donors, and CPU seconds.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from equipoise import tune_weights

COMPONENTS, LINEAGES, CAP, HELD = 50, 30, 300, 20
# The first donors to tune on and to test on, and their number.
TUNE, TEST, DONORS = 6, 9, 12
SHARE = 1.5
# Standard deviations: of lineages, of types within a lineage, of donors; that of cells is 1.
SPREAD = 3.0, 0.3, 0.2
GOALS = {"macro F1": "f1_macro", "balanced accuracy": "balanced_accuracy"}
CHUNK = 20_000


def cells(n: int, k: int) -> tuple[Any, Any, Any]:
    """Components, types and donors of n cells; every donor has its own shift."""
    rng = np.random.default_rng(0)
    share = np.arange(1, k + 1) ** -SHARE
    y = rng.choice(k, n, p=share / share.sum())
    donor = rng.integers(DONORS, size=n)
    lineage = rng.integers(LINEAGES, size=k)
    of_lineage, of_type, of_donor = (
        spread * rng.normal(size=(rows, COMPONENTS))
        for spread, rows in zip(SPREAD, (LINEAGES, k, DONORS), strict=True)
    )
    centres = (of_lineage[lineage] + of_type).astype(np.float32)
    X = rng.standard_normal((n, COMPONENTS), dtype=np.float32)
    X += centres[y]
    X += of_donor.astype(np.float32)[donor]
    return X, y, donor


def capped(y: Any, rows: Any, rng: Any) -> Any:
    """Rows in random order, of every type at most the cap."""
    rows = rng.permutation(rows)
    order = np.argsort(y[rows], kind="stable")
    start = np.searchsorted(y[rows][order], y[rows][order])
    return rows[order[np.arange(len(rows)) - start < CAP]]


def most_probable(model: Any, X: Any, rows: Any, factors: Any) -> csr_array:
    """The largest probabilities of each row, each class times its factor."""
    k, values, columns = len(factors), [], []
    for start in range(0, len(rows), CHUNK):
        table = np.zeros((len(rows[start : start + CHUNK]), k))
        table[:, model.classes_] = model.predict_proba(X[rows[start : start + CHUNK]])
        table *= factors
        table /= table.sum(axis=1, keepdims=True)
        top = np.argpartition(-table, HELD - 1, axis=1)[:, :HELD]
        values.append(np.take_along_axis(table, top, axis=1).ravel())
        columns.append(top.ravel())
    ends = np.arange(0, HELD * len(rows) + 1, HELD)
    return csr_array((np.concatenate(values), np.concatenate(columns), ends), (len(rows), k))


def line(name: str, y: Any, predicted: Any, k: int, seconds: float) -> str:
    right, rows = predicted == y, np.bincount(y, minlength=k)
    recalls = np.bincount(y, right, minlength=k) / np.maximum(rows, 1)
    means = [recalls[each][rows[each] > 0].mean() for each in np.array_split(np.arange(k), 3)]
    f1 = f1_score(y, predicted, average="macro", labels=np.flatnonzero(rows), zero_division=0)
    shares = "".join(f"{each:9.1%}" for each in (*means, f1, 1 - right.mean()))
    return f"  {name:38}{shares}{seconds:9.1f} s"


def decide(name: str, model: Any, data: Any, parts: Any, factors: Any) -> None:
    """Print what default and tuned decisions do with probabilities times factors."""
    (X, y, donor), (tune, test), k = data, parts, len(factors)
    began = time.process_time()
    testing = most_probable(model, X, test, factors)
    spent = time.process_time() - began
    predicted = testing.argmax(axis=1)
    print(line(name, y[test], predicted, k, spent), flush=True)
    tuning = most_probable(model, X, tune, factors)
    options = {"classes": np.arange(k), "rare_classes": "keep", "folds": donor[tune] - TUNE}
    for goal, word in GOALS.items():
        began = time.process_time()
        tuned = tune_weights(y[tune], tuning, word, **options)
        spent = time.process_time() - began
        predicted = tuned.decide(testing)
        print(line(f"{name}, tuned for {goal}", y[test], predicted, k, spent), flush=True)


def study(n: int, k: int) -> None:
    data = X, y, donor = cells(n, k)
    train, tune = np.flatnonzero(donor < TUNE), np.flatnonzero((donor >= TUNE) & (donor < TEST))
    test = np.flatnonzero(donor >= TEST)
    sizes = np.bincount(y[train], minlength=k)
    prior = np.maximum(sizes, 0.5) / len(train)
    few = capped(y, train, np.random.default_rng(1))
    samples = {"random": np.random.default_rng(2).permutation(train)[: len(few)], "capped": few}
    print(f"{len(train):,} cells to train on, {len(tune):,} to tune on, {len(test):,} to test on")
    print(f"{k} types of {sizes.min():,} to {sizes.max():,} training cells")
    print(f"  {'':38}     head   middle     tail macro F1    error      CPU", flush=True)
    for name, rows in samples.items():
        began = time.process_time()
        model = LogisticRegression(max_iter=200).fit(X[rows], y[rows])
        spent = time.process_time() - began
        counts = np.maximum(np.bincount(y[rows], minlength=k), 0.5)
        print(f"{name} sample: {len(rows):,} cells, trained in {spent:.0f} s", flush=True)
        if name == "capped":
            predicted = most_probable(model, X, test, np.ones(k)).argmax(axis=1)
            print(line("as trained", y[test], predicted, k, 0.0), flush=True)
            decide("put back", model, data, (tune, test), prior / counts)
        else:
            decide("as trained", model, data, (tune, test), np.ones(k))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--types", type=int, default=300)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    study(given.rows, given.types)


if __name__ == "__main__":
    main()
