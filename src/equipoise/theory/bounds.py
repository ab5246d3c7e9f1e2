r"""Bounds of the robust risk of every classifier in a class, one function a theorem.

Each bounds the robust risk where the class risks of a classifier are given, and the excess risk of
the empirical minimiser where they are not.

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
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import MassSet, as_uncertainty
from equipoise.theory.rademacher import contracted
from equipoise.theory.risk_bound import RiskBound
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior

_THEOREM = {"iid": "Theorem 1", "rate": "Corollary 2", "conditional": "Appendix D"}


def iid_bound(
    counts: Any,
    complexity: Any,
    class_prior: Any,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Theorem 1: the robust risk of every classifier, from rows drawn as they come.

    .. math::

        R_Q(f) \leq \max_{q \in Q} \Bigl\{ \hat{R}_q(f) + \sum_i q_i p_i \Bigl( 4k \,
        E\Bigl[ \frac{N_i}{p_i n} \hat{\mathfrak{R}}_{N_i}(\Pi_1(\mathcal{F})) \Bigr]
        + \sqrt{\frac{\log(k / \delta)}{2 p_i^2 n}} \Bigr) \Bigr\}

    and, without risks, by how much the empirical minimiser can miss the lowest robust risk:

    .. math::

        R_Q(\hat{f}) - R_Q(f^*) \leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl( 8k \,
        E\Bigl[ \frac{N_i}{p_i n} \hat{\mathfrak{R}}_{N_i}(\Pi_1(\mathcal{F})) \Bigr]
        + \sqrt{\frac{\log(2k / \delta)}{2 p_i^2 n}} \Bigr)

    The theorem scales the weights by the *true* priors. Where these are estimated from the same
    rows, use :func:`conditional_bound`.

    Parameters
    ----------
    counts : dict by class or array-like of shape (n_classes,)
        Rows of each class in the sample.
    complexity : dict by class, array-like of shape (n_classes,) or float
        The complexity of :math:`\Pi_1(\mathcal{F})` on the rows of each class, as
        :func:`equipoise.theory.class_rademacher` gives it; with ``observed=False`` the expectation
        in the formula.
    class_prior : dict by class or array-like of shape (n_classes,)
        Known class priors.
    uncertainty : Uncertainty, str or None
        The set of weightings.
    risks : ClassRisks, dict by class or array-like of shape (n_classes,), optional
        Class risks of the margin loss on the sample.
    confidence : float in (0, 1), default=0.95
        The probability :math:`1 - \delta`.
    observed : bool, default=True
        Whether the complexity is that of the sample, which costs a wider deviation.

    Returns
    -------
    RiskBound

    Examples
    --------
    >>> counts, complexity, prior = [90_000, 10_000], [0.001, 0.002], [0.9, 0.1]
    >>> bound = iid_bound(counts, complexity, prior, "balanced", risks=[0.1, 0.3])
    >>> round(bound.value, 3), bound.dominant, bound.vacuous
    (0.29, 1, False)
    >>> round(iid_bound(counts, complexity, prior, "balanced").value, 3)
    0.216
    """
    sample = _Sampling.of("iid", counts, class_prior, uncertainty, risks, complexity)
    return sample.bound(risks, complexity, confidence, observed)


def rate_bound(
    counts: Any,
    constant: float,
    class_prior: Any,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
) -> RiskBound:
    r"""Corollary 2: Theorem 1 for classes of complexity at most :math:`C / \sqrt{n}`.

    .. math::

        R_Q(f) &\leq \max_{q \in Q} \Bigl\{ \hat{R}_q(f) + \sum_i q_i p_i \Bigl(
        \frac{4k C}{\sqrt{p_i n}} + \sqrt{\frac{\log(k / \delta)}{2 p_i^2 n}} \Bigr) \Bigr\} \\
        R_Q(\hat{f}) - R_Q(f^*) &\leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl(
        \frac{8k C}{\sqrt{p_i n}} + \sqrt{\frac{\log(2k / \delta)}{2 p_i^2 n}} \Bigr)

    Parameters
    ----------
    counts, class_prior, uncertainty, risks, confidence
        As in :func:`iid_bound`.
    constant : float
        The number :math:`C` with :math:`\hat{\mathfrak{R}}_n(\Pi_1(\mathcal{F})) \leq C / \sqrt{n}`
        for *any* sample: for linear functions :math:`\langle w, x \rangle` with
        :math:`\|w\|_2 \leq \Lambda` and :math:`\|x\|_2 \leq r` it is :math:`\Lambda r`.

    Returns
    -------
    RiskBound

    Examples
    --------
    >>> bound = rate_bound([90_000, 10_000], 0.5, [0.9, 0.1], "balanced", risks=[0.1, 0.3])
    >>> round(bound.value, 3)
    0.251
    """
    sample = _Sampling.of("rate", counts, class_prior, uncertainty, risks)
    return sample.bound(risks, sample.rate(constant), confidence, observed=False)


