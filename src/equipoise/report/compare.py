"""Fit for several ideas of how much the classes matter, judge on unseen rows, and recommend."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.goals import bind_classes
from equipoise.report.design import FOLDS, Design, make_candidates, named_goals
from equipoise.report.findings import find
from equipoise.report.fit_memory import FitMemory, Progress, notebook_bar
from equipoise.report.page import page
from equipoise.report.refit import GivenRows, Refit
from equipoise.report.summarize import summarize
from equipoise.tables import (
    MODEL_KINDS,
    LabelledTable,
    find_column,
    labelled_table,
    learner_for,
    read_labelled,
    unseen_rows,
)
from equipoise.text import percent, short_name, text_table
from equipoise.validation.numbers import check_number, check_seed, check_word
from equipoise.validation.predictions import as_probabilities

# Rows that a model is trained on at most; quick pages take fewer, and hold out one part.
MOST_ROWS, QUICK_ROWS, QUICK_SHARE = 100_000, 10_000, 0.25


class Comparison:
    """What a comparison has found: numbers, a page, and a recommendation.

    Made by :func:`compare`. In a notebook it shows its page.

    Parameters
    ----------
    summary : dict
        Everything the page says, as plain numbers and texts.
    fit, save_model : callable, optional
        Fits the recommended choice to all rows, and saves it.

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], goals="balanced_accuracy", cv=3)
    >>> found.recommended
    'linear, balanced'
    >>> found.fit().predict(X[:1]).tolist()
    ['normal']
    """

    def __init__(
        self, summary: dict[str, Any], fit: Callable[[], Any] | None = None,
        save_model: Callable[[str | Path], None] | None = None,
    ) -> None:  # fmt: skip
        self._summary, self._fit, self._save_model = summary, fit, save_model

    def __repr__(self) -> str:
        return "\n".join([f"Comparison, recommended: {self.recommended}", *self.lines()])

    def lines(self) -> list[str]:
        """The choices as a table of text: shares of errors, regrets in percentage points."""
        names = [each["name"] for each in self._summary["data"]["classes"]]
        header = ["made for", "standard", "balanced", "worst class", "which", "largest regret"]
        rows = [
            [
                short_name(choice["label"]),
                *(percent(choice[risk]) for risk in ("standard", "balanced", "worst")),
                short_name(names[choice["worst_class"]]),
                f"{100 * choice['largest_regret']:.1f}",
            ]
            for choice in self._summary["choices"]
        ]
        return text_table(header, rows, right=True, gap="  ")

    @property
    def recommended(self) -> str:
        """The label of the recommended choice."""
        chosen = self._summary["recommendation"]["choice"]
        return str(self._summary["choices"][chosen]["label"])

    @property
    def code(self) -> str:
        """Python that, given ``X`` and ``y``, ends with the recommended choice as ``model``.

        Where the models are the user's, they are ``models`` there.
        """
        return str(self._summary["code"])

    def fit(self) -> Any:
        """The recommended choice, fitted to all rows: what :attr:`code` makes."""
        if self._fit is None:
            raise NotFittedError("This comparison was made without its rows: run its code instead.")
        return self._fit()

    def save_model(self, path: str | Path) -> Path:
        """Fit the recommended choice to all rows and save it.

        A file ``.equipoise`` is read by :func:`equipoise.load_model`, and by ``equipoise predict``
        where the model is one of ours; a file ``.skops`` by ``skops.io``.
        """
        if self._save_model is None:
            raise NotFittedError("This comparison was made without its rows: run its code instead.")
        self._save_model(path)
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """Everything the page says: dicts, lists, texts, numbers and None, ready for JSON."""
        return copy.deepcopy(self._summary)

    def to_frame(self, *, by: str = "class") -> Any:
        """The numbers as a pandas DataFrame.

        Parameters
        ----------
        by : {"class", "choice"}, default="class"
            One line for each choice and class with its risk and interval, or one for each choice
            with its summaries and its risk under every weighting.
        """
        check_word(by, "by", ("class", "choice"))
        pandas, summary = require("pandas", extra="report"), self._summary
        classes, choices = pandas.DataFrame(summary["data"]["classes"]), summary["choices"]
        names = classes["name"]
        if by == "class":
            frame = pandas.json_normalize(choices, "classes", ["model", "made_for"])
            frame["rows"] = frame["class"].map(classes["tested"])
            frame["decides"] = frame["class"].map(classes["deciding"])
            for name in ("class", "taken_for"):
                frame[name] = frame[name].map(names)
            first = ["model", "made_for", "class", "rows", "decides"]
            return frame[[*first, "risk", "lower", "upper", "taken_for"]]
        frame = pandas.DataFrame(choices)
        frame["worst_class"] = frame["worst_class"].map(names)
        frame["recommended"] = frame["label"] == self.recommended
        worlds = [f"risk[{world['name']}]" for world in summary["costs"]["worlds"]]
        risks = pandas.DataFrame(summary["costs"]["risk"], columns=worlds)
        first = ["model", "made_for", "standard", "balanced", "worst", "worst_class"]
        return pandas.concat(
            [frame[first], risks, frame[["largest_regret", "recommended"]]], axis=1
        )

    def to_html(self) -> str:
        """The page: one self-contained HTML document that needs no network."""
        return page(self._summary)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; an interrupted or failed write leaves no half file."""
        written = self.to_html().encode("utf-8")
        with atomic_write(path) as stream:
            stream.write(written)
        return Path(path)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles of page and notebook apart.
        return (
            f'<iframe srcdoc="{escape(self.to_html(), quote=True)}" title="equipoise report" '
            'sandbox="allow-scripts" style="width:100%;height:48em;border:1px solid #888"></iframe>'
        )


