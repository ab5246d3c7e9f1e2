r"""What a bound of a robust risk says: how wide it is, which class makes it so, what would help.

Conventions
-----------
``n`` rows, :math:`n_i` of class ``i``. Every class has a term :math:`w_i`, the sum of a complexity
term and a deviation term. Complexities are taken to shrink like :math:`1/\sqrt{n_i}` as rows are
added, as those of norm-bounded linear functions do.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from equipoise.arrays import Vector
from equipoise.exceptions import ClassMismatchError
from equipoise.sets import MassSet
from equipoise.validation.numbers import check_number
from equipoise.weights.by_class import ByClass, class_lines

# Rows beyond which a number of rows is no plan.
_MANY_ROWS = 1e15


@dataclass(frozen=True)
class RowsNeeded:
    """How many more rows of a class a bound needs to have a given width.

    Attributes
    ----------
    name : class name
    rows : float
        More rows of this class; infinite where no number is enough.
    total : float
        More rows in all: the same where rows of one class can be had alone, more where rows come as
        they are and only some of them are of the class.
    width : float
        The width asked for.
    sentence : str

    Examples
    --------
    >>> from equipoise.theory import conditional_bound
    >>> conditional_bound([900, 100], 0.001, uncertainty="worst-class").more_rows(0.5).rows
    291.0
    """

    name: Any
    rows: float
    total: float
    width: float
    sentence: str


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
    complexity, deviation : ByClass
        The two terms of :math:`w_i`.
    masses : ByClass
        Masses that attain the width.
    counts, prior : ByClass
        Rows and prior of each class.
    kind : {"generalization", "excess"}
    sampling : {"iid", "conditional"}
    theorem : str
        Where the bound stands in the paper.
    confidence : float
    mass_set : MassSet

    Examples
    --------
    >>> from equipoise.theory import conditional_bound
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
    mass_set: MassSet

    @property
    def terms(self) -> ByClass:
        """The term :math:`w_i` of each class."""
        return self._by_class(np.asarray(self.complexity) + np.asarray(self.deviation))

    @property
    def contributions(self) -> ByClass:
        """What each class adds to the width: its mass times its term."""
        return self._by_class(self._factor * np.asarray(self.masses) * np.asarray(self.terms))

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
        what = {
            "generalization": "the robust risk of every classifier is at most",
            "excess": "the robust risk of the empirical minimiser is above the lowest by at most",
        }[self.kind]
        said = f"With probability at least {self.confidence:g}, {what} {self.value:.4g}"
        if self.vacuous:
            return f"{said}: the bound is vacuous, because no risk exceeds 1."
        return f"{said}."

    def more_rows(self, width: float, of: Any = None) -> RowsNeeded:
        r"""How many more rows of a class would make the bound so wide, or less.

        Parameters
        ----------
        width : float
            The width to reach.
        of : class name, optional
            The class whose rows are added, the dominant one if not given. With conditional
            sampling the other classes keep their rows; with iid sampling all classes grow in
            proportion.

        Returns
        -------
        RowsNeeded
        """
        target = check_number(width, "width", "(0, inf)")
        name = self.dominant if of is None else of
        if name not in self.counts:
            raise ClassMismatchError(
                f"of must be one of the classes {self.counts.classes.tolist()}, got {name!r}."
            )
        found = self._more_iid if self.sampling == "iid" else self._more_of_one
        return found(name, target)

    def _more_iid(self, name: Any, target: float) -> RowsNeeded:
        n = float(np.asarray(self.counts).sum())
        # Every term is a constant over the root of n.
        total = max(0, ceil(n * (self.width / target) ** 2 * (1 - 1e-12) - n))
        rows = ceil(self.prior[name] * total)
        sentence = (
            f"{total:.6g} more rows in all, about {rows:.6g} of them of class {name!r}, would make "
            f"the bound {target:.4g} wide."
        )
        return RowsNeeded(name, rows, total, target, sentence)

    def _more_of_one(self, name: Any, target: float) -> RowsNeeded:
        place = self.counts.classes.tolist().index(name)
        least = self._width_with(place, np.inf)
        if least >= target and self.width > target:
            return RowsNeeded(name, np.inf, np.inf, target, self._hopeless(name, target, least))
        rows = self._smallest(place, target)
        sentence = f"{rows:.6g} more rows of class {name!r} would make the bound {target:.4g} wide."
        return RowsNeeded(name, rows, rows, target, sentence)

    def _smallest(self, place: int, target: float) -> float:
        """The smallest number of rows that is enough, by bisection: more rows never hurt."""
        low, high = -1.0, 1.0
        while self._width_with(place, high) > target and high < _MANY_ROWS:
            low, high = high, 2 * high
        while high - low > 1:
            middle = np.floor((low + high) / 2)
            if self._width_with(place, middle) > target:
                low = middle
            else:
                high = middle
        return float(high)

    def _width_with(self, place: int, more: float) -> float:
        terms, rows = np.asarray(self.terms), float(np.asarray(self.counts)[place])
        terms[place] *= 0.0 if np.isinf(more) else np.sqrt(rows / (rows + more))
        return self._factor * float(self.mass_set.support(terms))

    def _hopeless(self, name: Any, target: float, least: float) -> str:
        others = np.asarray(self.contributions)
        others[self.counts.classes.tolist().index(name)] = -np.inf
        rival = self.counts.classes.tolist()[int(np.argmax(others))]
        return (
            f"No number of rows of class {name!r} would make the bound {target:.4g} wide: it stays "
            f"at {least:.4g} because of the other classes, {rival!r} first among them."
        )

    @property
    def _factor(self) -> float:
        return 2.0 if self.kind == "excess" else 1.0

    def _by_class(self, values: Vector) -> ByClass:
        return ByClass(values, self.counts.classes)

    def __repr__(self) -> str:
        lines = class_lines(
            rows=self.counts,
            mass=self.masses,
            complexity=self.complexity,
            deviation=self.deviation,
            adds=self.contributions,
        )
        title = (
            f"{self.theorem}, {self.sampling} sampling: {self.value:.4g}, width {self.width:.4g}"
        )
        return "\n".join([title, self.sentence, *lines])
