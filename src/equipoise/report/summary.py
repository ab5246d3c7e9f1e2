"""All that a page says, as plain numbers and sentences: what ``Comparison.to_dict`` gives."""

from typing import Any

import numpy as np

from equipoise.report.choices import BALANCED, STANDARD, WORST, Choice
from equipoise.report.folds import MANY_ROWS
from equipoise.report.judge import CONFIDENCE, DECIDING_ROWS, Court, Verdict, regrets_of
from equipoise.report.linear import AlphaPath
from equipoise.report.recommend import Recommendation, price, reasons
from equipoise.report.results import Results
from equipoise.report.words import called, listed, number, percent
from equipoise.sets import LabelCVaR
from equipoise.theory.bounds import conditional_bound
from equipoise.weights.by_class import ByClass

# A width of a bound that is worth having.
_NARROW = 0.05


def summarize(results: Results) -> dict[str, Any]:
    """Everything worth showing, with nothing but dicts, lists, texts, numbers and None."""
    return {
        "title": results.title,
        "data": data_part(results),
        "design": design_part(results),
        "choices": [choice_part(results, place) for place in range(len(results.choices))],
        "costs": costs_part(results),
        "path": None if results.path is None else path_part(results.court, results.path),
        "recommendation": recommendation_part(results),
        "trust": trust_part(results),
        "code": results.code,
    }


def data_part(results: Results) -> dict[str, Any]:
    """The table and its classes."""
    table, court = results.court.table, results.court
    columns = table.columns
    return {
        "rows": len(table.y),
        "columns": len(columns),
        "numeric": sum(column.is_numeric for column in columns),
        "categorical": sum(column.is_categorical for column in columns),
        "missing": int(sum(column.n_missing for column in columns)),
        "repeated": results.court.design.n_repeated,
        "weighted": table.weights is not None,
        "classes": [
            {
                "name": str(name),
                "rows": int(table.counts[place]),
                "share": float(table.prior[place]),
                "tested": int(court.tested[place]),
                "estimable": bool(court.tested[place] > 0),
                "deciding": bool(court.deciding[place]),
                "note": _class_note(court, place),
            }
            for place, name in enumerate(table.classes.tolist())
        ],
        "warnings": list(table.warnings),
    }


def _class_note(court: Court, place: int) -> str:
    if not court.tested[place]:
        return "not estimable: too few different rows, used for training only"
    if not court.deciding[place]:
        return f"fewer than {DECIDING_ROWS} rows: shown, but does not decide"
    return ""


def design_part(results: Results) -> dict[str, Any]:
    """How the choices were judged."""
    design = results.court.design
    return {
        "kind": "folds" if design.n_folds > 1 else "hold-out",
        "folds": design.n_folds,
        "judged": len(results.court.rows),
        "confidence": CONFIDENCE,
        "method": results.verdicts[0].intervals.method,
        "approximate": results.verdicts[0].intervals.approximate,
        "seed": results.seed,
        "seconds": round(results.seconds, 1),
        "sampled": dict(results.sampled),
    }


def choice_part(results: Results, place: int) -> dict[str, Any]:
    """One choice: its class risks and its summaries."""
    choice, verdict, court = results.choices[place], results.verdicts[place], results.court
    names = [str(name) for name in court.table.classes.tolist()]
    found, taken = verdict.intervals, iter(verdict.taken_for)
    classes = []
    for label in np.flatnonzero(court.tested > 0).tolist():
        at, other = court.table.classes.tolist()[label], next(taken)
        classes.append(
            {
                "class": label,
                "risk": found.risks[at],
                "lower": found.lower[at],
                "upper": found.upper[at],
                "taken_for": None if other is None else other[0],
                "taken_share": None if other is None else other[1],
            }
        )
    return {
        "label": choice.label,
        "model": choice.model,
        "weighting": choice.weighting,
        "uncertainty": repr(choice.uncertainty),
        "about": about(choice),
        "classes": classes,
        "standard": verdict.risks.standard(),
        "balanced": verdict.risks.balanced(),
        "worst": verdict.risks.worst(),
        "worst_lower": verdict.worst.lower,
        "worst_upper": verdict.worst.upper,
        "worst_class": names.index(str(verdict.risks.worst_class())),
        "largest_regret": float(results.recommendation.largest_regrets[place]),
    }


