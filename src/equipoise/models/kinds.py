"""What is kept of a fitted estimator, how it is checked, and how the estimator is made again.

Only that is kept which a user can see: fitted attributes, each of a form that is checked when it is
read. What scikit-learn derives from them for itself, and what its compiled code trusts without
looking, is never read from a file. It is made anew, by fitting to a few rows that lead to the same
attributes, or to any rows, where all that predictions depend on can be put in its place.

A form is a word and the lengths of the axes: ``"float m d"`` is an array of finite numbers with
``d`` columns, the number of features, and ``m`` rows, one for two classes and else one per class
(``k``). Lengths of other names are those of the first array that has them. ``?`` allows None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equipoise.decisions import TunedWeights
from equipoise.estimators import PlugInClassifier
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.weights.by_class import ByClass

MAX_FEATURES = 1 << 22
# Values in all the rows that a file may have made up to make its estimators again.
MAX_CELLS = 20_000_000
# What making up any rows costs, in values.
_FIT = 50_000

_WORDS = {"float": "f", "real": "f", "int": "iu", "flag": "b"}
_EVERY = {"n_features_in_": "width?", "feature_names_in_": "names?"}


class Budget:
    """What a file may still cost."""

    def __init__(self) -> None:
        self.cells = MAX_CELLS

    def spend(self, cells: int) -> None:
        """Refuse a file that would have too many rows made up."""
        self.cells -= cells + _FIT
        if self.cells < 0:
            raise InvalidInputError("its estimators are larger than a model can need")


@dataclass(frozen=True)
class Kind:
    """How estimators of one class are kept and made again.

    ``forms`` are those of the fitted attributes, or of what ``keep`` makes of them; ``rebuild`` is
    given an estimator with its parameters, what was kept, checked, and a budget.
    """

    made: Any
    forms: Mapping[str, str]
    keep: Callable[[Any], Mapping[str, Any]] = lambda estimator: {}
    rebuild: Callable[[Any, dict[str, Any], Budget], None] = lambda estimator, kept, budget: None

    def is_fitted(self, estimator: Any) -> bool:
        """Whether there is anything to keep; steps of pipelines keep themselves."""
        return bool(self.forms) and any(name.endswith("_") for name in vars(estimator))

    def kept(self, estimator: Any) -> dict[str, Any]:
        """What is kept of a fitted estimator."""
        check_is_fitted(estimator)
        names = [name for name in (*_EVERY, *self.forms) if hasattr(estimator, name)]
        found = {name: getattr(estimator, name) for name in names}
        return {name: v for name, v in {**found, **self.keep(estimator)}.items() if v is not None}

    def restore(self, estimator: Any, kept: dict[str, Any], budget: Budget) -> None:
        """Make an estimator as fitted again, if what was kept is possible."""
        forms = {**_EVERY, **self.forms}
        sizes: dict[str, int] = {}
        wrong = [name for name in kept if name not in forms]
        wrong += [n for n, form in forms.items() if not _has_form(kept.get(n), form, sizes)]
        if wrong:
            raise InvalidInputError(
                f"its {type(estimator).__name__} cannot have such a value of {wrong[0][:60]!r}"
            )
        known = {name: kept.get(name) for name in forms}
        self.rebuild(estimator, known, budget)
        for name, value in known.items():
            if name.endswith("_") and value is not None:
                setattr(estimator, name, value)


def _has_form(value: Any, form: str, sizes: dict[str, int]) -> bool:
    word, *axes = form.rstrip("?").split()
    if value is None and form.endswith("?"):
        return True
    if word in _WORDS:
        return _is_array(value, word, axes, sizes)
    match word:
        case "width":
            sizes["d"] = value
            return type(value) is int and 0 < value <= MAX_FEATURES
        case "names":
            return _are_distinct(value) and len(value) == sizes.get("d", len(value))
        case "classes":
            k = len(value) if _are_distinct(value) else 0
            sizes |= {"k": k, "m": 1 if k == 2 else k}
            return k >= 2
    return isinstance(value, BaseEstimator) == (word == "estimator")


def _is_array(value: Any, word: str, axes: list[str], sizes: dict[str, int]) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in _WORDS[word]:
        return False
    return (
        value.ndim == len(axes)
        and all(_length(axis, n, sizes) == n for axis, n in zip(axes, value.shape, strict=True))
        and not (word == "float" and not np.all(np.isfinite(value)))
        and not (word == "real" and np.any(np.isnan(value)))
    )


def _length(axis: str, found: int, sizes: dict[str, int]) -> int:
    return int(axis) if axis.isdigit() else sizes.setdefault(axis, found)


def _are_distinct(names: Any) -> bool:
    return isinstance(names, np.ndarray) and names.ndim == 1 and len(set(names)) == len(names)


def check_classes(estimator: Any, kept: dict[str, Any], _budget: Budget) -> None:
    """Refuse values by class that are not those of an estimator's classes."""
    classes = kept["classes_"]
    for name, value in kept.items():
        if isinstance(value, ByClass) and not same(value.classes, classes):
            raise InvalidInputError(f"{name!r} of its {type(estimator).__name__} is impossible")


