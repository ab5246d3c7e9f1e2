"""What is asked of a classifier that another one is made around."""

import inspect
from collections.abc import Mapping
from typing import Any

from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.text import brief

# Parameters by which boosters ask for validation rows for early stopping; those of other libraries
# hold out their own.
_ASKS = {
    "lightgbm": (
        "early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change",
    ),
    "xgboost": ("early_stopping_rounds",),
    "catboost": ("early_stopping_rounds", "od_wait", "od_pval", "od_type"),
}  # fmt: skip
_ASKS_ELSEWHERE = ("early_stopping_round", "early_stopping_rounds")


def check_base(estimator: Any, *, fitted: bool) -> None:
    """Refuse what is not a classifier with probabilities, or not fitted where it should be."""
    if inspect.isclass(estimator) or not hasattr(estimator, "fit"):
        name = estimator.__name__ if inspect.isclass(estimator) else ""
        raise InvalidParameterError(
            f"estimator must be a classifier with fit and predict_proba, got {brief(estimator)}"
            + (f" (did you mean {name}()?)." if name else "; for probabilities use tune_weights.")
        )
    if is_regressor(estimator):
        raise InvalidParameterError(
            f"estimator must be a classifier, got the regressor {type(estimator).__name__}."
        )
    if not (hasattr(estimator, "predict") or hasattr(estimator, "predict_proba")):
        raise InvalidParameterError(
            f"estimator must be a classifier, got {type(estimator).__name__}, which does not "
            "predict: put it before a classifier, as in make_pipeline(StandardScaler(), model)."
        )
    if not hasattr(estimator, "predict_proba"):
        raise InvalidParameterError(
            f"estimator must have predict_proba, which {type(estimator).__name__} does not have: "
            "wrap it in scikit-learn's CalibratedClassifierCV, or set probability=True where it "
            "has that parameter."
        )
    if fitted:
        check_is_fitted(
            estimator,
            "classes_",
            msg="cv='prefit' and FrozenEstimator are for an estimator that is already fitted, and "
            "%(name)s is not: fit it first, or give the plain estimator and a number of folds as "
            "cv.",
        )


def refuse_validation_rows(params: Mapping[str, Any]) -> None:
    """Refuse validation rows for early stopping, which would be the same on every part."""
    for name in params:
        if "eval" in name.split("__")[-1].split("_") or name.endswith("validation_data"):
            raise InvalidInputError(
                f"fit does not take {name}: the same rows would stop the training on every part, "
                "and those of a split cannot be known before. Use an estimator that holds out rows "
                "of its own (early_stopping of HistGradientBoostingClassifier), fix the number of "
                "rounds, or fit it yourself and give FrozenEstimator."
            )


def take_tags(tags: Any, estimator: Any) -> None:
    """Give a classifier the tags of the one that it is around."""
    base = get_tags(estimator)
    tags.input_tags.sparse = base.input_tags.sparse
    tags.input_tags.allow_nan = base.input_tags.allow_nan
    if base.classifier_tags is not None:
        tags.classifier_tags.multi_class = base.classifier_tags.multi_class


def fit_and_split_router(owner: Any, estimator: Any, splitter: Any) -> MetadataRouter:
    """Where metadata of ``fit`` go: to the ``fit`` of an estimator, and to a splitter."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    to_split = MethodMapping().add(caller="fit", callee="split")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    router.add(estimator=estimator, method_mapping=to_fit)
    return router.add(splitter=splitter, method_mapping=to_split)


def takes_gaps(estimator: Any) -> bool:
    """Whether rows may have gaps; of pipelines, which may fill them, only a fit can tell.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> takes_gaps(LogisticRegression()), takes_gaps(Pipeline([("it", LogisticRegression())]))
    (False, True)
    """
    while hasattr(estimator, "estimator"):
        estimator = estimator.estimator
    return isinstance(estimator, Pipeline) or bool(get_tags(estimator).input_tags.allow_nan)


def last_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def last_of(estimator: Any) -> Any:
    """What is trained in the end: inside searches, and the last step of a pipeline."""
    last = last_step(estimator)
    # Of a search, or of a classifier around another.
    return last_of(last.estimator) if hasattr(last, "refit") else last


def library_of(estimator: Any) -> str:
    """The package that an estimator is from."""
    return type(estimator).__module__.split(".")[0]


def stops_early(estimator: Any) -> bool:
    """Whether a booster asks for validation rows for early stopping."""
    last = last_of(estimator)
    known = last.get_params() if hasattr(last, "get_params") else {}
    return any(known.get(name) for name in _ASKS.get(library_of(last), _ASKS_ELSEWHERE))
