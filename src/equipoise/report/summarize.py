"""All that a page says, as plain numbers and sentences: what ``Comparison.to_dict`` gives."""

from typing import Any

import numpy as np

from equipoise.arrays import Mask
from equipoise.decisions.summary import FEW_ROWS
from equipoise.report.design import BALANCED, Candidate, Design, about, goal_text
from equipoise.report.findings import CONFIDENCE, Findings, HeldOutRisks
from equipoise.report.recommendation import regrets_of
from equipoise.report.refit import Refit
from equipoise.text import in_words, quoted
from equipoise.theory import conditional_bound
from equipoise.weights.by_class import ByClass

# A width of a bound that is worth having.
_NARROW = 0.05

_LOST = (
    "too few different rows to be in every training part and to be evaluated. They were used for "
    "training, and nothing is known about their risk."
)
_FAINT = (
    f"fewer than {FEW_ROWS} held-out rows. Their risks are shown with their wide intervals, but "
    "they are left out of the weighted risks and of the recommendation: one row more or less would "
    "decide."
)
_CLOSE = "within one standard error, and is the plainest choice of which that is so"


def summarize(found: Findings, title: str, refit: Refit, seconds: float) -> dict[str, Any]:
    """Everything worth showing, with nothing but dicts, lists, texts, numbers and None.

    Beside the findings: the heading of the page, how a model is fitted again, and how long it all
    took.
    """
    design, chosen = found.design, found.recommendation
    intervals = found.risks[chosen.place].intervals
    best = found.candidates[chosen.place]
    return {
        "title": title,
        "data": _data(design),
        "design": {
            "kind": "folds" if design.n_folds > 1 else "hold-out",
            "folds": design.n_folds,
            "judged": int(design.tested.sum()),
            "confidence": CONFIDENCE,
            "method": intervals.method,
            "approximate": intervals.approximate,
            "seed": found.seed,
            "sampled": dict(found.sampled),
            "rows_seen": found.rows_seen,
            "unfinished": list(found.unfinished),
            "seconds": round(seconds, 1),
        },
        "choices": [_choice(found, place) for place in range(len(found.candidates))],
        "costs": {
            "worlds": [
                {"name": name, "about": about(name, goal)} for name, goal in found.goals.items()
            ],
            "risk": found.costs.tolist(),
            "regret": found.regrets.tolist(),
            "largest_regret": chosen.largest_regrets.tolist(),
            "risk_of_all": found.costs_of_all.tolist(),
        },
        "path": _path(found),
        "recommendation": {
            "choice": chosen.place,
            "plain": chosen.plain,
            "best_plain": chosen.best_plain,
            "failed": bool(found.risks[chosen.place].failures),
            "reasons": _reasons(found),
            "price": _price(found),
            "sanity": _sanity(found),
            "confidence": _rivals(found),
        },
        "trust": _trust(found),
        "code": refit.code(best),
        "command": refit.command(best),
    }


def _data(design: Design) -> dict[str, Any]:
    """The table and its classes."""
    table = design.table
    lost = "not estimable: too few different rows, used for training only"
    faint = f"fewer than {FEW_ROWS} rows: shown, but does not decide"
    notes = np.select([~design.estimable, ~design.deciding], [lost, faint], "")
    return {
        "rows": int(table.counts.sum()),
        "columns": len(table.columns),
        "numeric": sum(column.is_numeric for column in table.columns),
        "categorical": sum(column.is_categorical for column in table.columns),
        "missing": int(sum(column.n_missing for column in table.columns)),
        "repeated": design.n_repeated,
        "weighted": table.weights is not None,
        "classes": [
            {
                "name": str(name),
                "rows": int(table.counts[label]),
                "share": float(table.prior[label]),
                "tested": int(design.tested[label]),
                "estimable": bool(design.estimable[label]),
                "deciding": bool(design.deciding[label]),
                "note": str(notes[label]),
            }
            for label, name in enumerate(table.classes.tolist())
        ],
        "warnings": list(table.warnings),
    }


