"""All that a page says, as plain numbers and sentences: what ``Comparison.to_dict`` returns."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from equipoise.decisions.summary import FEW_ROWS
from equipoise.goals import Goal, as_goal
from equipoise.report.answer import LAST, MIDDLE, Answer, is_constant, never_right
from equipoise.report.answer import paired_differences as paired
from equipoise.report.candidates import PLAIN, goal_name, goal_text, value_text
from equipoise.report.design import Design
from equipoise.report.evaluations import CONFIDENCE, EvaluatedCandidate, Evaluator
from equipoise.report.written import Writer
from equipoise.risks.reliability import reliability_curve
from equipoise.text import in_words, points, quoted, share_text

# BINS: of predicted probabilities in the reliability diagram, equally many rows in each.
BINS = 10
# KNOWN_TO: half width of an interval that a class's missing rows are counted for: 5 points.
KNOWN_TO = 0.05


def summarize(
    answer: Answer,
    design: Design,
    goals: Mapping[str, Goal],
    writer: Writer,
    evaluator: Evaluator,
    rows_seen: dict[str, int] | None,
) -> dict[str, Any]:
    """Everything worth showing, with nothing but dicts, lists, texts, numbers and None.

    ``rows_seen`` says how many rows of out-of-core data were trained on, tuned on and evaluated.
    """
    best, names, request = answer.best, design.table.classes.tolist(), writer.request
    notes = evaluator.notes.values()
    return {
        "title": request.title,
        "data": _data(design),
        "design": _design(design, best)
        | {
            "seed": request.seed,
            "rows_seen": rows_seen,
            "unfinished": evaluator.unfinished,
            "price": request.price,
            "seconds": round(perf_counter() - request.began, 1),
        },
        "goals": [
            {
                "name": name,
                "text": goal_text(goal),
                "is_share": _is_share(goal, design, best),
            }
            for name, goal in goals.items()
        ],
        "candidates": [
            _candidate(answer, at, design, goals) for at in range(len(answer.evaluations))
        ],
        "cards": [_card(answer, at, design, writer) for at in range(len(answer.cards))],
        "recommendation": {
            "card": answer.advised,
            "candidate": answer.card.index,
            "no_answer": all(map(is_constant, answer.evaluations)),
            "failed": _failed(answer, names),
            "shows_gain": answer.shows_gain,
            "reasons": _reasons(answer, design, goals, request.price),
            "few": _few(design),
        },
        "confusion": best.evaluated.counts.tolist(),
        "reliability": _reliability(best, names),
        "trust": _trust(answer, design, names, notes, rows_seen),
        "code": writer.code(best.candidate),
        "command": writer.command(best.candidate),
    }


def _design(design: Design, best: EvaluatedCandidate) -> dict[str, Any]:
    """How rows were held out, and what the intervals are."""
    return {
        "kind": design.kind,
        "splits": len(design.folds.parts),
        "evaluated": int(design.tested.sum()),
        "confidence": CONFIDENCE,
        "method": best.intervals.method,
        "approximate": best.intervals.approximate,
        "sampled": design.sampled,
        "clusters": None if design.clusters is None else len(np.unique(design.clusters)),
    }


def _card(answer: Answer, at: int, design: Design, writer: Writer) -> dict[str, Any]:
    """A card; of the user's goal also its value."""
    card, value = answer.cards[at], None
    one = answer.evaluations[card.index]
    if at > LAST:
        is_share = _is_share(card.goal, design, one)
        value = value_text(_goal_value(one, card.goal, design), is_share)
    return {
        "name": card.name if value is None else f"Your goal: {goal_name(card.name)}",
        "candidate": card.index,
        "measure": goal_name(card.name),
        "value": value,
        "line": writer.line(one.candidate),
        "code": writer.code(one.candidate),
    }


def _data(design: Design) -> dict[str, Any]:
    """The table and its classes."""
    table = design.table
    lost = "too few rows to be held out: used for training only"
    faint = f"fewer than {FEW_ROWS} held-out rows: no influence on the advice"
    notes = np.select([~design.evaluated, ~design.counts], [lost, faint], "")
    return {
        "rows": int(table.counts.sum()),
        "columns": len(table.columns),
        "missing": int(sum(column.n_missing for column in table.columns)),
        "repeated": design.n_repeated,
        "weighted": table.weights is not None,
        "classes": [
            {
                "name": str(name),
                "rows": int(table.counts[label]),
                "share": float(table.prior[label]),
                "tested": int(design.tested[label]),
                "evaluated": bool(design.evaluated[label]),
                "counts": bool(design.counts[label]),
                "note": str(notes[label]),
            }
            for label, name in enumerate(table.classes.tolist())
        ],
        "warnings": list(table.warnings),
    }


