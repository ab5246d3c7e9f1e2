"""Fused steps of the robust loss: what they remember, values and gradients are those of tensors.

On a GPU, or with ``TRITON_INTERPRET=1`` on the CPU.
"""

import copy
import io
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="torch has no Triton here")

from equipoise import LabelCVaR, PriorBall, WeightBox, WeightHull, WorstClass  # noqa: E402
from equipoise.exceptions import InvalidInputError  # noqa: E402
from equipoise.torch import RobustLoss, fused_kernels, fused_step, robust_loss  # noqa: E402
from equipoise.torch.mass_rules import mean_share  # noqa: E402
from torch_cases import COUNTS  # noqa: E402

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
pytestmark = [
    pytest.mark.skipif(
        not ON_GPU and os.environ.get("TRITON_INTERPRET") != "1",
        reason="no GPU here, and TRITON_INTERPRET=1 is not set",
    ),
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),  # of the interpreter
]
SETS = {
    "worst class": (WorstClass(), {}),
    "worst class, exact": (WorstClass(), {"ascent": None}),
    "caps": (LabelCVaR(0.3), {}),
    "caps, exact": (LabelCVaR(0.3), {"ascent": None, "window": 0.3}),
    "bounds": (WeightBox(0.5, 1.7), {"ascent": 7.0}),
    "bounds, exact": (WeightBox(0.5, 1.7), {"ascent": None}),
    "a point": ("balanced", {}),
    "a hull": (WeightHull(["standard", "balanced"]), {}),
    "a ball": (PriorBall(0.1), {}),
}
each_set = pytest.mark.parametrize("name", SETS)


def batches(n_classes=3, n_batches=3, rows=40, dtype=torch.float32):
    rng = np.random.default_rng(n_classes)
    for _ in range(n_batches):
        logits = torch.tensor(rng.normal(scale=2.0, size=(rows, n_classes)))
        labels = rng.integers(0, n_classes, size=rows)
        labels[rng.random(rows) < 0.2] = -100
        yield logits.to(DEVICE, dtype).requires_grad_(), torch.tensor(labels, device=DEVICE)


def pair(*given, **options):
    """The same loss twice: the first takes fused steps, the second plain ones."""
    fused = RobustLoss(*given, **options).to(DEVICE)
    return fused, copy.deepcopy(fused)


@pytest.fixture
def plain(monkeypatch):
    """A function that calls a loss, and what of it, without the fused step."""

    def call(loss, *batch):
        with monkeypatch.context() as patch:
            patch.setattr(robust_loss, "fused_loss", lambda *_: None)
            return loss(*batch)

    return call


def assert_same_step(fused, other, batch, plain, rtol=2e-6):
    logits, labels = batch
    twin = logits.detach().clone().requires_grad_()
    assert fused_step.fits(fused, logits, labels)
    value, expected = fused(logits, labels), plain(other, twin, labels)
    assert value.dtype == expected.dtype == torch.float32
    torch.testing.assert_close(value, expected, rtol=rtol, atol=1e-6)
    (3 * value).backward()
    (3 * expected).backward()
    half = logits.dtype != torch.float32
    assert logits.grad.dtype == logits.dtype
    scale = float(twin.grad.abs().max())
    atol = scale * (1e-2 if half else 2e-6)
    torch.testing.assert_close(logits.grad, twin.grad, rtol=0, atol=atol)
    ours, theirs = fused.state_dict(), other.state_dict()
    torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=1e-7)


