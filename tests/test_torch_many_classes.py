"""Last layers of thousands of classes: memory by batch, exact class risks, sparse decisions."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")


from equipoise import LabelCVaR, class_risks, tune_weights  # noqa: E402
from equipoise.exceptions import (  # noqa: E402
    ClassMismatchError,
    InvalidInputError,
    InvalidParameterError,
)
from equipoise.torch import RobustLoss, tune_decisions  # noqa: E402
from torch_cases import draw_rows  # noqa: E402

COUNTS = [120, 60, 40]


def batches(seed=0, counts=COUNTS, size=32):
    X, labels = draw_rows(seed, counts)
    rows, targets = torch.tensor(X).float(), torch.tensor(labels)
    return list(zip(rows.split(size), targets.split(size), strict=True))


def network(n_classes=3):
    torch.manual_seed(0)
    return torch.nn.Linear(3, n_classes)


def logits_of(net, rows):
    with torch.no_grad():
        return torch.cat([net(inputs) for inputs, _ in rows])


# Twenty thousand classes of a power law; prints peak MiB and robust risks on all rows.
MANY = """
import resource
import numpy as np, torch
from equipoise import LabelCVaR
from equipoise.torch import RobustLoss
torch.manual_seed(0)
k, d, n, b, goal = 20_000, 8, 21_000, 250, LabelCVaR(0.2)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
y = torch.cat([torch.arange(k), (k ** torch.rand(n - k)).long().clamp(max=k - 1)])
X = torch.randn(k, d)[y] + 0.5 * torch.randn(n, d)
net, loss = torch.nn.Linear(d, k), RobustLoss(goal, torch.bincount(y, minlength=k))
torch.nn.init.zeros_(net.weight)
optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
batches = list(zip(X.split(b), y.split(b)))
def risk(): return loss.exact_risks(net, batches).robust(goal)
before, start = peak(), risk()
for rows in torch.randperm(n).split(b):
    optimizer.zero_grad()
    loss(net(X[rows]), y[rows]).backward()
    optimizer.step()
masses = np.asarray(loss.worst_case_masses)
caps = 5 * torch.bincount(y).numpy() / n
print(peak() - before, start, risk(), masses.sum(), (masses - caps).max(), masses.min())
"""


def test_twenty_thousand_classes_train_in_the_memory_of_a_batch():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=True)
    mib, before, after, total, over, least = map(float, done.stdout.split())
    # A batch of 250 x 20,000 in single precision is 19 MiB; the exact masses obey the set.
    assert mib < 300
    assert after < before - 0.1
    assert total == pytest.approx(1) and over <= 1e-12 and least >= 0


def test_exact_risks_are_those_of_all_rows_at_once():
    net, rows = network(), batches()
    loss = RobustLoss(LabelCVaR(0.3), COUNTS)
    loss(net(rows[0][0]), rows[0][1])
    state = {name: each.clone() for name, each in loss.state_dict().items()}
    found = loss.exact_risks(net, rows)
    logits, labels = logits_of(net, rows), torch.cat([targets for _, targets in rows])
    expected = class_risks(labels, logits.softmax(1).double(), loss="cross_entropy")
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5)
    assert found.robust(loss.goal) == pytest.approx(loss.eval()(logits, labels).item(), rel=1e-5)
    assert found.loss == "cross_entropy"
    assert all(torch.equal(state[name], each) for name, each in loss.state_dict().items())
    assert net.training


def test_exact_risks_of_rows_without_some_classes():
    net, loss = network(4), RobustLoss("worst_class", [120, 60, 40, 5], classes=list("abcd"))
    with pytest.raises(ClassMismatchError, match=r"in the loader, \['d'\] has none.*absent='drop'"):
        loss.exact_risks(net, batches())
    found = loss.exact_risks(net, batches(), absent="drop")
    assert list(found) == ["a", "b", "c"]
    np.testing.assert_allclose(np.asarray(found.prior), np.array(COUNTS) / 220)
    inputs, targets = batches()[0]
    with pytest.raises(InvalidInputError, match="finite loss, and a target that is a class"):
        loss.exact_risks(net, [(inputs, targets + 3)])
    with pytest.raises(InvalidInputError, match="finite loss"):
        loss.exact_risks(net, [(inputs * torch.nan, targets)])
    # Rows to be ignored count nothing.
    ignored = torch.where(targets == 0, -100, targets)
    assert "a" not in loss.exact_risks(net, [(inputs, ignored)], absent="drop")


@pytest.mark.parametrize("goal", ["worst_class", "f1_macro"])
def test_the_largest_probabilities_tune_as_all_of_them(goal):
    net, rows = network(), batches(size=50)
    every = tune_decisions(net, rows, goal)
    all_kept = tune_decisions(net, rows, goal, top=10)
    torch.testing.assert_close(all_kept.log_weights, every.log_weights, rtol=1e-3, atol=1e-4)
    two = tune_decisions(net, rows, goal, top=2)
    table, labels = logits_of(net, rows).softmax(1), torch.cat([targets for _, targets in rows])
    dense = table.double().numpy() * (table >= table.topk(2, dim=1).values[:, -1:]).numpy()
    expected = tune_weights(labels.numpy(), csr_array(dense), goal)
    np.testing.assert_allclose(two.tuned.rule, expected.rule, rtol=1e-4)
    with pytest.raises(InvalidParameterError, match="top must be"):
        tune_decisions(net, rows, goal, top=0)


def test_ranks_with_other_counts_differ_in_the_text_of_their_facts():
    counts = np.arange(1, 100_001)
    other = counts.copy()
    other[50_000] += 1
    facts = [RobustLoss("balanced", each)._fact for each in (counts, other)]
    assert facts[0] != facts[1] and max(map(len, facts)) < 200


def test_the_loop_of_the_page_lowers_the_robust_risk():
    page = (Path(__file__).parents[1] / "docs/deep.md").read_text(encoding="utf-8")
    _, section = page.split("## A hundred thousand classes")
    loop = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    torch.manual_seed(0)
    labels = torch.arange(2000) % 50
    embeddings = torch.randn(50, 8)[labels] + 0.3 * torch.randn(2000, 8)
    rows = {"labels": labels, "embeddings": embeddings, "n_classes": 50, "C": 1.0, "n_steps": 100}
    rows["validation_loader"] = list(zip(embeddings.split(100), labels.split(100), strict=True))
    names = {"torch": torch, "RobustLoss": RobustLoss, "LabelCVaR": LabelCVaR} | rows
    exec(loop, names | {"tune_decisions": tune_decisions}, found := {})
    assert found["risks"].robust(found["loss"].goal) < np.log(50) / 2
    assert found["decide"].tuned.class_risks is not None
