"""Uncertainty sets as words on a command line, and back.

=================================  =================================================================
``standard``, ``balanced``         one weighting
``weights:ham=1,spam=5``           one weighting, class by class
``worst-class``                    any weighting
``lcvar:0.1``                      no class counts more than 1/0.1 times its share
``lhcvar:c=0.5,kappa=2``           the same, with a level for each class
``weight-box:spam=1..10``          weights between bounds; ``0.5..2`` alone is for all classes
``prior-box:fraud=0.001..0.05``    class frequencies between bounds
``prior-ball:kl=0.1``              class frequencies near those of the table: kl, chi2, tv or l2
``FILE.json``                      the rest: ``{"set": "PriorBox", "upper": {"fraud": 0.05}}``
=================================  =================================================================

A bound may be left out (``spam=..10``). Names with any of ``,=:"`` or spaces around them are
written as JSON strings (``"a,b"=1``).
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise import sets
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.sets import Uncertainty

FORMS = (
    "standard, balanced, worst-class, weights:CLASS=W,..., lcvar:ALPHA, lhcvar:c=C,kappa=K, "
    "weight-box:CLASS=LOW..HIGH,..., prior-box:CLASS=LOW..HIGH,..., prior-ball:kl=RADIUS, "
    "or the name of a JSON file"
)

RECIPES: dict[str, type[Uncertainty]] = {
    recipe.__name__: recipe
    for recipe in (
        sets.FixedWeights,
        sets.LabelCVaR,
        sets.LabelHCVaR,
        sets.PriorBall,
        sets.PriorBox,
        sets.WeightBox,
        sets.WeightHull,
        sets.WorstClass,
    )
}

_MAX_FILE_BYTES = 1 << 20
# A name, bare or as a JSON string, an equals sign, and a value.
_PAIR = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^"=,][^=,]*?))\s*=\s*([^,=]*?)\s*(?:,|$)')


def parse_uncertainty(text: str) -> Uncertainty:
    """A recipe from its short form, or from a JSON file; class names stay texts.

    Examples
    --------
    >>> parse_uncertainty("lcvar:0.1")
    LabelCVaR(alpha=0.1)
    >>> parse_uncertainty("prior-box:fraud=0.001..0.05")
    PriorBox(lower={'fraud': 0.001}, upper={'fraud': 0.05})
    """
    stripped = text.strip()
    word, colon, rest = stripped.partition(":")
    if stripped.startswith("{"):
        recipe = _from_json(stripped, "the uncertainty")
    elif stripped in _WORDS:
        recipe = _WORDS[stripped]()
    elif colon and word in _READERS:
        recipe = _READERS[word](rest, stripped)
    elif stripped.lower().endswith(".json"):
        recipe = _from_file(Path(stripped))
    else:
        raise InvalidInputError(f"{text!r} is no uncertainty set; the forms are {FORMS}.")
    _check(recipe)
    return recipe


def bind_classes(recipe: Uncertainty, classes: NDArray[Any]) -> Uncertainty:
    """The recipe with its class names, which are texts, replaced by the classes they stand for."""
    names = {str(name): name for name in np.asarray(classes).tolist()}
    values = recipe.get_params(deep=False)
    bound = {name: _bound(value, names) for name, value in values.items()}
    return type(recipe)(**bound)


def _bound(value: Any, names: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        unknown = [key for key in value if str(key) not in names]
        if unknown:
            shown = ", ".join(map(repr, list(names)[:10])) + (", ..." if len(names) > 10 else "")
            raise ClassMismatchError(
                f"The uncertainty set names class {unknown[0]!r}; the classes are {shown}."
            )
        return {names[str(key)]: number for key, number in value.items()}
    if isinstance(value, list):
        return [_bound(item, names) for item in value]
    return value


# From texts


def _standard() -> Uncertainty:
    return sets.FixedWeights("standard")


def _balanced() -> Uncertainty:
    return sets.FixedWeights("balanced")


_WORDS: dict[str, Callable[[], Uncertainty]] = {
    "standard": _standard,
    "balanced": _balanced,
    "worst-class": sets.WorstClass,
}


def _lcvar(rest: str, text: str) -> Uncertainty:
    return sets.LabelCVaR(_number(rest.strip().removeprefix("alpha="), text))


def _lhcvar(rest: str, text: str) -> Uncertainty:
    given = {name: _number(value, text) for name, value in _pairs(rest, text).items()}
    unknown = sorted(set(given) - {"c", "kappa"})
    if unknown:
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: lhcvar takes c and kappa, got {unknown[0]!r}; "
            "levels by class go into a JSON file."
        )
    return sets.LabelHCVaR(**given)


def _weights(rest: str, text: str) -> Uncertainty:
    return sets.FixedWeights({k: _number(v, text) for k, v in _pairs(rest, text).items()})


def _box(recipe: type[sets.PriorBox] | type[sets.WeightBox]) -> Callable[[str, str], Uncertainty]:
    def read(rest: str, text: str) -> Uncertainty:
        if "=" not in rest:
            low, high = _range(rest, text)
            return recipe(low, high)
        ranges = {name: _range(value, text) for name, value in _pairs(rest, text).items()}
        lower = {name: low for name, (low, _) in ranges.items() if low is not None}
        upper = {name: high for name, (_, high) in ranges.items() if high is not None}
        return recipe(lower or None, upper or None)

    return read


def _ball(rest: str, text: str) -> Uncertainty:
    given = list(_pairs(rest, text).items())
    if len(given) != 1:
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: prior-ball takes one divergence and its radius, "
            "such as prior-ball:kl=0.1."
        )
    divergence, radius = given[0]
    return sets.PriorBall(_number(radius, text), divergence)


_READERS: dict[str, Callable[[str, str], Uncertainty]] = {
    "lcvar": _lcvar,
    "lhcvar": _lhcvar,
    "prior-ball": _ball,
    "prior-box": _box(sets.PriorBox),
    "weight-box": _box(sets.WeightBox),
    "weights": _weights,
}


def _pairs(rest: str, text: str) -> dict[str, str]:
    """``a=1,"b,c"=2`` as a dictionary of texts."""
    found: dict[str, str] = {}
    place = 0
    while place < len(rest):
        pair = _PAIR.match(rest, place)
        if pair is None:
            raise InvalidInputError(
                f"{text!r} is no uncertainty set: after the colon come NAME=VALUE pairs with "
                f"commas between them, got {rest[place:]!r}."
            )
        quoted, bare, value = pair.groups()
        name = str(_decoded(quoted, text)) if quoted else bare
        if name in found:
            raise InvalidInputError(f"{text!r} is no uncertainty set: it names {name!r} twice.")
        found[name] = value
        place = pair.end()
    if not found or rest.rstrip().endswith(","):
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: a NAME=VALUE pair is missing; the forms are {FORMS}."
        )
    return found


def _decoded(quoted: str, text: str) -> Any:
    try:
        return json.loads(quoted)
    except ValueError as error:
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: {quoted} is no JSON string."
        ) from error


def _number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: {value!r} should be a number; the forms are {FORMS}."
        )
    return float(number)


def _range(value: str, text: str) -> tuple[float | None, float | None]:
    low, dots, high = value.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise InvalidInputError(
            f"{text!r} is no uncertainty set: {value!r} should be a range such as 0.001..0.05, "
            "0.001.. or ..0.05."
        )
    ends = (_number(end, text) if end.strip() else None for end in (low, high))
    return next(ends), next(ends)


# From JSON


def _from_file(path: Path) -> Uncertainty:
    if not path.is_file():
        raise InvalidInputError(
            f"There is no file {path}; the forms of an uncertainty are {FORMS}."
        )
    with path.open("rb") as stream:
        data = stream.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise InvalidInputError(f"{path} is too large to describe an uncertainty set.")
    try:
        return _from_json(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not a text in UTF-8.") from error


def _from_json(text: str, name: str) -> Uncertainty:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{name} is not valid JSON: {error}.") from error
    if not isinstance(values, dict) or values.get("set") not in list(RECIPES):
        raise InvalidInputError(
            f'{name} must hold an object such as {{"set": "LabelCVaR", "alpha": 0.1}}, with one of '
            f"the sets {', '.join(RECIPES)}."
        )
    recipe = RECIPES[values.pop("set")]
    known = recipe._get_param_names()
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInputError(
            f"{name}: {recipe.__name__} has no {unknown[0]!r}; it takes "
            f"{', '.join(known) or 'nothing'}."
        )
    try:
        return recipe(**values)
    except TypeError as error:
        raise InvalidInputError(
            f"{name}: {recipe.__name__} takes {', '.join(known)} ({error})."
        ) from error


def _check(recipe: Uncertainty) -> None:
    """Check what can be checked before the classes are known."""
    if not any(_names_classes(value) for value in recipe.get_params(deep=False).values()):
        recipe.resolve([0.5, 0.5])


def _names_classes(value: Any) -> bool:
    return isinstance(value, Mapping | list | np.ndarray)


# To texts


def format_uncertainty(recipe: Uncertainty) -> str:
    """The short form of a recipe, or its JSON where it has none.

    Examples
    --------
    >>> format_uncertainty(parse_uncertainty("weight-box: spam = 1 .. 10"))
    'weight-box:spam=1..10'
    """
    text = _short_form(recipe)
    if text is not None:
        return text
    values = {"set": type(recipe).__name__, **recipe.get_params(deep=False)}
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    return json.dumps(given, ensure_ascii=False)


def _short_form(recipe: Uncertainty) -> str | None:
    writer = _WRITERS.get(type(recipe))
    return None if writer is None else writer(recipe)


def _lhcvar_form(recipe: Any) -> str | None:
    given = {"c": recipe.c, "kappa": recipe.kappa}
    levels = {name: value for name, value in given.items() if value is not None}
    return _form("lhcvar", levels) if recipe.alphas is None and levels else None


def _ball_form(recipe: Any) -> str | None:
    return (
        None
        if recipe.center is not None
        else _form("prior-ball", {recipe.divergence: recipe.radius})
    )


def _weights_form(weights: Any) -> str | None:
    if isinstance(weights, str):
        return weights
    return _form("weights", weights) if isinstance(weights, Mapping) and weights else None


def _box_form(word: str, lower: Any, upper: Any) -> str | None:
    bounds = [bound for bound in (lower, upper) if bound is not None]
    if bounds and all(isinstance(bound, float | int | np.number) for bound in bounds):
        return f"{word}:{_ends(lower)}..{_ends(upper)}"
    if not bounds or not all(isinstance(bound, Mapping) and bound for bound in bounds):
        return None
    low, high = lower or {}, upper or {}
    names = [*low, *(name for name in high if name not in low)]
    ranges = (f"{_name(name)}={_ends(low.get(name))}..{_ends(high.get(name))}" for name in names)
    return f"{word}:{','.join(ranges)}"


_WRITERS: dict[type[Uncertainty], Callable[[Any], str | None]] = {
    sets.FixedWeights: lambda recipe: _weights_form(recipe.weights),
    sets.LabelCVaR: lambda recipe: f"lcvar:{_ends(recipe.alpha)}",
    sets.LabelHCVaR: _lhcvar_form,
    sets.PriorBall: _ball_form,
    sets.PriorBox: lambda recipe: _box_form("prior-box", recipe.lower, recipe.upper),
    sets.WeightBox: lambda recipe: _box_form("weight-box", recipe.lower, recipe.upper),
    sets.WorstClass: lambda _: "worst-class",
}


def _ends(value: Any) -> str:
    # The shortest text that is read as the same number.
    return "" if value is None else repr(float(value)).removesuffix(".0")


def _form(word: str, values: Mapping[Any, Any]) -> str:
    pairs = (f"{_name(name)}={_ends(value)}" for name, value in values.items())
    return f"{word}:{','.join(pairs)}"


def _name(name: Any) -> str:
    text = str(name)
    bare = text and text == text.strip() and not set(text) & set(',=:"')
    return text if bare and text.isprintable() else json.dumps(text, ensure_ascii=True)


def _plain(value: Any) -> Any:
    """NumPy's values as JSON's."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in np.asarray(value, dtype=object).tolist()]
    return value.item() if isinstance(value, np.generic) else value


def check_for(recipe: Uncertainty, prior: Any, classes: NDArray[Any]) -> Uncertainty:
    """The recipe bound to the classes, after making sure that its set is not empty."""
    bound = bind_classes(recipe, classes)
    try:
        bound.resolve(prior, classes)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"The uncertainty set cannot be used: {error}.") from error
    return bound