def conditional_bound(
    counts: Any,
    complexity: Any,
    class_prior: Any = None,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
    observed: bool = True,
) -> RiskBound:
    r"""Appendix D: the robust risk of every classifier, given the number of rows of each class.

    .. math::

        R_Q(f) &\leq \max_{q \in Q} \sum_i q_i p_i \Bigl( \hat{R}_i(f)
        + 4k \, \mathfrak{R}_{n_i}(\Pi_1(\mathcal{F})) + \sqrt{\frac{\log(k / \delta)}{2 n_i}}
        \Bigr) \\
        R_Q(\hat{f}) - R_Q(f^*) &\leq 2 \max_{q \in Q} \sum_i q_i p_i \Bigl(
        8k \, \mathfrak{R}_{n_i}(\Pi_1(\mathcal{F})) + \sqrt{\frac{\log(2k / \delta)}{2 n_i}} \Bigr)

    It bounds all class risks at once, given the labels, and so holds for every prior: that of the
    sample, a known one, or one that was estimated elsewhere. The paper does not state the second
    line; it follows from its lemmas as Theorem 1 does.

    Parameters
    ----------
    counts, uncertainty, risks, confidence, observed
        As in :func:`iid_bound`.
    complexity : dict by class, array-like of shape (n_classes,) or float
        The complexity of :math:`\Pi_1(\mathcal{F})` on the rows of each class, expected with
        ``observed=False``.
    class_prior : dict by class or array-like of shape (n_classes,), optional
        Class priors, the shares in the sample if not given.

    Returns
    -------
    RiskBound

    Examples
    --------
    >>> bound = conditional_bound(
    ...     {"common": 90_000, "rare": 1_000},
    ...     {"common": 0.001, "rare": 0.01},
    ...     uncertainty="worst-class",
    ...     risks={"common": 0.1, "rare": 0.3},
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
    sample = _Sampling.of("conditional", counts, class_prior, uncertainty, risks, complexity)
    return sample.bound(risks, complexity, confidence, observed)


@dataclass(frozen=True, eq=False)
class _Sampling:
    """How many rows there are of each class, what its prior is, and which masses may be."""

    theorem: str
    classes: NDArray[Any]
    counts: Vector
    prior: Vector
    mass_set: MassSet

    @classmethod
    def of(cls, theorem: str, counts: Any, prior: Any, uncertainty: Any, *others: Any) -> Self:
        classes = _names(counts, prior, *others)
        # Theorem 1 divides by the priors, the conditional theorem by the rows.
        least = "[1, inf)" if theorem == "conditional" else "[0, inf)"
        rows = check_interval(
            check_numbers(counts, classes, name="counts"), classes, "counts", least
        )
        if not rows.sum() >= 1:
            raise InvalidInputError(f"counts must hold at least one row, got {rows.tolist()}.")
        p = rows / rows.sum() if prior is None else check_prior(prior, classes)
        if theorem != "conditional":
            check_interval(p, classes, "class_prior", "(0, 1]")
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

    def bound(self, risks: Any, complexity: Any, confidence: Any, observed: bool) -> RiskBound:
        """The bound of the robust risk, or without risks of the excess risk."""
        k, level = len(self.classes), check_number(confidence, "confidence", "(0, 1)")
        # Excess risks need deviations on both sides.
        sides = 2 if risks is None else 1
        # Twice the complexity of the loss, and twice that again where deviations have two sides.
        factor = 2 * sides * contracted(1.0, k)
        terms = factor * self._values(complexity, "complexity", "[0, inf)")
        if observed:
            terms = terms * self.share_ratios
        deviation = self._deviation(sides * k / (1 - level), observed)
        masses = np.asarray(self.mass_set.maximize(terms + deviation))
        width = sides * float(self.mass_set.support(terms + deviation))
        value = width
        if risks is not None:
            observed_risks = self.share_ratios * self._values(risks, "risks", "[0, 1]")
            value = float(self.mass_set.support(observed_risks + terms + deviation))
        return RiskBound(
            value=value,
            width=width,
            complexity=ByClass(terms, self.classes),
            deviation=ByClass(deviation, self.classes),
            masses=ByClass(masses, self.classes),
            counts=ByClass(self.counts, self.classes),
            prior=ByClass(self.prior, self.classes),
            kind="excess" if risks is None else "generalization",
            sampling="iid" if self.is_iid else "conditional",
            theorem=_THEOREM[self.theorem],
            confidence=level,
            mass_set=self.mass_set,
        )

    def _values(self, values: Any, name: str, interval: str) -> Vector:
        vector = check_numbers(values, self.classes, name=name)
        return check_interval(vector, self.classes, name, interval)

    def _deviation(self, odds: float, observed: bool) -> Vector:
        root = 3 * np.sqrt(np.log(2 * odds) / 2) if observed else np.sqrt(np.log(odds) / 2)
        units = self.prior * np.sqrt(self.counts.sum()) if self.is_iid else np.sqrt(self.counts)
        return np.asarray(root / units)


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
