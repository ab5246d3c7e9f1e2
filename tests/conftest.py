"""What every test needs before the first import of SciPy."""

import os
from functools import partial

import pytest
from hypothesis import settings

# Workers share cores: an example that takes 200 ms is no failure, and a test has a timeout.
settings.register_profile("equipoise", deadline=None)
settings.load_profile("equipoise")

# scikit-learn's estimator checks silently skip those of the array API without it, and SciPy reads
# it once, on import. An empty value turns it off.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture
def few_stages(monkeypatch):
    """Boosters of tables with ten stages: for what does not depend on their number."""
    from equipoise.tables import features

    few = partial(features.HistGradientBoostingClassifier, max_iter=10)
    monkeypatch.setattr(features, "HistGradientBoostingClassifier", few)
