"""Can the probabilities be taken at their word? Before and after putting them back to scale."""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Vector
from equipoise.display import style
from equipoise.display.classifiers import last_step, named
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.risks import class_risk_intervals
from equipoise.validation.labels import classes_of
from equipoise.validation.numbers import check_count

Strategy = Literal["uniform", "quantile"]


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Bins of rows by predicted probability, arrays with one entry for each bin that has rows."""

    predicted: Vector
    observed: Vector
    lower: Vector
    upper: Vector
    rows: NDArray[np.intp]


@dataclass(kw_only=True, eq=False)
class ReliabilityDisplay:
    r"""Observed against predicted frequency of one class.

    In each bin the mean of :math:`\hat\eta_i(x)` stands against the share of rows that are of
    class ``i``, with its exact binomial interval: calibrated probabilities lie on the diagonal.
    A reweighted fit speaks of a world in which rare classes are common;
    ``predict_population_proba`` puts its probabilities back.

    Parameters
    ----------
    curves : dict of ReliabilityCurve by name
    pos_label : class name
        The class whose probability it is.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    points_ : list of matplotlib ErrorbarContainer, one for each curve
    """

    curves: dict[str, ReliabilityCurve]
    pos_label: Any
    ax_: Any = field(init=False, repr=False, default=None)
    figure_: Any = field(init=False, repr=False, default=None)
    points_: list[Any] = field(init=False, repr=False, default_factory=list)

    @classmethod
    def from_estimator(  # noqa: PLR0913  rows, which class, how to bin, and where to draw
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        n_bins: int = 5,
        strategy: Strategy = "uniform",
        prior: Any = None,
        ax: Any = None,
    ) -> Self:
        """Probabilities as the fit gives them, and on the scale of the population.

        Parameters
        ----------
        estimator : classifier with ``predict_proba`` and ``predict_population_proba``
            A fitted one, or a pipeline that ends in one.
        X, y : array-like
            Rows that the fit has not seen, and labels.
        pos_label : class name, optional
            The class whose probability to judge: by default the rarest in ``y``.
        n_bins, strategy
            As in :meth:`from_predictions`.
        prior : dict or array-like, optional
            Class frequencies of the population; those of the training rows by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        ReliabilityDisplay
        """
        classifier = last_step(estimator)
        if not hasattr(classifier, "predict_population_proba"):
            raise InvalidInputError(
                "reliability before and after needs a classifier with predict_population_proba, "
                f"such as RobustLogisticRegression, got {type(classifier).__name__}; for other "
                "probabilities use from_predictions."
            )
        # A pipeline passes on predict_proba alone.
        rows = X if classifier is estimator else estimator[:-1].transform(X)
        probabilities = {
            "as fitted": classifier.predict_proba(rows),
            "population scale": classifier.predict_population_proba(rows, prior),
        }
        return cls.from_predictions(
            y,
            probabilities,
            labels=classifier.classes_,
            pos_label=pos_label,
            n_bins=n_bins,
            strategy=strategy,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: Any,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        n_bins: int = 5,
        strategy: Strategy = "uniform",
        ax: Any = None,
    ) -> Self:
        """Judge probabilities, or several by name.

        Parameters
        ----------
        y_true : array-like of shape (n,)
        y_proba : array-like of shape (n,) or (n, n_classes), or dict of such by name
            Probabilities; one column is about ``pos_label``.
        labels : array-like of shape (n_classes,), optional
            Classes in the order of the columns; those in ``y_true``, sorted, if not given.
        pos_label : class name, optional
            The class whose probability to judge: by default the rarest in ``y_true``, or the
            last of ``labels`` where there is one column.
        n_bins : int, default=5
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        ax : matplotlib Axes, optional

        Returns
        -------
        ReliabilityDisplay
        """
        check_count(n_bins, "n_bins")
        truth = np.asarray(y_true)
        classes = classes_of(truth) if labels is None else np.asarray(labels)
        given = {k: np.asarray(v) for k, v in named(y_proba, "probabilities", what="curve").items()}
        flat = any(values.ndim == 1 for values in given.values())
        which = _which(truth, classes, pos_label, flat)
        curves = {
            name: _curve(truth == classes[which], _column(values, which, classes), n_bins, strategy)
            for name, values in given.items()
        }
        return cls(curves=curves, pos_label=classes[which]).plot(ax)

    def frame(self) -> Any:
        """One line for each curve and bin."""
        lengths = [len(curve.rows) for curve in self.curves.values()]
        fields = ("predicted", "observed", "lower", "upper", "rows")
        columns = {
            name: np.concatenate([getattr(curve, name) for curve in self.curves.values()])
            for name in fields
        }
        return style.data_frame({"curve": np.repeat(list(self.curves), lengths)} | columns)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves with their intervals around the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.errorbar``.

        Returns
        -------
        self : ReliabilityDisplay
        """
        ax = style.axes(ax, width=4.2, height=4.2)
        (ideal,) = ax.plot([0, 1], [0, 1], color=style.INK, linewidth=1.0, linestyle=":")
        ideal.set_label("calibrated")
        names = style.all_shown(self.curves, width=22)
        self.points_ = [
            _draw(ax, curve, place, names[place], kwargs)
            for place, curve in enumerate(self.curves.values())
        ]
        who = style.shown(self.pos_label, width=28)
        ax.set_xlabel(f"predicted probability of {who}", fontsize="small")
        ax.set_ylabel("observed frequency", fontsize="small")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        style.tidy(ax, grid="both")
        style.legend_above(ax, [*self.points_, ideal])
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _which(truth: Any, classes: Any, pos_label: Any, flat: bool) -> int:
    """The place of the class whose probability is judged."""
    if pos_label is None and flat:
        return len(classes) - 1
    if pos_label is None:
        counts = np.array([np.count_nonzero(truth == label) for label in classes])
        return int(np.where(counts > 0, counts, counts.max() + 1).argmin())
    places = [place for place, label in enumerate(classes.tolist()) if label == pos_label]
    if not places:
        raise ClassMismatchError(
            f"pos_label must be one of the classes {classes.tolist()}, got {pos_label!r}."
        )
    return places[0]


