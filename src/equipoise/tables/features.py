"""From mixed tables to what models read: an ordinary scikit-learn pipeline.

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
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.tables.columns import Column, columns_of

# Levels of fewer rows share one column, and so do those beyond so many.
MIN_LEVEL_ROWS = 5
MAX_LEVELS = 50
# The booster takes 255 categories.
MAX_BOOSTING_LEVELS = 250
MISSING = "(missing)"

FEATURE_KINDS = ("linear", "boosting")


def features_for(frame: Any, kind: str = "linear") -> tuple[ColumnTransformer, tuple[Column, ...]]:
    """The preprocessing of a table and what its columns are.

    Parameters
    ----------
    frame : pandas.DataFrame
        Features as :func:`equipoise.tables.conform` or ``split_target`` give them.
    kind : {"linear", "boosting"}
        The model that reads them.

    Returns
    -------
    transformer : ColumnTransformer, not fitted
    columns : tuple of Column
    """
    columns = columns_of(frame)
    return _transformer(columns, kind), columns


def preprocessor(X: Any, kind: str = "linear") -> ColumnTransformer:
    """The preprocessing of a table: see :func:`features_for`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0] * 5, "town": ["Ulm", "Bonn", "Ulm"] * 5})
    >>> made = preprocessor(X).fit(X)
    >>> made.get_feature_names_out().tolist()
    ['age', 'missingindicator_age', 'town_Bonn', 'town_Ulm']
    """
    return features_for(X, kind)[0]


def boosting_categories(X: Any) -> list[int]:
    """Which columns hold categories after ``preprocessor(X, "boosting")``."""
    columns = columns_of(X)
    first = sum(column.is_numeric for column in columns)
    return list(range(first, first + sum(column.is_categorical for column in columns)))


def _transformer(columns: tuple[Column, ...], kind: str) -> ColumnTransformer:
    if kind not in FEATURE_KINDS:
        names = " or ".join(map(repr, FEATURE_KINDS))
        raise InvalidParameterError(f"kind must be {names}, got {kind!r}.")
    numbers = [column.name for column in columns if column.is_numeric]
    texts = [column.name for column in columns if column.is_categorical]
    if not numbers and not texts:
        raise InvalidInputError("The table has no column with any value to learn from.")
    of_numbers, of_texts = _linear() if kind == "linear" else _boosting()
    parts = [("numbers", of_numbers, numbers), ("texts", of_texts, texts)]
    return ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)


def _linear() -> tuple[Any, Any]:
    # A column may be empty in the rows of one fold: it is kept, as zeros.
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    name = SimpleImputer(strategy="constant", fill_value=MISSING, keep_empty_features=True)
    levels = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=MIN_LEVEL_ROWS,
        max_categories=MAX_LEVELS,
    )
    return make_pipeline(fill, StandardScaler()), make_pipeline(name, levels)


def _boosting() -> tuple[Any, Any]:
    levels = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        min_frequency=MIN_LEVEL_ROWS,
        max_categories=MAX_BOOSTING_LEVELS,
    )
    return "passthrough", levels