def same(one: Any, other: Any) -> bool:
    """Whether two arrays hold the same, also where it is missing."""
    return bool(repr(np.asarray(one).tolist()) == repr(np.asarray(other).tolist()))


def take_fitted(estimator: Any, other: Any) -> None:
    """Give an estimator all that another of its class has learnt."""
    learnt = {k: v for k, v in vars(other).items() if k not in other.get_params(deep=False)}
    vars(estimator).update(learnt)


def impossible(estimator: Any) -> InvalidInputError:
    """What is said of attributes that no fit leaves."""
    return InvalidInputError(f"its {type(estimator).__name__} contradicts itself")


# Steps before the classifier


def keep_imputer(imputer: Any) -> dict[str, Any]:
    """Which columns have an indicator beside them."""
    return {"gaps": None if imputer.indicator_ is None else imputer.indicator_.features_}


def rebuild_imputer(imputer: Any, kept: dict[str, Any], budget: Budget) -> None:
    """Fit to a row of the statistics, and one with gaps where an indicator says so."""
    statistics, gaps = kept["statistics_"], kept["gaps"]
    budget.spend(2 * len(statistics))
    rows = np.array([statistics])
    if imputer.strategy == "constant":
        rows = np.full_like(rows, "" if rows.dtype == object else 0)
    if gaps is not None:
        rows = np.concatenate([rows, rows])
        rows[1, gaps] = imputer.missing_values
    imputer.fit(rows)
    found = imputer.indicator_
    if not same(imputer.statistics_, statistics) or not same(
        [] if found is None else found.features_, [] if gaps is None else gaps
    ):
        raise impossible(imputer)


def keep_encoder(encoder: Any) -> dict[str, Any]:
    """Categories, and the positions of those that share a column."""
    grouped = getattr(encoder, "_infrequent_indices", None)
    return {"categories": list(encoder.categories_), "grouped": grouped}


def rebuild_encoder(encoder: Any, kept: dict[str, Any], budget: Budget) -> None:
    """Fit to a table of all categories, with the rare ones as they were found."""
    categories, grouped = kept["categories"], kept["grouped"]
    longest = max(map(len, categories))
    budget.spend(longest * len(categories))
    dtype = np.result_type(*categories)
    rows = np.empty((longest, len(categories)), dtype=object if dtype.kind == "U" else dtype)
    for place, each in enumerate(categories):
        rows[:, place] = np.resize(each, longest)
    if grouped is not None:
        encoder._identify_infrequent = lambda _counts, _rows, place: grouped[place]
    encoder.fit(rows)
    vars(encoder).pop("_identify_infrequent", None)
    if not all(map(same, encoder.categories_, categories)):
        raise impossible(encoder)
    found = getattr(encoder, "infrequent_categories_", None)
    if grouped is not None and (found is None or not all(map(_shares, found, categories, grouped))):
        raise impossible(encoder)
    encoder.categories_ = categories


def _shares(found: Any, categories: Any, grouped: Any) -> bool:
    return grouped is None if found is None else same(found, categories[grouped])


def keep_columns(transformer: Any) -> dict[str, Any]:
    """The fitted transformers by name."""
    fitted = {name: each for name, each, _ in transformer.transformers_}
    parts = {name: fitted[name] for name, each, _ in transformer.transformers if _works(each)}
    return {"parts": parts, "sparse_output": bool(transformer.sparse_output_)}


def _works(transformer: Any) -> bool:
    return not isinstance(transformer, str)


