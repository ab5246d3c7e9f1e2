"""Training by the robust loss ends at the optimum that the exact solver certifies, by default.

A linear network and the penalty of ``RobustLogisticRegression`` are the same convex problem: what
is compared is the true robust risk of all rows with the penalty, never what the loss remembers.
"""

from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from equipoise import LabelCVaR, PriorBall, RobustLogisticRegression, WorstClass  # noqa: E402
from equipoise.torch import RobustLoss  # noqa: E402
from set_examples import every_example, few_examples  # noqa: E402
from torch_cases import draw_rows  # noqa: E402

COUNTS = np.array([160, 80, 60, 40, 32, 20, 8])
N_FEATURES, C = 6, 0.1
PENALTY = 1 / (2 * C * COUNTS.sum())
# Steps of training by batches a pass: the noise of small ones must fade, too. And the fewer of the
# tests that are run every time.
STEPS, FEWER_STEPS = {1: 1000, 4: 1200, 64: 9600}, {1: 600, 4: 600, 64: 3200}
# Largest steps: usual ones.
OPTIMIZERS = {
    "SGD": lambda given: torch.optim.SGD(given, lr=0.5),
    "momentum": lambda given: torch.optim.SGD(given, lr=0.05, momentum=0.9),
    "Adam": lambda given: torch.optim.Adam(given, lr=0.03),
}
# Relative distance from the optimum, and total variation from the certified masses. Around these
# the lower bound that masses give is flat, so that masses may be farther off than the objective:
# most of all those of the hull, whose two weightings have nearly the same risk.
WITHIN, NEAR = 0.01, 0.05

pytestmark = pytest.mark.filterwarnings("ignore::equipoise.exceptions.EquipoiseWarning")


@cache
def rows():
    X, labels = draw_rows(0, COUNTS, N_FEATURES)
    return X, labels


def exact(recipe):
    """The certified optimum."""
    found = RobustLogisticRegression(recipe, C=C, tol=1e-7).fit(*rows())
    assert found.duality_gap_ <= 1e-6 * found.objective_
    return found


def trained(recipe, n_batches, optimizer, steps):
    """The true objective, and the loss, after training with steps that fade like a cosine."""
    X, labels = map(torch.tensor, rows())
    network = torch.nn.Linear(N_FEATURES, len(COUNTS)).double()
    torch.nn.init.zeros_(network.weight), torch.nn.init.zeros_(network.bias)
    loss = RobustLoss(recipe, COUNTS)
    optimizer = OPTIMIZERS[optimizer](network.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    draws = torch.Generator().manual_seed(0)
    for step in range(steps):
        if step % n_batches == 0:
            batches = torch.randperm(len(X), generator=draws).tensor_split(n_batches)
        batch = batches[step % n_batches]
        optimizer.zero_grad()
        penalty = PENALTY * network.weight.square().sum()
        (loss(network(X[batch]), labels[batch]) + penalty).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        losses = F.cross_entropy(network(X), labels, reduction="none").numpy()
        penalty = PENALTY * float(network.weight.square().sum())
    risks = np.bincount(rows()[1], losses) / COUNTS
    return float(recipe.resolve(COUNTS / COUNTS.sum()).support(risks)) + penalty, loss


def assert_converges(recipe, n_batches, optimizer, steps):
    best = exact(recipe)
    objective, loss = trained(recipe, n_batches, optimizer, steps[n_batches])
    assert best.lower_bound_ - 1e-9 <= objective <= (1 + WITHIN) * best.objective_
    apart = np.asarray(loss.worst_case_masses) - np.asarray(best.worst_case_masses_)
    assert np.abs(apart).sum() / 2 <= NEAR


@pytest.mark.parametrize("recipe", few_examples(), ids=repr)
def test_the_whole_data_set_at_once(recipe):
    assert_converges(recipe, 1, "Adam", FEWER_STEPS)


# The whole simplex, a ball that reaches corners of it, and a set with faces.
@pytest.mark.parametrize("recipe", [WorstClass(), PriorBall(3.0), LabelCVaR(0.3)], ids=repr)
@pytest.mark.parametrize("optimizer", ["momentum", "Adam"])
def test_four_batches_a_pass(recipe, optimizer):
    assert_converges(recipe, 4, optimizer, FEWER_STEPS)


def test_many_batches_a_pass():
    assert_converges(LabelCVaR(0.3), 64, "Adam", FEWER_STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", every_example(), ids=repr)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n_batches", STEPS)
def test_every_set_with_every_optimizer(recipe, optimizer, n_batches):
    assert_converges(recipe, n_batches, optimizer, STEPS)