def about(choice: Choice) -> str:
    """What a weighting means, in a few words."""
    if choice.weighting == STANDARD:
        return "every row counts the same"
    if choice.weighting == BALANCED:
        return "every class counts the same"
    if choice.weighting == WORST:
        return "any weights: the class with the largest risk decides"
    if isinstance(choice.uncertainty, LabelCVaR):
        times = f"{1 / choice.uncertainty.alpha:.3g}"
        return f"the worst weighting in which no row counts more than {times} times"
    return f"the worst weighting of {choice.uncertainty!r}"


def costs_part(results: Results) -> dict[str, Any]:
    """Every choice under every set of weightings."""
    regrets = regrets_of(results.costs)
    about_world = {choice.weighting: about(choice) for choice in results.choices}
    return {
        "worlds": [{"name": name, "about": about_world[name]} for name in results.worlds],
        "risk": results.costs.tolist(),
        "regret": regrets.tolist(),
        "largest_regret": regrets.max(axis=1).tolist(),
    }


def path_part(court: Court, path: AlphaPath) -> dict[str, Any]:
    """Risks along alpha."""
    verdicts = [court.verdict(predicted) for predicted in path.predicted]
    judged = np.flatnonzero(court.tested > 0)
    names = court.table.classes.tolist()
    worst = [names.index(verdict.risks.worst_class()) for verdict in verdicts]
    return {
        "alpha": path.alphas.tolist(),
        "classes": judged.tolist(),
        "risk": _columns(verdicts, "risks"),
        "lower": _columns(verdicts, "lower"),
        "upper": _columns(verdicts, "upper"),
        "weight": path.weights[:, judged].tolist(),
        "standard": [verdict.risks.standard() for verdict in verdicts],
        "balanced": [verdict.risks.balanced() for verdict in verdicts],
        "worst": [verdict.risks.worst() for verdict in verdicts],
        "worst_class": worst,
        "caps_bind": path.caps_bind.tolist(),
        "rows": path.n_rows,
    }


def _columns(verdicts: list[Verdict], name: str) -> list[list[float]]:
    return [np.asarray(getattr(verdict.intervals, name)).tolist() for verdict in verdicts]


def recommendation_part(results: Results) -> dict[str, Any]:
    """The choice, its reason and its price."""
    found, choices = results.recommendation, results.choices
    return {
        "choice": found.place,
        "plain": found.plain,
        "reasons": reasons(found, choices, results.verdicts, results.costs, results.worlds),
        "price": price(found, choices, results.verdicts),
        "stability": found.stability,
        "confidence": _stability(found, choices),
    }


def _stability(found: Recommendation, choices: tuple[Choice, ...]) -> str:
    sure = f"{found.stability:.0%}"
    said = f"Had other rows of the same kind been judged, {sure} of the time the answer would be"
    if not found.rivals:
        return f"{said} the same."
    others = listed([called(choices[rival].label) for rival in found.rivals], 2)
    return f"{said} the same, else {others}. {_strength(found.stability)}"


def _strength(stability: float) -> str:
    if stability >= 0.9:
        return "This is a firm answer."
    return "This is a likely answer, not a firm one." if stability >= 0.6 else "It is a close call."


def trust_part(results: Results) -> list[dict[str, str]]:
    """How far the numbers can be trusted: short texts with a heading each."""
    parts = [("How the rows were judged", _how(results))]
    parts += _about_classes(results)
    if results.court.table.weights is None:
        parts.append(("A bound for every weighting", _bound(results)))
    parts.append(("The recommendation", _stability(results.recommendation, results.choices)))
    if results.gaps:
        gap = max(results.gaps)
        text = (
            f"The linear fits are within {gap:.0e} of their optimum, relative to the objective, "
            "by a proven bound."
            if np.isfinite(gap)
            else "Some linear fits have no proven bound."
        )
        parts.append(("The optimisation", text))
    parts += [("A warning of the fits", note) for note in results.notes]
    parts += [("About the table", text) for text in results.court.table.warnings]
    return [{"heading": heading, "text": text} for heading, text in parts]


