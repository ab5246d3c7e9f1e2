"""From mixed tables to what models read, and on to classes: ordinary scikit-learn pipelines.

========  ==========================================  =======================================
columns   ``"linear"``                                ``"boosting"``
========  ==========================================  =======================================
numbers   missing values take the median, and a       as they are; missing values have their
          column says where; scaled to mean 0 and     own branch
          deviation 1
texts     one column of 0 and 1 per level; missing    whole numbers that the booster reads as
          is a level, rare levels share one           categories; rare levels share one
========  ==========================================  =======================================
"""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from equipoise.estimators import PlugInClassifier, RobustLogisticRegression
from equipoise.exceptions import InvalidInputError
from equipoise.goals import SetGoal, as_goal
from equipoise.sets import alpha_choice
from equipoise.tables.columns import columns_of
from equipoise.validation.numbers import check_word

# Levels of fewer rows share one column, and so do those beyond so many.
MIN_LEVEL_ROWS = 5
MAX_LEVELS = 50
# The booster takes 255 categories.
MAX_BOOSTING_LEVELS = 250
MISSING = "(missing)"

# Five folds for tables up to so many rows, one hold-out beyond.
_MANY_ROWS = 100_000
# Folds, and then the part to stop by, must have rows of every class.
_ROWS_TO_STOP_EARLY = 10

MODEL_KINDS = ("linear", "boosting")


def preprocessor(X: Any, kind: str = "linear") -> ColumnTransformer:
    """The preprocessing of a table, not fitted, for a model of a kind, "linear" or "boosting".

    ``X`` are features as :func:`equipoise.tables.conform` or ``split_target`` give them, or a tuple
    of their columns, where these have been looked at before.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0] * 5, "town": ["Ulm", "Bonn", "Ulm"] * 5})
    >>> made = preprocessor(X).fit(X)
    >>> made.get_feature_names_out().tolist()
    ['age', 'missingindicator_age', 'town_Bonn', 'town_Ulm']
    """
    check_word(kind, "kind", MODEL_KINDS)
    columns = X if isinstance(X, tuple) else columns_of(X)
    numbers = [column.name for column in columns if column.is_numeric]
    texts = [column.name for column in columns if column.is_categorical]
    if not numbers and not texts:
        raise InvalidInputError("The table has no column with any value to learn from.")
    of_numbers: Any = "passthrough"
    of_texts: Any = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        min_frequency=MIN_LEVEL_ROWS,
        max_categories=MAX_BOOSTING_LEVELS,
    )
    if kind == "linear":
        # A column may be empty in the rows of one fold: it is kept, as zeros.
        fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        name = SimpleImputer(strategy="constant", fill_value=MISSING, keep_empty_features=True)
        levels = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=MIN_LEVEL_ROWS,
            max_categories=MAX_LEVELS,
        )
        of_numbers = make_pipeline(fill, StandardScaler())
        of_texts = make_pipeline(name, levels)
    parts = [("numbers", of_numbers, numbers), ("texts", of_texts, texts)]
    return ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)


def booster_for(
    X: Any, *, random_state: int = 0, rarest: int | None = None
) -> HistGradientBoostingClassifier:
    """Gradient boosting, not fitted, of features as ``preprocessor(X, "boosting")`` makes them.

    ``X`` is as in :func:`preprocessor`, ``rarest`` the number of rows of the rarest class: boosting
    of many rows stops early by what it sees in a part that it sets aside, which needs some rows of
    every class.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0], "town": ["Ulm", "Bonn", "Ulm"]})
    >>> booster_for(X, rarest=3)
    HistGradientBoostingClassifier(categorical_features=[1], early_stopping=False,
                                   random_state=0)
    """
    columns = X if isinstance(X, tuple) else columns_of(X)
    first = sum(column.is_numeric for column in columns)
    texts = range(first, first + sum(column.is_categorical for column in columns))
    return HistGradientBoostingClassifier(
        categorical_features=list(texts) or None,
        early_stopping=False if rarest is not None and rarest < _ROWS_TO_STOP_EARLY else "auto",
        random_state=random_state,
    )


def model_for(
    X: Any,
    kind: str = "linear",
    goal: Any = None,
    *,
    C: float = 1.0,
    random_state: int = 0,
    rarest: int | None = None,
) -> Pipeline:
    """A pipeline, not fitted, of the steps ``features`` and ``model``: from a table to classes.

    Parameters
    ----------
    X : pandas.DataFrame
        Features as ``split_target`` gives them.
    kind : {"linear", "boosting"}
        ``RobustLogisticRegression``, or gradient boosting.
    goal : anything that :func:`equipoise.goals.as_goal` takes, optional
        A set of weightings, for one. ``PlugInClassifier`` tunes the decisions for it, those of a
        linear model made for the set as well: by itself that makes cross-entropies small, and not
        errors. A linear model for a single weighting, or for a level that it chooses
        (``LabelCVaR("auto")``), decides as it is.
    C : float
        Inverse strength of the penalty of the linear model.
    random_state : int
        Seed of the booster, and of the folds that decisions are tuned on.
    rarest : int, optional
        For boosting, as in :func:`booster_for`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0, 60.0] * 5, "town": ["Ulm", "Bonn"] * 10})
    >>> model = model_for(X, goal="balanced").fit(X, ["a", "a", "b", "b"] * 5)
    >>> model.predict(X[:4]).tolist()
    ['a', 'a', 'b', 'b']
    """
    columns = columns_of(X)
    features = preprocessor(columns, kind)
    recipe = as_goal(goal)
    is_set = isinstance(recipe, SetGoal)
    given = recipe.uncertainty if is_set else recipe
    model: Any = RobustLogisticRegression(given if is_set else "standard", C=C)
    decides = is_set and (recipe.is_known or alpha_choice(given) is not None)
    if kind == "boosting":
        model = booster_for(columns, random_state=random_state, rarest=rarest)
    if kind == "boosting" or not decides:
        cv = 5 if len(X) <= _MANY_ROWS else 0.2
        model = PlugInClassifier(model, given, cv=cv, rare="keep", random_state=random_state)
    return Pipeline([("features", features), ("model", model)])
