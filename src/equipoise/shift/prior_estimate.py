"""Class frequencies of unlabelled rows, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.decisions.summary import ShownAsTable, SummaryTable
from equipoise.exceptions import EquipoiseWarning, InvalidInputError, warn
from equipoise.goals import as_goal
from equipoise.risks import RiskInterval
from equipoise.sets import PriorBox
from equipoise.shift.adapted import AdaptedClassifier, adapted_to
from equipoise.shift.calibration import (
    METHODS,
    SURELY,
    CalibratedProbabilities,
    calibrate,
    check_calibration,
)
from equipoise.shift.likelihood_errors import LabelledLikelihoods
from equipoise.shift.mixture_test import label_shift_p_value, refuse_indistinct
from equipoise.shift.model_output import is_model, likelihoods_of_rows, probabilities_of_model
from equipoise.shift.new_rows import NewRows
from equipoise.shift.posterior import (
    DRAWS,
    STRENGTHS,
    Draws,
    maximum_likelihood,
    posterior_draws,
)
from equipoise.shift.regions import intervals, joint_ranges
from equipoise.shift.shifted_goals import Region
from equipoise.text import share_text
from equipoise.validation.numbers import (
    check_interval,
    check_number,
    check_numbers,
    check_seed,
    check_word,
)
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior, normalize_weights, weights_of

# ESTIMATORS: the posterior mean; maximum likelihood; and the confusion matrix, solved.
ESTIMATORS = ("posterior", "em", "bbse")
# FEWEST_ROWS: new rows that an estimate needs.
FEWEST_ROWS = 2
# REDRAWS: of the new and the held-out rows, for intervals of methods without a posterior.
REDRAWS = 200
# TEST_LEVEL: p-value below which new rows are said not to be a mixture of the known classes.
TEST_LEVEL = 0.05


@dataclass(frozen=True)
class EstimateSettings:
    """How an estimate is made."""

    method: str
    prior_strength: float | None
    confidence: float
    seed: int


@dataclass(frozen=True, eq=False, repr=False)
class PriorEstimate(ShownAsTable):
    """Class frequencies of a population from which unlabelled rows came.

    Attributes
    ----------
    classes : class names.
    mean : estimated frequency of each class: the mean of the posterior, by which the expected error
        of decisions is the least, as errors are linear in the frequencies.
    lower, upper : ends of an interval for each class, at ``confidence``.
    samples : draws of the frequencies, of shape (n_draws, n_classes).
    class_prior : class frequencies of the held-out rows, for comparison.
    p_value : of the test that the new rows are a mixture of the known classes; nan where the
        probabilities take too few values for a test.
    n_rows : number of new rows.
    calibration : the calibrated probabilities that the estimate is based on.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.shift import estimate_prior
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ill", "well"], [200, 800])
    >>> proba = lambda y: 1 / (1 + np.exp(rng.normal(np.where(y == "ill", -2, 2), 2) - 1.4))
    >>> held_out = np.column_stack([1 - (p := 1 - proba(y)), p])
    >>> new = 1 - proba(np.repeat(["ill", "well"], [500, 500]))
    >>> estimate = estimate_prior(new, held_out=(held_out, y))
    >>> bool(estimate.lower["ill"] < 0.5 < estimate.upper["ill"])
    True
    """

    calibration: CalibratedProbabilities
    rows: NewRows
    draws: Draws
    p_value: float
    settings: EstimateSettings
    model: Any = None

    @property
    def classes(self) -> NDArray[Any]:
        return self.calibration.classes

    @property
    def confidence(self) -> float:
        return self.settings.confidence

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def mean(self) -> ByClass:
        return ByClass(self.draws.mean, self.classes)

    @property
    def samples(self) -> Matrix:
        return self.draws.samples

    @property
    def class_prior(self) -> ByClass:
        return self.calibration.class_prior

    @property
    def lower(self) -> ByClass:
        return ByClass(intervals(self.samples, self.confidence)[0], self.classes)

    @property
    def upper(self) -> ByClass:
        return ByClass(intervals(self.samples, self.confidence)[1], self.classes)

    @property
    def is_mixture(self) -> bool:
        """Whether the test leaves it possible that the new rows are a mixture of the classes."""
        return not self.p_value < TEST_LEVEL

    @property
    def verdict(self) -> str:
        """What the test of the label-shift assumption says, in a sentence."""
        p = f"p = {self.p_value:.2g}"
        if np.isnan(self.p_value):
            return (
                "Whether the new rows are a mixture of the known classes cannot be tested: the "
                "probabilities take too few values."
            )
        if self.is_mixture:
            return (
                f"Nothing shows that the new rows are not a mixture of the known classes ({p}); "
                "a test cannot show that they are."
            )
        return (
            f"The new rows are not a mixture of the known classes ({p}): there is a new class, "
            "rows of a class look different from before, or the model was trained on the held-out "
            "rows, and the frequencies may be wrong."
        )

    def set(self, level: float | None = None) -> PriorBox:
        """A region of frequencies for fits and floors, which holds all classes together.

        Parameters
        ----------
        level : float in (0, 1), default=None
            Share of the draws inside; ``confidence`` by default.

        Returns
        -------
        PriorBox
        """
        share = self.confidence if level is None else check_number(level, "level", "(0, 1)")
        low, high = joint_ranges(self.samples, share)
        return PriorBox(
            dict(zip(self.classes.tolist(), low.tolist(), strict=True)),
            dict(zip(self.classes.tolist(), high.tolist(), strict=True)),
        )

    def weights(self, class_prior: Any = None) -> ByClass:
        """Class weights that turn rows of one population into rows of the new one.

        Parameters
        ----------
        class_prior : dict or array-like of shape (n_classes,), default=None
            Frequencies of the rows to weight; those of the held-out rows by default.
        """
        prior = self.calibration.prior
        if class_prior is not None:
            prior = check_prior(class_prior, self.classes)
        return ByClass(normalize_weights(weights_of(self.draws.mean, prior), prior), self.classes)

    def overall_error(self, class_risks: Any, rows: Any = None) -> RiskInterval:
        """The overall error rate in the new population of a rule with these class risks.

        Parameters
        ----------
        class_risks : dict or array-like of shape (n_classes,)
            Error rate of each class, such as ``class_risks_`` of a fitted classifier.
        rows : dict or array-like of shape (n_classes,), default=None
            Numbers of held-out rows that the class risks are from. The interval then contains
            their uncertainty, by Jeffreys' prior, as well as that of the frequencies; without
            them it takes the class risks as known.
        """
        risks = check_interval(
            check_numbers(class_risks, self.classes, name="class_risks").round(12),
            self.classes,
            "class_risks",
            "[0, 1]",
        )
        value, drawn, method = float(self.draws.mean @ risks), risks, "draws of the frequencies"
        if rows is not None:
            counts = check_interval(
                check_numbers(rows, self.classes, name="rows"), self.classes, "rows", "[0, inf)"
            )
            wrong, right = risks * counts + 0.5, (1 - risks) * counts + 0.5
            rng = np.random.default_rng(self.settings.seed)
            drawn = rng.beta(wrong, right, size=self.samples.shape)
            method += " and class risks"
        low, high = intervals((self.samples * drawn).sum(axis=1)[:, None], self.confidence)
        ends = min(float(low[0]), value), max(float(high[0]), value)
        return RiskInterval(value, *ends, self.confidence, f"approximate ({method})")

    def update(self, more: Any) -> PriorEstimate:
        """The estimate from these rows and more, which are as ``X_new`` was.

        Parameters
        ----------
        more : array-like
            Features where the estimate was made with a model, and else probabilities.
        """
        rows = likelihoods_of_rows(self.model, more, self.calibration)
        joined = self.rows.and_also(rows)
        return replace(self, rows=joined, **_estimated(self.calibration, joined, self.settings))

    def adapt(
        self, goal: Any = None, *, held_out: Any = None, random_state: Any = None
    ) -> AdaptedClassifier:
        """The model, with predictions for the estimated frequencies; it is itself unchanged.

        Decisions for the goal are tuned on the held-out rows of the calibration, as a population of
        the estimated frequencies has them. ``PriorBox`` and ``PriorBall`` are intersected with the
        region of the estimate; other sets, metrics, costs and floors of precisions are for the
        estimated frequencies; floors of recalls hold under any frequencies.

        Parameters
        ----------
        goal : goal, set, metric or None, default=None
            What decisions are for; by default the overall error.
        held_out : tuple (X, y), default=None
            Further labelled rows, which neither the model nor the calibration has used. Needed
            where floors have a confidence.
        random_state : int, RandomState or None, default=None
            Seed of the folds.
        """
        if self.model is None:
            raise InvalidInputError(
                "adapt needs an estimate that was made with a model, got one from probabilities: "
                "use estimate_prior(model, X_new), or rescale_proba and tune_weights."
            )
        shown = None
        if held_out is not None:
            X, y = held_out
            shown = probabilities_of_model(self.model, X), y
        aim = as_goal("accuracy" if goal is None else goal)
        return adapted_to(self, aim, shown, random_state)

    def region(self) -> Region:
        """What is known of the frequencies, for goals."""
        prior, mean = self.calibration.prior, self.draws.mean
        return Region(self.classes, prior, mean, self.samples, self.set())

    @property
    def _table(self) -> SummaryTable:
        columns = self.class_prior, self.mean, self.lower, self.upper
        cells = zip(*(map(share_text, each.values()) for each in columns), strict=True)
        names = map(str, self.classes.tolist())
        rows = [(name, *row) for name, row in zip(names, cells, strict=True)]
        return SummaryTable(("class", "held out", "new", "lower", "upper"), rows)

    def __repr__(self) -> str:
        return f"{self._table!r}\n{self.n_rows:,} new rows. {self.verdict}"


def estimate_prior(  # noqa: PLR0913  rows, held-out rows, and how
    model_or_probabilities: Any,
    X_new: Any = None,
    *,
    held_out: Any = None,
    calibration: str | CalibratedProbabilities | None = "bcts",
    method: str = "posterior",
    prior_strength: float | None = None,
    confidence: float = 0.95,
    random_state: Any = None,
) -> PriorEstimate:
    r"""Class frequencies of the population that unlabelled rows came from.

    The classes must look the same as before, and only their frequencies differ (label shift).
    Probabilities are calibrated on held-out rows; the frequencies are the mean of the posterior

    .. math:: p(\pi \mid x) \propto p(\pi) \prod_r \sum_i \pi_i \eta_i(x_r) / s_i

    with :math:`s` the frequencies of the held-out rows. Intervals contain the error of the
    probabilities that the held-out rows show, as well as that of few new rows.

    Parameters
    ----------
    model_or_probabilities : fitted classifier or Pipeline, or array of shape (n_rows, n_classes)
        A model, or its probabilities for the new rows. Of a model without ``predict_proba``,
        ``decision_function`` is calibrated.
    X_new : array-like, Blocks or Dask collection
        New rows as the model takes them. Out-of-core data are read once, chunk by chunk.
    held_out : tuple (X, y), default=None
        Labelled rows that the model was not trained on, as it takes them; with probabilities, the
        probabilities of these rows and their labels. Not needed with a ``CalibratedProbabilities``.
    calibration : {"bcts", "temperature", None} or CalibratedProbabilities, default="bcts"
        A temperature and class biases; a temperature; none; or a result of :func:`calibrate`.
    method : {"posterior", "em", "bbse"}, default="posterior"
        The posterior mean; the maximum likelihood by expectation maximisation; or the solution of
        the confusion matrix. The last two have bootstrap intervals, which are too short for
        few rows; they are for comparison.
    prior_strength : float, default=None
        How many rows of each class the prior counts for: large is close to equal frequencies. By
        default a mean over five strengths from 0.1 to 10.
    confidence : float in (0, 1), default=0.95
        Probability that an interval holds the frequency of its class.
    random_state : int, RandomState or None, default=None
        Seed of the draws. None is deterministic: the same in every call.

    Returns
    -------
    PriorEstimate

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities".

    Lipton, Wang and Smola (2018), "Detecting and Correcting for Label Shift with Black Box
    Predictors".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.shift import estimate_prior
    >>> X, y = load_thyroid(return_X_y=True)
    >>> model = LogisticRegression(max_iter=5000).fit(X[::2], y[::2])
    >>> half = np.concatenate([np.flatnonzero(y[1::4] == name)[:30] for name in np.unique(y)])
    >>> estimate = estimate_prior(model, X[1::4][half], held_out=(X[3::4], y[3::4]))
    >>> bool(max(estimate.lower.values()) < 1 / 3 < min(estimate.upper.values()))
    True
    """
    check_word(method, "method", ESTIMATORS)
    model = model_or_probabilities if is_model(model_or_probabilities) else None
    if (X_new is None) != (model is None):
        raise InvalidInputError(
            "X_new must be given with a model, and only then: probabilities come as the first "
            f"argument alone, got {'a model' if X_new is None else 'probabilities and X_new'}."
        )
    if prior_strength is not None:
        prior_strength = check_number(prior_strength, "prior_strength", "(0, inf)")
    settings = EstimateSettings(
        method,
        prior_strength,
        check_number(confidence, "confidence", "(0, 1)"),
        check_seed(random_state),
    )
    known = calibrated(model, held_out, calibration)
    refuse_indistinct(known)
    rows = likelihoods_of_rows(model, model_or_probabilities if model is None else X_new, known)
    return PriorEstimate(
        known, rows, **_estimated(known, rows, settings), settings=settings, model=model
    )


def estimate_of_rows(
    calibration: CalibratedProbabilities, rows: NewRows, confidence: float = 0.95, model: Any = None
) -> PriorEstimate:
    """The posterior of rows whose likelihoods are known already."""
    refuse_indistinct(calibration)
    settings = EstimateSettings("posterior", None, confidence, 0)
    results = _estimated(calibration, rows, settings)
    return PriorEstimate(calibration, rows, **results, settings=settings, model=model)


def calibrated(model: Any, held_out: Any, calibration: Any) -> CalibratedProbabilities:
    """The calibration that is given, or one on held-out rows; warns of probabilities far off."""
    if isinstance(calibration, CalibratedProbabilities):
        return check_calibration(calibration, model)
    how = "none" if calibration is None else calibration
    check_word(how, "calibration", METHODS)
    if not isinstance(held_out, tuple | list) or len(held_out) != 2:
        raise InvalidInputError(
            "held_out must be a tuple (X, y) of labelled rows that the model was not trained on, "
            f"got {type(held_out).__name__}: without them nobody knows how right probabilities "
            "are. Or give a calibration, from calibrate(y, probabilities)."
        )
    X, y = held_out
    table = X if model is None else probabilities_of_model(model, X)
    classes = None if model is None else model.classes_
    if how == "none":
        checked = calibrate(y, table, classes=classes)
        if checked.p_value < SURELY:
            warn(
                f"The probabilities are not calibrated. {checked.reliability()} Estimate with "
                "calibration='bcts'.",
                EquipoiseWarning,
            )
    return calibrate(y, table, classes=classes, method=how)


def _estimated(
    calibration: CalibratedProbabilities, rows: NewRows, settings: EstimateSettings
) -> dict[str, Any]:
    """Draws of the frequencies, and the p-value of the test."""
    if rows.n_rows < FEWEST_ROWS:
        raise InvalidInputError(
            f"X_new must have at least {FEWEST_ROWS} rows, got {rows.n_rows}: frequencies are of "
            "many rows."
        )
    rng = np.random.default_rng(settings.seed)
    if settings.method == "posterior":
        draws = _posterior(calibration, rows, settings, rng)
    else:
        draws = _bootstrapped(calibration, rows, settings.method, rng)
    pi = maximum_likelihood(rows.table, rows.counts, pseudo=1 / len(calibration.classes))
    return {"draws": draws, "p_value": label_shift_p_value(calibration, rows, pi)}


def _posterior(
    calibration: CalibratedProbabilities,
    rows: NewRows,
    settings: EstimateSettings,
    rng: np.random.Generator,
) -> Draws:
    k = len(calibration.classes)
    strength = settings.prior_strength
    strengths = STRENGTHS if strength is None else (strength,)
    alphas = np.array([np.full(k, each) for each in strengths])
    held_out = LabelledLikelihoods(calibration.held_out_likelihoods, calibration.labels)
    return posterior_draws(rows, alphas, rng, DRAWS, held_out)


def _bootstrapped(
    calibration: CalibratedProbabilities, rows: NewRows, method: str, rng: np.random.Generator
) -> Draws:
    """An estimate, and those from redrawn rows."""
    counts, n = rows.counts, rows.n_rows
    everything = np.ones(len(calibration.labels))

    def estimate(counts: Any, weights: Vector) -> Vector:
        if method == "em":
            return maximum_likelihood(rows.table, counts)
        return _bbse(calibration, rows, counts, weights)

    redrawn = [
        estimate(rng.multinomial(n, counts / n), rng.exponential(size=len(everything)))
        for _ in range(REDRAWS)
    ]
    return Draws(estimate(counts, everything), np.array(redrawn))


def _bbse(
    calibration: CalibratedProbabilities, rows: NewRows, counts: Any, weights: Vector
) -> Vector:
    """The frequencies whose mixture of the confusion matrix is nearest to the predictions."""
    k, labels = len(calibration.classes), calibration.labels
    predicted = calibration.table.argmax(axis=1)
    table = np.bincount(labels * k + predicted, weights, minlength=k * k).reshape(k, k)
    confusion = table / table.sum(axis=1, keepdims=True)
    ours = (rows.table * calibration.prior).argmax(axis=1)
    shares = np.bincount(ours, counts, minlength=k) / counts.sum()
    solution = np.linalg.lstsq(confusion.T, shares, rcond=None)[0]
    positive = np.maximum(solution, 0.0)
    return np.asarray(positive / positive.sum())
