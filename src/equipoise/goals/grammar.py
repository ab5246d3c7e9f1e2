"""Goals as texts: what ``repr`` prints, read back without executing anything.

====================================  ==========================================================
``LabelCVaR(alpha=0.1)``              a set or another goal as in Python: one call of a
``PriorBox(upper={'fraud': 0.05})``   registered name, with literals or further goals in it
``standard``, ``balanced``            one weighting
``worst_class``                       any weighting
``lcvar:0.1``                         ``LabelCVaR(alpha=0.1)``
``f1_macro``, ``f1``, ...             a metric
====================================  ==========================================================
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import NDArray
from equipoise.exceptions import ClassMismatchError, InvalidInputError, in_a_sentence
from equipoise.goals.metric_goal import LIKELY_METRICS, METRIC_NAMES, is_metric
from equipoise.goals.registry import GOALS, as_goal
from equipoise.metrics.fractional import LinearFractional
from equipoise.sets import SETS, WORDS, as_uncertainty
from equipoise.text import did_you_mean, listing

# Goals of one word.
GOAL_WORDS = (*WORDS, *METRIC_NAMES)


def goal_names() -> dict[str, type[Any]]:
    """What is written as a call: sets, other goals, and metrics by their coefficients.

    Examples
    --------
    >>> goal_names()["RecallFloors"].__name__
    'RecallFloors'
    """
    return {**SETS, **GOALS, "LinearFractional": LinearFractional}


def parse_goal(text: str) -> Any:
    """What an argument ``goal`` takes, from its text: as ``repr`` prints it, or a short word.

    A metric stays its name.

    Examples
    --------
    >>> parse_goal("PriorBox(upper={'fraud': 0.05})")
    PriorBox(upper={'fraud': 0.05})
    >>> parse_goal("lcvar:0.1")
    LabelCVaR(alpha=0.1)
    """
    written = re.sub(r"^lcvar:(.+)", r"LabelCVaR(\1)", text.strip())
    if written in WORDS:
        return as_uncertainty(written)
    kinds = (TypeError, ValueError, AttributeError, ArithmeticError)
    with in_a_sentence(f"{listing([text])} cannot be used", *kinds):
        if is_metric(written):
            as_goal(written).resolve([0.5, 0.5])
            return written
        tree = _tree(written)
        goal = _recipe(tree, written)
        if not any(isinstance(part, ast.Dict | ast.List | ast.Tuple) for part in ast.walk(tree)):
            # It names no class, so that it can be checked before the classes are known.
            as_goal(goal).resolve([0.5, 0.5])
        return goal


def _tree(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not text.startswith(tuple(f"{name}(" for name in goal_names())):
            raise _unknown(text, text) from None
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise _wrong(text, f"it cannot be read as Python ({reason})") from None


def _recipe(node: ast.expr, text: str) -> Any:
    """The goal of one call."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.id if isinstance(called, ast.Name) else ""
    kind = goal_names().get(name)
    if kind is None:
        raise _unknown(text, name or text)
    signature = inspect.signature(kind)
    takes = f"{name} takes {', '.join(signature.parameters) or 'nothing'}"
    if not isinstance(node, ast.Call):
        raise _wrong(text, f"{takes}: write it as a call, {name}(...)")
    args = [_value(arg, text) for arg in node.args]
    keywords: dict[str, Any] = {}
    for part in node.keywords:
        if part.arg is None or part.arg not in signature.parameters:
            raise _wrong(text, f"{takes}, not {part.arg or '**'!r}")
        if part.arg in keywords:
            raise _wrong(text, f"it says {part.arg!r} twice")
        keywords[part.arg] = _value(part.value, text)
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise _wrong(text, f"{takes}: {error}") from error
    return kind(*args, **keywords)


