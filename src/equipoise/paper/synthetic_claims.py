"""What the paper says about Figure 2, claim by claim."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.datasets import PowerImbalance
from equipoise.paper.aggregate import mean_of
from equipoise.paper.sources import Floats
from equipoise.paper.study import Claim, Record, Verdict

_WHERE = "Section 5, Synthetic"
_ROBUST = ("LCVaR(0.05)", "LHCVaR(c=0.05, κ=1)")


@dataclass(frozen=True)
class Curves:
    """Mean risks over seeds, by method: one value per p, p growing."""

    p: Floats
    class_0: Mapping[str, Floats]
    class_1: Mapping[str, Floats]

    def worst(self, label: str) -> Floats:
        """Risk of the worst class: the larger of the two curves."""
        return np.maximum(self.class_0[label], self.class_1[label])

    def between(self, label: str) -> Floats:
        """Distance between the two class risks."""
        return np.abs(self.class_0[label] - self.class_1[label])


def synthetic_claims(by_way: Mapping[str, Sequence[Record]]) -> list[Claim]:
    """Every claim with a verdict for each way of fitting."""
    curves = {way: _curves(records) for way, records in by_way.items() if records}
    found = [
        Claim(where, text, {way: judge(each) for way, each in curves.items()})
        for where, text, judge in _CLAIMS
    ]
    return [*found, _bayes_formula(curves["exact"].p)]


def _curves(records: Sequence[Record]) -> Curves:
    p = sorted({record["p"] for record in records})
    labels = list(dict.fromkeys(record["method"] for record in records))

    def of(field: str) -> dict[str, Floats]:
        return {
            label: np.array([mean_of(records, field, p=each, method=label).mean for each in p])
            for label in labels
        }

    return Curves(np.array(p), of("risk[0]"), of("risk[1]"))


def _lower_worst_risk(curves: Curves) -> Verdict:
    baselines = np.minimum(curves.worst("Standard"), curves.worst("Balanced"))
    margins = np.min([baselines - curves.worst(label) for label in _ROBUST], axis=0)
    least = int(margins.argmin())
    return Verdict(
        bool(np.all(margins > 0)),
        f"below both at {np.sum(margins > 0)} of {len(margins)} p; smallest margin "
        f"{margins[least]:.4f} at p = {curves.p[least]:.2f}",
    )


def _close_class_risks(curves: Curves) -> Verdict:
    robust = np.max([curves.between(label) for label in _ROBUST], axis=0)
    baselines = np.minimum(curves.between("Standard"), curves.between("Balanced"))
    return Verdict(
        bool(np.all(robust < baselines)),
        f"class risks differ by {_range(robust)} (robust), "
        f"{_range(curves.between('Standard'))} (standard), "
        f"{_range(curves.between('Balanced'))} (balanced)",
    )


def _against_balanced(curves: Curves) -> Verdict:
    label = _ROBUST[0]
    gain = curves.class_0["Balanced"] - curves.class_0[label]
    price = curves.class_1[label] - curves.class_1["Balanced"]
    return _gain_and_price(gain, price, curves.class_0["Balanced"])


def _against_standard(curves: Curves) -> Verdict:
    label = _ROBUST[0]
    gain = curves.class_1["Standard"] - curves.class_1[label]
    price = curves.class_0[label] - curves.class_0["Standard"]
    return _gain_and_price(gain, price, curves.class_1["Standard"])


def _gain_and_price(gain: Floats, price: Floats, risk: Floats) -> Verdict:
    """Whether the gain grows and the price falls from the mildest to the strongest imbalance."""
    return Verdict(
        bool(gain[-1] > gain[0] and price[-1] < price[0]),
        f"gain {gain[0]:.4f} to {gain[-1]:.4f} ({gain[0] / risk[0]:.0%} to "
        f"{gain[-1] / risk[-1]:.0%} of the risk), price {price[0]:.4f} to {price[-1]:.4f}",
    )


def _falls_with_imbalance(curves: Curves) -> Verdict:
    risks = [curves.worst(label) for label in _ROBUST]
    return Verdict(
        all(bool(np.all(np.diff(each) < 0)) for each in risks),
        f"{risks[0][0]:.4f} at p = {curves.p[0]:.2f}, {risks[0][-1]:.4f} at {curves.p[-1]:.2f}",
    )


def _loses_little(curves: Curves) -> Verdict:
    """Against each baseline: the fall of its worst class risk exceeds the rise of the other's."""
    label, found = _ROBUST[0], []
    for baseline in ("Standard", "Balanced"):
        worst_is_0 = curves.class_0[baseline] >= curves.class_1[baseline]
        fall_0 = curves.class_0[baseline] - curves.class_0[label]
        fall_1 = curves.class_1[baseline] - curves.class_1[label]
        found.append((np.where(worst_is_0, fall_0, fall_1), -np.where(worst_is_0, fall_1, fall_0)))
    held = all(bool(np.all(gain > price)) for gain, price in found)
    words = [
        f"against {name}: worst class gains {_range(gain)}, the other loses {_range(price)}"
        for name, (gain, price) in zip(("standard", "balanced"), found, strict=True)
    ]
    return Verdict(held, "; ".join(words))


def _wide_cap_wins(curves: Curves) -> Verdict:
    margins = np.minimum(curves.worst("Standard"), curves.worst("Balanced")) - curves.worst(
        "LCVaR(0.1)"
    )
    lost = ", ".join(f"{p:.2f}" for p in curves.p[margins <= 0])
    return Verdict(
        bool(np.all(margins > 0)),
        f"not at p = {lost}" if lost else f"smallest margin {margins.min():.4f}",
    )


def _bayes_formula(p_values: Floats) -> Claim:
    truth = np.array([PowerImbalance(p).bayes_class_risks("standard")[0] for p in p_values])
    printed = 1 - (1 + p_values) * 0.5 ** (1 / p_values)
    verdict = Verdict(
        bool(np.allclose(truth, printed)),
        f"at p = {p_values[0]:.2f} the formula gives {printed[0]:.4f}, the truth is {truth[0]:.4f}",
    )
    text = "the Bayes rule has class-0 risk `1 - (1 + p) 2^(-1/p)`"
    return Claim("Section 5, data", text, {"exact": verdict})


def _range(values: Floats) -> str:
    return f"{values.min():.3f} to {values.max():.3f}"


_CLAIMS: list[tuple[str, str, Callable[[Curves], Verdict]]] = [
    (
        _WHERE,
        "LCVaR and LHCVaR have a lower worst-class risk than the standard and the balanced "
        "classifier at every p",
        _lower_worst_risk,
    ),
    (
        _WHERE,
        "their two class risks are close to each other, those of the baselines far apart",
        _close_class_risks,
    ),
    (
        _WHERE,
        "the stronger the imbalance, the more they gain on class 0 over the balanced classifier, "
        "at an ever smaller price on class 1",
        _against_balanced,
    ),
    (
        _WHERE,
        "the same against the standard classifier, with the classes exchanged",
        _against_standard,
    ),
    (_WHERE, "their worst-class risk falls as the imbalance grows", _falls_with_imbalance),
    (
        _WHERE,
        "they improve the highest class risk much and lose little on the other class",
        _loses_little,
    ),
    (
        "beyond the paper",
        "LCVaR(0.1), too, has a lower worst-class risk than both baselines at every p",
        _wide_cap_wins,
    ),
]
