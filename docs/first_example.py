"""The first example of the landing page; the README and Start here show the same."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from equipoise import LabelCVaR, RobustClassifier, class_risks

# 10,000 machines, generated: 90% are fine, 7% worn, 3% broken.
X, y = make_classification(
    10_000, 20, n_informative=8, n_classes=3, weights=[0.9, 0.07], flip_y=0, random_state=0
)
y = np.array(["fine", "worn", "broken"])[y]
X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)


def show(name, model):
    risks = class_risks(y_new, model.fit(X, y).predict(X_new))
    recall = "  ".join(f"{each} {value:4.0%}" for each, value in risks.recall().items())
    print(f"{name:27} {recall}  overall error {risks.standard():5.1%}")


booster = HistGradientBoostingClassifier(max_iter=50, random_state=0)
balanced = HistGradientBoostingClassifier(max_iter=50, class_weight="balanced", random_state=0)
show("booster", booster)
show('class_weight="balanced"', balanced)
show("tuned for the worst class", RobustClassifier(booster, goal="worst_class"))
show("tuned for LabelCVaR(0.2)", RobustClassifier(booster, goal=LabelCVaR(0.2)))
