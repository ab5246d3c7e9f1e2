"""
Which of my own models is best for several goals at once?
=========================================================

``compare`` evaluates each of them plain, with balanced training and tuned, by all goals that you
name, and recommends the one that is never far from the best. Here that is a forest tuned for
``LabelCVaR(0.1)``: it loses at most 10 points by any goal, where the plain forest loses up to 64
and the forest with balanced weights 22.

Three models in four ways each are twelve candidates. Which is the best depends on the goal; which
one is hardly ever bad does not.
"""

# %%
# Three models of your own
# ------------------------
# Alerts in four levels, the red ones rare. Any classifiers will do, by name.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from equipoise import compare
from equipoise.display import TradeoffDisplay

plt.style.use("equipoise.display.quiet")

X, y = make_classification(
    3_000,
    n_features=15,
    n_informative=6,
    n_classes=4,
    n_clusters_per_class=1,
    weights=[0.7, 0.15, 0.1],
    random_state=0,
)
y = np.array(["green", "yellow", "orange", "red"])[y]
models = {
    "logistic": LogisticRegression(max_iter=300),
    "forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "naive Bayes": GaussianNB(),
}
comparison = compare(X, y, models, cv=3)
print("recommended:", comparison.recommended)
choices = comparison.to_frame(by="choice")
for _, each in choices.iterrows():
    name = f"{each['model']}, {each['made_for']}"
    print(f"{name}: worst class {each['worst']:.0%} errors, overall {each['standard']:.0%}")

# %%
# Regret: how far from the best?
# ------------------------------
# Every row is a candidate, every column a goal. A cell is what the row loses against the best row
# of the column, in error rate. A row without a dark cell is good for all goals.

choices = choices.sort_values("largest_regret")
columns = [name for name in choices if name.startswith("risk[")]
display = TradeoffDisplay(
    risks=choices[columns].to_numpy(),
    made_for=(choices["model"] + ", " + choices["made_for"]).tolist(),
    judged_under=[name[5:-1] for name in columns],
)
display.plot(value="regret")
display.figure_.set_size_inches(6.4, 5.2)
display.ax_.set_ylabel("")
for _, each in choices.iterrows():
    print(f"{each['model']}, {each['made_for']}: regret {100 * each['largest_regret']:.0f} points")

# %%
# The report
# ----------
# ``comparison.save("page.html")`` writes the report below as one file: the errors of every class,
# the cost of every choice, and the code that fits it. A notebook shows it.

comparison

# %%
# ``comparison.fit()`` fits the recommended choice to all rows; these lines do the same.

print(comparison.code)
plt.show()

# %%
# See also :func:`equipoise.compare`, :func:`equipoise.report.compare_predictions` for models
# outside Python, and ``equipoise report`` on the command line.
