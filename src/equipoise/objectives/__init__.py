"""Oracles: what solvers may ask of data that they never see themselves."""

from equipoise.objectives.base import Oracle, State
from equipoise.objectives.build import open_oracle
from equipoise.objectives.linear import LinearOracle

__all__ = ["LinearOracle", "Oracle", "State", "open_oracle"]
