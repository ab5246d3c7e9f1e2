"""The robust loss in PyTorch: the values of NumPy, gradients, memory, checkpoints, bad input."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from equipoise import LabelCVaR, WeightBox, WorstClass  # noqa: E402
from equipoise.exceptions import (  # noqa: E402
    ClassMismatchError,
    InvalidInputError,
    InvalidParameterError,
)
from equipoise.losses import LOSSES  # noqa: E402
from equipoise.sets import (  # noqa: E402
    SETS,
    MassSet,
    PriorBall,
    Uncertainty,
    WeightHull,
    check_point,
    check_risks,
)
from equipoise.torch import RobustLoss  # noqa: E402
from equipoise.torch.losses_of_rows import loss_of_rows  # noqa: E402
from equipoise.torch.mass_rules import (  # noqa: E402
    DEFAULT_ASCENT,
    CornerRule,
    HostRule,
    mass_rule,
)
from equipoise.weights import named_prior  # noqa: E402
from set_examples import every_example, few_examples  # noqa: E402
from torch_cases import (  # noqa: E402
    COUNTS,
    draw_logits,
    draw_rows,
    robust_value_and_gradient,
)

each_example = pytest.mark.parametrize("recipe", every_example(), ids=repr)
each_of_few = pytest.mark.parametrize("recipe", few_examples(), ids=repr)
PRIOR = COUNTS / COUNTS.sum()


def as_tensors(logits, labels, **how):
    return torch.tensor(logits, requires_grad=True, **how), torch.tensor(labels)


class Segment(Uncertainty):
    """A set that nobody has written a rule for: the prior, moved towards the last class."""

    def resolve(self, prior, classes=None):
        p, _ = named_prior(prior, classes)
        return SegmentSet(p)


class SegmentSet(MassSet):
    def __init__(self, prior):
        self.prior = prior
        self.end = (prior + np.eye(len(prior))[-1]) / 2

    @property
    def n_classes(self):
        return len(self.prior)

    def maximize(self, risks):
        vector = check_risks(risks, self.n_classes)
        return max(self.prior, self.end, key=lambda mass: mass @ vector)

    def project(self, point):
        vector = check_point(point, self.n_classes)
        way = self.end - self.prior
        return self.prior + np.clip((vector - self.prior) @ way / (way @ way), 0, 1) * way


# --- masses ---------------------------------------------------------------------------------------


@each_example
def test_rules_attain_what_the_sets_attain(recipe):
    rng = np.random.default_rng(0)
    for trial in range(60):
        k = int(rng.choice([2, 3, 10, 100]))
        prior = rng.dirichlet(np.full(k, rng.choice([0.5, 5.0]))) + 1e-6
        prior /= prior.sum()
        risks = rng.lognormal(0, rng.choice([0.1, 1.0, 3.0]), k)
        risks = np.ceil(4 * risks) if trial % 3 == 0 else risks  # with ties
        mass_set = recipe.resolve(prior)
        masses = mass_rule(mass_set, prior)(torch.tensor(risks)).numpy()
        np.testing.assert_allclose(mass_set.project(masses), masses, rtol=0, atol=1e-9)
        slack = 1e-9 * max(np.ptp(risks), 1e-3 * risks.max())
        assert masses @ risks == pytest.approx(float(mass_set.support(risks)), rel=0, abs=slack)


def test_many_classes():
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(3000))
    risks = np.round(rng.exponential(size=3000), 2)
    for recipe in (LabelCVaR(0.3), WeightBox(0.5, 2.0), PriorBall(0.1, "tv")):
        mass_set = recipe.resolve(prior)
        masses = mass_rule(mass_set, prior)(torch.tensor(risks)).numpy()
        np.testing.assert_allclose(masses, mass_set.maximize(risks), rtol=0, atol=1e-13)


@each_example
def test_infinite_risks_outrank_all_others(recipe):
    mass_set = recipe.resolve(PRIOR)
    risks = np.array([0.1, np.inf, 0.3])
    found = mass_rule(mass_set, PRIOR)(torch.tensor(risks)).numpy()
    assert found[1] == pytest.approx(mass_set.bounds[1][1], abs=1e-9)


@each_example
def test_mirror_ascent_takes_the_best_step_within_the_set(recipe):
    rule = mass_rule(recipe.resolve(PRIOR), PRIOR)
    rng = np.random.default_rng(0)
    others = torch.tensor(np.array([_nearest_state(recipe, rule, rng) for _ in range(200)]))
    state, rate = rule.start, 0.7
    for _ in range(5):
        risks = torch.tensor(rng.exponential(size=3))
        new = rule.ascend(state, risks, rate)

        def gain(at, state=state, risks=risks):
            return float(rate * (rule.masses(at) * risks).sum() - _divergence(rule, at, state))

        # What is kept of the start, a millionth, is all that the best step may lack.
        assert gain(new) >= max(map(gain, others)) - 1e-4
        masses = rule.masses(new).numpy()
        np.testing.assert_allclose(recipe.resolve(PRIOR).project(masses), masses, atol=1e-12)
        state = new


def _divergence(rule, at, state):
    """That of the rule's mirror ascent."""
    if isinstance(rule, HostRule):
        return len(at) * ((at - state) ** 2).sum() / 2
    return torch.where(at > 0, at * (at / state).log(), 0.0).sum()


