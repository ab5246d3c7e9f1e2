"""Decision weights: a million rows against argmax and the peers, and tuning by number of classes.

Values of the former are in-sample, as all of them report them: how well each searches, not how well
it predicts. Those of the latter are of held-out rows.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve
from threadpoolctl import threadpool_limits

from equipoise import LabelCVaR, tune_weights
from equipoise.goals import Criterion, Predictions, as_goal, decide
from equipoise.metrics import best_threshold

N_ROWS, N_CLASSES = 1_000_000, 10
# Rows, classes, and the seconds of one core that tuning on five folds may take.
SIZES = ((3_000, 7, 0.05), (12_000, 50, None), (12_000, 100, 1.0), (20_000, 1_000, 10.0))


def probabilities(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy probabilities of overlapping Gaussian classes, the rarest one in a hundred rows."""
    rng = np.random.default_rng(0)
    share = np.geomspace(40, 1, n_classes)
    share /= share.sum()
    y = rng.choice(n_classes, n_rows, p=share)
    centres = 1.5 * rng.normal(size=(n_classes, 3))
    X = centres[y] + rng.normal(size=(n_rows, 3))
    scores = np.log(share) - ((X[:, None] - centres) ** 2).sum(axis=-1) / 2
    scores += 0.5 * rng.normal(size=scores.shape)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), y


def best_time(
    function: Callable[[], Any], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[Any, float]:
    times = []
    for _ in range(repeats):
        began = clock()
        result = function()
        times.append(clock() - began)
    return result, min(times)


def cutoffs(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The peer's thresholds for macro F1; a row goes to the class furthest above its own."""
    from optimal_cutoffs import get_optimal_threshold

    found = get_optimal_threshold(y, p, metric="f1", average="macro")
    return np.asarray(getattr(found, "thresholds", found), dtype=float)


def tune(predictions: Predictions, criterion: Criterion) -> np.ndarray:
    """Weights for all rows, without folds."""
    every = np.ones(len(predictions.labels), dtype=bool)
    return criterion.tune(predictions, [every], pooling=2.0, seed=0)[0]


def many_classes() -> dict[str, Any]:
    p, y = probabilities(N_ROWS, N_CLASSES)
    predictions = Predictions(p, y, np.ones(len(y)))
    _, argmax = best_time(lambda: p.argmax(axis=1), 5)
    thresholds, theirs = best_time(lambda: cutoffs(y, p), 1)
    their_decisions = np.argmax(p - thresholds, axis=1)
    their_table = np.bincount(y * N_CLASSES + their_decisions, minlength=N_CLASSES**2)
    their_table = their_table.reshape(N_CLASSES, N_CLASSES).astype(float)
    goals = {
        "macro F1": as_goal("f1_macro").resolve(predictions.prior),
        "worst class": as_goal("worst_class").resolve(predictions.prior),
        "LabelCVaR(0.2)": as_goal(LabelCVaR(0.2)).resolve(predictions.prior),
    }
    rows: dict[str, Any] = {"argmax_seconds": argmax, "theirs_seconds": theirs, "goals": {}}
    for name, goal in goals.items():
        weights, seconds = best_time(lambda goal=goal: tune(predictions, goal))
        rows["goals"][name] = {
            "seconds": seconds,
            "value": 1 - goal.value(predictions.confusion(weights)),
            "theirs": 1 - goal.value(their_table),
            "balanced": 1 - goal.value(predictions.confusion(1 / predictions.prior)),
            "times_argmax": seconds / argmax,
            "speedup": theirs / seconds,
        }
    decided = decide(p, tune(predictions, goals["macro F1"]))
    rows["macro_f1_by_scikit_learn"] = float(f1_score(y, decided, average="macro"))
    return rows


def two_classes() -> dict[str, Any]:
    p, y = probabilities(N_ROWS, 2)
    scores, positive = np.ascontiguousarray(p[:, 1]), y == 1

    def curve() -> float:
        precision, recall, _ = precision_recall_curve(positive, scores)
        with np.errstate(invalid="ignore"):
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
        return float(f1[int(np.argmax(f1))])

    theirs, their_seconds = best_time(curve)
    ours, seconds = best_time(lambda: best_threshold(scores, positive, metric="f1"))
    return {
        "seconds": seconds,
        "theirs_seconds": their_seconds,
        "value": ours.value,
        "theirs": theirs,
    }


def of_a_logistic_regression(
    n_rows: int, n_classes: int, rarest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities of rows that the model has not seen; classes as rare as told."""
    rng = np.random.default_rng(0)
    share = np.geomspace(1, rarest, n_classes)
    y = rng.choice(n_classes, 2 * n_rows, p=share / share.sum())
    X = 1.2 * rng.normal(size=(n_classes, 5))[y] + rng.normal(size=(2 * n_rows, 5))
    model = LogisticRegression(max_iter=500).fit(X[:n_rows], y[:n_rows])
    return y[n_rows:], model.predict_proba(X[n_rows:])


def on_folds() -> list[dict[str, Any]]:
    """Processor time of tuning on five folds, by the number of classes."""
    rows = []
    for n_rows, n_classes, ceiling in (*SIZES, (N_ROWS, N_CLASSES, None)):
        if n_rows == SIZES[0][0]:
            y, p = of_a_logistic_regression(n_rows, n_classes, 0.1)
        else:
            p, y = probabilities(n_rows, n_classes)
        for goal in (LabelCVaR(0.2), "worst_class", "f1_macro", "balanced_accuracy"):
            tuning = partial(
                tune_weights,
                y,
                p,
                goal,
                classes=np.arange(n_classes),
                rare_classes="keep",
                random_state=0,
            )
            with threadpool_limits(1):
                found, seconds = best_time(tuning, 5 if n_rows < 10_000 else 1, time.process_time)
            rows.append(
                {
                    "rows": n_rows,
                    "classes": n_classes,
                    "goal": str(goal),
                    "seconds": seconds,
                    "ceiling": ceiling,
                    "risk": found.robust_risk,
                    "metric": found.metric_value,
                }
            )
    return rows


def growth(rows: list[dict[str, Any]]) -> float:
    """The exponent of the seconds by the number of classes, from 50 to 1,000, per row."""
    spent = {
        k: np.mean([row["seconds"] / row["rows"] for row in rows if row["classes"] == k])
        for k in (50, 1_000)
    }
    return float(np.log(spent[1_000] / spent[50]) / np.log(1_000 / 50))
