"""
Should I weight the training, move the threshold, or both?
==========================================================

It depends on whether the plain model knows the rare class: for the logistic regression a threshold
alone brings the worst class from 53% errors to 18%, and weights to 17%; for the small tree a
threshold gets stuck at 25%, and training with weights comes to 13%. ``RobustClassifier`` with
``training="balanced"`` does both: 17% and 13%.

A threshold changes the class that a probability becomes. Weights change the model: a tree with few
leaves spends them on the common class unless the rare one counts more.
"""

# %%
# Four ways for two models
# ------------------------
# Four rows in a hundred are of the rare class. The test rows have as many of either.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from equipoise import RobustClassifier, TunedDecisionClassifier, class_risks
from equipoise.exceptions import CostlyDecisionsWarning

plt.style.use("equipoise.display.quiet")


def draw(n_rows, share_of_rare, seed):
    """A tall cloud of common rows, and a flat one of rare rows to the upper right."""
    rng = np.random.default_rng(seed)
    rare = rng.random(n_rows) < share_of_rare
    noise = rng.normal(size=(n_rows, 2))
    X = np.where(rare[:, None], [1.5, 1.0] + noise * [0.9, 0.35], noise * [0.6, 1.6])
    return X, np.where(rare, "rare", "common")


X_train, y_train = draw(3_000, 0.04, seed=0)
X_test, y_test = draw(40_000, 0.5, seed=1)


def ways(plain):
    """A classifier as it is, with another threshold, with other training, and with both."""
    return {
        "plain": plain,
        "threshold": TunedDecisionClassifier(plain, "worst_class"),
        "weights": type(plain)(**plain.get_params() | {"class_weight": "balanced"}),
        "both": RobustClassifier(plain, "worst_class", training="balanced"),
    }


bases = {
    "logistic regression": LogisticRegression(),
    "tree of depth 3": DecisionTreeClassifier(max_depth=3, random_state=0),
}
# Where the overall error rises by more than ten points ``fit`` warns; here that is known.
warnings.simplefilter("ignore", CostlyDecisionsWarning)
fits = {name: ways(base) for name, base in bases.items()}
worst = {}
for base, models in fits.items():
    for way, model in models.items():
        risks = class_risks(y_test, model.fit(X_train, y_train).predict(X_test))
        worst[base, way] = risks.worst()
        print(
            f"{base}, {way}: worst class {risks.worst():.0%}, mean of both {risks.balanced():.0%}"
        )

# %%
# Where does each predict the rare class?
# ---------------------------------------
# The line of the logistic regression is much the same whether it is weighted or shifted. The tree's
# plain leaves are too coarse to be shifted: all rows of a leaf change sides at once.

fig, axes = plt.subplots(2, 4, figsize=(9, 5.0), sharex=True, sharey=True)
grid = np.stack(np.meshgrid(np.linspace(-2.2, 4.2, 320), np.linspace(-4, 4, 320)), axis=-1)
for line, (base, models) in zip(axes, fits.items(), strict=True):
    for ax, (way, model) in zip(line, models.items(), strict=True):
        rare = (model.predict(grid.reshape(-1, 2)) == "rare").reshape(320, 320).astype(float)
        ax.contourf(*np.moveaxis(grid, -1, 0), rare, [0.5, 2], colors=["#d1603d"], alpha=0.25)
        ax.contour(*np.moveaxis(grid, -1, 0), rare, [0.5], colors=["#222222"], linewidths=1)
        for name, color, size in (("common", "#7f93bf", 1.4), ("rare", "#d1603d", 2.4)):
            of_class = y_train == name
            ax.plot(*X_train[of_class][:800].T, "o", color=color, markersize=size, label=name)
        ax.set_title(f"{way}: {worst[base, way]:.0%}", fontsize="medium")
        ax.set(xlim=(-2.2, 4.2), ylim=(-4, 4), xticks=[], yticks=[])
    line[0].set_ylabel(base)
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=3)
fig.suptitle(
    "Predicted as the rare class (shaded), and errors of the worst class", x=0.01, ha="left"
)
plt.show()

# %%
# See also :doc:`the guide to whether and how to weight </guide/should-i-weight>`,
# :class:`equipoise.TunedDecisionClassifier` for decisions alone,
# :class:`equipoise.RobustClassifier` for both, and :func:`equipoise.tune_weights` for
# probabilities that come from elsewhere.
