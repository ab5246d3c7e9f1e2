"""A candidate as an estimator for all rows, and as Python that a person would write."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from equipoise import sets
from equipoise.arrays import Matrix
from equipoise.blocks import Blocks
from equipoise.decisions.folds import FOLDS
from equipoise.decisions.summary import FEW_ROWS
from equipoise.decisions.trained import unfitted, weight_argument
from equipoise.estimators import RobustClassifier, tune_weights
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.goals import Goal, SetGoal, as_goal, goal_names
from equipoise.persistence import facts_for, save_model
from equipoise.report.candidates import Candidate, goal_text
from equipoise.report.design import Design
from equipoise.report.request import Request
from equipoise.tables import plain_pipeline
from equipoise.validation.prefitted import Prefitted

# Goals that are written as a word.
_WORD = re.compile(r"[a-z][a-z0-9_-]*")
_NAME = re.compile(r"\b[A-Z]\w+")
# WIDTH: characters of a line of code, which may be indented.
WIDTH = 80


class GivenColumns(Prefitted):
    """A model whose probabilities were computed elsewhere, and are columns of the rows."""

    def __init__(self, columns: slice, classes: NDArray[Any]) -> None:
        self.columns = columns
        self.classes = classes

    def predict_proba(self, X: Any) -> Matrix:
        """The columns of the model."""
        return np.asarray(X, dtype=np.float64)[:, self.columns]


@dataclass(frozen=True, eq=False)
class InBlocks:
    """Where out-of-core data is read from, here and in Python, and how a sample of it is drawn.

    Our models are made for ``columns_like``. ``opening`` is a line that opens the data, if one is
    needed, and ``rows`` is what the classifier is fitted to.
    """

    opened: Callable[[], AbstractContextManager[Blocks]]
    sample: Mapping[str, Any]
    columns_like: Any
    opening: str = ""
    rows: str = "blocks"


def bracketed(start: str, items: Sequence[str], end: str) -> str:
    """Python between brackets, on one line where there is room, else with a line for each item."""
    line, lines = f"{start}{', '.join(items)}{end}", "".join(f"{each},\n" for each in items)
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return f"{start}\n{indent(lines, '    ')}{end}"


def call(name: str, *values: str, **options: str) -> str:
    """A call in Python."""
    return bracketed(f"{name}(", [*values, *(f"{k}={v}" for k, v in options.items())], ")")


def literal(value: Any) -> str:
    r"""A value as Python, texts in double quotes where that needs no escapes.

    Examples
    --------
    >>> literal(["a", "it's", 1])
    '["a", "it\'s", 1]'
    """
    if isinstance(value, str) and value.isprintable() and not set(value) & {'"', "\\"}:
        return f'"{value}"'
    if type(value) in (list, tuple):
        inside = ", ".join(map(literal, value))
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{comma})"
    return "np.nan" if isinstance(value, float) and np.isnan(value) else repr(value)


@dataclass(eq=False)
class _Script:
    """Python with its imports; lists of column names have variables."""

    imports: dict[str, set[str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def use(self, module: str, name: str) -> str:
        """A name that is imported; of no module, a whole line."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def written(self, value: Any) -> str:
        """An estimator, or an argument of one, as an expression."""
        if isinstance(value, Pipeline):
            steps = [self.written(step) for _, step in value.steps]
            return call(self.use("sklearn.pipeline", "make_pipeline"), *steps)
        if isinstance(value, ColumnTransformer):
            parts = []
            for name, part, columns in value.transformers:
                self.variables[name] = bracketed("[", list(map(literal, columns)), "]")
                parts.append(call("", self.written(part), name))
            return call(self.use("sklearn.compose", "make_column_transformer"), *parts)
        if not isinstance(value, BaseEstimator):
            text = literal(value)
            if "np.nan" in text:
                self.use("", "import numpy as np")
            return text
        module = type(value).__module__.split("._")[0]
        if module.startswith("equipoise"):
            module = ".".join(module.split(".")[:2]).replace(".estimators", "")
        defaults = inspect.signature(type(value)).parameters
        changed = {
            name: self.written(argument)
            for name, argument in value.get_params(deep=False).items()
            if not _same(argument, defaults[name].default)
        }
        return call(self.use(module, type(value).__name__), **changed)

    def text(self, loading: Sequence[str], body: Sequence[str]) -> str:
        """The whole script: imports, where the rows come from, and what is done with them."""
        modules = {name: names for name, names in self.imports.items() if name}
        lines = sorted(self.imports.get("", ()))
        lines += [f"from {m} import {', '.join(sorted(modules[m]))}" for m in sorted(modules)]
        named = [f"{name} = {text}" for name, text in self.variables.items()]
        parts = [lines, loading, [*named, *body]]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _same(value: Any, default: Any) -> bool:
    both_nan = isinstance(value, float) and isinstance(default, float) and value != value
    return both_nan or (type(value) is type(default) and value == default)


