"""``equipoise fit``: a model of all rows of a table, evaluated on held-out rows before."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from equipoise.cli.evaluate import class_errors, error_lines
from equipoise.cli.main import MEMORY_OPTION, TABLE_OPTIONS, Output, command, goal_option
from equipoise.text import percent, short_name

if TYPE_CHECKING:
    from equipoise.tables import LabelledTable, StreamedTable

# ENOUGH_ROWS: rows of a class in the table from which a class that is never predicted is reported.
ENOUGH_ROWS = 30
# _MOST_ASIDE: held-out rows of a table that is read in parts, at most.
_MOST_ASIDE = 1_000_000

EPILOG = """\b
Examples:
  equipoise fit mail.csv --target spam --out mail.equipoise
  equipoise fit cards.csv -t fraud -g "PriorBox(upper={'yes': 0.05})" -o cards.equipoise
  equipoise fit mail.csv -t spam --model boosting -g worst_class -o mail.equipoise --json

\b
Goals (--goal), written as in Python or as a word:
  standard, balanced                       one weighting
  FixedWeights({'ham': 1, 'spam': 5})      one weighting, class by class
  worst_class                              any weighting: the risk of the worst class
  lcvar:0.1, LabelCVaR(alpha=0.1)          no class counts more than 1/0.1 times its share
  LabelHCVaR(c=0.5, kappa=2)               the same, with a level for each class
  WeightBox(upper={'spam': 10})            weights between bounds
  PriorBox(upper={'fraud': 0.05})          class frequencies between bounds
  PriorBall(0.1, 'kl')                     class frequencies near those of the table
  WeightHull(['standard', 'balanced'])     one of these weightings, or a mixture
  f1_macro, geometric_mean, f1, ...        a large value of a metric on new rows
  RecallFloors({'spam': 0.9})              recalls no smaller than floors on the rows at hand
  RecallFloors({'spam': 0.9}, confidence=0.9)  and for new rows, with this probability
  CostMatrix([[0, 1], [5, 0]])             a table of costs, true classes first

\b
Shell completion (bash_source, zsh_source or fish_source):
  eval "$(_EQUIPOISE_COMPLETE=bash_source equipoise)"
