"""Can the probabilities be taken at their word? Before and after putting them back to scale."""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Vector
from equipoise.display import style
from equipoise.display.base import Display, last_step, named
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.risks import class_risk_intervals
from equipoise.validation import as_probabilities, check_count, check_word, classes_of

Strategy = Literal["uniform", "quantile"]
_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Bins of rows by predicted probability, arrays with one entry for each bin that has rows."""

    predicted: Vector
    observed: Vector
    lower: Vector
    upper: Vector
    rows: Indices


@dataclass(kw_only=True, eq=False)
class ReliabilityDisplay(Display):
    r"""Observed against predicted frequency of one class.

    In each bin the mean of :math:`\hat\eta_i(x)` stands against the share of rows that are of
    class ``i``, with its exact binomial interval: calibrated probabilities lie on the diagonal.
    A reweighted fit speaks of a world in which rare classes are common;
    ``predict_population_proba`` puts its probabilities back. Drawn by ``Axes.errorbar``.

    Parameters
    ----------
    curves : dict of ReliabilityCurve by name
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

    curves: dict[str, ReliabilityCurve]
    pos_label: Any
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
        class_prior: Any = None,
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
        class_prior : dict or array-like, optional
            Class frequencies of the population; those of the training rows by default.
        ax : matplotlib Axes, optional
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
            "population scale": classifier.predict_population_proba(rows, class_prior),
        }
        return cls.from_predictions(
            y,
            probabilities,
            classes=classifier.classes_,
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
        classes: ArrayLike | None = None,
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
        classes : array-like of shape (n_classes,), optional
            Classes in the order of the columns; those in ``y_true``, sorted, if not given.
        pos_label : class name, optional
            The class whose probability to judge: by default the rarest in ``y_true``, or the
            last of ``classes`` where there is one column.
        n_bins : int, default=5
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        ax : matplotlib Axes, optional
        """
        check_count(n_bins, "n_bins")
        check_word(strategy, "strategy", ("uniform", "quantile"))
        truth = np.asarray(y_true)
        names = classes_of(truth) if classes is None else np.asarray(classes)
        given = {k: np.asarray(v) for k, v in named(y_proba, "probabilities", what="curve").items()}
        flat = any(values.ndim == 1 for values in given.values())
        which = _which(truth, names, pos_label, flat)
        curves = {
            name: _curve(
                truth == names[which], _column(values, which, len(names)), n_bins, strategy
            )
            for name, values in given.items()
        }
        return cls(curves=curves, pos_label=names[which]).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each curve and bin."""
        curves = list(self.curves.values())
        fields = ("predicted", "observed", "lower", "upper", "rows")
        names = np.repeat(list(self.curves), [len(curve.rows) for curve in curves])
        return {"curve": names} | {
            name: np.concatenate([getattr(curve, name) for curve in curves]) for name in fields
        }

    def _size(self) -> tuple[float, float]:
        return 4.2, 4.2

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        (ideal,) = ax.plot([0, 1], [0, 1], color=style.INK, linewidth=1.0, linestyle=":")
        ideal.set_label("calibrated")
        names = style.all_shown(self.curves, width=22)
        self.points_ = []
        for place, curve in enumerate(self.curves.values()):
            dash = {"linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.0, "elinewidth": 1.0}
            look = style.series(place, names[place]) | dash | kwargs
            ends = style.reach(curve.observed, curve.lower, curve.upper)
            self.points_.append(ax.errorbar(curve.predicted, curve.observed, yerr=ends, **look))
        who = style.shown(self.pos_label, width=28)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        style.label_axes(ax, f"predicted probability of {who}", "observed frequency", grid="both")
        style.legend_above(ax, [*self.points_, ideal])


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


def _column(values: Any, which: int, n_classes: int) -> Vector:
    """Probabilities of the class that is judged: the only column, or its own."""
    if values.ndim == 1:
        return as_probabilities(values, name="y_proba")[:, 1]
    return as_probabilities(values, n_classes, name="y_proba")[:, which]


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
    edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    if strategy == "quantile":
        edges = np.quantile(probabilities, edges)
    raw = np.searchsorted(edges, probabilities, side="right")
    return np.unique(raw, return_inverse=True)[1]
