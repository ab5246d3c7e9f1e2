"""Fit for several ideas of how much the classes matter, judge on unseen rows, and recommend."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from equipoise.blocks import Blocks
from equipoise.blocks.memory import allowed_memory, check_memory
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.estimators.sampled_rows import stream_of
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.goals import bind_classes
from equipoise.report.candidate_fits import CandidateFits, Progress, notebook_bar
from equipoise.report.design import (
    FOLDS,
    Design,
    make_candidates,
    named_goals,
    named_learners,
)
from equipoise.report.findings import find
from equipoise.report.page import page
from equipoise.report.refit import InBlocks, Refit
from equipoise.report.sampled import SampledBlocks
from equipoise.report.summarize import summarize
from equipoise.tables import (
    LabelledTable,
    labelled_table,
    read_labelled,
    size_in_memory,
    streamed_table,
    unseen_rows,
)
from equipoise.tables.columns import as_frame, columns_of
from equipoise.tables.features import HELD_OUT
from equipoise.text import percent, short_name, text_table
from equipoise.validation.numbers import check_number, check_seed, check_word

# Rows that a model is trained on at most; quick pages take fewer, and hold out one part.
MOST_ROWS, QUICK_ROWS, QUICK_SHARE = 100_000, 10_000, 0.25


class Comparison:
    """What a comparison has found: numbers, a page, and a recommendation.

    Made by :func:`compare`. In a notebook it shows its page.

    Parameters
    ----------
    summary : dict
        Everything the page says, as plain numbers and texts.
    fit, save_model : callable, optional
        Fits the recommended choice to all rows, and saves it.

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], goals="balanced_accuracy", cv=3)
    >>> found.recommended
    'linear, balanced'
    >>> found.fit().predict(X[:1]).tolist()
    ['normal']
    """

    def __init__(
        self, summary: dict[str, Any], fit: Callable[[], Any] | None = None,
        save_model: Callable[[str | Path], None] | None = None,
    ) -> None:  # fmt: skip
        self._summary, self._fit, self._save_model = summary, fit, save_model

    def __repr__(self) -> str:
        return "\n".join([f"Comparison, recommended: {self.recommended}", *self.lines()])

    def lines(self) -> list[str]:
        """The choices as a table of text: shares of errors, regrets in percentage points."""
        names = [each["name"] for each in self._summary["data"]["classes"]]
        header = ["tuned for", "standard", "balanced", "worst class", "which", "largest regret"]
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
        """Python that, given ``X`` and ``y``, ends with the recommended choice as ``model``.

        Where the models are the user's, they are ``models`` there.
        """
        return str(self._summary["code"])

    def fit(self) -> Any:
        """The recommended choice, fitted to all rows: what :attr:`code` makes."""
        if self._fit is None:
            raise NotFittedError("This comparison was made without its rows: run its code instead.")
        return self._fit()

    def save_model(self, path: str | Path) -> Path:
        """Fit the recommended choice to all rows and save it.

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
        by : {"class", "choice"}, default="class"
            One line for each choice and class with its risk and interval, or one for each choice
            with its summaries and its risk under every weighting.
        """
        check_word(by, "by", ("class", "choice"))
        pandas, summary = require("pandas", extra="report"), self._summary
        classes, choices = pandas.DataFrame(summary["data"]["classes"]), summary["choices"]
        names = classes["name"]
        if by == "class":
            frame = pandas.json_normalize(choices, "classes", ["model", "made_for"])
            frame["rows"] = frame["class"].map(classes["tested"])
            frame["decides"] = frame["class"].map(classes["deciding"])
            for name in ("class", "taken_for"):
                frame[name] = frame[name].map(names)
            first = ["model", "made_for", "class", "rows", "decides"]
            return frame[[*first, "risk", "lower", "upper", "taken_for"]]
        frame = pandas.DataFrame(choices)
        frame["worst_class"] = frame["worst_class"].map(names)
        frame["recommended"] = frame["label"] == self.recommended
        worlds = [f"risk[{world['name']}]" for world in summary["costs"]["worlds"]]
        risks = pandas.DataFrame(summary["costs"]["risk"], columns=worlds)
        first = ["model", "made_for", "standard", "balanced", "worst", "worst_class"]
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
    y: Any = None,
    models: Any = None,
    *,
    goals: Any = None,
    price: float | None = None,
    cv: float = FOLDS,
    random_state: int = 0,
    sample_weight: Any = None,
    quick: bool = False,
    memory: int | str = "1 GiB",
    progress: Progress | None = None,
) -> Comparison:
    r"""Which model, trained and decided how? Compare on unseen rows, and recommend one.

    Every model is tried plain, with class-weighted training, and as a ``RobustClassifier`` for
    every goal, and evaluated by all goals :math:`g`, with values :math:`C_{fg}` that are risks or
    one minus a metric. The recommended choice is the plainest one whose largest regret

    .. math:: \max_g \, (C_{fg} - \min_h C_{hg})

    is within one standard error of the smallest.

    Parameters
    ----------
    X : pandas.DataFrame or array-like of shape (n_rows, n_columns)
        Features: numbers and texts, with missing values. Models of your own are given them as they
        are, and may also be for sparse matrices, lists of texts or arrays of more dimensions. Of
        rows in :mod:`equipoise.blocks`, or of a sliced array larger than half of ``memory``, a
        sample is fitted to, as by ``RobustClassifier``, and all others are evaluated.
    y : array-like of shape (n_rows,)
        Labels.
    models : sequence of {"linear", "forest", "boosting"}, or dict of classifiers, optional
        Ours, all three by default; or classifiers of your own by name. These are cloned, except
        those inside scikit-learn's ``FrozenEstimator``: they are fitted, and must not have seen the
        rows.
    goals : goal, list of goals, or dict of goals by name, optional
        What the model is for: a set of weightings, ``"f1_macro"``, ``CostMatrix(...)``,
        ``RecallFloors(...)``, as in :class:`~equipoise.RobustClassifier`. By default, for those who
        cannot say: standard and balanced weights, ``LabelCVaR(0.1)`` (or a level at which its caps
        bind) and the worst class.
    price : float, optional
        Points of overall errors, 1 for 0.01, that may be given up at most.
    cv : int or float, default=5
        Folds, or the share of the rows to hold out. With five folds, a large table has a quarter
        held out instead.
    random_state : int, default=0
        Seed of everything random.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    quick : bool, default=False
        Hold out one part, and train on 10,000 rows at most instead of 100,000.
    memory : int or str, default="1 GiB"
        What rows in blocks may take.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what comes next. In a notebook a
        bar shows them by default.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.report import compare
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], cv=3)
    >>> sorted(found.to_frame()["class"].unique().tolist())
    ['compensated', 'hypothyroid', 'normal']
    """
    began, own = perf_counter(), isinstance(models, Mapping)
    loading = [] if own else ["from equipoise.tables import learner_for", ""]
    blocks = as_blocks(X, y, sample_weight, check_memory(memory))
    if blocks is not None:
        if len(blocks) == 0:
            raise InvalidInputError("There are no rows: there is no block.")
        first = None if own else columns_of(as_frame(stream_of(blocks, memory).blocks[0].X))
        source = InBlocks(lambda: nullcontext(blocks), _sample(memory, quick=quick), first)
        return _compared_in_blocks(
            blocks, models, source, goals=goals, price=price,
            seed=check_seed(random_state), quick=quick, progress=progress, began=began,
            title="Which class weights?", loading=loading,
        )  # fmt: skip
    X, y = (part[:] if is_sliced(part) else part for part in (X, y))
    if own and not _is_table(X):
        table = unseen_rows(y, sample_weight=sample_weight, X=X)
    else:
        table = labelled_table(X, y, sample_weight)
    return compared(
        table, X, models, goals=goals, price=price, cv=cv,
        seed=check_seed(random_state), sample_weight=sample_weight, quick=quick,
        progress=progress, title="Which class weights?", loading=loading, began=began,
    )  # fmt: skip


def _is_table(X: Any) -> bool:
    """Whether rows are made of columns, which ours need, rather than of items such as texts."""
    shape = np.shape(X[:1]) if isinstance(X, list | tuple) else getattr(X, "shape", None)
    return not hasattr(X, "tocsr") and (shape is None or len(shape) == 2)


def compare_file(  # noqa: PLR0913  the file, what to compare, and how
    path: str | Path,
    target: str,
    models: Any = None,
    *,
    goals: Any = None,
    price: float | None = None,
    drop: Sequence[str] = (),
    text_labels: bool = False,
    random_state: int = 0,
    quick: bool = False,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare on a CSV, gzipped CSV or Parquet file with the label in a column ``target``.

    The columns ``drop`` are left out. ``text_labels`` is that of
    :func:`equipoise.tables.split_target`, the others those of :func:`compare`; goals may name
    classes by their texts. A table that would take more than ``memory``, by default half of the
    machine's, is read in parts.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> compare_file(path, "target", ["linear"], goals="balanced_accuracy").recommended
    'linear, balanced'
    """
    began = perf_counter()
    if progress is not None:
        progress(0.0, "reading")
    names = [word for name in drop for word in ("--drop", name)]
    file = [str(path), "--target", target, *names, *(["--text-labels"] if text_labels else [])]
    title = f"Which class weights for {Path(path).name}?"
    options: dict[str, Any] = {"price": price, "quick": quick, "began": began, "title": title}
    options |= {"progress": progress, "seed": check_seed(random_state)}
    room = allowed_memory(memory)
    if size_in_memory(path) > room:
        reading: dict[str, Any] = {"drop": tuple(drop)} if drop else {}
        reading |= {"text_labels": True} if text_labels else {}
        opened = partial(streamed_table, path, target, encoded=False, **reading)
        given = "".join(f", {name}={value!r}" for name, value in reading.items())
        opening = f"with streamed_table({str(path)!r}, {target!r}{given}, encoded=False) as table:"
        file += [] if memory is None else ["--memory", str(memory)]
        with opened() as found:
            goals = None if goals is None else bound_goals(goals, found.classes)
            source = InBlocks(
                partial(_blocks_of, opened), _sample(room, quick=quick), found.columns, opening,
                "table.columns", "table.blocks",
            )  # fmt: skip
            return _compared_in_blocks(
                found.blocks, models, source, goals=goals, file=file,
                loading=["from equipoise.tables import learner_for, streamed_table", ""], **options,
            )  # fmt: skip
    table = read_labelled(path, target, drop=drop, text_labels=text_labels)
    if goals is not None:
        goals = bound_goals(goals, table.classes)
    dropped = f".drop(columns={list(drop)!r})" if drop else ""
    loading = [
        "from equipoise.tables import learner_for, read_table, split_target",
        "",
        f"table = read_table({str(path)!r}){dropped}",
        f"X, y = split_target(table, {target!r}{', text_labels=True' if text_labels else ''})",
    ]
    return compared(
        table, table.X, models, goals=goals, cv=FOLDS, loading=loading, file=file, **options
    )


