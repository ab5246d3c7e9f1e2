"""The tables of ``long_tail.py``, and whether what is required of them holds."""

from typing import Any

import numpy as np

WAYS = {"plain": "", "tuned": " + decision weights"}
OURS = ("RobustLoss", "RobustHead")
BELOW = ("cross-entropy", "class-balanced", "group DRO")
POST_HOC = "logit adjustment, post-hoc"
BEST = "best of ours, chosen on validation rows"

# Lowest and mean recall on test rows by name of a row and seed.
Values = dict[str, dict[int, tuple[float, float]]]


def show(lines: list[dict[str, Any]]) -> None:
    verdicts = []
    for imbalance in sorted({line["imbalance"] for line in lines}, reverse=True):
        here = [line for line in lines if line["imbalance"] == imbalance]
        values = values_of(here)
        print(f"\nImbalance {imbalance}: recall on test images in percent, mean and deviation")
        print(f"{'':52}{'lowest':>12} {'mean':>12} {'seconds':>8}  seeds")
        seconds = seconds_of(here)
        for name, by_seed in values.items():
            low, mean = (np.array(part) * 100 for part in zip(*by_seed.values(), strict=True))
            spent = f"{seconds[name]:8.0f}" if name in seconds else f"{'':8}"
            print(
                f"{name:52}{low.mean():6.1f} {low.std():5.1f} {mean.mean():6.1f} "
                f"{mean.std():5.1f} {spent}  {len(low)}"
            )
        print(gains_of(values))
        verdicts += verdicts_of(imbalance, values)
    print()
    for verdict in verdicts:
        print(verdict)


def values_of(lines: list[dict[str, Any]]) -> Values:
    """All rows, and the best of ours, for each seed."""
    values: Values = {}
    candidates: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = {}
    for line in sorted(lines, key=lambda each: (each["seed"], each["method"])):
        for name, ways in line["found"].items():
            for way, suffix in WAYS.items():
                found = lowest_and_mean(ways[way]["test"])
                values.setdefault(name + suffix, {})[line["seed"]] = found
                if name.startswith(OURS):
                    chosen_by = lowest_and_mean(ways[way]["validation"])
                    candidates.setdefault(line["seed"], []).append((chosen_by, found))
    values = {name: values[name] for name in sorted(values, key=lambda n: n.startswith(OURS))}
    best = {seed: max(some, key=lambda each: each[0])[1] for seed, some in candidates.items()}
    return values | ({BEST: best} if best else {})


def lowest_and_mean(recalls: list[float]) -> tuple[float, float]:
    return min(recalls), float(np.mean(recalls))


def seconds_of(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Mean seconds of training, of those losses that were trained."""
    names = {line["method"] for line in lines}
    return {
        name: float(np.mean([line["training_seconds"] for line in lines if line["method"] == name]))
        for name in names
    }


def gains_of(values: Values) -> str:
    """What decision weights do to the recalls of every network, from the least to the most."""
    both = [
        (values[name], values[name + WAYS["tuned"]])
        for name in values
        if name + WAYS["tuned"] in values
    ]
    means = [[np.mean(list(each.values()), axis=0) for each in pair] for pair in both]
    low, mean = np.transpose([100 * (tuned - plain) for plain, tuned in means])
    return (
        f"decision weights change the lowest recall by {low.min():+.1f} to {low.max():+.1f}, "
        f"the mean recall by {mean.min():+.1f} to {mean.max():+.1f} points"
    )


def verdicts_of(imbalance: int, values: Values) -> list[str]:
    if BEST not in values:
        return []
    points = {
        name: 100 * np.mean(list(by_seed.values()), axis=0) for name, by_seed in values.items()
    }
    low, mean = points[BEST]
    wanted = [
        ("required", f"lowest recall above {n}", low, points[n][0], 0.0)
        for n in BELOW
        if n in points
    ]
    if POST_HOC in points and imbalance == 100:
        other = points[POST_HOC]
        wanted += [
            ("aim", f"lowest recall 5 points above {POST_HOC}", low, other[0], 5.0),
            ("aim", f"mean recall at most 1 point below {POST_HOC}", mean, other[1], -1.0),
        ]
    others = {n: p[0] for n, p in points.items() if not n.startswith((*OURS, BEST))}
    if others:
        top = max(others, key=lambda n: others[n])
        wanted.append(
            ("aim", f"lowest recall above every other row ({top})", low, others[top], 0.0)
        )
    return [
        f"imbalance {imbalance}, {kind}: {text}: {mine:.1f} against {theirs:.1f}: "
        f"{'holds' if mine > theirs + by else 'DOES NOT HOLD'}"
        for kind, text, mine, theirs, by in wanted
    ]
