"""Which model, tuned for what? Evaluate candidates on held-out rows, and advise one of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Indices
from equipoise.blocks import Blocks
from equipoise.blocks.memory import allowed_memory, check_memory
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.decisions.folds import FOLDS
from equipoise.estimators.sampled_rows import stream_of
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals import bind_classes
from equipoise.report.answer import answer
from equipoise.report.candidates import candidates_for, named_goals, named_learners
from equipoise.report.comparison import Comparison
from equipoise.report.design import Design, design_for, design_of_unseen
from equipoise.report.evaluations import Evaluator, Progress, notebook_bar
from equipoise.report.on_new_rows import check_new_rows, on_new_rows
from equipoise.report.request import Request
from equipoise.report.sampled import SampledBlocks
from equipoise.report.summarize import summarize
from equipoise.report.written import InBlocks, Writer, literal
from equipoise.shift.model_output import parts_of
from equipoise.tables import (
    LabelledTable,
    find_column,
    labelled_table,
    read_chunks,
    read_table,
    size_in_memory,
    streamed_table,
    unseen_rows,
)
from equipoise.tables.columns import as_frame, columns_of
from equipoise.tables.labelled import without_label
from equipoise.validation.labels import check_length

# MOST_ROWS, QUICK_ROWS: training rows of a fold at most, on a page and on a quick one, for pages
# of large tables in minutes (benchmarks/report_times.py). QUICK_SHARE: rows a quick page holds out.
MOST_ROWS, QUICK_ROWS, QUICK_SHARE = 100_000, 10_000, 0.25


def compare(  # noqa: PLR0913  the table, what to compare, and how
    X: Any,
    y: Any = None,
    models: Any = None,
    *,
    goals: Any = None,
    X_new: Any = None,
    price: float | None = None,
    cv: float = FOLDS,
    groups: Any = None,
    time: Any = None,
    random_state: int = 0,
    sample_weight: Any = None,
    quick: bool = False,
    memory: int | str = "1 GiB",
    progress: Progress | None = None,
) -> Comparison:
    r"""Which model, tuned for what? Evaluate candidates on held-out rows, and advise one of them.

    Every model is evaluated with default predictions, and with decisions tuned for balanced
    accuracy, for the worst class and for the user's goals. Three cards hold the plain model with
    the fewest errors overall, and the best models tuned for the mean recall and for the recall of
    the worst class. A goal adds a card, which is advised. Without one, the second card is advised,
    unless the rows show no gain over the first (``equipoise.report.answer``).

    Parameters
    ----------
    X : pandas.DataFrame or array-like of shape (n_rows, n_columns)
        Features: numbers and texts, with missing values. Models of your own get them as they are,
        and may also take sparse matrices, lists of texts or arrays of more dimensions. Of
        out-of-core data (:mod:`equipoise.blocks`), or of a sliced array larger than half of
        ``memory``, a sample is fitted to, as by ``RobustClassifier``, and all others are evaluated.
    y : array-like of shape (n_rows,)
        Labels.
    models : sequence of {"linear", "forest", "boosting"}, or dict of classifiers, optional
        Ours, all three by default; or classifiers of your own by name. These are cloned, except
        those inside scikit-learn's ``FrozenEstimator``: they are fitted, and must not have seen the
        rows.
    goals : goal, list of goals, or dict of goals by name, optional
        What the model is for: a set of weightings, ``"f1_macro"``, ``CostMatrix(...)``,
        ``RecallFloors(...)``, as in :class:`~equipoise.RobustClassifier`. The first is advised on.
    X_new : as X, Blocks or Dask collection, optional
        Unlabelled rows of the population that the model is for, where its class frequencies may be
        others: the page says what they are and what error every candidate will have there.
    price : float, optional
        Points of overall error, 1 for 0.01, that a card may cost at most.
    cv : int or float, default=5
        Folds, or the share of the rows to hold out. With five folds, a large table has a quarter
        held out instead.
    groups : array-like of shape (n_rows,), optional
        Rows of one group, such as a patient's, stay in one fold, and intervals are for groups.
    time : array-like of shape (n_rows,), optional
        When each row was observed: models are fitted to earlier rows only.
    random_state : int, default=0
        Seed of everything random.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    quick : bool, default=False
        Hold out one part, and train on 10,000 rows at most instead of 100,000.
    memory : int or str, default="1 GiB"
        What out-of-core data may take.
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
    request = Request(
        models,
        goals,
        price,
        random_state,
        progress,
        cv=cv,
        quick=quick,
        groups=groups,
        in_time=time is not None,
        sample_weight=sample_weight,
        new_tables=None if X_new is None else lambda _: parts_of(X_new),
    )
    by_name = isinstance(models, Mapping)
    blocks = as_blocks(X, y, sample_weight, check_memory(memory))
    if blocks is not None:
        if len(blocks) == 0:
            raise InvalidInputError("There are no rows: there is no block.")
        if groups is not None or time is not None:
            raise InvalidParameterError("groups and time need rows in memory.")
        first = None if by_name else columns_of(as_frame(stream_of(blocks, memory).blocks[0].X))
        source = InBlocks(lambda: nullcontext(blocks), _sample(memory, quick=quick), first)
        return _compared_in_blocks(request, blocks, source)
    X, y = (part[:] if is_sliced(part) else part for part in (X, y))
    if time is not None:
        request, X, y = _in_time_order(request, X, y, time)
    if by_name and not _is_table(X):
        table = unseen_rows(y, sample_weight=request.sample_weight, X=X)
    else:
        table = labelled_table(X, y, request.sample_weight)
    if groups is not None:
        check_length(np.asarray(groups), len(table.labels), name="groups", of="X")
    return compared(request, table, X)


