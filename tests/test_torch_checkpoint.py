"""States of the robust loss: stored and loaded, and refused by a loss for something else."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from equipoise import LabelCVaR, WeightBox  # noqa: E402
from equipoise.exceptions import InvalidInputError  # noqa: E402
from equipoise.sets import PriorBall, WeightHull  # noqa: E402
from equipoise.torch import RobustLoss  # noqa: E402
from set_examples import every_example, few_examples  # noqa: E402
from torch_cases import COUNTS, draw_logits  # noqa: E402


def stored(loss):
    """The state as a checkpoint gives it back."""
    stream = io.BytesIO()
    torch.save(loss.state_dict(), stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)


@pytest.mark.parametrize("recipe", few_examples(), ids=repr)
def test_training_goes_on_from_a_checkpoint_as_if_nothing_had_happened(recipe):
    logits, labels = draw_logits(8)
    loss, twin = RobustLoss(recipe, COUNTS), RobustLoss(recipe, COUNTS)
    batches = [(torch.tensor(logits[i::5]), torch.tensor(labels[i::5])) for i in range(5)]
    for batch in batches[:3]:
        loss(*batch)
    twin.load_state_dict(stored(loss))
    for batch in batches[3:]:
        assert torch.equal(loss(*batch), twin(*batch))
    assert loss.worst_case_weights.to_dict() == twin.worst_case_weights.to_dict()
    assert loss.class_risks.to_dict() == twin.class_risks.to_dict()


@pytest.mark.parametrize("recipe", every_example(), ids=repr)
def test_no_set_takes_the_state_of_another_one(recipe):
    state = stored(RobustLoss(recipe, COUNTS))
    RobustLoss(recipe, COUNTS).load_state_dict(state)
    for other in every_example():
        if repr(other) == repr(recipe):
            continue
        with pytest.raises(InvalidInputError, match="must be that of a RobustLoss for the same"):
            RobustLoss(other, COUNTS).load_state_dict(state)


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ((LabelCVaR(0.2), COUNTS), {}, r"LabelCVaR\(alpha=0.3\) for LabelCVaR\(alpha=0.2\): make"),
        ((PriorBall(0.2), COUNTS), {}, r"LabelCVaR\(alpha=0.3\) for PriorBall\(.*radius=0.2"),
        ((LabelCVaR(0.3), [60, 25, 15, 5]), {}, "a state of 3 classes for 4"),
        ((LabelCVaR(0.3), COUNTS), {"classes": ["a", "b", "c"]}, "classes 0, 1, 2 for 'a', 'b'"),
        ((LabelCVaR(0.3), [25, 60, 15]), {}, "the prior 0.6 of class 0 for one with 0.25"),
        ((LabelCVaR(0.3), COUNTS), {"class_prior": [0.5, 0.3, 0.2]}, "prior 0.15 of class 2 for "),
    ],
)
def test_the_sentence_says_what_differs(given, options, words):
    state = stored(RobustLoss(LabelCVaR(0.3), COUNTS))
    network = torch.nn.ModuleDict({"loss": RobustLoss(*given, **options)})
    for loss, held in ((network["loss"], state), (network, _inside(state))):
        with pytest.raises(InvalidInputError, match=words):
            loss.load_state_dict(held)
        with pytest.raises(InvalidInputError, match="or train this one from its start"):
            loss.load_state_dict(held, strict=False)


def _inside(state):
    """The state as a part of a network's."""
    return {f"loss.{name}": value for name, value in state.items()}


def test_the_same_set_written_otherwise_takes_the_state():
    state = stored(RobustLoss(WeightBox(0.5, 2.0), COUNTS))
    RobustLoss(WeightBox(np.float64(0.5), 2), 10 * COUNTS).load_state_dict(state)
    state = stored(RobustLoss(WeightHull([[1.0, 1, 1], "balanced"]), COUNTS))
    RobustLoss(WeightHull((np.ones(3), "balanced")), COUNTS.tolist()).load_state_dict(state)
    state = stored(RobustLoss(None, COUNTS, window=1.0, ascent=2.0))
    RobustLoss(None, COUNTS, reduction="sum", ascent=None).load_state_dict(state)


def test_of_many_classes_every_one_counts():
    names = [f"class {i}" for i in range(300)]
    counts = dict.fromkeys(names, 10)
    upper = dict.fromkeys(names, 3.0)
    state = stored(RobustLoss(WeightBox(upper=upper), counts))
    RobustLoss(WeightBox(upper=dict(upper)), counts).load_state_dict(state)
    with pytest.raises(InvalidInputError, match=r"WeightBox\(.*\.\.\. for WeightBox"):
        RobustLoss(WeightBox(upper=upper | {names[-1]: 2.0}), counts).load_state_dict(state)


def test_states_are_tensors_alone():
    """As those who clone, move or average the values of a state expect them."""
    loss = RobustLoss(None, COUNTS)
    held = {name: value.detach().clone() for name, value in loss.state_dict().items()}
    assert all(isinstance(value, torch.Tensor) for value in held.values())
    RobustLoss(None, COUNTS).load_state_dict(held)
    twin = copy.deepcopy(loss)
    twin.load_state_dict(stored(loss))