def rebuild_columns(transformer: Any, kept: dict[str, Any], budget: Budget) -> None:
    """Fit to a row, with transformers that are already fitted."""
    given, parts = transformer.transformers, kept["parts"]
    budget.spend(kept["n_features_in_"])
    if {name for name, each, _ in given if _works(each)} != set(parts):
        raise impossible(transformer)
    fitted = [(name, parts.get(name, each), columns) for name, each, columns in given]
    row = _row_of_parts(fitted, kept["feature_names_in_"], kept["n_features_in_"])
    # A frozen estimator is not fitted again.
    transformer.transformers = [
        (n, FrozenEstimator(e) if _works(e) else e, c) for n, e, c in fitted
    ]
    transformer.fit(row)
    transformer.transformers = given
    transformer.transformers_ = [(n, parts.get(n, e), c) for n, e, c in transformer.transformers_]
    transformer.sparse_output_ = kept["sparse_output"]


def _row_of_parts(transformers: Any, names: Any, width: int) -> Any:
    """A row that the transformers of some columns take."""
    row = np.zeros(width, dtype=object)
    place = {} if names is None else {name: i for i, name in enumerate(names)}
    for _, part, columns in transformers:
        if _works(part) and len(columns):
            row[[place.get(column, column) for column in columns]] = example_row(part)[0]
    if names is not None:
        cells = {name: [value] for name, value in zip(names, row, strict=True)}
        return require("pandas", extra="cli").DataFrame(cells)
    return row[None] if any(isinstance(value, str) for value in row) else row[None].astype(float)


def example_row(estimator: Any) -> Any:
    """A row that a fitted estimator takes."""
    if isinstance(estimator, Pipeline):
        return example_row(next(step for _, step in estimator.steps if _works(step)))
    if isinstance(estimator, FrozenEstimator | PlugInClassifier):
        return example_row(vars(estimator).get("estimator_", estimator.estimator))
    width = estimator.n_features_in_
    if isinstance(estimator, ColumnTransformer):
        names = getattr(estimator, "feature_names_in_", None)
        return _row_of_parts(estimator.transformers_, names, width)
    if hasattr(estimator, "categories_"):
        return np.array([[each[0] for each in estimator.categories_]], dtype=object)
    if isinstance(estimator, SimpleImputer) and estimator.statistics_.dtype == object:
        return np.full((1, width), "", dtype=object)
    return np.zeros((1, width))


# Classifiers of ours


def rebuild_plug_in(plug_in: Any, kept: dict[str, Any], _budget: Budget) -> None:
    """Check what was tuned, of which every other attribute is made."""
    tuned = kept["tuned_"]
    sizes: dict[str, int] = {}
    forms = {"classes": "classes", "prior": "float k"}
    forms |= {"fold_weights": "float f k?", "folds": "int n?"}
    # Of tuned weights there is one sum more.
    n_sums = 4 if getattr(tuned, "refit", None) is None else 5
    forms["held_out"] = f"float f {n_sums} k?"
    rule = "float k" if np.ndim(getattr(tuned, "rule", 0)) == 1 else "float k k"
    if not isinstance(tuned, TunedWeights) or not all(
        _has_form(getattr(tuned, name), form, sizes)
        for name, form in {**forms, "rule": rule}.items()
    ):
        raise impossible(plug_in)
    plug_in.classes_ = tuned.classes
    for name in _EVERY:
        if hasattr(kept["estimator_"], name):
            setattr(plug_in, name, getattr(kept["estimator_"], name))


def keep_polynomials(local: Any) -> dict[str, Any]:
    """The rows, which are what such a model consists of."""
    smoother = local._smoother
    rows = {name: getattr(smoother, name) for name in ("points", "weights", "targets")}
    return {**rows, "origin": local._origin}


def rebuild_polynomials(local: Any, kept: dict[str, Any], _budget: Budget) -> None:
    """Check the parameters, and smooth the same rows."""
    width, classes, weights = kept["n_features_in_"], kept["classes_"], kept["weights"]
    local._check_parameters(width)
    right = kept["targets"].shape[1] == len(classes) - 1
    if not (right and np.all(kept["bandwidth_"] > 0) and np.all(weights > 0)):
        raise impossible(local)
    local._origin = kept["origin"]
    # The points are in units of the bandwidth already.
    local._smoother = local._smooth(kept["points"], kept["targets"], weights, np.ones(width))