def _how(results: Results) -> str:
    court, design = results.court, results.court.design
    rows = number(len(court.rows))
    if design.n_folds > 1:
        said = (
            f"Each of {rows} rows was judged by fits on the other {design.n_folds - 1} of "
            f"{design.n_folds} parts of the table, that had not seen it."
        )
    else:
        said = (
            f"The table has more than {number(MANY_ROWS)} rows, so one part of {rows} rows was "
            "held out and judged by fits on the others."
        )
    for what, size in results.sampled:
        said += f" For {what} at most {number(size)} training rows were used, a stratified sample."
    if design.n_repeated:
        said += (
            f" {number(design.n_repeated)} rows repeat the features of an earlier one; they were "
            "kept on the same side of every split."
        )
    return said


def _about_classes(results: Results) -> list[tuple[str, str]]:
    court = results.court
    names = court.table.classes.tolist()
    verdict = results.verdicts[results.recommendation.place]
    parts = [
        (
            "The intervals",
            f"Each covers the true risk of its class with {CONFIDENCE:.0%} confidence "
            f"by itself; {verdict.intervals.method}, for fits of this size on rows like these. "
            f"{_widest(court, verdict)}",
        )
    ]
    lost = [called(names[label]) for label in np.flatnonzero(court.tested == 0)]
    if lost:
        parts.append(
            (
                "Classes that cannot be judged",
                f"{listed(lost)}: too few different rows to be in every training part and to be "
                "judged. They were used for training, and nothing is known about their risk.",
            )
        )
    faint = court.table.classes[(court.tested > 0) & ~court.deciding].tolist()
    if faint:
        parts.append(
            (
                "Classes that do not decide",
                f"{listed([called(name) for name in faint])}: fewer than {DECIDING_ROWS} rows. "
                "Their risks are shown with their wide intervals, but they are left out of the "
                "weighted risks and of the recommendation: one row more or less would decide.",
            )
        )
    return parts


def _bound(results: Results) -> str:
    """What holds for the recommended choice whatever the weights are (Appendix D of the paper)."""
    court, verdict = results.court, results.verdicts[results.recommendation.place]
    counts = ByClass(court.tested[court.deciding], verdict.risks.classes)
    # One classifier, not all of a class of them: no complexity to pay for.
    bound = conditional_bound(
        counts,
        complexity=0.0,
        uncertainty="worst-class",
        risks=verdict.risks,
        confidence=CONFIDENCE,
        observed=False,
    )
    said = (
        f"With {CONFIDENCE:.0%} confidence no weighting of the classes at all gives the "
        f"recommended choice a risk above {percent(min(bound.value, 1.0))}, taking the fits of "
        "all folds as one."
    )
    if bound.vacuous:
        said += " That says nothing: no risk exceeds 100%."
    needed = bound.more_rows(_NARROW)
    if needed.rows > 0 and np.isfinite(needed.rows):
        said += (
            f" What makes it wide is the class {called(needed.name)}: with {number(needed.rows)} "
            f"more rows of it the bound would be {percent(_NARROW)} above the risks observed."
        )
    return said


def _widest(court: Court, verdict: Verdict) -> str:
    found = verdict.intervals
    width = {name: found.upper[name] - found.lower[name] for name in found}
    name = max(width, key=width.__getitem__)
    tested = int(court.tested[court.table.classes.tolist().index(name)])
    risk = min(max(found.risks[name], 0.05), 0.95)
    needed = 1.96**2 * risk * (1 - risk) / 0.05**2
    said = (
        f"The widest of the recommended choice is that of {called(name)}: "
        f"{percent(found.lower[name])} to {percent(found.upper[name])}, from {number(tested)} rows."
    )
    if needed > tested:
        said += f" To know it to within 5 points, about {number(needed)} rows would be needed."
    return said
