"""Goals as texts: what ``repr`` prints, read back without executing anything.

====================================  ==========================================================
``LabelCVaR(alpha=0.1)``              a set or another goal as in Python: one call of a
``PriorBox(upper={'fraud': 0.05})``   registered name, with literals or further goals in it
``standard``, ``balanced``            one weighting
``worst-class``                       any weighting
``lcvar:0.1``                         ``LabelCVaR(alpha=0.1)``
``macro_f1``, ``f1``, ...             a metric
====================================  ==========================================================
"""

import ast
import inspect
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from equipoise.exceptions import ClassMismatchError, InvalidInputError, in_a_sentence
from equipoise.goals.metric_goal import METRIC_NAMES, is_metric
from equipoise.goals.registry import GOALS, WORDS, as_goal
from equipoise.metrics.fractional import LinearFractional
from equipoise.sets import SETS, LabelCVaR
from equipoise.text import listing

# Longer texts are no goals, and would take long to be refused.
_LONGEST = 1 << 20
_LONGEST_SHOWN = 200
_LITERALS = (bool, int, float, str, type(None))


def goal_words() -> list[str]:
    """Goals of one word.

    Examples
    --------
    >>> goal_words()[:4]
    ['worst-class', 'balanced', 'standard', 'accuracy']
    """
    return [*WORDS, *METRIC_NAMES]


def goal_names() -> dict[str, type[Any]]:
    """What is written as a call: sets, other goals, and metrics by their coefficients.

    Examples
    --------
    >>> goal_names()["RecallFloors"].__name__
    'RecallFloors'
    """
    return {**SETS, **GOALS, "LinearFractional": LinearFractional}


def parse_goal(text: str) -> Any:
    """What an argument ``goal`` takes, from its text.

    Parameters
    ----------
    text : str
        A goal as ``repr`` prints it, or one of the short words.

    Returns
    -------
    goal : Uncertainty, Goal, LinearFractional or str
        A metric stays its name.

    Examples
    --------
    >>> parse_goal("PriorBox(upper={'fraud': 0.05})")
    PriorBox(upper={'fraud': 0.05})
    >>> parse_goal("lcvar:0.1")
    LabelCVaR(alpha=0.1)
    """
    stripped = text.strip()
    if stripped in WORDS:
        return clone(WORDS[stripped])
    with in_a_sentence(f"{_short(text)} cannot be used", TypeError, ValueError, AttributeError):
        goal = _read(stripped)
        if not _names_classes(goal):
            # What can be checked before the classes are known.
            as_goal(goal).resolve([0.5, 0.5])
        return goal


def _read(text: str) -> Any:
    if is_metric(text):
        return text
    short, _, value = text.partition(":")
    if short != "lcvar" or not value:
        return _parsed(text)
    try:
        return LabelCVaR(float(value))
    except ValueError:
        raise _wrong(text, f"{value!r} should be a number, as in lcvar:0.1") from None


