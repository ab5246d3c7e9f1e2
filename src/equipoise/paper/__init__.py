"""The paper's figures and tables, made again: one file per study.

:func:`reproduce` runs them; ``equipoise reproduce`` is the same from the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.paper.registry import STUDIES
    from equipoise.paper.runner import Step, reproduce
    from equipoise.paper.study import Claim, Verdict
    from equipoise.paper.summary import Outcome, Summary

__all__ = ["STUDIES", "Claim", "Outcome", "Step", "Summary", "Verdict", "reproduce"]

_HOME = {
    "STUDIES": "registry",
    "Claim": "study",
    "Outcome": "summary",
    "Step": "runner",
    "Summary": "summary",
    "Verdict": "study",
    "reproduce": "runner",
}


def __getattr__(name: str) -> Any:
    # Listing the studies must not cost an import of NumPy.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
