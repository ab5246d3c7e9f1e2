"""The models that a table can be fitted with: preprocessing and classifier in one pipeline."""

from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from equipoise.estimators import PlugInClassifier, RobustLogisticRegression
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import FixedWeights, as_uncertainty
from equipoise.tables.features import boosting_categories, preprocessor

MODEL_KINDS = ("linear", "boosting")

# Five folds for tables up to so many rows, one hold-out beyond.
_MANY_ROWS = 100_000
# Folds, and then the part to stop by, must have rows of every class.
_ROWS_TO_STOP_EARLY = 10


def model_for(
    X: Any,
    kind: str = "linear",
    uncertainty: Any = None,
    *,
    C: float = 1.0,
    seed: int = 0,
    rarest: int | None = None,
) -> Pipeline:
    """A pipeline, not fitted, from the features of a table to classes.

    Parameters
    ----------
    X : pandas.DataFrame
        Features as ``split_target`` gives them.
    kind : {"linear", "boosting"}
        ``RobustLogisticRegression``, or gradient boosting whose decisions ``PlugInClassifier``
        makes robust.
    uncertainty : Uncertainty, "standard", "balanced" or "worst-class", optional
        The set of weightings.
    C : float
        Inverse strength of the penalty of the linear model.
    seed : int
        Seed of everything random.
    rarest : int, optional
        Rows of the rarest class. Boosting of many rows stops early by what it sees in a part that
        it sets aside, which needs some rows of every class.

    Returns
    -------
    Pipeline
        With the steps ``features`` and ``model``.
    """
    if kind not in MODEL_KINDS:
        names = " or ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(f"kind must be {names}, got {kind!r}.")
    if kind == "linear":
        model: Any = RobustLogisticRegression(uncertainty, C=C)
    else:
        booster = HistGradientBoostingClassifier(
            categorical_features=boosting_categories(X) or None, random_state=seed
        )
        if rarest is not None and rarest < _ROWS_TO_STOP_EARLY:
            booster.set_params(early_stopping=False)
        model = _decided(booster, uncertainty, len(X), seed)
    return Pipeline([("features", preprocessor(X, kind)), ("model", model)])


def _decided(booster: Any, uncertainty: Any, n_rows: int, seed: int) -> PlugInClassifier:
    """A booster with robust decisions; a single weighting needs no tuning."""
    recipe = as_uncertainty(uncertainty)
    if isinstance(recipe, FixedWeights):
        return PlugInClassifier(booster, weights=recipe)
    cv = 5 if n_rows <= _MANY_ROWS else 0.2
    return PlugInClassifier(booster, uncertainty=recipe, cv=cv, rare="keep", random_state=seed)