def compare(  # noqa: PLR0913  the table, what to compare, and how
    X: Any,
    y: Any,
    models: Any = None,
    *,
    goals: Any = None,
    price: float | None = None,
    cv: float = FOLDS,
    random_state: int = 0,
    sample_weight: Any = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    r"""Which model, trained and decided how? Compare on unseen rows, and recommend one.

    Every model is tried plain, with class-weighted training, and as a ``RobustClassifier`` for
    every goal, and judged by all goals :math:`g`, with values :math:`C_{fg}` that are risks or one
    minus a metric. The recommended choice is the one whose largest regret

    .. math:: \max_g \, (C_{fg} - \min_h C_{hg})

    is the smallest. With one goal it is simply the best for it.

    Parameters
    ----------
    X : pandas.DataFrame or array-like of shape (n_rows, n_columns)
        Features: numbers and texts, with missing values. Models of your own are given them as they
        are, and may also be for sparse matrices, lists of texts or arrays of more dimensions.
    y : array-like of shape (n_rows,)
        Labels.
    models : sequence of {"linear", "forest", "boosting"}, or dict of classifiers, optional
        Ours, all three by default; or classifiers of your own by name. These are cloned, except
        those inside scikit-learn's ``FrozenEstimator``: they are fitted, and must not have seen the
        rows.
    goals : goal, list of goals, or dict of goals by name, optional
        What the model is for: a set of weightings, ``"macro_f1"``, ``CostMatrix(...)``,
        ``RecallFloors(...)``, as in :class:`~equipoise.RobustClassifier`. By default, for those who
        cannot say: standard and balanced weights, ``LabelCVaR(0.1)`` (or a level at which its caps
        bind) and the worst class.
    price : float, optional
        Points of errors in all, 1 for 0.01, that may be given up at most.
    cv : int or float, default=5
        Folds, or the share of the rows to hold out. With five folds, a large table has a quarter
        held out instead.
    random_state : int, default=0
        Seed of everything random.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    quick : bool, default=False
        Hold out one part, and train on 10,000 rows at most instead of 100,000.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what comes next. In a notebook a
        bar shows them by default.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from equipoise.datasets import load_thyroid
    >>> from equipoise.report import compare
    >>> X, y = load_thyroid(return_X_y=True, subset="train")
    >>> found = compare(X, y, models=["linear"], cv=3)
    >>> sorted(found.to_frame()["class"].unique().tolist())
    ['compensated', 'hypothyroid', 'normal']
    """
    began, own = perf_counter(), isinstance(models, Mapping)
    if own and not _is_table(X):
        table = unseen_rows(y, sample_weight=sample_weight, X=X)
    else:
        table = labelled_table(X, y, sample_weight)
    loading = [] if own else ["from equipoise.tables import learner_for", ""]
    return _compared(
        table, X, models, goals=goals, price=price, cv=cv,
        seed=check_seed(random_state), sample_weight=sample_weight, quick=quick,
        progress=progress, title="Which class weights?", loading=loading, began=began,
    )  # fmt: skip


def _is_table(X: Any) -> bool:
    """Whether rows are made of columns, which ours need, rather than of items such as texts."""
    shape = np.shape(X[:1]) if isinstance(X, list | tuple) else getattr(X, "shape", None)
    return not hasattr(X, "tocsr") and (shape is None or len(shape) == 2)


def compare_file(  # noqa: PLR0913  the file, what to compare, and how
    path: str | Path,
    target: str,
    models: Any = None,
    *,
    goals: Any = None,
    price: float | None = None,
    drop: Sequence[str] = (),
    text_labels: bool = False,
    random_state: int = 0,
    quick: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare on a CSV, gzipped CSV or Parquet file with the label in a column ``target``.

    The columns ``drop`` are left out. ``text_labels`` is that of
    :func:`equipoise.tables.split_target`, the others those of :func:`compare`; goals may name
    classes by their texts.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> compare_file(path, "target", ["linear"], goals="balanced_accuracy").recommended
    'linear, balanced_accuracy'
    """
    began = perf_counter()
    if progress is not None:
        progress(0.0, "reading")
    table = read_labelled(path, target, drop=drop, text_labels=text_labels)
    if goals is not None:
        goals = _bound(goals, table.classes)
    dropped = f".drop(columns={list(drop)!r})" if drop else ""
    loading = [
        "from equipoise.tables import learner_for, read_table, split_target",
        "",
        f"table = read_table({str(path)!r}){dropped}",
        f"X, y = split_target(table, {target!r}{', text_labels=True' if text_labels else ''})",
    ]
    names = [word for name in drop for word in ("--drop", name)]
    file = [str(path), "--target", target, *names, *(["--text-labels"] if text_labels else [])]
    return _compared(
        table, table.X, models, goals=goals, price=price, cv=FOLDS, seed=check_seed(random_state),
        quick=quick, progress=progress, title=f"Which class weights for {Path(path).name}?",
        loading=loading, file=file, began=began,
    )  # fmt: skip


def compare_predictions(  # noqa: PLR0913  rows, what to compare, and how
    y: Any,
    predictions: Mapping[str, Any],
    *,
    goals: Any = None,
    price: float | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare probabilities from anywhere, for rows that the models have not seen.

    Each model decides for its largest probability, and by weights tuned for every goal, as
    :func:`~equipoise.tune_weights` does; a row is judged by weights that were tuned without it.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels that came true.
    predictions : dict of array-like of shape (n_rows, n_classes)
        Probabilities by the name of the model, columns in the order of ``classes``. For two classes
        also of shape (n_rows,), about the second.
    goals, price, sample_weight, random_state, progress
        As in :func:`compare`.
    classes : array-like of shape (n_classes,), optional
        Names of the columns; by default the sorted labels.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> compare_predictions(y, {"mine": eta}, goals="worst-class").recommended
    'mine, worst class'
    """
    began = perf_counter()
    if not isinstance(predictions, Mapping) or not predictions:
        raise InvalidParameterError(
            "predictions must be a dict of probabilities by the name of a model, got "
            f"{type(predictions).__name__}."
        )
    table = unseen_rows(y, classes, sample_weight)
    models = {}
    for name, given in predictions.items():
        chances = as_probabilities(given, len(table.classes), name=f"predictions[{name!r}]")
        if len(chances) != len(table.labels):
            raise InvalidInputError(
                f"predictions[{name!r}] must have one row for each of the {len(table.labels)} "
                f"labels, got {len(chances)}."
            )
        models[str(name)] = FrozenEstimator(GivenRows(chances, table.classes))
    return _compared(
        table, np.arange(len(table.labels)), models, goals=goals, price=price, cv=FOLDS,
        seed=check_seed(random_state), quick=False, progress=progress,
        title="Which class weights?", loading=[], began=began, sample_weight=sample_weight,
    )  # fmt: skip


def compare_predictions_file(  # noqa: PLR0913  the file, what to compare, and how
    path: str | Path,
    target: str,
    columns: Mapping[str, Sequence[str]],
    *,
    goals: Any = None,
    price: float | None = None,
    text_labels: bool = False,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Compare probabilities in the columns of a file, as :func:`compare_predictions` does.

    ``columns`` has, for each model, a column for each class in the order of the sorted labels; for
    two classes one will do, about the second. The others are as in :func:`compare_file`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> table = pd.DataFrame({"y": ["a"] * 60 + ["b"] * 60, "p": [0.1] * 59 + [0.8] * 61})
    >>> with TemporaryDirectory() as folder:
    ...     table.to_csv(f"{folder}/p.csv", index=False)
    ...     compare_predictions_file(f"{folder}/p.csv", "y", {"mine": ["p"]}).recommended
    'mine, plain'
    """
    rows = read_labelled(path, target, text_labels=text_labels)
    chances = {}
    for name, own in columns.items():
        named = [find_column(rows.X, column) for column in own]
        if strange := [name for name in named if rows.X[name].dtype.kind != "f"]:
            raise InvalidInputError(f"Column {strange[0]!r} must hold probabilities, got texts.")
        chances[name] = rows.X[named].to_numpy(dtype=np.float64)
        if len(own) == 1:
            chances[name] = chances[name][:, 0]
    if goals is not None:
        goals = _bound(goals, rows.classes)
    found = compare_predictions(
        rows.y, chances, goals=goals, price=price, random_state=random_state, progress=progress
    )
    return Comparison(found.to_dict() | {"title": f"Which class weights for {Path(path).name}?"})


def _bound(goals: Any, classes: Any) -> Any:
    """Goals that name classes as a table has them."""
    if isinstance(goals, Mapping):
        return {name: bind_classes(goal, classes) for name, goal in goals.items()}
    given = goals if isinstance(goals, list | tuple) else [goals]
    return [bind_classes(goal, classes) for goal in given]


def _compared(  # noqa: PLR0913  the table, what to compare, and how
    table: LabelledTable, X: Any, models: Any, *, goals: Any, price: float | None, cv: float,
    seed: int, quick: bool, progress: Progress | None, title: str, loading: Sequence[str],
    began: float, file: Sequence[str] = (), sample_weight: Any = None,
) -> Comparison:  # fmt: skip
    if price is not None:
        check_number(price, "price", "[0, 100]")
    if isinstance(models, Mapping) and all(isinstance(m, FrozenEstimator) for m in models.values()):
        design = Design.for_predictions(table)
    else:
        design = Design.for_table(table, QUICK_SHARE if quick else cv, seed)
    wanted = named_goals(goals, table.prior[design.deciding])
    learners, kinds = _learners(models, table, seed)
    candidates = make_candidates(learners, wanted, price)
    memory = FitMemory(
        table.labels, table.classes, most_rows=QUICK_ROWS if quick else MOST_ROWS, seed=seed,
        expected=_expected(design, learners), progress=progress or notebook_bar(),
    )  # fmt: skip
    rows = table.X if kinds else X
    made = {name: memory.learner(each, name, rows) for name, each in learners.items()}
    found = find(design, candidates, made, wanted, memory, price=price, seed=seed)
    share = round(len(design.judged) / len(design.fold), 2)
    refit = Refit(
        X=X,
        y=table.y,
        models=learners,
        kinds=kinds,
        cv=design.n_folds if design.n_folds > 1 else share,
        seed=seed,
        sample_weight=sample_weight,
        loading=loading,
        file=file,
        table=table,
    )
    best = found.candidates[found.recommendation.place]
    return Comparison(
        summarize(found, title, refit, perf_counter() - began),
        partial(refit.fit, best),
        partial(refit.save, best),
    )


def _expected(design: Design, learners: Mapping[str, Any]) -> float:
    """Fits to come, about: plain and balanced ones, and every other time some more."""
    return 3.0 * design.n_folds * len(learners)


def _learners(models: Any, table: LabelledTable, seed: int) -> tuple[dict[str, Any], list[str]]:
    """Classifiers by name, not fitted, and which of them are ours."""
    if isinstance(models, Mapping):
        for name, each in models.items():
            if not hasattr(each, "fit") or isinstance(each, type):
                raise InvalidParameterError(
                    f"models must hold classifiers by name, got {each!r} as {name!r}."
                )
            if not hasattr(each, "predict_proba") and not hasattr(each, "decision_function"):
                raise InvalidParameterError(
                    f"models must have predict_proba or decision_function, which {name!r} has not: "
                    "wrap it in scikit-learn's CalibratedClassifierCV."
                )
        if not models:
            raise InvalidParameterError("models must hold at least one classifier, got none.")
        return {str(name): each for name, each in models.items()}, []
    given = MODEL_KINDS if models is None else (models,) if isinstance(models, str) else models
    kinds = [kind for kind in MODEL_KINDS if kind in given]
    if not kinds or any(kind not in MODEL_KINDS for kind in given):
        names = ", ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(
            f"models must be some of {names}, or a dict of classifiers by name, got {models!r}."
        )
    return {kind: learner_for(table.columns, kind, random_state=seed) for kind in kinds}, kinds
