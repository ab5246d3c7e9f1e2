"""From mixed tables to what models read, and on to classes: ordinary scikit-learn pipelines.

========  ==========================================  =======================================
columns   ``"linear"``                                ``"forest"``, ``"boosting"``
========  ==========================================  =======================================
numbers   missing values take the median, and a       as they are; missing values have their
          column says where; scaled to mean 0 and     own branch
          deviation 1
texts     one column of 0 and 1 per level; missing    whole numbers, which the booster reads as
          is a level, rare levels share one           categories if they are more than eight;
                                                      rare levels share one
========  ==========================================  =======================================
"""

from typing import Any, Self

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from equipoise.decisions.summary import FEW_ROWS
from equipoise.estimators import RobustClassifier, RobustLogisticRegression
from equipoise.exceptions import InvalidInputError
from equipoise.goals import SetGoal, as_goal
from equipoise.tables.columns import LARGEST, Column, as_frame, columns_of, conform
from equipoise.validation.numbers import check_word

# MIN_LEVEL_ROWS: rows below which levels of a text share one column. MAX_LEVELS: levels with a
# column of their own, the most frequent ones.
MIN_LEVEL_ROWS = 5
MAX_LEVELS = 50
# MAX_BOOSTING_LEVELS: categories of the booster, which takes 255 and keeps one for gaps.
MAX_BOOSTING_LEVELS = 250
MISSING = "(missing)"

# FOLDED_ROWS, FOLDED_CELLS: rows, and rows times classes, up to which a table has FOLDS folds;
# HELD_OUT: share of the rows held out of larger ones (benchmarks/report_times.py).
FOLDED_ROWS, FOLDED_CELLS = 20_000, 100_000
FOLDS, HELD_OUT = 5, 0.25
# ORDERED_LEVELS: levels up to which a text is read in the order of its levels: splits of categories
# ignore levels of few rows, and cannot find a rare class among them.
ORDERED_LEVELS = 8
# L2: penalty of the leaves of gradient boosting. Without it a class of fewer than 20 rows gets
# leaves of any size, and all others collapse: 81% of the rows of a table of 23 classes were
# misclassified instead of 15%.
L2 = 1.0
MODEL_KINDS = ("linear", "forest", "boosting")


class AsTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Brings tables and arrays into the columns that models read; nothing is fitted.

    Parameters
    ----------
    columns : list of (name, kind)
        As :func:`columns_of` finds them. Those of an array are x0, x1 and so on.

    Examples
    --------
    >>> AsTable([("x0", "number"), ("x1", "text")]).transform([[1, "a"]]).to_dict("list")
    {'x0': [1.0], 'x1': ['a']}
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names."""
        return np.array([name for name, _ in self.columns], dtype=object)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is fitted."""
        return self

    def transform(self, X: Any) -> Any:
        """The columns as numbers and texts, as a DataFrame."""
        return conform(as_frame(X), [Column(name, kind, "") for name, kind in self.columns])


