"""What processes that train together know of each other: sums over all of them, and agreement."""

from typing import Any

from torch import distributed

from equipoise.exceptions import InvalidInputError


def n_ranks(group: Any) -> int:
    """How many processes train together; one where nothing is distributed."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return int(distributed.get_world_size(group))


def sum_over_ranks(values: Any, group: Any) -> Any:
    """The sums of a tensor's entries over all processes, the same on each."""
    if n_ranks(group) > 1:
        distributed.all_reduce(values, group=group)
    return values


def check_agreement(fact: str, group: Any) -> None:
    """Refuse processes that hold different facts; every one of them raises."""
    if n_ranks(group) == 1:
        return
    facts: list[Any] = [None] * n_ranks(group)
    distributed.all_gather_object(facts, fact, group=group)
    for rank, other in enumerate(facts):
        if other != facts[0]:
            raise InvalidInputError(
                "All processes must train with the same set, loss and class counts, got "
                f"{facts[0]} on rank 0 and {other} on rank {rank}: give every rank the counts of "
                "the whole data set."
            )
