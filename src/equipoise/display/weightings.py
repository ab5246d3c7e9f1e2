"""Weightings: fitted for one and evaluated under another, and the one that is the worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.analysis import WeightTradeoff
from equipoise.arrays import ArrayLike, Matrix
from equipoise.display import style
from equipoise.display.base import (
    Display,
    classifiers_inside,
    fitted_attributes,
    named,
    responses,
)
from equipoise.exceptions import InvalidInputError
from equipoise.goals import SetGoal, as_goal
from equipoise.goals.base import prior_among
from equipoise.risks import class_risks
from equipoise.sets import LabelCVaR
from equipoise.theory import excess_risk
from equipoise.validation.numbers import check_word
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import named_weightings, weights_of

_WEIGHTINGS = {"standard": "standard", "balanced": "balanced", "worst class": "worst_class"}
_PARTS = ("irreducible", "estimation", "excess")


@dataclass(kw_only=True, eq=False)
class TradeoffDisplay(Display):
    """The risk under one weighting (columns) of the classifier fitted for another (rows).

    The regret is the cost of being fitted for something else: the risk minus that of the
    classifier fitted for the column, or, where it is not given, minus the smallest of the column.
    Drawn by ``Axes.imshow``: dark cells are costly, the smallest number of a column is bold.

    Parameters
    ----------
    risks : array-like of shape (n_fitted_for, n_evaluated_under)
    fitted_for : sequence of str
        Names of the rows.
    evaluated_under : sequence of str
        Names of the columns.
    regrets : array-like of the same shape, optional

    Attributes
    ----------
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, one for each cell

    Examples
    --------
    >>> y = ["a", "a", "a", "b"]
    >>> made = {"standard": ["a", "a", "a", "a"], "balanced": ["a", "a", "b", "b"]}
    >>> display = TradeoffDisplay.from_predictions(y, made)
    >>> display.risks.round(3).tolist()
    [[0.25, 0.5, 1.0], [0.25, 0.167, 0.333]]
    """

    risks: Matrix
    fitted_for: Sequence[str]
    evaluated_under: Sequence[str]
    regrets: Any = None

    def __post_init__(self) -> None:
        self.risks = self._checked("risks")
        if self.regrets is None:
            self.regrets = self.risks - self.risks.min(axis=0)
        self.regrets = self._checked("regrets")

    def _checked(self, name: str) -> Matrix:
        cells = np.array(getattr(self, name), dtype=np.float64)
        rows, columns = len(self.fitted_for), len(self.evaluated_under)
        if cells.shape != (rows, columns) or cells.size == 0:
            raise InvalidInputError(
                f"{name} must have a row for each of {rows} classifiers and a column for each of "
                f"{columns} weightings, got shape {cells.shape}."
            )
        return cells

    @classmethod
    def from_tradeoff(cls, tradeoff: WeightTradeoff, *, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.weight_tradeoff` found."""
        return cls(
            risks=tradeoff.risks,
            fitted_for=tradeoff.fitted_for,
            evaluated_under=tradeoff.evaluated_under,
            regrets=tradeoff.regret,
        ).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        weightings: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Evaluate any fitted classifier, or a dict of them, as :meth:`from_predictions` does."""
        predicted, _ = responses(estimator, X, "zero_one")
        options: Any = {"weightings": weightings, "sample_weight": sample_weight, "ax": ax}
        return cls.from_predictions(y, predicted, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: Any,
        *,
        weightings: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Evaluate predicted labels, by the name of their weighting, under weightings.

        Parameters
        ----------
        y_true, sample_weight : array-like of shape (n,)
            Labels, and optional weights of the rows.
        y_pred : dict of arrays of labels by name, or one array
        weightings : dict of uncertainty sets by name, optional
            Weightings to evaluate by: anything that estimators take as ``goal``, weights by class
            among them as ``FixedWeights``. The default is standard, balanced and worst class.
        ax : matplotlib Axes, optional
        """
        worlds = _WEIGHTINGS if weightings is None else weightings
        by_classifier = {
            name: class_risks(y_true, predicted, sample_weight=sample_weight)
            for name, predicted in named(y_pred, "classifier").items()
        }
        risks = [
            [each.robust(world) for world in worlds.values()] for each in by_classifier.values()
        ]
        return cls(
            risks=np.array(risks), fitted_for=list(by_classifier), evaluated_under=list(worlds)
        ).plot(ax)

    def plot(self, ax: Any = None, *, value: str = "risk", **kwargs: Any) -> Self:
        """Draw as any display; the cells show the ``"risk"`` or the ``"regret"``."""
        check_word(value, "value", ("risk", "regret"))
        return super().plot(ax, value=value, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """One line for each classifier and weighting: risk and regret."""
        rows, columns = self.risks.shape
        return {
            "fitted_for": np.repeat(list(self.fitted_for), columns),
            "evaluated_under": np.tile(list(self.evaluated_under), rows),
            "risk": self.risks.ravel(),
            "regret": self.regrets.ravel(),
        }

    def _title(self) -> str:
        return "Fitted for one weighting, evaluated under another"

    def _size(self) -> tuple[float, float]:
        rows, columns = self.risks.shape
        return max(4.0, 1.9 + 0.85 * columns), 1.45 + 0.42 * rows

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        value = kwargs.pop("value")
        cells = self.risks if value == "risk" else self.regrets
        # From the smallest cell to the largest, so that near values differ in colour; cells that
        # are all alike are light.
        low, top = float(np.nanmin(cells)), float(np.nanmax(cells))
        options = {"cmap": "Blues", "vmin": low, "vmax": max(top, low + 1e-12), "aspect": "auto"}
        self.im_ = ax.imshow(cells, **(options | kwargs))
        self._write(ax, cells)
        rows, columns = style.all_shown(self.fitted_for, width=16), self.evaluated_under
        style.name_columns(ax, columns)
        ax.set_yticks(np.arange(len(rows)), rows)
        ax.set_xlabel(f"evaluated under ({value})", fontsize="small")
        ax.set_ylabel("fitted for", fontsize="small")
        ax.tick_params(labelsize="small", length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        for draw, names in ((ax.axhline, rows), (ax.axvline, columns)):
            for edge in np.arange(len(names) - 1) + 0.5:
                draw(edge, color="white", linewidth=1.5)

    def _write(self, ax: Any, cells: Matrix) -> None:
        """Every cell says its number, in white where the cell is dark to the eye."""
        dark = self.im_.cmap(self.im_.norm(cells))[..., :3] @ [0.2126, 0.7152, 0.0722] < 0.5
        colors = np.where(dark, "white", style.INK)
        weights = np.where(cells == cells.min(axis=0), "bold", "normal")
        self.text_ = np.empty(cells.shape, dtype=object)
        size = min(style.SMALL, style.room_for(ax, cells.shape[1], "x") / (6 * style.LETTER))
        for index, cell in np.ndenumerate(cells):
            look = {"color": colors[index], "fontweight": weights[index], "fontsize": size}
            text = ax.text(*index[::-1], f"{cell:.3f}", ha="center", va="center", **look)
            self.text_[index] = text


@dataclass(kw_only=True, eq=False)
class ErrorDecompositionDisplay(Display):
    """The parts of an excess risk: estimation error, which more data reduce, and irreducible error.

    The parts are those of :func:`equipoise.theory.excess_risk`, of classifiers fitted for one
    weighting and evaluated under another. The irreducible one is the cost of the wrong weighting
    and stays however many rows there are; that of estimation can be negative, where an error
    happens to help. Drawn by ``Axes.barh``, with a diamond at the sum.

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

    def __post_init__(self) -> None:
        if not self.decompositions:
            raise InvalidInputError("decompositions must hold at least one entry by name.")

    @classmethod
    def from_predictions(  # noqa: PLR0913  probabilities, rows, and how they are resampled
        cls,
        reference: ArrayLike,
        y_proba: ArrayLike,
        *,
        weightings: Any = ("standard", "balanced"),
        y: ArrayLike | None = None,
        class_prior: Any = None,
        sample_weight: ArrayLike | None = None,
        n_resamples: int = 500,
        confidence: float = 0.95,
        random_state: Any = None,
        ax: Any = None,
    ) -> Self:
        """Decompose the excess risk of plug-in rules, each weighting evaluated under every one.

        Parameters
        ----------
        reference, y_proba : array-like of shape (n, n_classes), or (n,) for two classes
            True class probabilities, or calibrated ones, and those that the rules go by.
        weightings : dict by name, or list
            Each is ``"standard"``, ``"balanced"``, or weights in class order.
        ax : matplotlib Axes, optional
        y, class_prior, sample_weight, n_resamples, confidence, random_state
            As in :func:`equipoise.theory.excess_risk`.
        """
        worlds = named_weightings(weightings)
        decompositions = {
            f"fitted for {made}, evaluated under {evaluated}": excess_risk(
                reference, y_proba, worlds[made], worlds[evaluated], y=y, class_prior=class_prior,
                sample_weight=sample_weight, n_resamples=n_resamples, confidence=confidence,
                random_state=random_state,
            )
            for made in worlds
            for evaluated in worlds
        }  # fmt: skip
        return cls(decompositions=decompositions).plot(ax)

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

    def _title(self) -> str:
        return "Excess risk: what more rows would cure, and what not"

    def _size(self) -> tuple[float, float]:
        return 4.8, style.height_for(3.0 * len(self.decompositions))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        columns, places = self.to_dict(), np.arange(len(self.decompositions))
        fills = {"color": style.COLORS[0]}, {"color": "white", "hatch": "...."}
        self.bars_: tuple[Any, ...] = ()
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
        style.name_lines(ax, list(self.decompositions), "risk above the best possible", lines=3)
        style.in_percent(ax.xaxis)
        style.legend_above(ax, [*self.bars_, self.total_], share=0.65)


@dataclass(kw_only=True, eq=False)
class WorstCaseWeightsDisplay(Display):
    r"""The worst-case weights of a robust fit, class by class.

    Each class's share of the rows, and its share :math:`m_i = q_i p_i` of the objective. The
    quotient, written beside the bars, is the weight :math:`q_i` of a row of the class in the worst
    case. Drawn by ``Axes.barh``.

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
    >>> from equipoise import LabelCVaR
    >>> rows = {"y_true": ["no", "no", "no", "yes"], "y_pred": ["no", "no", "no", "no"]}
    >>> display = WorstCaseWeightsDisplay.from_predictions(**rows, goal=LabelCVaR(0.5))
    >>> display.to_frame()["weight"].round(3).tolist()
    [0.667, 2.0]
    """

    prior: ByClass
    masses: ByClass

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        goal: Any = None,
        ax: Any = None,
    ) -> Self:
        """The worst case that a fitted classifier was fitted for, or that is the worst on rows.

        Parameters
        ----------
        estimator : classifier, or a pipeline that ends in one
            Without rows a robust linear model, or a plug-in or ``RobustClassifier`` whose goal is a
            set of weightings: its worst case is that of its risks on held-out rows.
        X, y : array-like, optional
            Rows and labels to find the worst case of any classifier's decisions on.
        goal : recipe of :mod:`equipoise.sets`, optional
            The set of weights for these rows, ``LabelCVaR(0.1)`` by default.
        ax : matplotlib Axes, optional
        """
        if X is not None and y is not None:
            return cls.from_predictions(y, estimator.predict(X), goal=goal, ax=ax)
        if any(argument is not None for argument in (X, y, goal)):
            raise InvalidInputError(
                "the worst case over rows needs X and y, and a goal needs rows."
            )
        plug_ins = [each for each in classifiers_inside(estimator) if hasattr(each, "tuned_")]
        if plug_ins:
            return cls(**_worst_case(plug_ins[0])).plot(ax)
        what = "the worst case", "RobustLogisticRegression", "worst_case_masses_", "class_prior_"
        masses, prior = fitted_attributes(estimator, *what, more="; X and y show that of any")
        return cls(prior=prior, masses=masses).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        goal: Any = None,
        sample_weight: ArrayLike | None = None,
        class_prior: Any = None,
        ax: Any = None,
    ) -> Self:
        """The weights of a set, by default ``LabelCVaR(0.1)``, that are the worst for predictions.

        Labels, ``sample_weight`` and ``class_prior`` are those of :func:`equipoise.class_risks`.
        """
        risks = class_risks(y_true, y_pred, sample_weight=sample_weight, class_prior=class_prior)
        return cls(prior=risks.prior, masses=risks.worst_case_masses(goal)).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each class: share of the rows, share of the objective, weight."""
        return {
            "class": self.masses.classes,
            "prior": np.asarray(self.prior),
            "mass": np.asarray(self.masses),
            "weight": weights_of(self.masses, self.prior),
        }

    def _title(self) -> str:
        return "Weights of the classes in the worst case"

    def _size(self) -> tuple[float, float]:
        return style.size_for(self.masses.classes, 2.0 if len(self.masses) <= style.FEW else 1.5)

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        names, prior, masses, weights = self.to_dict().values()
        places, ends = np.arange(len(names)), np.maximum(prior, masses)
        looks: dict[str, Any] = {"height": 0.36} | kwargs
        hatched = {"label": "share of rows", "color": "white", "hatch": "////"}
        plain = {"label": "share of objective", "color": style.COLORS[0]}
        rows = style.bars(ax, places - 0.19, prior, hatched | looks)
        share = style.bars(ax, places + 0.19, masses, plain | looks)
        room = style.room_for(ax, len(names))
        look = {"va": "center", "fontsize": min(style.SMALL, room)}
        for index, (weight, end) in enumerate(zip(weights, ends, strict=True)):
            if room < style.SMALLEST:
                break
            style.beside(ax, f"\N{MULTIPLICATION SIGN}{weight:.3g}", (end, index), (4, 0), look)
        ax.set_xlim(0, 1.25 * float(ends.max()))
        style.name_lines(ax, names, "share")
        style.in_percent(ax.xaxis)
        style.legend_above(ax, [rows, share], share=0.7)
        self.bars_ = (rows, share)


def _worst_case(fitted: Any) -> dict[str, ByClass]:
    """Prior and worst-case masses of a classifier whose decisions were tuned for a goal."""
    recipe = LabelCVaR(fitted.alpha_) if hasattr(fitted, "alpha_") else fitted.goal
    prior, goal = fitted.class_prior_, as_goal(recipe)
    if not isinstance(goal, SetGoal):
        raise InvalidInputError(
            f"the worst case of {type(fitted).__name__} cannot be shown without rows: its goal, "
            f"{goal!r}, is not a set of weightings. Give X, y and a set of weightings as goal."
        )
    # A known weighting is the worst one whatever the risks, which then do not matter.
    risks = np.asarray(getattr(fitted, "class_risks_", np.zeros(len(prior))))
    few, masses = np.isnan(risks), np.zeros(len(prior))
    among = prior_among(np.asarray(prior), prior.classes, ~few)
    masses[~few] = goal.uncertainty.resolve(among, prior.classes[~few]).maximize(risks[~few])
    return {"prior": prior, "masses": ByClass(masses, prior.classes)}
