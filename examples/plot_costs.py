"""
My errors have different costs: how do I decide?
================================================

Write the costs down as a table, ``CostMatrix``, and predict the class of least expected cost.
Per 1,000 new patients the errors cost 429 for the plain model, 76 with balanced weights, 106 when
the table of costs decides after plain training and 74 after balanced training, with probabilities
put back on the scale of the population; weights *and* costs, counted twice, come to 331.

If the probabilities were right, the least expected cost would be optimal. Those of a linear model
are not quite, and training weights choose where they are closer.
"""

# %%
# A table of costs
# ----------------
# To overlook a hypothyroid patient is the worst; to call in a healthy one costs a test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import CostMatrix, RobustClassifier, TunedDecisionClassifier
from equipoise.datasets import load_thyroid

plt.style.use("equipoise.display.quiet")

costs = {  # by the true class, then by the predicted one
    "compensated": {"hypothyroid": 2, "normal": 10},
    "hypothyroid": {"compensated": 5, "normal": 50},
    "normal": {"compensated": 1, "hypothyroid": 3},
}
X_train, y_train = load_thyroid(subset="train", return_X_y=True)
X_test, y_test = load_thyroid(subset="test", return_X_y=True)


def logistic(**settings):
    """A logistic regression on standardised features."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, **settings))


models = {
    "plain": logistic(),
    "balanced weights": logistic(class_weight="balanced"),
    "table of costs": TunedDecisionClassifier(logistic(), CostMatrix(costs)),
    "costs, balanced training": RobustClassifier(
        logistic(), CostMatrix(costs), training="balanced"
    ),
    "weights and costs": TunedDecisionClassifier(
        logistic(class_weight="balanced"), CostMatrix(costs)
    ),
}
names = sorted(costs)
table = np.array([[costs[true].get(other, 0) for other in names] for true in names])
paid = {}
for name, model in models.items():
    predicted = model.fit(X_train, y_train).predict(X_test)
    paid[name] = 1000 * table * confusion_matrix(y_test, predicted) / len(y_test)
    print(f"{name}: costs of {paid[name].sum():.0f} per 1,000 patients")

# %%
# Where the costs arise
# ---------------------
# Each bar is the cost per 1,000 patients, by error. The plain model misses patients with a
# compensated disease; the rules that use the costs call in some healthy ones instead.

kinds = {
    f"{true}, taken for {other}": (names.index(true), names.index(other))
    for true in names
    for other in costs[true]
}
largest = {kind: max(each[place] for each in paid.values()) for kind, place in kinds.items()}
kinds = sorted((kind for kind in kinds.items() if largest[kind[0]]), key=lambda k: -largest[k[0]])

fig, ax = plt.subplots(figsize=(7.2, 3.7))
start = np.zeros(len(models))
for kind, place in kinds:
    widths = np.array([paid[name][place] for name in models])
    ax.barh(list(models), widths, left=start, edgecolor="white", label=kind)
    start += widths
for place, total in enumerate(start):
    ax.text(total + 5, place, f"{total:.0f}", va="center", fontsize="small")
ax.invert_yaxis()
ax.set(xlabel="cost per 1,000 patients", xlim=(0, 1.1 * start.max()))
fig.legend(loc="outside lower center", ncols=2)
fig.suptitle("The same costs, five rules", x=0.01, ha="left")
plt.show()

# %%
# The trap is the last bar. Balanced weights already make a rare class count more; costs on top of
# its probabilities make it count twice. :func:`~equipoise.rescale_proba` puts such probabilities
# back first; ``RobustClassifier`` does so too: its ``predict_proba`` is on the scale of the
# population, for any training weights.

expected = models["costs, balanced training"].predict_proba(X_test).mean(axis=0)
for name, share, mean in zip(
    names, np.mean(y_test[:, None] == names, axis=0), expected, strict=True
):
    print(f"{name}: {share:.1%} of the patients, {mean:.1%} expected")

# %%
# See also :doc:`the guide on costs </guide/costs>`, :class:`equipoise.CostMatrix`,
# :class:`equipoise.RobustClassifier`, and :class:`equipoise.WeightHull` for costs that are known
# only up to a few alternatives.
