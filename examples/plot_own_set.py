"""
What if none of the sets says what I know?
==========================================

Write your own in a few lines; it works like the built-in sets. Suppose that an error on a red case
weighs 5 to 30 times an error on a green one, and on an orange case 2 to 6 times. With decisions
tuned for all of these at once, the weighted risk is at most 27.1%; for the middle of the ranges
28.1%, for their lower ends 33.1%, for their upper ends 31.2%. Balanced weights reach 27.1% as well,
with an overall error of 25.1% instead of 21.6%.

``WeightBox`` bounds weights that are scaled to a mean of one. People think in ratios.
"""

# %%
# A set of ratios
# ---------------
# A recipe holds the user's parameters and resolves to a set of *masses*, weight times class share,
# that sum to one. All weightings with ratios in ranges are mixtures of those at the ends of the
# ranges: their hull, which the library has. (A set of another shape is a subclass of ``MassSet``
# with its own ``maximize`` and ``project``.)

import warnings
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from equipoise import FixedWeights, TunedDecisionClassifier, class_risks
from equipoise.exceptions import CostlyDecisionsWarning
from equipoise.sets import Hull, Uncertainty

plt.style.use("equipoise.display.quiet")


class WeightRatios(Uncertainty):
    """Weights relative to those of the classes that are not named, each within a range."""

    def __init__(self, ranges):
        self.ranges = ranges

    def resolve(self, prior, classes=None):
        """The hull of the masses at the ends of all ranges."""
        ends = product(*(self.ranges.get(name, (1, 1)) for name in classes))
        masses = np.array(list(ends)) * np.asarray(prior)
        return Hull(masses / masses.sum(axis=1, keepdims=True))


ranges = {"red": (5, 30), "orange": (2, 6)}
known = WeightRatios(ranges)

# %%
# Four in a hundred cases are red
# -------------------------------
# One logistic regression, with decisions tuned for guesses within the ranges, for the usual
# weights, and for the set.

NAMES = np.array(["green", "orange", "red"])


def draw(n_rows, seed):
    """Cases of three classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n_rows, p=[0.85, 0.11, 0.04])
    middles = np.array([[0, 0], [1.3, 0.3], [0.6, 1.5]])
    return middles[y] + 0.75 * rng.normal(size=(n_rows, 2)), NAMES[y]


X_train, y_train = draw(4_000, seed=0)
X_test, y_test = draw(30_000, seed=1)

goals = {
    "lower ends": FixedWeights({"green": 1, "orange": 2, "red": 5}),
    "upper ends": FixedWeights({"green": 1, "orange": 6, "red": 30}),
    "middle": FixedWeights({"green": 1, "orange": 12**0.5, "red": 150**0.5}),
    "balanced": "balanced",
    "worst class": "worst_class",
    "own set": known,
}
warnings.simplefilter("ignore", CostlyDecisionsWarning)  # the cost is printed
print("ranges:", ranges)
risks_of = {}
for name, goal in goals.items():
    clf = TunedDecisionClassifier(LogisticRegression(), goal).fit(X_train, y_train)
    risks_of[name] = class_risks(y_test, clf.predict(X_test))
    largest, overall = risks_of[name].robust(known), risks_of[name].standard()
    print(f"{name}: at most {largest:.1%} over the set, overall error {overall:.1%}")

# %%
# The set, and what is lost over it
# ---------------------------------
# Left: weightings, by the share of the risk of red and orange cases; a ring marks the worst of the
# set for decisions tuned for it. Right: the largest risk over the set, and the overall error.

prior = np.array([np.mean(y_test == name) for name in NAMES])
corners = known.resolve(prior, NAMES).vertices[[0, 1, 3, 2]]
worst = np.asarray(risks_of["own set"].worst_case_masses(known))

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), width_ratios=[1, 1.15])
left.fill(*corners[:, [2, 1]].T, color="#4f9d86", alpha=0.3, label="own set")
for name, marker in (("lower ends", "v"), ("middle", "o"), ("upper ends", "^")):
    mass = prior * list(goals[name].weights.values())
    left.plot(mass[2] / mass.sum(), mass[1] / mass.sum(), marker, color="#1f3b73", label=name)
left.plot(1 / 3, 1 / 3, "s", color="#1f3b73", label="balanced")
left.plot(prior[2], prior[1], "D", color="#1f3b73", label="standard")
left.plot(worst[2], worst[1], "o", color="#d1603d", ms=13, mfc="none", label="worst of the set")
left.set(xlabel="share of red in the risk", xlim=(0, 0.62))
left.set(ylabel="share of orange in the risk", ylim=(0, 0.55))
left.legend(loc="upper right", ncols=2, fontsize="x-small")

order = sorted(risks_of, key=lambda name: risks_of[name].robust(known))
for place, name in enumerate(order):
    largest, overall = risks_of[name].robust(known), risks_of[name].standard()
    right.plot([overall, largest], [place] * 2, "-", color="#c8c8c8")
    right.plot(overall, place, "o", color="#1f3b73", markersize=7, label="overall error")
    right.plot(largest, place, "s", color="#d1603d", markersize=7, label="largest over the set")
right.set_yticks(range(len(order)), order)
right.set(ylim=(len(order) - 0.5, -0.5), xlim=(0.12, 0.35))
right.legend(handles=right.lines[1:3], loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
right.grid(axis="x")
for axis in (left.xaxis, left.yaxis, right.xaxis):
    axis.set_major_formatter("{x:.0%}")
plt.show()

# %%
# Balanced weights and the worst class happen to lie near the set, at a higher overall error.
#
# See also :class:`equipoise.sets.Uncertainty`, :class:`equipoise.sets.MassSet` and
# :class:`equipoise.WeightHull`; ``equipoise.sets.SETS.register(WeightRatios)`` makes the set known
# to the command line and to saved models.
