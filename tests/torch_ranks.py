"""One of several processes that train together: run by ``tests/test_torch_ranks.py``."""

import json
import sys
from datetime import timedelta

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from equipoise import LabelCVaR
from equipoise.exceptions import InvalidInputError
from equipoise.goals import parse_goal
from equipoise.torch import RobustLoss
from torch_cases import COUNTS, draw_rows


def train(recipe, batches, wrap):
    """Ten steps on given rows; the masses and the parameters after each."""
    X, labels = draw_rows()
    rows, targets = torch.tensor(X), torch.tensor(labels)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    network = wrap(network.double())
    loss = RobustLoss(recipe, COUNTS)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5, momentum=0.9)
    found = []
    for batch in batches:
        optimizer.zero_grad()
        loss(network(rows[batch]), targets[batch]).backward()
        optimizer.step()
        parameters = torch.cat([each.detach().reshape(-1) for each in network.parameters()])
        found.append([loss.masses.tolist(), parameters.tolist()])
    return found


def batches_of(rank, ranks):
    """Ten batches of twelve rows, and the part of each that one of the ranks has: not the half."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(100, 12, replace=False) for _ in range(10)]
    return drawn if ranks == 1 else [np.split(batch, [5])[rank] for batch in drawn]


def different_sets(rank):
    try:
        loss = RobustLoss("worst_class" if rank else "balanced", COUNTS)
        loss(torch.zeros(2, 3), torch.tensor([0, 1]))
    except InvalidInputError as error:
        return str(error)
    return ""


def compiled(rank):
    """Masses after three steps of a compiled loss, and of the same loss as it is."""
    torch.manual_seed(rank)
    losses = [RobustLoss(LabelCVaR(0.3), COUNTS) for _ in range(2)]
    program = torch.compile(losses[0], fullgraph=True, backend="aot_eager")
    for _ in range(3):
        batch = torch.randn(8 + rank, 3), torch.randint(0, 3, (8 + rank,))
        program(*batch)
        losses[1](*batch)
    return [loss.masses.tolist() for loss in losses]


def main(rank, ranks, address, goals):
    distributed.init_process_group(
        "gloo", init_method=address, rank=rank, world_size=ranks, timeout=timedelta(seconds=90)
    )
    found = {
        goal: train(parse_goal(goal), batches_of(rank, ranks), DistributedDataParallel)
        for goal in goals
    }
    found["compiled"] = compiled(rank)
    found["different sets"] = different_sets(rank)
    distributed.destroy_process_group()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
