r"""An alarm when class frequencies change, with a stated rate of false alarms at any time.

A bet on class :math:`j` multiplies its stake for a row by :math:`1 + \rho (s_j(x) / m_j - 1)`, with
the scores :math:`s_j(x) = L_j(x) / \sum_i \pi_i L_i(x)`. At the frequencies :math:`\pi` the scores
have a mean of one if the likelihoods are right, and of at most :math:`m_j` by the held-out rows, so
that no bet gains on average. Bets on more (:math:`\rho > 0`) and on fewer rows of every class are
begun with every batch :math:`t`, at stakes that sum to one over all time, :math:`1 / (t (t + 1))`.
By Ville's inequality all stakes together ever reach :math:`1 / \alpha` with a probability of at
most :math:`\alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.shift.calibration import CalibratedProbabilities, check_calibration
from equipoise.shift.likelihood_errors import LabelledLikelihoods, scores
from equipoise.shift.model_output import likelihoods_of_rows
from equipoise.shift.new_rows import NewRows
from equipoise.shift.posterior import maximum_likelihood
from equipoise.shift.prior_estimate import PriorEstimate, estimate_of_rows
from equipoise.text import listing
from equipoise.validation.numbers import check_count, check_number
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior

# MORE, FEWER: stakes on more rows of a class, and on fewer as shares of the largest stake with
# which no row loses everything.
MORE, FEWER = (0.02, 0.1, 0.4), (0.3, 0.9)
# HELD_OUT_SHARE: of the rate of false alarms, for the error of the held-out rows.
HELD_OUT_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class MonitorStep:
    """What a monitor saw in one batch."""

    n_rows: int
    frequencies: Vector
    log_evidence: float
    alarm: bool


class PriorMonitor:
    """Watches batches of unlabelled rows for a change of the class frequencies.

    Parameters
    ----------
    calibration : CalibratedProbabilities
        From :func:`calibrate`, or ``calibration`` of an estimate.
    model : fitted classifier or Pipeline, default=None
        Batches are rows as it takes them; without a model, they are probabilities.
    class_prior : dict or array-like of shape (n_classes,), default=None
        The frequencies that are expected; those of the held-out rows by default.
    false_alarm : float in (0, 1), default=0.01
        Probability that there is ever an alarm while the frequencies are as expected.
    window : int, default=20
        Number of last batches that the running estimate is from.

    Attributes
    ----------
    alarm : whether there was an alarm.
    alarm_at : number of rows after which it was given; None without one.
    history : list of MonitorStep, one for each batch.

    Notes
    -----
    Rows must be independent. The alarm is also given when rows look different for other reasons
    than their class frequencies, if that moves the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.shift import PriorMonitor, calibrate
    >>> rng = np.random.default_rng(0)
    >>> def batch(share, n):
    ...     y = (rng.random(n) < share).astype(int)
    ...     return y, 1 / (1 + np.exp(-2 * (2 * y - 1 + rng.normal(size=n))))
    >>> monitor = PriorMonitor(calibrate(*batch(0.5, 2_000)))
    >>> for _ in range(20):
    ...     _ = monitor.update(batch(0.5, 100)[1])
    >>> monitor.alarm
    False
    >>> for _ in range(20):
    ...     _ = monitor.update(batch(0.8, 100)[1])
    >>> monitor.alarm
    True
    """

    def __init__(
        self,
        calibration: CalibratedProbabilities,
        model: Any = None,
        *,
        class_prior: Any = None,
        false_alarm: float = 0.01,
        window: int = 20,
    ) -> None:
        self.calibration, self.model = check_calibration(calibration, model), model
        self.false_alarm = check_number(false_alarm, "false_alarm", "(0, 1)")
        self.window = check_count(window, "window")
        prior = calibration.prior
        if class_prior is not None:
            prior = check_prior(class_prior, calibration.classes)
        if not prior.all():
            raise InvalidParameterError(
                f"class_prior must be positive for every class, got {prior.tolist()}: one row of a "
                "class that cannot occur would be proof of a change."
            )
        self.prior = prior
        self._lower, self._upper = self._means()
        self._stakes = np.full(len(prior) * (len(MORE) + len(FEWER)), -np.inf)
        self._batches: list[NewRows] = []
        self.alarm_at: int | None = None
        self.history: list[MonitorStep] = []

    def __repr__(self) -> str:
        names = listing(self.calibration.classes.tolist())
        alarm = f"an alarm after {self.alarm_at:,} rows" if self.alarm else "no alarm"
        return f"<PriorMonitor of classes {names}: {self.n_rows:,} rows, {alarm}>"

    @property
    def alarm(self) -> bool:
        return self.alarm_at is not None

    @property
    def log_limit(self) -> float:
        """The evidence from which there is an alarm, as a logarithm."""
        return float(-np.log(self.false_alarm * (1 - HELD_OUT_SHARE)))

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return sum(step.n_rows for step in self.history)

    @property
    def class_prior(self) -> ByClass:
        """The frequencies that are expected."""
        return ByClass(self.prior, self.calibration.classes)

    def update(self, rows: Any) -> PriorMonitor:
        """Watch a batch of rows: features with a model, and else probabilities.

        Returns
        -------
        self
        """
        batch = likelihoods_of_rows(self.model, rows, self.calibration)
        if not batch.n_rows:
            raise InvalidInputError("rows must hold at least one row, got none: leave it out.")
        values, t = scores(batch.table, self.prior), len(self.history) + 1
        begun = -np.log(t * (t + 1) * len(self._stakes))
        gains = batch.counts @ np.log(self._factors(values))
        self._stakes = np.logaddexp(self._stakes, begun) + gains
        # What is kept for batches to come.
        evidence = float(logsumexp(np.append(self._stakes, -np.log(t + 1))))
        self._batches = [*self._batches, batch][-self.window :]
        recent = self._recent()
        frequencies = maximum_likelihood(recent.table, recent.counts, pseudo=1 / len(self.prior))
        if self.alarm_at is None and evidence >= self.log_limit:
            self.alarm_at = self.n_rows + batch.n_rows
        self.history.append(MonitorStep(batch.n_rows, frequencies, evidence, self.alarm))
        return self

    def estimate(self, confidence: float = 0.95) -> PriorEstimate:
        """The class frequencies of the last batches, with intervals."""
        if not self._batches:
            raise InvalidInputError("The monitor has seen no batch: call update before estimate.")
        return estimate_of_rows(self.calibration, self._recent(), confidence, self.model)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns over time: rows so far, evidence, alarm, and the frequency of each class."""
        rows = np.cumsum([step.n_rows for step in self.history])
        columns: dict[str, list[Any]] = {
            "rows": rows.tolist(),
            "log_evidence": [step.log_evidence for step in self.history],
            "alarm": [step.alarm for step in self.history],
        }
        for i, name in enumerate(self.calibration.classes.tolist()):
            columns[f"frequency[{name}]"] = [float(s.frequencies[i]) for s in self.history]
        return columns

    def _recent(self) -> NewRows:
        rows = self._batches[0]
        for batch in self._batches[1:]:
            rows = rows.and_also(batch)
        return rows

    def _means(self) -> tuple[Vector, Vector]:
        """Bounds of the mean scores at the expected frequencies, by the held-out rows."""
        known = self.calibration
        held_out = LabelledLikelihoods(known.held_out_likelihoods, known.labels)
        mean, covariance = held_out.mean_scores(self.prior)
        tail = self.false_alarm * HELD_OUT_SHARE / (2 * len(self.prior))
        slack = norm.isf(tail) * np.sqrt(np.diag(covariance))
        return np.maximum(mean - slack, np.finfo(float).tiny), mean + slack

    def _factors(self, values: Matrix) -> Matrix:
        """What every bet multiplies its stake by, for each row."""
        above, below = values / self._upper, values / self._lower
        # The largest score of a class is 1 / prior.
        most = 1 / np.maximum(1 / (self.prior * self._lower) - 1, np.finfo(float).tiny)
        more = [1 + rho * (above - 1) for rho in MORE]
        fewer = [1 + share * np.minimum(most, 1.0) * (1 - below) for share in FEWER]
        return np.hstack([*more, *fewer])
