"""
My table is larger than memory: must I sample it?
=================================================

No, and with a rare class you should not: ``fit`` reads chunks from disk, a few at a time, to the
same certified optimum. All 500,000 rows took 8 passes and give the worst class 13.2% errors;
samples of 10,000 rows give it 30.1% on average, and up to 39.7%.

A sample loses rare rows, of which there are too few already. A sample that keeps them all, with row
weights that correct for it, is better: the fit starts from such a sample.
"""

# %%
# A folder of files
# -----------------
# Ten files of payments, two in a thousand of them fraud. Real files would be larger; a limit of
# 16 MiB makes these too large for memory.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from equipoise import RobustLogisticRegression, class_risks
from equipoise.blocks import from_npy
from equipoise.exceptions import FewRowsWarning

plt.style.use("equipoise.display.quiet")


def draw(n_rows, share_of_fraud, seed):
    """Payments: frauds are a little off in every column."""
    rng = np.random.default_rng(seed)
    fraud = rng.random(n_rows) < share_of_fraud
    X = rng.normal(size=(n_rows, 20)).astype(np.float32)
    X[fraud] = np.float32(0.8) * X[fraud] + np.float32(0.45)
    return X, np.where(fraud, "fraud", "good")


temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
for block in range(10):
    X, y = draw(50_000, 0.002, seed=block)
    np.save(folder / f"X_{block:02}.npy", X)
    np.save(folder / f"y_{block:02}.npy", y)
X_test, y_test = draw(40_000, 0.5, seed=10)

# %%
# All rows, within a limit
# ------------------------
# The fit first solves the problem on a sample with all rows of a rare class, and then corrects that
# solution in a few passes over the files.

blocks = from_npy(folder)
streamed = RobustLogisticRegression("worst_class", memory="16 MiB").fit(blocks)
X_all, y_all = (np.concatenate(parts) for parts in zip(*(b[:2] for b in blocks), strict=True))
in_memory = RobustLogisticRegression("worst_class").fit(X_all, y_all)
difference = np.abs(streamed.coef_ - in_memory.coef_).max() / np.abs(in_memory.coef_).max()
error = class_risks(y_test, streamed.predict(X_test)).worst()
print(
    f"{len(y_all):,} rows in {streamed.n_passes_} passes, certified gap "
    f"{streamed.duality_gap_:.0e}, coefficients as in memory up to {difference:.0e}"
)
print(f"all rows: worst class {error:.1%} errors")

# %%
# What a sample would have cost
# -----------------------------
# The usual alternative is a sample that fits in memory. It holds ten rare rows in 5,000, and the
# fit warns about that.

sizes, rng = [5_000, 10_000, 20_000, 50_000, 100_000], np.random.default_rng(0)
sampled = {size: [] for size in sizes}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FewRowsWarning)
    for size in sizes:
        for _ in range(8):
            rows = rng.choice(len(y_all), size, replace=False)
            fit = RobustLogisticRegression("worst_class").fit(X_all[rows], y_all[rows])
            sampled[size].append(class_risks(y_test, fit.predict(X_test)).worst())
        errors = sampled[size]
        print(f"{size:,} rows: {min(errors):.1%} to {max(errors):.1%}, mean {np.mean(errors):.1%}")

fig, ax = plt.subplots(figsize=(6.4, 3.7))
for size, errors in sampled.items():
    ax.plot([size] * len(errors), errors, "o", color="#1f3b73", alpha=0.45, markeredgewidth=0)
    ax.plot(size, np.mean(errors), "_", color="#1f3b73", markersize=22, markeredgewidth=2)
ax.axhline(error, color="#d1603d", linewidth=2)
ax.text(5_000, error + 0.012, "all rows, from disk", color="#d1603d", fontsize="small")
ax.set(
    xscale="log", xlabel="rows in the sample", ylabel="errors of the worst class", ylim=(0, None)
)
ax.set_xticks(sizes, [f"{size:,}\n({0.002 * size:.0f} frauds)" for size in sizes])
ax.set_xticks([], minor=True)
ax.yaxis.set_major_formatter("{x:.0%}")
ax.grid(axis="y")
fig.suptitle("Eight samples of each size, and all rows", x=0.01, ha="left")
temporary.cleanup()
plt.show()

# %%
# See also :doc:`the guide on large tables </guide/larger-than-memory>`, :mod:`equipoise.blocks` for
# Parquet files and sequences of chunks, and :doc:`the page on large data </scale>` for tables with
# texts and missing values, Dask and GPUs.
