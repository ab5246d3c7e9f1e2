"""Deep networks: a robust loss for training loops, and an exact robust last layer.

This room needs PyTorch (``pip install 'equipoise[torch]'``) and is imported by its own name,
``import equipoise.torch``; nothing else of the library imports it.
"""

from equipoise.extras import require

require("torch", extra="torch")

from equipoise.torch.robust_loss import RobustLoss  # noqa: E402  the sentence comes first

__all__ = ["RobustLoss"]