def _parsed(text: str) -> Any:
    """The recipe of one call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node = ast.parse(text[:_LONGEST], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not text.startswith(tuple(f"{name}(" for name in goal_names())):
            raise _unknown(text, text) from None
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise _wrong(text, f"it cannot be read as Python ({reason})") from None
    if not isinstance(node, ast.Call | ast.Name):
        raise _unknown(text, text)
    return _recipe(node, text)


def _recipe(node: ast.Call | ast.Name, text: str) -> Any:
    function = node.func if isinstance(node, ast.Call) else node
    name = ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else ""
    if name not in goal_names():
        raise _unknown(text, name)
    signature = inspect.signature(goal_names()[name])
    takes = f"{name} takes {', '.join(signature.parameters) or 'nothing'}"
    if not isinstance(node, ast.Call):
        raise _wrong(text, f"{takes}: write it as a call, {name}(...)")
    args = [_value(arg, text) for arg in node.args]
    given: dict[str, Any] = {}
    for part in node.keywords:
        if part.arg is None or part.arg not in signature.parameters:
            raise _wrong(text, f"{takes}, not {part.arg or '**'!r}")
        if part.arg in given:
            raise _wrong(text, f"it says {part.arg!r} twice")
        given[part.arg] = _value(part.value, text)
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        raise _wrong(text, f"{takes}: {error}") from error
    return goal_names()[name](*args, **given)


def _value(node: ast.AST, text: str) -> Any:
    """A literal, or a goal inside another."""
    if isinstance(node, ast.List | ast.Tuple):
        items = [_value(item, text) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict):
        keys = [_plain(key, text) for key in node.keys]
        if len(set(keys)) < len(keys):
            raise _wrong(text, f"it names {max(keys, key=keys.count)!r} twice")
        return dict(zip(keys, (_value(value, text) for value in node.values), strict=True))
    return _recipe(node, text) if isinstance(node, ast.Call) else _plain(node, text)


def _plain(node: ast.AST | None, text: str) -> Any:
    """A number, a text, a truth value or None."""
    sign, inner = 1, node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, inner = -1, node.operand
    if isinstance(inner, ast.Name) and inner.id in ("inf", "nan"):
        return sign * float(inner.id)
    if isinstance(inner, ast.Constant) and isinstance(inner.value, _LITERALS):
        if sign == 1:
            return inner.value
        if isinstance(inner.value, int | float):
            return -inner.value
    written = ast.get_source_segment(text, node) if isinstance(node, ast.expr) else None
    raise _wrong(text, f"{_short(written or '**')} should be a number, a text, a list or a dict")


def _wrong(text: str, reason: str) -> InvalidInputError:
    return InvalidInputError(f"{_short(text)} is no goal: {reason}.")


def _unknown(text: str, name: str) -> InvalidInputError:
    known = [*goal_words(), "lcvar:0.1", *goal_names()]
    near = get_close_matches(name[:_LONGEST_SHOWN], known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return InvalidInputError(
        f"{_short(text)} is no goal{hint}: the words are {', '.join(goal_words())} and "
        f"lcvar:ALPHA, and others are written as in Python, such as LabelCVaR(alpha=0.1), with one "
        f"of {', '.join(goal_names())}."
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")


def _names_classes(value: Any) -> bool:
    """Whether a goal speaks of classes, by name or by position."""
    if isinstance(value, BaseEstimator):
        return any(map(_names_classes, value.get_params(deep=False).values()))
    return isinstance(value, Mapping | list | tuple | np.ndarray)


def bind_classes(goal: Any, classes: NDArray[Any]) -> Any:
    """The goal with its class names replaced by the classes that they stand for.

    A class is recognised by its text, so that ``1`` and ``"1"`` are one class.

    Examples
    --------
    >>> bind_classes(parse_goal("PriorBox(upper={'1': 0.05})"), np.array([0, 1]))
    PriorBox(upper={1: 0.05})
    """
    return _bound(goal, {str(name): name for name in np.asarray(classes).tolist()})


def _bound(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, BaseEstimator):
        given = value.get_params(deep=False)
        return type(value)(**{name: _bound(part, names) for name, part in given.items()})
    if isinstance(value, list | tuple):
        return type(value)(_bound(item, names) for item in value)
    if not isinstance(value, Mapping):
        return value
    unknown = [key for key in value if str(key) not in names]
    if unknown:
        raise ClassMismatchError(
            f"The goal names class {unknown[0]!r}; the classes are {listing(names)}."
        )
    return {names[str(key)]: _bound(item, names) for key, item in value.items()}


def format_goal(goal: Any) -> str:
    """The text of a goal that :func:`parse_goal` reads back: its ``repr``, never shortened.

    Examples
    --------
    >>> format_goal(parse_goal("worst-class"))
    'WorstClass()'
    >>> from equipoise import FixedWeights
    >>> format_goal(FixedWeights(np.array([1.0, 5.0])))
    'FixedWeights(weights=[1.0, 5.0])'
    """
    return goal if isinstance(goal, str) else _literal(goal)


def _literal(value: Any) -> str:
    """A value as Python writes it, and NumPy's as plain ones."""
    if isinstance(value, np.ndarray | np.generic):
        return _literal(value.tolist())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(value[key])}' for key in value)}}}"
    if isinstance(value, list | tuple):
        # Where a list is taken a tuple is too.
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, BaseEstimator):
        return _call(value, value.get_params(deep=False))
    return _call(value, vars(value)) if isinstance(value, LinearFractional) else repr(value)


def _call(recipe: Any, values: Mapping[str, Any]) -> str:
    """A call with the arguments that are not the defaults, as ``repr`` has it."""
    known = inspect.signature(type(recipe)).parameters
    given = {name: _literal(value) for name, value in values.items()}
    changed = (f"{k}={text}" for k, text in given.items() if text != repr(known[k].default))
    return f"{type(recipe).__name__}({', '.join(changed)})"
