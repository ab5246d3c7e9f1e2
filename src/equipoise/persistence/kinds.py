"""What is saved of a fitted estimator, how it is checked, and how the estimator is rebuilt.

Saved are public fitted attributes alone, each in a form that is checked when it is read. What
scikit-learn derives from them, and what its compiled code does not check, is never read from a
file: the estimator is fitted to a few rows with the same columns, classes and categories, and the
saved attributes that predictions depend on replace those of that fit.

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
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import on_host
from equipoise.decisions import TunedWeights
from equipoise.decisions.trained import AveragedTrainings
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.tables import COLUMN_KINDS, AsTable
from equipoise.weights.by_class import ByClass

MAX_FEATURES = 1 << 22
# Spend: called with the number of values in rows to be generated; refuses more than a model needs.
Spend = Callable[[int], None]

_WORDS = {"float": "f", "real": "f", "int": "iu", "flag": "b"}
_EVERY = {"n_features_in_": "width?", "feature_names_in_": "names?"}

LINEAR = {"classes_": "classes", "coef_": "float m d", "intercept_": "float m"}
_MEASURES = "robust_risk_ objective_ lower_bound_ duality_gap_ n_iter_ n_evaluations_ caps_active_"
_RECORDS = "class_prior_ class_risks_ worst_case_masses_ worst_case_weights_ history_"
_LEVEL = dict.fromkeys(("alpha_", "best_index_", "path_"), "plain?")
ROBUST = LINEAR | dict.fromkeys(f"{_MEASURES} {_RECORDS} status_ message_".split(), "plain?")
ROBUST |= _LEVEL | {"decision_offsets_": "plain", "tuned_": "plain?"}
ROBUST_CV = ROBUST | {"C_": "plain", "Cs_": "float v", "goal_values_": "real v"}
SCALER = dict.fromkeys(("mean_", "var_", "scale_"), "float d?") | {"n_samples_seen_": "plain"}


@dataclass(frozen=True)
class Kind:
    """How estimators of one class are saved and rebuilt.

    ``forms`` are those of the fitted attributes, or of the values that ``keep`` derives from them.
    ``rebuild`` takes an estimator with its parameters, the checked values, and a ``Spend``.
    ``check`` refuses parameters that no estimator has.
    """

    made: Any
    forms: Mapping[str, str]
    keep: Callable[[Any], Mapping[str, Any]] = lambda estimator: {}
    rebuild: Callable[[Any, dict[str, Any], Spend], None] = lambda estimator, kept, spend: None
    check: Callable[[Any], None] = lambda estimator: None

    def is_fitted(self, estimator: Any) -> bool:
        """Whether there is anything to save; steps of pipelines are saved by themselves."""
        return bool(self.forms) and any(name.endswith("_") for name in vars(estimator))

    def kept(self, estimator: Any) -> dict[str, Any]:
        """The values to save of a fitted estimator."""
        check_is_fitted(estimator)
        seen = {name: on_host(getattr(estimator, name, None)) for name in (*_EVERY, *self.forms)}
        return {k: v for k, v in {**seen, **self.keep(estimator)}.items() if v is not None}

    def restore(self, estimator: Any, kept: dict[str, Any], spend: Spend) -> None:
        """Rebuild the fitted estimator from saved values, if a fit could have left them."""
        forms, sizes = {**_EVERY, **self.forms}, dict[str, int]()
        wrong = [name for name in kept if name not in forms]
        wrong += [n for n, form in forms.items() if not _has_form(kept.get(n), form, sizes)]
        if wrong:
            raise InvalidInputError(
                f"its {type(estimator).__name__} cannot have such a value of {wrong[0][:60]!r}"
            )
        self.rebuild(estimator, {name: kept.get(name) for name in forms}, spend)
        vars(estimator).update({name: v for name, v in kept.items() if name.endswith("_")})


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
    lengths = zip(axes, value.shape, strict=False)
    return (
        value.ndim == len(axes)
        and all((int(a) if a.isdigit() else sizes.setdefault(a, n)) == n for a, n in lengths)
        and not (word == "float" and not np.all(np.isfinite(value)))
        and not (word == "real" and np.any(np.isnan(value)))
    )


def _are_distinct(names: Any) -> bool:
    return isinstance(names, np.ndarray) and names.ndim == 1 and len(set(names)) == len(names)


def impossible(estimator: Any) -> InvalidInputError:
    """The error about attributes that no fit leaves."""
    return InvalidInputError(f"its {type(estimator).__name__} contradicts itself")


def take_fitted(estimator: Any, other: Any) -> None:
    """Copy the fitted attributes of another estimator of the same class."""
    params = other.get_params(deep=False)
    vars(estimator).update({name: v for name, v in vars(other).items() if name not in params})


# Steps before the classifier

MAX_COLUMNS = 1 << 16


def check_table(table: AsTable) -> None:
    """Refuse columns that are not pairs of a name and a kind, no columns, and too many."""
    columns = table.columns
    if not (
        isinstance(columns, list)
        and 0 < len(columns) <= MAX_COLUMNS
        and all(isinstance(one, tuple) and len(one) == 2 for one in columns)
        and all(type(name) is str and kind in COLUMN_KINDS for name, kind in columns)
        and len({name for name, _ in columns}) == len(columns)
        and any(kind != "empty" for _, kind in columns)
    ):
        raise impossible(table)


IMPUTER = {"statistics_": "plain", "texts": "plain", "gaps": "int g?"}
ENCODER = {"categories": "plain", "grouped": "plain?"}
COLUMNS = {"parts": "plain", "sparse_output_": "plain"}


def keep_imputer(imputer: Any) -> dict[str, Any]:
    """Whether it was fitted to texts, and which columns have a missing-value indicator."""
    indicator = imputer.indicator_
    texts = imputer._fit_dtype.kind == "O"
    return {"texts": texts, "gaps": None if indicator is None else indicator.features_}


def rebuild_imputer(imputer: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Fit to rows with missing values where there are indicators."""
    statistics = kept["statistics_"]
    if statistics.shape != (kept["n_features_in_"],) or statistics.dtype.kind not in "fO":
        raise impossible(imputer)
    spend(2 * len(statistics))
    rows = _nothing(2, len(statistics), texts=kept["texts"])
    if kept["gaps"] is not None:
        rows[1, kept["gaps"]] = imputer.missing_values
    imputer.fit(rows)


