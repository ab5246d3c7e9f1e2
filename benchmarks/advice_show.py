"""How good the advised models are on the rows left out, and whether what we promise holds."""

import base64
import zlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from real_data_show import say

DEFAULT = "default"
GOALS = ("worst_class", "balanced_accuracy", "f1_macro", DEFAULT)
ADVISED, PLAIN = "advised", "plain"
# A class counts if it has so many rows left out; one that a page saw so many rows of must not fail.
FEWEST, MANY = 10, 30
DRAWS = 200
# Within so many standard errors or so much of the best; and more than both of these below it.
CLOSE = 2.0, 0.01
WORSE = 3.0, 0.03
# Without a goal: points of overall error that advice may cost, whatever it gains.
FREE = 0.05
NEEDED, LEVEL = 0.9, 0.95


def packed(decisions: np.ndarray) -> str:
    """Numbers of classes, one a row, as a short text."""
    return base64.b64encode(zlib.compress(decisions.astype(np.uint8).tobytes(), 9)).decode()


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).astype(int)


@dataclass(frozen=True)
class Judgement:
    """Values of all models for one goal on one table, larger is better, with bootstrap draws.

    ``draws`` has a row for each draw and a column for each model; ``constant`` is the value of the
    best decision for one class always.
    """

    models: list[str]
    values: np.ndarray
    draws: np.ndarray
    constant: float

    def against(self, kept: Any = lambda name: True) -> tuple[str, float, float, float]:
        """The best other model of those kept: name, value, the advised minus it, standard error."""
        own = self.models.index(ADVISED)
        there = [k for k, name in enumerate(self.models) if k != own and kept(name)]
        best = max(there, key=lambda k: self.values[k])
        error = float((self.draws[:, own] - self.draws[:, best]).std(ddof=1))
        gap = float(self.values[own] - self.values[best])
        return self.models[best], float(self.values[best]), gap, error

    @property
    def own(self) -> float:
        return float(self.values[self.models.index(ADVISED)])


def judge(
    goal: str, truth: np.ndarray, decided: dict[str, np.ndarray], n_classes: int
) -> Judgement:
    """All models on the rows of classes that count; truth and decisions are places of classes."""
    counted = np.flatnonzero(np.bincount(truth, minlength=n_classes) >= FEWEST)
    kept = np.isin(truth, counted)
    truth, decided = truth[kept], {name: each[kept] for name, each in decided.items()}
    # Constants come last; they are no models that regrets are measured against.
    every = np.array([*decided.values(), *(np.full(len(truth), k) for k in counted)])
    rows_of = [np.flatnonzero(truth == k) for k in counted]
    rng, draws = np.random.default_rng(0), []
    for draw in range(DRAWS + 1):
        rows = [own if draw == 0 else rng.choice(own, len(own)) for own in rows_of]
        at = np.concatenate(rows)
        keys = truth[at] * n_classes + every[:, at]
        tables = np.array([np.bincount(key, minlength=n_classes**2) for key in keys])
        tables = tables.reshape(len(every), n_classes, n_classes)[:, counted]
        draws.append(values(goal, tables, counted))
    n_models = len(decided)
    found, constants = draws[0][:n_models], draws[0][n_models:]
    return Judgement(list(decided), found, np.array(draws[1:])[:, :n_models], constants.max())


def values(goal: str, tables: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The value of each table of decisions: of models, then of constants."""
    totals = tables.sum(axis=2)
    hits = np.take_along_axis(tables, counted[None, :, None], axis=2)[:, :, 0]
    recalls = hits / totals
    if goal == "worst_class":
        return recalls.min(axis=1)
    if goal == "balanced_accuracy":
        return recalls.mean(axis=1)
    decided = tables.sum(axis=1)[:, counted]
    return (2 * hits / (totals + decided)).mean(axis=1)


def interval(errors: int, n_rows: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of 95% for a share of errors."""
    low = beta.ppf(0.025, errors, n_rows - errors + 1) if errors else 0.0
    high = beta.ppf(0.975, errors + 1, n_rows - errors) if errors < n_rows else 1.0
    return float(low), float(high)


@dataclass(frozen=True)
class Place:
    """A table in a variant: ordinary classifiers and the truth, candidates and pages by goal."""

    name: str
    others: dict[str, Any]
    candidates: dict[str, dict[str, Any]]
    pages: dict[str, dict[str, Any]]

    @property
    def truth(self) -> np.ndarray:
        return unpacked(self.others["truth"])

    @property
    def judged(self) -> bool:
        return bool(np.sum(np.bincount(self.truth) >= FEWEST) >= 2)

    def judge(self, goal: str) -> Judgement:
        rows = (self.pages[goal], self.others, self.candidates.get(goal, {}))
        decided = {
            name: unpacked(text)
            for row in rows
            for name, text in row.get("decided", {}).items()
            if name != PLAIN
        }
        return judge(goal, self.truth, decided, len(self.others["names"]))

    def errors(self, name: str) -> tuple[float, float]:
        """Overall and mean class error of a model of the page without a goal."""
        truth, wrong = self.truth, unpacked(self.pages[DEFAULT]["decided"][name]) != self.truth
        counts = np.bincount(truth)
        counted = np.flatnonzero(counts >= FEWEST)
        by_class = np.bincount(truth, wrong, len(counts))[counted] / counts[counted]
        return float(wrong.mean()), float(by_class.mean())


def gather(rows: list[dict[str, Any]]) -> list[Place]:
    found: Any = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row["table"], row["variant"]][row["what"]][row["goal"]] = row
    return [
        Place(", ".join(key), at["others"][""], dict(at["candidates"]), dict(at["page"]))
        for key, at in found.items()
        if "others" in at and at["page"]
    ]