def _choice(found: Findings, place: int) -> dict[str, Any]:
    """One candidate: its class risks and its summaries."""
    candidate, risks = found.candidates[place], found.risks[place]
    return {
        "label": candidate.label,
        "model": candidate.model,
        "made_for": candidate.made_for,
        "goal": None if candidate.goal is None else goal_text(candidate.goal),
        "about": _about_candidate(candidate),
        "classes": [
            {
                "class": label,
                "risk": interval.estimate,
                "lower": interval.lower,
                "upper": interval.upper,
                "taken_for": other,
                "taken_share": share,
            }
            for label, interval in risks.intervals.items()
            for other, share in [risks.taken_for.get(label, (None, None))]
        ],
        "standard": risks.risks.standard(),
        "balanced": risks.risks.balanced(),
        "worst": risks.risks.worst(),
        "worst_lower": risks.worst.lower,
        "worst_upper": risks.worst.upper,
        "worst_class": _worst_label(found.design, risks),
        "largest_regret": float(found.recommendation.largest_regrets[place]),
        "failures": list(risks.failures),
        "same_as": risks.same_as,
    }


def _about_candidate(candidate: Candidate) -> str:
    """What a candidate is, in a few words."""
    if candidate.goal is None:
        return "default predictions of the model as it is"
    if candidate.price is not None:
        return (
            "the fewest errors of the worst class for at most "
            f"{candidate.price:g} points of overall errors"
        )
    if candidate.made_for == BALANCED:
        return "trained with class weights under which every class counts the same"
    return f"with decisions tuned for {about(candidate.made_for, candidate.goal)}"


def _worst_label(design: Design, risks: HeldOutRisks) -> int:
    return int(design.table.classes.tolist().index(risks.risks.worst_class()))


def _path(found: Findings) -> dict[str, Any] | None:
    """Risks of the recommended model along alpha."""
    path, every = found.path, found.path_risks
    if path is None:
        return None
    judged = np.flatnonzero(found.design.estimable)
    return {
        "alpha": path.alphas.tolist(),
        "classes": judged.tolist(),
        "risk": [np.asarray(each.intervals.risks).tolist() for each in every],
        "lower": [np.asarray(each.intervals.lower).tolist() for each in every],
        "upper": [np.asarray(each.intervals.upper).tolist() for each in every],
        "weight": path.weights[:, judged].tolist(),
        "standard": [each.risks.standard() for each in every],
        "balanced": [each.risks.balanced() for each in every],
        "worst": [each.risks.worst() for each in every],
        "worst_class": [_worst_label(found.design, each) for each in every],
        "caps_bind": path.caps_bind.tolist(),
        "start": path.start,
    }


# The recommendation, in sentences.


def _points(difference: float) -> str:
    """A difference of shares in percentage points."""
    size = abs(100 * difference)
    return f"{size:.1f} percentage points" if size >= 0.05 else "less than 0.1 percentage points"


def _at_most(difference: float) -> str:
    text = _points(difference)
    return text if text.startswith("less") else f"at most {text}"


def _label(found: Findings, place: int) -> str:
    return quoted(found.candidates[place].label)


def _no_answer(found: Findings, failures: tuple[str, ...]) -> str:
    """What is said where even the best choice has failed."""
    largest, name = found.recommendation.largest_regrets, _label(found, found.recommendation.place)
    passed = [place for place, each in enumerate(found.risks) if not each.failures]
    said = f"every candidate has failed, and so has {name}"
    advice = "Look at the columns, or collect more rows."
    if passed:
        other = min(passed, key=largest.__getitem__)
        where = "" if len(found.goals) == 1 else " under one of the goals"
        said = f"{name} is the best choice here, and has failed"
        advice = (
            f"{_label(found, other)} has not, and costs {_points(largest[other])} more than the "
            f"best choice{where}. {advice}"
        )
    return f"There is no answer: {said}: {in_words(failures)}. {advice}"


def _reasons(found: Findings) -> list[str]:
    chosen, n = found.recommendation, len(found.goals)
    largest, name = chosen.largest_regrets, _label(found, chosen.place)
    failures = found.risks[chosen.place].failures
    if failures:
        return [_no_answer(found, failures)]
    if n == 1:
        only = next(iter(found.goals))
        said = [f"{name} is the best choice for {quoted(only)} on rows that it had not seen."]
        if largest[chosen.place] > 0:
            why = "the best within the price that was given" if found.price is not None else _CLOSE
            said = [
                f"For {quoted(only)}, {name} comes within {_points(largest[chosen.place])} of the "
                f"best choice on rows that it had not seen: {why}."
            ]
    else:
        said = [
            f"Nobody can tell which weights are right. Under every one of the {n} goals "
            f"compared, {name} costs {_at_most(largest[chosen.place])} more than the best "
            "choice there: this is its largest regret."
            if largest[chosen.place] > 0
            else f"{name} is the best choice under every one of the {n} goals compared."
        ]
    if chosen.place != chosen.plain:
        before, after = found.risks[chosen.plain].risks, found.risks[chosen.place].risks
        fails, other = before.worst_class(), after.worst_class()
        own = f", and {after.worst():.1%} of its own worst class, {quoted(other)}"
        said.append(
            f"{_label(found, chosen.plain)} makes the fewest errors overall. Of the class it fails "
            f"most, {quoted(fails)}, it gets {before[fails]:.1%} wrong; the recommended choice "
            f"{after[fails]:.1%}{'' if other == fails else own}."
        )
    return said


