"""Fit for several ideas of how much the classes matter, judge on unseen rows, and recommend."""

import copy
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.goals import bind_classes
from equipoise.report.findings import Progress, find
from equipoise.report.page import page
from equipoise.report.summarize import summarize
from equipoise.tables import MODEL_KINDS, labelled_table, read_labelled
from equipoise.text import percent, short_name, text_table
from equipoise.validation.numbers import check_seed, check_word


class Comparison:
    """What a comparison has found: numbers, a page, and a recommendation.

    Made by :func:`compare`. In a notebook it shows its page.

    Parameters
    ----------
    summary : dict
        Everything the page says, as plain numbers and texts.

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], uncertainties={"balanced": "balanced"}, cv=2)
    >>> found.recommended
    'linear, balanced'
    >>> sorted(found.to_dict())
    ['choices', 'code', 'costs', 'data', 'design', 'path', 'recommendation', 'title', 'trust']
    """

    def __init__(self, summary: dict[str, Any]) -> None:
        self._summary = summary

    def __repr__(self) -> str:
        return "\n".join([f"Comparison, recommended: {self.recommended}", *self.lines()])

    def lines(self) -> list[str]:
        """The choices as a table of text: shares of errors, regrets in percentage points."""
        names = [each["name"] for each in self._summary["data"]["classes"]]
        header = ["made for", "standard", "balanced", "worst class", "which", "largest regret"]
        rows = [
            [
                short_name(choice["label"]),
                *(percent(choice[risk]) for risk in ("standard", "balanced", "worst")),
                short_name(names[choice["worst_class"]]),
                f"{100 * choice['largest_regret']:.1f}",
            ]
            for choice in self._summary["choices"]
        ]
        return text_table(header, rows, right=True, gap="  ")

    @property
    def recommended(self) -> str:
        """The label of the recommended choice."""
        chosen = self._summary["recommendation"]["choice"]
        return str(self._summary["choices"][chosen]["label"])

    @property
    def code(self) -> str:
        """Python that fits the recommended choice to the whole table."""
        return str(self._summary["code"])

    def to_dict(self) -> dict[str, Any]:
        """Everything the page says: dicts, lists, texts, numbers and None, ready for JSON."""
        return copy.deepcopy(self._summary)

    def to_frame(self, *, by: str = "class") -> Any:
        """The numbers as a pandas DataFrame.

        Parameters
        ----------
        by : {"class", "choice"}, default="class"
            One line for each choice and class with its risk and interval, or one for each choice
            with its summaries and its risk under every weighting.
        """
        check_word(by, "by", ("class", "choice"))
        pandas, summary = require("pandas", extra="report"), self._summary
        classes, choices = pandas.DataFrame(summary["data"]["classes"]), summary["choices"]
        names = classes["name"]
        if by == "class":
            frame = pandas.json_normalize(choices, "classes", ["model", "weighting"])
            frame["rows"] = frame["class"].map(classes["tested"])
            frame["decides"] = frame["class"].map(classes["deciding"])
            for name in ("class", "taken_for"):
                frame[name] = frame[name].map(names)
            first = ["model", "weighting", "class", "rows", "decides"]
            return frame[[*first, "risk", "lower", "upper", "taken_for"]]
        frame = pandas.DataFrame(choices)
        frame["worst_class"] = frame["worst_class"].map(names)
        frame["recommended"] = frame["label"] == self.recommended
        worlds = [f"risk[{world['name']}]" for world in summary["costs"]["worlds"]]
        risks = pandas.DataFrame(summary["costs"]["risk"], columns=worlds)
        first = ["model", "weighting", "standard", "balanced", "worst", "worst_class"]
        return pandas.concat(
            [frame[first], risks, frame[["largest_regret", "recommended"]]], axis=1
        )

    def to_html(self) -> str:
        """The page: one self-contained HTML document that needs no network."""
        return page(self._summary)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; an interrupted or failed write leaves no half file."""
        written = self.to_html().encode("utf-8")
        with atomic_write(path) as stream:
            stream.write(written)
        return Path(path)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of page and notebook apart.
        return (
            f'<iframe srcdoc="{escape(self.to_html(), quote=True)}" title="equipoise report" '
            'sandbox="allow-scripts" style="width:100%;height:48em;border:1px solid #888"></iframe>'
        )


def compare(  # noqa: PLR0913  the table, what to compare, and how
    X: Any,
    y: Any,
    *,
    models: Sequence[str] = MODEL_KINDS,
    uncertainties: Mapping[str, Any] | None = None,
    cv: int = 5,
    random_state: int = 0,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> Comparison:
    r"""Which class weights? Compare classifiers made for several answers, on unseen rows.

    Every model is fitted for every set of weightings :math:`Q` and judged under all of them:

    .. math:: \max_{q \in Q'} \sum_i q_i p_i R_i(f_Q)

    The recommended choice is the one whose largest regret, over the sets, is the smallest.

    Parameters
    ----------
    X : pandas.DataFrame or array-like of shape (n_rows, n_columns)
        Features: numbers and texts, with missing values.
    y : array-like of shape (n_rows,)
        Labels.
    models : sequence of {"linear", "boosting"}, default=("linear", "boosting")
        ``RobustLogisticRegression`` for every set, and gradient boosting once. For sets of more
        than one weighting the decisions of both are tuned as by ``PlugInClassifier``, on other
        rows than those judged.
    uncertainties : dict of uncertainty sets by name, optional
        The ideas of how much classes matter, beside standard. The default is balanced weights,
        ``LabelCVaR(0.1)`` (or a level at which its caps bind) and the worst class.
    cv : int, default=5
        Folds. A table of more than 100,000 rows has one part held out instead.
    random_state : int, default=0
        Seed of everything random.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what comes next.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.report import compare
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], cv=2)
    >>> sorted(found.to_frame()["class"].unique().tolist())
    ['compensated', 'hypothyroid', 'normal']
    """
    began = perf_counter()
    table = labelled_table(X, y, sample_weight)
    seed = check_seed(random_state)
    found = find(table, models, uncertainties, cv=cv, seed=seed, progress=progress)
    is_frame = hasattr(X, "columns")
    loading = [
        *([] if is_frame else ["import pandas as pd"]),
        "from equipoise.tables import columns_of, conform, model_for",
        "",
        *([] if is_frame else ["X = pd.DataFrame(X).rename(columns=lambda place: f'x{place}')"]),
        "X = conform(X, columns_of(X))  # numbers and texts, as the models read them",
    ]
    return Comparison(summarize(found, "Which class weights?", loading, perf_counter() - began))


def compare_file(  # noqa: PLR0913  the file, what to compare, and how
    path: str | Path,
    target: str,
    *,
    models: Sequence[str] = MODEL_KINDS,
    uncertainties: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    text_labels: bool = False,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare on a CSV, gzipped CSV or Parquet file with the label in a column ``target``.

    The columns ``drop`` are left out. ``text_labels`` is that of
    :func:`equipoise.tables.split_target`, the others those of :func:`compare`; sets of weightings
    may name classes by their texts.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> compare_file(path, "target", models=["linear"]).recommended
    'linear, balanced'
    """
    began = perf_counter()
    if progress is not None:
        progress(0.0, "reading")
    table = read_labelled(path, target, drop=drop, text_labels=text_labels)
    if uncertainties is not None:
        uncertainties = {k: bind_classes(one, table.classes) for k, one in uncertainties.items()}
    found = find(table, models, uncertainties, seed=check_seed(random_state), progress=progress)
    title = f"Which class weights for {Path(path).name}?"
    dropped = f".drop(columns={list(drop)!r})" if drop else ""
    loading = [
        "from equipoise.tables import model_for, read_table, split_target",
        "",
        f"table = read_table({str(path)!r}){dropped}",
        f"X, y = split_target(table, {target!r}{', text_labels=True' if text_labels else ''})",
    ]
    return Comparison(summarize(found, title, loading, perf_counter() - began))