def _nothing(n_rows: int, width: int, *, texts: bool) -> Any:
    return np.full((n_rows, width), "", dtype=object) if texts else np.zeros((n_rows, width))


def keep_encoder(encoder: Any) -> dict[str, Any]:
    """Categories, and the positions of those that share a column."""
    grouped = getattr(encoder, "_infrequent_indices", None)
    return {"categories": list(encoder.categories_), "grouped": grouped}


def rebuild_encoder(encoder: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Fit to rows of all categories, with infrequent ones grouped as they were."""
    categories, grouped = kept["categories"], kept["grouped"]
    if grouped is not None:
        encoder._identify_infrequent = lambda _counts, _rows, place: grouped[place]
    encoder.fit(rows_of_levels(categories, spend))
    vars(encoder).pop("_identify_infrequent", None)
    pairs = zip(encoder.categories_, categories, strict=True)
    encoder.categories_ = [refitted.astype(levels.dtype) for refitted, levels in pairs]


def rows_of_levels(categories: list[Any], spend: Spend, n_rows: int = 1) -> Any:
    """A small number of rows that contain all categories of every column."""
    n_rows = max(n_rows, *map(len, categories))
    spend(n_rows * len(categories))
    dtype = np.result_type(*categories)
    rows = np.empty((n_rows, len(categories)), dtype=object if dtype.kind == "U" else dtype)
    for place, levels in enumerate(categories):
        rows[:, place] = np.resize(levels, n_rows)
    return rows


def keep_columns(transformer: Any) -> dict[str, Any]:
    """The fitted transformers by name."""
    fitted = {name: each for name, each, _ in transformer.transformers_}
    names = [name for name, each, _ in transformer.transformers if not isinstance(each, str)]
    return {"parts": {name: fitted[name] for name in names}}


def rebuild_columns(transformer: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Fit to one row, with the fitted transformers frozen."""
    spend(20 * kept["n_features_in_"])
    # A text would say how names are made, and could make them as long as it likes.
    if isinstance(transformer.verbose_feature_names_out, str):
        raise impossible(transformer)
    transformers, parts = transformer.transformers, kept["parts"]
    fitted = [(name, parts.get(name, each), columns) for name, each, columns in transformers]
    row = _row_of_parts(fitted, kept["feature_names_in_"], kept["n_features_in_"])
    frozen = [(n, FrozenEstimator(parts[n]) if n in parts else e, c) for n, e, c in transformers]
    transformer.set_params(transformers=frozen).fit(row).set_params(transformers=transformers)
    transformer.transformers_ = [(n, parts.get(n, e), c) for n, e, c in transformer.transformers_]


def _row_of_parts(transformers: Any, names: Any, width: int) -> Any:
    """A row that the transformers of some columns take."""
    row = np.zeros(width, dtype=object)
    place = {} if names is None else {name: i for i, name in enumerate(names)}
    for _, part, columns in transformers:
        if not isinstance(part, str) and len(columns):
            row[[place.get(column, column) for column in columns]] = example_row(part)[0]
    if names is not None:
        return require("pandas", extra="cli").DataFrame([row], columns=names).infer_objects()
    return row[None] if any(isinstance(value, str) for value in row) else row[None].astype(float)


def example_row(estimator: Any) -> Any:
    """A row that a fitted estimator takes."""
    if isinstance(estimator, Pipeline):
        steps = [s for _, s in estimator.steps if not isinstance(s, str | AsTable)]
        return example_row(next((s for s in steps if hasattr(s, "categories_")), steps[0]))
    if isinstance(estimator, AveragedTrainings):
        return example_row(estimator.estimators[0])
    # A wrapper has the features of the estimator inside, a booster those of its category encoder.
    for name in ("_preprocessor", "estimator_", "estimator"):
        if hasattr(vars(estimator).get(name), "n_features_in_"):
            return example_row(vars(estimator)[name])
    width, names = estimator.n_features_in_, getattr(estimator, "feature_names_in_", None)
    if isinstance(estimator, ColumnTransformer):
        return _row_of_parts(estimator.transformers_, names, width)
    if hasattr(estimator, "categories_"):
        return np.array([[each[0] for each in estimator.categories_]], dtype=object)
    texts = getattr(estimator, "_fit_dtype", np.dtype(np.float64)).kind == "O"
    return _nothing(1, width, texts=texts)


# Classifiers of ours

PLUG_IN = dict.fromkeys(("tuned_", "class_shares_", "training_weights_"), "plain")
PLUG_IN |= {"estimator_": "estimator"} | _LEVEL
SETS = PLUG_IN | {"thresholds_": "plain", "levels_": "plain", "masses_": "plain?"}
SETS |= {"calibration_": "plain"}
PATH = {"estimator_": "estimator"} | _LEVEL


def rebuild_linear(linear: Any, kept: dict[str, Any], _spend: Spend) -> None:
    """Check the offsets that decisions add to the scores."""
    offsets, sizes = kept["decision_offsets_"], {"k": len(kept["classes_"])}
    if (
        not isinstance(offsets, ByClass)
        or not np.array_equal(offsets.classes, kept["classes_"])
        or not _has_form(offsets.to_numpy(), "float k", sizes)
    ):
        raise impossible(linear)


def _rule_forms(k: int) -> tuple[str, ...]:
    """Weights or costs of the classes, or weights of the classes and of abstaining."""
    return "float k", "float k k", f"float {k + 1}"


def rebuild_plug_in(plug_in: Any, kept: dict[str, Any], _spend: Spend) -> None:
    """Check the decision rule; all other attributes follow from ``tuned_``."""
    tuned, sizes = kept["tuned_"], dict[str, int]()
    if (
        not isinstance(tuned, TunedWeights)
        or not _has_form(tuned.classes, "classes", sizes)
        or not any(_has_form(tuned.rule, form, sizes) for form in _rule_forms(sizes["k"]))
        or not _are_frequencies(tuned.prior, sizes)
    ):
        raise impossible(plug_in)
    shares, weights = kept["class_shares_"], kept["training_weights_"]
    for each in (shares, weights):
        if not isinstance(each, ByClass) or not np.array_equal(each.classes, tuned.classes):
            raise impossible(plug_in)
    if (
        not _are_frequencies(shares.to_numpy(), sizes)
        or not _has_form(weights.to_numpy(), "float k", sizes)
        or not weights.to_numpy().min() > 0
    ):
        raise impossible(plug_in)
    plug_in.classes_ = tuned.classes
    inner = {name: getattr(kept["estimator_"], name, None) for name in _EVERY}
    vars(plug_in).update({name: value for name, value in inner.items() if value is not None})


def rebuild_sets(sets: Any, kept: dict[str, Any], spend: Spend) -> None:
    """Check the thresholds, levels and calibration rows beside the decision rule."""
    rebuild_plug_in(sets, kept, spend)
    sizes, rows = {"k": len(kept["tuned_"].classes)}, kept["calibration_"]
    by_class = [kept["thresholds_"], kept["levels_"]]
    by_class += [] if kept["masses_"] is None else [kept["masses_"]]
    if (
        not _has_form(kept["tuned_"].rule, "float k", sizes)
        or not all(isinstance(each, ByClass) for each in by_class)
        or not all(_has_form(each.to_numpy(), "real k", sizes) for each in by_class)
        or not isinstance(rows, dict)
        or set(rows) != {"own", "labels", "fold", "prior"}
        or not _has_form(rows["own"], "float n", sizes)
        or not all(_has_form(rows[name], "int n", sizes) for name in ("labels", "fold"))
        or not _are_frequencies(rows["prior"], sizes)
        or not 0 <= rows["labels"].min(initial=0) <= rows["labels"].max(initial=0) < sizes["k"]
    ):
        raise impossible(sets)
    if kept["masses_"] is None:
        # A goal without a weighting has no such attribute.
        kept.pop("masses_")


def _are_frequencies(shares: Any, sizes: dict[str, int]) -> bool:
    """Whether these are shares of classes in the weight of rows."""
    return (
        _has_form(shares, "float k", sizes)
        and bool(np.all(shares >= 0))
        and bool(np.isclose(shares.sum(), 1))
    )


def check_averaged(averaged: AveragedTrainings) -> None:
    """Refuse models of other classes, and class weights that no training has."""
    sizes, models = dict[str, int](), averaged.estimators
    if not (
        _has_form(averaged.classes, "classes", sizes)
        and isinstance(models, list)
        and all(np.array_equal(getattr(each, "classes_", ()), averaged.classes) for each in models)
        and len({each.n_features_in_ for each in models}) == 1
        and _has_form(averaged.class_weights, f"float {len(models)} k", sizes)
        and np.all(averaged.class_weights > 0)
    ):
        raise impossible(averaged)


def rebuild_path(path: Any, kept: dict[str, Any], _spend: Spend) -> None:
    """Check the estimator, on which predictions depend."""
    inner = kept["estimator_"]
    if not isinstance(inner, type(path.estimator)) or not hasattr(inner, "classes_"):
        raise impossible(path)
    inherited = {name: getattr(inner, name, None) for name in ("classes_", *_EVERY)}
    vars(path).update({name: value for name, value in inherited.items() if value is not None})
