"""
What happens to probabilities after weighting, and how do I get them back?
==========================================================================

The probabilities of a class-weighted model are those of other class frequencies: with balanced
weights 36.9% of deliveries are expected to be late, where 10.3% are. ``rescale_proba`` puts the
probabilities of any model with known weights back, to 10.4% on average, and ``population_proba``
those of a robust fit.

The predicted classes may be right while the probabilities are not. Put the probabilities of a
weighted model back before you show them to a person or multiply them by a price.
"""

# %%
# Three models of deliveries that may be late
# -------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from equipoise import (
    LabelCVaR,
    RobustLogisticRegression,
    population_proba,
    rescale_proba,
)
from equipoise.display import ReliabilityDisplay

plt.style.use("equipoise.display.quiet")

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 4))
late = rng.random(len(X)) < expit(X @ [1.2, -0.8, 0.6, 0.0] - 3)
y = np.where(late, "late", "on time")
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)

plain = LogisticRegression().fit(X_train, y_train)
balanced = LogisticRegression(class_weight="balanced").fit(X_train, y_train)
robust = RobustLogisticRegression(LabelCVaR(0.3)).fit(X_train, y_train)

shares = {name: np.mean(y_train == name) for name in plain.classes_}
proba = {
    "plain": plain.predict_proba(X_test),
    "balanced": balanced.predict_proba(X_test),
    "balanced, put back": rescale_proba(
        balanced.predict_proba(X_test),
        weights="balanced",
        class_prior=shares,
        classes=plain.classes_,
    ),
    "robust": robust.predict_proba(X_test),
    "robust, put back": population_proba(robust, X_test),
}
print(f"late in truth: {np.mean(y_test == 'late'):.1%}")
for name, each in proba.items():
    loss = log_loss(y_test, each)
    print(f"{name}: expects {each[:, 0].mean():.1%} to be late, cross-entropy {loss:.3f}")

# %%
# Reliability
# -----------
# Of the deliveries with a weighted probability of one half, far fewer than half are late. Put back,
# all models lie on the diagonal, as the plain one does.

fig, axes = plt.subplots(1, 2, figsize=(8, 4.4), sharey=True)
for ax, words in zip(axes, ("", ", put back"), strict=True):
    curves = {"plain": proba["plain"]}
    curves |= {name: proba[name + words] for name in ("balanced", "robust")}
    ReliabilityDisplay.from_predictions(y_test, curves, pos_label="late", n_bins=8, ax=ax)
    ax.set_xlabel(f"predicted probability of late{words or ', as fitted'}")
axes[1].set_ylabel("")
plt.show()

# %%
# Another population
# ------------------
# The same fit gives probabilities for a week with strikes, in which a third of the deliveries are
# late.

strikes = population_proba(robust, X_test, {"late": 1 / 3, "on time": 2 / 3})
print(f"one delivery: {proba['robust, put back'][0, 0]:.1%}, during strikes {strikes[0, 0]:.1%}")

# %%
# Putting back undoes the weights and nothing else: a model that is wrong in other ways stays wrong.
#
# See also :func:`equipoise.rescale_proba`, :func:`equipoise.population_proba` and
# :class:`equipoise.display.ReliabilityDisplay`.