def _sanity(found: Findings) -> str:
    """The best plain model, and what the recommended choice adds to it."""
    chosen = found.recommendation
    name, place = _label(found, chosen.best_plain), chosen.best_plain
    if place == chosen.place:
        return f"The plain model {name} is as good as anything that was tried."
    before, after = found.risks[place].risks, found.risks[chosen.place].risks
    plain, own = chosen.largest_regrets[place], chosen.largest_regrets[chosen.place]
    return (
        f"The best plain model is {name}: {before.standard():.1%} overall errors and "
        f"{before.worst():.1%} in its worst class. The recommended choice has "
        f"{after.standard():.1%} and {after.worst():.1%}, and a largest regret of "
        f"{100 * own:.1f} points instead of {100 * plain:.1f}."
    )


def _price(found: Findings) -> list[str]:
    chosen = found.recommendation
    if chosen.place == chosen.plain:
        return ["No other choice makes fewer errors overall: there is nothing to pay."]
    before, after = found.risks[chosen.plain].risks, found.risks[chosen.place].risks
    more = after.standard() - before.standard()
    said = [
        f"Over all rows it errs on {after.standard():.1%} instead of {before.standard():.1%}: "
        f"{_points(more)} more than {_label(found, chosen.plain)}."
    ]
    if found.price is not None and 100 * more > found.price + 1e-9:
        said.append(f"No choice that has not failed keeps the price of {found.price:g} points.")
    rises = {name: after[name] - before[name] for name in after}
    loser = max(rises, key=rises.__getitem__)
    if rises[loser] > 0:
        said.append(
            f"The class that pays most is {quoted(loser)}: {after[loser]:.1%} wrong instead of "
            f"{before[loser]:.1%}."
        )
    return said


def _rivals(found: Findings) -> str:
    chosen = found.recommendation
    if not chosen.rivals:
        return "No other choice comes within one standard error of it."
    others = in_words([_label(found, rival) for rival in chosen.rivals], 3)
    return (
        f"The rows cannot tell it from {others}: all are within one standard error of the smallest "
        "largest regret, and the plainest is taken."
    )


# How far the numbers can be trusted: short texts with a heading each.


def _trust(found: Findings) -> list[dict[str, str]]:
    design, failed = found.design, bool(found.risks[found.recommendation.place].failures)
    parts = [
        ("How the rows were evaluated", _how(found)),
        ("The decisions", _decisions(found)),
        ("The intervals", _intervals(found)),
        ("Classes that cannot be evaluated", _about(design, ~design.estimable, _LOST)),
        ("Classes that do not decide", _about(design, design.estimable & ~design.deciding, _FAINT)),
        ("With all classes", _with_all(found)),
        ("A bound for every weighting", _bound(found)),
        ("The recommendation", "" if failed else _rivals(found)),
        *(("A warning of the fits", note) for note in found.notes),
        *(("About the table", text) for text in design.table.warnings),
    ]
    if found.unfinished:
        left = in_words(map(quoted, found.unfinished))
        parts.insert(0, ("Interrupted", f"What follows leaves out {left}."))
    return [{"heading": heading, "text": text} for heading, text in parts if text]


def _about(design: Design, which: Mask, text: str) -> str:
    names = design.table.classes[which].tolist()
    return f"{in_words(map(quoted, names))}: {text}" if names else ""


