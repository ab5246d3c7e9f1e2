"""The studies by name: which files hold them, and what they make.

Nothing is imported until a study is asked for.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.paper.study import Study


@dataclass(frozen=True)
class StudyEntry:
    """A study, its files and what it is about.

    Attributes
    ----------
    name, about : str
    files : tuple of str
        Modules of this subpackage; the first one holds the study.
    """

    name: str
    about: str
    files: tuple[str, ...]

    @property
    def parts(self) -> list[str]:
        """What the paper calls that which it makes: ``figure-2``, ``table-1``."""
        return [file.replace("_", "-") for file in self.files if file != self.name]


STUDIES = {
    entry.name: entry
    for entry in (
        StudyEntry("synthetic", "class risks on the synthetic model", ("figure_2",)),
        StudyEntry("ablation", "alpha and kappa on the synthetic model", ("figure_3",)),
        StudyEntry("covertype", "class risks on Covertype", ("table_1", "figure_4")),
        StudyEntry("covertype-ablation", "alpha and kappa on Covertype", ("table_2",)),
        StudyEntry("tradeoff", "irreducible and estimation error, to scale", ("figure_1",)),
        StudyEntry("rates", "excess risk against rows (Propositions 1, 3)", ("rates",)),
        StudyEntry(
            "bounds",
            "bounds of the robust risk, on data",
            ("theorem_1", "corollary_2", "appendix_d"),
        ),
        StudyEntry("margin", "rows near the threshold, and rates", ("appendix_a_2",)),
        StudyEntry("universality", "metrics as weightings", ("appendix_a_3",)),
        StudyEntry("function-class", "the trade-off inside a class", ("appendix_b",)),
        StudyEntry("descent-ascent", "gradient descent-ascent", ("appendix_e",)),
        StudyEntry("shift", "class priors that shift (Section 6)", ("shift",)),
        StudyEntry("remarks", "remarks that no other study tries", ("remarks",)),
        StudyEntry("fashion", "a minimax benchmark of others, on Fashion-MNIST", ("fashion",)),
    )
}
# Studies by the figures and tables that they make.
PARTS = dict(sorted((part, entry.name) for entry in STUDIES.values() for part in entry.parts))
NAMES = (*STUDIES, *PARTS)


def load_study(name: str) -> "Study":
    """A study by its name."""
    study: Study = import_module(f"equipoise.paper.{STUDIES[name].files[0]}").STUDY
    return study