def _nearest_state(recipe, rule, rng):
    drawn = rng.dirichlet(np.ones(len(rule.start)))
    return drawn if isinstance(rule, CornerRule) else recipe.resolve(PRIOR).project(drawn)


def test_mirror_ascent_comes_to_the_worst_case():
    for recipe in few_examples():
        mass_set = recipe.resolve(PRIOR)
        rule = mass_rule(mass_set, PRIOR)
        risks, state = torch.tensor([0.2, 0.5, 0.9]).double(), rule.start
        for _ in range(100):
            state = rule.ascend(state, risks, 1.0)
        masses = rule.masses(state).numpy()
        best = float(mass_set.support(risks.numpy()))
        assert masses @ risks.numpy() == pytest.approx(best, abs=1e-5)


def test_a_set_of_a_third_party_works_on_the_host():
    rule = mass_rule(Segment().resolve(PRIOR), PRIOR)
    assert isinstance(rule, HostRule)
    logits, labels = draw_logits()
    given, targets = as_tensors(logits, labels)
    loss = RobustLoss(Segment(), COUNTS).eval()
    value, gradient = robust_value_and_gradient(Segment().resolve(PRIOR), logits, labels)
    found = loss(given, targets)
    found.backward()
    assert found.item() == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(given.grad.numpy(), gradient, atol=1e-12)
    compiled = torch.compile(loss.train(), fullgraph=True, backend="aot_eager")
    compiled(given, targets)
    pushed = PRIOR + np.asarray(loss.class_risks) / 3
    expected = Segment().resolve(PRIOR).project(pushed)
    np.testing.assert_allclose(np.asarray(loss.worst_case_masses), expected)
    twin = copy.deepcopy(loss)
    twin(given, targets)
    stream = io.BytesIO()
    torch.save(loss, stream)
    stream.seek(0)
    torch.load(stream, weights_only=False)(given, targets)


# --- values and gradients -------------------------------------------------------------------------


@each_example
def test_in_eval_the_value_and_the_gradient_are_those_of_numpy(recipe):
    logits, labels = draw_logits()
    value, gradient = robust_value_and_gradient(recipe.resolve(PRIOR), logits, labels)
    given, targets = as_tensors(logits, labels)
    loss = RobustLoss(recipe, COUNTS).eval()
    before = copy.deepcopy(loss.state_dict())
    found = loss(given, targets)
    found.backward()
    assert found.dtype == torch.float64 and found.item() == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(given.grad.numpy(), gradient, rtol=0, atol=1e-9)
    assert all(torch.equal(before[name], kept) for name, kept in loss.state_dict().items())


@each_of_few
@pytest.mark.parametrize("name", ["cross_entropy", "squared_hinge", "smoothed_hinge"])
def test_gradients_are_derivatives(recipe, name):
    logits, labels = draw_logits(1, [6, 4, 3])
    given, targets = as_tensors(logits, labels)
    loss = RobustLoss(recipe, [6, 4, 3], loss=name).eval()
    assert torch.autograd.gradcheck(loss, (given, targets), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["cross_entropy_from_scores", "squared_hinge", "smoothed_hinge"])
def test_losses_of_rows_are_those_of_numpy(name):
    logits, labels = draw_logits(2)
    found = loss_of_rows(name.removesuffix("_from_scores"))(*map(torch.tensor, (logits, labels)))
    np.testing.assert_allclose(found.numpy(), LOSSES[name](labels, logits), atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_standard_weights_are_the_ordinary_cross_entropy(reduction, label_smoothing):
    logits, labels = draw_logits(3)
    labels[::7] = -100
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    given, targets = as_tensors(logits, labels)
    twin, _ = as_tensors(logits, labels)
    found = RobustLoss("standard", COUNTS, **options)(given, targets)
    expected = F.cross_entropy(twin, targets, **options)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(given.grad, twin.grad)


def test_rows_of_an_image_are_its_pixels():
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(size=(4, 3, 5, 6)))
    targets = torch.tensor(rng.integers(0, 3, size=(4, 5, 6)))
    flat = logits.movedim(1, -1).reshape(-1, 3), targets.reshape(-1)
    loss = RobustLoss("worst_class", COUNTS).eval()
    torch.testing.assert_close(loss(logits, targets), loss(*flat))
    loss.reduction = "none"
    assert loss(logits, targets).shape == targets.shape
    torch.testing.assert_close(loss(logits, targets).mean(), loss(*flat).mean())