def show_goal(goal: str, places: list[Place]) -> None:
    """Every table, and then what was promised of the advised model's value."""
    print(f"\n{goal}: advised, the best other, difference, standard error, seconds of the page")
    close, worse, close_ordinary, n = 0, [], 0, 0
    for place in places:
        page = place.pages.get(goal)
        if page is None or (not place.judged and "error" not in page):
            continue
        n += 1
        if "error" in page:
            print(f"  {place.name:36} NO MODEL: {page['error'].strip().splitlines()[-1]}")
            continue
        found = place.judge(goal)
        name, value, gap, error = found.against()
        of_ordinary = found.against(lambda name: not name.startswith("ours"))
        is_close = gap >= -max(CLOSE[0] * error, CLOSE[1])
        close += is_close
        close_ordinary += of_ordinary[2] >= -max(CLOSE[0] * of_ordinary[3], CLOSE[1])
        line = (
            f"{place.name:36} {page['recommended']} {found.own:.3f}, {name} {value:.3f}: "
            f"{gap:+.3f} +- {error:.3f}"
        )
        print(f"{' ' if is_close else '-'} {line}  {page['page_seconds']:.0f} s")
        if gap < -WORSE[1] and gap < -WORSE[0] * error:
            worse.append(line)
    if n:
        say(close >= NEEDED * n, f"{goal}: close to the best on {close} of {n} tables (0.9)")
        print(f"      and to the best ordinary classifier on {close_ordinary}")
        say(not worse, f"{goal}: worse by three points and three standard errors: {len(worse)}")
        for line in worse:
            print(f"      {line}")


def show_default(places: list[Place]) -> None:
    """Without a goal: overall and mean class errors of the plain and of the advised model."""
    print("\nno goal: advised; overall error plain, advised; mean class error plain, advised")
    dear, tuned, pages = [], 0, 0
    for place in places:
        page = place.pages.get(DEFAULT)
        if page is None or not place.judged or "error" in page:
            continue
        (plain, mean), (own, own_mean) = place.errors(PLAIN), place.errors(ADVISED)
        pages, tuned = pages + 1, tuned + ("plain" not in page["recommended"])
        line = f"{place.name:36} {page['recommended']:28} {plain:.3f} {own:.3f}; "
        line += f"{mean:.3f} {own_mean:.3f}"
        is_dear = own - plain > FREE and mean - own_mean < own - plain
        dear += [line] if is_dear else []
        print(f"{'-' if is_dear else ' '} {line}  {page['page_seconds']:.0f} s")
    print(f"      tuned decisions were advised on {tuned} of {pages} pages")
    say(not dear, f"no goal: more than five points dearer for less than that: {len(dear)}")


def failures(place: Place, goal: str) -> list[str]:
    """Why the advised model has failed, if it has."""
    page, names, truth = place.pages[goal], place.others["names"], place.truth
    if "error" in page:
        return [f"no model: {page['error'].strip().splitlines()[-1]}"]
    decided, found = unpacked(page["decided"][ADVISED]), []
    if page.get("no_answer"):
        return found
    for k, name in enumerate(names):
        rows = truth == k
        many = place.others["learned"][k] >= MANY and rows.sum() >= FEWEST
        if many and not np.any(decided[rows] == k):
            found.append(f"class {name}: none of {rows.sum()} rows right")
    if place.judged and goal != DEFAULT:
        judged = place.judge(goal)
        if judged.own < judged.constant:
            found.append(f"{judged.own:.3f}, and {judged.constant:.3f} with one class always")
    return found


def show_failures(places: list[Place]) -> None:
    found = [
        f"{place.name}, {goal}, {place.pages[goal].get('recommended')}: {'; '.join(why)}"
        for place in places
        for goal in place.pages
        if (why := failures(place, goal))
    ]
    say(not found, f"pages that call a failed model an answer: {len(found)}")
    for line in found:
        print(f"      {line}")


def show_coverage(places: list[Place]) -> None:
    overlap, inside, few = [], [], []
    for place in places:
        truth, names = place.truth, place.others["names"]
        for page in place.pages.values():
            for told in page.get("classes", ()):
                rows = truth == names.index(told["name"])
                if told["lower"] is None or not rows.any():
                    continue
                errors = int(np.sum(unpacked(page["decided"][ADVISED])[rows] != truth[rows]))
                low, high = interval(errors, int(rows.sum()))
                meets = low <= told["upper"] and told["lower"] <= high
                (overlap if rows.sum() >= FEWEST else few).append(meets)
                if rows.sum() >= FEWEST:
                    inside.append(told["lower"] <= errors / rows.sum() <= told["upper"])
    if overlap:
        words = f"{np.mean(overlap):.3f} of {len(overlap)}"
        say(bool(np.mean(overlap) >= LEVEL), f"intervals that meet those of rows left out: {words}")
        print(f"      risks of rows left out inside of the page's intervals: {np.mean(inside):.3f}")
    if few:
        print(f"      of classes of fewer than {FEWEST} rows left out: {np.mean(few):.3f} meet")


def show(rows: list[dict[str, Any]]) -> None:
    places = gather(rows)
    for goal in GOALS:
        if goal != DEFAULT:
            show_goal(goal, places)
    show_default(places)
    aside = [place.name for place in places if not place.judged]
    print("\nNot judged, as fewer than two classes have ten rows left out:", aside or "none")
    failed = [
        f"{p.name}, {goal}" for p in places for goal, of in p.candidates.items() if "error" in of
    ]
    print("Candidates that could not be made:", failed or "none")
    pages = sum(len(place.pages) for place in places)
    print(f"What was promised of all {pages} pages")
    show_coverage(places)
    show_failures(places)
