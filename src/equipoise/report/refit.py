"""How a candidate is fitted to the whole table: by Python, by the command line, or at once."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from textwrap import indent
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Matrix
from equipoise.blocks import Blocks
from equipoise.decisions.summary import FEW_ROWS
from equipoise.decisions.trained import unfitted, weight_argument
from equipoise.estimators import tune_weights
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.goals import SetGoal, as_goal, goal_names
from equipoise.persistence import facts_for, save_model
from equipoise.report.design import Candidate, goal_text
from equipoise.tables import LabelledTable
from equipoise.tables.features import sampled_model

# Goals that are written as a word.
_WORD = re.compile(r"[a-z][a-z0-9_-]*")
_NAME = re.compile(r"\b[A-Z]\w+")
# Classes that are too small to be tuned for.
_RARE = f"rare_classes='keep', min_rows={FEW_ROWS}"


class GivenRows(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities that came from elsewhere, by the numbers of their rows."""

    def __init__(self, probabilities: Matrix, classes: NDArray[Any]) -> None:
        self.probabilities = probabilities
        self.classes = classes
        self.classes_ = np.asarray(classes)

    def fit(self, X: Any, y: Any) -> Self:
        """Nothing is learnt."""
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """What was said of rows by these numbers."""
        return np.asarray(self.probabilities[np.asarray(X, dtype=np.intp).ravel()])


@dataclass(frozen=True, eq=False)
class InBlocks:
    """Where rows in blocks are had from, here and in Python, and how a sample of them is drawn.

    Our models are made for ``columns_like``. ``opening`` is a line that opens what ``columns`` and
    ``rows`` speak of, if there is one.
    """

    opened: Callable[[], AbstractContextManager[Blocks]]
    sample: Mapping[str, Any]
    columns_like: Any
    opening: str = ""
    columns: str = "blocks[0].X"
    rows: str = "blocks"


