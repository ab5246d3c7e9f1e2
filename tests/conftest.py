"""What every test needs before the first import of SciPy."""

import os

# scikit-learn's estimator checks silently skip those of the array API without it, and SciPy reads
# it once, on import. An empty value turns it off.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
