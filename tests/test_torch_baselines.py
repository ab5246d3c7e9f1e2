"""What others do on long tails, against formulas and brute force."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from equipoise.exceptions import InvalidInputError, InvalidParameterError  # noqa: E402
from equipoise.torch import (  # noqa: E402
    CosineLinear,
    DeferredLDAMLoss,
    FocalLoss,
    GroupDROLoss,
    LogitAdjustedLoss,
    adjusted_logits,
    class_balanced_weights,
)
from torch_cases import COUNTS, draw_logits  # noqa: E402


def batch(seed=0):
    logits, labels = draw_logits(seed)
    return torch.tensor(logits, requires_grad=True), torch.tensor(labels)


@pytest.mark.parametrize("beta", [0.9, 0.999, 1 - 1e-9])
def test_effective_numbers_are_geometric_sums(beta):
    sums = np.array([sum(beta**power for power in range(n)) for n in COUNTS])
    expected = (1 / sums) * 3 / (1 / sums).sum()
    np.testing.assert_allclose(class_balanced_weights(COUNTS, beta), expected, rtol=1e-6)


def test_effective_numbers_at_the_ends():
    np.testing.assert_allclose(class_balanced_weights(COUNTS, 0.0), 1)
    inverse = 1 / COUNTS
    limit = class_balanced_weights(COUNTS, 1 - 1e-12)
    np.testing.assert_allclose(limit, 3 * inverse / inverse.sum(), rtol=1e-3)


def test_logits_are_adjusted_by_priors():
    logits, targets = batch()
    priors = torch.tensor(COUNTS / COUNTS.sum())
    expected = -(logits.exp() * priors / (logits.exp() * priors).sum(1, keepdim=True)).log()
    torch.testing.assert_close(
        LogitAdjustedLoss(COUNTS)(logits, targets),
        expected.gather(1, targets[:, None]).mean(),
        rtol=1e-6,
        atol=1e-6,
    )
    posterior = F.softmax(adjusted_logits(logits, COUNTS), 1)
    ratios = logits.softmax(1) / priors
    torch.testing.assert_close(
        posterior, ratios / ratios.sum(1, keepdim=True), rtol=1e-6, atol=1e-6
    )
    torch.testing.assert_close(adjusted_logits(logits, COUNTS, 0.0), logits)


def test_the_focal_loss_is_the_formula_and_has_its_derivative():
    logits, targets = batch(1)
    own = logits.softmax(1).gather(1, targets[:, None])[:, 0]
    torch.testing.assert_close(
        FocalLoss(1.5)(logits, targets), (-((1 - own) ** 1.5) * own.log()).mean()
    )
    torch.testing.assert_close(FocalLoss(0.0)(logits, targets), F.cross_entropy(logits, targets))
    assert torch.autograd.gradcheck(FocalLoss(2.0), (logits[:5], targets[:5]))


def test_margins_fall_with_the_fourth_root_of_counts():
    loss = DeferredLDAMLoss(COUNTS, start=1)
    np.testing.assert_allclose(loss.margins, 0.5 * (COUNTS / 15) ** -0.25, rtol=1e-6)
    cosines = torch.tensor([[0.3, 0.1, -0.2]])
    expected = F.cross_entropy(30 * torch.tensor([[0.3, 0.1, -0.7]]), torch.tensor([2]))
    torch.testing.assert_close(loss(cosines, torch.tensor([2])), expected)
    loss.set_epoch(1)
    weight = class_balanced_weights(COUNTS, 0.9999)[2]
    torch.testing.assert_close(loss(cosines, torch.tensor([2])), weight * expected)


def test_cosines_do_not_see_lengths():
    layer, rows = CosineLinear(4, 3), torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(rows), layer(7 * rows))
    direct = torch.cosine_similarity(rows[:, None], layer.weight[None], dim=2)
    torch.testing.assert_close(layer(rows), direct)


def test_group_dro_follows_the_exponentiated_gradient():
    loss, masses = GroupDROLoss(COUNTS, step_size=0.3), np.full(3, 1 / 3)
    logits, targets = batch(2)
    for rows in np.arange(100).reshape(10, 10):
        found = loss(logits[rows], targets[rows])
        losses = F.cross_entropy(logits[rows], targets[rows], reduction="none").detach().numpy()
        sums = np.bincount(targets[rows].numpy(), losses, minlength=3)
        risks = sums / (10 * COUNTS / 100)
        masses = masses * np.exp(0.3 * risks)
        masses /= masses.sum()
        np.testing.assert_allclose(loss.masses, masses, rtol=1e-5)
        assert found.item() == pytest.approx(masses @ risks, rel=1e-5)
    whole = GroupDROLoss(COUNTS).eval()(logits, targets).item()
    risks = [F.cross_entropy(logits[targets == i], targets[targets == i]).item() for i in range(3)]
    assert whole == pytest.approx(np.mean(risks), rel=1e-5)


def test_group_dro_with_adjustment_looks_harder_at_rare_classes():
    loss, rows = GroupDROLoss(COUNTS, step_size=1.0, adjustment=2.0), torch.zeros(3, 3)
    loss(rows, torch.tensor([0, 1, 2]))
    assert loss.masses.sum().item() == pytest.approx(1)
    plain = GroupDROLoss(COUNTS, step_size=1.0)
    plain(rows, torch.tensor([0, 1, 2]))
    ratio = (loss.masses / plain.masses).log().numpy()
    np.testing.assert_allclose(np.diff(ratio), np.diff(2 / np.sqrt(COUNTS)), rtol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        class_balanced_weights,
        LogitAdjustedLoss,
        GroupDROLoss,
        lambda c: DeferredLDAMLoss(c, start=1),
    ],
)
def test_a_class_without_rows_is_refused(make):
    with pytest.raises(InvalidParameterError, match="class_counts must be positive"):
        make([5, 0, 2])


def test_group_dro_with_other_logits():
    with pytest.raises(InvalidInputError, match="each of the 3 classes"):
        GroupDROLoss(COUNTS)(torch.zeros(2, 4), torch.tensor([0, 1]))
