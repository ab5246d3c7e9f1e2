r"""``equipoise evaluate``: class risks of a saved model on a table with labels.

.. math:: R_i = P(\text{prediction} \ne i \mid \text{class } i), \qquad
          \max_i R_i, \qquad \max_{q \in Q} \sum_i q_i p_i R_i
"""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.main import Output, command
from equipoise.cli.predict import labelled_rows
from equipoise.text import listing, percent, short_name, text_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPILOG = """\b
Examples:
  equipoise evaluate mail.equipoise test.csv
  equipoise evaluate mail.equipoise test.csv --target spam --confidence 0.99 --json
"""


@command(EPILOG)
@click.argument("model", type=click.Path())
@click.argument("table", type=click.Path())
@click.option("-t", "--target", default=None, help="Label column; by default that of the training.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Probability that an interval covers its risk.",
)
def evaluate(
    *, model: str, table: str, target: str | None, confidence: float, output: Output
) -> None:
    """Measure MODEL, a file that 'equipoise fit' wrote, on the rows of TABLE.

    For each class the share of its rows that get another class, with an exact interval; the worst
    class; and the robust risk, the largest weighted risk over the model's uncertainty set. The
    rows must not have been used in training.
    """
    from equipoise.goals import bind_classes, parse_goal
    from equipoise.persistence import load_model

    saved = load_model(model)
    target = saved.facts.target if target is None else target
    if target is None:
        raise click.UsageError("The model file names no label column: give it with --target.")
    y_true, y_pred = labelled_rows(saved, table, target, saved.predict, output, "Evaluating")
    classes, text = saved.facts.class_names(), saved.facts.goal
    goal = None if text is None else bind_classes(parse_goal(text), classes)
    errors = class_errors(y_true, y_pred, classes, goal, confidence=confidence)
    absent = listing(row["class"] for row in errors["classes"] if row["rows"] == 0)
    missing = f"The table has no rows of class {absent}: its risk is unknown."
    notes = [*saved.notes, *([missing] if absent else [])]
    lines = [
        *error_lines(errors),
        f"Standard risk: {percent(errors['standard_risk'])}. Balanced risk: "
        f"{percent(errors['balanced_risk'])}.",
    ]
    if errors["metric_value"] is not None:
        lines.append(f"{short_name(text)}: {errors['metric_value']:.4g}.")
    elif errors["robust_risk"] is not None:
        lines.append(f"Robust risk over {short_name(text)}: {percent(errors['robust_risk'])}.")
    elif text is not None and absent:
        lines.append(f"{short_name(text)}: not estimable, because a class has no rows.")
    abstained = float(no_class(y_pred).mean())
    if abstained:
        lines.append(f"No class: {percent(abstained)} of the rows, which count as errors.")
        errors["abstained"] = abstained
    output.show(lines, {"rows": len(y_true), "goal": text, **errors}, notes)