class OrderedForest(RandomForestClassifier):  # type: ignore[misc]
    """A random forest that is grown by all cores, and whose trees are added up in their order.

    A forest that predicts with several threads adds probabilities as they come, and the last digit
    depends on which came first.

    Parameters
    ----------
    n_estimators, random_state, ...
        As in :class:`sklearn.ensemble.RandomForestClassifier`; there is no ``n_jobs``.

    Examples
    --------
    >>> OrderedForest(10, random_state=0).fit([[0], [1], [2], [3]], list("aabb")).predict([[3]])
    array(['b'], dtype='<U1')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees."""
        with parallel_config("threading", n_jobs=-1):
            super().fit(X, y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The mean of the probabilities of all trees."""
        with parallel_config("sequential"):
            return np.asarray(super().predict_proba(X))


def preprocessor(X: Any, kind: str = "linear") -> ColumnTransformer:
    """The preprocessing of a table, not fitted, for a model of one of ``MODEL_KINDS``.

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


def booster_for(X: Any, *, random_state: int = 0) -> HistGradientBoostingClassifier:
    """Gradient boosting, not fitted, of features as ``preprocessor(X, "boosting")`` makes them.

    ``X`` is as in :func:`preprocessor`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None] * 6, "town": list("abcdefghijkl")})
    >>> booster_for(X)
    HistGradientBoostingClassifier(categorical_features=[1], early_stopping=False,
                                   l2_regularization=1.0, random_state=0)
    """
    columns = X if isinstance(X, tuple) else columns_of(X)
    first = sum(column.is_numeric for column in columns)
    texts = enumerate((each for each in columns if each.is_categorical), first)
    many = [index for index, each in texts if each.n_distinct > ORDERED_LEVELS]
    return HistGradientBoostingClassifier(
        categorical_features=many or None,
        # Validation rows for early stopping would have to hold every class.
        early_stopping=False,
        l2_regularization=L2,
        random_state=random_state,
    )


def learner_for(X: Any, kind: str = "linear", *, C: float = 1.0, random_state: int = 0) -> Pipeline:
    """A plain classifier, not fitted: a pipeline of ``table``, ``features`` and ``model``.

    Parameters
    ----------
    X : pandas.DataFrame or array-like of shape (n_rows, n_columns)
        Features: numbers and texts, with missing values; or a tuple of their columns.
    kind : {"linear", "forest", "boosting"}
        Logistic regression, a random forest, or gradient boosting of histograms.
    C : float
        Inverse strength of the penalty of the linear model.
    random_state : int
        Seed of the trees.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0, 60.0] * 5, "town": ["Ulm", "Bonn"] * 10})
    >>> learner_for(X, "forest").fit(X, ["a", "a", "b", "b"] * 5).predict(X[:4]).tolist()
    ['a', 'a', 'b', 'b']
    """
    columns = X if isinstance(X, tuple) else columns_of(as_frame(X))
    table = AsTable([(each.name, each.kind) for each in columns])
    features = preprocessor(columns, kind)
    model: Any = RobustLogisticRegression("standard", C=C)
    if kind == "forest":
        model = OrderedForest(random_state=random_state)
    if kind == "boosting":
        model = booster_for(columns, random_state=random_state)
    return Pipeline([("table", table), ("features", features), ("model", model)])


def plain_pipeline(learner: Pipeline, X: Any = None) -> Any:
    """The same classifier from scikit-learn's steps alone, without those that ``X`` does not need.

    A table whose columns are numbers and texts with gaps of ``nan`` needs no step that brings it
    there, and one of numbers alone no choice of columns. Without ``X`` all steps are kept.

    Examples
    --------
    >>> X = [[1.0], [2.0]] * 10
    >>> plain_pipeline(learner_for(X, "forest"), np.array(X))
    RandomForestClassifier(random_state=0)
    """
    table, features, model = (clone(step) for _, step in learner.steps)
    if isinstance(model, OrderedForest):
        model = RandomForestClassifier(**model.get_params())
    steps = [features, model]
    conforms = X is not None and _conforms(X, table)
    if not conforms:
        steps.insert(0, table)
    elif all(kind == "number" for _, kind in table.columns):
        ((_, numbers, _),) = features.transformers
        steps = [*(numbers if isinstance(numbers, Pipeline) else ()), model]
    return make_pipeline(*steps) if len(steps) > 1 else model


def _conforms(X: Any, table: AsTable) -> bool:
    """Whether rows are numbers and texts already, with gaps of ``nan`` and no infinite values."""
    if isinstance(X, np.ndarray):
        plain = X.dtype.kind in "fiu"
        return plain and not np.any(np.abs(X, dtype=np.float64) > LARGEST)
    if not hasattr(X, "iloc") or not all(isinstance(name, str) for name in X.columns):
        return False
    made = table.transform(X)
    return all(_is_same(X[name], made[name]) for name in made)


def _is_same(raw: Any, made: Any) -> bool:
    """Whether a column of a table is what models read, with gaps of ``nan``."""
    if made.dtype.kind == "f":
        plain = isinstance(raw.dtype, np.dtype) and raw.dtype.kind in "fiu"
        return plain and np.array_equal(raw.to_numpy(np.float64), made.to_numpy(), equal_nan=True)
    has_nan = raw.dtype == object or isinstance(getattr(raw.dtype, "na_value", None), float)
    texts, gaps = raw.dropna().unique(), raw[raw.isna()]
    return (
        has_nan
        and all(isinstance(text, str) for text in texts)
        and not any(gap is None for gap in gaps)
    )


def model_for(
    X: Any,
    kind: str = "linear",
    goal: Any = None,
    *,
    C: float = 1.0,
    cv: Any = FOLDS,
    random_state: int = 0,
) -> Any:
    """A classifier, not fitted, from a table to classes, that serves a goal.

    Parameters
    ----------
    X, kind, C, random_state
        As in :func:`learner_for`. The seed is also that of the folds.
    goal : anything that :func:`equipoise.goals.as_goal` takes, optional
        ``"standard"`` is the plain learner. For others its decisions are tuned, as by
        :class:`~equipoise.RobustClassifier`; for ``"balanced"`` it is trained with balanced class
        weights.
    cv : as in :class:`~equipoise.RobustClassifier`, default=5
        Rows that it is evaluated on.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [31.0, None, 45.0, 60.0] * 5, "town": ["Ulm", "Bonn"] * 10})
    >>> model = model_for(X, goal="balanced").fit(X, ["a", "a", "b", "b"] * 5)
    >>> model.predict(X[:4]).tolist()
    ['a', 'a', 'b', 'b']
    """
    learner = learner_for(X, kind, C=C, random_state=random_state)
    return tuned_for(learner, goal, cv=cv, random_state=random_state)


def tuned_for(learner: Any, goal: Any, *, cv: Any, random_state: int) -> Any:
    """A classifier for a goal, not fitted: the plain one, or a ``RobustClassifier``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> tuned_for(LogisticRegression(), "balanced", cv=5, random_state=0).training
    'balanced'
    """
    recipe = as_goal(goal)
    aim = recipe.uncertainty if isinstance(recipe, SetGoal) else recipe
    word = getattr(aim, "weighting", None)
    if isinstance(word, str) and word == "standard":
        return learner
    training = "balanced" if isinstance(word, str) and word == "balanced" else "plain"
    return RobustClassifier(
        learner,
        aim,
        training=training,
        cv=cv,
        rare_classes="keep",
        min_rows=FEW_ROWS,
        random_state=random_state,
    )


def sampled_model(
    learner: Any, goal: Any, cv: Any, random_state: int, training: Any = None, **sample: Any
) -> Any:
    """A classifier for rows in blocks, not fitted; the plain one keeps its default predictions."""
    made = tuned_for(learner, goal, cv=cv, random_state=random_state)
    if made is learner:
        made = tuned_for(learner, "balanced", cv=cv, random_state=random_state)
        made.set_params(goal="standard", training="plain")
    elif training is not None:
        made.set_params(training=training)
    made.set_params(**sample)
    return made


def folds_for(n_rows: int, n_classes: int) -> int | float:
    """Five folds, or the share of a large table to hold out.

    Examples
    --------
    >>> folds_for(5_000, 3), folds_for(30_000, 7)
    (5, 0.25)
    """
    folded = n_rows <= FOLDED_ROWS or n_rows * n_classes <= FOLDED_CELLS
    return FOLDS if folded else HELD_OUT
