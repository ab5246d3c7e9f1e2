"""Saving and loading fitted models."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import EquipoiseError, InvalidInputError
from equipoise.extras import require
from equipoise.files import atomic_write
from equipoise.models.archive import MAX_BYTES, checked, written
from equipoise.models.facts import TrainingFacts
from equipoise.models.sound import check_sound
from equipoise.models.trusted import TRUSTED
from equipoise.tables import conform


@dataclass(frozen=True)
class SavedModel:
    """A fitted model with the facts of its training.

    Attributes
    ----------
    model : Pipeline
        From features as :func:`equipoise.tables.conform` gives them to classes.
    facts : TrainingFacts
    notes : tuple of str
        What loading had to say: another version of scikit-learn, for one.
    """

    model: Any
    facts: TrainingFacts
    notes: tuple[str, ...] = ()

    def predict(self, frame: Any) -> NDArray[Any]:
        """The class of each row of a table that has the training columns, in any order."""
        return np.asarray(self._call("predict", frame))

    def predict_proba(self, frame: Any) -> NDArray[np.float64]:
        """Class probabilities of each row, columns in the order of ``facts.classes``."""
        return np.asarray(self._call("predict_proba", frame), dtype=np.float64)

    def predict_population_proba(self, frame: Any) -> NDArray[np.float64]:
        """Class probabilities on the scale of the training table, whatever the weights."""
        # Of models that do not reweight the rows, only the decisions, these are the only ones.
        own = hasattr(self.model[-1], "predict_population_proba")
        method = "predict_population_proba" if own else "predict_proba"
        return np.asarray(self._call(method, frame), dtype=np.float64)

    def _call(self, method: str, frame: Any) -> Any:
        rows = conform(frame, self.facts.columns)
        with _sentence("The model cannot predict: it does not fit its own training facts"):
            features = self.model[:-1].transform(rows)
            found = np.asarray(getattr(self.model[-1], method)(features))
            _check_shape(method, found, len(rows), self.facts)
        return found


def _check_shape(method: str, found: NDArray[Any], n_rows: int, facts: TrainingFacts) -> None:
    wanted = (n_rows,) if method == "predict" else (n_rows, len(facts.classes))
    if found.shape != wanted:
        raise ValueError(f"shape {found.shape} instead of {wanted}")
    if method == "predict" and not set(found.tolist()) <= set(facts.classes):
        raise ValueError("classes that it was not trained on")


@contextmanager
def _sentence(start: str) -> Iterator[None]:
    """Whatever a damaged model makes other people's code raise, as one sentence."""
    try:
        yield
    except EquipoiseError:
        raise
    except Exception as error:
        detail = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InvalidInputError(f"{start} ({detail}).") from error


def save_model(model: Any, facts: TrainingFacts, path: str | Path) -> None:
    """Write a fitted model and the facts of its training into one file, whole or not at all.

    Parameters
    ----------
    model : Pipeline
        A fitted pipeline of :func:`equipoise.tables.model_for`.
    facts : TrainingFacts
        What it was trained on.
    path : str or Path
        Where to; ``.skops`` is the usual ending.
    """
    with atomic_write(path) as stream:
        stream.write(to_bytes(model, facts))


def to_bytes(model: Any, facts: TrainingFacts) -> bytes:
    """The bytes of a model file, equal for equal models and facts."""
    return written(require("skops.io", extra="cli").dumps(model), facts.to_json())


def load_model(path: str | Path) -> SavedModel:
    """Read a model that :func:`save_model` wrote; nothing in the file is executed.

    A file that is damaged, or that holds anything but the types listed in
    :mod:`equipoise.models.trusted`, is refused in one sentence.
    """
    place = Path(path)
    if place.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder; give the path of a model inside it.")
    if not place.exists():
        raise InvalidInputError(f"There is no model {path}.")
    with place.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInputError(f"{path} is larger than any model: {MAX_BYTES} bytes at most.")
    return from_bytes(data, str(path))


def from_bytes(data: bytes, name: str = "The model") -> SavedModel:
    """A model from the bytes of its file; ``name`` is what errors call it."""
    if not data.startswith(b"PK"):
        raise InvalidInputError(
            f"{name} is no model: 'equipoise fit' writes models, and they are zip archives."
        )
    try:
        with _sentence("it is damaged"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            facts = TrainingFacts.from_json(checked(data))
            model = require("skops.io", extra="cli").loads(data, trusted=TRUSTED)
            check_sound(model)
            notes = _notes(caught)
            loaded = SavedModel(model, facts, notes)
            _try_out(loaded)
    except InvalidInputError as error:
        reason = str(error).rstrip(".")
        raise InvalidInputError(f"{name} cannot be loaded: {reason}.") from error
    return loaded


def _try_out(loaded: SavedModel) -> None:
    """Refuse a model that cannot predict a row of which nothing is known."""
    pandas = require("pandas", extra="cli")
    names = [column.name for column in loaded.facts.columns]
    row = pandas.DataFrame([[None] * len(names)], columns=names, dtype=object)
    classes = np.asarray(loaded.model.classes_).tolist()
    if classes != list(loaded.facts.classes):
        raise ValueError("its classes are not those of its training facts")
    loaded.predict(row)
    loaded.predict_proba(row)


def _notes(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Other versions of scikit-learn, said once."""
    from sklearn.exceptions import InconsistentVersionWarning

    found = [w.message for w in caught if isinstance(w.message, InconsistentVersionWarning)]
    if not found:
        return ()
    first = found[0]
    return (
        f"The model was fitted with scikit-learn {first.original_sklearn_version} and runs on "
        f"{first.current_sklearn_version}: its predictions may differ.",
    )