def class_errors(
    y_true: "NDArray[Any]",
    y_pred: "NDArray[Any]",
    classes: "NDArray[Any]",
    goal: Any,
    *,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Class risks with exact intervals, the worst class, and the goal's value, as JSON has them.

    The robust risk or the metric takes the class shares of these rows, and is None where a class
    has no row.
    """
    from sklearn.metrics import confusion_matrix

    from equipoise.risks import class_risk_intervals, class_risks

    y_pred = _with_wrong_classes(y_true, y_pred, classes)
    table = confusion_matrix(y_true, y_pred, labels=classes)
    present = classes[table.any(axis=1)]
    risks = class_risks(y_true, y_pred, classes=present)
    intervals = class_risk_intervals(y_true, y_pred, classes=present, confidence=confidence)
    counts = dict(zip(classes.tolist(), table.sum(axis=1).tolist(), strict=True))
    means, values = (risks.standard(), risks.balanced()), _goal_value(table, classes, goal)
    return _as_json(counts, intervals, *means, risks.worst_class()) | values


def _with_wrong_classes(
    y_true: "NDArray[Any]", y_pred: "NDArray[Any]", classes: "NDArray[Any]"
) -> "NDArray[Any]":
    """Predictions in which rows without a class have a wrong one: risks count any as an error."""
    import numpy as np

    abstained = no_class(y_pred)
    if not abstained.any():
        return y_pred
    wrong = np.where(y_true[abstained] == classes[0], classes[1], classes[0])
    completed = np.empty(len(y_pred), dtype=classes.dtype)
    completed[abstained], completed[~abstained] = wrong, y_pred[~abstained]
    return completed


def no_class(y_pred: "NDArray[Any]") -> "NDArray[Any]":
    """Which rows a model that may abstain gives no class."""
    import numpy as np

    return np.array([each is None for each in y_pred.tolist()], dtype=bool)


def held_out_errors(model: Any) -> dict[str, Any]:
    """The result of :func:`class_errors` for a model that was evaluated on held-out rows."""
    import numpy as np

    intervals, tuned = model.class_risk_intervals_, model.tuned_
    risks, prior = np.asarray(intervals.risks), np.asarray(tuned.class_prior)
    known = ~np.isnan(risks)
    names, rows = tuned.classes.tolist(), tuned.held_out[:, 0].sum(axis=0)
    counts = dict(zip(names, rows.astype(int).tolist(), strict=True))
    means = float(prior[known] @ risks[known] / prior[known].sum()), float(risks[known].mean())
    values = {"robust_risk": tuned.robust_risk, "metric_value": tuned.metric_value}
    return _as_json(counts, intervals, *means, names[int(np.nanargmax(risks))]) | values


def _as_json(
    counts: dict[Any, int], intervals: Any, standard: float, balanced: float, worst: Any
) -> dict[str, Any]:
    """Rows and risks of the classes with intervals, their means, and the worst class."""
    return {
        "classes": [
            {"class": name, "rows": count, **_interval(intervals[name] if count else None)}
            for name, count in counts.items()
        ],
        "confidence": intervals.confidence,
        "standard_risk": standard,
        "balanced_risk": balanced,
        "worst_class": {"class": worst, **_interval(intervals.worst())},
    }


def _goal_value(
    table: "NDArray[Any]", classes: "NDArray[Any]", goal: Any
) -> dict[str, float | None]:
    """The robust risk over a set, or the value of a metric."""
    from equipoise.goals import as_goal

    values: dict[str, float | None] = {"robust_risk": None, "metric_value": None}
    totals = table.sum(axis=1)
    if goal is None or not totals.all():
        return values
    criterion = as_goal(goal).resolve(totals / totals.sum(), classes)
    value = criterion.value(table.astype("float64"))
    if criterion.measures == "risk":
        values["robust_risk"] = value
    if criterion.measures == "metric":
        values["metric_value"] = 1 - value
    return values


def _interval(interval: Any) -> dict[str, float | None]:
    if interval is None:
        return {"risk": None, "lower": None, "upper": None}
    return {"risk": interval.estimate, "lower": interval.lower, "upper": interval.upper}


def error_lines(errors: dict[str, Any]) -> list[str]:
    """The classes as a table, and the worst of them."""
    header = ("class", "rows", "risk", f"{percent(errors['confidence'])} interval")
    rows = [
        (short_name(row["class"]), f"{row['rows']:,}", percent(row["risk"]), _range(row))
        for row in errors["classes"]
    ]
    worst = errors["worst_class"]
    return [
        *text_table(header, rows, right=True, gap="  "),
        f"Worst class: {short_name(worst['class'])}, {percent(worst['risk'])} ({_range(worst)}).",
    ]


def _range(row: dict[str, Any]) -> str:
    if row["risk"] is None:
        return "not estimable"
    return f"{percent(row['lower'])} to {percent(row['upper'])}"
