"""The order in which the gallery asks its questions: what everybody asks first, details last."""

from pathlib import Path

ORDER = (
    "weight_or_threshold",
    "cost_of_weights",
    "worst_class",
    "how_robust",
    "prevalence_shift",
    "recall_floor",
    "macro_f1",
    "costs",
    "forests_and_boosting",
    "compare_models",
    "probabilities",
    "rows_needed",
    "own_set",
    "certificate",
    "larger_than_memory",
)


class ReadingOrder:
    """The position of an example, for sphinx-gallery; an example without a position comes last."""

    def __init__(self, _folder: str) -> None:
        pass

    def __call__(self, filename: str) -> int:
        name = Path(filename).stem.removeprefix("plot_")
        return ORDER.index(name) if name in ORDER else len(ORDER)
