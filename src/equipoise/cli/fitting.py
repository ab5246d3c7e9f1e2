"""The work behind ``equipoise fit``: read, judge on rows set aside, fit to all, save."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from equipoise.cli.judgement import Judgement, judge
from equipoise.cli.output import Voice
from equipoise.cli.paths import check_output
from equipoise.cli.uncertainty import check_for, format_uncertainty
from equipoise.exceptions import (
    EquipoiseError,
    EquipoiseWarning,
    InactiveCapsWarning,
    InvalidInputError,
)
from equipoise.models import TrainingFacts, save_model
from equipoise.sets import Uncertainty
from equipoise.tables import hold_out, model_for, read_labelled

_STEPS = 4


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    table: str
    target: str
    out: str
    kind: str
    uncertainty: Uncertainty
    strength: float
    drop: tuple[str, ...]
    text_labels: bool
    share: float
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    facts: TrainingFacts
    judgement: Judgement | None


def fitted(request: Request, voice: Voice) -> Outcome:
    """Fit, save and report."""
    check_output(request.out, request.table)
    with voice.progress(_STEPS, "Reading") as bar:
        table = read_labelled(
            request.table, request.target, drop=request.drop, text_labels=request.text_labels
        )
        X, y = table.X, table.y
        recipe = check_for(request.uncertainty, table.prior, table.classes)
        bar.reach(1, "Judging")
        found = _judged(request, recipe, X, y)
        bar.reach(2, "Fitting")
        model, said = _fit(request, recipe, X, y)
        bar.reach(3, "Saving")
        facts = TrainingFacts(
            target=request.target,
            columns=table.columns,
            classes=tuple(table.classes.tolist()),
            counts=tuple(table.counts.tolist()),
            model=request.kind,
            uncertainty=format_uncertainty(recipe),
            seed=request.seed,
            held_out=None if found is None else found.held_out(request.share),
            notes=(*table.warnings, *said),
        )
        save_model(model, facts, request.out)
        bar.reach(4)
    return Outcome(facts, found)


def _judged(request: Request, recipe: Uncertainty, X: Any, y: Any) -> Judgement | None:
    """Class risks of a fit to some rows on the others; None where none can be set aside."""
    train, test = hold_out(X, y, request.share, request.seed)
    if len(test) == 0:
        return None
    model, _ = _fit(request, recipe, X.iloc[train], y[train])
    return judge(y[test], model.predict(X.iloc[test]), np.unique(y), recipe)


def _fit(request: Request, recipe: Uncertainty, X: Any, y: Any) -> tuple[Any, list[str]]:
    """A fitted model, and what the fit warned of."""
    rarest = int(np.unique(y, return_counts=True)[1].min())
    model = model_for(
        X, request.kind, recipe, C=request.strength, random_state=request.seed, rarest=rarest
    )
    with _sentences(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [_told(w, recipe) for w in caught if issubclass(w.category, _OF_INTEREST)]
    return model, list(dict.fromkeys(told))


def _told(warning: warnings.WarningMessage, recipe: Uncertainty) -> str:
    if not issubclass(warning.category, InactiveCapsWarning):
        return str(warning.message)
    # The library's sentence speaks of Python's names.
    return (
        f"The bounds of {format_uncertainty(recipe)} bind nowhere for these class shares: the fit "
        "is that of worst-class. Name that set to say so, or tighten the bounds."
    )


_OF_INTEREST = (EquipoiseWarning, ConvergenceWarning)


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except EquipoiseError:
        raise
    except MemoryError as error:
        raise InvalidInputError("The model does not fit into memory: use fewer rows.") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        detail = " ".join(str(error).split())[:300].rstrip(".")
        raise InvalidInputError(f"The model cannot be fitted to this table: {detail}.") from error
