"""All that a page says, as plain numbers and sentences: what ``Comparison.to_dict`` gives."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Mask
from equipoise.goals import as_goal
from equipoise.report.design import DECIDING_ROWS, MANY_ROWS, Candidate, Design
from equipoise.report.findings import CONFIDENCE, AlphaPath, Findings, HeldOutRisks
from equipoise.sets import FixedWeights
from equipoise.text import in_words, quoted
from equipoise.theory import conditional_bound
from equipoise.weights.by_class import ByClass

# A width of a bound that is worth having.
_NARROW = 0.05

_LOST = (
    "too few different rows to be in every training part and to be judged. They were used for "
    "training, and nothing is known about their risk."
)
_FAINT = (
    f"fewer than {DECIDING_ROWS} rows. Their risks are shown with their wide intervals, but they "
    "are left out of the weighted risks and of the recommendation: one row more or less would "
    "decide."
)


def summarize(
    found: Findings, title: str, loading: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Everything worth showing, with nothing but dicts, lists, texts, numbers and None.

    Beside the findings: the heading of the page, lines of Python that load the table, and how long
    it all took.
    """
    design, chosen = found.design, found.recommendation
    rarest, intervals = int(design.table.counts.min()), found.risks[0].intervals
    about = {candidate.weighting: candidate.about for candidate in found.candidates}
    return {
        "title": title,
        "data": _data(design),
        "design": {
            "kind": "folds" if design.n_folds > 1 else "hold-out",
            "folds": design.n_folds,
            "judged": len(design.judged),
            "confidence": CONFIDENCE,
            "method": intervals.method,
            "approximate": intervals.approximate,
            "seed": found.seed,
            "sampled": dict(found.sampled),
            "seconds": round(seconds, 1),
        },
        "choices": [_choice(found, place) for place in range(len(found.candidates))],
        "costs": {
            "worlds": [{"name": name, "about": about[name]} for name in found.weightings],
            "risk": found.costs.tolist(),
            "regret": found.regrets.tolist(),
            "largest_regret": chosen.largest_regrets.tolist(),
        },
        "path": _path(found),
        "recommendation": {
            "choice": chosen.place,
            "plain": chosen.plain,
            "reasons": _reasons(found),
            "price": _price(found),
            "stability": chosen.stability,
            "confidence": _stability(found),
        },
        "trust": _trust(found),
        "code": refit_code(found.candidates[chosen.place], loading, rarest, found.seed),
    }


def _data(design: Design) -> dict[str, Any]:
    """The table and its classes."""
    table = design.table
    lost = "not estimable: too few different rows, used for training only"
    faint = f"fewer than {DECIDING_ROWS} rows: shown, but does not decide"
    notes = np.select([~design.estimable, ~design.deciding], [lost, faint], "")
    return {
        "rows": len(table.labels),
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
        "weighting": candidate.weighting,
        "uncertainty": repr(candidate.uncertainty),
        "about": candidate.about,
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
    }


def _worst_label(design: Design, risks: HeldOutRisks) -> int:
    return int(design.table.classes.tolist().index(risks.risks.worst_class()))


def _path(found: Findings) -> dict[str, Any] | None:
    """Risks of the linear model along alpha."""
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
        "rows": path.n_rows,
        "tuned": path.tuned,
    }


# The recommendation, in sentences.


def _points(difference: float) -> str:
    """A difference of shares in percentage points."""
    size = abs(100 * difference)
    return f"{size:.1f} percentage points" if size >= 0.05 else "less than 0.1 percentage points"


def _label(found: Findings, place: int) -> str:
    return quoted(found.candidates[place].label)


def _reasons(found: Findings) -> list[str]:
    chosen, n = found.recommendation, len(found.weightings)
    largest, name = chosen.largest_regrets, _label(found, chosen.place)
    said = [
        f"Nobody can tell which weights are right. Under every one of the {n} weightings "
        f"compared, {name} costs at most {_points(largest[chosen.place])} more than the best "
        "choice there."
        if largest[chosen.place] > 0
        else f"{name} is the best choice under every one of the {n} weightings compared."
    ]
    if chosen.place != chosen.plain:
        worst = list(found.weightings)[int(found.regrets[chosen.plain].argmax())]
        said.append(
            f"{_label(found, chosen.plain)} makes the fewest errors overall, but costs up to "
            f"{_points(largest[chosen.plain])} more than the best choice (under {quoted(worst)})."
        )
        before, after = found.risks[chosen.plain].risks, found.risks[chosen.place].risks
        fails, other = before.worst_class(), after.worst_class()
        own = f", and {after.worst():.1%} of its own worst class, {quoted(other)}"
        said.append(
            f"Of the class it fails most, {quoted(fails)}, it gets {before[fails]:.1%} wrong; "
            f"the recommended choice {after[fails]:.1%}{'' if other == fails else own}."
        )
    return said


