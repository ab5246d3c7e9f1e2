"""Robust boosting in one run: class masses that move between rounds, against RobustClassifier.

python benchmarks/one_run.py check
python benchmarks/one_run.py run [--data NAME ...] [--learners lightgbm xgboost] [--jobs 1]
python benchmarks/one_run.py show

The sets and splits of ``real_data.py``, at most 3,000 training rows, 100 trees. ``check`` compares
our gradients with those of the libraries. ``run`` goes on where it stopped: every piece of work is
a line of ``benchmarks/results/one_run.jsonl``. ``show`` prints the comparison and says whether one
run beats ours, without which it has no place in the library.

Decided before the first run, and not changed by its outcome; what had to be tried was tried on
generated data and on scikit-learn's own tables, none of which is in the study:

* A quarter of the training rows is held out, stratified; identical rows stay on one side. A booster
  is trained on the others with weights by class: weighted logistic loss for two classes, softmax
  for more, with the curvature of each library. The masses of the classes begin balanced. Every five
  rounds they are raised by the class risks of the decisions so far on the rows held out,
  ``m <- m exp(rate risk)``, and a hundredth of the mass is dealt out evenly, so that no class
  vanishes. The rate is eight times that of the textbooks for twenty losses in [0, 1]: of speeds
  from 0 to 16 with a twentieth dealt out, and of 8 and 16 with a hundredth, it had the best worst
  class as trained, for both learners; with tuned decisions none stood out, not even masses that
  stay.
* Trees of LightGBM, whose leaves must hold twenty rows, get the rows of the smaller of two classes
  as often as ``RobustClassifier`` repeats them.
* Four rows of the tables: *one run*, which decides as it was trained; *one run, tuned*, with
  decision weights that ``tune_weights`` finds for the worst class on the rows held out, drawn
  towards decisions as trained, and with none for a class of fewer than three such rows;
  *replayed* and *replayed, tuned*, a second run on all rows with the masses of the first, round by
  round, and with its decision weights: what is lost by rows held out.
* One run beats ours for a learner if one of its rows has a worst-class recall above that of
  ``RobustClassifier`` by more than two standard errors of the paired difference over the sets.
"""

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils.class_weight import compute_sample_weight

import real_data_tables as tables
from equipoise import PlugInClassifier, RobustClassifier, tune_weights
from equipoise.decisions import decide
from equipoise.estimators.class_weighted import repeats
from real_data import main
from real_data_learners import LEARNERS, Remembered
from real_data_show import Values, error, gather, paired, say

OUT = Path(__file__).parent / "results" / "one_run.jsonl"
# Rounds of boosting, rounds between two moves of the masses, how many times as fast as in the
# textbooks they move, and the mass that is dealt out evenly.
ROUNDS, EVERY, SPEED, EVEN = 100, 5, 8.0, 0.01
# Rows held out that a class needs for a decision weight of its own.
FEWEST = 3
OURS, PLUG_IN = "ours", "plug-in"
ONE_RUN = ("one run", "one run, tuned", "replayed", "replayed, tuned")

# Raw scores of rows from so many trees, beginning with one of them.
Scores = Callable[[np.ndarray, int, int], np.ndarray]
# What is done after a round: how many are done, and the scores so far.
After = Callable[[int, Scores], None]


