"""
Which of my own models is best, and what does it cost?
======================================================

``compare`` evaluates each of them with default predictions and with decisions tuned for balanced
accuracy and for the worst class, on held-out rows. It advises one: here a tuned forest, which makes
more errors overall than the plain one and far fewer in the class that the plain one fails.

Three models in three ways each are nine candidates. Those that no other beats in both errors form
the frontier, and three of them have a card in the report.
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
from equipoise.display import FrontierDisplay

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
found = compare(X, y, models, cv=3)
print("recommended:", found.recommended)
candidates = found.to_frame(by="candidate")
for _, each in candidates.iterrows():
    print(f"{each['label']}: {each['overall']:.0%} overall, {each['worst']:.0%} in the worst class")

# %%
# The frontier
# ------------
# Overall error against the error of the worst class, with 95% intervals for those on the frontier.

FrontierDisplay.from_comparison(found)

# %%
# The report
# ----------
# ``found.save("page.html")`` writes what is shown below as one file: the cards, errors class by
# class, and the code that fits each of them. In a notebook it shows itself.

found

# %%
# ``found.fit()`` fits the advised candidate to all rows; these lines do the same.

print(found.code)
plt.show()

# %%
# See also :func:`equipoise.compare`, :func:`equipoise.report.compare_predictions` for models that
# do not live in Python, and ``equipoise report`` on the command line.
