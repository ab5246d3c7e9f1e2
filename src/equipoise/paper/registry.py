"""The studies by name. Nothing is imported until a study is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.paper.study import Study

# Name on the command line, module, and what it is about.
STUDIES = {
    "synthetic": ("synthetic", "Figure 2: class risks on the synthetic model"),
    "ablation": ("ablation", "Figure 3: alpha and kappa on the synthetic model"),
    "covertype": ("covertype", "Table 1 and Figure 4: Covertype"),
    "covertype-ablation": ("covertype_ablation", "Table 2: alpha and kappa on Covertype"),
    "tradeoff": ("tradeoff", "Figure 1: irreducible and estimation error, drawn to scale"),
    "rates": ("rates", "Propositions 1 and 3: excess risk against the number of rows"),
    "shift": ("shift", "Section 6: class priors that shift between training and test"),
}


def load_study(name: str) -> "Study":
    """A study by its name."""
    module, _ = STUDIES[name]
    study: Study = import_module(f"equipoise.paper.{module}").STUDY
    return study
