"""Classifiers of this package as ONNX graphs with the same predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from equipoise.arrays import Matrix, NDArray, Vector, to_numpy
from equipoise.decisions.trained import AveragedTrainings, NumberedClasses
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.population_probabilities import inside
from equipoise.estimators.prediction_sets import PredictionSets
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.goals.labelled_predictions import first_of_equal
from equipoise.onnx import tree_ensembles
from equipoise.onnx.agreement import Original, check_agreement, first_line
from equipoise.onnx.column_steps import (
    GraphColumns,
    InputTable,
    by_columns,
    changes_nothing,
    encoded,
    imputed,
    input_table,
)
from equipoise.onnx.graph import OLD_OPSETS, Graph, texts_or_numbers
from equipoise.onnx.set_steps import SetSteps, set_steps
from equipoise.onnx.tree_ensembles import probabilities_of
from equipoise.validation.numbers import check_word

# Classifiers that are written here, in float64; skl2onnx writes the others.
_TREES = {
    "sklearn.DecisionTreeClassifier": tree_ensembles.forest,
    "sklearn.ExtraTreeClassifier": tree_ensembles.forest,
    "sklearn.RandomForestClassifier": tree_ensembles.forest,
    "sklearn.ExtraTreesClassifier": tree_ensembles.forest,
    "sklearn.GradientBoostingClassifier": tree_ensembles.gradient_boosting,
    "sklearn.HistGradientBoostingClassifier": tree_ensembles.histogram_boosting,
    "lightgbm.LGBMClassifier": tree_ensembles.lightgbm,
    "xgboost.XGBClassifier": tree_ensembles.xgboost,
}
_LINEAR = (
    "sklearn.LogisticRegression",
    "sklearn.LogisticRegressionCV",
    "sklearn.LinearSVC",
    "sklearn.LinearDiscriminantAnalysis",
)


@dataclass(frozen=True, eq=False)
class Member:
    """A classifier, its own steps, its ``classes``, and factors of their probabilities."""

    steps: list[Any]
    head: Any
    classes: NDArray[Any]
    factors: Any = 1.0


@dataclass(frozen=True, eq=False)
class ClassifierParts:
    """Common steps, the classifiers whose probabilities are averaged, and how these decide.

    Without a ``rule`` a single classifier decides by its own scores and the ``shifts`` that are
    added to them; ``factors`` put the probabilities on the scale that the rule is for. ``sets``
    decide instead of the rule where they are given.
    """

    steps: list[Any]
    members: list[Member]
    classes: NDArray[Any]
    rule: Vector | Matrix | None
    has_probabilities: bool
    factors: Any = 1.0
    shifts: Any = 0.0
    sets: SetSteps | None = None


def to_onnx(model: Any, X: Any = None, *, dtype: str = "float64") -> Any:
    """A fitted classifier as an ONNX model with the same predictions.

    The model has the outputs ``label``, as of ``predict``, and ``probabilities``, as of
    ``predict_proba``; a classifier without probabilities has ``scores`` instead, as of
    ``decision_function``. ``PredictionSets`` have the output ``sets`` besides, as of
    ``predict_set``, and their ``label`` never abstains. Floors with ``abstain=True`` have the
    output ``abstained``: where it is true, ``predict`` gives None and not the ``label``. The input
    is ``X`` of shape (n_rows, n_features), with columns in the order of the fit. Where a pipeline
    was fitted to a DataFrame with columns of texts, each column that it uses is an input of its
    own, under its name, of shape (n_rows, 1): texts, or numbers of type ``dtype``.
    ``SerializeToString()`` is what goes into a file.

    Parameters
    ----------
    model : classifier
        One of this package, fitted: a linear model, ``TunedDecisionClassifier``,
        ``RobustClassifier``, ``RobustnessCV``, or ``PredictionSets`` of one split, alone, in a
        pipeline or a search. Columns of texts go through a ``OneHotEncoder`` or
        ``OrdinalEncoder``, mostly in a ``ColumnTransformer``.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows such as those of the fit, on which the ONNX model is compared as well.
    dtype : {"float64", "float32"}, default="float64"
        The type of the numeric inputs. Predictions for float32 rows are those of the classifier
        for ``X.astype("float64")``. (Given float32, some steps of a pipeline compute in float32 and
        round differently. And float64 rows that are rounded to float32 are other rows: near the
        threshold of a tree they may go another way.)

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    Every ONNX model is run and compared with the classifier before it is returned: on rows made up
    from what the fitted model knows (categories, means, thresholds of trees and the numbers beside
    them, missing and unknown values), and on ``X``. Where labels differ, or probabilities by more
    than 1e-5, it is refused with the difference. Rows that the classifier refuses are not compared.

    Linear models, trees, forests and gradient boosting of scikit-learn, LightGBM and XGBoost are
    written in float64 throughout, with the comparisons that they make themselves (forests and
    XGBoost see their rows in float32): probabilities agree up to rounding, and labels unless
    the two largest weighted probabilities are equal up to rounding. (XGBoost adds up in float32: to
    about 1e-6.) Trees in float64 need a runtime of ``ai.onnx.ml`` 5, such as onnxruntime 1.20.

    Encoders and column transformers are written here, too. Other steps of a pipeline, and other
    classifiers, are written by skl2onnx with float64 rows; some of its converters compute in
    float32, and labels may then differ where two weighted probabilities agree to 1e-5. Other
    ensembles of trees are refused: their thresholds would be rounded.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equipoise import TunedDecisionClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.onnx import to_onnx
    >>> X, y = load_thyroid(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=5, max_depth=6, random_state=0)
    >>> clf = TunedDecisionClassifier(forest, "worst_class", cv=3).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool((label == clf.predict(X)).all())
    True
    """
    check_word(dtype, "dtype", ("float64", "float32"))
    parts, n_features = _taken_apart(model), getattr(model, "n_features_in_", None)
    if n_features is None:
        raise InvalidParameterError(
            f"{type(model).__name__} has no n_features_in_, the number of its features: "
            "put it into a Pipeline behind a step that has it, such as a scaler."
        )
    names = getattr(model, "feature_names_in_", None)
    every = [*parts.steps, *parts.members[0].steps, *(each.head for each in parts.members)]
    table = input_table(every, int(n_features), names)
    made = _written(Graph(dtype), parts, table)
    check_agreement(made, Original(model, table, every, parts.rule, dtype), X)
    return made


def _written(graph: Graph, parts: ClassifierParts, table: InputTable) -> Any:
    """The ONNX model of a classifier that was taken apart."""
    names, k = texts_or_numbers(parts.classes), len(parts.classes)
    if names is None:
        raise InvalidParameterError(
            "classes must be texts, whole numbers below 2**63, truth values or floats to be "
            f"written as ONNX, got {parts.classes.tolist()!r}: fit with such names."
        )
    scores, probabilities = _scores_and_probabilities(parts, table.enter(graph))
    if np.any(parts.shifts):
        scores = graph.add("Add", scores, graph.constant(parts.shifts))
    further: dict[str, Any] = {}
    if parts.sets is not None:
        compared = _rescaled(graph, probabilities, parts.sets.factors)
        in_sets, place = parts.sets.write(graph, compared)
        further["sets"] = in_sets, ("bool", k)
        probabilities = _rescaled(graph, probabilities, parts.factors)
    elif parts.rule is not None:
        probabilities = _rescaled(graph, probabilities, parts.factors)
        scores = _weighted(graph, probabilities, parts.rule[..., :k])
        place = graph.add("ArgMax", scores, axis=1, keepdims=0)
        if parts.rule.shape[-1] > k:
            best = graph.add("ReduceMax", scores, axes=[1], keepdims=0)
            least = graph.constant(first_of_equal(parts.rule)[-1])
            further["abstained"] = graph.add("Less", best, least), ("bool",)
    elif k == 2:
        scores = graph.add("Squeeze", scores, graph.constant(np.array([1])))
        place = graph.cast(graph.add("Greater", scores, graph.constant(0.0)), "int64")
    else:
        place = graph.add("ArgMax", scores, axis=1, keepdims=0)
    outputs: dict[str, Any] = {
        "label": (graph.add("Gather", graph.constant(names[0]), place), (names[1],))
    }
    if parts.has_probabilities:
        outputs["probabilities"] = probabilities, ("float64", k)
    else:
        outputs["scores"] = scores, ("float64",) if k == 2 else ("float64", k)
    return graph.model(outputs | further)


def _taken_apart(model: Any) -> ClassifierParts:
    rule = classes = columns = sets = None
    factors: Any = 1.0
    steps, layers = _layers(model)
    head = layers[-1]
    for layer, inner in pairwise(layers):
        if isinstance(layer, DecidingClassifier):
            if rule is None:
                rule, classes = layer.tuned_.rule, layer.classes_
                sets = set_steps(layer) if isinstance(layer, PredictionSets) else None
            elif sets is not None:
                sets = replace(sets, factors=sets.factors * layer.factors_)
            factors = factors * layer.factors_
            columns = np.asarray(getattr(inner, "classes_", classes))
    if rule is None and not isinstance(head, RobustLinearModel):
        raise InvalidParameterError(
            f"model must be a classifier of equipoise, got {type(model).__name__}: "
            "skl2onnx.to_onnx writes those of scikit-learn."
        )
    if isinstance(head, AveragedTrainings):
        members = [
            _member(one, 1 / np.asarray(weights))
            for one, weights in zip(head.estimators, head.class_weights, strict=True)
        ]
        return ClassifierParts(steps, members, np.asarray(classes), rule, True, factors, sets=sets)
    has_probabilities = rule is not None or hasattr(head, "predict_proba")
    shifts: Any = 0.0
    if isinstance(head, RobustLinearModel):
        fitted, head = head, head.to_sklearn()
        if hasattr(fitted, "predict_proba"):
            # Offsets of its decisions do not change its probabilities.
            intercept = to_numpy(fitted.intercept_)
            shifts, head.intercept_ = head.intercept_ - intercept, intercept
    classes = np.asarray(head.classes_ if classes is None else classes)
    member = Member([], head, classes if columns is None else columns)
    return ClassifierParts(steps, [member], classes, rule, has_probabilities, factors, shifts, sets)


def _member(model: Any, factors: Vector) -> Member:
    """One of the classifiers whose probabilities are averaged."""
    steps, (*_, head) = _layers(model)
    head = head.to_sklearn() if isinstance(head, RobustLinearModel) else head
    return Member(steps, head, np.asarray(model.classes_), factors)


def _layers(model: Any) -> tuple[list[Any], list[Any]]:
    """Steps before the innermost classifier, and the classifiers from the outermost on."""
    steps, layers = [], [model]
    while layers[-1] is not None:
        last = layers[-1]
        if isinstance(last, Pipeline):
            steps += [step for _, step in last.steps[:-1]]
        layers.append(last.estimator_ if isinstance(last, NumberedClasses) else inside(last))
    return steps, layers[:-1]


def _scores_and_probabilities(parts: ClassifierParts, features: GraphColumns) -> tuple[str, str]:
    """Scores of rows, of a linear classifier, and probabilities with a column for each class."""
    graph, rows = features.graph, _front(parts.steps, features)
    scores, tables = "", []
    for member in parts.members:
        scores, table = _of_member(member, rows)
        table = _aligned(graph, table, member.classes, parts.classes)
        tables.append(_rescaled(graph, table, member.factors))
    if len(tables) == 1:
        return scores, tables[0]
    mean = graph.add("Div", graph.add("Sum", *tables), graph.constant(np.array(float(len(tables)))))
    return mean, mean


def _of_member(member: Member, features: GraphColumns) -> tuple[str, str]:
    """Scores of rows, of a linear classifier, and its own probabilities."""
    head, graph = member.head, features.graph
    kind = f"{type(head).__module__.split('.')[0]}.{type(head).__name__}"
    rows = _front(member.steps, features)
    if kind in _LINEAR and _is_joint(head):
        coef = np.asarray(head.coef_, float)
        product = graph.add("MatMul", rows.matrix(), graph.constant(coef.T.copy()))
        intercept = np.broadcast_to(np.asarray(head.intercept_, float), len(coef))
        scores = graph.add("Add", product, graph.constant(intercept.copy()))
        return scores, probabilities_of(graph, scores, len(coef))
    if kind in _TREES:
        output = _TREES[kind](graph, head, rows.matrix())
        return output, output
    if not hasattr(head, "predict_proba"):
        raise InvalidParameterError(
            f"{type(head).__name__} has no probabilities and cannot be written as ONNX: use "
            "LinearSVC, or wrap it in scikit-learn's CalibratedClassifierCV."
        )
    model = _converted([head], rows, options={"zipmap": False})
    if any(node.op_type.startswith("TreeEnsemble") for node in model.graph.node):
        raise InvalidParameterError(
            f"{type(head).__name__} cannot be written as ONNX: skl2onnx would write trees in "
            "float32, and rows near a threshold would go another way. Use one of "
            f"{_own_kinds()}."
        )
    output = graph.include(model, 1, rows.matrix())
    return output, output


def _is_joint(head: Any) -> bool:
    """Whether two classes have one logistic score, or more the softmax of theirs."""
    if type(head).__name__ == "LinearSVC":
        return True
    old = getattr(head, "multi_class", "auto")
    if len(head.classes_) == 2:
        return bool(old != "multinomial")
    return old != "ovr" and head.solver != "liblinear"


def _front(steps: list[Any], features: GraphColumns) -> GraphColumns:
    """The rows as the classifier gets them."""
    others: list[Any] = []
    for step in _flattened(steps):
        if isinstance(step, ColumnTransformer):
            features = by_columns(step, _by_skl2onnx(others, features), _front)
        elif isinstance(step, OneHotEncoder | OrdinalEncoder):
            features = encoded(step, _by_skl2onnx(others, features))
        elif isinstance(step, SimpleImputer):
            features = imputed(step, _by_skl2onnx(others, features))
        else:
            others.append(step)
            continue
        others = []
    return _by_skl2onnx(others, features)


def _flattened(steps: list[Any]) -> Iterator[Any]:
    """Steps, and those of pipelines among them, that change anything."""
    for step in steps:
        if isinstance(step, Pipeline):
            yield from _flattened([each for _, each in step.steps])
        elif not changes_nothing(step):
            yield step


def _by_skl2onnx(steps: list[Any], features: GraphColumns) -> GraphColumns:
    """The features behind steps that skl2onnx writes."""
    if not steps:
        return features
    rows = features.matrix()
    model = _converted(steps, features)
    output = features.graph.include(model, 0, rows)
    dims = model.graph.output[0].type.tensor_type.shape.dim
    return GraphColumns(features.graph, dims[1].dim_value if len(dims) > 1 else 1, matrix=output)


def _converted(steps: list[Any], features: GraphColumns, **settings: Any) -> Any:
    """The ONNX model that skl2onnx writes of steps, or of a classifier."""
    skl2onnx = require("skl2onnx", extra="onnx")
    types = require("skl2onnx.common.data_types", extra="onnx")
    named = [(f"step_{place}", step) for place, step in enumerate(steps)]
    kind = types.StringTensorType if features.is_text else types.DoubleTensorType
    width = getattr(steps[0], "n_features_in_", features.width)
    words = " and ".join(type(each).__name__ for each in steps)
    try:
        model = skl2onnx.convert_sklearn(
            Pipeline(named),
            initial_types=[(Graph.rows, kind([None, width]))],
            target_opset=OLD_OPSETS,
            **settings,
        )
    except Exception as error:
        raise InvalidParameterError(
            f"{words} cannot be written as ONNX: skl2onnx says {first_line(error)!r}. Classifiers "
            f"that are: {_own_kinds()}, and those of which skl2onnx knows. A converter that you "
            "register with skl2onnx is used."
        ) from error
    if strange := {each.domain for each in model.opset_import} - set(OLD_OPSETS):
        raise InvalidParameterError(
            f"{words} cannot be written as ONNX: skl2onnx uses operators of {min(strange)!r}, "
            "which are not standard. Use another classifier or step."
        )
    return model


def _own_kinds() -> str:
    return ", ".join(kind.split(".")[1] for kind in (*_LINEAR, *_TREES))


def _aligned(graph: Graph, probabilities: str, known: NDArray[Any], classes: NDArray[Any]) -> str:
    """A column for each class, of zeros for a class that the classifier was not fitted to."""
    if np.array_equal(known, classes):
        return probabilities
    chosen = known[:, None] == classes
    return graph.add("MatMul", probabilities, graph.constant(chosen.astype(np.float64)))


def _rescaled(graph: Graph, probabilities: str, factors: Any) -> str:
    """Probabilities times factors by class, with rows that sum to one; equal ones do nothing."""
    if np.all(factors == np.ravel(factors)[0]):
        return probabilities
    scaled = graph.add("Mul", probabilities, graph.constant(factors))
    ones = graph.constant(np.ones((len(factors), 1)))
    least = graph.constant(np.full((1, 1), np.finfo(np.float64).tiny))
    return graph.add("Div", scaled, graph.add("Max", graph.add("MatMul", scaled, ones), least))


def _weighted(graph: Graph, probabilities: str, rule: Vector | Matrix) -> str:
    """Weighted scores, computed as by :func:`equipoise.goals.labelled_predictions.scores`."""
    if rule.ndim == 1:
        return graph.add("Mul", probabilities, graph.constant(first_of_equal(rule)))
    total = graph.constant(np.zeros((1, len(rule))))
    for place, prices in enumerate(rule):
        column = graph.add("Gather", probabilities, graph.constant(np.array([place])), axis=1)
        total = graph.add("Sub", total, graph.add("Mul", column, graph.constant(prices[None])))
    return total