"""


@command(EPILOG, *TABLE_OPTIONS)
@click.option(
    "-o", "--out", required=True, type=click.Path(), help="Model file to write (.equipoise)."
)
@click.option(
    "--model",
    "kind",
    type=click.Choice(["linear", "forest", "boosting"]),
    default="linear",
    help="Logistic regression, a random forest, or gradient boosting.",
)
@goal_option(
    show_default="LabelCVaR(alpha=0.1)",
    help="What the model is tuned for, such as a set of class weights; see below.",
)
@click.option(
    "--training",
    type=click.Choice(["plain", "sqrt", "balanced", "average"]),
    default=None,
    show_default="plain; balanced for the goal balanced",
    help="Class weights of the training: none, one over the square root of the class share, one "
    "over the class share, or the mean of the probabilities of all three.",
)
@click.option(
    "--C",
    "strength",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="Inverse strength of the linear model's penalty.",
)
@click.option(
    "--hold-out",
    "share",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.2,
    help="Share of the rows held out to measure class risks before the final fit; 0 for none.",
)
@MEMORY_OPTION
def fit(  # noqa: PLR0913  one argument for each option
    *,
    table: str,
    target: str,
    out: str,
    kind: str,
    goal: Any,
    training: str | None,
    strength: float,
    share: float,
    memory: str | None,
    seed: int,
    output: Output,
    **reading: Any,
) -> None:
    """Fit a robust classifier to TABLE and save it as a model file.

    TABLE is a CSV file (gzipped or not) or a Parquet file. Text columns become categories, missing
    values are allowed, and the model file holds the training facts beside the weights. Loading it
    executes no code.

    A table that does not fit in memory is read in parts. For a set of weightings, a robust logistic
    regression is fitted to all of its rows in passes; its decisions are not tuned. Other models,
    and those for other goals, are fitted to a sample, and evaluated on all other rows.
    """
    from equipoise.blocks.memory import allowed_memory
    from equipoise.files import check_place
    from equipoise.goals import SetGoal, as_goal, format_goal
    from equipoise.persistence import facts_for, save_model
    from equipoise.persistence.saved_model import check_suffix
    from equipoise.sets import as_uncertainty
    from equipoise.tables import size_in_memory

    check_place(out, table)
    check_suffix(out)
    goal = as_uncertainty(None) if goal is None else goal
    room, size = allowed_memory(memory), size_in_memory(table)
    if size > room and kind == "linear" and isinstance(as_goal(goal), SetGoal):
        work = partial(_in_parts, room=room)
    elif size > room:
        work = partial(_sampled, kind=kind, training=training, room=room)
    else:
        work = partial(_whole, kind=kind, training=training)
    with work(Asked(table, target, goal, strength, share, seed, output, reading)) as made:
        rows, goal, model, notes, errors, seen = made
        notes = notes + _never_found(rows, errors)
        if seen is not None:
            share = seen["evaluated"] / int(rows.counts.sum())
        held_out = None if errors is None else _held_out(errors, share)
        facts = facts_for(
            rows, target, kind, format_goal(goal), seed, held_out=held_out, notes=notes
        )
        save_model(model, out, facts)
    counts = zip(facts.classes, rows.counts.tolist(), strict=True)
    result = {
        "model_file": out,
        "model": kind,
        "goal": facts.goal,
        "target": target,
        "rows": int(rows.counts.sum()),
        "columns": [column.name for column in rows.columns],
        "counts": [{"class": name, "rows": n} for name, n in counts],
        "held_out": errors,
        "rows_seen": seen,
        "seed": seed,
    }
    output.show(_lines(result, share), result, facts.notes)


class Asked(NamedTuple):
    """The options of a fit."""

    table: str
    target: str
    goal: Any
    C: float
    share: float
    seed: int
    output: Output
    reading: dict[str, Any]


class Made(NamedTuple):
    """A model, its rows and goal, the warnings of the fit, and risks measured before it.

    Of a sample, ``seen`` counts the rows that the model was trained, tuned and evaluated on.
    """

    rows: "LabelledTable | StreamedTable"
    goal: Any
    model: Any
    notes: list[str]
    errors: dict[str, Any] | None
    seen: dict[str, int] | None = None


@contextmanager
def _whole(asked: Asked, *, kind: str, training: str | None) -> Iterator[Made]:
    """A model of a table in memory."""
    from equipoise.goals import bind_classes
    from equipoise.tables import read_labelled

    table, target, goal, C, share, seed, output, reading = asked
    with output.progress(4, "Reading") as reach:
        rows = read_labelled(table, target, **reading)
        goal = bind_classes(goal, rows.classes)
        train = partial(_fitted, kind=kind, goal=goal, training=training, C=C, seed=seed)
        reach(1, "Measuring")
        errors = _measured(train, rows, goal, share, seed)
        reach(2, "Fitting")
        model, notes = train(rows.X, rows.y)
        reach(3, "Saving")
        yield Made(rows, goal, model, notes, errors)
        reach(4)


@contextmanager
def _in_parts(asked: Asked, *, room: int) -> Iterator[Made]:
    """A robust logistic regression of a table that is read in parts."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    from equipoise.estimators import RobustLogisticRegression
    from equipoise.goals import bind_classes
    from equipoise.sets import as_uncertainty
    from equipoise.tables import AsTable, streamed_table
    from equipoise.tables.streamed import PASSES, SomeLeftOut

    table, target, goal, C, share, seed, output, reading = asked
    length = 100 * (PASSES + 2)
    with (
        output.progress(length, "Reading") as reach,
        streamed_table(table, target, progress=reach, **reading) as rows,
    ):
        goal = as_uncertainty(bind_classes(goal, rows.classes))
        model = RobustLogisticRegression(goal, C=C, memory=max(1 << 28, room // 4))
        errors = None
        reach(100 * PASSES, "Measuring")
        n_rows = int(rows.counts.sum())
        left = SomeLeftOut(rows.blocks, min(share, _MOST_ASIDE / n_rows), seed)
        if share > 0:
            true, predicted = left.predicted(clone(model).fit(left))
            errors = class_errors(true, predicted, rows.classes, goal) if len(true) else None
        reach(100 * (PASSES + 1), "Fitting")
        notes = _notes_of_fit(model, rows.blocks)
        notes.append(
            f"The table was read in parts, and the model was fitted to all of its rows in "
            f"{model.n_passes_} passes; decisions are not tuned."
        )
        kinds = AsTable([(each.name, each.kind) for each in rows.columns])
        steps = [("table", kinds), ("features", rows.features), ("model", model)]
        yield Made(rows, goal, Pipeline(steps), notes, errors)
        reach(length)


@contextmanager
def _sampled(asked: Asked, *, kind: str, training: str | None, room: int) -> Iterator[Made]:
    """A model of a sample of a table that is read in parts, evaluated on all other rows."""
    from equipoise.cli.evaluate import held_out_errors
    from equipoise.goals import bind_classes
    from equipoise.tables import learner_for, streamed_table
    from equipoise.tables.features import HELD_OUT, sampled_model
    from equipoise.tables.streamed import PASSES

    table, target, goal, C, _, seed, output, reading = asked
    length = 100 * (PASSES + 1)
    with (
        output.progress(length, "Reading") as reach,
        streamed_table(table, target, encoded=False, progress=reach, **reading) as rows,
    ):
        goal = bind_classes(goal, rows.classes)
        learner = learner_for(rows.columns, kind, C=C, random_state=seed)
        model = sampled_model(learner, goal, HELD_OUT, seed, training, memory=room)
        reach(100 * PASSES, "Fitting")
        notes = _notes_of_fit(model, rows.blocks)
        if not hasattr(model, "rows_seen_"):
            yield Made(rows, goal, model, notes, None)
            return
        seen = {name: int(n.to_numpy().sum()) for name, n in model.rows_seen_.items()}
        notes.append(
            f"The table was read in parts: the model was trained on {seen['trained']:,} rows, its "
            f"decisions were tuned on {seen['tuned']:,} others, and class risks were counted on "
            f"all {seen['evaluated']:,} that it was not trained on."
        )
        yield Made(rows, goal, model, notes, held_out_errors(model), seen)
        reach(length)


def _notes_of_fit(model: Any, *rows: Any) -> list[str]:
    """What a fit to some rows warns of, each once."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(*rows)
    return list(dict.fromkeys(str(each.message) for each in caught))


def _measured(
    train: Callable[..., Any], rows: "LabelledTable", goal: Any, share: float, seed: int
) -> dict[str, Any] | None:
    """Class risks on held-out rows of a fit to the others; None where none can be held out."""
    from equipoise.tables import hold_out

    X, y = rows.X, rows.y
    kept, aside = hold_out(rows, share, seed)
    if len(aside) == 0:
        return None
    model, _ = train(X.iloc[kept], y[kept])
    return class_errors(y[aside], model.predict(X.iloc[aside]), rows.classes, goal)


def _fitted(
    X: Any, y: Any, *, kind: str, goal: Any, training: str | None, C: float, seed: int
) -> Any:
    """A fitted model, and what the fit warned of."""
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from equipoise.exceptions import EquipoiseWarning, in_a_sentence, warn
    from equipoise.goals import SetGoal, as_goal
    from equipoise.tables import folds_for, model_for

    counts = np.unique(y, return_counts=True)[1]
    problem = "The model cannot be fitted to this table"
    kinds = (ValueError, TypeError, AttributeError, ArithmeticError, MemoryError)
    cv = folds_for(len(y), len(counts))
    with (
        in_a_sentence(problem, *kinds),
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        model = model_for(X, kind, goal, C=C, cv=cv, random_state=seed)
        if training is not None and hasattr(model, "training"):
            model.set_params(training=training)
        # Folds of one row at least, or three in the share that is held out.
        needed = cv if cv >= 1 else 3 / cv
        tunes, is_set = hasattr(model, "goal"), isinstance(as_goal(goal), SetGoal)
        if tunes and is_set and sorted(counts)[-2] < needed:
            words = f"Decisions are not tuned: fewer than two classes have {needed:.0f} rows."
            warn(words, EquipoiseWarning)
            model = model.estimator
        model.fit(X, y)
    wanted = (EquipoiseWarning, ConvergenceWarning)
    notes = [str(each.message) for each in caught if issubclass(each.category, wanted)]
    return model, list(dict.fromkeys(notes))


def _never_found(rows: "LabelledTable | StreamedTable", errors: dict[str, Any] | None) -> list[str]:
    """Warnings about classes that were never predicted correctly on held-out rows."""
    measured = [] if errors is None else errors["classes"]
    return [
        f"None of the {row['rows']:,} held-out rows of class {short_name(row['class'])} is "
        "classified correctly: another goal (worst_class) or model, or more rows, may help."
        for row, count in zip(measured, rows.counts, strict=False)
        if row["risk"] == 1 and count >= ENOUGH_ROWS
    ]


def _held_out(errors: dict[str, Any], share: float) -> dict[str, Any]:
    """The class risks as training facts of a model."""
    names = {"rows": "rows", "risks": "risk", "lower": "lower", "upper": "upper"}
    lists = {many: [row[one] for row in errors["classes"]] for many, one in names.items()}
    return {**lists, "confidence": errors["confidence"], "share": share}


def _lines(result: dict[str, Any], share: float) -> list[str]:
    lines = [
        f"{result['rows']:,} rows, {len(result['columns'])} columns, {len(result['counts'])} "
        f"classes; {result['model']} model, {result['goal']}."
    ]
    seen, source = result["rows_seen"], "fitted to all rows"
    if seen is not None:
        source = f"fitted to {seen['trained'] + seen['tuned']:,} of {result['rows']:,} rows"
    if result["held_out"] is not None:
        which = "held out" if seen is None else "all that it was not trained on"
        lines.append(f"Class risks on {percent(share)} of the rows, {which}:")
        lines += error_lines(result["held_out"])
    return [*lines, f"Saved {result['model_file']}, {source}."]
