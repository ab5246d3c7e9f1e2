"""Tables of the study on real data, and whether what we promise holds."""

from collections import defaultdict
from typing import Any

import numpy as np
from scipy.stats import t as student

from real_data_learners import LEARNERS
from real_data_tables import OURS

MEASURES = ("worst_class", "balanced_accuracy", "f1_macro")
NAMES = dict(zip(MEASURES, ("Worst-class recall", "Balanced accuracy", "Macro F1"), strict=True))
SHORT = {"worst_class": "worst", "balanced_accuracy": "balanced", "f1_macro": "macro F1"}
# A class has a hundred rows in a table if half of it has fifty.
ENOUGH_ROWS = 50

# By data set, learner and remedy: an array of splits by measures; and seconds of each split.
Values = dict[str, dict[str, dict[str, np.ndarray]]]


def measures(table: Any) -> list[float]:
    """Recall of the worst class, balanced accuracy and macro F1 of a table of decisions."""
    counts = np.asarray(table, dtype=float)
    hits, totals, decided = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    recalls = hits / totals
    f1 = 2 * hits / np.maximum(totals + decided, 1)
    return [float(recalls.min()), float(recalls.mean()), float(f1.mean())]


def gather(rows: list[dict[str, Any]]) -> tuple[Values, Values, dict[str, int]]:
    values: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    seconds: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    fewest: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row["split"]):
        for remedy, found in row["found"].items():
            place = row["data"], row["learner"], remedy
            values[place[0]][place[1]][place[2]].append(measures(found["table"]))
            seconds[place[0]][place[1]][place[2]].append(found["seconds"])
            here = int(np.sum(found["table"], axis=1).min())
            fewest[row["data"]] = min(here, fewest.get(row["data"], here))
    return values, seconds, fewest


def paired(values: Values, learner: str, ours: str, other: str, measure: str) -> np.ndarray:
    """Ours minus another remedy, by data set where both were run."""
    place = MEASURES.index(measure)
    return np.array(
        [
            np.mean(found[learner][ours], axis=0)[place]
            - np.mean(found[learner][other], axis=0)[place]
            for found in values.values()
            if ours in found.get(learner, {}) and other in found[learner]
        ]
    )


def error(differences: np.ndarray) -> float:
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def show_learner(values: Values, seconds: Values, learner: str) -> None:
    sets = [name for name in values if learner in values[name]]
    print(
        f"\n{learner}, {len(sets)} sets: worst-class recall, balanced accuracy, macro F1, seconds"
    )
    remedies = dict.fromkeys(r for name in sets for r in values[name][learner])
    for remedy in remedies:
        here = [name for name in sets if remedy in values[name][learner]]
        means = np.mean([np.mean(values[n][learner][remedy], axis=0) for n in here], axis=0)
        took = np.mean([np.mean(seconds[n][learner][remedy]) for n in here])
        line = f"  {remedy:28} {means[0]:.3f}  {means[1]:.3f}  {means[2]:.3f} {took:8.2f} s"
        ours = "ours, worst_class"
        gain = paired(values, learner, ours, remedy, "worst_class")
        if len(gain) and not remedy.startswith("ours"):
            half = student.ppf(0.975, len(gain) - 1) * error(gain) if len(gain) > 1 else np.nan
            line += (
                f"   ours, worst class: {gain.mean():+.3f} +- {half:.3f} over {len(here)} sets, "
                f"{np.sum(gain > 0)} won, {np.sum(gain < 0)} lost"
            )
        print(line)


def say(holds: bool, sentence: str) -> None:
    print(f"  {'holds' if holds else 'DOES NOT HOLD':13} {sentence}")


def judge_learner(values: Values, learner: str, goals: list[str]) -> None:
    if MEASURES[0] in goals:
        judge_worst_class(values, learner)
    for goal in goals:
        for other in ("none", "balanced") if goal != MEASURES[0] else ():
            gain = paired(values, learner, f"ours, {goal}", other, goal)
            say(gain.mean() > 0, f"{learner}: {SHORT[goal]} above {other}: {gain.mean():+.4f}")


