"""How much robustness? The level of LabelCVaR by a rule, on held-out rows."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter, process_routing
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import NDArray
from equipoise.decisions import Splitting
from equipoise.decisions.alphas import AlphaChoice
from equipoise.decisions.classifiers import fit_and_split_router, take_tags
from equipoise.decisions.summary import DecisionSummary, Summarised, SummaryTable
from equipoise.decisions.trained import take_fit, unfitted
from equipoise.estimators.adapting import Adaptable
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.linear_paths import fit_level
from equipoise.estimators.logistic import RobustLogisticRegression
from equipoise.estimators.robust_classifier import RobustClassifier
from equipoise.estimators.tuned_decisions import TunedDecisionClassifier
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import LabelCVaR
from equipoise.validation.numbers import check_seed, check_verbosity

_KINDS = (RobustLogisticRegression, TunedDecisionClassifier, RobustClassifier)


@dataclass(eq=False, repr=False)
class RobustnessCV(Adaptable, Summarised, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Choose on held-out rows how robust a classifier is: the level of ``LabelCVaR``.

    The classifier is fitted for levels :math:`\alpha` of ``LabelCVaR``, from 1 (the overall error)
    to the smallest class share (the worst class), and its zero-one class risks :math:`R_\alpha` are
    estimated on held-out rows. One level is chosen and fitted to all rows. Use it where you do not
    know how much overall error the worst class may cost, and choose by a rule:

    - ``"regret"``: the least robust level whose largest regret over all levels, in the formula of
      ``rule``, is within one standard error of the smallest;
    - ``"price"``: the level of the lowest worst-class risk whose overall error is at most ``price``
      points above the smallest ('I give up at most one point');
    - ``"recall"``: the least robust level at which every class has a recall of at least ``recall``.

    Parameters
    ----------
    estimator : RobustLogisticRegression, TunedDecisionClassifier or RobustClassifier
        Its goal is replaced by ``LabelCVaR`` of the chosen level. A ``RobustLogisticRegression`` is
        fitted for every level, with an ``adjustment`` of 0.5 unless it has one; the models of the
        others are trained once, and their decisions tuned for every level.
    rule : {"regret", "price", "recall"}, default="regret"
        With robust risks :math:`V_a` over the sets of all levels, ``"regret"`` takes the smallest
        :math:`\max_a \, (V_a(R_\alpha) - \min_b V_a(R_b))`, or the highest level at which it is
        larger by at most one standard error of the difference, by the jackknife.
    price : float in [0, 100], default=None
        For ``rule="price"``: percentage points above the smallest overall error of all levels, 1
        for 0.01.
    recall : float in (0, 1), default=None
        For ``rule="recall"``: the smallest recall of a class. Where no level reaches it, the level
        that comes closest is chosen, with a warning.
    alphas : array-like of float in (0, 1], default=None
        The levels. By default ten from 1 to the smallest class share, below which the set is that
        of ``WorstClass``.
    cv : int, float, splitter or iterable, default=None
        None is the ``cv`` of the estimator, or 5 where it has none: five folds, stratified and
        shuffled, with equal rows kept together. A float is the share of the rows to hold out; a
        splitter must test no row twice.
    n_jobs : int, default=None
        The number of folds that are fitted at a time; None is the ``n_jobs`` of the estimator.
    random_state : int, RandomState or None, default=None
        None is the ``random_state`` of the estimator, and deterministic where it has none. Seed of
        the folds.
    verbose : int, default=0
        Above 0, a line for each level.

    Attributes
    ----------
    alpha_ : float
        The chosen level.
    best_index_ : int
        Its index in ``path_``.
    path_ : dict of arrays
        Results of each level on held-out rows: ``alpha``, descending; error rates by class,
        ``class_risks`` of shape (n_alphas, n_classes), overall, ``standard_risk``, and of the worst
        class, ``worst_class_risk``; ``largest_regret``, and the standard error of its difference
        from the smallest, ``largest_regret_error``; and limits of intervals of the risks, such as
        ``standard_risk_lower`` and ``standard_risk_upper``, with 95% confidence for all levels
        together, so that they hold for the chosen one.
    estimator_ : estimator
        The classifier, fitted at the chosen level.
    classes_, n_features_in_, feature_names_in_
        Of ``estimator_``.

    Notes
    -----
    A price and a recall hold on the held-out rows; on new rows they hold up to sampling error. With
    known probabilities and 2,000 rows, a tenth of them of the rare class, a price of 1 cost 0.62
    points on average and more than 1.76 in one of twenty tables; a recall of 0.8 was 0.81 on
    average and below 0.75 in one of twenty (``pytest -m slow tests/test_robustness_cv.py`` prints
    these numbers). For a recall with a guarantee use ``RecallFloors`` with a confidence.

    Examples
    --------
    >>> from equipoise import RobustLogisticRegression, RobustnessCV
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> clf = RobustnessCV(RobustLogisticRegression(), rule="price", price=1, cv=3).fit(X, y)
    >>> for name, level in {"plain": 0, "chosen": clf.best_index_}.items():
    ...     path = clf.path_
    ...     overall, worst = path["standard_risk"][level], path["worst_class_risk"][level]
    ...     print(f"{name:6} overall error {overall:.1%}, worst class {worst:.0%}")
    plain  overall error 4.5%, worst class 68%
    chosen overall error 2.1%, worst class 13%
    """

    estimator: Any
    _: KW_ONLY
    rule: str = "regret"
    price: float | None = None
    recall: float | None = None
    alphas: Any = None
    cv: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_tags(tags, self.estimator)
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Evaluate the levels on held-out rows, and fit the estimator at the one that is chosen.

        If anything interrupts the fit, the estimator is left as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Features as the estimator takes them.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, as the estimator takes them.
        **params : dict
            For the estimator's ``fit``, and ``groups`` for the splitter. With metadata routing they
            go to who requested them.
        """
        verbose = check_verbosity(self.verbose)
        choice = AlphaChoice(self.rule, self.price, self.recall, self.alphas, verbose)
        model = self._model()
        to_fit, to_split = self._route(sample_weight, params)
        if isinstance(model, DecidingClassifier):
            model.set_params(goal=LabelCVaR(choice)).fit(X, y, **to_fit)
            model.goal = LabelCVaR(model.alpha_)
        else:
            how = Splitting(self.cv, check_seed(self.random_state), to_split)
            weights = to_fit.get("sample_weight")
            model = fit_level(model, choice, X, y, weights, how, self.n_jobs)
        attributes = {name: model.__dict__.pop(name) for name in ("alpha_", "best_index_", "path_")}
        return take_fit(self, model, classes_=model.classes_, **attributes)

    def _model(self) -> Any:
        """The estimator, not fitted, with the settings that are given here."""
        estimator = self.estimator
        if not isinstance(estimator, _KINDS):
            raise InvalidParameterError(
                "estimator must be a RobustLogisticRegression, a TunedDecisionClassifier or a "
                f"RobustClassifier, got {estimator!r}: wrap another classifier in one of the last "
                "two, and put RobustnessCV at the end of a pipeline."
            )
        deciding = isinstance(estimator, DecidingClassifier)
        if not isinstance(estimator.goal, LabelCVaR | None):
            raise InvalidParameterError(
                "the goal of estimator must be None or LabelCVaR, whose alpha is chosen, got "
                f"{estimator.goal!r}."
            )
        if not deciding:
            return unfitted(estimator)
        settings = {n: getattr(self, n) for n in ("cv", "n_jobs", "random_state")}
        # One that was fitted before would lose that in a clone.
        model = copy(estimator) if estimator._is_fitted_before() else unfitted(estimator)
        return model.set_params(**{n: value for n, value in settings.items() if value is not None})

    def _route(
        self, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the estimator's fit, and what to the splitter of a linear model."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed["estimator"]["fit"]), dict(routed["splitter"]["split"])
        if isinstance(self.estimator, DecidingClassifier):
            return {"sample_weight": sample_weight, **params}, {}
        if strange := set(params) - {"groups"}:
            raise InvalidInputError(
                f"fit takes sample_weight and groups, got {', '.join(sorted(strange))}."
            )
        return {"sample_weight": sample_weight}, params

    def get_metadata_routing(self) -> MetadataRouter:
        """What metadata ``fit`` takes, and where it goes."""
        # The splitter of the others is theirs.
        linear = isinstance(self.estimator, RobustLogisticRegression)
        return fit_and_split_router(self, self._model(), self.cv if linear else None)

    def predict(self, X: Any, *, costs: Any = None) -> NDArray[Any]:
        """The classes that ``estimator_`` decides, by ``costs`` of rows where they are given."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X, costs=costs))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probabilities of ``estimator_``."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """What ``estimator_`` decides by."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def summary(self) -> DecisionSummary | SummaryTable:
        """The summary of ``estimator_``."""
        check_is_fitted(self)
        return self.estimator_.summary()  # type: ignore[no-any-return]

    def to_sklearn(self) -> Any:
        """An ordinary fitted LogisticRegression that predicts as a linear ``estimator_`` does."""
        check_is_fitted(self)
        if isinstance(self.estimator_, DecidingClassifier):
            raise InvalidParameterError(
                "to_sklearn is for a path of RobustLogisticRegression, got one of "
                f"{type(self.estimator_).__name__}, whose decisions no single estimator of "
                "scikit-learn makes: equipoise.onnx.to_onnx exports it."
            )
        return self.estimator_.to_sklearn()