@each_set
@pytest.mark.parametrize("n_classes", [3, 20, 300])
def test_steps_are_those_of_tensors(name, n_classes, plain):
    recipe, options = SETS[name]
    counts = np.geomspace(500, 5, n_classes).round()
    fused, other = pair(recipe, counts, **options)
    for batch in batches(n_classes):
        assert_same_step(fused, other, batch, plain)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_in_half_precision_and_with_smoothed_labels(dtype, reduction, smoothing, plain):
    fused, other = pair(None, COUNTS, label_smoothing=smoothing, reduction=reduction)
    for batch in batches(dtype=dtype):
        assert_same_step(fused, other, batch, plain)
    fused, other = pair(None, COUNTS, label_smoothing=smoothing, reduction=reduction)
    for batch in batches():
        assert_same_step(fused, other, batch, plain)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_masses_are_those_of_the_rule(exact, seed):
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 5, 60, 200]))
    prior = rng.dirichlet(np.full(k, rng.choice([0.5, 5.0]))) + 1e-4
    recipe = LabelCVaR(0.2) if seed % 2 else WeightBox(0.3, 1 + rng.exponential())
    counts = np.maximum(1, np.round(1000 * prior))
    options = {"ascent": None if exact else 300.0}
    loss = RobustLoss(recipe, counts, **options).to(DEVICE)
    logits = torch.tensor(rng.normal(scale=3, size=(300, k)), dtype=torch.float32, device=DEVICE)
    logits[::3] = 0.0  # with ties
    labels = torch.tensor(rng.integers(0, k, size=300), device=DEVICE)
    for _ in range(2):
        before = loss.state.clone()
        assert fused_step.fits(loss, logits, labels)
        loss(logits, labels)
        risks = loss._risks(loss.remembered)
        expected = loss.rule(risks)
        if not exact:
            expected = loss.rule.ascend(before, risks, 300.0)
            share = mean_share(300 / loss.n_rows, loss.window)
            mean = before + share * (expected - before)
            torch.testing.assert_close(loss.state, mean, rtol=0, atol=1e-12)
        torch.testing.assert_close(loss.masses, expected, rtol=0, atol=1e-12)


def test_rows_of_an_image_and_other_orders_of_memory(plain):
    fused, other = pair("worst_class", COUNTS)
    logits = torch.randn(2, 3, 4, 5, device=DEVICE, requires_grad=True)
    targets = torch.randint(0, 3, (2, 4, 5), device=DEVICE)
    assert_same_step(fused, other, (logits, targets), plain)
    wide = torch.randn(6, 10, device=DEVICE)
    found = [torch.zeros(6, 10, device=DEVICE, requires_grad=True) for _ in range(2)]
    labels = torch.arange(10, device=DEVICE, dtype=torch.int32) % 3
    fused((wide + found[0])[::2].T, labels).backward()
    plain(other, (wide + found[1])[::2].T, labels).backward()
    torch.testing.assert_close(found[0].grad, found[1].grad)


def test_without_rows_nothing_happens():
    loss = RobustLoss(LabelCVaR(0.3), COUNTS).to(DEVICE)
    logits, labels = next(batches())
    loss(logits, labels)
    before = loss.class_risks
    empty = torch.zeros(0, 3, device=DEVICE, requires_grad=True)
    value = loss(empty, labels[:0])
    value.backward()
    assert value.item() == 0 and empty.grad.shape == (0, 3)
    ignored = torch.zeros(2, 3, device=DEVICE, requires_grad=True)
    loss(ignored, torch.full((2,), -100, device=DEVICE)).backward()
    assert torch.equal(ignored.grad, torch.zeros_like(ignored))
    assert loss.class_risks.to_dict() == pytest.approx(before.to_dict())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("n_classes", [3, 200])
@pytest.mark.parametrize("recipe", [LabelCVaR(0.3), PriorBall(0.1)], ids=repr)
def test_logits_that_are_no_numbers_are_recorded(value, n_classes, recipe):
    loss = RobustLoss(recipe, np.full(n_classes, 9)).to(DEVICE)
    logits = torch.zeros(4, n_classes, device=DEVICE)
    targets = torch.tensor([0, 1, 2, 0], device=DEVICE)
    loss(logits, targets)
    before = np.asarray(loss.class_risks)
    logits[1, 0] = value
    assert not torch.isfinite(loss(logits, targets))
    assert torch.isfinite(loss(torch.zeros_like(logits), targets))
    with pytest.raises(InvalidInputError, match="class 1 was no finite number in step 2"):
        loss.class_risks  # noqa: B018
    np.testing.assert_allclose(np.asarray(loss.class_risks), before)


