"""A classifier of this package, taken apart and written as a graph that decides as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.decisions.left_out import NumberedClasses, steadied
from equipoise.estimators import RobustPathCV
from equipoise.estimators.plug_in import DecidingClassifier
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.onnx import tree_ensembles
from equipoise.onnx.graph import OLD_OPSETS, Graph, texts_or_numbers
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
_LINEAR = ("sklearn.LogisticRegression", "sklearn.LogisticRegressionCV", "sklearn.LinearSVC")


@dataclass(frozen=True, eq=False)
class ClassifierParts:
    """Steps before a classifier, the classifier, and how its probabilities decide.

    ``columns`` are the classes that it knows, among all ``classes``. Without a ``rule`` it decides
    by its own scores.
    """

    steps: list[Any]
    head: Any
    columns: NDArray[Any]
    classes: NDArray[Any]
    rule: Vector | Matrix | None
    has_probabilities: bool


def to_onnx(model: Any, *, dtype: str = "float64") -> Any:
    """A fitted classifier as an ONNX model, which decides as the classifier does.

    The model has one input ``X`` of shape (n_rows, n_features) and the outputs ``label``, as of
    ``predict``, and ``probabilities``, as of ``predict_proba``; a classifier without probabilities
    has ``scores`` instead, as of ``decision_function``. Its ``SerializeToString()`` is what goes
    into a file.

    Parameters
    ----------
    model : classifier
        One of this package, fitted, with numeric columns: a linear model, ``PlugInClassifier``,
        ``RobustClassifier`` or ``RobustPathCV``, alone, in a pipeline or a search.
    dtype : {"float64", "float32"}, default="float64"
        The type of ``X``, whose columns are in the order of the fit. Rows in float32 are answered
        as the classifier answers ``X.astype("float64")``. (Given float32, some steps of a pipeline
        compute in float32 and round differently. And float64 rows that are rounded to float32 are
        other rows: near the threshold of a tree they may go another way.)

    Returns
    -------
    onnx.ModelProto

    Notes
    -----
    Linear models, trees, forests and gradient boosting of scikit-learn, LightGBM and XGBoost are
    written in float64 throughout, with the comparisons that they make themselves (forests and
    XGBoost see their rows in float32): probabilities agree up to rounding, and labels wherever the
    two largest weighted probabilities are not equal up to rounding. (XGBoost adds up in float32: to
    about 1e-6.) Trees in float64 need a runtime of ``ai.onnx.ml`` 5, such as onnxruntime 1.20.

    Steps of a pipeline, and other classifiers, are written by skl2onnx with float64 rows; some of
    its converters compute in float32, and labels may then differ where two weighted probabilities
    agree to 1e-6. Other ensembles of trees are refused: their thresholds would be rounded.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equipoise import PlugInClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.onnx import to_onnx
    >>> X, y = load_thyroid(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=5, max_depth=6, random_state=0)
    >>> clf = PlugInClassifier(forest, "worst-class", cv=3).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X})
    >>> bool((label == clf.predict(X)).all())
    True
    """
    check_word(dtype, "dtype", ("float64", "float32"))
    parts, n_features = _taken_apart(model), getattr(model, "n_features_in_", None)
    names = texts_or_numbers(parts.classes)
    if names is None:
        raise InvalidParameterError(
            f"classes must be texts, whole numbers, truth values or floats to be written as ONNX, "
            f"got {parts.classes.tolist()!r}: fit with such names."
        )
    if n_features is None:
        raise InvalidParameterError(
            f"{type(model).__name__} does not say how many features it was fitted with "
            "(n_features_in_): put it into a Pipeline behind a step that does, such as a scaler."
        )
    graph, k = Graph(), len(parts.classes)
    scores, probabilities = _scores_and_probabilities(graph, parts, int(n_features))
    if parts.rule is not None:
        probabilities = _aligned(graph, probabilities, parts)
        scores = _weighted(graph, probabilities, parts.rule)
        place = graph.add("ArgMax", scores, axis=1, keepdims=0)
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
    made = graph.model(int(n_features), dtype, outputs)
    _try(made, parts)
    return made


def _try(made: Any, parts: ClassifierParts) -> None:
    """Refuse what a runtime does not take: some of its operators are there for float32 alone."""
    runtime = require("onnxruntime", extra="onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    given = made.SerializeToString()
    try:
        runtime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        words = ", ".join(type(each).__name__ for each in (*parts.steps, parts.head))
        raise InvalidParameterError(
            f"{words} cannot be run as ONNX in float64: onnxruntime says {_first_line(error)!r}. "
            "Do that step before, or use another one."
        ) from error


def _taken_apart(model: Any) -> ClassifierParts:
    steps: list[Any] = []
    rule = classes = columns = None
    head = model
    while (inside := _inside(head)) is not None:
        if isinstance(head, Pipeline):
            steps += [step for _, step in head.steps[:-1]]
        elif isinstance(head, DecidingClassifier):
            if rule is None:
                rule, classes = head.tuned_.rule, head.classes_
            columns = np.asarray(getattr(inside, "classes_", classes))
        head = inside
    if rule is None and not isinstance(head, RobustLinearModel):
        raise InvalidParameterError(
            f"model must be a classifier of equipoise, got {type(model).__name__}: "
            "skl2onnx.to_onnx writes those of scikit-learn."
        )
    has_probabilities = rule is not None or hasattr(head, "predict_proba")
    if isinstance(head, RobustLinearModel):
        head = head.to_sklearn()
    classes = np.asarray(head.classes_ if classes is None else classes)
    columns = classes if columns is None else columns
    return ClassifierParts(steps, head, columns, classes, rule, has_probabilities)


def _inside(model: Any) -> Any:
    """What decides inside of a classifier around others; None of one that is not."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if isinstance(model, RobustPathCV | DecidingClassifier):
        check_is_fitted(model)
        return model.estimator_
    if isinstance(model, NumberedClasses):
        return model.estimator_
    return getattr(model, "best_estimator_", None)


