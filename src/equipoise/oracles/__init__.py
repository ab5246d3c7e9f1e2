"""Oracles: class risks, gradients and curvature of a linear model, for solvers that never see data."""

from equipoise.oracles.base import Oracle, State
from equipoise.oracles.build import open_oracle
from equipoise.oracles.linear import LinearOracle

__all__ = ["LinearOracle", "Oracle", "State", "open_oracle"]
