"""Deep networks: a robust loss for training loops, and an exact robust last layer.

This room needs PyTorch (``pip install 'equipoise[torch]'``) and is imported by its own name,
``import equipoise.torch``; nothing else of the library imports it.
"""

# ruff: noqa: E402  the sentence that says what to install comes first

from equipoise.extras import require

require("torch", extra="torch")

from equipoise.torch.long_tail_losses import (
    CosineLinear,
    DeferredLDAMLoss,
    FocalLoss,
    GroupDROLoss,
    LogitAdjustedLoss,
    adjusted_logits,
    class_balanced_weights,
)
from equipoise.torch.robust_head import DecisionWeights, RobustHead, tune_decisions
from equipoise.torch.robust_loss import RobustLoss

__all__ = [
    "CosineLinear",
    "DecisionWeights",
    "DeferredLDAMLoss",
    "FocalLoss",
    "GroupDROLoss",
    "LogitAdjustedLoss",
    "RobustHead",
    "RobustLoss",
    "adjusted_logits",
    "class_balanced_weights",
    "tune_decisions",
]
