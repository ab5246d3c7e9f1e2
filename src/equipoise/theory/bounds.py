r"""Bounds of the robust risk of every classifier in a class, one function a theorem.

With :math:`m_i = q_i p_i` the mass of class ``i``, :math:`M` the set of masses, ``k`` classes and
:math:`1 - \delta` the confidence, every bound is a maximum over :math:`M`:

.. math::

    R_Q(f) \leq \max_{m \in M} \sum_i m_i (s_i \hat{R}_i(f) + w_i)
    \quad\text{for all } f \in \mathcal{F}, \qquad
    R_Q(\hat{f}) - \min_{f \in \mathcal{F}} R_Q(f) \leq 2 \max_{m \in M} \sum_i m_i w_i

where :math:`\hat{f}` has the smallest empirical robust risk in :math:`\mathcal{F}`. The loss is the
margin loss, whose values lie in the unit interval.

===============  ===========  ============================================  =====================
theorem          :math:`s_i`  complexity term of :math:`w_i`                deviation term
===============  ===========  ============================================  =====================
iid              p'_i / p_i   4k E[p'_i / p_i Rad_i]                        sqrt(L / (2 n)) / p_i
iid, C / sqrt n  p'_i / p_i   4k C / sqrt(p_i n)                            sqrt(L / (2 n)) / p_i
conditional      1            4k E[Rad_i]                                   sqrt(L / (2 n_i))
===============  ===========  ============================================  =====================

with :math:`p'` the shares in the sample, Rad_i the complexity of :math:`\Pi_1(\mathcal{F})` on the
rows of class ``i``, and :math:`L = \log(k / \delta)`. Excess risks have 8k instead of 4k.

Departures from the paper, each for the sake of a proof:

* conditional sampling has 4k :math:`\mathfrak{R}(\Pi_1(\mathcal{F}))`, as its lemmas have it;
* excess risks need deviations on both sides, so that :math:`L = \log(2k / \delta)`. The paper's
  two-sided lemma has no 2, and one toss of a fair coin refutes it;
* complexities that were computed on the sample, and not expected, cost
  :math:`3 \sqrt{\log(2 \cdot)}` instead of :math:`\sqrt{\log(\cdot)}` (Mohri et al., 2012, second
  bound of Theorem 3.1). This is the default, because it is what can be computed.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Theorem 1, Corollary 2 and Appendix D.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import MassSet, as_uncertainty
from equipoise.theory.rademacher import contracted
from equipoise.theory.risk_bound import Kind, RiskBound
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior

_THEOREM = {"iid": "Theorem 1", "rate": "Corollary 2", "conditional": "Appendix D"}


def iid_generalization_bound(
    risks: Any,
    counts: Any,
    complexity: Any,
    prior: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Theorem 1: the robust risk of every classifier, from rows drawn as they come.

    .. math::

        R_Q(f) \leq \max_{q \in Q} \Bigl\{ \hat{R}_q(f) + \sum_i q_i p_i \Bigl( 4k \,
        E\Bigl[ \frac{N_i}{p_i n} \hat{\mathfrak{R}}_{N_i}(\Pi_1(\mathcal{F})) \Bigr]
        + \sqrt{\frac{\log(k / \delta)}{2 p_i^2 n}} \Bigr) \Bigr\}

    The theorem scales the weights by the *true* priors. Where these are estimated from the same
    rows, use :func:`conditional_generalization_bound`.

    Parameters
    ----------
    risks : ClassRisks, dict by class or array-like of shape (n_classes,)
        Class risks of the margin loss on the sample.
    counts : dict by class or array-like of shape (n_classes,)
        Rows of each class in the sample.
    complexity : dict by class, array-like of shape (n_classes,) or float
        The complexity of :math:`\Pi_1(\mathcal{F})` on the rows of each class, as
        :func:`equipoise.risks.class_rademacher` gives it; with ``observed=False`` the expectation
        in the formula.
    prior : dict by class or array-like of shape (n_classes,)
        Known class priors.
    uncertainty : Uncertainty, str or None
        The set of weightings.
    confidence : float in (0, 1), default=0.95
        The probability :math:`1 - \delta`.
    observed : bool, default=True
        Whether the complexity is that of the sample, which costs a wider deviation.

    Returns
    -------
    RiskBound

    Examples
    --------
    >>> bound = iid_generalization_bound(
    ...     [0.1, 0.3], [90_000, 10_000], [0.001, 0.002], prior=[0.9, 0.1], uncertainty="balanced"
    ... )
    >>> round(bound.value, 3), bound.dominant, bound.vacuous
    (0.29, 1, False)
    """
    sample = _Sample.of("iid", counts, prior, uncertainty, risks, complexity)
    return sample.generalization(risks, *sample.terms(complexity, confidence, 1, observed))


