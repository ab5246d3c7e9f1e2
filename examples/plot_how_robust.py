"""
How robust should my model be?
==============================

As robust as you are ready to pay for: ``RobustnessCV`` evaluates every level on held-out rows and
takes one by a rule. At a price of at most one point of the overall error, the errors of the worst
class fall from 28.3% to 16.1% on held-out rows; on new rows they are 16.4%, against 58.8% of the
model as it comes.

Levels are those of ``LabelCVaR(alpha)``: no class counts more than ``1/alpha`` times its share. An
``alpha`` of 1 is the standard risk, a small one the worst class.
"""

# %%
# Ten levels, one rule
# --------------------
# The plug-in keeps the model and moves its decisions: it is trained five times, once for each part
# of the rows that is left out, and decided for every level.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import RobustnessCV, TunedDecisionClassifier, class_risks
from equipoise.datasets import load_thyroid
from equipoise.display import PathDisplay

plt.style.use("equipoise.display.quiet")

X_train, y_train = load_thyroid(subset="train", return_X_y=True)
X_test, y_test = load_thyroid(subset="test", return_X_y=True)
model = TunedDecisionClassifier(make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)))

by_price = RobustnessCV(model, rule="price", price=1).fit(X_train, y_train)
path, chosen = by_price.path_, by_price.best_index_
print(
    f"alpha = {by_price.alpha_:.2g}: errors of the worst class on rows left out "
    f"{path['worst_class_risk'][chosen]:.1%} instead of {path['worst_class_risk'][0]:.1%}, "
    f"in all {path['standard_risk'][chosen]:.1%} instead of {path['standard_risk'][0]:.1%}"
)

# %%
# From left to right the model grows more robust. The dashed line is what the price allows. The
# intervals hold for all levels together, so they allow for the choice of one of them.

display = PathDisplay.from_estimator(by_price)
display.figure_.set_size_inches(6.4, 4.0)

# %%
# Three rules
# -----------
# If no price comes to mind, ``"regret"`` takes the level that loses least whatever level turns out
# to be right, and of those within one standard error the least robust. ``"recall"`` takes the
# least robust level at which every class has the recall. New rows say what they are worth; the
# plain model is that of the plug-in, decided for its largest probability and not tuned at all.

rules = {
    "price: 1 point": by_price,
    "recall: 85%": RobustnessCV(model, rule="recall", recall=0.85).fit(X_train, y_train),
    "least regret": RobustnessCV(model).fit(X_train, y_train),
}
judged = {name: class_risks(y_test, fit.predict(X_test)) for name, fit in rules.items()}
plain = class_risks(y_test, by_price.estimator_.estimator_.predict(X_test))
for name, risks in ({"plain": plain} | judged).items():
    print(f"{name}: new rows, worst class {risks.worst():.1%}, in all {risks.standard():.1%}")

fig, ax = plt.subplots(figsize=(6.4, 2.9))
for name, risks in ({"plain": plain} | judged).items():
    label = f"{name}, alpha {rules[name].alpha_:.2g}" if name in rules else name
    ax.plot([risks.standard(), risks.worst()], [label] * 2, "-", color="#c8c8c8")
    ax.plot(risks.standard(), label, "o", color="#1f3b73", markersize=7)
    ax.plot(risks.worst(), label, "s", color="#d1603d", markersize=7)
ax.legend(ax.lines[1:3], ["errors in all", "errors of the worst class"], loc="lower right")
ax.set(xlim=(0, 0.65), ylim=(3.5, -0.5))
ax.xaxis.set_major_formatter("{x:.0%}")
ax.grid(axis="x")
fig.suptitle("What the rules come to on new rows", x=0.01, ha="left")
plt.show()

# %%
# A price or a recall is kept on the rows left out, and on new rows up to noise: few patients of the
# rare classes decide here. A recall that must hold is a matter for :class:`~equipoise.RecallFloors`
# with a confidence.
#
# See also :class:`equipoise.RobustnessCV`, :class:`equipoise.display.PathDisplay`, and
# ``LabelCVaR("auto")``, the short form of the last rule.
