r"""Probabilities made right on held-out rows, by a temperature and class biases.

.. math:: \eta_i(x) \propto e^{b_i} \, \bigl((1 - \varepsilon) P_i(x) + \varepsilon / k\bigr)^\beta

with the inverse temperature :math:`\beta`, biases :math:`b` and the share :math:`\varepsilon` of
equal probabilities, without which a single zero of a forest would decide. All are fitted by the
cross-entropy on rows that the model was not trained on. The biases also take out every weight that
the training gave the classes, so that :math:`\eta_i / s_i` with the class shares :math:`s` of the
held-out rows are likelihoods of the classes, up to a factor of the row.

Conventions
-----------
``table`` : float64, shape ``(n_rows, n_classes)``, probabilities with columns in class order.
``labels`` : class index of every row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import chi2

from equipoise.arrays import ArrayLike, Indices, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.shift.new_rows import NewRows
from equipoise.text import listing
from equipoise.validation.labels import named_labels
from equipoise.validation.numbers import check_word
from equipoise.validation.predictions import as_probabilities, check_rows
from equipoise.weights.by_class import ByClass

# METHODS: how probabilities are calibrated; "none" takes them as they are.
METHODS = ("bcts", "temperature", "none")
# SMALLEST: the smallest probability, which keeps logarithms finite.
SMALLEST = 1e-12
# FIRST_SHARE: share of equal probabilities from which its fit starts.
FIRST_SHARE = 1e-3
# PENALTY: of squared parameters, in rows: a prior of standard deviation 3 for a bias.
PENALTY = 0.05
# SURELY: p-value of the likelihood-ratio test below which probabilities are called uncalibrated.
SURELY = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedProbabilities:
    """Calibrated probabilities, and the held-out rows that they were calibrated on.

    Attributes
    ----------
    classes : class names.
    temperature : what log-probabilities are divided by; above 1, the model was too confident.
    biases : what is added to the log-probabilities of each class.
    equal_share : the share of equal probabilities that is mixed in.
    class_prior : class frequencies of the held-out rows.
    log_loss : mean cross-entropy of the held-out rows, before and after the calibration.
    table, labels : calibrated probabilities and class indices of the held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.shift import calibrate
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=2000)
    >>> right = 1 / (1 + np.exp(-(2 * y - 1 + rng.normal(size=2000)) * 2))
    >>> too_sure = right**3 / (right**3 + (1 - right) ** 3)
    >>> round(calibrate(y, too_sure).temperature)
    3
    """

    classes: NDArray[np.generic]
    temperature: float
    bias_values: Vector
    equal_share: float
    prior: Vector
    log_loss: tuple[float, float]
    table: Matrix
    labels: Indices

    def __repr__(self) -> str:
        names = listing(self.classes.tolist())
        return f"<CalibratedProbabilities of classes {names}. {self.reliability()}>"

    @property
    def biases(self) -> ByClass:
        return ByClass(self.bias_values, self.classes)

    @property
    def class_prior(self) -> ByClass:
        return ByClass(self.prior, self.classes)

    def probabilities(self, table: Matrix) -> Matrix:
        """Calibrated probabilities, at the class frequencies of the held-out rows."""
        mixed = _mixed(table, self.equal_share)
        return np.asarray(softmax(mixed / self.temperature + self.bias_values, axis=1))

    def likelihoods(self, table: Matrix) -> Matrix:
        """Likelihoods of the classes, the largest of every row scaled to 1."""
        return likelihoods(self.probabilities(table), self.prior)

    def new_rows(self, tables: Iterable[Matrix]) -> NewRows:
        """Rows of a new population, from the model's probabilities of its parts."""
        rows = NewRows.of(np.ones((0, len(self.classes))))
        for table in tables:
            rows = rows.and_also(NewRows.of(self.likelihoods(table)))
        return rows

    @property
    def held_out_likelihoods(self) -> Matrix:
        """Likelihoods of the classes for the held-out rows."""
        return likelihoods(self.table, self.prior)

    @property
    def counts(self) -> Indices:
        """Held-out rows of each class."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @property
    def p_value(self) -> float:
        """Of the likelihood-ratio test that the probabilities were right before."""
        gain = 2 * len(self.labels) * (self.log_loss[0] - self.log_loss[1])
        return float(chi2.sf(max(gain, 0.0), len(self.classes) + 1))

    def reliability(self) -> str:
        """How good the probabilities were before, in a sentence."""
        before, after = self.log_loss
        return (
            f"On {len(self.labels):,} held-out rows the log loss is {before:.3g} as given and "
            f"{after:.3g} calibrated, with the temperature {self.temperature:.3g}."
        )


def check_calibration(value: Any, model: Any = None) -> CalibratedProbabilities:
    """A calibration, for the classes of the model if there is one."""
    if not isinstance(value, CalibratedProbabilities):
        raise InvalidParameterError(
            "calibration must be a CalibratedProbabilities, from calibrate(y, probabilities) or "
            f"the calibration of an estimate, got {type(value).__name__}."
        )
    ours, names = value.classes.tolist(), getattr(model, "classes_", value.classes).tolist()
    if names != ours:
        raise InvalidInputError(
            f"calibration must be for the classes of the model, {listing(names)}, got "
            f"{listing(ours)}."
        )
    return value


def likelihoods(table: Matrix, prior: Vector) -> Matrix:
    """Probabilities at a prior as likelihoods, the largest of every row scaled to 1."""
    ratios = table / prior
    return np.asarray(ratios / ratios.max(axis=1, keepdims=True))


def calibrate(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    method: str = "bcts",
) -> CalibratedProbabilities:
    """Temperature and class biases of probabilities, fitted to held-out rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels of held-out rows, with rows of every class.
    probabilities : array-like of shape (n_rows, n_classes)
        What the model predicts for them, on any scale: weights of the training are taken out. For
        two classes also of shape (n_rows,), of the second.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns, where they are not the sorted labels.
    method : {"bcts", "temperature", "none"}, default="bcts"
        With class biases, without them, or no calibration.

    Returns
    -------
    CalibratedProbabilities

    References
    ----------
    Alexandari, Kundaje and Shrikumar (2020), "Maximum Likelihood with Bias-Corrected Calibration is
    Hard-To-Beat at Label Shift Adaptation".

    Examples
    --------
    >>> from equipoise.shift import calibrate
    >>> calibration = calibrate(["a", "b"] * 50, [[0.9, 0.1], [0.2, 0.8]] * 50)
    >>> calibration.class_prior
    a: 0.5
    b: 0.5
    """
    check_word(method, "method", METHODS)
    names, labels = named_labels(y, classes)
    table = np.maximum(as_probabilities(probabilities, len(names)), SMALLEST)
    check_rows(table, len(labels))
    counts = np.bincount(labels, minlength=len(names))
    if not counts.all():
        raise InvalidInputError(
            f"y must hold rows of every class, got none of {names[counts == 0].tolist()}: its "
            "frequency cannot be estimated. Hold out more rows, or leave the class out of the "
            "model."
        )
    scale, share, biases = 1.0, 0.0, np.zeros(len(names))
    if method != "none":
        scale, share, biases = _fitted(table, labels, biased=method == "bcts")
    before = _loss(np.log(table), labels)
    logits = _mixed(table, share) * scale + biases
    losses, calibrated = (before, _loss(logits, labels)), np.asarray(softmax(logits, axis=1))
    prior = counts / counts.sum()
    return CalibratedProbabilities(
        names, 1 / scale, biases, share, prior, losses, calibrated, labels
    )


def _mixed(table: Matrix, share: float) -> Matrix:
    """Logarithms of probabilities with a share of equal ones mixed in."""
    return np.asarray(np.log((1 - share) * np.maximum(table, SMALLEST) + share / table.shape[1]))


def _loss(logits: Matrix, labels: Indices) -> float:
    rows = log_softmax(logits, axis=1)
    return float(-rows[np.arange(len(labels)), labels].mean())


def _fitted(table: Matrix, labels: Indices, *, biased: bool) -> tuple[float, float, Vector]:
    """The inverse temperature, the share of equal probabilities, and biases of mean zero."""
    n, k = table.shape
    rows, one_hot = np.arange(n), np.zeros((n, k))
    one_hot[rows, labels] = 1.0

    def value_and_gradient(point: Vector) -> tuple[float, Vector]:
        scale, share, biases = np.exp(point[0]), expit(point[1]), point[2:]
        mixture = (1 - share) * table + share / k
        logs = np.log(mixture)
        logits = scale * logs + biases
        residual = (softmax(logits, axis=1) - one_hot) / n
        value = _loss(logits, labels) + PENALTY / n * (point[0] ** 2 + biases @ biases)
        by_scale = scale * np.sum(residual * logs) + 2 * PENALTY / n * point[0]
        by_share = scale * np.sum(residual * (1 / k - table) / mixture) * share * (1 - share)
        by_bias = residual.sum(axis=0) + 2 * PENALTY / n * biases
        return value, np.concatenate([[by_scale, by_share], by_bias if biased else 0 * by_bias])

    start = np.concatenate([[0.0, np.log(FIRST_SHARE)], np.zeros(k)])
    bounds = [(-5, 5), (np.log(SMALLEST), 0), *[(-30, 30)] * k]
    point = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    biases = point[2:] - point[2:].mean()
    return float(np.exp(point[0])), float(expit(point[1])), np.asarray(biases)
