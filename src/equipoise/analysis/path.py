"""Fits along a grid of one hyper-parameter of the set: what more robustness costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from equipoise.arrays import NDArray, Vector
from equipoise.decisions.alphas import alpha_grid
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import InactiveCapsWarning, InvalidParameterError
from equipoise.extras import require
from equipoise.risks import classifier_risks
from equipoise.sets import Uncertainty, as_uncertainty
from equipoise.validation.numbers import check_numbers, check_word

# The hyper-parameters that may vary, in the order in which they are looked for in a recipe: c is
# 1 beside a kappa.
_KNOBS = {"alpha": "alpha", "c": "c", "radius": "radius", "kappa": "c"}
# Values of kappa: from levels that go like the 16th root of the priors, and hardly differ, down to
# 1, which is the worst class whatever c.
_EVEN, _KAPPAS = 16.0, 10


@dataclass(frozen=True)
class RobustPath:
    """What :func:`robust_path` found, one entry per value of the hyper-parameter.

    Attributes
    ----------
    parameter, values : str and ndarray of shape (n_values,)
        The hyper-parameter that moves, and its values in the order they were given.
    classes : ndarray of shape (n_classes,)
        Class names.
    class_risks : ndarray of shape (n_values, n_classes)
        Risk of each class on the evaluation rows; NaN for a class without rows.
    standard_risk, balanced_risk, worst_class_risk : ndarray of shape (n_values,)
        Summaries of the class risks, under the estimator's ``class_prior`` where it has one and
        else under the priors of those rows. A class without rows is left out.
    objective, duality_gap : ndarray of shape (n_values,)
        Training objective and certified gap of each fit.
    caps_bind : ndarray of bool of shape (n_values,)
        False where the bounds of the set do not matter, as at its ends: there the path is flat.
    estimators : tuple of RobustLogisticRegression
        The fits themselves.
    loss : str
        The loss of the risks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> path = robust_path(*load_iris(return_X_y=True), values=[1.0, 0.5])
    >>> path.parameter, list(path.to_dict())[:3]
    ('alpha', ['alpha', 'standard_risk', 'balanced_risk'])
    """

    parameter: str
    values: Vector
    classes: NDArray[Any]
    class_risks: Vector
    standard_risk: Vector
    balanced_risk: Vector
    worst_class_risk: Vector
    objective: Vector
    duality_gap: Vector
    caps_bind: NDArray[np.bool_]
    estimators: tuple[RobustLogisticRegression, ...]
    loss: str = "zero_one"

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns by name: the hyper-parameter, the summaries, and one column per class."""
        names = ("standard_risk", "balanced_risk", "worst_class_risk", "objective", "duality_gap")
        columns = {name: getattr(self, name) for name in (*names, "caps_bind")}
        risks = zip(self.classes.tolist(), self.class_risks.T, strict=True)
        by_class = {f"risk[{name}]": column for name, column in risks}
        return {self.parameter: self.values} | columns | by_class

    def to_frame(self) -> Any:
        """The columns of :meth:`to_dict` as a pandas DataFrame."""
        return require("pandas", extra="report").DataFrame(self.to_dict())