def _candidate(
    answer: Answer, at: int, design: Design, goals: Mapping[str, Goal]
) -> dict[str, Any]:
    """One candidate: its class risks and its summaries."""
    one = answer.evaluations[at]
    candidate, worst, overall, balanced = one.candidate, one.worst(), one.overall(), one.balanced()
    ends = one.intervals[worst]
    same = next(
        (
            position
            for position, other in enumerate(answer.evaluations[:at])
            if np.array_equal(other.evaluated.predicted, one.evaluated.predicted)
        ),
        None,
    )
    return {
        "label": candidate.label,
        "model": candidate.model,
        "tuned_for": candidate.tuned_for,
        "goal": None if candidate.goal is None else goal_text(candidate.goal),
        "overall": overall.estimate,
        "overall_lower": overall.lower,
        "overall_upper": overall.upper,
        "balanced": balanced.estimate,
        "balanced_lower": balanced.lower,
        "balanced_upper": balanced.upper,
        "worst": ends.estimate,
        "worst_lower": ends.lower,
        "worst_upper": ends.upper,
        "worst_class": worst,
        "macro_f1": 1 - one.value(as_goal("f1_macro"), design.table.classes),
        "goals": [_goal_value(one, goal, design) for goal in goals.values()],
        "frontier": bool(answer.frontier[at]),
        "same_as": same,
        "constant": is_constant(one),
        "never_right": np.flatnonzero(never_right(one)).tolist(),
        "classes": [_of_class(one, label) for label in np.flatnonzero(design.evaluated).tolist()],
    }


def _goal_value(one: EvaluatedCandidate, goal: Goal, design: Design) -> float:
    """The value of a goal: a metric as it is, a risk or cost otherwise."""
    value = one.value(goal, design.table.classes)
    return 1 - value if one.measures(goal, design.table.classes) == "metric" else value


def _is_share(goal: Goal, design: Design, one: EvaluatedCandidate) -> bool:
    """Whether the value of a goal is shown as a percentage."""
    return one.measures(goal, design.table.classes) != "other"


def _of_class(one: EvaluatedCandidate, label: int) -> dict[str, Any]:
    others = one.shares[label].copy()
    others[label] = 0.0
    precision, ends, wrong = one.precisions[label], one.intervals[label], bool(others.any())
    return {
        "class": label,
        "risk": ends.estimate,
        "lower": ends.lower,
        "upper": ends.upper,
        "precision": None if np.isnan(precision) else float(precision),
        "taken_for": int(others.argmax()) if wrong else None,
        "taken_share": float(others.max()) if wrong else None,
    }


# The advice, in sentences.


def _failed(answer: Answer, names: list[Any]) -> str:
    """Why the advised candidate is no answer; nothing otherwise."""
    if all(map(is_constant, answer.evaluations)):
        return "No model tried is better than always predicting the most frequent class."
    lost = [quoted(names[i]) for i in np.flatnonzero(never_right(answer.best))]
    return f"No row of {in_words(lost)} is predicted right." if lost else ""


def _reasons(
    answer: Answer, design: Design, goals: Mapping[str, Goal], price: float | None
) -> list[dict[str, str]]:
    """What the advice gains and costs against the plain model, or why that one is advised."""
    parts = list[tuple[str, str]]()
    if all(map(is_constant, answer.evaluations)):
        return []
    if answer.best is answer.first:
        parts.append(("Why", _why_plain(answer, goals)))
    else:
        parts.append(("Gain", _gain(answer, design)))
        parts.append(("Cost", _cost(answer, design)))
    if price is not None:
        parts.append(("Limit", f"at most {price:g} points of overall error."))
    if ties := [quoted(answer.evaluations[i].candidate.label) for i in answer.ties]:
        parts.append(("Ties", f"these rows show no difference from {in_words(ties, 3)}."))
    return [{"heading": heading, "text": text} for heading, text in parts]


