"""
How do I know that a robust fit has found the optimum?
======================================================

Every fit comes with a proven bound: ``duality_gap_`` is the most that any other model could be
better by. Here it is 2e-07 after 12 evaluations; descent-ascent, a usual method for such problems,
has a gap of 0.4 after 3129, and its certificate says so.

A minimax problem is easily stopped too early: the objective jumps while the weights still move.
A lower bound on the objective of any model settles the question.
"""

# %%
# Two solvers, one problem
# ------------------------
# The robust fit minimises the largest cross-entropy of a class.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from equipoise import RobustLogisticRegression
from equipoise.datasets import load_thyroid

plt.style.use("equipoise.display.quiet")

X_train, y_train = load_thyroid(subset="train", return_X_y=True)
scaler = StandardScaler().fit(X_train)
X_train = scaler.transform(X_train)
X_test = scaler.transform(load_thyroid(subset="test").data)

exact = RobustLogisticRegression("worst_class").fit(X_train, y_train)
slow = RobustLogisticRegression("worst_class", solver="descent-ascent", max_iter=3000)
with warnings.catch_warnings():
    # It warns that it has not converged: that is the point.
    warnings.simplefilter("ignore")
    slow.fit(X_train, y_train)
for name, fit in (("exact", exact), ("descent-ascent", slow)):
    print(
        f"{name}: objective {fit.objective_:.4f}, at least {fit.lower_bound_:.4f} for any model, "
        f"gap {fit.duality_gap_:.1g} after {fit.history_['evaluations'][-1]} evaluations"
    )

# %%
# How far from the optimum on the way, and at the end?
# ----------------------------------------------------
# Small points are the distance of the objective from the best one known. Large ones are certified
# gaps, which may be pessimistic and are never too small.

fig, ax = plt.subplots(figsize=(6.4, 3.9))
best = exact.lower_bound_
for name, fit, color in (("exact", exact, "#1f3b73"), ("descent-ascent", slow, "#d1603d")):
    evaluations, objective = fit.history_["evaluations"], fit.history_["objective"]
    ax.plot(evaluations, objective - best, "-", color=color, marker=".", label=f"{name}: distance")
    ax.plot(
        evaluations[-1],
        fit.duality_gap_,
        "D",
        color=color,
        markeredgecolor="#222222",
        markersize=9,
        label=f"{name}: certificate",
    )
ax.set(xscale="log", yscale="log", xlabel="evaluations of all class risks", ylabel="gap")
ax.grid()
fig.legend(loc="outside lower center", ncols=2)
fig.suptitle("Distance from the optimum, and the proven bound", x=0.01, ha="left")
plt.show()

# %%
# How exact must it be?
# ---------------------
# For predictions, less exact than one might think: what counts is that the gap is known. Here the
# fit is stopped at larger and larger certified gaps.

predicted = exact.predict(X_test)
for tol in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
    fit = RobustLogisticRegression("worst_class", tol=tol).fit(X_train, y_train)
    changed = np.mean(fit.predict(X_test) != predicted)
    print(
        f"tol {tol:.0e}: certified gap {fit.duality_gap_:.1e}, {changed:.2%} predicted differently"
    )

# %%
# See also :class:`equipoise.RobustLogisticRegression` (``objective_``, ``lower_bound_``,
# ``duality_gap_``) and :class:`equipoise.display.ConvergenceDisplay`.