def bound_goals(goals: Any, classes: Any) -> Any:
    """Goals that name classes as a table has them."""
    if isinstance(goals, Mapping):
        return {name: bind_classes(goal, classes) for name, goal in goals.items()}
    given = goals if isinstance(goals, list | tuple) else [goals]
    return [bind_classes(goal, classes) for goal in given]


@contextmanager
def _blocks_of(opened: Callable[[], AbstractContextManager[Any]]) -> Iterator[Blocks]:
    with opened() as table:
        yield table.blocks


def _sample(memory: int | str, *, quick: bool) -> dict[str, Any]:
    """How large a sample of blocks is."""
    return {"memory": memory} | ({"sample_rows": 2 * QUICK_ROWS} if quick else {})


def _compared_in_blocks(
    blocks: Blocks, models: Any, source: InBlocks, *, seed: int, **options: Any
) -> Comparison:
    """Compare on a sample of rows in blocks, and count on all others."""
    learners, kinds = named_learners(models, source.columns_like, seed, None)
    sampled = SampledBlocks.draw(blocks, learners, seed=seed, **source.sample)
    sample, rows = sampled.sample, sampled.sample.rows
    y, weights = sample.classes[rows.labels], None if sample.is_whole else sample.weights()
    if not kinds and not _is_table(rows.X):
        table = unseen_rows(y, sample_weight=weights, X=rows.X)
    else:
        table = labelled_table(rows.X, y, weights)
    columns = source.columns_like
    if not source.opening:
        # How many gaps there are in all blocks is not known.
        columns = tuple(replace(column, n_missing=0) for column in columns or table.columns)
    table = replace(table, columns=columns)
    return compared(
        table, rows.X, models, cv=FOLDS, seed=seed,
        blocks=None if sample.is_whole else sampled, source=source, **options,
    )  # fmt: skip