def _why_plain(answer: Answer, goals: Mapping[str, Goal]) -> str:
    plain, middle = answer.first, answer.evaluations[answer.cards[MIDDLE].index]
    if goals:
        return "the plain model with the fewest errors serves this goal best."
    if not plain.overall().estimate:
        return "no held-out row is misclassified."
    if middle is plain:
        return "these rows show no gain from tuning: keep the plain model."
    cost = points(middle.overall().estimate, plain.overall().estimate)
    gain = points(middle.balanced().estimate, plain.balanced().estimate)
    return (
        f"tuning for balanced accuracy costs {cost} points of overall error and changes the mean "
        f"class error by {gain}: keep the plain model, unless every class counts the same for you."
    )


def _gain(answer: Answer, design: Design) -> str:
    """The measure that the advice is by, and the classes that gain."""
    plain, best, card = answer.first, answer.best, answer.card
    changed = [_changed("mean class error", plain.balanced().estimate, best.balanced().estimate)]
    if answer.advised == LAST:
        old, new = (float(each.intervals.risks[each.worst()]) for each in (plain, best))
        changed = [_changed("worst class error", old, new)]
    elif answer.advised > LAST:
        old, new = (_goal_value(each, card.goal, design) for each in (plain, best))
        is_share = _is_share(card.goal, design, plain)
        changed = [_changed(goal_name(card.name), old, new, is_share=is_share)]
    changed += _recalls(plain, best, design) or ["no class gains beyond noise on these rows"]
    return f"{'; '.join(changed)} (against {quoted(plain.candidate.label)})."


def _cost(answer: Answer, design: Design) -> str:
    """The overall error, and the classes that lose."""
    plain, best = answer.first, answer.best
    old, new = plain.overall().estimate, best.overall().estimate
    losses = _recalls(plain, best, design, lost=True)
    said = "; ".join([_changed("overall error", old, new), *losses])
    rises = share_text(new) != share_text(old) and new > old
    return f"{said}." if losses or rises else f"none: {said}."


def _changed(measure: str, old: float, new: float, *, is_share: bool = True) -> str:
    shown = f"{measure} {value_text(new, is_share)} instead of {value_text(old, is_share)}"
    return f"{shown} ({points(new, old)} points)" if is_share else shown


def _recalls(
    plain: EvaluatedCandidate, best: EvaluatedCandidate, design: Design, *, lost: bool = False
) -> list[str]:
    """The classes whose recall rises, or falls, beyond noise, the largest differences first."""
    differences = paired(best, plain) if lost else paired(plain, best)
    changed = np.flatnonzero(differences.certain)
    order = changed[np.argsort(-differences.gains[changed])].tolist()
    names = design.table.classes
    named = [f"{quoted(names[i])} {_recall(plain, i)} to {_recall(best, i)}" for i in order]
    return [f"recall of {in_words(named, 3)}"] if named else []


def _recall(one: EvaluatedCandidate, label: int) -> str:
    return share_text(1 - one.intervals[label].estimate)


def _few(design: Design) -> str:
    """Which classes have no influence on the advice, and which goal gives them some."""
    names, counts = design.table.classes.tolist(), design.tested
    few = np.flatnonzero(design.evaluated & ~design.counts).tolist()
    lost = np.flatnonzero(~design.evaluated).tolist()
    sentences = []
    if few:
        shown = [f"{quoted(names[i])} ({counts[i]:,} held-out rows)" for i in few]
        sentences.append(f"No influence on this advice, too few rows: {in_words(shown)}.")
    if lost:
        shown = [f"{quoted(names[i])} ({design.table.counts[i]:,} rows)" for i in lost]
        sentences.append(f"Too few rows to be evaluated at all: {in_words(shown)}.")
    if few or lost:
        sentences.append(
            "If such a class is what you care about, state its cost as the goal (CostMatrix), or "
            "collect rows and set a floor (RecallFloors)."
        )
    return " ".join(sentences)


# Probabilities


