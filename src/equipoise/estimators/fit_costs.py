"""Time and size of a fitted classifier around others, beside one fit of the base estimator."""

from __future__ import annotations

import pickle
from contextlib import suppress
from time import perf_counter
from typing import Any

from equipoise.decisions import HeldOut
from equipoise.decisions.trained import AveragedTrainings
from equipoise.decisions.tune import Tuned
from equipoise.goals import decide


def fit_costs(model: Any) -> dict[str, str]:
    """Time and size, as text; models that were loaded from a file know no times."""
    base = model.estimator_
    if isinstance(base, AveragedTrainings):
        base = base.estimators[0]
    costs, seconds = dict[str, str](), getattr(model, "seconds_", None)
    with suppress(pickle.PicklingError, TypeError, AttributeError):
        sizes = [len(pickle.dumps(each)) / 1e6 for each in (model.estimator_, base)]
        costs["model size"] = f"{sizes[0]:.3g} MB, one base model {sizes[1]:.3g} MB"
    if seconds is not None:
        once, row = seconds["one base fit"], 1e6 * seconds["base prediction"]
        n_models = len(model.estimator_.estimators) if base is not model.estimator_ else 1
        costs["time of the fit"] = (
            f"{seconds['fit']:.3g} s, {seconds['fit'] / once:.3g} times one fit of the base "
            f"estimator; tuning and evaluation took {seconds['tuning']:.3g} s"
        )
        costs["time of a prediction"] = (
            f"{n_models * row + 1e6 * seconds['decision']:.3g} us per row, base {row:.3g} us"
        )
    return costs


def seconds_of_decision(held_out: HeldOut, rules: Tuned) -> float:
    """Seconds for the decision of one row, once its probabilities are known."""
    began = perf_counter()
    decide(held_out.predictions.probabilities, rules.rule)
    return (perf_counter() - began) / len(held_out.fold)