def iid_excess_bound(
    counts: Any,
    complexity: Any,
    prior: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Theorem 1: by how much the empirical minimiser can miss the lowest robust risk.

    .. math::

        R_Q(\hat{f}) - R_Q(f^*) \leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl( 8k \,
        E\Bigl[ \frac{N_i}{p_i n} \hat{\mathfrak{R}}_{N_i}(\Pi_1(\mathcal{F})) \Bigr]
        + \sqrt{\frac{\log(2k / \delta)}{2 p_i^2 n}} \Bigr)

    Parameters
    ----------
    counts, complexity, prior, uncertainty, confidence, observed
        As in :func:`iid_generalization_bound`.

    Returns
    -------
    RiskBound
    """
    sample = _Sample.of("iid", counts, prior, uncertainty, complexity)
    return sample.excess(*sample.terms(complexity, confidence, 2, observed))


def rate_generalization_bound(
    risks: Any,
    counts: Any,
    constant: float,
    prior: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
) -> RiskBound:
    r"""Corollary 2: Theorem 1 for classes of complexity at most :math:`C / \sqrt{n}`.

    .. math::

        R_Q(f) \leq \max_{q \in Q} \Bigl\{ \hat{R}_q(f) + \sum_i q_i p_i \Bigl(
        \frac{4k C}{\sqrt{p_i n}} + \sqrt{\frac{\log(k / \delta)}{2 p_i^2 n}} \Bigr) \Bigr\}

    Parameters
    ----------
    risks, counts, prior, uncertainty, confidence
        As in :func:`iid_generalization_bound`.
    constant : float
        The number :math:`C` with :math:`\hat{\mathfrak{R}}_n(\Pi_1(\mathcal{F})) \leq C / \sqrt{n}`
        for *any* sample: for linear functions :math:`\langle w, x \rangle` with
        :math:`\|w\|_2 \leq \Lambda` and :math:`\|x\|_2 \leq r` it is :math:`\Lambda r`.

    Returns
    -------
    RiskBound
    """
    sample = _Sample.of("rate", counts, prior, uncertainty, risks)
    return sample.generalization(risks, *sample.terms(sample.rate(constant), confidence, 1, False))


def rate_excess_bound(
    counts: Any,
    constant: float,
    prior: Any,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
) -> RiskBound:
    r"""Corollary 2: the excess risk for classes of complexity at most :math:`C / \sqrt{n}`.

    .. math::

        R_Q(\hat{f}) - R_Q(f^*) \leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl(
        \frac{8k C}{\sqrt{p_i n}} + \sqrt{\frac{\log(2k / \delta)}{2 p_i^2 n}} \Bigr)

    Parameters
    ----------
    counts, constant, prior, uncertainty, confidence
        As in :func:`rate_generalization_bound`.

    Returns
    -------
    RiskBound
    """
    sample = _Sample.of("rate", counts, prior, uncertainty)
    return sample.excess(*sample.terms(sample.rate(constant), confidence, 2, False))


def conditional_generalization_bound(
    risks: Any,
    counts: Any,
    complexity: Any,
    prior: Any = None,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Appendix D: the robust risk of every classifier, given the number of rows of each class.

    .. math::

        R_Q(f) \leq \max_{q \in Q} \sum_i q_i p_i \Bigl( \hat{R}_i(f)
        + 4k \, \mathfrak{R}_{n_i}(\Pi_1(\mathcal{F})) + \sqrt{\frac{\log(k / \delta)}{2 n_i}}
        \Bigr)

    It bounds all class risks at once, given the labels, and so holds for every prior: that of the
    sample, a known one, or one that was estimated elsewhere.

    Parameters
    ----------
    risks, counts, uncertainty, confidence
        As in :func:`iid_generalization_bound`.
    complexity : dict by class, array-like of shape (n_classes,) or float
        The complexity of :math:`\Pi_1(\mathcal{F})` on the rows of each class, expected with
        ``observed=False``.
    prior : dict by class or array-like of shape (n_classes,), optional
        Class priors, the shares in the sample if not given.
    observed : bool, default=True
        Whether the complexity is that of the sample, which costs a wider deviation.

    Returns
    -------
    RiskBound

    Examples
    --------
    >>> bound = conditional_generalization_bound(
    ...     {"common": 0.1, "rare": 0.3},
    ...     {"common": 90_000, "rare": 1_000},
    ...     {"common": 0.001, "rare": 0.01},
    ...     uncertainty="worst-class",
    ... )
    >>> bound
    Appendix D, conditional sampling: 0.5204, width 0.2204
    With probability at least 0.95, the robust risk of every classifier is at most 0.5204.
    class   rows  mass complexity deviation adds
    common: 90000 0    0.008      0.0148021 0
    rare:   1000  1    0.08       0.140425  0.220425
    >>> bound.more_rows(0.1).sentence
    "3859 more rows of class 'rare' would make the bound 0.1 wide."
    """
    sample = _Sample.of("conditional", counts, prior, uncertainty, risks, complexity)
    return sample.generalization(risks, *sample.terms(complexity, confidence, 1, observed))


def conditional_excess_bound(
    counts: Any,
    complexity: Any,
    prior: Any = None,
    uncertainty: Any = None,
    *,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Appendix D: the excess risk, given the number of rows of each class.

    .. math::

        R_Q(\hat{f}) - R_Q(f^*) \leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl(
        8k \, \mathfrak{R}_{n_i}(\Pi_1(\mathcal{F})) + \sqrt{\frac{\log(2k / \delta)}{2 n_i}} \Bigr)

    The paper does not state it; it follows from its lemmas as Theorem 1 does.

    Parameters
    ----------
    counts, complexity, prior, uncertainty, confidence, observed
        As in :func:`conditional_generalization_bound`.

    Returns
    -------
    RiskBound
    """
    sample = _Sample.of("conditional", counts, prior, uncertainty, complexity)
    return sample.excess(*sample.terms(complexity, confidence, 2, observed))


@dataclass(frozen=True, eq=False)
class _Sample:
    """How many rows there are of each class, what its prior is, and which masses may be."""

    theorem: str
    classes: NDArray[Any]
    counts: Vector
    prior: Vector
    mass_set: MassSet

    @classmethod
    def of(cls, theorem: str, counts: Any, prior: Any, uncertainty: Any, *others: Any) -> "_Sample":
        classes = _names(counts, prior, *others)
        rows = check_numbers(counts, classes, name="counts")
        # Theorem 1 divides by the priors, the conditional theorem by the rows.
        least = "[1, inf)" if theorem == "conditional" else "[0, inf)"
        check_interval(rows, classes, "counts", least)
        if not rows.sum() >= 1:
            raise InvalidInputError(f"counts must hold at least one row, got {rows.tolist()}.")
        p = rows / rows.sum() if prior is None else check_prior(prior, classes, name="prior")
        if theorem != "conditional":
            check_interval(p, classes, "prior", "(0, 1]")
        return cls(theorem, classes, rows, p, as_uncertainty(uncertainty).resolve(p, classes))

    @property
    def is_iid(self) -> bool:
        return self.theorem != "conditional"

    @property
    def share_ratios(self) -> Vector:
        """How many times its prior the share of each class in the sample is."""
        n = self.counts.sum()
        return self.counts / (n * self.prior) if self.is_iid else np.ones_like(self.counts)

    def rate(self, constant: Any) -> Vector:
        r"""The bound :math:`C / \sqrt{p_i n}` of the expected complexities (Jensen)."""
        number = check_number(constant, "constant", "[0, inf)")
        return np.asarray(number / np.sqrt(self.prior * self.counts.sum()))

    def terms(
        self, complexity: Any, confidence: Any, sides: int, observed: bool
    ) -> tuple[Vector, Vector, float]:
        """Complexity and deviation terms, for deviations on one side or on both."""
        k = len(self.classes)
        level = check_number(confidence, "confidence", "(0, 1)")
        values = check_numbers(complexity, self.classes, name="complexity")
        check_interval(values, self.classes, "complexity", "[0, inf)")
        # Twice the complexity of the loss, and twice that again where deviations have two sides.
        factor = 2 * sides * contracted(1.0, k)
        scaled = values * self.share_ratios if observed else values
        deviation = self._deviation(sides * k / (1 - level), observed)
        return factor * scaled, deviation, level

    def _deviation(self, odds: float, observed: bool) -> Vector:
        root = 3 * np.sqrt(np.log(2 * odds) / 2) if observed else np.sqrt(np.log(odds) / 2)
        units = self.prior * np.sqrt(self.counts.sum()) if self.is_iid else np.sqrt(self.counts)
        return np.asarray(root / units)

    def generalization(
        self, risks: Any, complexity: Vector, deviation: Vector, confidence: float
    ) -> RiskBound:
        values = check_numbers(risks, self.classes, name="risks")
        check_interval(values, self.classes, "risks", "[0, 1]")
        sums = self.share_ratios * values + complexity + deviation
        value = float(self.mass_set.support(sums))
        return self._bound("generalization", value, complexity, deviation, confidence)

    def excess(self, complexity: Vector, deviation: Vector, confidence: float) -> RiskBound:
        value = 2 * float(self.mass_set.support(complexity + deviation))
        return self._bound("excess", value, complexity, deviation, confidence)

    def _bound(
        self, kind: Kind, value: float, complexity: Vector, deviation: Vector, confidence: float
    ) -> RiskBound:
        masses = np.asarray(self.mass_set.maximize(complexity + deviation))
        width = float(self.mass_set.support(complexity + deviation))
        per_class = complexity, deviation, masses, self.counts, self.prior
        terms, spread, mass, counts, prior = (ByClass(v, self.classes) for v in per_class)
        return RiskBound(
            value=value,
            width=2 * width if kind == "excess" else width,
            complexity=terms,
            deviation=spread,
            masses=mass,
            kind=kind,
            sampling="iid" if self.is_iid else "conditional",
            theorem=_THEOREM[self.theorem],
            confidence=confidence,
            counts=counts,
            prior=prior,
            mass_set=self.mass_set,
        )


def _names(counts: Any, *others: Any) -> NDArray[Any]:
    """Class names of the first that is given by class, else the positions."""
    for values in (counts, *others):
        if isinstance(values, Mapping):
            return np.array(list(values))
    if np.ndim(counts) != 1 or np.size(counts) == 0:
        raise InvalidParameterError(
            "counts must be a dict by class or an array with the rows of each class, got "
            f"{counts!r}."
        )
    return np.arange(np.size(counts))
