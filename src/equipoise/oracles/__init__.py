"""Oracles: what solvers may ask of data that they never see themselves."""

from equipoise.oracles.base import Oracle, State
from equipoise.oracles.build import open_oracle
from equipoise.oracles.linear import LinearOracle

__all__ = ["LinearOracle", "Oracle", "State", "open_oracle"]
