"""Text for people: aligned tables, shares, listings, and names that cannot upset a terminal."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from html import escape
from typing import Any

# Rows of a long table that are shown at either end: together they fit on a screen of 25 lines.
SHOWN_ROWS = 10
# Characters of a name in a table, beyond which it is cut: with a few numbers it fits into a line.
LONGEST_NAME = 60
# _BRIEF: characters of a value in a message, beyond which it is cut: a line of a terminal or two.
_BRIEF = 100
# Whole numbers below it are written out: numbers of rows, for one.
_MOST_WHOLE = 1e9
# _ALIKE: the share of letters that words have in common before one is suggested for the other.
# "roc_auc" and "f1_macro" have 0.62 in common, and nothing else.
_ALIKE = 0.65
# Parts of names that all metrics or losses share, and that do not tell them apart.
_SAYS_NOTHING = {"score", "loss"}


def text_table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: bool = False,
    gap: str = " ",
    shorten: bool = False,
) -> list[str]:
    r"""Lines with aligned columns.

    The header may be empty; a float is shown with four significant digits. With ``right`` all
    columns but the first are flush right, ``gap`` stands between columns, and ``shorten`` leaves
    out the middle of a long table.

    Examples
    --------
    >>> print(*text_table(["class", "risk"], [["cat", 0.25], ["dog", 0.5]]), sep="\n")
    class risk
    cat   0.25
    dog   0.5
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    left_out = len(cells) if shorten and len(cells) > 2 * SHOWN_ROWS else 0
    if left_out:
        cells = cells[:SHOWN_ROWS] + cells[-SHOWN_ROWS:]
    titled = [list(header), *cells] if header else cells
    widths = [max(map(len, column)) for column in zip(*titled, strict=True)]
    lines = [gap.join(_padded(row, widths, right=right)).rstrip() for row in titled]
    if left_out:
        lines.insert(len(lines) - SHOWN_ROWS, f"... ({left_out} in all)")
    return lines


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """The same table for a notebook: a title in each row, numbers flush right.

    Examples
    --------
    >>> html_table(["class", "risk"], [["cat", 0.25]])[-34:]
    '<td>0.25</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = [[_cell(cell) for cell in row] for row in rows]
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(each)}</td>' for each in others)}</tr>"
        for first, *others in lines
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < _MOST_WHOLE else f"{value:.4g}"


def share_cell(share: float) -> str:
    """A share as a percentage of four significant digits, a dash where it is unknown."""
    return "-" if share != share else f"{100 * share:.4g}%"


def _padded(row: Sequence[str], widths: Sequence[int], *, right: bool) -> list[str]:
    first, *others = zip(row, widths, strict=True)
    pad = str.rjust if right else str.ljust
    return [first[0].ljust(first[1]), *(pad(text, width) for text, width in others)]


def listing(names: Iterable[Any], limit: int = 10) -> str:
    """Names in quotes, separated by commas; of very many the first ones and their number.

    Examples
    --------
    >>> listing(["cat", "dog", "owl"], limit=2)
    "'cat', 'dog', ... (3 in all)"
    """
    every = list(names)
    shown = ", ".join(map(_repr, every[:limit]))
    return shown if len(every) <= limit else f"{shown}, ... ({len(every)} in all)"


def _repr(name: Any) -> str:
    """A name in quotes, without the middle of a long one."""
    text = repr(name)
    return text if len(text) <= 2 * LONGEST_NAME else f"{text[:LONGEST_NAME]}...{text[-20:]}"


def not_among(name: str, value: object, words: Iterable[str]) -> str:
    """The sentence that refuses a word: which there are, and which one may be meant."""
    known = list(words)
    hint = did_you_mean(value, known)
    return f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}{hint}."


def brief(value: object) -> str:
    """A value as it is written, on one line, without the end of a long one.

    Examples
    --------
    >>> brief("f1"), len(brief(list(range(1000))))
    ("'f1'", 103)
    """
    text = " ".join(repr(value).split())  # arrays are printed over several lines
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}..."


def did_you_mean(given: object, words: Iterable[str], calls: Iterable[str] = ()) -> str:
    """The word most like what was given, in brackets, or nothing if none is like it.

    Capitals, numbers, what joins the parts of a word and their order do not count. ``calls`` are
    written as they are, words in quotes. A class is one without its parentheses.

    Examples
    --------
    >>> did_you_mean("f1_macro", ["accuracy", "f1_macro"])
    " (did you mean 'f1_macro'?)"
    >>> did_you_mean("lcvar=0.1", ["accuracy"], ["LabelCVaR(...)"])
    ' (did you mean LabelCVaR(...)?)'
    """
    given = given.__name__ if isinstance(given, type) else given
    written = {repr(word): word for word in words} | {call: call for call in calls}
    likeness = {shown: _likeness(str(given)[:200], known) for shown, known in written.items()}
    best = max(likeness, key=lambda shown: likeness[shown], default="")
    close = isinstance(given, str) and likeness.get(best, 0.0) >= _ALIKE
    return f" (did you mean {best}?)" if close else ""


def _likeness(one: str, other: str) -> float:
    first, second = _parts(one), _parts(other)
    texts = ("".join(first), "".join(second)), ("".join(sorted(first)), "".join(sorted(second)))
    return max(SequenceMatcher(None, *pair).ratio() for pair in texts)


def _parts(word: str) -> list[str]:
    every = re.findall(r"[a-z][a-z0-9.]*", word.lower())
    return [part for part in every if part not in _SAYS_NOTHING] or every


def percent(share: float | None) -> str:
    """A share as a percentage of three digits.

    Examples
    --------
    >>> percent(0.12345)
    '12.3%'
    """
    return "-" if share is None else f"{100 * share:.3g}%"


def printable(text: str) -> str:
    r"""A text that cannot move the cursor or colour the terminal, without what isolates names.

    Examples
    --------
    >>> printable("red\x1b[0m")
    'red\\x1b[0m'
    """
    plain = text.replace("\u2068", "").replace("\u2069", "")
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in plain)


def short_name(name: Any) -> str:
    """A class name in one line of a table.

    Examples
    --------
    >>> len(short_name("x" * 1000))
    60
    """
    text = printable(str(name))
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."


def quoted(name: Any) -> str:
    """A name inside a sentence of a page: on one line, not too long, in quotation marks.

    The isolates keep a name that is written from right to left from turning the sentence around.

    Examples
    --------
    >>> len(quoted("a class"))
    11
    """
    text = " ".join(str(name).split()) or "(no name)"
    if len(text) > LONGEST_NAME:
        text = f"{text[: LONGEST_NAME - 21]}…{text[-20:]}"
    return f"“\u2068{text}\u2069”"


def in_words(words: Iterable[str], limit: int = 5) -> str:
    """Words with commas and an 'and' between them, the rest as a number.

    Examples
    --------
    >>> in_words(["cat", "dog", "owl"]), in_words(["cat", "dog", "owl"], limit=2)
    ('cat, dog and owl', 'cat, dog and 1 more')
    """
    every = list(words)
    shown, more = every[:limit], len(every) - limit
    if more > 0:
        return f"{', '.join(shown)} and {more} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def share_text(share: float) -> str:
    """A share as a percentage with one decimal, as all pages have it; a dash where it is unknown.

    Examples
    --------
    >>> share_text(0.12345), share_text(float("nan"))
    ('12.3%', '-')
    """
    return "-" if share != share else f"{100 * share:.1f}%"


def points(value: float, other: float) -> str:
    """The difference of two shares in percentage points, of the numbers as they are shown.

    Examples
    --------
    >>> points(0.1234, 0.1), points(0.1, 0.1234), points(0.1, 0.1)
    ('+2.3', '-2.3', '0.0')
    """
    shown = round(100 * value, 1) - round(100 * other, 1)
    return f"{shown:+.1f}" if abs(shown) >= 0.05 else "0.0"
