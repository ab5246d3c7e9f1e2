"""Saving and loading fitted models."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from equipoise.arrays import NDArray
from equipoise.decisions.classifiers import last_step
from equipoise.decisions.trained import AveragedTrainings
from equipoise.estimators.population_probabilities import population_proba, prior_of
from equipoise.exceptions import InvalidInputError, in_a_sentence
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.persistence import archive
from equipoise.persistence.document import ModelReader, written
from equipoise.persistence.kinds import example_row
from equipoise.persistence.training_facts import TrainingFacts
from equipoise.tables import conform

# MOST_VALUES: feature values that are computed at a time (256 MiB of float64).
MOST_VALUES = 1 << 25


@dataclass(frozen=True)
class SavedModel:
    """A fitted model with the facts of its training.

    Attributes
    ----------
    model : estimator
        The model itself, which takes the features that it was fitted to.
    facts : TrainingFacts
    notes : tuple of str
        Warnings of loading, such as another version of scikit-learn.

    Examples
    --------
    >>> from equipoise import RobustLogisticRegression
    >>> model = RobustLogisticRegression("balanced").fit([[0.0], [1.0]], ["no", "yes"])
    >>> SavedModel(model, TrainingFacts.from_model(model)).predict([[2.0]]).tolist()
    ['yes']
    """

    model: Any
    facts: TrainingFacts
    notes: tuple[str, ...] = ()

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row of a table that has the training columns, in any order.

        Without columns in the facts, rows are the features that the model takes.
        """
        return np.asarray(self._call("predict", X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of each row, columns in the order of ``facts.classes``."""
        return np.asarray(self._call("predict_proba", X), dtype=np.float64)

    def population_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities for the class frequencies of the population."""
        return np.asarray(self._call("population_proba", X), dtype=np.float64)

    def _call(self, method: str, X: Any) -> Any:
        rows, start = X, "The model cannot predict these rows"
        if self.facts.columns is not None:
            rows = conform(X, self.facts.columns)
            start = "The model cannot predict: it does not fit its own training facts"
        with in_a_sentence(start, Exception):
            last, classes, n_rows = last_step(self.model), self.facts.classes, _num_samples(rows)
            call = getattr(last, "predict" if method == "predict" else "predict_proba")
            # Models of scikit-learn have no class prior: their probabilities are those of the rows.
            if method == "population_proba" and prior_of(last) is not None:
                call = partial(population_proba, last)
            # A model may make many features of a row.
            step = max(1, MOST_VALUES // _width(last))
            parts = (slice(start, start + step) for start in range(0, n_rows, step))
            pieces = [rows] if n_rows <= step else (_safe_indexing(rows, part) for part in parts)
            before: Any = self.model[:-1] if isinstance(self.model, Pipeline) else ()
            made = (before.transform(piece) if len(before) else piece for piece in pieces)
            output = np.concatenate([np.asarray(call(piece)) for piece in made])
            wanted = (n_rows, len(classes))[: 1 if method == "predict" else 2]
            if output.shape != wanted:
                raise ValueError(f"shape {output.shape} instead of {wanted}")
            # A row that is abstained from is None.
            known = set(classes) | ({None} if getattr(last, "may_abstain", False) else set())
            if method == "predict" and not set(output.tolist()) <= known:
                raise ValueError("classes that it was not trained on")
        return output


def _width(model: Any) -> int:
    """The number of features of the innermost estimator."""
    while isinstance(model, AveragedTrainings) or hasattr(model, "estimator_"):
        averaged = isinstance(model, AveragedTrainings)
        model = last_step(model.estimators[0] if averaged else model.estimator_)
    return max(1, getattr(model, "n_features_in_", 1))


def save_model(model: Any, path: str | Path, facts: TrainingFacts | None = None) -> None:
    """Write a fitted model and the facts of its training into one file, whole or not at all.

    The file cannot execute code when it is loaded. Use it in place of pickle.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, a ``LogisticRegression``, ``RandomForestClassifier`` or
        ``HistGradientBoostingClassifier``, or a pipeline that ends in one, after a
        ``ColumnTransformer``, imputers, scalers and encoders such as
        :func:`equipoise.tables.model_for` has. Others are refused (boosters of LightGBM, XGBoost
        and CatBoost among them), and so are parameters that are no plain values, sets or goals,
        such as ``make_column_selector``: give the names of the columns.
        :func:`equipoise.onnx.to_onnx` writes many of the others, boosters included. ``joblib.dump``
        writes all models, but a pickle runs code when it is loaded: load only your own. ``n_jobs``
        is not saved.
    path : str or Path
        The file to write, which ends in ``.equipoise``.
    facts : TrainingFacts, optional
        Facts of the training; by default those that the model itself records.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from equipoise import RobustLogisticRegression, load_model, save_model
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> model = RobustLogisticRegression("worst_class").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.equipoise")
    ...     loaded = load_model(Path(folder) / "model.equipoise")
    >>> loaded.facts.goal, bool((loaded.predict(X) == model.predict(X)).all())
    ('worst_class', True)
    """
    check_suffix(path)
    data = to_bytes(model, TrainingFacts.from_model(model) if facts is None else facts)
    with atomic_write(path) as stream:
        stream.write(data)


def check_suffix(path: str | Path) -> None:
    """Refuse a file name with another suffix than that of model files."""
    if Path(path).suffix != archive.SUFFIX:
        raise InvalidInputError(
            f"The name of a model file ends in {archive.SUFFIX}, got {str(path)!r}: no other "
            "program reads it."
        )


def to_bytes(model: Any, facts: TrainingFacts) -> bytes:
    """The bytes of a model file, equal for equal models and facts; they can be loaded."""
    try:
        arrays: dict[str, bytes] = {}
        text = json.dumps(written(model, arrays)).encode()
        data = archive.packed({archive.FACTS: facts.to_json(), archive.MODEL: text, **arrays})
        _loaded(data, "it cannot be read back")
    except InvalidInputError as error:
        reason = str(error).rstrip(".")
        raise InvalidInputError(f"The model cannot be saved: {reason}.") from error
    return data


def load_model(path: str | Path) -> SavedModel:
    """Read a model that :func:`save_model` wrote; nothing in the file is executed.

    A file that is damaged, of another format or too large, or that has values that no fit produces,
    is refused in a sentence. An untrusted model may still predict anything: see ``SECURITY.md``.

    Examples
    --------
    >>> from equipoise import load_model
    >>> load_model("nowhere.equipoise")
    Traceback (most recent call last):
    equipoise.exceptions.InvalidInputError: There is no model nowhere.equipoise.
    """
    place = Path(path)
    if place.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder; give the path of a model inside it.")
    if not place.exists():
        raise InvalidInputError(f"There is no model {path}.")
    with place.open("rb") as stream:
        data = stream.read(archive.MAX_BYTES + 1)
    if len(data) > archive.MAX_BYTES:
        raise InvalidInputError(
            f"{path} is larger than any model: {archive.MAX_BYTES} bytes at most."
        )
    return from_bytes(data, str(path))


def from_bytes(data: bytes, name: str = "The model") -> SavedModel:
    """A model from the bytes of its file; ``name`` is what errors call it."""
    if not data.startswith(b"PK"):
        raise InvalidInputError(
            f"{name} is not a model: save_model and 'equipoise fit' write models, and they are zip "
            "archives."
        )
    try:
        loaded = _loaded(data, "it is damaged")
    except InvalidInputError as error:
        reason = str(error).rstrip(".")
        raise InvalidInputError(f"{name} cannot be loaded: {reason}.") from error
    other = loaded.facts.other_versions()
    return replace(loaded, notes=(other,) if other else ())


def _loaded(data: bytes, problem: str) -> SavedModel:
    with in_a_sentence(problem, Exception), warnings.catch_warnings(action="ignore"):
        members = archive.unpacked(data)
        facts = TrainingFacts.from_json(members.pop(archive.FACTS))
        text = archive.parsed(members.pop(archive.MODEL), archive.MODEL)
        loaded = SavedModel(ModelReader(members).read(text), facts)
        if np.asarray(loaded.model.classes_).tolist() != list(facts.classes):
            raise ValueError("its classes are not those of its training facts")
        # A model must be able to predict.
        if facts.columns is None:
            loaded.predict(example_row(loaded.model))
        else:
            names = [column.name for column in facts.columns]
            loaded.predict(require("pandas", extra="cli").DataFrame(index=[0], columns=names))
    return loaded
