"""What is to be compared and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from equipoise.decisions.folds import FOLDS
from equipoise.exceptions import InvalidParameterError
from equipoise.report.evaluations import Progress
from equipoise.report.on_new_rows import NewTables
from equipoise.validation.numbers import check_count, check_number, check_seed


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be compared and how, as the user asked for it.

    ``loading`` are imports, by module, and lines of Python that make ``X`` and ``y``; ``file`` are
    the arguments of the command line that name the table.
    """

    models: Any
    goals: Any
    price: float | None
    seed: int
    progress: Progress | None
    cv: float = FOLDS
    quick: bool = False
    began: float = field(default_factory=perf_counter)
    title: str = "Report on class weights"
    groups: Any = None
    in_time: bool = False
    loading: tuple[Mapping[str, set[str]], Sequence[str]] = ({}, ())
    file: Sequence[str] = ()
    sample_weight: Any = None
    new_tables: NewTables | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", check_seed(self.seed))
        if self.price is not None:
            check_number(self.price, "price", "[0, 100]")
        if self.new_tables is not None and self.sample_weight is not None:
            raise InvalidParameterError(
                "X_new needs rows of equal weight, got sample_weight: new rows have no weights."
            )
        if self.groups is not None and self.in_time:
            raise InvalidParameterError("give groups or time, not both: rows are split one way.")
        if isinstance(self.cv, float):
            check_number(self.cv, "cv", "(0, 1)")
        else:
            check_count(self.cv, "cv", least=2)