def robust_path(  # noqa: PLR0913  data, what moves, what stays, and how it is evaluated
    X: Any,
    y: Any,
    goal: Uncertainty | str | None = None,
    *,
    values: Sequence[float] | None = None,
    parameter: str | None = None,
    estimator: RobustLogisticRegression | None = None,
    sample_weight: Any = None,
    held_out: tuple[Any, Any] | None = None,
    loss: str = "zero_one",
) -> RobustPath:
    """Fit along a grid of one hyper-parameter of the uncertainty set, each fit warm-started.

    Use it to see the cost of robustness: the standard risk and the risk of the worst class of a
    linear model for every value.

    Parameters
    ----------
    X, y : array-like
        Training rows and labels.
    goal : Uncertainty, default=LabelCVaR(alpha=0.1)
        The recipe whose hyper-parameter varies.
    values : sequence of float, optional
        The values of the hyper-parameter. For a share in (0, 1] the default is ten values from 1
        down to 0.01, evenly spaced on a logarithmic scale; for ``kappa`` ten from 16 down to 1,
        the worst class.
    parameter : str, optional
        The name of the hyper-parameter; by default the recipe's ``alpha``, ``c`` or ``radius``. For
        ``LabelHCVaR`` it can be ``"kappa"``.
    estimator : RobustLogisticRegression, optional
        Settings of the fits (``C``, ``tol``, ``class_prior``, ...); its goal is replaced.
    sample_weight : array-like, optional
        Weights of the training rows.
    held_out : tuple (X, y), optional
        Held-out rows and labels for the risks. By default the risks are those of the training
        rows, which are too low.
    loss : str, default="zero_one"
        The loss in which the risks are measured.

    Examples
    --------
    >>> from equipoise import LabelCVaR
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> path = robust_path(X, y, LabelCVaR(alpha=1.0), values=[1.0, 0.3, 0.1], loss="cross_entropy")
    >>> bool(path.worst_class_risk[0] > path.worst_class_risk[-1])
    True
    """
    recipe = as_uncertainty(goal)
    knob = moved_parameter(recipe) if parameter is None else parameter
    words = tuple(sorted(recipe.get_params(deep=False)))
    if not words:
        raise InvalidParameterError(f"{recipe!r} has no hyper-parameter to move, got {knob!r}.")
    check_word(knob, "parameter", words)
    grid = _grid(knob, values)
    base = RobustLogisticRegression() if estimator is None else clone(estimator)
    fits: list[RobustLogisticRegression] = []
    for value in grid:
        moved = clone(recipe).set_params(**{knob: float(value)})
        fit = copy(fits[-1] if fits else base).set_params(goal=moved, warm_start=True)
        # Values at which no cap binds belong to a path; ``caps_bind`` shows them.
        with warnings.catch_warnings(action="ignore", category=InactiveCapsWarning):
            fit.fit(X, y, sample_weight)
        fits.append(fit.set_params(warm_start=base.warm_start))
    rows, labels, weights = (X, y, sample_weight) if held_out is None else (*held_out, None)
    options = {"loss": loss, "sample_weight": weights, "class_prior": base.class_prior}
    risks = [classifier_risks(fit, rows, labels, **options) for fit in fits]
    names = fits[0].classes_.tolist()
    return RobustPath(
        parameter=knob,
        values=grid,
        classes=fits[0].classes_,
        class_risks=np.array(
            [[fit_risks.get(name, np.nan) for name in names] for fit_risks in risks]
        ),
        standard_risk=np.array([fit_risks.standard() for fit_risks in risks]),
        balanced_risk=np.array([fit_risks.balanced() for fit_risks in risks]),
        worst_class_risk=np.array([fit_risks.worst() for fit_risks in risks]),
        objective=np.array([fit.objective_ for fit in fits]),
        duality_gap=np.array([fit.duality_gap_ for fit in fits]),
        caps_bind=np.array([fit.caps_active_ for fit in fits]),
        estimators=tuple(fits),
        loss=loss,
    )


def moved_parameter(recipe: Uncertainty) -> str:
    """The hyper-parameter that a path moves where none is named."""
    known = recipe.get_params(deep=False)
    knobs = [knob for parameter, knob in _KNOBS.items() if known.get(parameter) is not None]
    if not knobs:
        raise InvalidParameterError(
            f"{recipe!r} has no hyper-parameter to move along (alpha, c, radius): name one "
            "with parameter=."
        )
    return knobs[0]


def _grid(knob: str, values: Sequence[float] | None) -> Vector:
    if values is None and knob in ("alpha", "c"):
        return alpha_grid()
    if values is None and knob == "kappa":
        return np.geomspace(_EVEN, 1.0, _KAPPAS)
    if values is None:
        raise InvalidParameterError(f"values must be given for {knob!r}.")
    if np.ndim(values) != 1 or len(values) == 0:
        raise InvalidParameterError(
            f"values must be a sequence of at least one number, got {values!r}."
        )
    return check_numbers(values, np.arange(len(values)), name="values")