@pytest.mark.parametrize("stray", [3, -1])
def test_targets_that_are_no_classes(stray):
    targets = torch.tensor([0, 1, stray], device=DEVICE)
    logits = torch.zeros(3, 3, device=DEVICE, requires_grad=True)
    loss = RobustLoss(None, COUNTS).to(DEVICE)
    value = loss(logits, targets)
    value.backward()
    assert torch.isnan(value) and torch.equal(logits.grad[2], torch.zeros(3, device=DEVICE))
    with pytest.raises(InvalidInputError, match=r"0 to 2, or ignore_index = -100; .* in step 1"):
        loss.worst_case_weights  # noqa: B018
    checked = RobustLoss(None, COUNTS, check=True).to(DEVICE)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="targets must be classes"):
            checked(logits, targets)
    assert torch.isfinite(checked(logits, targets % 3))


def test_gradients_can_be_differentiated(plain):
    fused, other = pair(LabelCVaR(0.3), COUNTS, label_smoothing=0.1)
    logits, labels = next(batches())
    found = []
    for step in (lambda: fused(logits, labels), lambda: plain(other, logits, labels)):
        (slope,) = torch.autograd.grad(step(), logits, create_graph=True)
        found.append(torch.autograd.grad((slope**2).sum(), logits)[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-9)


def test_several_steps_before_their_gradients(plain):
    fused, other = pair("worst_class", COUNTS)
    given = list(batches())
    twins = [(logits.detach().clone().requires_grad_(), labels) for logits, labels in given]
    sum(fused(*batch) for batch in given).backward()
    sum(plain(other, *batch) for batch in twins).backward()
    for (logits, _), (twin, _) in zip(given, twins, strict=True):
        torch.testing.assert_close(logits.grad, twin.grad, rtol=1e-5, atol=1e-8)


def test_gradients_twice_from_tensors_kept_elsewhere(plain):
    fused, other = pair(LabelCVaR(0.3), COUNTS)
    logits, labels = next(batches())
    twin = logits.detach().clone().requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        value = fused(logits, labels)
    expected = plain(other, twin, labels)
    value /= 4
    value.backward(retain_graph=True)
    first = logits.grad
    before = first.clone()
    (again,) = torch.autograd.grad(value, logits)
    assert torch.equal(first, before) and torch.equal(again, before)
    (expected / 4).backward()
    torch.testing.assert_close(before, twin.grad, rtol=1e-5, atol=1e-8)
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()
    changed = fused(logits, labels)
    labels.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        changed.backward()


def test_batches_of_many_kinds_in_turn(plain):
    """What a step keeps for the next one is of no use where anything else is asked for."""
    fused, other = pair(LabelCVaR(0.3), COUNTS)
    logits, labels = next(batches())
    flat = torch.zeros(3 * 9 + 1, device=DEVICE)[1:].reshape(9, 3)  # not at a multiple of 16 bytes
    given = [
        (logits, labels),
        (logits[:17], labels[:17]),
        (logits.bfloat16(), labels),
        (flat, labels[:9].int()),
        (logits, labels),
    ]
    for batch in given:
        assert_same_step(fused, other, (batch[0].detach().requires_grad_(), batch[1]), plain)
    for name, option in (("reduction", "sum"), ("ignore_index", 1), ("ascent", 3.0)):
        for loss in (fused, other):
            setattr(loss, name, option)
        kept = torch.where(labels < 0, 2, labels)
        assert_same_step(fused, other, (logits.detach().requires_grad_(), kept), plain)
    fused.eval(), other.eval()
    torch.testing.assert_close(fused(logits, labels % 3), plain(other, logits, labels % 3))
    fused.train(), other.train()
    assert_same_step(fused, other, (logits.detach().requires_grad_(), labels % 3), plain)
    with pytest.raises(InvalidInputError, match="one entry for each row"):
        fused(logits, labels[:5])


def test_buffers_of_another_call(plain):
    fused, other = pair(LabelCVaR(0.3), COUNTS)
    first, second = batches(n_batches=2)
    fused(*first), plain(other, *first)
    before = copy.deepcopy(fused.state_dict())
    held = {name: value.clone() for name, value in fused.state_dict().items()}
    value = torch.func.functional_call(fused, held, second)
    torch.testing.assert_close(value, plain(other, *second))
    torch.testing.assert_close(fused.state_dict(), before, rtol=0, atol=0)
    torch.testing.assert_close(held, dict(other.state_dict()))


def test_checkpoints_copies_moves_and_other_rates(plain):
    loss = RobustLoss(LabelCVaR(0.3), COUNTS).to(DEVICE)
    given = list(batches(n_batches=4))
    loss(*given[0])
    twin = RobustLoss(LabelCVaR(0.3), COUNTS).to(DEVICE)
    twin.load_state_dict(loss.state_dict())
    stream = io.BytesIO()
    torch.save(loss, stream)
    stream.seek(0)
    stored = torch.load(stream, weights_only=False)
    copied = copy.deepcopy(loss).cpu().to(DEVICE)
    expected = plain(copy.deepcopy(loss), *given[1])
    for each in (loss, twin, stored, copied):
        torch.testing.assert_close(each(*given[1]), expected)
    loss.ascent, loss.window = 50.0, 0.1
    other = copy.deepcopy(loss)
    assert_same_step(loss, other, given[2], plain)


def test_plain_tensors_where_triton_cannot_compile(monkeypatch):
    def without_compiler(_):
        raise RuntimeError("Failed to find C compiler")

    logits, labels = next(batches())
    loss = RobustLoss(None, COUNTS).to(DEVICE)
    monkeypatch.setattr(fused_kernels, "set_one", {(1,): without_compiler})
    fused_step._works.cache_clear()
    assert not fused_step.fits(loss, logits, labels)
    loss(logits, labels).backward()
    monkeypatch.undo()
    fused_step._works.cache_clear()
    assert fused_step.fits(loss, logits, labels)


def test_plain_tensors_where_steps_do_not_fit():
    logits, labels = next(batches())
    loss = RobustLoss(None, COUNTS).to(DEVICE)
    assert fused_step.fits(loss, logits, labels)
    assert not fused_step.fits(loss, logits.double(), labels)
    assert not fused_step.fits(loss, logits, labels.to(torch.uint8))
    assert not fused_step.fits(RobustLoss(None, COUNTS, loss="squared_hinge"), logits, labels)
    assert not fused_step.fits(RobustLoss(None, COUNTS, reduction="none"), logits, labels)
    assert not fused_step.fits(copy.deepcopy(loss).eval(), logits, labels)
    torch.use_deterministic_algorithms(True)
    try:
        assert not fused_step.fits(loss, logits, labels)
    finally:
        torch.use_deterministic_algorithms(False)


# --- on a GPU -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.skipif(not ON_GPU, reason="no GPU here")
@each_set
def test_a_fused_step_waits_for_nothing(name):
    recipe, options = SETS[name]
    loss = RobustLoss(recipe, COUNTS, **options).to(DEVICE)
    (logits, labels), batch = batches(n_batches=2)
    loss(logits, labels).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(*batch).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:.*AccumulateGrad")  # warmed up on another stream
@pytest.mark.skipif(not ON_GPU, reason="no GPU here")
@pytest.mark.parametrize("n_classes", [3, 1000])
@pytest.mark.parametrize("ascent", ["auto", None])
def test_fused_steps_in_a_graph(n_classes, ascent, plain):
    fused, other = pair(LabelCVaR(0.3), np.full(n_classes, 50), ascent=ascent)
    first, second = batches(n_classes, 2, rows=500)
    logits, labels = first[0].detach().clone().requires_grad_(), first[1].clone()

    def step():
        logits.grad = None
        value = fused(logits, labels)
        value.backward()
        return value

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()
    with torch.no_grad():
        logits.copy_(second[0])
        labels.copy_(second[1])
    graph.replay()
    plain(other, *first)
    expected = plain(other, *second)
    expected.backward()
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(logits.grad, second[0].grad, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(fused.state_dict(), other.state_dict(), rtol=1e-5, atol=1e-7)


@pytest.mark.skipif(not ON_GPU, reason="no GPU here")
@pytest.mark.parametrize("ascent", ["auto", None])
@pytest.mark.parametrize(("n_classes", "rows"), [(2, 100_000), (700, 4096), (4096, 700)])
def test_many_rows_and_many_classes(n_classes, rows, ascent, plain):
    fused, other = pair(LabelCVaR(0.3), np.full(n_classes, 50), ascent=ascent)
    for batch in batches(n_classes, 2, rows=rows):
        assert_same_step(fused, other, batch, plain, rtol=1e-5)
