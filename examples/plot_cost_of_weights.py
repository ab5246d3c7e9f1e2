"""
What does a class weighting cost under the others?
==================================================

A lot, and in one direction more than in the other. The rule for standard weights misses 59% of the
patients with a compensated disease, and loses 19 points under balanced weights; the rule for
balanced weights misses 1% of them, and loses 7 points under standard weights.

A weighting is chosen for one purpose, and used for others. :func:`~equipoise.weight_tradeoff` takes
the probabilities of one model, forms the rule of each weighting, and evaluates it under all.
"""

# %%
# One model, three purposes
# -------------------------
# The bundled thyroid data have 92% normal patients and two kinds of ill ones. The third purpose
# lies between the usual two: an ill patient counts ten times as much as a healthy one.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import weight_tradeoff
from equipoise.datasets import load_thyroid
from equipoise.display import TradeoffDisplay

plt.style.use("equipoise.display.quiet")

X_train, y_train = load_thyroid(subset="train", return_X_y=True)
X_test, y_test = load_thyroid(subset="test", return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)

print("shares:", {str(name): f"{np.mean(y_train == name):.0%}" for name in model.classes_})

purposes = {
    "standard": "standard",
    "balanced": "balanced",
    "ill ten times": {"hypothyroid": 10, "compensated": 10, "normal": 1},
}
tradeoff = weight_tradeoff(y_test, model.predict_proba(X_test), purposes)
errors = pd.DataFrame(tradeoff.class_risks, index=list(purposes), columns=tradeoff.classes)
print(errors.map("{:.0%}".format))

# %%
# A row shows what one rule costs under the three weightings. The darkest cell is the standard rule
# under balanced weights. The rule of a weighting need not be the best under it on new rows: it
# depends on probabilities, which have errors of their own.

display = TradeoffDisplay.from_tradeoff(tradeoff)
display.figure_.set_size_inches(5.6, 2.9)

# %%
# Is the difference more than noise?
# ----------------------------------
# The regret compares two rules on the same rows, pair by pair. Its interval is wide where few rows
# carry the weight: the two illnesses are rare in the test rows as well.

frame = tradeoff.to_frame()
pairs = frame[frame["fitted_for"] != frame["evaluated_under"]].iloc[::-1]
labels = pairs["fitted_for"] + ",\nunder " + pairs["evaluated_under"]

fig, ax = plt.subplots(figsize=(5.6, 3.8))
reach = [pairs["regret"] - pairs["regret_lower"], pairs["regret_upper"] - pairs["regret"]]
ax.errorbar(100 * pairs["regret"], labels, xerr=100 * np.array(reach), fmt="o", capsize=2)
ax.axvline(0, color="#222222", linewidth=0.8)
ax.grid(axis="x")
ax.set_xlabel("regret in percentage points, 95% intervals")
fig.suptitle("What the rule of one weighting loses under another", x=0.01, ha="left")
ax.set_ylim(-0.6, len(pairs) - 0.4)
for _, pair in pairs.iloc[::-1].iterrows():
    name = f"rule for {pair['fitted_for']}, under {pair['evaluated_under']}"
    print(f"{name}: {100 * pair['regret']:.0f} points lost")
plt.show()

# %%
# The asymmetry is the point: weights that are too small for rare classes cost far more than weights
# that are too large.
#
# See also :func:`equipoise.weight_tradeoff`, :class:`equipoise.display.TradeoffDisplay`, and
# :func:`equipoise.compare`, which does this for several models at once.