def _in_time_order(request: Request, X: Any, y: Any, time: Any) -> tuple[Request, Any, Any]:
    """The rows from the earliest on, and the Python that orders them."""
    check_length(np.asarray(time), len(y), name="time", of="y")
    order = np.argsort(np.asarray(time), kind="stable")
    X, y, sample_weight = (
        None if part is None else _in_order(part, order) for part in (X, y, request.sample_weight)
    )
    lines = ['order = np.argsort(time, kind="stable")', "X, y = X[order], y[order]"]
    if hasattr(X, "iloc"):
        lines[1] = "X, y = X.iloc[order], np.asarray(y)[order]"
    lines += ["sample_weight = sample_weight[order]"] if sample_weight is not None else []
    loading = {"": {"import numpy as np"}}, lines
    return replace(request, sample_weight=sample_weight, loading=loading), X, y


def _in_order(rows: Any, order: Indices) -> Any:
    """Rows of a table, an array or a list in another order."""
    if hasattr(rows, "iloc"):
        return rows.iloc[order]
    return [rows[i] for i in order] if isinstance(rows, list | tuple) else rows[order]


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
    new: str | Path | None = None,
    price: float | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    text_labels: bool = False,
    random_state: int = 0,
    quick: bool = False,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare on a CSV, gzipped CSV or Parquet file with the label in a column ``target``.

    ``new`` is a file with unlabelled rows, :func:`compare`'s ``X_new``, in which further columns do
    not matter. The columns ``drop`` are left out; so are ``group`` and ``time``, which hold what
    :func:`compare` takes as ``groups`` and ``time``. ``text_labels`` is that of
    :func:`equipoise.tables.split_target`, the others those of :func:`compare`; goals may name
    classes by their texts. A table that would take more than ``memory``, by default half of the
    machine's, is read in parts.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> compare_file(path, "target", ["linear"], goals="balanced_accuracy").recommended
    'linear, balanced_accuracy'
    """
    if progress is not None:
        progress(0.0, "reading")
    names = [word for name in drop for word in ("--drop", name)]
    request = Request(
        models,
        goals,
        price,
        random_state,
        progress,
        quick=quick,
        title=f"Report on {Path(path).name}",
        in_time=time is not None,
        file=[str(path), "--target", target, *names, *(["--text-labels"] if text_labels else [])],
        new_tables=None if new is None else partial(read_chunks, new),
    )
    room = allowed_memory(memory)
    if size_in_memory(path) > room:
        if group is not None or time is not None:
            raise InvalidParameterError("--group and --time need a table that fits in memory.")
        return _compared_in_parts(
            request, path, target, drop, room, memory, text_labels=text_labels
        )
    return _compared_in_memory(
        request, path, target, drop, group=group, time=time, text_labels=text_labels
    )


def _compared_in_memory(
    request: Request,
    path: str | Path,
    target: str,
    drop: Sequence[str],
    *,
    group: str | None,
    time: str | None,
    text_labels: bool,
) -> Comparison:
    """Compare on a file, whose column of groups or of times is no feature."""
    frame = read_table(path)
    lines, groups = [f"table = read_table({literal(str(path))})"], None
    if drop:
        lines[0] += f".drop(columns={literal(list(drop))})"
    if time is not None:
        frame = frame.sort_values(find_column(frame, time), ignore_index=True)
        frame = frame.drop(columns=find_column(frame, time))
        lines += [
            f"table = table.sort_values({literal(time)}, ignore_index=True)",
            f"table = table.drop(columns={literal(time)})",
        ]
    if group is not None:
        groups = frame.pop(find_column(frame, group))
        lines += [f"groups = table.pop({literal(group)})"]
    table = labelled_table(*without_label(frame, target, drop, text_labels=text_labels))
    as_text = ", text_labels=True" if text_labels else ""
    lines += [f"X, y = split_target(table, {literal(target)}{as_text})"]
    request = replace(
        request,
        groups=groups,
        goals=bound_goals(request.goals, table.classes),
        loading=({"equipoise.tables": {"read_table", "split_target"}}, lines),
    )
    return compared(request, table, table.X)


def _compared_in_parts(
    request: Request,
    path: str | Path,
    target: str,
    drop: Sequence[str],
    room: int,
    memory: int | str | None,
    *,
    text_labels: bool,
) -> Comparison:
    """Compare on a file that does not fit in memory."""
    reading: dict[str, Any] = {"drop": tuple(drop)} if drop else {}
    reading |= {"text_labels": True} if text_labels else {}
    opened = partial(streamed_table, path, target, encoded=False, **reading)
    options = "".join(f", {name}={value!r}" for name, value in reading.items())
    opening = f"with streamed_table({str(path)!r}, {target!r}{options}, encoded=False) as table:"
    file = [*request.file, *([] if memory is None else ["--memory", str(memory)])]
    with opened() as table:
        source = InBlocks(
            partial(_blocks_of, opened),
            _sample(room, quick=request.quick),
            table.columns,
            opening,
            "table.blocks",
        )
        request = replace(
            request,
            file=file,
            goals=bound_goals(request.goals, table.classes),
            loading=({"equipoise.tables": {"streamed_table"}}, ()),
        )
        return _compared_in_blocks(request, table.blocks, source)


def bound_goals(goals: Any, classes: Any) -> Any:
    """Goals that name classes as a table has them."""
    if isinstance(goals, Mapping):
        return {name: bind_classes(goal, classes) for name, goal in goals.items()}
    several = goals if isinstance(goals, list | tuple) else [goals]
    return None if goals is None else [bind_classes(goal, classes) for goal in several]


@contextmanager
def _blocks_of(opened: Callable[[], AbstractContextManager[Any]]) -> Iterator[Blocks]:
    with opened() as table:
        yield table.blocks


def _sample(memory: int | str, *, quick: bool) -> dict[str, Any]:
    """How large a sample of blocks is."""
    return {"memory": memory} | ({"sample_rows": 2 * QUICK_ROWS} if quick else {})


def _compared_in_blocks(request: Request, blocks: Blocks, source: InBlocks) -> Comparison:
    """Compare on a sample of out-of-core data, and count on all other rows."""
    learners, kinds = named_learners(request.models, source.columns_like, request.seed)
    sampled = SampledBlocks.draw(blocks, learners, seed=request.seed, **source.sample)
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
    return compared(request, table, rows.X, None if sample.is_whole else sampled, source)


def compared(
    request: Request,
    table: LabelledTable,
    X: Any,
    blocks: SampledBlocks | None = None,
    source: InBlocks | None = None,
) -> Comparison:
    """Compare on a table, or on a sample and all other rows of out-of-core data."""
    seed, goals = request.seed, named_goals(request.goals)
    columns = table.columns if source is None else source.columns_like
    learners, kinds = named_learners(request.models, columns, seed)
    design = _design(request, table, X, learners, blocks)
    if request.new_tables is not None:
        check_new_rows(request.new_tables, table, ours=bool(kinds))
    candidates = candidates_for(learners, goals)
    for goal in goals.values():
        # What cannot be evaluated is refused before any training.
        goal.resolve_some(table.prior, table.classes, ~design.counts)
    evaluator = Evaluator(design, learners, seed, request.progress or notebook_bar())
    evaluator.keeps_models = request.new_tables is not None
    evaluations = evaluator.all(candidates)
    whole = design
    if blocks is not None:
        evaluator.tell("all rows")
        whole, evaluations = blocks.counted(design, evaluations)
    advice = answer(evaluations, goals, table.classes, request.price)
    new_rows = None
    if request.new_tables is not None:
        new_rows = on_new_rows(request.new_tables, advice, design, evaluator)
    evaluator.end()
    writer = Writer(whole, learners, kinds, request, source)
    rows_seen = None if blocks is None else blocks.rows_seen
    summary = summarize(advice, whole, goals, writer, evaluator, rows_seen)
    summary["new_rows"] = new_rows
    best = advice.best.candidate
    return Comparison(summary, partial(writer.fit, best), partial(writer.save, best))


def _design(
    request: Request,
    table: LabelledTable,
    X: Any,
    learners: Mapping[str, Any],
    blocks: SampledBlocks | None,
) -> Design:
    """How rows are held out."""
    if blocks is not None:
        return blocks.design(table, X, request.seed)
    if all(isinstance(each, FrozenEstimator) for each in learners.values()):
        return design_of_unseen(table, X, request.seed)
    cv, most = (QUICK_SHARE, QUICK_ROWS) if request.quick else (request.cv, MOST_ROWS)
    held = {"groups": request.groups, "in_time": request.in_time}
    return design_for(table, X, cv, request.seed, most_rows=most, **held)
