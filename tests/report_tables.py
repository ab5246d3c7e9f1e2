"""Tables to compare on: small, mixed, and with names that try to be something else."""

import numpy as np
import pandas as pd

from equipoise.decisions.summary import FEW_ROWS

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    'it\'s "quoted", & so on',
    "two\nlines",
    "مرحبا بالعالم",
    "x" * 200,
    "{{ 7 * 7 }} ${1+1} %s",
]


def mixed_table(
    n=240, *, seed=0, names=("common", "less common", "rare"), shares=(0.67, 0.3, 0.03)
):
    """Numbers, texts and missing values; some rows repeat others."""
    rng = np.random.default_rng(seed)
    label = np.concatenate(
        [np.arange(len(names)).repeat(FEW_ROWS), rng.choice(len(names), n, p=shares)]
    )
    frame = pd.DataFrame(
        {
            "size": label + rng.normal(size=len(label)),
            "age": np.where(rng.random(len(label)) < 0.1, np.nan, rng.normal(size=len(label))),
            "town": rng.choice(["Ulm", "Bonn", "Köln"], len(label)),
        }
    )
    frame.loc[label == 1, "town"] = rng.choice(["Ulm", "Bonn"], np.count_nonzero(label == 1))
    copies = rng.integers(0, len(frame), 20)
    frame = pd.concat([frame, frame.iloc[copies]], ignore_index=True)
    return frame, np.array(names, dtype=object)[np.concatenate([label, label[copies]])]


def hostile_table(n=240):
    """The same with hostile names of classes and columns, and one class of a single row."""
    shares = np.full(len(HOSTILE), 1 / len(HOSTILE))
    frame, y = mixed_table(n, names=HOSTILE, shares=shares)
    frame = pd.concat([frame, frame.iloc[:1].assign(size=99.0)], ignore_index=True)
    y = np.append(y, "only <b>one</b>")
    return frame.set_axis(["</td><b>", 'a"b', "c,d\ne"], axis=1), y
