"""What does a weighting cost when another one turns out to be right?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.analysis import WeightTradeoff
from equipoise.arrays import Matrix
from equipoise.display import style
from equipoise.display.classifiers import named, named_estimators, responses
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks import class_risks

Value = Literal["risk", "regret"]


@dataclass(kw_only=True, eq=False)
class TradeoffDisplay:
    r"""The risk under :math:`q'` (columns) of the classifier made for :math:`q` (rows).

    .. math:: T_{q q'} = R_{q'}(f_q) = \sum_i q'_i p_i R_i(f_q)

    The regret is what it costs to have been made for something else: the risk minus that of the
    classifier made for the column, or, where it is not given, minus the smallest of the column.

    Parameters
    ----------
    risks : array-like of shape (n_made_for, n_judged_under)
    made_for : sequence of str
        Names of the rows.
    judged_under : sequence of str
        Names of the columns.
    regrets : array-like of the same shape, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    im_ : matplotlib AxesImage
    text_ : ndarray of matplotlib Text, one for each cell
    """

    risks: Matrix
    made_for: Sequence[str]
    judged_under: Sequence[str]
    regrets: Any = None
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    im_: Any = field(init=False, repr=False, default=None)
    text_: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self.risks = np.array(self.risks, dtype=np.float64)
        expected = (len(self.made_for), len(self.judged_under))
        if self.risks.shape != expected or 0 in expected:
            raise InvalidInputError(
                f"risks must have a row for each of {expected[0]} classifiers and a column for "
                f"each of {expected[1]} weightings, got shape {self.risks.shape}."
            )
        given = self.risks - self.risks.min(axis=0) if self.regrets is None else self.regrets
        self.regrets = np.array(given, dtype=np.float64)
        if self.regrets.shape != expected:
            raise InvalidInputError(
                f"regrets must have the shape of risks, {expected}, got {self.regrets.shape}."
            )

    @classmethod
    def from_tradeoff(cls, tradeoff: WeightTradeoff, *, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.analysis.weight_tradeoff` found.

        Parameters
        ----------
        tradeoff : WeightTradeoff
        ax : matplotlib Axes, optional

        Returns
        -------
        TradeoffDisplay
        """
        return cls(
            risks=tradeoff.risks,
            made_for=tradeoff.made_for,
            judged_under=tradeoff.judged_under,
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
        """Judge fitted classifiers, by the name of what they were made for, under weightings.

        Parameters
        ----------
        estimator : dict of classifiers by name, or one classifier
        X, y : array-like
            Rows and labels.
        weightings : dict of uncertainty sets by name, optional
            What to judge by: anything that estimators take as ``uncertainty``, weights by class
            among them as ``FixedWeights``. The default is standard, balanced and worst class.
        sample_weight : array-like, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        TradeoffDisplay
        """
        predicted = responses(named_estimators(estimator, None), X, "zero_one")
        return cls.from_predictions(
            y, predicted, weightings=weightings, sample_weight=sample_weight, ax=ax
        )

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
        """Judge predicted labels, by the name of what they were made for, under weightings.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        y_pred : dict of arrays of labels by name, or one array
        weightings, sample_weight, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        TradeoffDisplay

        Examples
        --------
        >>> y = ["a", "a", "a", "b"]
        >>> made = {"standard": ["a", "a", "a", "a"], "balanced": ["a", "a", "b", "b"]}
        >>> display = TradeoffDisplay.from_predictions(y, made)  # doctest: +SKIP
        >>> display.risks.round(3).tolist()  # doctest: +SKIP
        [[0.25, 0.5, 1.0], [0.25, 0.167, 0.333]]
        """
        if weightings is None:
            weightings = {
                "standard": "standard",
                "balanced": "balanced",
                "worst class": "worst-class",
            }
        found = {
            name: class_risks(y_true, labels, sample_weight=sample_weight)
            for name, labels in named(y_pred, None, what="classifier").items()
        }
        risks = np.array(
            [[each.robust(world) for world in weightings.values()] for each in found.values()]
        )
        return cls(risks=risks, made_for=list(found), judged_under=list(weightings)).plot(ax)

    def frame(self) -> Any:
        """One line for each classifier and weighting: risk and regret."""
        rows, columns = self.risks.shape
        return style.data_frame(
            {
                "made_for": np.repeat(list(self.made_for), columns),
                "judged_under": np.tile(list(self.judged_under), rows),
                "risk": self.risks.ravel(),
                "regret": self.regrets.ravel(),
            }
        )

    def plot(self, ax: Any = None, *, value: Value = "risk", **kwargs: Any) -> Self:
        """Draw the matrix: dark cells are costly, every cell says its number.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        value : {"risk", "regret"}, default="risk"
            What the cells show. The smallest of each column is set in bold.
        **kwargs
            For ``Axes.imshow``.

        Returns
        -------
        self : TradeoffDisplay
        """
        if value not in ("risk", "regret"):
            raise InvalidParameterError(f"value must be 'risk' or 'regret', got {value!r}.")
        cells = self.risks if value == "risk" else self.regrets
        rows, columns = cells.shape
        ax = style.axes(ax, width=max(3.5, 1.7 + 0.75 * columns), height=1.2 + 0.42 * rows)
        options = {"cmap": "Blues", "vmin": 0.0, "vmax": _top(cells), "aspect": "auto"}
        self.im_ = ax.imshow(cells, **(options | kwargs))
        self.text_ = self._write(ax, cells)
        self._label(ax, value)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write(self, ax: Any, cells: Matrix) -> Any:
        best = cells.min(axis=0)
        texts = np.empty(cells.shape, dtype=object)
        for (row, column), cell in np.ndenumerate(cells):
            texts[row, column] = ax.text(
                column,
                row,
                f"{cell:.3f}",
                ha="center",
                va="center",
                fontsize="small",
                fontweight="bold" if cell == best[column] else "normal",
                color="white" if _is_dark(self.im_, float(cell)) else style.INK,
            )
        return texts

    def _label(self, ax: Any, value: str) -> None:
        columns = style.all_shown(self.judged_under, width=11, lines=3)
        ax.set_xticks(np.arange(len(columns)), columns)
        rows = style.all_shown(self.made_for, width=16)
        ax.set_yticks(np.arange(len(rows)), rows)
        ax.set_xlabel(f"judged under ({value})", fontsize="small")
        ax.set_ylabel("made for", fontsize="small")
        ax.tick_params(labelsize="small", length=0)
        for side in ax.spines.values():
            side.set_visible(False)
        for edge in np.arange(len(rows) - 1) + 0.5:
            ax.axhline(edge, color="white", linewidth=1.5)
        for edge in np.arange(len(columns) - 1) + 0.5:
            ax.axvline(edge, color="white", linewidth=1.5)


def _top(cells: Matrix) -> float:
    # An image without any contrast would paint zeros in the darkest colour.
    return max(float(np.nanmax(cells)), 1e-12)


def _is_dark(image: Any, value: float) -> bool:
    red, green, blue, _ = image.cmap(image.norm(value))
    return bool(0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5)