def _scores_and_probabilities(
    graph: Graph, parts: ClassifierParts, n_features: int
) -> tuple[str, str]:
    """What the classifier says of rows: scores, where it is linear, and probabilities."""
    head = parts.head
    kind = f"{type(head).__module__.split('.')[0]}.{type(head).__name__}"
    if kind in _LINEAR and _is_joint(head):
        rows = _front(graph, parts.steps, n_features)
        product = graph.add("MatMul", rows, graph.constant(np.asarray(head.coef_, float).T.copy()))
        intercept = np.broadcast_to(np.asarray(head.intercept_, float), len(head.coef_))
        scores = graph.add("Add", product, graph.constant(intercept.copy()))
        return scores, probabilities_of(graph, scores, len(head.coef_))
    if kind in _TREES:
        found = _TREES[kind](graph, head, _front(graph, parts.steps, n_features))
        return found, found
    if not hasattr(head, "predict_proba"):
        raise InvalidParameterError(
            f"{type(head).__name__} has no probabilities and cannot be written as ONNX: use "
            "LinearSVC, or wrap it in scikit-learn's CalibratedClassifierCV."
        )
    model = _converted([*parts.steps, head], n_features, head, options={"zipmap": False})
    if any(node.op_type.startswith("TreeEnsemble") for node in model.graph.node):
        raise InvalidParameterError(
            f"{type(head).__name__} cannot be written as ONNX: skl2onnx would write trees in "
            "float32, and rows near a threshold would go another way. Use one of "
            f"{_own_kinds()}."
        )
    found = graph.include(model, 1)
    return found, found


def _is_joint(head: Any) -> bool:
    """Whether two classes have one logistic score, or more the softmax of theirs."""
    if type(head).__name__ == "LinearSVC":
        return True
    old = getattr(head, "multi_class", "auto")
    if len(head.classes_) == 2:
        return bool(old != "multinomial")
    return old != "ovr" and head.solver != "liblinear"


def _front(graph: Graph, steps: list[Any], n_features: int) -> str:
    """The rows as the classifier gets them."""
    if not steps:
        return graph.rows
    return graph.include(_converted(steps, n_features, steps), 0)


def _converted(steps: list[Any], n_features: int, of: Any, **settings: Any) -> Any:
    """What skl2onnx makes of the steps of a pipeline."""
    skl2onnx = require("skl2onnx", extra="onnx")
    types = require("skl2onnx.common.data_types", extra="onnx")
    named = [(f"step_{place}", step) for place, step in enumerate(steps)]
    rows = [(Graph.rows, types.DoubleTensorType([None, n_features]))]
    try:
        return skl2onnx.convert_sklearn(
            Pipeline(named),
            initial_types=rows,
            target_opset=OLD_OPSETS,
            custom_conversion_functions={SimpleImputer: _impute},
            **settings,
        )
    except Exception as error:
        listed = of if isinstance(of, list) else [of]
        words = " and ".join(type(each).__name__ for each in listed)
        raise InvalidParameterError(
            f"{words} cannot be written as ONNX: skl2onnx says {_first_line(error)!r}. Classifiers "
            f"that are: {_own_kinds()}, and those of which skl2onnx knows; numeric columns alone, "
            "chosen by their place. A converter that you register with skl2onnx is used."
        ) from error


def _impute(scope: Any, operator: Any, container: Any) -> None:
    """Fill missing values in float64, for which runtimes have no operator of their own."""
    model, rows = operator.raw_operator, operator.inputs[0].full_name
    filled = np.asarray(model.statistics_, dtype=np.float64)
    if model.add_indicator or not np.isnan(model.missing_values) or np.isnan(filled).any():
        raise ValueError("SimpleImputer with nan for missing, some values, and no indicators alone")
    constant, missing = map(scope.get_unique_variable_name, ("filled", "missing"))
    double = require("onnx", extra="onnx").TensorProto.DOUBLE
    container.add_initializer(constant, double, [1, len(filled)], filled.tolist())
    names = map(scope.get_unique_operator_name, ("IsNaN", "Where"))
    container.add_node("IsNaN", rows, missing, name=next(names))
    found = operator.outputs[0].full_name
    container.add_node("Where", [missing, constant, rows], found, name=next(names))


def _own_kinds() -> str:
    return ", ".join(kind.split(".")[1] for kind in (*_LINEAR, *_TREES))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200]


def _aligned(graph: Graph, probabilities: str, parts: ClassifierParts) -> str:
    """A column for each class, of zeros for one that the classifier has never seen."""
    if np.array_equal(parts.columns, parts.classes):
        return probabilities
    chosen = parts.columns[:, None] == parts.classes
    return graph.add("MatMul", probabilities, graph.constant(chosen.astype(np.float64)))


def _weighted(graph: Graph, probabilities: str, rule: Vector | Matrix) -> str:
    """What decides, computed as :func:`equipoise.decisions.left_out.scores` does."""
    if rule.ndim == 1:
        return graph.add("Mul", probabilities, graph.constant(steadied(rule)))
    total = graph.constant(np.zeros((1, len(rule))))
    for place, prices in enumerate(rule):
        column = graph.add("Gather", probabilities, graph.constant(np.array([place])), axis=1)
        total = graph.add("Sub", total, graph.add("Mul", column, graph.constant(prices[None])))
    return total