def test_a_class_missing_from_a_batch_in_eval_is_as_bad_as_the_others():
    logits, labels = draw_logits(4)
    here = labels != 1
    given, targets = map(torch.tensor, (logits[here], labels[here]))
    standard = RobustLoss("standard", COUNTS).eval()(given, targets)
    rows = F.cross_entropy(given, targets, reduction="none")
    risks = [float(rows[targets == i].mean()) for i in (0, 2)]
    assert standard.item() == pytest.approx(np.average(risks, weights=PRIOR[[0, 2]]))
    assert RobustLoss("worst_class", COUNTS).eval()(given, targets).item() == pytest.approx(
        max(risks)
    )


# --- what is remembered ---------------------------------------------------------------------------


def test_class_risks_are_means_over_what_is_remembered():
    logits, labels = draw_logits(5)
    loss = RobustLoss("worst_class", COUNTS, window=0.3)
    sums = np.zeros((2, 3))
    for start in range(0, 100, 20):
        rows = slice(start, start + 20)
        given, targets = map(torch.tensor, (logits[rows], labels[rows]))
        loss(given, targets)
        losses = F.cross_entropy(given, targets, reduction="none").numpy()
        sums *= np.exp(-0.2 / 0.3)
        sums += [np.bincount(labels[rows], w, minlength=3) for w in (losses, None)]
    np.testing.assert_allclose(np.asarray(loss.class_risks), sums[0] / sums[1])


def test_a_class_missing_from_a_batch_is_no_event():
    logits, labels = draw_logits(6)
    loss = RobustLoss("worst_class", COUNTS)
    loss(*map(torch.tensor, (logits, labels)))
    before, here = loss.class_risks, labels != 2
    loss(*map(torch.tensor, (logits[here], labels[here])))
    assert loss.class_risks[2] == pytest.approx(before[2])
    empty = loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    assert empty.item() == 0 and loss.class_risks[2] == pytest.approx(before[2])
    ignored = torch.zeros(2, 3, requires_grad=True)
    loss(ignored, torch.tensor([-100, -100])).backward()
    assert torch.equal(ignored.grad, torch.zeros(2, 3))


def test_a_class_never_seen_neither_leads_nor_trails():
    loss = RobustLoss("worst_class", COUNTS, ascent=None)
    loss(torch.tensor([[0.0, 0, 0], [5.0, 0, 0]]), torch.tensor([0, 1]))
    assert np.isnan(loss.class_risks[2])
    assert loss.worst_case_masses.to_dict() == {0: 0, 1: 1, 2: 0}
    assert loss.robust_risk == pytest.approx(loss.class_risks[1])


def test_the_gradient_of_small_batches_is_without_bias():
    logits, labels = draw_logits(7)
    loss = RobustLoss("balanced", COUNTS)
    mean = np.zeros_like(logits)
    for rows in np.arange(100).reshape(25, 4):  # most batches lack a class
        given, targets = as_tensors(logits[rows], labels[rows])
        loss(given, targets).backward()
        mean[rows] = given.grad.numpy() / 25
    balanced = SETS["FixedWeights"]("balanced").resolve(PRIOR)
    np.testing.assert_allclose(mean, robust_value_and_gradient(balanced, logits, labels)[1])


def test_priors_of_the_population_and_counts_of_a_sampler_are_two_things():
    logits, labels = draw_logits(9, [30, 30, 30])
    prior = [0.7, 0.2, 0.1]
    loss = RobustLoss(LabelCVaR(0.5), [30, 30, 30], class_prior=prior, window=0.01, ascent=None)
    found = loss(*map(torch.tensor, (logits, labels)))
    value, _ = robust_value_and_gradient(LabelCVaR(0.5).resolve(prior), logits, labels)
    assert found.item() == pytest.approx(value)
    weights = loss.worst_case_weights
    assert np.asarray(weights) @ prior == pytest.approx(1) and weights.max() <= 2 + 1e-12


def test_classes_have_names():
    recipe = WeightBox(upper={"rare": 3.0})
    loss = RobustLoss(recipe, {"common": 90, "rare": 10}, ascent=None)
    loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert loss.worst_case_weights["rare"] == pytest.approx(3)
    assert "WeightBox" in repr(loss)