@dataclass(frozen=True, eq=False)
class Refit:
    """The rows that a comparison was made on, and the models by name.

    ``loading`` are lines of Python that make ``X`` and ``y``, ``kinds`` the models that are ours
    rather than the user's; ``file`` are the arguments of the command line that name the table, and
    ``blocks`` are there where it is not in memory.
    """

    X: Any
    y: Any
    models: Mapping[str, Any]
    kinds: Sequence[str]
    cv: int | float
    seed: int
    sample_weight: Any = None
    loading: Sequence[str] = ()
    file: Sequence[str] = ()
    table: LabelledTable | None = None
    blocks: InBlocks | None = None

    def fit(self, candidate: Candidate) -> Any:
        """The candidate, fitted to all rows; tuned weights where probabilities were given."""
        learner = self.models[candidate.model]
        if self.blocks is not None:
            goal, training = candidate.goal or "standard", candidate.training
            given = self.cv, self.seed, training
            made = sampled_model(unfitted(learner), goal, *given, **self.blocks.sample)
            with self.blocks.opened() as blocks:
                return candidate.priced(made).fit(blocks)
        if isinstance(learner, FrozenEstimator) and isinstance(learner.estimator, GivenRows):
            return tune_weights(
                self.y, learner.estimator.probabilities, candidate.goal or "standard",
                classes=learner.classes_, sample_weight=self.sample_weight, rare_classes="keep",
                min_rows=FEW_ROWS, random_state=self.seed,
            )  # fmt: skip
        known = isinstance(learner, FrozenEstimator)
        made = candidate.around(learner if known else unfitted(learner), cv=self.cv, seed=self.seed)
        if known and candidate.goal is None:
            return made
        key = self._weight_argument(candidate)
        return made.fit(self.X, self.y, **({key: self.sample_weight} if key else {}))

    def save(self, candidate: Candidate, path: str | Path) -> None:
        """Fit the candidate to all rows, and write it to a file of ours or of skops."""
        if Path(path).suffix == ".skops":
            skops = require("skops.io", extra="skops")
            written = skops.dumps(self.fit(candidate))
            with atomic_write(path) as stream:
                stream.write(written)
            return
        facts = None
        if candidate.model in self.kinds and self.table is not None:
            goal = "standard" if candidate.goal is None else goal_text(candidate.goal)
            target = self.file[2] if self.file else None
            facts = facts_for(self.table, target, candidate.model, goal, self.seed)
        save_model(self.fit(candidate), path, facts)

    def _weight_argument(self, candidate: Candidate) -> str | None:
        """How a candidate is given weights of rows, if there are any that it takes."""
        if self.sample_weight is None:
            return None
        own = weight_argument(self.models[candidate.model])
        return own if candidate.goal is None else "sample_weight"

    def code(self, candidate: Candidate) -> str:
        """Python that ends in a fitted ``model``."""
        learner = self.models[candidate.model]
        if isinstance(learner, FrozenEstimator) and isinstance(learner.estimator, GivenRows):
            return self._tuning_code(candidate, learner.estimator)
        names, lines = list[str](), list[str]()
        if candidate.model in self.kinds:
            columns = "X" if self.blocks is None else self.blocks.columns
            own = f"learner_for({columns}, {candidate.model!r}, random_state={self.seed})"
        else:
            own = f"models[{candidate.model!r}]"
        if candidate.goal is None and self.blocks is None:
            frozen = isinstance(self.models[candidate.model], FrozenEstimator)
            if candidate.model not in self.kinds and not frozen:
                names, own = [], f"clone({own})"
                lines += ["from sklearn.base import clone"]
            made, fits = own, not frozen
        else:
            made, names, fits = *self._robust(candidate, own), True
        if names:
            lines.append(f"from equipoise import {', '.join(sorted(names))}")
        lines += self.loading
        key, body = self._weight_argument(candidate), f"model = {made}"
        if fits:
            rows = "X, y" if self.blocks is None else self.blocks.rows
            body += f"\nmodel.fit({rows}{f', {key}=sample_weight' if key else ''})"
        if self.blocks is not None and self.blocks.opening:
            body = f"{self.blocks.opening}\n{indent(body, '    ')}"
        return "\n".join([*lines, body]) + "\n"

    def _tuning_code(self, candidate: Candidate, given: GivenRows) -> str:
        """Python that tunes weights for given probabilities; ``model.decide`` decides others."""
        goal, names = _written(candidate.goal or as_goal("standard"))
        own = f"predictions[{candidate.model!r}]"
        options = f"classes={given.classes_.tolist()!r}, {_RARE}, random_state={self.seed}"
        if self.sample_weight is not None:
            options = f"sample_weight=sample_weight, {options}"
        lines = [
            f"from equipoise import {', '.join(sorted({'tune_weights', *names}))}",
            *self.loading,
            f"model = tune_weights(y, {own}, {goal}, {options})",
            f"decided = model.decide({own})",
        ]
        return "\n".join(lines) + "\n"

    def _robust(self, candidate: Candidate, own: str) -> tuple[str, list[str]]:
        """The classifier for a goal as Python, and the names that are imported for it."""
        options = f"cv={self.cv}, {_RARE}, random_state={self.seed}"
        for name, value in ({} if self.blocks is None else self.blocks.sample).items():
            options += f", {name}={value!r}"
        if candidate.training != "plain":
            options = f"training={candidate.training!r}, {options}"
        if candidate.price is not None:
            made = _call("RobustClassifier", own, options)
            path = _call("RobustnessCV", made, f"rule='price', price={candidate.price:g}")
            return path, ["RobustClassifier", "RobustnessCV"]
        goal, names = _written(candidate.goal or as_goal("standard"))
        return _call("RobustClassifier", own, goal, options), ["RobustClassifier", *names]

    def command(self, candidate: Candidate) -> str | None:
        """The line of the command line that saves the candidate; None where there is none."""
        if not self.file or candidate.model not in self.kinds or candidate.price is not None:
            return None
        training = ["--training", candidate.training] if candidate.training != "plain" else []
        if self.blocks is not None and not _is_sampled(candidate, self.blocks):
            return None
        goal = "standard" if candidate.goal is None else goal_text(candidate.goal)
        seed = ["--seed", str(self.seed)] if self.seed else []
        words = ["equipoise", "fit", *self.file, "--model", candidate.model, "--goal", goal]
        return " ".join(map(quote, [*words, *training, *seed, "--out", "model.equipoise"]))


def _is_sampled(candidate: Candidate, blocks: InBlocks) -> bool:
    """Whether the command line draws the same sample, and does not fit to all rows in passes."""
    passes = candidate.model == "linear" and isinstance(candidate.goal, SetGoal | None)
    return not passes and "sample_rows" not in blocks.sample


def _call(name: str, *arguments: str) -> str:
    """A call with a line for each argument."""
    return "\n".join([f"{name}(", *(indent(each, "    ") + "," for each in arguments), ")"])


def _written(goal: Any) -> tuple[str, set[str]]:
    """A goal as Python, and the names that are imported for it."""
    text = goal_text(goal)
    if _WORD.fullmatch(text):
        return repr(text), set()
    return text, {name for name in _NAME.findall(text) if name in goal_names()}
