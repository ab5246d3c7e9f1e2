"""One pass of a network over the batches of a loader, without gradients and in ``eval()``.

Conventions
-----------
``take`` receives the values of a batch and its targets, both on the device of the network, and
returns what is kept of the batch: memory is that of one batch and of what is kept.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from equipoise.exceptions import InvalidInputError


def each_batch(
    network: Any, loader: Iterable[Any], take: Callable[[Any, Any], Any], layer: Any = None
) -> list[Any]:
    """What ``take`` returns for the outputs of each batch, or for the inputs of a layer."""
    seen: list[Any] = []
    hooks = []
    if layer is not None:
        hooks = [layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))]
    device = next((each.device for each in network.parameters()), torch.device("cpu"))
    kept, modes = [], {each: each.training for each in network.modules()}
    network.eval()
    try:
        with torch.no_grad():
            for batch in loader:
                inputs, targets = _split(batch)
                outputs = _run(network, inputs, device)
                values = seen.pop() if layer is not None else getattr(outputs, "logits", outputs)
                kept.append(take(values, targets.to(values.device)))
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes.items():
            module.training = training
    if not kept:
        raise InvalidInputError("The loader must give at least one batch, got none.")
    return kept


def vectors(values: Any) -> Any:
    """Values in single precision at least, one vector a row."""
    if values.ndim != 2:
        raise InvalidInputError(
            f"Every row must have one vector, got an array of shape {tuple(values.shape)} for a "
            "batch."
        )
    return values.float()


def _split(batch: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch, as loaders of PyTorch and of Hugging Face give them."""
    if isinstance(batch, Mapping) and "labels" in batch:
        return {name: value for name, value in batch.items() if name != "labels"}, batch["labels"]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    raise InvalidInputError(
        "A batch must be a pair of inputs and targets, or a dict with 'labels', got "
        f"{type(batch).__name__}."
    )


def _run(network: Any, inputs: Any, device: Any) -> Any:
    if isinstance(inputs, Mapping):
        return network(**{name: value.to(device) for name, value in inputs.items()})
    return network(inputs.to(device))
