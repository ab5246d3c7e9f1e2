"""Which part of the excess risk would more data cure? Irreducible and estimation error."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector
from equipoise.display import style
from equipoise.exceptions import InvalidInputError
from equipoise.theory import Bootstrap, estimated_excess_risk
from equipoise.theory.weightings import named_weightings

_PARTS = ("irreducible", "estimation", "excess")


@dataclass(kw_only=True, eq=False)
class ErrorDecompositionDisplay:
    r"""Excess risk of classifiers made for one weighting and judged under another, in two parts.

    .. math:: R_{q'}(\hat f_q) - R_{q'}(f^*_{q'}) =
              \underbrace{R_{q'}(\hat f_q) - R_{q'}(f^*_q)}_{\text{estimation}} +
              \underbrace{R_{q'}(f^*_q) - R_{q'}(f^*_{q'})}_{\text{irreducible}}

    The irreducible part is the price of the wrong weighting and stays however many rows there
    are. The estimation part can be negative, where an error happens to help.

    Parameters
    ----------
    decompositions : dict by name
        What :mod:`equipoise.analysis` finds: objects with the numbers ``irreducible``,
        ``estimation`` and ``excess``, and perhaps ``intervals`` for them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    bars_ : tuple of two matplotlib BarContainer: irreducible and estimation error
    total_ : matplotlib Line2D of the excess risks
    """

    decompositions: Mapping[str, Any]
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    bars_: Any = field(init=False, repr=False, default=())
    total_: Any = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if not self.decompositions:
            raise InvalidInputError("decompositions must hold at least one entry by name.")

    @classmethod
    def from_decompositions(cls, decompositions: Mapping[str, Any], *, ax: Any = None) -> Self:
        """Draw what the analysis of excess risks found, by name.

        Parameters
        ----------
        decompositions : dict of ExcessRisk or ClassExcess by name
        ax : matplotlib Axes, optional

        Returns
        -------
        ErrorDecompositionDisplay
        """
        return cls(decompositions=dict(decompositions)).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        reference: ArrayLike,
        y_proba: ArrayLike,
        *,
        weightings: Any = ("standard", "balanced"),
        y: ArrayLike | None = None,
        bootstrap: Bootstrap | None = None,
        ax: Any = None,
    ) -> Self:
        """Decompose the excess risk of plug-in rules, each weighting judged under every one.

        Parameters
        ----------
        reference : array-like of shape (n, n_classes), or (n,) for two classes
            True class probabilities, or calibrated ones that stand for them.
        y_proba : array-like of the same shape
            The probabilities that the rules go by.
        weightings : dict by name, or list
            Each is ``"standard"``, ``"balanced"``, or weights in class order.
        y, bootstrap
            As in :func:`equipoise.analysis.estimated_excess_risk`.
        ax : matplotlib Axes, optional

        Returns
        -------
        ErrorDecompositionDisplay
        """
        worlds = named_weightings(weightings)
        found = {
            f"made for {made}, judged under {judged}": estimated_excess_risk(
                reference, y_proba, worlds[made], worlds[judged], y=y, bootstrap=bootstrap
            )
            for made in worlds
            for judged in worlds
        }
        return cls.from_decompositions(found, ax=ax)

    def frame(self) -> Any:
        """One line for each entry: the two parts and their sum, with intervals where known."""
        columns: dict[str, Any] = {"name": list(self.decompositions)}
        for part in _PARTS:
            columns[part] = self._numbers(part)
            ends = self._ends(part)
            if ends is not None:
                columns[f"{part}_lower"], columns[f"{part}_upper"] = ends
        return style.data_frame(columns)

    def _numbers(self, part: str) -> Vector:
        return np.array([float(getattr(each, part)) for each in self.decompositions.values()])

    def _ends(self, part: str) -> Any:
        """Lower and upper ends, or None where an entry has none."""
        every = self.decompositions.values()
        found = [each.intervals for each in every if getattr(each, "intervals", None) is not None]
        if len(found) < len(every):
            return None
        return np.array([each[part] for each in found], dtype=np.float64).T

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw two bars for each entry, and a diamond at their sum.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.barh``.

        Returns
        -------
        self : ErrorDecompositionDisplay
        """
        places = np.arange(len(self.decompositions))
        ax = style.axes(ax, height=style.height_for(3.0 * len(places)))
        fixed = self._bars(ax, "irreducible", places - 0.18, {"color": style.color(0)} | kwargs)
        dotted = {"color": "white", "hatch": "...."}
        learnt = self._bars(ax, "estimation", places + 0.18, dotted | kwargs)
        (self.total_,) = ax.plot(
            self._numbers("excess"),
            places,
            linestyle="none",
            marker="D",
            color=style.color(1),
            markeredgecolor=style.INK,
            label="excess risk",
            zorder=4,
        )
        self._label(ax)
        style.legend_above(ax, [fixed, learnt, self.total_], share=0.65)
        self.bars_, self.ax_, self.figure_ = (fixed, learnt), ax, ax.figure
        return self

    def _bars(self, ax: Any, part: str, places: Any, options: dict[str, Any]) -> Any:
        numbers, ends = self._numbers(part), self._ends(part)
        reach = None if ends is None else np.maximum([numbers - ends[0], ends[1] - numbers], 0.0)
        shape = {"height": 0.34, "edgecolor": style.INK, "linewidth": 0.8, "label": part}
        whiskers = {"elinewidth": 1.0, "capsize": 1.5, "ecolor": style.color(5)}
        return ax.barh(places, numbers, xerr=reach, error_kw=whiskers, **(shape | options))

    def _label(self, ax: Any) -> None:
        names = style.all_shown(self.decompositions, width=18, lines=3)
        ax.axvline(0, color=style.INK, linewidth=0.8)
        ax.set_yticks(np.arange(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel("risk above the best possible", fontsize="small")
        # The last tick label stays inside the figure.
        ax.margins(x=0.12)
        style.tidy(ax, grid="x")
