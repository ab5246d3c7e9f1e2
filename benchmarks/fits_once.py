"""A cache of fits for studies: the same learner, on the same rows, with the same weights.

A page for another goal, and the code that it prints, repeat earlier fits. The seconds of a cached
fit still count: see ``saved``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import joblib
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

# Learners whose fits are the same for the same seed.
REPEATABLE = (HistGradientBoostingClassifier, LogisticRegression, RandomForestClassifier)


class FitsOnce:
    """Fitted models by learner, rows and weights, and the seconds that they have saved."""

    def __init__(self) -> None:
        self.saved = 0.0
        self._known: dict[str, tuple[dict[str, Any], float]] = {}

    @contextmanager
    def of_all(self) -> Iterator["FitsOnce"]:
        """A context in which fits of these learners are cached."""
        before = {kind: kind.fit for kind in REPEATABLE}
        try:
            for kind, fit in before.items():
                kind.fit = self._once(fit)
            yield self
        finally:
            for kind, fit in before.items():
                kind.fit = fit

    def _once(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fit)
        def fitted(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
            given = type(model).__name__, model.get_params(), X, y, sample_weight
            if not isinstance(model.get_params().get("random_state", 0), int | None):
                return fit(model, X, y, sample_weight)
            key = joblib.hash(given)
            if key in self._known:
                state, seconds = self._known[key]
                model.__dict__.update(state)
                self.saved += seconds
                return model
            began = time.perf_counter()
            fit(model, X, y, sample_weight)
            self._known[key] = dict(model.__dict__), time.perf_counter() - began
            return model

        return fitted
