"""What processes that train together know of each other: sums over all of them, and agreement."""

from typing import Any

from torch import distributed

from equipoise.exceptions import InvalidInputError


def n_ranks(group: Any) -> int:
    """How many processes train together; one where nothing is distributed.

    Examples
    --------
    >>> n_ranks(None)
    1
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return int(distributed.get_world_size(group))


def sum_over_ranks(values: Any, group: Any) -> Any:
    """The sums of a tensor's entries over all processes, the same on each.

    Examples
    --------
    >>> import torch
    >>> sum_over_ranks(torch.tensor([1.0, 2.0]), None).tolist()
    [1.0, 2.0]
    """
    if n_ranks(group) > 1:
        distributed.all_reduce(values, group=group)
    return values


def check_agreement(fact: str, group: Any) -> None:
    """Refuse processes that hold different facts; every one of them raises.

    Examples
    --------
    >>> check_agreement("LabelCVaR(alpha=0.1), counts [3, 1]", None)
    """
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
