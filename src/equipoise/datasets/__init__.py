"""Data to try things on: bundled, read from the package, without a download."""

from equipoise.datasets.thyroid import load_thyroid

__all__ = ["load_thyroid"]
