"""What a comparison found: numbers, advice, a page."""

import copy
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError

from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.report.candidates import value_text
from equipoise.report.page import page
from equipoise.text import share_text, short_name, text_table
from equipoise.validation.numbers import check_word


class Comparison:
    """What a comparison found: numbers, a page, and advice.

    Made by :func:`~equipoise.report.compare`. In a notebook it shows its page.

    Parameters
    ----------
    summary : dict
        Everything the page says, as plain numbers and texts.
    fit, save_model : callable, optional
        Fits the advised candidate to all rows, and saves it.

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.report import compare
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], goals="worst_class", cv=3)
    >>> found.recommended
    'linear, worst_class'
    >>> found.fit().predict(X[:1]).tolist()
    ['normal']
    """

    def __init__(
        self,
        summary: dict[str, Any],
        fit: Callable[[], Any] | None = None,
        save_model: Callable[[str | Path], None] | None = None,
    ) -> None:
        self._summary, self._fit, self._save_model = summary, fit, save_model

    def __repr__(self) -> str:
        return "\n".join([f"Comparison, recommended: {self.recommended}", *self.lines()])

    def lines(self) -> list[str]:
        """The candidates as a table of text."""
        names = [each["name"] for each in self._summary["data"]["classes"]]
        goals, new_rows = self._summary["goals"], self._summary["new_rows"]
        header = ["candidate", "overall error", "mean class error", "worst class", "which"]
        header += [goal["name"] for goal in goals]
        rows = [
            [
                short_name(each["label"]),
                *(share_text(each[risk]) for risk in ("overall", "balanced", "worst")),
                short_name(names[each["worst_class"]]),
                *(
                    value_text(value, goal["is_share"])
                    for value, goal in zip(each["goals"], goals, strict=True)
                ),
            ]
            for each in self._summary["candidates"]
        ]
        if new_rows is not None and not new_rows["refused"]:
            header.append("on new rows")
            for row, error in zip(rows, new_rows["candidates"], strict=True):
                row.append(share_text(error["value"]))
        return text_table(header, rows, right=True, gap="  ")

    @property
    def recommended(self) -> str:
        """The label of the advised candidate."""
        advised = self._summary["recommendation"]["candidate"]
        return str(self._summary["candidates"][advised]["label"])

    @property
    def code(self) -> str:
        """Python that fits the advised candidate as ``model``, predicts, and saves it.

        It reads the file, or takes ``X`` and ``y`` as they were given; the user's own models are
        ``models`` there.
        """
        return str(self._summary["code"])

    def fit(self) -> Any:
        """The advised candidate, fitted to all rows: what :attr:`code` makes."""
        if self._fit is None:
            raise NotFittedError("This comparison was made without its rows: run its code instead.")
        return self._fit()

    def save_model(self, path: str | Path) -> Path:
        """Fit the advised candidate to all rows and save it.

        A file ``.equipoise`` is read by :func:`equipoise.load_model`, and by ``equipoise predict``
        where the model is one of ours; a file ``.skops`` by ``skops.io``.
        """
        if self._save_model is None:
            raise NotFittedError("This comparison was made without its rows: run its code instead.")
        self._save_model(path)
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """Everything the page says: dicts, lists, texts, numbers and None, ready for JSON."""
        return copy.deepcopy(self._summary)

    def to_frame(self, *, by: str = "class") -> Any:
        """The numbers as a pandas DataFrame.

        Parameters
        ----------
        by : {"class", "candidate"}, default="class"
            One line for each candidate and class: risk with interval, precision; or one for each
            candidate: overall error, mean and worst class risk, macro F1, values of the goals.
        """
        check_word(by, "by", ("class", "candidate"))
        pandas, summary = require("pandas", extra="report"), self._summary
        classes, candidates = pandas.DataFrame(summary["data"]["classes"]), summary["candidates"]
        names = classes["name"]
        if by == "class":
            frame = pandas.json_normalize(candidates, "classes", ["model", "tuned_for"])
            frame["rows"] = frame["class"].map(classes["tested"])
            frame["counts"] = frame["class"].map(classes["counts"])
            for name in ("class", "taken_for"):
                frame[name] = frame[name].map(names)
            first = ["model", "tuned_for", "class", "rows", "counts"]
            return frame[[*first, "risk", "lower", "upper", "precision", "taken_for"]]
        frame = pandas.DataFrame(candidates)
        frame["worst_class"] = frame["worst_class"].map(names)
        for at, goal in enumerate(summary["goals"]):
            frame[f"goal[{goal['name']}]"] = [each["goals"][at] for each in candidates]
        new_rows = summary["new_rows"]
        if new_rows is not None and not new_rows["refused"]:
            for end in ("value", "lower", "upper"):
                name = "new_overall" if end == "value" else f"new_overall_{end}"
                frame[name] = [each[end] for each in new_rows["candidates"]]
        frame["recommended"] = frame["label"] == self.recommended
        return frame.drop(columns=["classes", "goals", "goal", "never_right", "constant"])

    def to_html(self) -> str:
        """The page: one self-contained HTML document that needs no network."""
        return page(self._summary)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; an interrupted or failed write leaves no half file."""
        # A name of a file need not be a text.
        written = self.to_html().encode("utf-8", "backslashreplace")
        with atomic_write(path) as stream:
            stream.write(written)
        return Path(path)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of page and notebook apart.
        return (
            f'<iframe srcdoc="{escape(self.to_html(), quote=True)}" title="equipoise report" '
            'sandbox="allow-scripts" style="width:100%;height:48em;border:1px solid #888"></iframe>'
        )