def _value(node: ast.expr, text: str) -> Any:
    """A literal, or a goal inside another."""
    match node:
        case ast.Call():
            return _recipe(node, text)
        case ast.List():
            return [_value(item, text) for item in node.elts]
        case ast.Tuple():
            return tuple(_value(item, text) for item in node.elts)
        case ast.Dict():
            keys = [_plain(key, text) for key in node.keys]
            if len(set(keys)) < len(keys):
                raise _wrong(text, f"it names {Counter(keys).most_common(1)[0][0]!r} twice")
            return dict(zip(keys, (_value(value, text) for value in node.values), strict=True))
    return _plain(node, text)


def _plain(node: ast.expr | None, text: str) -> Any:
    """A number, a text, a truth value or None."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.Name(id="inf" | "nan"):
            return float(node.id)
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float()) | ast.Name(id="inf" | "nan")
        ):
            return -_plain(node.operand, text)
    shown = listing([ast.get_source_segment(text, node) or "" if node else "**"])
    raise _wrong(text, f"{shown} should be a number, a text, a list or a dict")


def _wrong(text: str, reason: str) -> InvalidInputError:
    return InvalidInputError(f"{listing([text])} is no goal: {reason}.")


def _unknown(text: str, name: str) -> InvalidInputError:
    level = re.search(r"0?\.\d+", name) or ["0.1"]
    words = [*WORDS, *LIKELY_METRICS, f"lcvar:{level[0]}"]
    hint = did_you_mean(name, words, goal_names())
    return InvalidInputError(
        f"{listing([text])} is no goal{hint}: the words are {', '.join(GOAL_WORDS)} and "
        f"lcvar:ALPHA, and others are written as in Python, such as LabelCVaR(alpha=0.1), with one "
        f"of {', '.join(goal_names())}."
    )


def bind_classes(goal: Any, classes: NDArray[Any]) -> Any:
    """The goal with its class names replaced by the classes that they stand for.

    A class is recognised by its text, so that ``1`` and ``"1"`` are one class.

    Examples
    --------
    >>> bind_classes(parse_goal("PriorBox(upper={'1': 0.05})"), np.array([0, 1]))
    PriorBox(upper={1: 0.05})
    """
    if isinstance(goal, BaseEstimator):
        parameters = goal.get_params(deep=False)
        return type(goal)(
            **{name: bind_classes(part, classes) for name, part in parameters.items()}
        )
    if isinstance(goal, list | tuple):
        return type(goal)(bind_classes(item, classes) for item in goal)
    if not isinstance(goal, Mapping):
        return goal
    names = {str(name): name for name in np.asarray(classes).tolist()}
    unknown = [key for key in goal if str(key) not in names]
    if unknown:
        raise ClassMismatchError(
            f"The goal names class {unknown[0]!r}; the classes are {listing(names)}."
        )
    return {names[str(key)]: bind_classes(item, classes) for key, item in goal.items()}


def format_goal(goal: Any) -> str:
    """The text of a goal that :func:`parse_goal` reads back: its ``repr``, never shortened.

    Examples
    --------
    >>> from equipoise import FixedWeights
    >>> format_goal("f1_macro"), format_goal(FixedWeights(np.array([1.0, 5.0])))
    ('f1_macro', 'FixedWeights(weights=[1.0, 5.0])')
    """
    return goal if isinstance(goal, str) else _literal(goal)


def _literal(value: Any) -> str:
    """A value as Python writes it, NumPy's as plain ones, a recipe without its defaults."""
    if isinstance(value, np.ndarray | np.generic):
        return _literal(value.tolist())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(value[key])}' for key in value)}}}"
    if isinstance(value, list | tuple):
        # Where a list is taken a tuple is too.
        return f"[{', '.join(map(_literal, value))}]"
    if not isinstance(value, BaseEstimator | LinearFractional):
        return repr(value)
    known = inspect.signature(type(value)).parameters
    texts = {name: _literal(getattr(value, name)) for name in sorted(known)}
    changed = (f"{k}={text}" for k, text in texts.items() if text != repr(known[k].default))
    return f"{type(value).__name__}({', '.join(changed)})"