def _with_all(found: Findings) -> str:
    """What would be recommended if classes of few rows decided as well."""
    design = found.design
    if not np.any(design.estimable & ~design.deciding):
        return ""
    chosen, every = found.recommendation, regrets_of(found.costs_of_all).max(axis=1)
    best, name = int(every.argmin()), _label(found, chosen.place)
    said = (
        f"If the classes of few rows decided as well, the largest regret of {name} would be "
        f"{_points(every[chosen.place])}"
    )
    if best == chosen.place:
        return f"{said}, still the smallest of all."
    return f"{said}, and the smallest that of {_label(found, best)}, {_points(every[best])}."


def _how(found: Findings) -> str:
    design, seen = found.design, found.rows_seen
    rows = f"{len(design.judged):,} rows"
    if seen is not None:
        said = (
            f"The table was read in parts. Models were fitted to a sample of {seen['trained']:,} "
            "rows, an equal number of every class that has so many and weights that make up for "
            f"it, and decisions were tuned on {seen['tuned']:,} others. All {seen['evaluated']:,} "
            "rows that no model was fitted to were evaluated, those of the tuning by weights of "
            "other folds. Whether rows repeat others was not looked at."
        )
    elif design.n_folds > 1:
        said = (
            f"Each of {rows} was evaluated by fits on the other {design.n_folds - 1} of "
            f"{design.n_folds} parts of the table, that had not seen it."
        )
    elif len(design.judged) == len(design.table.labels):
        said = f"All of {rows} were evaluated, by models that are said not to have seen them."
    else:
        said = (
            f"The table is large, so one part of {rows} was held out and evaluated by fits on the "
            "others; decisions for a row were tuned without it."
        )
    for what, size in found.sampled.items():
        said += f" For {what} at most {size:,} training rows were used, a stratified sample."
    if design.n_repeated:
        said += (
            f" {design.n_repeated:,} rows repeat the features of an earlier one; they were "
            "kept on the same side of every split."
        )
    return said


def _decisions(found: Findings) -> str:
    where = "the other parts" if found.design.n_folds > 1 else "four fifths of the part held out"
    if found.rows_seen is not None:
        where = f"{found.rows_seen['tuned']:,} rows"
    return (
        "A plain model predicts the class of the largest probability. For a goal, the model is "
        "trained as it is, and its decisions are tuned: a class's probability is multiplied by its "
        f"weight, tuned on {where}, and the class of the largest product is predicted."
    )


def _intervals(found: Findings) -> str:
    design, intervals = found.design, found.risks[found.recommendation.place].intervals
    widest = max(intervals, key=lambda label: intervals.upper[label] - intervals.lower[label])
    ends, rows = intervals[widest], int(design.tested[widest])
    name = quoted(design.table.classes.tolist()[widest])
    fitted = "all rows" if design.n_folds > 1 else "the rows that were not held out"
    fitted = fitted if found.rows_seen is None else "the sample"
    said = (
        f"Each covers the true risk of its class with {CONFIDENCE:.0%} confidence by itself; "
        f"{intervals.method}, for a fit to {fitted}. The widest of the "
        f"recommended choice is that of {name}: {ends.lower:.1%} to {ends.upper:.1%}, from "
        f"{rows:,} rows."
    )
    risk = min(max(ends.estimate, 0.05), 0.95)
    needed = 1.96**2 * risk * (1 - risk) / 0.05**2
    if needed > rows:
        said += f" To know it to within 5 points, about {round(needed):,} rows would be needed."
    return said


def _bound(found: Findings) -> str:
    """What holds for the recommended candidate whatever the weights are (Appendix D)."""
    if found.design.table.weights is not None:
        return ""
    risks = found.risks[found.recommendation.place].risks
    counts = ByClass(found.design.tested[found.design.deciding], risks.classes)
    # One classifier, not all of a class of them: no complexity to pay for.
    bound = conditional_bound(
        counts,
        complexity=0.0,
        uncertainty="worst_class",
        risks=risks,
        confidence=CONFIDENCE,
        observed=False,
    )
    said = (
        f"With {CONFIDENCE:.0%} confidence no weighting of the classes at all gives the "
        f"recommended choice a risk above {min(bound.value, 1.0):.1%}, taking the fits of "
        "all folds as one."
    )
    if bound.vacuous:
        said += " That says nothing: no risk exceeds 100%."
    needed = bound.more_rows(_NARROW)
    if needed.rows > 0 and np.isfinite(needed.rows):
        said += (
            f" What makes it wide is the class {quoted(needed.name)}: with "
            f"{round(needed.rows):,} more rows of it the bound would be {_NARROW:.1%} above the "
            "risks observed."
        )
    return said
