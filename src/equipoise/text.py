"""Text for people: aligned tables, shares, listings, and names that cannot upset a terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

# Longer listings show this many rows at either end.
SHOWN_ROWS = 10
# Longer names are cut in tables.
LONGEST_NAME = 60


def text_table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: bool = False,
    gap: str = " ",
    shorten: bool = False,
) -> list[str]:
    r"""Lines with aligned columns.

    The header may be empty; a float is shown with six digits. With ``right`` all columns but the
    first are flush right, ``gap`` stands between columns, and ``shorten`` leaves out the middle of
    a long table.

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


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


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
