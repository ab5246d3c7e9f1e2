"""The learners and remedies of the study on real data."""

import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from equipoise import RobustClassifier
from real_data_tables import Halves, decided

GOALS = ("worst_class", "balanced_accuracy", "f1_macro")
BOOSTERS = ("boosting", "lightgbm", "xgboost", "catboost")
ON_WHOLE_HALVES = ("forest", "boosting")
GAME_SETS = (
    "ann_thyroid",
    "page_blocks",
    "wine_quality",
    "mammography",
    "kr_vs_k",
    "satimage",
    "contraceptive",
    "vehicle",
)
ROUNDS = 50


def _logistic(_: int) -> Any:
    return Scaled(LogisticRegression(max_iter=1_000))


def _forest(seed: int) -> Any:
    return RandomForestClassifier(100, random_state=seed)


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=100, random_state=seed, n_jobs=1, verbose=-1)


def _xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, random_state=seed, n_jobs=1)


def _catboost(seed: int) -> Any:
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return CatBoostClassifier(iterations=100, random_seed=seed, **quiet)


LEARNERS: dict[str, Callable[[int], Any]] = {
    "logistic": _logistic,
    "forest": _forest,
    "boosting": _boosting,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "catboost": _catboost,
}


class Scaled(ClassifierMixin, BaseEstimator):
    """A classifier behind scaled columns, which takes weights of rows by their usual name."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Scaled":
        self.model_ = make_pipeline(StandardScaler(), clone(self.estimator))
        own = {f"{self.model_.steps[-1][0]}__sample_weight": sample_weight}
        self.model_.fit(X, y, **own)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)


class Remembered(ClassifierMixin, BaseEstimator):
    """A learner that is not fitted twice to the same rows and weights.

    Remedies share most of their fits. What a fit that is not repeated took is counted as if it had
    been: see ``saved``.
    """

    known: ClassVar[dict[str, tuple[Any, float]]] = {}
    saved = 0.0

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Remembered":
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if weights is not None and np.all(weights == weights[0]):
            weights = None
        key = joblib.hash((repr(self.estimator), np.ascontiguousarray(X), np.asarray(y), weights))
        if key in self.known:
            self.model_, seconds = self.known[key]
            Remembered.saved += seconds
        else:
            began = time.perf_counter()
            self.model_ = clone(self.estimator).fit(X, y, sample_weight=weights)
            self.known[key] = self.model_, time.perf_counter() - began
        self.classes_ = np.asarray(self.model_.classes_)
        return self

    def predict(self, X: Any) -> Any:
        return np.ravel(self.model_.predict(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)


def compare(
    learner: str, part: Halves, seed: int, *, with_game: bool, wanted: tuple[str, ...]
) -> dict[str, Any]:
    """For each remedy: how many test rows of each class got which decision, and the seconds."""
    Remembered.known = {}
    base = Remembered(LEARNERS[learner](seed))
    found = {}
    for name, fit in remedies(learner, base, seed, with_game=with_game).items():
        if not name.startswith(wanted):
            continue
        if name == "tuned threshold" and len(np.unique(part.y)) > 2:
            continue
        Remembered.saved, began = 0.0, time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit(part.X, part.y)
            seconds = time.perf_counter() - began + Remembered.saved
            found[name] = {"table": decided(part, model), "seconds": seconds}
    return found


def remedies(learner: str, base: Any, seed: int, *, with_game: bool) -> dict[str, Callable]:
    from imblearn.ensemble import BalancedRandomForestClassifier, EasyEnsembleClassifier

    def plain(X: Any, y: Any) -> Any:
        return clone(base).fit(X, y)

    def balanced(X: Any, y: Any) -> Any:
        return clone(base).fit(X, y, sample_weight=compute_sample_weight("balanced", y))

    found: dict[str, Callable] = {"none": plain, "balanced": balanced, "SMOTE": Smote(base, seed)}
    found["tuned threshold"] = TunedThresholdClassifierCV(clone(base), random_state=seed).fit
    if learner == "forest":
        found["balanced forest"] = BalancedRandomForestClassifier(100, random_state=seed).fit
    if learner in BOOSTERS:
        found["EasyEnsemble"] = EasyEnsembleClassifier(random_state=seed).fit
    for goal in GOALS:
        options = {"rare": "keep", "random_state": seed}
        found[f"ours, {goal}"] = RobustClassifier(clone(base), goal, **options).fit
    if with_game and learner == "boosting":
        found["fifty rounds"] = FiftyRounds(base, seed).fit
    return found


class Smote:
    """Rows of the smaller classes made up between neighbours."""

    def __init__(self, base: Any, seed: int) -> None:
        self.base, self.seed = base, seed

    def __call__(self, X: Any, y: Any) -> Any:
        from imblearn.over_sampling import SMOTE

        fewest = np.bincount(y)[np.unique(y)].min()
        smote = SMOTE(k_neighbors=int(min(5, max(1, fewest - 1))), random_state=self.seed)
        return clone(self.base).fit(*smote.fit_resample(X, y))


class FiftyRounds:
    """The game played in full: class masses by multiplicative weights, all models vote.

    Each round trains on three quarters of the rows with weights of the current masses, and raises
    the masses of classes by their risks on the other quarter.
    """

    def __init__(self, base: Any, seed: int) -> None:
        self.base, self.seed = base, seed

    def fit(self, X: Any, y: Any) -> "FiftyRounds":
        cut = StratifiedKFold(4, shuffle=True, random_state=self.seed)
        train, held_out = next(cut.split(X, y))
        self.classes_, places = np.unique(y, return_inverse=True)
        k, counts = len(self.classes_), np.bincount(places[train])
        # The rate of the textbooks for losses in [0, 1].
        rate = np.sqrt(8 * np.log(k) / ROUNDS)
        masses, self.models_ = np.full(k, 1 / k), []
        for _ in range(ROUNDS):
            weights = (masses / counts)[places[train]] * len(train)
            self.models_.append(clone(self.base).fit(X[train], y[train], sample_weight=weights))
            decided = self.models_[-1].predict(X[held_out])
            wrong = decided != y[held_out]
            risks = np.bincount(places[held_out], weights=wrong, minlength=k) / np.maximum(
                1, np.bincount(places[held_out], minlength=k)
            )
            masses = masses * np.exp(rate * risks)
            masses /= masses.sum()
        return self

    def predict(self, X: Any) -> Any:
        votes = sum(np.equal.outer(model.predict(X), self.classes_) for model in self.models_)
        return self.classes_[np.argmax(votes, axis=1)]
