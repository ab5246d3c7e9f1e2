"""What the state of a loss belongs to: its set, classes and priors, kept in checkpoints.

Conventions
-----------
A *description* is a dict of plain Python values. In a checkpoint it is a tensor of bytes, so that
everything that copies, moves or stores the tensors of a ``state_dict`` takes it as well.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from equipoise.arrays import NDArray
from equipoise.exceptions import InvalidInputError
from equipoise.sets import Uncertainty
from equipoise.text import listing

# Relative difference of class priors that rounding may make on another machine.
_PRIOR_DIFFERENCE = 1e-9
# Characters of a set in a message, beyond which it is cut: a line and a half.
_LONGEST_SET = 120


def describe(
    goal: Uncertainty, classes: NDArray[Any], prior: NDArray[np.float64]
) -> dict[str, Any]:
    """A description of the goal of a loss."""
    params = goal.get_params(deep=False)
    return {
        "set": [type(goal).__name__, _plain(params)],
        "classes": _plain(classes),
        "prior": prior.tolist(),
    }


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def as_bytes(description: dict[str, Any]) -> Any:
    """The description as a tensor."""
    return torch.tensor(list(json.dumps(description).encode()), dtype=torch.uint8)


def check_description(state: Any, ours: dict[str, Any]) -> None:
    """Refuse the state of a loss for another set, other classes or other priors."""
    theirs = json.loads(bytes(state.tolist()))
    difference = _difference(theirs, json.loads(json.dumps(ours)))
    if difference:
        raise InvalidInputError(
            f"The state must be that of a RobustLoss for the same set, classes and priors, got "
            f"{difference}: make the loss as it was when the state was saved, or train this one "
            "from its start without the state."
        )


def _difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """The first thing in which two descriptions differ, with both values."""
    if theirs["set"] != ours["set"]:
        return f"a state of {_set_text(*theirs['set'])} for {_set_text(*ours['set'])}"
    if len(theirs["classes"]) != len(ours["classes"]):
        return f"a state of {len(theirs['classes'])} classes for {len(ours['classes'])}"
    if theirs["classes"] != ours["classes"]:
        return f"a state of classes {listing(theirs['classes'])} for {listing(ours['classes'])}"
    apart = np.abs(np.subtract(theirs["prior"], ours["prior"])) / np.array(ours["prior"])
    worst = int(apart.argmax())
    if apart[worst] <= _PRIOR_DIFFERENCE:
        return None
    return (
        f"a state with the prior {theirs['prior'][worst]:.6g} of class {ours['classes'][worst]!r} "
        f"for one with {ours['prior'][worst]:.6g}"
    )


def _set_text(name: str, params: dict[str, Any]) -> str:
    text = f"{name}({', '.join(f'{key}={value!r}' for key, value in params.items())})"
    return text if len(text) <= _LONGEST_SET else f"{text[:_LONGEST_SET]}..."
