r"""Bounds of the robust risk of every classifier in a class, one function a theorem.

Each bounds the robust risk where the class risks of a classifier are given, and the excess risk of
the empirical minimiser where they are not.

With :math:`m_i = q_i p_i` the mass of class ``i``, :math:`M` the set of masses, ``k`` classes and
:math:`1 - \delta` the confidence, every bound is a maximum over :math:`M`:

.. math::

    R_Q(f) \leq \max_{m \in M} \sum_i m_i (s_i \hat{R}_i(f) + w_i)
    \quad\text{for all } f \in \mathcal{F}, \qquad
    R_Q(\hat{f}) - \min_{f \in \mathcal{F}} R_Q(f) \leq 2 \max_{m \in M} \sum_i m_i w_i

where :math:`\hat{f}` has the smallest empirical robust risk in :math:`\mathcal{F}`, :math:`s_i` is
1 or the share of class ``i`` in the sample over its prior, and :math:`w_i` the sum of a complexity
term and a deviation term. Each function states it with :math:`L = \log(k / \delta)`; excess risks
need deviations on both sides, twice the complexity and :math:`L = \log(2k / \delta)`. The loss is
the margin loss, whose values lie in the unit interval. Its complexity is at most :math:`2k
\mathfrak{R}(\Pi_1(\mathcal{F}))`: it has slope at most one in the margin (Talagrand's contraction),
which is a score less the largest of the others (Kuznetsov, Mohri and Syed, 2015).

For two classes with one decision function :math:`f(x)`, any loss with values in the unit interval
and slope at most :math:`\lambda` in :math:`f(x)` will do (the paper's remark on Theorem 1). By the
contraction alone its complexity is at most :math:`\lambda \mathfrak{R}(\mathcal{F})`, so that with
``lipschitz`` the factor 4k below is :math:`2 \lambda`, and complexities are of :math:`\mathcal{F}`.

Departures from the paper, each for the sake of a proof:

* conditional sampling has 4k :math:`\mathfrak{R}(\Pi_1(\mathcal{F}))`, as its lemmas have it;
* the paper's two-sided lemma has no 2 in the logarithm, and one toss of a fair coin refutes it;
* complexities that were computed on the sample, and not expected, cost
  :math:`3 \sqrt{\log(2 \cdot)}` instead of :math:`\sqrt{\log(\cdot)}` (Mohri et al., 2012, second
  bound of Theorem 3.1). This is the default, because it is what can be computed.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Theorem 1, Corollary 2 and Appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise.arrays import NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import as_uncertainty
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import check_prior


@dataclass(frozen=True, repr=False, eq=False)
class RiskBound:
    r"""A bound that holds with the stated confidence for all classifiers of a class at once.

    Attributes
    ----------
    value : float
        The bound: of the robust risk, or of the excess robust risk.
    width : float
        :math:`\max_m \sum_i m_i w_i`, twice that for an excess risk. The robust risk exceeds the
        empirical one by no more.
    complexity, deviation, masses, counts, prior : ByClass
        The two terms of :math:`w_i`, the masses that attain the width, rows and prior.
    kind : {"generalization", "excess"}
    sampling : {"iid", "conditional"}
    theorem : str
        Where the bound stands in the paper.
    confidence : float

    Examples
    --------
    >>> bound = conditional_bound({"a": 9000, "b": 100}, 0.0, observed=False)
    >>> bound.kind, bound.dominant, bound.vacuous
    ('excess', 'b', False)
    """

    value: float
    width: float
    complexity: ByClass
    deviation: ByClass
    masses: ByClass
    counts: ByClass
    prior: ByClass
    kind: Literal["generalization", "excess"]
    sampling: Literal["iid", "conditional"]
    theorem: str
    confidence: float

    @property
    def terms(self) -> ByClass:
        """The term :math:`w_i` of each class."""
        values = np.asarray(self.complexity) + np.asarray(self.deviation)
        return ByClass(values, self.counts.classes)

    @property
    def contributions(self) -> ByClass:
        """What each class adds to the width: its mass times its term."""
        values = self._factor * np.asarray(self.masses) * np.asarray(self.terms)
        return ByClass(values, self.counts.classes)

    @property
    def dominant(self) -> Any:
        """The name of the class that adds most to the width."""
        return self.contributions.idxmax()

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing, since no loss exceeds 1."""
        return self.value >= 1

    @property
    def sentence(self) -> str:
        """The bound in words."""
        what = "the robust risk of every classifier is at most"
        if self.kind == "excess":
            what = "the robust risk of the empirical minimiser is above the lowest by at most"
        end = ": the bound is vacuous, because no risk exceeds 1." if self.vacuous else "."
        return f"With probability at least {self.confidence:g}, {what} {self.value:.4g}{end}"

    @property
    def _factor(self) -> float:
        return 2.0 if self.kind == "excess" else 1.0

    def __repr__(self) -> str:
        lines = class_lines(
            rows=self.counts,
            mass=self.masses,
            complexity=self.complexity,
            deviation=self.deviation,
            adds=self.contributions,
        )
        numbers = f"{self.value:.4g}, width {self.width:.4g}"
        title = f"{self.theorem}, {self.sampling} sampling: {numbers}"
        return "\n".join([title, self.sentence, *lines])