@dataclass(frozen=True, eq=False)
class Writer:
    """The rows of a comparison, its models, and how each candidate is fitted to all rows.

    ``kinds`` are the models that are ours; ``blocks`` is there where the table is not in memory.
    """

    design: Design
    models: Mapping[str, Any]
    kinds: Sequence[str]
    request: Request
    blocks: InBlocks | None = None

    # The estimator

    def _options(self) -> dict[str, Any]:
        """Arguments of a ``RobustClassifier`` beside its model and its goal."""
        enough = np.all(self.design.table.counts >= FEW_ROWS)
        small = {} if enough else {"rare_classes": "keep", "min_rows": FEW_ROWS}
        cv = {} if self.design.cv_code == "5" else {"cv": self.design.cv}
        sample = {} if self.blocks is None else dict(self.blocks.sample)
        return {"training": "plain", **cv, **small, "random_state": self.request.seed, **sample}

    def estimator(self, candidate: Candidate) -> Any:
        """The candidate, not fitted."""
        learner = self.models[candidate.model]
        learner = learner if isinstance(learner, FrozenEstimator) else unfitted(learner)
        if candidate.goal is None and self.blocks is None:
            return learner
        goal = candidate.goal or as_goal("standard")
        aim = goal.uncertainty if isinstance(goal, SetGoal) else goal
        return RobustClassifier(learner, aim, **self._options())

    def fit(self, candidate: Candidate) -> Any:
        """The candidate, fitted to all rows; tuned weights where probabilities were given."""
        made, learner = self.estimator(candidate), self.models[candidate.model]
        if self.blocks is not None:
            with self.blocks.opened() as blocks:
                return made.fit(blocks)
        if (given := self._given(candidate)) is not None:
            return tune_weights(
                self.design.table.y,
                given.predict_proba(self.design.X),
                candidate.goal or "standard",
                classes=given.classes_,
                sample_weight=self.request.sample_weight,
                rare_classes="keep",
                min_rows=FEW_ROWS,
                random_state=self.request.seed,
            )
        if isinstance(made, FrozenEstimator):
            return made
        fit_params = {}
        if self.request.sample_weight is not None:
            key = weight_argument(learner) if candidate.goal is None else "sample_weight"
            fit_params = {key: self.request.sample_weight} if key else {}
        if self._splits_by_groups(candidate):
            fit_params["groups"] = self.request.groups
        return made.fit(self.design.X, self.design.table.y, **fit_params)

    def _given(self, candidate: Candidate) -> GivenColumns | None:
        """The probabilities of the candidate, where these are all that is known of its model."""
        inside = getattr(self.models[candidate.model], "estimator", None)
        return inside if isinstance(inside, GivenColumns) else None

    def _splits_by_groups(self, candidate: Candidate) -> bool:
        once = isinstance(self.design.cv, list)
        return self.design.kind == "groups" and candidate.goal is not None and not once

    def save(self, candidate: Candidate, path: str | Path) -> None:
        """Fit the candidate to all rows, and write it to a file of ours or of skops."""
        if Path(path).suffix == ".skops":
            skops = require("skops.io", extra="skops")
            written = skops.dumps(self.fit(candidate))
            with atomic_write(path) as stream:
                stream.write(written)
            return
        facts = None
        if candidate.model in self.kinds:
            goal = "standard" if candidate.goal is None else goal_text(candidate.goal)
            target = self.request.file[2] if self.request.file else None
            facts = facts_for(self.design.table, target, candidate.model, goal, self.request.seed)
        model = self.fit(candidate)
        if candidate.goal is not None and self.design.imports:
            # A file holds no splitter, which a fitted model does not need.
            model.set_params(cv=FOLDS)
        save_model(model, path, facts)

    # Python

    def code(self, candidate: Candidate) -> str:
        """Python that fits the candidate to all rows, predicts, and saves the model."""
        learner = self.models[candidate.model]
        imports, loading = self.request.loading
        script = _Script({module: set(names) for module, names in imports.items()})
        if (given := self._given(candidate)) is not None:
            return self._tuning_code(candidate, script, given)
        name, body, fits = self._learner_code(candidate, script, learner)
        plain = candidate.goal is None and self.blocks is None
        made = name if plain else self._robust_code(candidate, script, name)
        body.append(f"model = {made}")
        if fits or not plain:
            body.append(self._fit_code(candidate, script, learner))
        if self.blocks is None:
            body.append("predicted = model.predict(X)  # or new rows with the same columns")
        if candidate.model in self.kinds and not self.design.imports:
            body.append(f'{script.use("equipoise", "save_model")}(model, "model.equipoise")')
        elif fits:
            script.imports.setdefault("", set()).add("import joblib")
            body.append('joblib.dump(model, "model.joblib")')
        return script.text(loading, body)

    def _learner_code(
        self, candidate: Candidate, script: _Script, learner: Any
    ) -> tuple[str, list[str], bool]:
        """The expression for a model, lines that make it, and whether it is to be fitted."""
        if candidate.model in self.kinds:
            made = self._written_out(learner)
            return candidate.model, [f"{candidate.model} = {script.written(made)}"], True
        named = f"models[{literal(candidate.model)}]"
        if isinstance(learner, FrozenEstimator):
            return named, [], False
        if candidate.goal is None and self.blocks is None:
            return f"{script.use('sklearn.base', 'clone')}({named})", [], True
        return named, [], True

    def _written_out(self, learner: Any) -> Any:
        return plain_pipeline(learner, None if self.blocks is not None else self.design.X)

    def _robust_code(self, candidate: Candidate, script: _Script, name: str) -> str:
        goal = candidate.goal or as_goal("standard")
        options = {
            option: self.design.cv_code if option == "cv" else literal(value)
            for option, value in self._options().items()
        }
        for splitter in self.design.imports:
            script.use("sklearn.model_selection", splitter)
        made = script.use("equipoise", "RobustClassifier")
        return call(made, name, goal=self._goal_code(goal, script), **options)

    def _goal_code(self, goal: Goal, script: _Script) -> str:
        text = goal_line(goal)
        for name in set(_NAME.findall(text)) & set(goal_names()):
            script.use("equipoise.sets" if hasattr(sets, name) else "equipoise.goals", name)
        return text

    def _fit_code(self, candidate: Candidate, script: _Script, learner: Any) -> str:
        if self.blocks is not None:
            fit = f"model.fit({self.blocks.rows})"
            return f"{self.blocks.opening}\n    {fit}" if self.blocks.opening else fit
        words = ["X", "y"]
        if self.request.sample_weight is not None:
            made = self._written_out(learner) if candidate.model in self.kinds else learner
            key = weight_argument(made) if candidate.goal is None else "sample_weight"
            words += [f"{key}=sample_weight"] if key else []
        words += ["groups=groups"] if self._splits_by_groups(candidate) else []
        return f"model.fit({', '.join(words)})"

    def _tuning_code(self, candidate: Candidate, script: _Script, given: GivenColumns) -> str:
        """Python that tunes weights for given probabilities; ``model.decide`` takes others."""
        named, goal = (
            f"predictions[{literal(candidate.model)}]",
            candidate.goal or as_goal("standard"),
        )
        options = {"classes": literal(given.classes_.tolist())}
        if self.request.sample_weight is not None:
            options["sample_weight"] = "sample_weight"
        options |= {"rare_classes": '"keep"', "min_rows": f"{FEW_ROWS}"}
        made = call(
            script.use("equipoise", "tune_weights"),
            "y",
            named,
            self._goal_code(goal, script),
            **options,
            random_state=f"{self.request.seed}",
        )
        body = [f"model = {made}", f"predicted = model.decide({named})"]
        return script.text((), body)

    def line(self, candidate: Candidate) -> str:
        """The one line of the code that says what the candidate is."""
        ours = candidate.model in self.kinds
        name = candidate.model if ours else f"models[{literal(candidate.model)}]"
        if self._given(candidate) is not None:
            goal = candidate.goal or as_goal("standard")
            return f"tune_weights(y, predictions[{literal(candidate.model)}], {goal_line(goal)})"
        if candidate.goal is None:
            return f"{name}.fit(X, y)"
        return f'RobustClassifier({name}, goal={goal_line(candidate.goal)}, training="plain")'

    def command(self, candidate: Candidate) -> str | None:
        """The line of the command line that saves the candidate; None where there is none."""
        special = self.design.kind in ("groups", "time")
        if not self.request.file or candidate.model not in self.kinds or special:
            return None
        if self.blocks is not None and not _is_sampled(candidate, self.blocks):
            return None
        goal = "standard" if candidate.goal is None else goal_text(candidate.goal)
        seed = ["--seed", str(self.request.seed)] if self.request.seed else []
        words = ["equipoise", "fit", *self.request.file, "--model", candidate.model, "--goal", goal]
        return " ".join(map(quote, [*words, *seed, "--out", "model.equipoise"]))


def goal_line(goal: Goal) -> str:
    """A goal as an argument in Python."""
    text = goal_text(goal)
    return literal(text) if _WORD.fullmatch(text) else text


def _is_sampled(candidate: Candidate, blocks: InBlocks) -> bool:
    """Whether the command line draws the same sample, and does not fit to all rows in passes."""
    passes = candidate.model == "linear" and isinstance(candidate.goal, SetGoal | None)
    return not passes and "sample_rows" not in blocks.sample