def _price(found: Findings) -> list[str]:
    chosen = found.recommendation
    if chosen.place == chosen.plain:
        return ["No other choice makes fewer errors overall: there is nothing to pay."]
    before, after = found.risks[chosen.plain].risks, found.risks[chosen.place].risks
    said = [
        f"Over all rows it errs on {after.standard():.1%} instead of {before.standard():.1%}: "
        f"{_points(after.standard() - before.standard())} more than {_label(found, chosen.plain)}."
    ]
    rises = {name: after[name] - before[name] for name in after}
    loser = max(rises, key=rises.__getitem__)
    if rises[loser] > 0:
        said.append(
            f"The class that pays most is {quoted(loser)}: {after[loser]:.1%} wrong instead of "
            f"{before[loser]:.1%}."
        )
    return said


def _stability(found: Findings) -> str:
    chosen = found.recommendation
    said = (
        f"Had other rows of the same kind been judged, {chosen.stability:.0%} of the time the "
        "answer would be the same"
    )
    if not chosen.rivals:
        return f"{said}."
    others = in_words([_label(found, rival) for rival in chosen.rivals], 2)
    if chosen.stability >= 0.9:
        strength = "This is a firm answer."
    elif chosen.stability >= 0.6:
        strength = "This is a likely answer, not a firm one."
    else:
        strength = "It is a close call."
    return f"{said}, else {others}. {strength}"


# How far the numbers can be trusted: short texts with a heading each.


def _trust(found: Findings) -> list[dict[str, str]]:
    design = found.design
    parts = [
        ("How the rows were judged", _how(found)),
        ("The decisions", _decisions(found)),
        ("The intervals", _intervals(found)),
        ("Classes that cannot be judged", _about(design, ~design.estimable, _LOST)),
        ("Classes that do not decide", _about(design, design.estimable & ~design.deciding, _FAINT)),
        ("A bound for every weighting", _bound(found)),
        ("The recommendation", _stability(found)),
        ("The optimisation", _optimisation(found.path)),
        *(("A warning of the fits", note) for note in found.notes),
        *(("About the table", text) for text in design.table.warnings),
    ]
    return [{"heading": heading, "text": text} for heading, text in parts if text]


def _about(design: Design, which: Mask, text: str) -> str:
    names = design.table.classes[which].tolist()
    return f"{in_words(map(quoted, names))}: {text}" if names else ""


def _optimisation(path: AlphaPath | None) -> str:
    if path is None:
        return ""
    if not np.isfinite(path.gap):
        return "Some linear fits have no proven bound."
    return (
        f"The linear fits are within {path.gap:.0e} of their optimum, relative to the objective, "
        "by a proven bound."
    )


def _how(found: Findings) -> str:
    design = found.design
    rows = f"{len(design.judged):,} rows"
    if design.n_folds > 1:
        said = (
            f"Each of {rows} was judged by fits on the other {design.n_folds - 1} of "
            f"{design.n_folds} parts of the table, that had not seen it."
        )
    else:
        said = (
            f"The table has more than {MANY_ROWS:,} rows, so one part of {rows} was held out and "
            "judged by fits on the others; decisions were tuned on "
            f"{len(design.tuned_on):,} rows that neither trained nor were judged."
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
    design, models = found.design, {each.model for each in found.candidates}
    known = [name for name, each in found.weightings.items() if as_goal(each).is_known]
    tuned = [name for name in found.weightings if name not in known]
    said = "A class's probability is multiplied by a weight, and the largest product decides."
    if "boosting" in models:
        said += " Gradient boosting is trained once, and its probabilities serve every weighting."
    if "linear" in models:
        said += " The linear model is trained for each weighting."
    said += f" For {in_words(map(quoted, known))} the weights are known, so nothing is tuned."
    if tuned and not design.can_tune:
        said += f" For {in_words(map(quoted, tuned))} the rows are too few to tune them."
    elif tuned:
        where = "the other parts" if design.n_folds > 1 else "the rows set aside for that"
        said += (
            f" For {in_words(map(quoted, tuned))} they are tuned on {where}, for the fewest errors "
            "in the worst case."
        )
    return said


def _intervals(found: Findings) -> str:
    design, intervals = found.design, found.risks[found.recommendation.place].intervals
    widest = max(intervals, key=lambda label: intervals.upper[label] - intervals.lower[label])
    ends, rows = intervals[widest], int(design.tested[widest])
    name = quoted(design.table.classes.tolist()[widest])
    fitted = "all rows" if design.n_folds > 1 else "the rows that were not held out"
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
        uncertainty="worst-class",
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


# The few lines of Python that fit a candidate to the whole table.


def refit_code(candidate: Candidate, loading: Sequence[str], rarest: int, seed: int) -> str:
    """Python code that ends in a fitted ``model``.

    Before come the lines that make ``X`` and ``y``; ``rarest`` is the size of the smallest class.
    """
    uncertainty, tunes = candidate.uncertainty, not candidate.is_known
    imports, goal = [f"from equipoise import {type(uncertainty).__name__}"], repr(uncertainty)
    if isinstance(uncertainty, FixedWeights) and isinstance(uncertainty.weights, str):
        imports, goal = [], repr(uncertainty.weights)
    options = f", random_state={seed}" if candidate.model == "boosting" or tunes else ""
    options += f", rarest={rarest}" if candidate.model == "boosting" else ""
    model = f"model = model_for(X, {candidate.model!r}, goal={goal}{options})"
    return "\n".join([*imports, *loading, model, "model.fit(X, y)"]) + "\n"