def iid_bound(  # noqa: PLR0913  the sample, the class of functions, the set, the loss
    counts: Any,
    complexity: Any,
    class_prior: Any,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
    observed: bool = True,
    lipschitz: float | None = None,
) -> RiskBound:
    r"""Theorem 1: the robust risk of every classifier, from rows drawn as they come.

    .. math:: w_i = 4k \, E\Bigl[ \frac{N_i}{p_i n} \hat{\mathfrak{R}}_{N_i}(\Pi_1(\mathcal{F}))
              \Bigr] + \sqrt{\frac{L}{2 p_i^2 n}}

    The theorem scales the weights by the *true* priors. Where these are estimated from the same
    rows, use :func:`conditional_bound`. Without risks the bound is by how much the empirical
    minimiser can miss the lowest robust risk.

    Parameters
    ----------
    counts : dict by class or array-like of shape (n_classes,)
        Rows of each class in the sample.
    complexity : dict by class, array-like of shape (n_classes,) or float
        The complexity of :math:`\Pi_1(\mathcal{F})` on the rows of each class, as
        :func:`equipoise.theory.class_rademacher` gives it; with ``observed=False`` the expectation
        in the formula.
    class_prior : dict by class or array-like of shape (n_classes,)
        Known class frequencies of the population.
    uncertainty : Uncertainty, str or None
        The set of weightings.
    risks : ClassRisks, dict by class or array-like of shape (n_classes,), optional
        Class risks of the margin loss on the sample.
    confidence : float in (0, 1), default=0.95
        The probability :math:`1 - \delta`.
    observed : bool, default=True
        Whether the complexity is that of the sample, which costs a wider deviation.
    lipschitz : float > 0, optional
        For two classes: the slope :math:`\lambda` of a loss with values in [0, 1], in place of the
        margin loss.

    Examples
    --------
    >>> counts, complexity, prior = [90_000, 10_000], [0.001, 0.002], [0.9, 0.1]
    >>> bound = iid_bound(counts, complexity, prior, "balanced", risks=[0.1, 0.3])
    >>> round(bound.value, 3), bound.dominant, bound.vacuous
    (0.29, 1, False)
    >>> round(iid_bound(counts, complexity, prior, "balanced").value, 3)
    0.216
    """
    given = counts, complexity, class_prior, uncertainty
    return _bound("Theorem 1", given, risks, confidence, lipschitz, observed=observed)


def rate_bound(
    counts: Any,
    constant: float,
    class_prior: Any,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
    lipschitz: float | None = None,
) -> RiskBound:
    r"""Corollary 2: Theorem 1 for classes of complexity at most :math:`C / \sqrt{n}`.

    .. math:: w_i = \frac{4k C}{\sqrt{p_i n}} + \sqrt{\frac{L}{2 p_i^2 n}}

    Parameters
    ----------
    counts, class_prior, uncertainty, risks, confidence, lipschitz
        As in :func:`iid_bound`.
    constant : float
        The number :math:`C` with :math:`\hat{\mathfrak{R}}_n(\Pi_1(\mathcal{F})) \leq C / \sqrt{n}`
        for *any* sample: for linear functions :math:`\langle w, x \rangle` with
        :math:`\|w\|_2 \leq \Lambda` and :math:`\|x\|_2 \leq r` it is :math:`\Lambda r`.

    Examples
    --------
    >>> bound = rate_bound([90_000, 10_000], 0.5, [0.9, 0.1], "balanced", risks=[0.1, 0.3])
    >>> round(bound.value, 3)
    0.251
    """
    check_number(constant, "constant", "[0, inf)")
    given = counts, constant, class_prior, uncertainty
    return _bound("Corollary 2", given, risks, confidence, lipschitz, observed=False)


