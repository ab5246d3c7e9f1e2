r"""What a weighting costs when another one turns out to be right.

Everything is conditional on the labels: given them, the rows of different classes are
independent, and the masses :math:`q'_i p_i` are known numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.decisions import decide
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.losses import as_loss
from equipoise.risks import RiskInterval, class_risks
from equipoise.risks.intervals import binomial_bounds, class_moments, tail_of
from equipoise.risks.population import odds_factors
from equipoise.risks.row_losses import RowLosses, row_losses
from equipoise.text import text_table
from equipoise.validation.labels import Names
from equipoise.validation.numbers import check_word
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.priors import check_prior, masses_of, named_weightings, scaled_weights

_METHOD = "approximate (Clopper-Pearson by class, combined by recovered variances)"


@dataclass(frozen=True, eq=False, repr=False)
class WeightTradeoff:
    """Risks and regrets of classifiers (rows) under weightings (columns).

    Attributes
    ----------
    fitted_for, evaluated_under : tuple of str
        Names of the rows and of the columns.
    classes : ndarray of shape (n_classes,)
        Class names.
    masses : ndarray of shape (n_evaluated_under, n_classes)
        Each class's share :math:`q'_i p_i` of the weighted risk.
    class_risks : ndarray of shape (n_fitted_for, n_classes)
        Share of errors of each classifier in each class.
    risks, regret : ndarray of shape (n_fitted_for, n_evaluated_under)
        Weighted risks, and what they exceed the risk of the column's own classifier by. On a
        finite sample, or with poor probabilities, a regret can be negative.
    rows : tuple of RowLosses
        The errors of each classifier, row by row: what the intervals are made from.

    Examples
    --------
    >>> weight_tradeoff([0, 0, 1, 1], [0.1, 0.3, 0.4, 0.9], {"even": "standard", "rare": (1, 2)})
    risk (regret)
    fitted for  under even  under rare
    even        0.25 (+0)   0.3333 (+0.33)
    rare        0 (-0.25)   0 (+0)
    """

    fitted_for: tuple[str, ...]
    evaluated_under: tuple[str, ...]
    classes: NDArray[Any]
    masses: Matrix
    class_risks: Matrix
    risks: Matrix
    regret: Matrix
    rows: tuple[RowLosses, ...]

    def interval(
        self,
        fitted_for: str,
        evaluated_under: str,
        *,
        regret: bool = False,
        confidence: float = 0.95,
    ) -> RiskInterval:
        r"""A confidence interval for a risk, or for a regret by comparing classifiers in pairs.

        .. math:: \hat\theta - \sqrt{\textstyle\sum_i m_i^2 (\hat\theta_i - l_i)^2}
                  \le \theta \le
                  \hat\theta + \sqrt{\textstyle\sum_i m_i^2 (u_i - \hat\theta_i)^2}

        for :math:`\theta = \sum_i m_i \theta_i`, with :math:`l_i, u_i` exact limits of a class: the
        method of variance estimates recovery.
        """
        check_word(fitted_for, "fitted_for", self.fitted_for)
        check_word(evaluated_under, "evaluated_under", self.evaluated_under)
        tail, rows = tail_of(confidence), self.rows[self.fitted_for.index(fitted_for)]
        if regret:
            matched_rows = self.rows[self.fitted_for.index(evaluated_under)]
            estimate, down, up = _difference(rows, matched_rows, tail)
        else:
            estimate, down, up = _reaches(rows, tail)
        masses = self.masses[self.evaluated_under.index(evaluated_under)]
        middle = float(masses @ estimate)
        lower = max(middle - float(np.linalg.norm(masses * down)), -1.0 if regret else 0.0)
        upper = min(middle + float(np.linalg.norm(masses * up)), 1.0)
        return RiskInterval(middle, lower, upper, confidence, _METHOD)

    def to_dict(self, *, confidence: float = 0.95) -> dict[str, list[Any]]:
        """Columns by name, with one entry for each pair of a classifier and a weighting."""
        pairs = [(row, column) for row in self.fitted_for for column in self.evaluated_under]
        columns: dict[str, list[Any]] = {
            "fitted_for": [row for row, _ in pairs],
            "evaluated_under": [column for _, column in pairs],
        }
        for name in ("risk", "regret"):
            options: Any = {"regret": name == "regret", "confidence": confidence}
            intervals = [self.interval(*pair, **options) for pair in pairs]
            columns[name] = [each.estimate for each in intervals]
            columns[f"{name}_lower"] = [each.lower for each in intervals]
            columns[f"{name}_upper"] = [each.upper for each in intervals]
        return columns

    def to_frame(self, *, confidence: float = 0.95) -> Any:
        """The columns of :meth:`to_dict` as a pandas DataFrame."""
        return require("pandas", extra="cli").DataFrame(self.to_dict(confidence=confidence))

    def __repr__(self) -> str:
        header = ["fitted for", *(f"under {name}" for name in self.evaluated_under)]
        rows = [
            [name, *(f"{r:.4g} ({g:+.2g})" for r, g in zip(risks, regrets, strict=True))]
            for name, risks, regrets in zip(self.fitted_for, self.risks, self.regret, strict=True)
        ]
        return "\n".join(["risk (regret)", *text_table(header, rows, gap="  ")])


def weight_tradeoff(
    y_true: ArrayLike,
    predictions: Any,
    weightings: Any = ("standard", "balanced"),
    *,
    X: Any = None,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
) -> WeightTradeoff:
    r"""Evaluate the classifier fitted for each weighting under every other.

    .. math:: T_{q q'} = R_{q'}(f_q) = \sum_i q'_i p_i R_i(f_q), \qquad
              G_{q q'} = R_{q'}(f_q) - R_{q'}(f_{q'})

    With probabilities, :math:`f_q(x) = \arg\max_i q_i \hat\eta_i(x)`. The diagonal of :math:`T` is
    the risk that was optimised, the regret :math:`G` the cost of the wrong weights.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True class labels of held-out rows.
    predictions : array-like, fitted classifier, or dict by name
        Class probabilities of the rows, of shape (n, n_classes), or (n,) for two classes, which are
        weighted by each weighting. Or a fitted classifier that predicts probabilities for ``X``.
        Or, for each weighting by name, the labels predicted by the classifier fitted for it, or
        that fitted classifier itself, with ``X``; further names are evaluated as well.
    weightings : dict by name, or list
        Each is ``"standard"``, ``"balanced"``, a dict by class or an array in class order.
    X : array-like of shape (n, n_features), optional
        The rows, for fitted classifiers.
    classes : array-like of shape (n_classes,), optional
        The classes in the order of the columns of probabilities. Those of the classifier, or those
        in ``y_true``, sorted, if not given.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    class_prior : dict by class or array, optional
        Class frequencies of the population, where those of the rows differ: weightings count
        relative to these, and odds are carried over from the rows.

    Examples
    --------
    >>> from equipoise.datasets import make_power_imbalance
    >>> X, y, model = make_power_imbalance(2000, p=0.9, random_state=0, return_model=True)
    >>> tradeoff = weight_tradeoff(y, model.predict_proba(X), ["standard", "balanced"])
    >>> tradeoff.evaluated_under, bool(tradeoff.regret[0, 1] > 0.1)
    (('standard', 'balanced'), True)
    >>> bool(tradeoff.interval("standard", "balanced", regret=True).lower > 0)
    True
    """
    if classes is None:
        classes = getattr(predictions, "classes_", None)
    # Predictions without an error: the shares of the classes, every one of which must have rows.
    shares = class_risks(y_true, y_true, classes=classes, sample_weight=sample_weight).prior
    names = shares.classes
    prior = check_prior(shares if class_prior is None else class_prior, names)
    weights = {
        name: scaled_weights(value, prior, names, name=f"weightings[{name!r}]")
        for name, value in named_weightings(weightings).items()
    }
    # What carries the odds over from the rows: a known factor of the weights that decide.
    odds = 1.0 if class_prior is None else odds_factors(np.asarray(shares), prior, names)
    rules = {name: q * odds for name, q in weights.items()}
    rows = {
        name: row_losses(y_true, each, as_loss("zero_one"), names, sample_weight)
        for name, each in _predictions(predictions, X, rules, names, np.shape(y_true)[0]).items()
    }
    risks = np.array([class_moments(each).risks for each in rows.values()])
    masses = masses_of(np.array(list(weights.values())), prior)
    table = risks @ masses.T
    matches = [list(rows).index(name) for name in weights]
    return WeightTradeoff(
        fitted_for=tuple(rows),
        evaluated_under=tuple(weights),
        classes=names,
        masses=masses,
        class_risks=risks,
        risks=table,
        regret=table - table[matches, np.arange(len(matches))],
        rows=tuple(rows.values()),
    )


def _predictions(
    predictions: Any, X: Any, rules: dict[str, Vector], classes: Names, n_rows: int
) -> dict[str, Any]:
    """Predicted labels of every classifier, those of the weightings among them."""
    if isinstance(predictions, Mapping):
        named = {str(name): _predicted(each, "predict", X) for name, each in predictions.items()}
        missing = [name for name in rules if name not in named]
        if missing:
            raise InvalidInputError(
                f"predictions must hold a classifier for each weighting, {missing} has none: got "
                f"{list(named)}."
            )
        return named
    probabilities = as_probabilities(_predicted(predictions, "predict_proba", X))
    if probabilities.shape != (n_rows, len(classes)):
        raise InvalidInputError(
            f"probabilities must have a row for each of {n_rows} labels and a column for each of "
            f"the {len(classes)} classes {classes.tolist()}, got shape {probabilities.shape}; "
            "classes= names the columns where y_true lacks a class."
        )
    return {name: classes[decide(probabilities, rule)] for name, rule in rules.items()}


def _predicted(predictions: Any, method: str, X: Any) -> Any:
    """The predictions themselves, or those of a fitted classifier for the rows."""
    if not hasattr(predictions, method):
        return predictions
    if X is None:
        raise InvalidInputError("X must be given where predictions holds fitted classifiers.")
    return getattr(predictions, method)(X)


def _reaches(rows: RowLosses, tail: float) -> tuple[Vector, Vector, Vector]:
    """Class risks, and how far the exact limits lie below and above them."""
    moments = class_moments(rows)
    lower, upper = binomial_bounds(moments, tail)
    return moments.risks, moments.risks - lower, upper - moments.risks


def _difference(rows: RowLosses, other: RowLosses, tail: float) -> tuple[Vector, Vector, Vector]:
    """As :func:`_reaches`, with two parts in each class: the errors that only one of both makes."""
    a, down_a, up_a = _reaches(replace(rows, losses=rows.losses * (1 - other.losses)), tail)
    b, down_b, up_b = _reaches(replace(rows, losses=other.losses * (1 - rows.losses)), tail)
    # Shares of one sample exclude each other: their estimates are negatively correlated.
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.sqrt(a * b / ((1 - a) * (1 - b)))
    correlation = np.where(np.isfinite(correlation), np.minimum(correlation, 1.0), 0.0)
    down = np.sqrt(down_a**2 + up_b**2 + 2 * correlation * down_a * up_b)
    up = np.sqrt(up_a**2 + down_b**2 + 2 * correlation * up_a * down_b)
    return a - b, down, up