def _reliability(best: EvaluatedCandidate, names: list[Any]) -> dict[str, Any]:
    """Predicted probability and observed frequency, in bins of equally many rows.

    Of two classes it is the probability of the rarer one, of more that of the most probable class.
    """
    rows = best.held_out.predictions
    if len(names) == 2:
        label = int(np.argmin(np.bincount(rows.labels, minlength=2)))
        predicted, events = rows.probabilities[:, label], rows.labels == label
    else:
        label, top = -1, np.argmax(rows.probabilities, axis=1)
        predicted, events = rows.probabilities.max(axis=1), rows.labels == top
    inner = np.unique(np.quantile(predicted, np.linspace(0, 1, BINS + 1)[1:-1]))
    curve = reliability_curve(events, predicted, rows.sample_weight, inner)
    columns = {name: column.tolist() for name, column in curve.items()}
    return {"class": None if label < 0 else label, **columns}


# How far the numbers can be trusted: short texts with a heading each.


def _trust(
    answer: Answer,
    design: Design,
    names: list[Any],
    notes: Iterable[str],
    rows_seen: dict[str, int] | None,
) -> list[dict[str, str]]:
    parts = [
        ("How rows were held out", _how(design, rows_seen)),
        ("How decisions were tuned", _tuning(design, rows_seen)),
        ("The intervals", _intervals(answer.best, design, names)),
        *(("A warning from a fit", note) for note in notes),
        *(("About the table", text) for text in design.table.warnings),
    ]
    return [{"heading": heading, "text": text} for heading, text in parts if text]


def _how(design: Design, rows_seen: dict[str, int] | None) -> str:
    n, splits = f"{int(design.tested.sum()):,} rows", len(design.folds.parts)
    if rows_seen is not None:
        return (
            f"The table was read in parts. Models were fitted to a sample of "
            f"{rows_seen['trained']:,} rows, an equal number of every class where there are "
            "enough, with weights that restore the class frequencies; decisions were tuned on "
            f"{rows_seen['tuned']:,} others. All {rows_seen['evaluated']:,} rows that no model was "
            "fitted to were evaluated. Repeated rows were not looked for."
        )
    said = {
        "folds": f"Each of {n} was predicted by models that were fitted to the other "
        f"{splits - 1} of {splits} folds.",
        "hold-out": f"The table is large or a share was asked for: {n} were held out once, and "
        "predicted by models that were fitted to the others.",
        "unseen": f"All of {n} were evaluated, by models that are said not to have seen them.",
        "groups": f"Rows of one group are in one fold: {n} were predicted by models that have "
        "seen no row of their group.",
        "time": f"Rows are in time order: {n} were predicted by models that were fitted to "
        "earlier rows only.",
    }[design.kind]
    if design.sampled:
        said += f" Models were fitted to at most {design.sampled:,} rows, a stratified sample."
    if design.n_repeated:
        said += f" {design.n_repeated:,} rows repeat the features of an earlier one"
        said += (
            "."
            if design.kind in ("groups", "time", "unseen")
            else ("; they were kept on the same side of every split.")
        )
    return said


def _tuning(design: Design, rows_seen: dict[str, int] | None) -> str:
    where = "the other folds" if len(design.folds.parts) > 1 else "other held-out rows"
    if rows_seen is not None:
        where = f"{rows_seen['tuned']:,} rows"
    return (
        f"{PLAIN.capitalize()} models predict the most probable class. Tuned ones multiply the "
        f"probability of each class by a weight, tuned on {where}, and predict the class of the "
        "largest product. The models themselves are the same."
    )


def _intervals(best: EvaluatedCandidate, design: Design, names: list[Any]) -> str:
    intervals, counts = best.intervals, np.flatnonzero(design.evaluated)
    widths = np.asarray(intervals.upper) - np.asarray(intervals.lower)
    widest = int(counts[np.argmax(widths[counts])])
    ends, rows = intervals[widest], int(design.tested[widest])
    said = (
        f"Each covers the true value with {CONFIDENCE:.0%} confidence by itself; "
        f"{intervals.method}. The widest of the advised model is that of "
        f"{quoted(names[widest])}: recall {share_text(1 - ends.upper)} to "
        f"{share_text(1 - ends.lower)}, from {rows:,} rows."
    )
    if design.clusters is not None:
        said += (
            f" Rows of one group are alike: intervals are for {len(np.unique(design.clusters)):,} "
            "groups, not for independent rows."
        )
    risk = min(max(ends.estimate, 0.05), 0.95)
    needed = 1.96**2 * risk * (1 - risk) / KNOWN_TO**2
    if needed > rows:
        said += f" To know it to within 5 points, about {round(needed):,} rows would be needed."
    return said