def judge_worst_class(values: Values, learner: str) -> None:
    ours = "ours, worst_class"
    others = dict.fromkeys(remedy for found in values.values() for remedy in found.get(learner, {}))
    for other in ("none", "balanced"):
        gain = paired(values, learner, ours, other, "worst_class")
        say(gain.mean() > 0, f"{learner}: worst-class recall above {other}: {gain.mean():+.4f}")
    gain = paired(values, learner, ours, "balanced", "worst_class")
    low = gain.mean() - student.ppf(0.975, len(gain) - 1) * error(gain)
    say(low > 0, f"(aim) {learner}: 95% interval against balanced above zero: from {low:+.4f}")
    for other in others:
        if not other.startswith("ours"):
            gain = paired(values, learner, ours, other, "worst_class")
            sentence = f"{gain.mean():+.4f}, standard error {error(gain):.4f}"
            say(gain.mean() >= -error(gain), f"{learner}: not below {other}: {sentence}")
    price = paired(values, learner, ours, "balanced", "balanced_accuracy")
    say(price.mean() > -0.02, f"{learner}: balanced accuracy against balanced: {price.mean():+.4f}")


def judge_sets(values: Values, fewest: dict[str, int]) -> None:
    """On no set with rows enough below the better of none and balanced."""
    for name, found in values.items():
        if fewest[name] < ENOUGH_ROWS:
            continue
        for learner, remedies in found.items():
            ours = np.array(remedies["ours, worst_class"])[:, 0]
            plain = [np.array(remedies[other])[:, 0] for other in ("none", "balanced")]
            gain = ours - max(plain, key=np.mean)
            if gain.mean() < -0.02 and gain.mean() < -2 * error(gain):
                say(False, f"{name}, {learner}: {gain.mean():+.4f} +- {error(gain):.4f}")


def judge_boosting(values: Values) -> None:
    here = [np.mean(values[n]["boosting"]["ours, worst_class"], axis=0) for n in OURS]
    worst, accuracy = np.mean(here, axis=0)[:2]
    say(worst >= 0.68, f"boosting on the six: worst-class recall {worst:.4f} (0.68)")
    say(accuracy >= 0.765, f"boosting on the six: balanced accuracy {accuracy:.4f} (0.765)")
    chess = np.mean(values["kr_vs_k"]["boosting"]["ours, worst_class"], axis=0)[0]
    say(chess >= 0.58, f"boosting on kr_vs_k: worst-class recall {chess:.4f} (0.58, aim 0.65)")


def judge_cost(seconds: Values) -> None:
    """Seconds of ours in those of as many folds and one fit, where a fit takes over a second."""
    ratios = {}
    for name, found in seconds.items():
        for learner, remedies in found.items():
            fit = float(np.mean(remedies["none"]))
            if fit > 1:
                for goal in MEASURES:
                    # Five folds of four fifths of the rows, and one fit of all.
                    took = float(np.mean(remedies[f"ours, {goal}"]))
                    ratios[name, learner, goal] = took / (5 * fit)
    for key, ratio in ratios.items():
        say(ratio <= 5, f"cost of {', '.join(key)}: {ratio:.1f} times five folds and a fit")


def show(rows: list[dict[str, Any]]) -> None:
    """All tables, and what was promised for the goals that were run."""
    values, seconds, fewest = gather(rows)
    learners = [name for name in LEARNERS if any(name in found for found in values.values())]
    goals = [goal for goal in MEASURES if all(f"ours, {goal}" in row["found"] for row in rows)]
    for learner in learners:
        show_learner(values, seconds, learner)
    print(f"\n{NAMES[goals[0]]} by data set: none, balanced, ours")
    for name, found in values.items():
        for learner in learners:
            if learner in found:
                remedies = "none", "balanced", f"ours, {goals[0]}"
                means = [np.mean(found[learner][remedy], axis=0) for remedy in remedies]
                cells = [mean[MEASURES.index(goals[0])] for mean in means]
                print(f"  {name:18} {learner:9}", *(f"{cell:.3f}" for cell in cells))
    print("\nWhat was promised")
    for learner in learners:
        judge_learner(values, learner, goals)
    if len(goals) == len(MEASURES):
        judge_sets(values, fewest)
        judge_cost(seconds)
        if all("boosting" in values.get(name, {}) for name in OURS):
            judge_boosting(values)
