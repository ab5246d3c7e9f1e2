"""Analyses: numbers in, frames out."""

from equipoise.analysis.path import RobustPath, robust_path

__all__ = ["RobustPath", "robust_path"]
