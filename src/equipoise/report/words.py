"""Numbers and names in sentences."""

from typing import Any

_LONGEST = 60


def called(name: Any) -> str:
    """A name inside a sentence: on one line, not too long, in quotation marks.

    The isolates keep a name that is written from right to left from turning the sentence around.
    """
    text = " ".join(str(name).split()) or "(no name)"
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 21]}…{text[-20:]}"
    return f"“\u2068{text}\u2069”"


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{100 * share:.1f}%"


def points(difference: float) -> str:
    """A difference of shares in percentage points."""
    size = abs(100 * difference)
    return f"{size:.1f} percentage points" if size >= 0.05 else "less than 0.1 percentage points"


def number(count: float) -> str:
    """A whole number with separators."""
    return f"{round(count):,}"


def listed(words: list[str], limit: int = 5) -> str:
    """Words with commas between them, the rest as a number."""
    shown = words[:limit]
    more = len(words) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
