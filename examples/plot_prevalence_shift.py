"""
What if class frequencies will shift within a range that I can state?
=====================================================================

State the range as a set, ``PriorBox``, and tune for the worst frequency in it. With
fraud between 0.1% and 10% of the payments the errors are at most 4.3% for a plain logistic
regression, 6.8% with balanced weights, and 2.5% with decisions tuned for the range.

Balanced weights assume that half of all payments are fraud. Nobody expects that, and it costs false
alarms every day.
"""

# %%
# Payments, one in a hundred of them fraud
# ----------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from equipoise import PriorBox, RobustLogisticRegression, TunedDecisionClassifier, class_risks

plt.style.use("equipoise.display.quiet")

X, y = make_classification(
    40_000, n_features=12, n_informative=6, weights=[0.99], flip_y=0, random_state=0
)
y = np.where(y == 1, "fraud", "good")
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)

# %%
# The range is a set of weightings
# --------------------------------
# A frequency at test time is a weighting of the class risks, as long as the payments of a class
# look the same: 'between 0.1% and 10%' is a box. It is a goal for a robust fit, or for decisions
# tuned after plain training.

box = PriorBox(lower={"fraud": 0.001}, upper={"fraud": 0.10})
models = {
    "plain": LogisticRegression(),
    "balanced weights": LogisticRegression(class_weight="balanced"),
    "robust fit": RobustLogisticRegression(box),
    "tuned for the range": TunedDecisionClassifier(LogisticRegression(), box),
}
risks_of = {
    name: class_risks(y_test, model.fit(X_train, y_train).predict(X_test))
    for name, model in models.items()
}
print("fraud between 0.1% and 10% of the payments")
for name, risks in risks_of.items():
    recall = risks.recall()
    print(
        f"{name}: at most {risks.robust(box):.1%} errors in the range, "
        f"{recall['fraud']:.0%} of frauds found, {1 - recall['good']:.1%} false alarms"
    )

# %%
# Overall error at every frequency
# --------------------------------
# The overall error at any frequency is a mixture of the two class risks. The grey line is the best
# that this model could do if the frequency of the day were known; the distance from it is the cost
# of not knowing.

shares = np.geomspace(0.0005, 0.3, 60)
curves = {
    name: [risks.with_prior({"fraud": q, "good": 1 - q}).standard() for q in shares]
    for name, risks in risks_of.items()
}
proba = models["plain"].predict_proba(X_test)[:, 0]
odds, truth = proba / (1 - proba) * 99, y_test == "fraud"
known = []
for q in shares:
    predicted = odds * q / (1 - q) > 1
    known.append(q * np.mean(~predicted[truth]) + (1 - q) * np.mean(predicted[~truth]))

fig, ax = plt.subplots(figsize=(6.4, 3.9))
ax.axvspan(0.001, 0.10, color="#1f3b73", alpha=0.08, linewidth=0)
ax.plot(shares, known, "-", color="#9a9a9a", linewidth=3, label="frequency known")
styles = ["--", "-.", ":", "-"]
for (name, curve), dash in zip(curves.items(), styles, strict=True):
    ax.plot(shares, curve, dash, label=name, linewidth=1.8)
ax.set(xscale="log", ylim=(0, 0.10), xlabel="share of fraud", ylabel="overall error")
ax.set_xticks([0.001, 0.01, 0.1], ["0.1%", "1%", "10%"])
ax.yaxis.set_major_formatter("{x:.0%}")
ax.text(0.01, 0.0975, "the stated range", ha="center", va="top", fontsize="small")
ax.grid(axis="y")
fig.legend(loc="outside right center")
fig.suptitle("Tuned for one frequency, or for a range", x=0.01, ha="left")
plt.show()

# %%
# Inside the range the plain model loses where fraud is frequent, and the balanced one everywhere.
# The two for the range have their largest error at its upper end, their worst case, at the cost of
# false alarms on quiet days. The robust fit minimises a cross-entropy; tuned decisions minimise
# errors, which the figure shows.
#
# See also :doc:`the guide on shifting frequencies </guide/shifting-frequencies>`,
# :class:`equipoise.PriorBox`, :class:`equipoise.PriorBall` for 'about as now', and
# :func:`equipoise.population_proba` for probabilities at any frequency.
