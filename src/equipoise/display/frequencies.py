"""Class frequencies of unlabelled rows: an estimate with its intervals, and a monitor over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.display import style
from equipoise.display.base import Display
from equipoise.exceptions import InvalidInputError
from equipoise.shift import PriorEstimate, PriorMonitor
from equipoise.validation.numbers import check_word

# _LINES: classes that are drawn over time at most, those that changed the most.
_LINES = len(style.COLORS)


@dataclass(kw_only=True, eq=False)
class ClassFrequenciesDisplay(Display):
    """Estimated class frequencies with their intervals, beside those of the held-out rows.

    Drawn by ``Axes.errorbar`` from the first class down; hollow marks are the held-out rows.

    Parameters
    ----------
    estimate : PriorEstimate

    Attributes
    ----------
    points_ : matplotlib ErrorbarContainer of the new rows
    held_out_ : matplotlib Line2D of the held-out rows

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.shift import estimate_prior
    >>> held_out = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1)), ["a", "b"] * 50
    >>> estimate = estimate_prior(np.tile([[0.9, 0.1]], (20, 1)), held_out=held_out)
    >>> display = ClassFrequenciesDisplay.from_estimate(estimate)
    >>> display.to_frame()[["class", "held_out"]].values.tolist()
    [['a', 0.5], ['b', 0.5]]
    """

    estimate: PriorEstimate

    @classmethod
    def from_estimate(cls, estimate: PriorEstimate, *, ax: Any = None) -> Self:
        """Draw what :func:`equipoise.shift.estimate_prior` found."""
        return cls(estimate=estimate).plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """One line for each class: frequency in the held-out and in the new rows, and its ends."""
        one = self.estimate
        columns = {
            "held_out": one.class_prior,
            "frequency": one.mean,
            "lower": one.lower,
            "upper": one.upper,
        }
        return {"class": one.classes} | {name: np.asarray(each) for name, each in columns.items()}

    def _title(self) -> str:
        return f"Class frequencies of {self.estimate.n_rows:,} new rows"

    def _size(self) -> tuple[float, float]:
        classes = self.estimate.classes
        return style.size_for(classes, style.lines_for(classes))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        columns = self.to_dict()
        places, shares = np.arange(len(columns["class"])), columns["frequency"]
        hollow = {"markerfacecolor": "white", "linestyle": "none", "markersize": 5, "zorder": 3}
        (self.held_out_,) = ax.plot(
            columns["held_out"],
            places,
            **(hollow | {"marker": style.MARKERS[1], "color": style.COLORS[1]}),
            label="held-out rows",
        )
        look = style.series(0, "new rows") | {"elinewidth": 1.2} | kwargs
        ends = style.reach(shares, columns["lower"], columns["upper"])
        self.points_ = ax.errorbar(shares, places, xerr=ends, **look)
        label = f"class frequency, {self.estimate.confidence:.0%} intervals"
        style.name_lines(ax, columns["class"].tolist(), label)
        top = max(float(columns["upper"].max()), float(columns["held_out"].max()))
        ax.set_xlim(-0.02 * top, min(1.02, 1.05 * top))
        style.in_percent(ax.xaxis)
        style.legend_above(ax, [self.points_, self.held_out_], share=0.62)


@dataclass(kw_only=True, eq=False)
class PriorMonitorDisplay(Display):
    """What a monitor of class frequencies has seen, batch after batch.

    The running estimates of the classes that changed the most with those that are expected, dotted,
    or the evidence of a change with the limit of the alarm; and where the alarm was given. Drawn by
    ``Axes.plot``.

    Parameters
    ----------
    monitor : PriorMonitor
        With one batch at least.
    shown : {"frequencies", "evidence"}, default="frequencies"

    Attributes
    ----------
    lines_ : list of matplotlib Line2D, one for each class shown, or that of the evidence
    alarm_ : matplotlib Line2D of the alarm, or None

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.shift import PriorMonitor, calibrate
    >>> held_out = calibrate(["a", "b"] * 50, np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1)))
    >>> monitor = PriorMonitor(held_out).update(np.tile([[0.9, 0.1], [0.2, 0.8]], (10, 1)))
    >>> PriorMonitorDisplay.from_monitor(monitor).to_frame()["rows"].tolist()
    [20]
    """

    monitor: PriorMonitor
    shown: str = "frequencies"

    @classmethod
    def from_monitor(
        cls, monitor: PriorMonitor, *, shown: str = "frequencies", ax: Any = None
    ) -> Self:
        """Draw a :class:`equipoise.shift.PriorMonitor` as it is now."""
        return cls(monitor=monitor, shown=shown).plot(ax)

    def __post_init__(self) -> None:
        check_word(self.shown, "shown", ("frequencies", "evidence"))
        if not self.monitor.history:
            raise InvalidInputError(
                "monitor must have seen a batch before it is shown, got none: call update."
            )

    def to_dict(self) -> dict[str, Any]:
        """One line for each batch: rows so far, evidence, alarm, and class frequencies."""
        return self.monitor.to_dict()

    def _title(self) -> str:
        if self.monitor.alarm_at is None:
            return f"Class frequencies of {self.monitor.n_rows:,} rows: no alarm"
        return f"Class frequencies: alarm after {self.monitor.alarm_at:,} rows"

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        rows = self.to_dict()["rows"]
        draw, label = {
            "frequencies": (self._draw_frequencies, "class frequency in the last batches"),
            "evidence": (self._draw_evidence, "evidence of a change"),
        }[self.shown]
        handles = self.lines_ = draw(ax, np.asarray(rows), kwargs)
        self.alarm_ = None
        if self.monitor.alarm_at is not None:
            look = {"color": style.INK, "linewidth": 1.0, "linestyle": "--", "label": "alarm"}
            self.alarm_ = ax.axvline(self.monitor.alarm_at, **look)
            handles = [*handles, self.alarm_]
        style.label_axes(ax, "rows seen", label, grid="both")
        style.legend_above(ax, handles)

    def _draw_frequencies(self, ax: Any, rows: Any, kwargs: dict[str, Any]) -> list[Any]:
        prior = self.monitor.prior
        shares = np.array([step.frequencies for step in self.monitor.history])
        changed = np.argsort(-np.abs(shares - prior).max(axis=0), kind="stable")[:_LINES]
        names, lines = style.all_shown(self.monitor.class_prior, width=22, lines=1), []
        for place, label in enumerate(np.sort(changed).tolist()):
            look = style.line(place, names[label])
            lines += ax.plot(rows, shares[:, label], **(look | kwargs))
            ax.axhline(prior[label], color=look["color"], linewidth=0.9, linestyle=":", zorder=1)
        ax.set_ylim(0.0, min(1.0, 1.15 * max(float(shares[:, changed].max()), prior.max())))
        style.in_percent(ax.yaxis)
        return lines

    def _draw_evidence(self, ax: Any, rows: Any, kwargs: dict[str, Any]) -> list[Any]:
        # As factors of the stake, in powers of ten.
        evidence = np.array([step.log_evidence for step in self.monitor.history]) / np.log(10)
        lines = ax.plot(rows, evidence, **(style.line(0, "evidence") | kwargs))
        limit = {"color": style.COLORS[1], "linestyle": ":", "linewidth": 1.2}
        name = f"limit at the rate {self.monitor.false_alarm:g}"
        lines.append(ax.axhline(self.monitor.log_limit / np.log(10), **limit, label=name))
        ax.yaxis.set_major_formatter(lambda x, _: f"$10^{{{x:g}}}$")
        return list(lines)