class Booster:
    """A booster with our own objective, under class masses that may change between rounds.

    Of two classes there is one score a row, the log-odds of the second; of more, one for each.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, masses: np.ndarray, seed: int) -> None:
        self.X, self.y, self.masses, self.seed = X, y, masses, seed
        self.counts = np.bincount(y, minlength=len(masses))
        logs = np.log(masses)
        # The scores that fit best without features, as both libraries begin.
        self.start = logs[1] - logs[0] if len(masses) == 2 else logs - logs.mean()

    def weights(self) -> np.ndarray:
        """Weights of the rows under the masses of now, one in the mean."""
        return (len(self.y) * self.masses / np.maximum(self.counts, 1))[self.y]

    def slopes(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives of the weighted loss in the scores."""
        weights = self.weights()
        if scores.ndim == 1:
            p = expit(scores.astype(np.float64))
            return weights * (p - self.y), weights * self.curvature(p)
        p = softmax(scores.astype(np.float64), axis=1)
        curvature = self.curvature(p)
        p[np.arange(len(p)), self.y] -= 1
        return weights[:, None] * p, weights[:, None] * curvature

    def curvature(self, p: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def train(self, after: After) -> Scores:
        raise NotImplementedError

    def begin(self, n_rows: int) -> np.ndarray:
        """Scores of rows before the first tree."""
        return np.tile(self.start, n_rows if np.ndim(self.start) == 0 else (n_rows, 1))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities under the masses, from sums of trees."""
        full = self.begin(len(scores)) + scores
        return expit(np.column_stack([-full, full])) if full.ndim == 1 else softmax(full, axis=1)


class LightGBM(Booster):
    def curvature(self, p: np.ndarray) -> np.ndarray:
        k = len(self.masses)
        return p * (1 - p) * (1.0 if k == 2 else k / (k - 1))

    def train(self, after: After) -> Scores:
        k = len(self.masses)
        data = lightgbm.Dataset(self.X, self.y, init_score=self.begin(len(self.y)))
        params = {
            "objective": lambda scores, _: self.slopes(scores),
            "num_class": k if k > 2 else 1,
            "seed": self.seed, "num_threads": 1, "verbose": -1,
        }  # fmt: skip

        def scores(model: Any, X: np.ndarray, first: int, n_trees: int) -> np.ndarray:
            return model.predict(X, first, n_trees, raw_score=True)

        def callback(env: Any) -> None:
            after(env.iteration + 1, partial(scores, env.model))

        return partial(scores, lightgbm.train(params, data, ROUNDS, callbacks=[callback]))


class XGBoost(Booster):
    def curvature(self, p: np.ndarray) -> np.ndarray:
        return np.maximum(p * (1 - p) * (1 if len(self.masses) == 2 else 2), 1e-16)

    def train(self, after: After) -> Scores:
        k = len(self.masses)
        # Weights of the first round, by which columns are cut into bins.
        own = {"weight": self.weights(), "base_margin": self.begin(len(self.y))}
        data = xgboost.DMatrix(self.X, self.y, nthread=1, **own)
        params = {
            "base_score": 0.0, "disable_default_eval_metric": True,
            "seed": self.seed, "nthread": 1, **({"num_class": k} if k > 2 else {}),
        }  # fmt: skip

        def scores(model: Any, X: np.ndarray, first: int, n_trees: int) -> np.ndarray:
            rows = xgboost.DMatrix(X, nthread=1)
            span = first, first + n_trees
            return model.predict(rows, output_margin=True, iteration_range=span)

        class Callback(xgboost.callback.TrainingCallback):
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                after(epoch + 1, partial(scores, model))
                return False

        model = xgboost.train(
            params, data, ROUNDS, obj=lambda scores, _: self.slopes(scores), callbacks=[Callback()]
        )
        return partial(scores, model)


BOOSTERS: dict[str, type[Booster]] = {"lightgbm": LightGBM, "xgboost": XGBoost}


def risks_of(y: np.ndarray, decided: np.ndarray, k: int) -> np.ndarray:
    """Share of wrong decisions in each class; none is wrong in a class without rows."""
    wrong = np.bincount(y, weights=decided != y, minlength=k)
    return wrong / np.maximum(1, np.bincount(y, minlength=k))


def moved(masses: np.ndarray, risks: np.ndarray, rate: float) -> np.ndarray:
    """Masses raised by risks, of which a little is dealt out evenly."""
    raised = masses * np.exp(rate * risks)
    return (1 - EVEN) * raised / raised.sum() + EVEN / len(masses)


def cut(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and the quarter to hold out that leaves most classes on both sides."""
    groups = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    folds = StratifiedGroupKFold(4, shuffle=True, random_state=seed).split(X, y, groups)
    return max(folds, key=lambda parts: sum(len(np.unique(y[part])) for part in parts))


def tuned_weights(y: np.ndarray, probabilities: np.ndarray, seed: int) -> np.ndarray:
    """Decision weights for the worst class; classes of too few rows decide as they were trained."""
    k = probabilities.shape[1]
    counts, weights = np.bincount(y, minlength=k), np.ones(k)
    known = counts >= FEWEST
    if np.count_nonzero(known) < 2:
        return weights
    # The search draws towards balanced weights: on the scale of the rows, these are as trained.
    scale = np.maximum(counts, 1)
    table = probabilities * scale
    table /= table.sum(axis=1, keepdims=True)
    options: dict[str, Any] = {"classes": np.arange(k), "rare": "keep", "random_state": seed}
    own = (np.asarray(tune_weights(y, table, "worst-class", **options).weights) * scale)[known]
    weights[known] = own / np.exp(np.log(own).mean())
    return weights


class OneRun:
    """Boosting whose class masses move by risks on rows held out, as they are found."""

    def __init__(self, learner: str, seed: int) -> None:
        self.learner, self.seed = learner, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> "OneRun":
        self.k = int(y.max()) + 1
        train, held_out = cut(X, y, self.seed)
        # The rate of the textbooks for losses in [0, 1], and their speed.
        rate = SPEED * np.sqrt(8 * np.log(self.k) / (ROUNDS / EVERY))
        booster = self._booster(X[train], y[train])
        self.masses_, self.y_held_out = [booster.masses], y[held_out]
        so_far: Any = 0.0

        def after(n_done: int, scores: Scores) -> None:
            nonlocal so_far
            if n_done % EVERY == 0:
                so_far = so_far + scores(X[held_out], n_done - EVERY, EVERY)
                self.p_held_out = booster.probabilities(so_far)
                decided = np.argmax(self.p_held_out, axis=1)
                risks = risks_of(self.y_held_out, decided, self.k)
                booster.masses = moved(booster.masses, risks, rate)
            self.masses_.append(booster.masses)

        self.booster_, self.scores_ = booster, booster.train(after)
        return self

    def replay(self, X: np.ndarray, y: np.ndarray) -> "OneRun":
        """A second run, on all rows, with the masses that the first had in each round."""
        booster = self._booster(X, y)

        def after(n_done: int, _: Scores) -> None:
            booster.masses = self.masses_[n_done]

        self.booster_, self.scores_ = booster, booster.train(after)
        return self

    def _booster(self, X: np.ndarray, y: np.ndarray) -> Booster:
        """At balanced masses, with rows repeated for leaves that count them."""
        times = repeats(LEARNERS[self.learner](self.seed), np.bincount(y, minlength=self.k))[y]
        rows = np.repeat(np.arange(len(y)), times)
        return BOOSTERS[self.learner](X[rows], y[rows], np.full(self.k, 1 / self.k), self.seed)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.booster_.probabilities(self.scores_(X, 0, ROUNDS))


def one_run(learner: str, part: tables.Halves, seed: int) -> dict[str, Any]:
    """All rows of the tables that are ours to win: decisions on test rows, and seconds."""
    k, found = int(part.y.max()) + 1, {}
    began = time.perf_counter()
    model = OneRun(learner, seed).fit(part.X, part.y)
    trained = time.perf_counter() - began
    weights = tuned_weights(model.y_held_out, model.p_held_out, seed)
    tuned = time.perf_counter() - began
    tests = [model.predict_proba(part.X_test)]
    began = time.perf_counter()
    model.replay(part.X, part.y)
    again = time.perf_counter() - began
    tests.append(model.predict_proba(part.X_test))
    seconds = (trained, tuned, trained + again, tuned + again)
    rules = [(p, own) for p in tests for own in (np.ones(k), weights)]
    for name, rule, took in zip(ONE_RUN, rules, seconds, strict=True):
        table = confusion_matrix(part.y_test, decide(*rule), labels=np.arange(k))
        found[name] = {"table": table.tolist(), "seconds": took}
    found[ONE_RUN[0]]["masses"] = model.masses_[-2].tolist()
    found[ONE_RUN[1]]["weights"] = weights.tolist()
    return found


def others(learner: str, part: tables.Halves, seed: int) -> dict[str, Any]:
    """What one run is compared with."""
    Remembered.known, found = {}, {}
    base = Remembered(LEARNERS[learner](seed))
    options: dict[str, Any] = {"rare": "keep", "random_state": seed}
    balanced = {"sample_weight": compute_sample_weight("balanced", part.y)}
    models = {
        "none": (clone(base), {}),
        "balanced": (clone(base), balanced),
        PLUG_IN: (PlugInClassifier(clone(base), "worst-class", **options), {}),
        OURS: (RobustClassifier(clone(base), "worst-class", **options), {}),
    }
    for name, (model, params) in models.items():
        Remembered.saved, began = 0.0, time.perf_counter()
        model.fit(part.X, part.y, **params)
        seconds = time.perf_counter() - began + Remembered.saved
        decided = np.ravel(model.predict(part.X_test))
        table = confusion_matrix(part.y_test, decided, labels=np.unique(part.y))
        found[name] = {"table": table.tolist(), "seconds": seconds}
    return found


def work(name: str, split: int, learner: str) -> dict[str, Any]:
    """One run and the others, on one split."""
    part = tables.halves(name, split, tables.MOST_ROWS)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = others(learner, part, split) | one_run(learner, part, split)
    seconds = time.perf_counter() - began
    return {"data": name, "split": split, "learner": learner, "seconds": seconds, "found": found}


def show_learner(values: Values, seconds: Values, learner: str) -> None:
    sets = [name for name in values if learner in values[name]]
    print(f"\n{learner}, {len(sets)} sets: worst-class recall, balanced accuracy, seconds")
    for remedy in dict.fromkeys(r for name in sets for r in values[name][learner]):
        means = np.mean([np.mean(values[n][learner][remedy], axis=0) for n in sets], axis=0)
        took = np.mean([np.mean(seconds[n][learner][remedy]) for n in sets])
        line = f"  {remedy:16} {means[0]:.3f}  {means[1]:.3f} {took:7.2f} s"
        if remedy != OURS:
            gain = paired(values, learner, remedy, OURS, "worst-class")
            line += (
                f"   against ours: {gain.mean():+.4f}, standard error {error(gain):.4f}, "
                f"{np.sum(gain > 0)} won, {np.sum(gain < 0)} lost"
            )
        print(line)


def judge(values: Values, learner: str) -> None:
    beats = []
    for remedy in ONE_RUN:
        gain = paired(values, learner, remedy, OURS, "worst-class")
        beats.append(bool(gain.mean() > 2 * error(gain)))
        words = f"{gain.mean():+.4f}, standard error {error(gain):.4f}"
        say(beats[-1], f"{learner}: {remedy} above ours by two standard errors: {words}")
    print(f"{learner}: one run {'beats' if any(beats) else 'does not beat'} ours")


def show(rows: list[dict[str, Any]]) -> None:
    values, seconds, _ = gather(rows)
    names = [name for name in BOOSTERS if any(name in found for found in values.values())]
    for learner in names:
        show_learner(values, seconds, learner)
    print(f"\nWorst-class recall by data set: {PLUG_IN}, {OURS}, {'; '.join(ONE_RUN)}")
    for name, found in values.items():
        for learner in names:
            if learner in found:
                wanted = (PLUG_IN, OURS, *ONE_RUN)
                cells = [np.mean(found[learner][remedy], axis=0)[0] for remedy in wanted]
                print(f"  {name:18} {learner:9}", *(f"{cell:.3f}" for cell in cells))
    print("\nDoes one run beat ours?")
    for learner in names:
        judge(values, learner)


def check() -> None:
    """At masses that stay, our objective is the library's own, with and without class weights."""
    for k in (2, 4):
        shape = {"n_informative": 6, "n_classes": k, "n_clusters_per_class": 1, "flip_y": 0.1}
        X, y = make_classification(1_500, weights=0.5 ** np.arange(1, k), random_state=0, **shape)
        shares = np.bincount(y) / len(y)
        for learner, kind in BOOSTERS.items():
            for word, masses in (("plain", shares), ("balanced", np.full(k, 1 / k))):
                weights = (masses / shares)[y]
                native = LEARNERS[learner](0).fit(X, y, sample_weight=weights).predict_proba(X)
                booster, parts = kind(X, y, masses, 0), []
                scores = booster.train(partial(_collect, parts, X))
                own = booster.probabilities(scores(X, 0, ROUNDS))
                off = float(np.abs(own - native).max())
                say(off < 1e-4, f"{learner}, {k} classes, {word}: as its own, {off:.1e} off")
                apart = float(np.abs(np.sum(parts, axis=0) - scores(X, 0, ROUNDS)).max())
                say(apart < 1e-4, f"{learner}, {k} classes, {word}: sums of trees, {apart:.1e} off")


def _collect(parts: list[np.ndarray], X: np.ndarray, n_done: int, scores: Scores) -> None:
    if n_done % EVERY == 0:
        parts.append(scores(X, n_done - EVERY, EVERY))


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        check()
    else:
        main(__doc__, list(BOOSTERS), OUT, work, show)
