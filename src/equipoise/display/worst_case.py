"""Which world was a classifier made robust against? The worst-case weights."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.display import style
from equipoise.display.classifiers import fitted_attribute
from equipoise.risks import class_risks
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import weights_of


@dataclass(kw_only=True, eq=False)
class WorstCaseWeightsDisplay:
    r"""Each class's share of the rows, and its share :math:`m_i = q_i p_i` of the objective.

    The quotient is the weight :math:`q_i`: how many times a row of the class counts in the world
    that was the worst.

    Parameters
    ----------
    prior : ByClass
        Share of the rows, :math:`p_i`.
    masses : ByClass
        Share of the objective, :math:`m_i`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    bars_ : tuple of two matplotlib BarContainer: the rows and the objective
    """

    prior: ByClass
    masses: ByClass
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    bars_: Any = field(init=False, repr=False, default=())

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """The worst case that a fitted classifier, or the last step of a pipeline, reports.

        Parameters
        ----------
        estimator : classifier with ``class_prior_`` and ``worst_case_masses_``
        ax : matplotlib Axes, optional

        Returns
        -------
        WorstCaseWeightsDisplay

        Examples
        --------
        >>> from equipoise import LabelCVaR, RobustLogisticRegression
        >>> from equipoise.datasets import load_thyroid
        >>> X, y = load_thyroid(return_X_y=True)
        >>> clf = RobustLogisticRegression(LabelCVaR(0.5)).fit(X, y)
        >>> frame = WorstCaseWeightsDisplay.from_estimator(clf).frame()  # doctest: +SKIP
        >>> bool(frame["weight"].max() <= 2 + 1e-9)  # doctest: +SKIP
        True
        """
        masses = fitted_attribute(estimator, "worst_case_masses_", wanted="the worst case")
        prior = fitted_attribute(estimator, "class_prior_", wanted="the worst case")
        return cls(prior=prior, masses=masses).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        uncertainty: Any = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """The weights of a set that are the worst for given predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            True and predicted labels.
        uncertainty : Uncertainty, default=LabelCVaR(alpha=0.1)
        sample_weight : array-like, optional
        ax : matplotlib Axes, optional

        Returns
        -------
        WorstCaseWeightsDisplay
        """
        risks = class_risks(y_true, y_pred, sample_weight=sample_weight)
        return cls(prior=risks.prior, masses=risks.worst_case_masses(uncertainty)).plot(ax)

    @property
    def weights(self) -> ByClass:
        """How many times a row of each class counts."""
        return ByClass(weights_of(self.masses, self.prior), self.masses.classes)

    def frame(self) -> Any:
        """One line for each class: share of the rows, share of the objective, weight."""
        return style.data_frame(
            {
                "class": self.masses.classes,
                "prior": np.asarray(self.prior),
                "mass": np.asarray(self.masses),
                "weight": np.asarray(self.weights),
            }
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw two bars for each class, with the weight beside them.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.barh``.

        Returns
        -------
        self : WorstCaseWeightsDisplay
        """
        places = np.arange(len(self.masses))
        ax = style.axes(ax, height=style.height_for(2.0 * len(places)))
        prior, masses = np.asarray(self.prior), np.asarray(self.masses)
        options = {"height": 0.36, "edgecolor": style.INK, "linewidth": 0.8} | kwargs
        rows = ax.barh(
            places - 0.19, prior, label="share of rows", color="white", hatch="////", **options
        )
        share = ax.barh(
            places + 0.19, masses, label="share of objective", color=style.color(0), **options
        )
        self._write_weights(ax, np.maximum(prior, masses))
        ax.set_yticks(places, style.all_shown(self.masses.classes))
        ax.set_ylim(len(places) - 0.5, -0.5)
        ax.set_xlim(0, 1.25 * max(float(np.max(prior)), float(np.max(masses))))
        ax.set_xlabel("share", fontsize="small")
        style.tidy(ax, grid="x")
        style.legend_above(ax, [rows, share], share=0.7)
        self.bars_, self.ax_, self.figure_ = (rows, share), ax, ax.figure
        return self

    def _write_weights(self, ax: Any, reach: Any) -> None:
        for place, (weight, end) in enumerate(zip(self.weights.values(), reach, strict=True)):
            ax.annotate(
                f"\N{MULTIPLICATION SIGN}{weight:.3g}",
                (end, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
