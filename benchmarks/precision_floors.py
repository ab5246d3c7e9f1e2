"""Precision floors of one of two classes with a confidence, beside MAPIE's precision control.

python benchmarks/precision_floors.py [--redraws 200]

Decided before the run. Two classes in five columns, Gaussian around means a distance of 2.5 apart,
the second with a tenth or three tenths of the rows, and the circles of MAPIE's own example
(``make_circles`` with noise 0.3 and factor 0.3), each with one learner. Every redraw trains on
1,000 rows and gets 2,000 more to choose a rule, for a precision of 0.8 or 0.9 of the second class
with confidence 0.9. It is evaluated on 20,000 new rows. MAPIE (``pip install --no-deps mapie``)
takes the threshold of the largest recall among 100 that it tests
(``BinaryClassificationController`` with the correction of Bonferroni and Holm), or in the order of
another half of the rows (``split_fixed_sequence``); they go up to the tenth largest probability of
the training rows, since in 1.6.0 one threshold that no row reaches leaves it without a rule. Ours
is ``tune_weights`` with ``PrecisionFloors``. Its rule has the least overall error, which is the
largest recall where the floor is above the precision of the default predictions, and a smaller one
elsewhere.

below    The share of redraws whose rule has a precision below the floor on the new rows; it must be
         0.1 at most. A redraw without a rule, or whose rule never predicts the class, counts as
         kept, with a recall of 0.
no rule  The share of redraws without a rule, or whose rule never predicts the class.
recall   The mean recall of the class, and its difference from ours, paired by redraw, with its
         standard error; ours must be no lower beyond two standard errors.
default  The precision of the default predictions, as a mean.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from mapie.risk_control import BinaryClassificationController
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from equipoise import tune_weights
from equipoise.exceptions import UnattainableError
from equipoise.goals import PrecisionFloors

CONFIDENCE, FLOORS = 0.9, (0.8, 0.9)
TRAINING_ROWS, ROWS, NEW_ROWS = 1_000, 2_000, 20_000
Rows = tuple[np.ndarray, np.ndarray]
Drawn = Callable[[np.random.Generator, int], Rows]


def gaussian(share: float) -> Drawn:
    def rows(rng: np.random.Generator, n: int) -> Rows:
        y = (rng.random(n) < share).astype(int)
        return rng.normal(size=(n, 5)) + 2.5 / np.sqrt(5) * y[:, None], y

    return rows


def circles(rng: np.random.Generator, n: int) -> Rows:
    # make_circles has equal halves: a few of many rows are nearly independent ones.
    X, y = make_circles(5 * n, noise=0.3, factor=0.3, random_state=int(rng.integers(1 << 31)))
    return X[:n], y[:n]


PROBLEMS: dict[str, tuple[Drawn, Any]] = {
    "gaussian, 10%, logistic": (gaussian(0.1), LogisticRegression()),
    "gaussian, 30%, tree": (gaussian(0.3), DecisionTreeClassifier(max_depth=4, random_state=0)),
    "circles, naive Bayes": (circles, GaussianNB()),
}


def ours(table: np.ndarray, y: np.ndarray, floor: float, seed: int, _: np.ndarray) -> float:
    """The threshold of the second class's probability, infinite without a rule."""
    try:
        goal = PrecisionFloors({1: floor}, confidence=CONFIDENCE)
        weights = np.asarray(tune_weights(y, table, goal, random_state=seed).weights)
    except UnattainableError:
        return np.inf
    return float(np.nextafter(weights[0] / weights.sum(), 1))


def of_mapie(
    table: np.ndarray, y: np.ndarray, floor: float, seed: int, tested: np.ndarray, method: str
) -> float:
    control = BinaryClassificationController(
        lambda rows: rows,
        "precision",
        floor,
        CONFIDENCE,
        list_predict_params=tested,
        fwer_method=method,
    )
    if method == "split_fixed_sequence":
        half = np.random.default_rng(seed).random(len(y)) < 1 / 2
        control.learn_fixed_sequence_order(table[half], y[half])
        table, y = table[~half], y[~half]
    best = control.calibrate(table, y).best_predict_param
    return np.inf if best is None else float(best)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, float, int, np.ndarray], float]] = {
    "ours": ours,
    "MAPIE": lambda *given: of_mapie(*given, "bonferroni_holm"),
    "MAPIE, in order": lambda *given: of_mapie(*given, "split_fixed_sequence"),
}


def rates(scores: np.ndarray, y: np.ndarray, threshold: float) -> tuple[float, float, float]:
    """Precision (1 if the class is never predicted), recall and overall error."""
    predicted = scores >= threshold
    right = np.count_nonzero(predicted & (y == 1))
    share = right / predicted.sum() if predicted.any() else 1.0
    return share, right / np.count_nonzero(y == 1), float(np.mean(predicted != (y == 1)))


def measured(
    drawn: Drawn, learner: Any, floor: float, seed: int
) -> tuple[list[tuple[float, float, float]], float]:
    """The rates of each method, and the precision of the default predictions."""
    rng = np.random.default_rng(seed)
    X_train, y_train = drawn(rng, TRAINING_ROWS)
    model = clone(learner).fit(X_train, y_train)
    tested = np.linspace(0, np.sort(model.predict_proba(X_train)[:, 1])[-10], 100)
    X, y = drawn(rng, ROWS)
    X_new, y_new = drawn(rng, NEW_ROWS)
    table, scores = model.predict_proba(X), model.predict_proba(X_new)[:, 1]
    thresholds = [method(table, y, floor, seed, tested) for method in METHODS.values()]
    return [rates(scores, y_new, each) for each in thresholds], rates(scores, y_new, 0.5)[0]


def floors(redraws: int) -> None:
    for problem, (drawn, learner) in PROBLEMS.items():
        for floor in FLOORS:
            pairs = [measured(drawn, learner, floor, seed) for seed in range(redraws)]
            default = np.mean([each for _, each in pairs])
            print(f"\n{problem}: precision {floor}, default {default:.3f}, {redraws} redraws")
            found = np.array([each for each, _ in pairs])
            for place, name in enumerate(METHODS):
                print(line(name, found[:, place], found[:, 0], floor), flush=True)


def line(name: str, each: np.ndarray, ours_each: np.ndarray, floor: float) -> str:
    recall, difference = each[:, 1], each[:, 1] - ours_each[:, 1]
    error = difference.std() / np.sqrt(max(len(each) - 1, 1))
    return (
        f"{name:15} below {np.mean(each[:, 0] < floor):.3f}, no rule {np.mean(recall == 0):.3f}, "
        f"recall {recall.mean():.3f}, less ours {difference.mean():+.3f} ({error:.3f}), "
        f"error {each[:, 2].mean():.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redraws", type=int, default=200)
    warnings.simplefilter("ignore")
    floors(parser.parse_args().redraws)


if __name__ == "__main__":
    main()