# --- precision and compilation --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_changes_the_loss_by_the_rounding_of_the_logits(dtype):
    logits, labels = draw_logits(10)
    half, targets = torch.tensor(logits).to(dtype), torch.tensor(labels)
    loss, same = RobustLoss(None, COUNTS), RobustLoss(None, COUNTS)
    assert loss(half, targets).dtype == torch.float32
    assert loss(half, targets).item() == pytest.approx(
        [same(half.double(), targets).item() for _ in range(2)][1], rel=1e-6
    )


def test_autocast_leaves_the_masses_alone():
    X, labels = draw_rows()
    rows, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(labels)
    network, found = torch.nn.Linear(3, 3), []
    for enabled in (False, True):
        loss = RobustLoss(WeightHull(["standard", "balanced"]), COUNTS)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss(network(rows), targets).backward()
        assert loss.masses.dtype == torch.float64
        found.append(np.asarray(loss.worst_case_masses))
    np.testing.assert_allclose(*found, atol=0.01)


def test_a_grad_scaler_finds_the_same_gradients_in_half_precision():
    X, labels = draw_rows()
    rows, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(labels)
    found = []
    for enabled in (False, True):
        torch.manual_seed(0)
        network = torch.nn.Linear(3, 3)
        loss = RobustLoss(None, COUNTS)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=enabled)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        with torch.autocast("cpu", torch.float16, enabled=enabled):
            value = loss(network(rows), targets)
        scaler.scale(value).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        found.append(network.weight.detach())
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-3)
    assert loss.step == 1 and not loss.broken.any()


def test_casting_the_network_leaves_the_sums_in_double_precision():
    loss = RobustLoss(LabelCVaR(0.3), COUNTS)
    module = torch.nn.ModuleDict({"loss": loss, "network": torch.nn.Linear(2, 3)})
    for cast in (module.half, module.bfloat16, lambda: module.to(torch.float32)):
        cast()
        assert loss.remembered.dtype == loss.rule.upper.dtype == torch.float64

    def no_doubles(tensor):
        if tensor.dtype == torch.float64:
            raise TypeError("no float64 on this device")
        return tensor

    loss._apply(no_doubles)
    assert loss.remembered.dtype == torch.float32
    loss(*map(torch.tensor, draw_logits()))
    assert loss.worst_case_weights.max() <= 1 / 0.3 + 1e-5


@each_of_few
def test_it_compiles_without_a_break(recipe):
    torch._dynamo.reset()
    logits, labels = draw_logits(11)
    given, targets = as_tensors(logits, labels)
    loss, twin = RobustLoss(recipe, COUNTS), RobustLoss(recipe, COUNTS)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(given, targets), loss(given, targets))
    torch.testing.assert_close(twin.state_dict(), loss.state_dict())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*deprecated")  # what torch says of itself
def test_the_default_compiler_takes_it():
    torch._dynamo.reset()
    logits, labels = draw_logits(12)
    given, targets = as_tensors(logits, labels)
    twin, _ = as_tensors(logits, labels)
    loss, other = RobustLoss(None, COUNTS), RobustLoss(None, COUNTS)
    compiled = torch.compile(loss, fullgraph=True)
    for _ in range(2):
        compiled(given, targets).backward()
        other(twin, targets).backward()
    torch.testing.assert_close(given.grad, twin.grad)
    assert np.allclose(np.asarray(loss.worst_case_masses), np.asarray(other.worst_case_masses))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("recipe", few_examples(), ids=repr)
def test_a_step_on_a_gpu_waits_for_nothing(recipe):
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    logits, labels = draw_logits(13)
    given, targets = torch.tensor(logits, device="cuda", requires_grad=True), torch.tensor(labels)
    loss, targets = RobustLoss(recipe, COUNTS).cuda(), targets.cuda()
    loss(given, targets).backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(given, targets).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    host = RobustLoss(recipe, COUNTS)
    for _ in range(2):
        host(given.detach().cpu(), targets.cpu())
    np.testing.assert_allclose(
        np.asarray(loss.worst_case_masses), np.asarray(host.worst_case_masses), atol=1e-9
    )


