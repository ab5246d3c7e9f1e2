"""The types that a model file may hold, by name: whatever is not listed here is refused.

The list is what the pipelines of :mod:`equipoise.tables.models` are made of. A type belongs here
only if creating it from any attributes runs nothing but its own harmless code; where compiled code
trusts its numbers blindly, :mod:`equipoise.models.sound` checks them as well.
"""

from sklearn._loss._loss import CyHalfBinomialLoss, CyHalfMultinomialLoss

# Loaders of the skops format with the types that each may make. Those that are missing (methods,
# operators, sparse matrices, ...) occur in no model of ours.
_SETS = {
    "ball.PriorBall",
    "box.PriorBox",
    "box.WeightBox",
    "cvar.LabelCVaR",
    "cvar.LabelHCVaR",
    "cvar.WorstClass",
    "hull.WeightHull",
    "point.FixedWeights",
}
_EQUIPOISE = {f"equipoise.sets.{name}" for name in _SETS} | {
    "equipoise.estimators.logistic.RobustLogisticRegression",
    "equipoise.estimators.plug_in.PlugInClassifier",
    "equipoise.risks.intervals.RiskIntervals",
}
_SKLEARN = {
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.compose._column_transformer._RemainderColsList",  # up to scikit-learn 1.6
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.impute._base.MissingIndicator",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.preprocessing._label.LabelEncoder",
}
# Under their own names, which depend on the version of scikit-learn.
_LOSSES = (CyHalfBinomialLoss, CyHalfMultinomialLoss)
_NUMPY_SCALARS = {
    f"numpy.{name}"
    for name in (
        "bool",
        "bool_",
        "float32",
        "float64",
        "int32",
        "int64",
        "str_",
        "uint32",
        "uint64",
    )
}

ALLOWED: dict[str, set[str]] = {
    "ConstructorFromReduceNode": {"equipoise.weights.by_class.ByClass"},
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict"},
    "FunctionNode": {"sklearn.utils.validation.check_array"},
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list"},
    "LossNode": {f"{loss.__module__}.{loss.__name__}" for loss in _LOSSES},
    "NdArrayNode": {"numpy.ndarray"} | _NUMPY_SCALARS,
    "ObjectNode": _EQUIPOISE | _SKLEARN,
    "PartialNode": {"functools.partial"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {"builtins.bool", "builtins.float", "builtins.int", "builtins.str"}
    | _NUMPY_SCALARS,
}

# What skops is told to trust, beside its own defaults.
TRUSTED = sorted(set().union(*ALLOWED.values()))