def _column(values: Any, which: int, classes: Any) -> Vector:
    column = values if values.ndim == 1 else values[:, which] if _fits(values, classes) else None
    if column is None:
        raise InvalidInputError(
            f"y_proba must have one column for each of {len(classes)} classes, got shape "
            f"{values.shape}; labels= names the columns where y_true lacks a class."
        )
    column = np.asarray(column, dtype=np.float64)
    if not np.all((column >= 0) & (column <= 1)):
        raise InvalidInputError("y_proba must hold probabilities between 0 and 1.")
    return column


def _fits(values: Any, classes: Any) -> bool:
    return bool(values.ndim == 2 and values.shape[1] == len(classes))


def _curve(events: Any, probabilities: Vector, n_bins: int, strategy: str) -> ReliabilityCurve:
    if len(events) != len(probabilities):
        raise InvalidInputError(
            f"y_proba must have one row for each of the {len(events)} rows of y_true, got "
            f"{len(probabilities)}."
        )
    bins = _bins(probabilities, n_bins, strategy)
    rows = np.bincount(bins)
    predicted = np.bincount(bins, weights=probabilities) / rows
    # A bin is a class whose errors are the events: the same exact binomial interval.
    found = class_risk_intervals(bins, np.where(events, -1, bins))
    return ReliabilityCurve(
        predicted,
        observed=np.asarray(found.risks),
        lower=np.asarray(found.lower),
        upper=np.asarray(found.upper),
        rows=rows.astype(np.intp),
    )


def _bins(probabilities: Vector, n_bins: int, strategy: str) -> Any:
    """Bin numbers 0, 1, ... with no bin left empty."""
    if strategy == "quantile":
        edges = np.quantile(probabilities, np.linspace(0, 1, n_bins + 1)[1:-1])
    elif strategy == "uniform":
        edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    else:
        raise InvalidParameterError(f"strategy must be 'quantile' or 'uniform', got {strategy!r}.")
    raw = np.searchsorted(edges, probabilities, side="right")
    return np.unique(raw, return_inverse=True)[1]


def _draw(ax: Any, curve: ReliabilityCurve, place: int, label: str, kwargs: dict[str, Any]) -> Any:
    options = {
        "fmt": style.marker(place),
        "linestyle": ("-", "--", "-.", ":")[place % 4],
        "color": style.color(place),
        "label": label,
        "linewidth": 1.0,
        "markersize": 4.5,
        "elinewidth": 1.0,
        "capsize": 1.5,
    }
    ends = np.maximum([curve.observed - curve.lower, curve.upper - curve.observed], 0.0)
    return ax.errorbar(curve.predicted, curve.observed, yerr=ends, **(options | kwargs))
