"""The study of long tails: its rows, its choice on validation rows, and what it says in the end."""

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import long_tail  # noqa: E402
import long_tail_show  # noqa: E402

LABELS = np.repeat(np.arange(10), 6000)


@pytest.mark.parametrize("imbalance", long_tail.IMBALANCES)
def test_the_tail_falls_by_a_constant_factor_and_a_fifth_is_held_out(imbalance):
    train, validation = long_tail.long_tail(LABELS, imbalance, 6000, 0)
    assert not set(train) & set(validation)
    held, counts = np.bincount(LABELS[validation]), np.bincount(LABELS[train])
    both = held + counts
    assert both[0] == 6000 and both[-1] == 6000 // imbalance
    assert both[:-1] / both[1:] == pytest.approx(imbalance ** (1 / 9), rel=0.02)
    assert held / both == pytest.approx(0.2, abs=0.01)
    other, _ = long_tail.long_tail(LABELS, imbalance, 6000, 1)
    assert set(other) != set(train)


def test_images_are_shifted_and_flipped_and_nothing_else():
    torch.manual_seed(0)
    images = torch.arange(1.0, 785).reshape(1, 1, 28, 28).expand(200, -1, -1, -1)
    found = long_tail.augmented(images)
    assert found.shape == images.shape
    padded = torch.nn.functional.pad(images[0, 0], (2, 2, 2, 2))
    windows = [padded[y : y + 28, x : x + 28] for y in range(5) for x in range(5)]
    windows += [window.flip(1) for window in windows]
    seen = [next(i for i, w in enumerate(windows) if torch.equal(w, image[0])) for image in found]
    assert len(set(seen)) > 40


@pytest.mark.parametrize("method", long_tail.METHODS)
def test_every_loss_trains(method):
    torch.manual_seed(0)
    labels = torch.arange(40) % 10
    images = torch.randn(40, 1, 28, 28)
    scale = long_tail.Scale(width=2, epochs=2, batch=20, stride=4)
    network = long_tail.trained(method, images, labels, scale, 0)
    logits = long_tail.logits_of(network, images)
    assert logits.shape == (40, 10) and np.isfinite(logits).all()


def a_line(method, found, seed=0, imbalance=100):
    """A piece in which all classes but the first have the recall 0.9."""
    ways = {
        name: {
            way: {"validation": [held] + [0.9] * 9, "test": [test] + [0.9] * 9}
            for way, (held, test) in values.items()
        }
        for name, values in found.items()
    }
    return {
        "imbalance": imbalance,
        "seed": seed,
        "method": method,
        "found": ways,
        "training_seconds": 1.0,
    }


def lines(ours):
    other = {"plain": (0.1, 0.5), "tuned": (0.1, 0.6)}
    names = (*long_tail_show.BELOW, long_tail_show.POST_HOC)
    return [a_line(name, {name: other}) for name in names] + [
        a_line("RobustLoss, worst class", {"RobustLoss, worst class": ours})
    ]


def test_the_best_of_ours_is_chosen_on_validation_rows():
    values = long_tail_show.values_of(lines({"plain": (0.4, 0.7), "tuned": (0.3, 0.8)}))
    assert values[long_tail_show.BEST][0][0] == 0.7
    assert values["RobustLoss, worst class + decision weights"][0][0] == 0.8


@pytest.mark.parametrize(("recall", "holds"), [(0.7, 6), (0.54, 4), (0.45, 1)])
def test_verdicts_are_printed_whatever_they_are(recall, holds, capsys):
    long_tail_show.show(lines({"plain": (0.4, recall), "tuned": (0.3, 0.8)}))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("imbalance")]
    assert len(said) == 6
    assert sum(line.endswith(": holds") for line in said) == holds
