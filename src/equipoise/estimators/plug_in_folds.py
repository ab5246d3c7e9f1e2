"""Which rows are predicted by which model, and which classes have rows enough for that."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv
from sklearn.utils.parallel import Parallel, delayed

from equipoise.arrays import Indices, Mask, Matrix
from equipoise.estimators.plug_in_rows import Rows, class_probabilities
from equipoise.exceptions import InvalidInputError, InvalidParameterError

# Weights are judged without one fold, and shrunk by what they do without another: a class must
# have rows beside these two.
FOLDS_OF_A_CLASS = 3
# Folds of rows that were predicted by one model.
FOLDS = 5

Rare = Literal["error", "keep"]


@dataclass(frozen=True, eq=False)
class Splits:
    """Training and test rows of every split, and the classes that are too rare for it.

    Attributes
    ----------
    parts : pairs of row indices; no row is tested twice.
    few : which classes have too few rows.
    rule : what they would have to have, in words.
    """

    parts: list[tuple[Indices, Indices]]
    few: Mask
    rule: str


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities for rows that their model has not seen.

    Attributes
    ----------
    rows : indices of the rows.
    folds : fold of each, ``0..n_folds-1``.
    probabilities : array of shape (n_predicted, n_classes)
    """

    rows: Indices
    folds: Indices
    probabilities: Matrix


def is_hold_out(cv: Any) -> bool:
    """Whether ``cv`` is the share of rows to hold out."""
    return isinstance(cv, Real) and not isinstance(cv, Integral)


def split(cv: Any, every: Rows, params: Mapping[str, Any], seed: int) -> Splits:
    """The splits of ``cv`` as scikit-learn understands it, or one that holds out a share.

    Parameters
    ----------
    cv : what the user asked for.
    every : all rows, also those without weight, which a splitter or its groups may count.
    params : arguments of the splitter.
    seed : seed of a share to hold out, and of folds given by their number.

    Returns
    -------
    Splits
        With indices among the rows that have weight.
    """
    rows = every.with_weight()
    if is_hold_out(cv):
        return _hold_out(float(cv), rows, seed)
    if isinstance(cv, str):
        raise InvalidParameterError(
            "cv must be a number of folds, a share of rows to hold out, a splitter, an iterable "
            f'of splits or "prefit", got {cv!r}.'
        )
    splitter = check_cv(5 if cv is None else cv, rows.y, classifier=True)
    if splitter is not cv and isinstance(splitter, StratifiedKFold):
        # Rows may come in an order; folds of neighbours would be predicted as no new row is.
        splitter = StratifiedKFold(splitter.n_splits, shuffle=True, random_state=seed)
    if isinstance(splitter, StratifiedKFold):
        return _stratified(splitter, rows)
    parts = list(splitter.split(every.X, every.y, **params))
    return _given([(np.asarray(a), np.asarray(b)) for a, b in parts], every.weights > 0, rows)


def _given(parts: list[tuple[Indices, Indices]], used: Mask, rows: Rows) -> Splits:
    """Splits of a splitter, which may test some rows never, but none twice."""
    _refuse_overlap(parts, len(used))
    place = np.cumsum(used) - 1
    parts = [(place[train[used[train]]], place[test[used[test]]]) for train, test in parts]
    few = _missing_from_training(parts, rows) | _few_tested(parts, rows)
    return Splits(
        parts,
        few,
        f"rows of every class in all training parts of cv and in {FOLDS_OF_A_CLASS} of its test "
        f"parts (or {FOLDS_OF_A_CLASS} rows in fewer parts)",
    )


def _stratified(splitter: StratifiedKFold, rows: Rows) -> Splits:
    needed = max(FOLDS_OF_A_CLASS, splitter.get_n_splits())
    few = rows.counts < needed
    if np.count_nonzero(~few) < 2:
        return Splits([], few, f"at least {needed} rows of every class")
    with warnings.catch_warnings():
        # It would warn of small classes, about which we say more.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        parts = list(splitter.split(rows.labels, rows.labels))
    return Splits(parts, few, f"at least {needed} rows of every class")


def _hold_out(share: float, rows: Rows, seed: int) -> Splits:
    """One split, stratified; classes of few rows are for training alone."""
    if not 0 < share < 1:
        raise InvalidParameterError(
            f"cv, as a share of rows to hold out, must be in (0, 1), got {share!r}; for folds give "
            "an integer."
        )
    held = np.floor(share * rows.counts)
    few = (held < FOLDS_OF_A_CLASS) | (np.ceil(share * rows.counts) >= rows.counts)
    rule = f"at least {int(np.ceil(FOLDS_OF_A_CLASS / share))} rows of every class"
    if np.count_nonzero(~few) < 2:
        return Splits([], few, rule)
    many = np.flatnonzero(~few[rows.labels])
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=share, random_state=seed)
    _, test = next(splitter.split(many, rows.labels[many]))
    train = np.setdiff1d(np.arange(len(rows.labels)), many[test])
    return Splits([(train, np.sort(many[test]))], few, rule)