def conditional_bound(  # noqa: PLR0913  the sample, the class of functions, the set, the loss
    counts: Any,
    complexity: Any,
    class_prior: Any = None,
    uncertainty: Any = None,
    *,
    risks: Any = None,
    confidence: float = 0.95,
    observed: bool = True,
    lipschitz: float | None = None,
) -> RiskBound:
    r"""Appendix D: the robust risk of every classifier, given the number of rows of each class.

    .. math:: w_i = 4k \, \mathfrak{R}_{n_i}(\Pi_1(\mathcal{F})) + \sqrt{\frac{L}{2 n_i}}

    It bounds all class risks at once, given the labels, and so holds for every prior: that of the
    sample, a known one, or one that was estimated elsewhere. The paper does not state it for excess
    risks; that follows from its lemmas as Theorem 1 does.

    Parameters
    ----------
    counts, complexity, uncertainty, risks, confidence, observed, lipschitz
        As in :func:`iid_bound`.
    class_prior : dict by class or array-like of shape (n_classes,), optional
        Class frequencies of the population, the shares in the sample if not given.

    Examples
    --------
    >>> bound = conditional_bound(
    ...     {"common": 90_000, "rare": 1_000},
    ...     {"common": 0.001, "rare": 0.01},
    ...     uncertainty="worst_class",
    ...     risks={"common": 0.1, "rare": 0.3},
    ... )
    >>> bound
    Appendix D, conditional sampling: 0.5204, width 0.2204
    With probability at least 0.95, the robust risk of every classifier is at most 0.5204.
    class    rows mass complexity deviation   adds
    common: 90000   0%      0.008    0.0148      0
    rare:    1000 100%       0.08    0.1404 0.2204
    """
    given = counts, complexity, class_prior, uncertainty
    return _bound("Appendix D", given, risks, confidence, lipschitz, observed=observed)


def _bound(
    theorem: str,
    given: tuple[Any, Any, Any, Any],
    risks: Any,
    confidence: Any,
    lipschitz: Any,
    *,
    observed: bool,
) -> RiskBound:
    """The bound of the robust risk, or without risks of the excess risk.

    Given are rows by class, a complexity, class frequencies and the set.
    """
    counts, complexity, class_prior, uncertainty = given
    classes = _names(counts, class_prior, risks, complexity)

    def checked(values: Any, name: str, interval: str) -> Vector:
        return check_interval(check_numbers(values, classes, name=name), classes, name, interval)

    # Theorem 1 divides by the priors, the conditional theorem by the rows.
    iid = theorem != "Appendix D"
    rows = checked(counts, "counts", "[0, inf)" if iid else "[1, inf)")
    n, k = rows.sum(), len(classes)
    if not n >= 1:
        raise InvalidInputError(f"counts must hold at least one row, got {rows.tolist()}.")
    prior = rows / n if class_prior is None else check_prior(class_prior, classes)
    p = checked(prior, "class_prior", "(0, 1]" if iid else "[0, 1]")
    mass_set = as_uncertainty(uncertainty, name="uncertainty").resolve(p, classes)
    level = check_number(confidence, "confidence", "(0, 1)")
    complexities = checked(complexity, "complexity", "[0, inf)")
    if theorem == "Corollary 2":
        # Jensen: the expected complexities are at most this.
        complexities = complexities / np.sqrt(n * p)
    # Excess risks need deviations on both sides.
    sides = 2 if risks is None else 1
    terms = 2 * _contraction(lipschitz, k) * sides * complexities
    odds = sides * k / (1 - level)
    deviation = 3 * np.sqrt(np.log(2 * odds) / 2) if observed else np.sqrt(np.log(odds) / 2)
    # How many times its prior the share of each class in the sample is.
    ratios = rows / (n * p) if iid else np.ones(k)
    deviation = deviation / (p * np.sqrt(n) if iid else np.sqrt(rows))
    terms = terms * ratios if observed else terms
    value = width = sides * float(mass_set.support(terms + deviation))
    if risks is not None:
        empirical = ratios * checked(risks, "risks", "[0, 1]")
        value = float(mass_set.support(empirical + terms + deviation))
    return RiskBound(
        value=value,
        width=width,
        complexity=ByClass(terms, classes),
        deviation=ByClass(deviation, classes),
        masses=ByClass(mass_set.maximize(terms + deviation), classes),
        counts=ByClass(rows, classes),
        prior=ByClass(p, classes),
        kind="excess" if risks is None else "generalization",
        sampling="iid" if iid else "conditional",
        theorem=theorem,
        confidence=level,
    )


def _contraction(lipschitz: Any, n_classes: int) -> float:
    """How many times that of the functions the complexity of the losses is, at most."""
    if lipschitz is None:
        return 2.0 * n_classes
    slope = check_number(lipschitz, "lipschitz", "(0, inf)")
    if n_classes != 2:
        raise InvalidParameterError(
            f"lipschitz is for two classes, got {n_classes}: leave it out for the margin loss."
        )
    return slope


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
