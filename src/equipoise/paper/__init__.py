"""The paper's figures and tables, reproduced: a file for each, named after it.

:func:`reproduce` runs them; ``equipoise reproduce`` is the same from the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.paper.registry import STUDIES
    from equipoise.paper.runner import StudyStep, reproduce
    from equipoise.paper.study import Claim, Finding, Reproduction, StudyOutcome

__all__ = [
    "STUDIES",
    "Claim",
    "Finding",
    "Reproduction",
    "StudyOutcome",
    "StudyStep",
    "reproduce",
]

_HOME = {"STUDIES": "registry", "StudyStep": "runner", "reproduce": "runner"}


def __getattr__(name: str) -> Any:
    # Listing the studies must not cost an import of NumPy.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'study')}"), name)
