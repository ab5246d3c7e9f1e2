"""Real text in long-tailed classes: what plain, balanced, robust and tuned decisions do.

python benchmarks/long_tail_text.py [sections | maintainers | times ...]

Debian's package index, as the machine has it (`equipoise.datasets.load_debian_packages`): one-line
descriptions, in sections of the archive (58 classes of 15 to 6,703 rows) or by maintainer (945
classes of five rows or more). Words and pairs of words that occur twice, TF-IDF. Half of the rows
of each class train the models, a quarter tunes decisions, a quarter tests. Decided before the
first run:

* models: scikit-learn's logistic regression (C = 10, its tolerance, at most 1,000 iterations for
  sections and 100 for maintainers), plain and with ``class_weight="balanced"``;
  ``RobustLogisticRegression(LabelCVaR(0.2))`` at the same penalty;
* decisions of the plain model: as they are, divided by class shares (no tuning), and tuned by
  ``tune_weights`` for macro F1, balanced accuracy and LabelCVaR(0.2), on the 50 most probable
  classes of each row; classes of fewer than 3 tuning rows keep weight 1;
* classes in thirds by their rows: the head, the middle and the tail. Printed are the mean recall of
  each third, macro F1 and the overall error on the test rows, and CPU seconds.

``times`` are CPU seconds of ``tune_weights`` and the memory that it adds, with folds, evaluation
and summary, on generated sparse rows of classes whose sizes follow a power law.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from equipoise import LabelCVaR, RobustLogisticRegression, tune_weights
from equipoise.datasets import load_debian_packages
from measure import memory_mib, reset_peak

C, HELD, ALPHA = 10.0, 50, 0.2
ITERATIONS = {"section": 1_000, "maintainer": 100}
SIZES = (100_000, 1_000, 20), (1_000_000, 100_000, 10)
GOALS = {"macro F1": "f1_macro", "balanced accuracy": "balanced_accuracy",
         f"LabelCVaR({ALPHA})": LabelCVaR(ALPHA)}  # fmt: skip


def parts(label: str) -> list[Any]:
    """TF-IDF rows and class numbers to train on, to tune on and to test on."""
    texts, names = load_debian_packages(label=label, min_packages=5, return_X_y=True)
    y = np.unique(names, return_inverse=True)[1]
    train, rest, y_train, y_rest = train_test_split(
        texts, y, test_size=0.5, stratify=y, random_state=0
    )
    tune, test, y_tune, y_test = train_test_split(rest, y_rest, test_size=0.5, random_state=0)
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    X_train = words.fit_transform(train)
    return [X_train, y_train, words.transform(tune), y_tune, words.transform(test), y_test]


def most_probable(model: Any, X: Any, step: int = 2_000) -> csr_array:
    """The largest probabilities of each row, computed some rows at a time."""
    k, values, columns = len(model.classes_), [], []
    m = min(HELD, k)
    for start in range(0, X.shape[0], step):
        table = model.predict_proba(X[start : start + step])
        top = np.argpartition(-table, m - 1, axis=1)[:, :m]
        values.append(np.take_along_axis(table, top, axis=1).ravel())
        columns.append(top.ravel())
    ends = np.arange(0, m * X.shape[0] + 1, m)
    return csr_array((np.concatenate(values), np.concatenate(columns), ends), (X.shape[0], k))


def line(name: str, y: Any, predicted: Any, thirds: list[Any], seconds: float) -> str:
    right = predicted == y
    k = sum(len(each) for each in thirds)
    rows = np.bincount(y, minlength=k)
    recalls = np.bincount(y, right, minlength=k)[rows > 0] / rows[rows > 0]
    number = np.cumsum(rows > 0) - 1
    means = [recalls[number[each][rows[each] > 0]].mean() for each in thirds]
    f1 = f1_score(y, predicted, average="macro", labels=np.flatnonzero(rows), zero_division=0)
    shares = "".join(f"{each:9.1%}" for each in (*means, f1, 1 - right.mean()))
    return f"  {name:36}{shares}{seconds:9.1f} s"


def fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    began = time.process_time()
    return model.fit(X, y), time.process_time() - began


def study(label: str) -> None:
    try:
        X, y, X_tune, y_tune, X_test, y_test = parts(label)
    except FileNotFoundError as error:
        print(f"{label}: skipped: {error}")
        return
    rows = np.bincount(y)
    thirds = np.array_split(np.argsort(-rows, kind="stable"), 3)
    print(f"{label}: {len(rows)} classes of {rows.min()} to {rows.max():,} training rows, "
          f"{X.shape[0]:,} rows x {X.shape[1]:,} words")  # fmt: skip
    print(f"  {'':36}     head   middle     tail macro F1    error      CPU", flush=True)
    regression = LogisticRegression(C=C, max_iter=ITERATIONS[label])
    plain, spent = fitted(clone(regression), X, y)
    print(line("plain", y_test, plain.predict(X_test), thirds, spent), flush=True)
    balanced, spent = fitted(clone(regression).set_params(class_weight="balanced"), X, y)
    predicted = balanced.predict(X_test)
    print(line('class_weight="balanced"', y_test, predicted, thirds, spent), flush=True)
    tuning, testing = most_probable(plain, X_tune), most_probable(plain, X_test)
    shares = rows / rows.sum()
    predicted = tune_weights(
        y_tune, tuning, "balanced", classes=plain.classes_, class_prior=shares, rare_classes="keep"
    ).decide(testing)
    print(line("plain, divided by class shares", y_test, predicted, thirds, 0.0), flush=True)
    for name, goal in GOALS.items():
        began = time.process_time()
        tuned = tune_weights(y_tune, tuning, goal, classes=plain.classes_, rare_classes="keep")
        spent = time.process_time() - began
        predicted = tuned.decide(testing)
        print(line(f"plain, tuned for {name}", y_test, predicted, thirds, spent), flush=True)
    robust, spent = fitted(RobustLogisticRegression(LabelCVaR(ALPHA), C=C), X, y)
    name = f"RobustLogisticRegression(CVaR {ALPHA})"
    print(line(name, y_test, robust.predict(X_test), thirds, spent), flush=True)


def generated(n: int, k: int, m: int) -> tuple[Any, csr_array]:
    """Labels, and sparse rows that hold m classes each."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, k + 1)
    share /= share.sum()
    y, candidates = rng.choice(k, n, p=share), rng.choice(k, (n, m), p=share)
    known = rng.random(n) < 0.9
    candidates[known, 0] = y[known]
    scores = rng.normal(size=(n, m)) + 0.7 * np.log(share[candidates])
    scores[known, 0] += 2
    values = np.exp(scores)
    values *= 0.95 / values.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(n), m)
    return y, csr_array((values.ravel(), (rows, candidates.ravel())), (n, k))


def times() -> None:
    for n, k, m in SIZES:
        y, table = generated(n, k, m)
        held = (table.data.nbytes + table.indices.nbytes + table.indptr.nbytes) / 2**20
        print(f"{n:,} rows, {m} held of {k:,} classes, a table of {held:.0f} MiB", flush=True)
        for goal in ("worst_class", "f1_macro", "balanced_accuracy", LabelCVaR(ALPHA)):
            reset_peak()
            before, began = memory_mib("VmRSS"), time.process_time()
            options = {"classes": np.arange(k), "rare_classes": "keep"}
            tune_weights(y, table, goal, **options).summary()
            spent, added = time.process_time() - began, memory_mib("VmHWM") - before
            print(f"  {goal!s:22} {spent:6.1f} s, at most {added:.0f} MiB more", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("labels", nargs="*", default=["sections", "maintainers"])
    warnings.simplefilter("ignore")
    for label in parser.parse_args().labels:
        times() if label == "times" else study(label.rstrip("s"))


if __name__ == "__main__":
    main()