def compared(  # noqa: PLR0913  the table, what to compare, and how
    table: LabelledTable, X: Any, models: Any, *, goals: Any, price: float | None, cv: float,
    seed: int, quick: bool, progress: Progress | None, title: str, loading: Sequence[str],
    began: float, file: Sequence[str] = (), sample_weight: Any = None,
    blocks: SampledBlocks | None = None, source: InBlocks | None = None,
) -> Comparison:  # fmt: skip
    """Compare on a table, or on a sample and all other rows of blocks."""
    if price is not None:
        check_number(price, "price", "[0, 100]")
    if blocks is not None:
        design = blocks.design(table)
    elif isinstance(models, Mapping) and all(
        isinstance(m, FrozenEstimator) for m in models.values()
    ):
        design = Design.for_predictions(table)
    else:
        design = Design.for_table(table, QUICK_SHARE if quick else cv, seed)
    wanted = named_goals(goals, table.prior[design.deciding])
    like = (table.columns, len(table.labels)) if source is None else (source.columns_like, None)
    learners, kinds = named_learners(models, like[0], seed, like[1])
    candidates = make_candidates(learners, wanted, price)
    fits = CandidateFits(
        design, learners, design.folds(QUICK_ROWS if quick else MOST_ROWS, seed),
        table.X if kinds else X, seed, progress or notebook_bar(),
    )  # fmt: skip
    found = find(candidates, wanted, fits, price=price, blocks=blocks)
    share = HELD_OUT if blocks else round(len(design.judged) / len(design.fold), 2)
    refit = Refit(
        X=X,
        y=table.y,
        models=learners,
        kinds=kinds,
        cv=design.n_folds if design.n_folds > 1 else share,
        seed=seed,
        sample_weight=sample_weight,
        loading=loading,
        file=file,
        table=found.design.table,
        blocks=source,
    )
    best = found.candidates[found.recommendation.place]
    return Comparison(
        summarize(found, title, refit, perf_counter() - began),
        partial(refit.fit, best),
        partial(refit.save, best),
    )
