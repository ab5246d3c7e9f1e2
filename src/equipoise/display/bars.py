"""Two bars for each name: the worst-case weights of a fit, and the parts of an excess risk."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.display import style
from equipoise.display.base import Display, fitted_attributes
from equipoise.exceptions import InvalidInputError
from equipoise.risks import class_risks
from equipoise.theory import estimated_excess_risk
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import named_weightings, weights_of

_PARTS = ("irreducible", "estimation", "excess")


@dataclass(kw_only=True, eq=False)
class WorstCaseWeightsDisplay(Display):
    r"""Which world was a classifier made robust against? The worst-case weights.

    Each class's share of the rows, and its share :math:`m_i = q_i p_i` of the objective. The
    quotient, written beside the bars, is the weight :math:`q_i`: how many times a row of the class
    counts in the world that was the worst. Drawn by ``Axes.barh``.

    Parameters
    ----------
    prior : ByClass
        Share of the rows, :math:`p_i`.
    masses : ByClass
        Share of the objective, :math:`m_i`.

    Attributes
    ----------
    bars_ : tuple of two matplotlib BarContainer: the rows and the objective

    Examples
    --------
    >>> from equipoise import LabelCVaR, RobustLogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLogisticRegression(LabelCVaR(0.5)).fit(X, y)
    >>> frame = WorstCaseWeightsDisplay.from_estimator(clf).to_frame()
    >>> bool(frame["weight"].max() <= 2 + 1e-9)
    True
    """

    prior: ByClass
    masses: ByClass
    bars_: Any = field(init=False, repr=False, default=())

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """The worst case that a fitted classifier, or the last step of a pipeline, reports.

        It needs ``class_prior_`` and ``worst_case_masses_``.
        """
        masses, prior = fitted_attributes(
            estimator, "worst_case_masses_", "class_prior_", wanted="the worst case"
        )
        return cls(prior=prior, masses=masses).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        uncertainty: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """The weights of a set, by default ``LabelCVaR(0.1)``, that are the worst for predictions.

        Labels and options, such as ``sample_weight``, are those of :func:`equipoise.class_risks`.
        """
        risks = class_risks(y_true, y_pred, **options)
        return cls(prior=risks.prior, masses=risks.worst_case_masses(uncertainty)).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each class: share of the rows, share of the objective, weight."""
        return {
            "class": self.masses.classes,
            "prior": np.asarray(self.prior),
            "mass": np.asarray(self.masses),
            "weight": weights_of(self.masses, self.prior),
        }

    def _size(self) -> tuple[float, float]:
        return 4.8, style.height_for(2.0 * len(self.masses))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        names, prior, masses, weights = self.to_dict().values()
        places, ends = np.arange(len(names)), np.maximum(prior, masses)
        looks: dict[str, Any] = {"height": 0.36} | kwargs
        hatched = {"label": "share of rows", "color": "white", "hatch": "////"}
        plain = {"label": "share of objective", "color": style.COLORS[0]}
        rows = style.bars(ax, places - 0.19, prior, hatched | looks)
        share = style.bars(ax, places + 0.19, masses, plain | looks)
        beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        for place, (weight, end) in enumerate(zip(weights, ends, strict=True)):
            text = f"\N{MULTIPLICATION SIGN}{weight:.3g}"
            ax.annotate(text, (end, place), fontsize="small", **beside)
        ax.set_xlim(0, 1.25 * float(ends.max()))
        style.name_lines(ax, style.all_shown(names), "share")
        style.legend_above(ax, [rows, share], share=0.7)
        self.bars_ = (rows, share)


