"""
How many rows does a class need?
================================

To measure its errors, some 200: if 10% of 200 rows are wrong, the truth lies between 6% and 15%,
and of 30 rows between 2% and 27%. To promise a recall of 90% with a confidence of 90%, at least 22
without an error, and 210 for a model with half the errors that are allowed.

The rows of the class count, not those of the table: a million healthy patients say nothing about
the thirty ill ones.
"""

# %%
# To measure the errors of a class
# --------------------------------
# A tenth of the rows of a class are wrong: this is the exact interval for its error rate.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import RobustLogisticRegression, class_risk_intervals
from equipoise.datasets import load_thyroid
from equipoise.display import ClassRisksDisplay

plt.style.use("equipoise.display.quiet")

counts = np.array([10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000, 3000])
bands = []
for count in counts:
    truth = np.repeat(["ill", "well"], [count, count])
    predicted = np.where(np.arange(2 * count) % 10 == 0, "well", truth)
    bands.append(class_risk_intervals(truth, predicted)["ill"])
for count, band in zip(counts, bands, strict=True):
    if count in (30, 100, 200, 1000):
        print(f"{count} rows, 10% wrong: between {band.lower:.0%} and {band.upper:.0%}")

# %%
# To promise a recall
# -------------------
# A floor with a confidence is shown on held-out rows, with no more errors than would be likely
# below the floor. Without an error the number of rows is known beforehand; a model with half the
# allowed errors needs more, to show the floor nine times in ten.

floors, confidence = np.array([0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98]), 0.9
least = np.ceil(np.log(1 - confidence) / np.log(floors)).astype(int)


def rows_for(floor, recall):
    """Rows that show the floor in nine of ten tables, for a model with such a recall."""
    n = np.arange(1, 3_000)
    allowed = binom.ppf(1 - confidence, n, 1 - floor) - 1  # fewer errors than chance would give
    enough = (allowed >= 0) & (binom.cdf(allowed, n, 1 - recall) >= 0.9)
    return int(n[np.flatnonzero(~enough)[-1] + 1])


usual = np.array([rows_for(floor, (1 + floor) / 2) for floor in floors])
for floor, few, more in zip(floors, least, usual, strict=True):
    if floor in (0.8, 0.9, 0.95):
        print(f"recall of {floor:.0%}: {few} rows without an error, {more} with half the errors")

# %%
# Both in pictures
# ----------------

fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6))
lower, upper = ([getattr(band, end) for band in bands] for end in ("lower", "upper"))
left.fill_between(counts, lower, upper, color="#1f3b73", alpha=0.2, linewidth=0)
left.plot(counts, [band.estimate for band in bands], "-", color="#1f3b73")
left.set(xscale="log", ylim=(0, 0.46), xlabel="rows of the class", ylabel="share of errors")
left.set_title("If a tenth is wrong, where is the truth?", fontsize="medium")
right.plot(floors, usual, "s-", color="#d1603d", label="half the errors that are allowed")
right.plot(floors, least, "o-", color="#1f3b73", label="no error at all")
right.set(yscale="log", xlabel="recall that is promised", ylabel="rows of the class")
right.set_title("Rows that can show it, confidence 90%", fontsize="medium")
right.legend(loc="upper left")
for ax, axis in ((left, left.yaxis), (right, right.xaxis)):
    axis.set_major_formatter("{x:.0%}")
    ax.grid()
left.set_xticks([10, 30, 100, 300, 1000, 3000], ["10", "30", "100", "300", "1,000", "3,000"])
right.set_yticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])

# %%
# And in a table that you have
# ----------------------------
# The intervals show how much the rows of each class say.

X_train, y_train = load_thyroid(subset="train", return_X_y=True)
X_test, y_test = load_thyroid(subset="test", return_X_y=True)
model = make_pipeline(StandardScaler(), RobustLogisticRegression()).fit(X_train, y_train)
display = ClassRisksDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# See also :func:`equipoise.class_risk_intervals` (``simultaneous=True`` for all classes together,
# and ``worst()``), :class:`equipoise.RecallFloors`, and :func:`equipoise.theory.rate_bound` for a
# bound without any rows.
