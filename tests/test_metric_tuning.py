"""What does better on new rows: the best weights for the tuning rows, or those of the default.

Two Gaussian classes on a line, so that the metric of a threshold in the population is known; the
probabilities are true, or distorted in slope and level as those of a reweighted model are. The
study, over sizes and frequencies: ``pytest -m slow -s tests/test_metric_tuning.py``.
"""

from itertools import product

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.special import expit, logit
from scipy.stats import norm

from equipoise import tune_weights
from equipoise.goals import as_goal

# Distance of the means, and slope and shift of the log-odds.
APART = 1.5
ODDS = {"true": (1.0, 0.0), "distorted": (2.0, 1.5)}
COUNTED, RECALLS = ("f1", "macro_f1", "accuracy"), ("balanced_accuracy", "geometric_mean")
CELLS = [
    (share, n_rows)
    for share, n_rows in product((0.3, 0.1, 0.03), (100, 300, 1000, 4000))
    if share * n_rows > 5
]
REDRAWS = 400


def in_population(metric, share, cut):
    """The metric of deciding class 1 above a cut of the line."""
    right, wrong = share * norm.sf(cut - APART), (1 - share) * norm.sf(cut)
    hits = np.array([[1 - share - wrong, right]])
    decided = np.array([[1 - right - wrong, right + wrong]])
    totals = np.array([1 - share, share])
    return 1 - as_goal(metric).resolve(totals).values(hits, decided, totals)[0]


def redraw(metric, share, n_rows, odds, seed):
    """The metric on new rows with the default, and with the best weights for the tuning rows."""
    rng = np.random.default_rng([seed, n_rows, round(1000 * share)])
    positives = int(np.clip(rng.binomial(n_rows, share), 5, n_rows - 5))
    y = np.repeat([0, 1], [n_rows - positives, positives])
    slope, shift = ODDS[odds]
    x = rng.normal(size=n_rows) + APART * y
    eta = expit(slope * (APART * x - APART**2 / 2 + logit(share)) + shift)
    found = []
    for shrinkage in ("auto", 0):
        tuned = tune_weights(y, eta, metric, shrinkage=shrinkage, random_state=seed)
        log_odds = (logit(tuned.threshold) - shift) / slope
        cut = (log_odds - logit(share) + APART**2 / 2) / APART
        found.append(in_population(metric, share, cut))
    return found


def test_the_default_does_better_on_new_rows_than_the_best_for_the_tuning_rows():
    cells = [("f1", 0.1, 1000), ("f1", 0.03, 1000), ("macro_f1", 0.1, 1000), ("accuracy", 0.3, 300)]
    gains = [
        np.subtract(*redraw(*cell, "true", seed)) for cell in cells for seed in range(70)
    ]  # fmt: skip
    assert np.mean(gains) > 0


def test_without_shrinkage_the_metric_is_the_largest_on_the_tuning_rows():
    rng = np.random.default_rng(3)
    y = (rng.uniform(size=400) < 0.2).astype(int)
    eta = expit(rng.normal(size=400) + 1.5 * y - 2)
    exact, default = (tune_weights(y, eta, "f1", shrinkage=s) for s in (0, "auto"))

    def f1(decided):
        return 2 * np.sum(decided & (y == 1)) / (decided.sum() + y.sum())

    largest = max(f1(eta > cut) for cut in np.r_[0, eta])
    assert f1(exact.decide(eta) == 1) == pytest.approx(largest)
    assert f1(default.decide(eta) == 1) <= largest and default.shrinkage == 0


@pytest.mark.slow
@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("metric", [*COUNTED, *RECALLS])
def test_which_does_better_on_new_rows(metric, odds):
    said = [f"{metric}, {odds} probabilities, {REDRAWS} redraws"]
    behind = 0
    for share, n_rows in CELLS:
        found = np.array(
            Parallel(n_jobs=-1)(
                delayed(redraw)(metric, share, n_rows, odds, seed) for seed in range(REDRAWS)
            )
        )
        gain, error = np.diff(-found)[:, 0].mean(), np.diff(found)[:, 0].std() / np.sqrt(REDRAWS)
        means = "  ".join(f"{mean:.4f}" for mean in found.mean(axis=0))
        said.append(f"{share:<6} {n_rows:<5} {means}  {gain:+.4f} ± {error:.4f}")
        behind += gain < -3 * error
    header = "share  rows  default, the best for the tuning rows, and the gain over it"
    print("\n".join(["", said[0], header, *said[1:]]))  # noqa: T201
    # Metrics of the recalls are drawn towards balanced weights, right for true probabilities alone.
    assert behind == 0 or (metric in RECALLS and odds == "distorted")