@dataclass(kw_only=True, eq=False)
class ErrorDecompositionDisplay(Display):
    r"""Which part of the excess risk would more data cure? Irreducible and estimation error.

    The excess risk of classifiers made for one weighting and judged under another, in two parts:

    .. math:: R_{q'}(\hat f_q) - R_{q'}(f^*_{q'}) =
              \underbrace{R_{q'}(\hat f_q) - R_{q'}(f^*_q)}_{\text{estimation}} +
              \underbrace{R_{q'}(f^*_q) - R_{q'}(f^*_{q'})}_{\text{irreducible}}

    The irreducible part is the price of the wrong weighting and stays however many rows there
    are. The estimation part can be negative, where an error happens to help. Drawn by
    ``Axes.barh``, with a diamond at the sum.

    Parameters
    ----------
    decompositions : dict by name
        What :mod:`equipoise.theory` finds: objects with the numbers ``irreducible``,
        ``estimation`` and ``excess``, and perhaps ``intervals`` for them.

    Attributes
    ----------
    bars_ : tuple of two matplotlib BarContainer: irreducible and estimation error
    total_ : matplotlib Line2D of the excess risks

    Examples
    --------
    >>> truth, estimate = [0.1, 0.4, 0.8], [0.3, 0.6, 0.9]
    >>> display = ErrorDecompositionDisplay.from_predictions(truth, estimate)
    >>> display.to_frame()["excess"].round(3).tolist()
    [0.067, 0.023, 0.067, 0.023]
    """

    decompositions: Mapping[str, Any]
    bars_: Any = field(init=False, repr=False, default=())
    total_: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not self.decompositions:
            raise InvalidInputError("decompositions must hold at least one entry by name.")

    @classmethod
    def from_predictions(
        cls,
        reference: ArrayLike,
        y_proba: ArrayLike,
        *,
        weightings: Any = ("standard", "balanced"),
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Decompose the excess risk of plug-in rules, each weighting judged under every one.

        Parameters
        ----------
        reference, y_proba : array-like of shape (n, n_classes), or (n,) for two classes
            True class probabilities, or calibrated ones, and those that the rules go by.
        weightings : dict by name, or list
            Each is ``"standard"``, ``"balanced"``, or weights in class order.
        ax : matplotlib Axes, optional
        **options
            ``y``, ``sample_weight``, ``bootstrap``: as in
            :func:`equipoise.theory.estimated_excess_risk`.
        """
        worlds = named_weightings(weightings)
        found = {
            f"made for {made}, judged under {judged}": estimated_excess_risk(
                reference, y_proba, worlds[made], worlds[judged], **options
            )
            for made in worlds
            for judged in worlds
        }
        return cls(decompositions=found).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each entry: the two parts and their sum, with intervals where known."""
        every = self.decompositions.values()
        intervals: list[Any] = [getattr(each, "intervals", None) for each in every]
        columns: dict[str, Any] = {"name": list(self.decompositions)}
        for part in _PARTS:
            columns[part] = np.array([float(getattr(each, part)) for each in every])
            if None not in intervals:
                ends = np.array([each[part] for each in intervals], dtype=np.float64).T
                columns[f"{part}_lower"], columns[f"{part}_upper"] = ends
        return columns

    def _size(self) -> tuple[float, float]:
        return 4.8, style.height_for(3.0 * len(self.decompositions))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        columns, places = self.to_dict(), np.arange(len(self.decompositions))
        fills = {"color": style.COLORS[0]}, {"color": "white", "hatch": "...."}
        self.bars_ = ()
        for part, shift, fill in zip(_PARTS[:2], (-0.18, 0.18), fills, strict=True):
            look: dict[str, Any] = {"height": 0.34, "label": part} | fill
            if f"{part}_lower" in columns:
                ends = columns[f"{part}_lower"], columns[f"{part}_upper"]
                look["xerr"] = style.reach(columns[part], *ends)
                look["error_kw"] = {"elinewidth": 1.0, "capsize": 1.5, "ecolor": style.COLORS[5]}
            self.bars_ += (style.bars(ax, places + shift, columns[part], look | kwargs),)
        self.total_ = style.mark(ax, columns["excess"], places, "excess risk")
        ax.axvline(0, color=style.INK, linewidth=0.8)
        # The last tick label stays inside the figure.
        ax.margins(x=0.12)
        names = style.all_shown(self.decompositions, width=18, lines=3)
        style.name_lines(ax, names, "risk above the best possible")
        style.legend_above(ax, [*self.bars_, self.total_], share=0.65)
