"""A last layer of very many classes, trained by RobustLoss: seconds, memory and robust risk.

python benchmarks/head_many_classes.py [--classes 100000] [--columns 128] [--rows 400000]
    [--batch 2048] [--passes 30] [--step 0.02] [--goal LabelCVaR(0.2) ...] [--out FILE]

Embeddings are generated: Gaussian classes of a power law, three rows or more of each. A linear
layer, zero at first, is trained by Adam with steps that fall linearly to zero: by the cross-entropy
and by `equipoise.torch.RobustLoss`, with the penalty of C = 1. After each of six parts of the
training the risks of all classes are computed in a pass of their own (`RobustLoss.exact_risks`):
printed are the robust risk, that of the running means in the loss, the mean and the largest class
risk and the mean loss of the rows.

No optimum is certified. The last line of a goal says why: the lower bound of the exact solver needs
the gradient at the worst-case masses, here that of all rows, and subtracts its square over twice
the penalty; in units of the objective a bound of 1 or more below it says nothing.

On a GPU peaks are of its memory, on a CPU of the process; there ``--classes 5000 --columns 32
--rows 30000 --batch 512 --step 0.05`` takes a few minutes.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from equipoise import FixedWeights, LabelCVaR, WorstClass
from equipoise.torch import RobustLoss

# LEAST_ROWS: of each class. PARTS: of a training, after each of which a line is printed.
LEAST_ROWS, PARTS = 3, 6
GOALS = {
    "cross-entropy": None,
    "balanced": FixedWeights("balanced"),
    "LabelCVaR(0.2)": LabelCVaR(0.2),
    "worst class": WorstClass(),
}
Rows = tuple[Any, Any]


class Batches:
    """Rows on a device, some at a time, in their order: what ``exact_risks`` takes."""

    def __init__(self, rows: Rows, size: int) -> None:
        self.rows, self.size = rows, size

    def __iter__(self) -> Iterator[Rows]:
        return zip(*(each.split(self.size) for each in self.rows), strict=True)


def embeddings(n: int, d: int, k: int, device: Any) -> Rows:
    """Gaussian classes, the i-th with a share in proportion to 1 / i; columns of variance one."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, k + 1)
    drawn = rng.choice(k, n - LEAST_ROWS * k, p=share / share.sum())
    labels = np.concatenate([np.repeat(np.arange(k), LEAST_ROWS), drawn])
    y = torch.tensor(labels, device=device)
    torch.manual_seed(0)
    spread = 2.5 / (np.log(k) + 1) ** 0.5 / (d / 20) ** 0.5
    X = (torch.randn(k, d, device=device) * spread)[y] + torch.randn(n, d, device=device)
    return (X - X.mean(0)) / X.std(0), y


def peak_mib(device: Any) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def waited(device: Any) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def robust_line(loss: RobustLoss, net: Any, batches: Batches, goal: Any) -> str:
    """The robust risk and other means of class risks, of all rows; and what is remembered."""
    risks = loss.exact_risks(net, batches)
    remembered = "-" if goal is None else f"{loss.robust_risk:.4f}"
    robust = risks.robust(LabelCVaR(0.2) if goal is None else goal)
    return (
        f"{robust:10.4f} {remembered:>10} {risks.balanced():10.4f} {risks.worst():10.4f} "
        f"{risks.standard():10.4f}"
    )


def trained(rows: Rows, goal: Any, given: argparse.Namespace) -> tuple[Any, RobustLoss]:
    """A layer after training, and its loss; a line is printed after each part."""
    X, y = rows
    device, n, k = X.device, len(y), given.classes
    net = torch.nn.Linear(X.shape[1], k, device=device)
    torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)
    loss = RobustLoss(goal or LabelCVaR(0.2), torch.bincount(y, minlength=k)).to(device)
    criterion = F.cross_entropy if goal is None else loss
    optimizer = torch.optim.Adam(net.parameters(), lr=given.step)
    steps = given.passes * (n // given.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    batches, spent, done = Batches(rows, given.batch), 0.0, 0
    draws = torch.Generator(device).manual_seed(0)
    print(f"  {0:6} {'':>8} {'':>9} {robust_line(loss, net, batches, None)}", flush=True)
    while done < steps:
        began = waited(device)
        until = min(done + -(-steps // PARTS), steps)
        for _ in range(done, until):
            some = torch.randint(n, (given.batch,), device=device, generator=draws)
            optimizer.zero_grad()
            penalty = net.weight.square().sum() / (2 * n)
            (criterion(net(X[some]), y[some]) + penalty).backward()
            optimizer.step()
            schedule.step()
        spent += waited(device) - began
        done = until
        numbers = f"{spent:8.1f} {1000 * spent / done:9.2f}"
        print(f"  {done:6} {numbers} {robust_line(loss, net, batches, goal)}", flush=True)
    return net, loss


def certified_distance(rows: Rows, net: Any, loss: RobustLoss, size: int) -> tuple[float, float]:
    """The objective, and by how much the bound of the gradient would be below it."""
    batches, n = Batches(rows, size), len(rows[1])
    risks = loss.exact_risks(net, batches)
    masses = np.asarray(risks.worst_case_masses(loss.goal)) / np.asarray(risks.prior) / n
    weights = torch.tensor(masses, dtype=net.weight.dtype, device=net.weight.device)
    net.zero_grad()
    for X, y in batches:
        (F.cross_entropy(net(X), y, reduction="none") * weights[y]).sum().backward()
    penalty = float(net.weight.detach().square().sum()) / (2 * n)
    gradient = net.weight.grad + net.weight.detach() / n
    return risks.robust(loss.goal) + penalty, float(gradient.double().square().sum()) * n / 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("classes", 100_000), ("columns", 128), ("rows", 400_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--passes", type=int, default=30)
    parser.add_argument("--step", type=float, default=0.02)
    parser.add_argument("--goal", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.out:
        sys.stdout = given.out.open("w", encoding="utf-8")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    rows = embeddings(given.rows, given.columns, given.classes, device)
    print(
        f"{given.rows:,} rows x {given.columns}, {given.classes:,} classes, batches of "
        f"{given.batch}, on {name}, torch {torch.__version__}"
    )
    for goal in given.goal:
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        print(f"{goal}; of cross-entropy the robust risk is that of LabelCVaR(0.2)")
        print(
            "    step  seconds   ms/step     robust remembered  mean class      worst   mean row",
            flush=True,
        )
        net, loss = trained(rows, GOALS[goal], given)
        risks = loss.exact_risks(net, Batches(rows, given.batch))
        print(
            f"  trained by {goal}, {given.passes} passes: robust risk "
            f"{risks.robust(GOALS[goal] or LabelCVaR(0.2)):.4f}, mean loss of the rows "
            f"{risks.standard():.4f}; peak memory {peak_mib(device):,.0f} MiB",
            flush=True,
        )
        if GOALS[goal] is not None:
            objective, below = certified_distance(rows, net, loss, given.batch)
            print(
                f"  objective {objective:.4f}; the bound of its gradient is "
                f"{below / objective:.3g} times the objective below",
                flush=True,
            )


if __name__ == "__main__":
    main()
