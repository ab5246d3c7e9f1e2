"""Points with intervals: class risks side by side, and observed against predicted frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Indices, NDArray, Vector
from equipoise.decisions.classifiers import last_step
from equipoise.display import style
from equipoise.display.base import Display, named, responses
from equipoise.estimators.population_probabilities import (
    masses_of,
    population_proba,
    prior_of,
)
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.losses import Loss
from equipoise.risks import RiskIntervals, class_risk_intervals
from equipoise.risks.reliability import reliability_curve
from equipoise.validation.labels import (
    as_labels,
    check_length,
    check_sample_weight,
    classes_of,
    known_labels,
)
from equipoise.validation.numbers import check_count, check_word
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.priors import check_prior

_DASHES = ("-", "--", "-.", ":")


@dataclass(kw_only=True, eq=False)
class ClassRisksDisplay(Display):
    r"""The risk :math:`R_i` of every class with its confidence interval, for several classifiers.

    Drawn by ``Axes.errorbar`` from the first class down.

    Parameters
    ----------
    intervals : dict of RiskIntervals by classifier name
        Estimates and intervals, all over the same classes.
    rows : ndarray of shape (n_classes,)
        Rows of each class that the risks were measured on.

    Attributes
    ----------
    points_ : list of matplotlib ErrorbarContainer, one for each classifier

    Examples
    --------
    >>> made = {"mine": ["no", "no", "yes"], "other": ["no", "yes", "yes"]}
    >>> display = ClassRisksDisplay.from_predictions(["no", "no", "yes"], made)
    >>> display.to_frame()[["class", "rows", "risk"]].values.tolist()
    [['no', 2, 0.0], ['yes', 1, 0.0], ['no', 2, 0.5], ['yes', 1, 0.0]]
    """

    intervals: dict[str, RiskIntervals]
    rows: Indices

    @classmethod
    def from_estimator(  # noqa: PLR0913  what is evaluated on which rows, and how
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        loss: str | Loss = "zero_one",
        confidence: float = 0.95,
        simultaneous: bool = False,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Evaluate any fitted classifier, or a dict of them, as :meth:`from_predictions` does."""
        predicted, classes = responses(estimator, X, loss)
        return cls.from_predictions(
            y, predicted, loss=loss, confidence=confidence, simultaneous=simultaneous,
            classes=classes, sample_weight=sample_weight, ax=ax,
        )  # fmt: skip

    @classmethod
    def from_predictions(  # noqa: PLR0913  what is evaluated, and how
        cls,
        y_true: ArrayLike,
        y_pred: Any,
        *,
        loss: str | Loss = "zero_one",
        confidence: float = 0.95,
        simultaneous: bool = False,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Judge predictions, or several by the name of their classifier.

        Parameters
        ----------
        y_pred : array-like, or dict of arrays by name
        ax : matplotlib Axes, optional
        y_true, loss, confidence, simultaneous, classes, sample_weight
            As in :func:`equipoise.class_risk_intervals`.
        """
        intervals = {
            key: class_risk_intervals(
                y_true, values, confidence=confidence, simultaneous=simultaneous, loss=loss,
                classes=classes, sample_weight=sample_weight,
            )
            for key, values in named(y_pred, "classifier").items()
        }  # fmt: skip
        names = next(iter(intervals.values())).risks.classes
        truth = np.asarray(y_true)
        rows = np.array([np.count_nonzero(truth == each) for each in names])
        return cls(intervals=intervals, rows=rows).plot(ax)

    def __post_init__(self) -> None:
        names = [each.risks.classes.tolist() for each in self.intervals.values()]
        if not names or any(other != names[0] for other in names):
            raise ClassMismatchError(
                "intervals must be of the same classes in the same order for every classifier, "
                f"got {names}."
            )

    @property
    def classes(self) -> NDArray[Any]:
        """Class names, in order."""
        return next(iter(self.intervals.values())).risks.classes

    def to_dict(self) -> dict[str, Any]:
        """One line for each classifier and class: rows, risk, lower and upper end."""
        per_classifier = [(each.risks, each.lower, each.upper) for each in self.intervals.values()]
        risks, lower, upper = np.concatenate(np.asarray(per_classifier), axis=-1)
        return {
            "classifier": np.repeat(list(self.intervals), len(self.classes)),
            "class": np.tile(self.classes, len(per_classifier)),
            "rows": np.tile(self.rows, len(per_classifier)),
            "risk": risks,
            "lower": lower,
            "upper": upper,
        }

    def _title(self) -> str:
        title = f"{self._what().capitalize()} of each class"
        if len(self.intervals) > 1:
            return title
        return f"{title}: {style.shown(next(iter(self.intervals)), width=40, lines=1)}"

    def _what(self) -> str:
        loss = next(iter(self.intervals.values())).loss
        return "share of errors" if loss == "zero_one" else loss.replace("_", " ")

    def _size(self) -> tuple[float, float]:
        lines = max(style.lines_for(self.classes, notes=1), 0.62 * len(self.intervals))
        return style.size_for(self.classes, lines)

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        n = len(self.intervals)
        names = style.all_shown(self.intervals, width=22, lines=2)
        self.points_ = []
        for index, estimates in enumerate(self.intervals.values()):
            heights = np.arange(len(self.classes)) + (index - (n - 1) / 2) * 0.74 / n
            risks, lower, upper = (
                np.asarray(v) for v in (estimates.risks, estimates.lower, estimates.upper)
            )
            # An interval without an end, as of a class of one row, has a bar to the risk alone.
            ends = style.reach(risks, lower, np.where(np.isfinite(upper), upper, risks))
            look = style.series(index, names[index]) | {"elinewidth": 1.2} | kwargs
            self.points_.append(ax.errorbar(risks, heights, xerr=ends, **look))
        self._label(ax)
        if n > 1:
            style.legend_above(ax, self.points_, share=0.62)

    def _label(self, ax: Any) -> None:
        first = next(iter(self.intervals.values()))
        together = ", all together" if first.simultaneous else ""
        label = f"{self._what()}, {first.confidence:.0%} intervals{together}"
        counts = [f"{rows:,} rows" for rows in self.rows]
        style.name_lines(ax, self.classes.tolist(), label, notes=counts)
        for edge in range(len(counts)):
            ax.axhline(edge - 0.5, color=style.GRID, linewidth=0.6)
        top = max(float(ax.dataLim.x1), 0.05)
        # Markers at zero are whole, and the axis of a share ends at one.
        ax.set_xlim(-0.02 * top, min(1.02, 1.05 * top) if first.loss == "zero_one" else 1.05 * top)
        if first.loss == "zero_one":
            style.in_percent(ax.xaxis)


@dataclass(kw_only=True, eq=False)
class ReliabilityDisplay(Display):
    r"""Observed against predicted frequency of one class.

    In each bin the mean of :math:`\hat\eta_i(x)` stands against the share of rows that are of
    class ``i``, with its exact binomial interval: calibrated probabilities lie on the diagonal.
    Probabilities of a class-weighted fit are too high for rare classes;
    :func:`~equipoise.population_proba` returns those of the population. Drawn by
    ``Axes.errorbar``.

    Parameters
    ----------
    curves : dict by name of dict of ndarray
        ``predicted``, ``observed``, ``lower``, ``upper`` and ``rows`` of each bin that has rows.
    pos_label : class name
        The class whose probability it is.

    Attributes
    ----------
    points_ : list of matplotlib ErrorbarContainer, one for each curve

    Examples
    --------
    >>> y, proba = ["no", "no", "yes", "yes"], [0.1, 0.3, 0.4, 0.9]
    >>> display = ReliabilityDisplay.from_predictions(y, proba, n_bins=2)
    >>> display.to_frame()[["predicted", "observed", "rows"]].round(2).values.tolist()
    [[0.27, 0.33, 3.0], [0.9, 1.0, 1.0]]
    """

    curves: dict[str, dict[str, Vector]]
    pos_label: Any

    @classmethod
    def from_estimator(  # noqa: PLR0913  what is evaluated on which rows, and how
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        class_prior: Any = None,
        pos_label: Any = None,
        n_bins: int = 5,
        strategy: str = "uniform",
        ax: Any = None,
    ) -> Self:
        """Probabilities as a fit gives them, and of a reweighted one on the population's scale.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
            A fitted one, or a pipeline that ends in one. The scale of the population is shown where
            it was trained with weights, or where ``class_prior`` is given: a plug-in's
            probabilities are on the scale of its rows.
        X, y : array-like
            Rows that the fit has not seen, and labels.
        class_prior : dict or array-like, optional
            Class frequencies of the population, where those of the rows differ: each row then
            counts as often as the population has rows of its class. By default the probabilities
            are put on the frequencies of the training rows, and the rows count once.
        pos_label, n_bins, strategy, ax
            As in :meth:`from_predictions`.
        """
        classifier = last_step(estimator)
        if not hasattr(classifier, "predict_proba"):
            raise InvalidInputError(
                f"the reliability of {type(classifier).__name__} cannot be shown: it has no "
                "predict_proba: wrap it in scikit-learn's CalibratedClassifierCV."
            )
        # A pipeline passes on predict_proba alone.
        rows = X if classifier is estimator else estimator[:-1].transform(X)
        probabilities = {"as fitted": classifier.predict_proba(rows)}
        names, weights = classifier.classes_, None
        stated = class_prior is not None and prior_of(classifier) is not None
        if stated or masses_of(classifier) is not None:
            put_back = population_proba(classifier, rows, class_prior)
            probabilities["population scale"] = put_back
        if class_prior is not None:
            labels = known_labels(as_labels(y, name="y"), names)
            shares = np.bincount(labels, minlength=len(names)) / len(labels)
            weights = check_prior(class_prior, names)[labels] / shares[labels]
        return cls.from_predictions(
            y, probabilities, classes=names, pos_label=pos_label, n_bins=n_bins,
            strategy=strategy, sample_weight=weights, ax=ax,
        )  # fmt: skip

    @classmethod
    def from_predictions(  # noqa: PLR0913  what is evaluated, and how
        cls,
        y_true: ArrayLike,
        y_proba: Any,
        *,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        n_bins: int = 5,
        strategy: str = "uniform",
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Evaluate probabilities, or several by name.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        y_proba : array-like of shape (n,) or (n, n_classes), or dict of such by name
            Probabilities; one column is about ``pos_label``.
        classes : array-like of shape (n_classes,), optional
            Classes in the order of the columns; those in ``y_true``, sorted, if not given.
        pos_label : class name, optional
            The class whose probability is evaluated: by default the rarest in ``y_true``, or the
            last of ``classes`` where there is one column.
        n_bins : int, default=5
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        ax : matplotlib Axes, optional
        """
        check_count(n_bins, "n_bins")
        check_word(strategy, "strategy", ("uniform", "quantile"))
        truth = np.asarray(y_true)
        names = classes_of(truth) if classes is None else np.asarray(classes)
        tables = {k: np.asarray(v) for k, v in named(y_proba, "probabilities").items()}
        flat = any(values.ndim == 1 for values in tables.values())
        which = _which(truth, names, pos_label, flat)
        weights = check_sample_weight(sample_weight, len(truth))
        used = weights > 0
        curves, edges = {}, np.linspace(0, 1, n_bins + 1)[1:-1]
        for name, values in tables.items():
            n_columns, column = (None, 1) if values.ndim == 1 else (len(names), which)
            probabilities = as_probabilities(values, n_columns, name="y_proba")[:, column]
            check_length(probabilities, len(truth), name="y_proba")
            inner = np.quantile(probabilities, edges) if strategy == "quantile" else edges
            events = (truth == names[which])[used]
            curves[name] = reliability_curve(events, probabilities[used], weights[used], inner)
        return cls(curves=curves, pos_label=names[which]).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each curve and bin."""
        curves = list(self.curves.values())
        names = np.repeat(list(self.curves), [len(curve["rows"]) for curve in curves])
        return {"curve": names} | {
            name: np.concatenate([curve[name] for curve in curves]) for name in curves[0]
        }

    def _title(self) -> str:
        return (
            f"Predicted and observed frequency of {style.shown(self.pos_label, width=40, lines=1)}"
        )

    def _size(self) -> tuple[float, float]:
        return 4.2, 4.4

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        (ideal,) = ax.plot([0, 1], [0, 1], color=style.INK, linewidth=1.0, linestyle=":")
        ideal.set_label("calibrated")
        names = style.all_shown(self.curves, width=22)
        self.points_ = []
        for index, curve in enumerate(self.curves.values()):
            dash = {"linestyle": _DASHES[index % len(_DASHES)], "linewidth": 1.0, "elinewidth": 1.0}
            look = style.series(index, names[index]) | dash | kwargs
            x, y = curve["predicted"], curve["observed"]
            ends = style.reach(y, curve["lower"], curve["upper"])
            self.points_.append(ax.errorbar(x, y, yerr=ends, **look))
        who = style.shown(self.pos_label, width=28)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        style.label_axes(ax, f"predicted probability of {who}", "observed frequency", grid="both")
        style.in_percent(ax.xaxis, ax.yaxis)
        style.legend_above(ax, [*self.points_, ideal])


def _which(truth: Any, classes: Any, pos_label: Any, flat: bool) -> int:
    """The index of the class whose probability is evaluated."""
    if pos_label is None and flat:
        return len(classes) - 1
    if pos_label is None:
        counts = np.array([np.count_nonzero(truth == label) for label in classes])
        return int(np.where(counts > 0, counts, counts.max() + 1).argmin())
    if pos_label not in classes.tolist():
        raise ClassMismatchError(
            f"pos_label must be one of the classes {classes.tolist()}, got {pos_label!r}."
        )
    return int(classes.tolist().index(pos_label))