def _refuse_overlap(parts: list[tuple[Indices, Indices]], n_rows: int) -> None:
    times = np.bincount(np.concatenate([test for _, test in parts]), minlength=n_rows)
    if np.any(times > 1):
        raise InvalidInputError(
            f"cv must test no row twice, got row {int(np.argmax(times > 1))} in "
            f"{int(times.max())} test parts: repeated rows would count as new ones. Use a splitter "
            "without repeats, such as StratifiedKFold."
        )


def _missing_from_training(parts: list[tuple[Indices, Indices]], rows: Rows) -> Mask:
    present = [np.isin(np.arange(len(rows.classes)), rows.labels[train]) for train, _ in parts]
    return np.asarray(~np.all(present, axis=0))


def _few_tested(parts: list[tuple[Indices, Indices]], rows: Rows) -> Mask:
    k = len(rows.classes)
    if len(parts) < FOLDS_OF_A_CLASS:
        tested = np.concatenate([rows.labels[test] for _, test in parts])
        return np.bincount(tested, minlength=k) < FOLDS_OF_A_CLASS
    seen = [np.isin(np.arange(k), rows.labels[test]) for _, test in parts]
    return np.asarray(np.count_nonzero(seen, axis=0) < FOLDS_OF_A_CLASS)


def refuse_few(splits: Splits, counts: Indices, classes: NDArray[Any], rare: Any) -> None:
    """Refuse classes that are too rare to be tuned, unless they shall be kept as they are."""
    few = splits.few
    if check_rare(rare) == "keep" and np.count_nonzero(~few) >= 2:
        return
    if not np.any(few):
        return
    named = ", ".join(f"{classes.tolist()[i]!r} ({counts[i]} rows)" for i in np.flatnonzero(few))
    problem = f"Too few rows of class {named}: decision weights need {splits.rule}."
    if np.count_nonzero(~few) < 2:
        raise InvalidInputError(
            f"{problem} Fewer than two classes are left; collect more rows, use fewer folds (cv), "
            "or give known weights."
        )
    raise InvalidInputError(
        f"{problem} Collect more rows, merge it with another class, use fewer folds (cv), or let "
        "rare='keep' train on it and leave its weight and its risk open."
    )


def check_rare(rare: Any) -> Rare:
    """What to do with classes of too few rows."""
    if isinstance(rare, str) and rare in ("error", "keep"):
        return "keep" if rare == "keep" else "error"
    raise InvalidParameterError(f"rare must be 'error' or 'keep', got {rare!r}.")


def without_training(labels: Indices, folds: Indices, k: int, *, known: bool) -> Splits:
    """For rows that are predicted already only the folds of each class matter."""
    cells = np.bincount(labels * (folds.max() + 1) + folds, minlength=k * (folds.max() + 1))
    found = np.count_nonzero(cells.reshape(k, -1), axis=1)
    if known:
        return Splits([], found < 1, "a row of every class to be judged by")
    rule = f"at least {FOLDS_OF_A_CLASS} rows of every class in the tuning part"
    return Splits([], found < FOLDS_OF_A_CLASS, rule)


def check_folds(folds: Any, used: Mask) -> Indices:
    """The folds of the rows that have weight, as the user numbered them."""
    given = np.asarray(folds)
    if given.shape != used.shape or given.dtype.kind not in "iu":
        raise InvalidInputError(
            f"folds must hold a whole number for each of the {len(used)} rows, got an array of "
            f"shape {given.shape} and type {given.dtype}."
        )
    found = np.unique(given[used])
    if len(found) < FOLDS_OF_A_CLASS or not np.array_equal(found, np.arange(len(found))):
        raise InvalidInputError(
            f"folds must number at least {FOLDS_OF_A_CLASS} folds from 0 on, each with rows that "
            f"have weight, got {found[:10].tolist()}."
        )
    return np.asarray(given[used], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Part:
    """A model fitted to the training rows of a split, and its probabilities of the test rows."""

    model: Any
    probabilities: Matrix


def predict_parts(estimator: Any, rows: Rows, splits: Splits, n_jobs: Any) -> list[Part]:
    """The model of every split, and what it predicts."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_predict_part)(estimator, rows, train, test) for train, test in splits.parts
    )
    return list(found)


def _predict_part(estimator: Any, rows: Rows, train: Indices, test: Indices) -> Part:
    model = rows.take(train).train(estimator)
    return Part(model, class_probabilities(model, rows.take(test).X, rows.classes))


def in_folds(splits: Splits, predicted: list[Part], rows: Rows, seed: int) -> Predictions:
    """The predictions of all splits; those of fewer than three splits are dealt out to folds."""
    tested = np.concatenate([test for _, test in splits.parts])
    folds = np.repeat(np.arange(len(splits.parts)), [len(test) for _, test in splits.parts])
    if len(splits.parts) < FOLDS_OF_A_CLASS:
        folds = deal(rows.labels[tested], seed)
    return Predictions(tested, folds, np.concatenate([part.probabilities for part in predicted]))


def deal(labels: Indices, seed: int) -> Indices:
    """Rows dealt out to folds at random, class after class, so that each fold has its share."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def as_seed(random_state: Any) -> int:
    """A seed; the same one every time where none is given, so that fits can be repeated."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidParameterError(
        f"random_state must be an integer, a RandomState or None, got {random_state!r}."
    )