@pytest.mark.filterwarnings("ignore")  # what compilers say of themselves
def test_compiled_for_a_gpu_the_masses_are_the_same():
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    torch._dynamo.reset()
    logits, labels = draw_logits(13)
    given, targets = torch.tensor(logits).cuda().requires_grad_(), torch.tensor(labels).cuda()
    loss, host = RobustLoss(LabelCVaR(0.3), COUNTS).cuda(), RobustLoss(LabelCVaR(0.3), COUNTS)
    compiled = torch.compile(loss, fullgraph=True)
    for _ in range(3):
        compiled(given, targets).backward()
        host(given.detach().cpu(), targets.cpu())
    np.testing.assert_allclose(
        np.asarray(loss.worst_case_masses), np.asarray(host.worst_case_masses), atol=1e-9
    )


# --- bad input ------------------------------------------------------------------------------------


def test_counts_that_do_not_match_the_logits():
    with pytest.raises(ClassMismatchError, match=r"each of the 3 classes .* got shape \(5, 4\)"):
        RobustLoss(None, COUNTS)(torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64))


@pytest.mark.parametrize("count", [0, -3, np.nan, np.inf])
def test_a_class_without_rows(count):
    with pytest.raises(InvalidParameterError, match=r"positive for every class, got .* class 'b'"):
        RobustLoss(None, {"a": 5, "b": count})


def test_one_class_is_no_classification():
    with pytest.raises(InvalidParameterError, match="at least 2 classes"):
        RobustLoss(None, [5])


@pytest.mark.parametrize(
    "targets", [torch.full((5, 3), 1 / 3), torch.zeros(5, 3, dtype=torch.int64), torch.zeros(5)]
)
def test_soft_targets_are_refused_with_a_reason(targets):
    with pytest.raises(InvalidInputError, match=r"one class a row.*belongs to none.*argmax"):
        RobustLoss(None, COUNTS)(torch.zeros(5, 3), targets)


def test_targets_of_another_number():
    with pytest.raises(InvalidInputError, match=r"one entry for each row .* \(4,\) and \(5, 3\)"):
        RobustLoss(None, COUNTS)(torch.zeros(5, 3), torch.zeros(4, dtype=torch.int64))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_told_with_class_and_step(value):
    logits, targets = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
    loss = RobustLoss(None, COUNTS, classes=["x", "y", "z"])
    loss(logits, targets)
    before = loss.class_risks
    logits[1, 0] = value
    assert not torch.isfinite(loss(logits, targets))
    loss(torch.zeros(4, 3), targets)
    with pytest.raises(InvalidInputError, match="class 'y' was not a finite number in step 2"):
        loss.class_risks  # noqa: B018
    # It is said once, and what is remembered was kept clean.
    assert loss.class_risks.to_dict() == pytest.approx(before.to_dict())
    checked = RobustLoss(None, COUNTS, check=True)
    with pytest.raises(InvalidInputError, match="class 1 was not a finite number in step 1"):
        checked(logits, targets)


@pytest.mark.parametrize("stray", [3, -1])
def test_targets_that_are_no_classes(stray):
    targets = torch.tensor([0, 1, stray])
    loss = RobustLoss(None, COUNTS)
    assert torch.isnan(loss(torch.zeros(3, 3), targets))
    with pytest.raises(InvalidInputError, match=r"0 to 2, or ignore_index = -100; .* in step 1"):
        loss.worst_case_weights  # noqa: B018
    with pytest.raises(InvalidInputError, match="targets must be classes"):
        RobustLoss(None, COUNTS, check=True)(torch.zeros(3, 3), targets)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "crossentropy"}, "did you mean 'cross_entropy'"),
        ({"loss": "squared_hinge", "label_smoothing": 0.1}, "is a part of loss"),
        ({"label_smoothing": 1.5}, r"label_smoothing must be a number in \[0, 1\]"),
        ({"reduction": "average"}, "reduction must be one of"),
        ({"window": 0}, r"window must be a number in \(0, inf\)"),
        ({"ascent": -1.0}, "ascent must be"),
        ({"check": 1}, "check must be True or False"),
        ({"class_prior": [0.5, 0.5, 0.5]}, "must sum to 1"),
    ],
)
def test_parameters_outside_their_range(options, words):
    with pytest.raises(InvalidParameterError, match=words):
        RobustLoss("worst_class", COUNTS, **options)


def test_masses_of_all_sets_follow_alike_and_a_single_weighting_stays():
    for recipe in (WorstClass(), PriorBall(0.2), WeightHull(["standard", "balanced"])):
        assert RobustLoss(recipe, COUNTS).ascent == DEFAULT_ASCENT
        assert RobustLoss(recipe, COUNTS, ascent=2).ascent == 2.0
    assert RobustLoss("balanced", COUNTS).ascent is None


def test_alpha_is_not_chosen_here():
    with pytest.raises(InvalidParameterError, match="alone choose it"):
        RobustLoss(LabelCVaR("auto"), COUNTS)
