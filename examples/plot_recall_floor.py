"""
How do I guarantee a recall?
============================

Ask for a floor with a confidence: ``RecallFloors({"ill": 0.9}, confidence=0.9)``. Of 200 tables, a
threshold set to reach the floor on its own rows misses it for new patients in 52% of them; with the
confidence 6% miss it (at most 10% are allowed), and false alarms rise from 13% to 17%.

A threshold that is tuned to a recall of exactly 90% on the rows at hand is a coin toss on new ones.
"""

# %%
# Two hundred tables from a known population
# ------------------------------------------
# In the model of :func:`~equipoise.datasets.make_power_imbalance` the probabilities are known, and
# so is the recall that any threshold has in the population. One in ten rows of a table is ill.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from equipoise import RecallFloors, TunedDecisionClassifier, class_risks, tune_weights
from equipoise.datasets import PowerImbalance, load_thyroid
from equipoise.exceptions import CostlyDecisionsWarning

plt.style.use("equipoise.display.quiet")

# Where the overall error rises by more than ten points ``fit`` warns; here that is known.
warnings.simplefilter("ignore", CostlyDecisionsWarning)
population = PowerImbalance(p=0.9)
goals = {
    "on the rows at hand": RecallFloors({"ill": 0.9}),
    "with confidence 90%": RecallFloors({"ill": 0.9}, confidence=0.9),
}
recalls, alarms = {name: [] for name in goals}, {name: [] for name in goals}
for seed in range(200):
    X, y = population.sample(1_000, random_state=seed)
    y = np.where(y == 1, "ill", "healthy")
    for name, goal in goals.items():
        tuned = tune_weights(y, population.predict_proba(X), goal)
        healthy, ill = population.class_risks_at(
            population.bayes_threshold_x({0: tuned.weights["healthy"], 1: tuned.weights["ill"]})
        )
        recalls[name].append(1 - ill)
        alarms[name].append(healthy)

print("a confidence of 90% allows 10% to miss the floor")
for name, values in recalls.items():
    print(
        f"{len(values)} tables, floor {name}: {np.mean(np.array(values) < 0.9):.0%} miss it, "
        f"false alarms {np.mean(alarms[name]):.0%}"
    )

# %%
# Every dot is a table. Tables left of the line miss the floor.

fig, axes = plt.subplots(2, 1, figsize=(6.4, 3.8), sharex=True, sharey=True)
bins = np.linspace(0.80, 1.0, 81)
for ax, (name, values), color in zip(axes, recalls.items(), ["#d1603d", "#1f3b73"], strict=True):
    place = np.digitize(values, bins)
    height = np.array([np.sum(place[:i] == p) for i, p in enumerate(place)])
    missed = np.array(values) < 0.9
    for which, look in ((missed, {"fillstyle": "none"}), (~missed, {})):
        ax.plot(
            bins[place[which]] - 0.00125, height[which] + 1, "o", color=color, markersize=3, **look
        )
    ax.axvline(0.9, color="#222222", linewidth=1)
    ax.set_title(f"floor kept {name}: {missed.mean():.0%} below", fontsize="small")
    ax.set(yticks=[], xlim=(0.82, 0.985), ylim=(0, None))
    ax.spines["left"].set_visible(False)
axes[1].set_xlabel("recall of the ill in the population")
axes[1].xaxis.set_major_formatter("{x:.0%}")
fig.suptitle("A floor of 90%, tuned on 200 tables of 1,000 rows", x=0.01, ha="left")
plt.show()

# %%
# With a model of your own
# ------------------------
# ``TunedDecisionClassifier`` holds out a fifth of the rows to show the floors, and returns the
# model that was trained on the others. Too few rows are an error that names the number needed.
# Balanced class weights promise nothing; their recalls are printed beside.

X_train, y_train = load_thyroid(subset="train", return_X_y=True)
X_test, y_test = load_thyroid(subset="test", return_X_y=True)
forest = RandomForestClassifier(50, min_samples_leaf=2, random_state=0)
goal = RecallFloors({"hypothyroid": 0.85, "compensated": 0.9}, confidence=0.9)
clf = TunedDecisionClassifier(forest, goal).fit(X_train, y_train)
recall = class_risks(y_test, clf.predict(X_test)).recall()
print("recalls of new patients:", {name: f"{value:.0%}" for name, value in recall.items()})
balanced = RandomForestClassifier(
    50, min_samples_leaf=2, class_weight="balanced", random_state=0
).fit(X_train, y_train)
recall = class_risks(y_test, balanced.predict(X_test)).recall()
print("balanced weights:", {name: f"{value:.0%}" for name, value in recall.items()})
try:
    clf.set_params(goal=RecallFloors({"hypothyroid": 0.95}, confidence=0.9)).fit(X_train, y_train)
except ValueError as error:
    print(error)

# %%
# See also :doc:`the guide on floors </guide/recall-floors>`, :class:`equipoise.RecallFloors`,
# :class:`equipoise.TunedDecisionClassifier` and :func:`equipoise.tune_weights`; the promise is due
# to Tong, Feng and Li (2018).
