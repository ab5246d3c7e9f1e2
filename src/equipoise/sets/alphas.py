r"""How the level :math:`\alpha` of LabelCVaR is picked where the user names none.

At :math:`\alpha` no class counts more than :math:`1/\alpha` times its share: 1 is the standard
risk, and from the smallest prior downwards the set is the simplex, so that the worst class decides.
"""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector

# The level that users meet first: no class counts more than ten times its share.
DEFAULT_ALPHA = 0.1
# Below this level a class of one row in a hundred decides alone: grids end here.
LOWEST_ALPHA = 0.01


def middle_alpha(prior: ArrayLike) -> float:
    """A level between standard and worst class: 0.1, unless no cap binds there.

    Examples
    --------
    >>> middle_alpha([0.95, 0.05]), middle_alpha([0.75, 0.25])
    (0.1, 0.5)
    """
    smallest = float(np.min(prior))
    if smallest < DEFAULT_ALPHA:
        return DEFAULT_ALPHA
    # Halfway on a logarithmic scale between 1 and where the caps stop binding.
    return max(round(float(np.sqrt(smallest)), 2), LOWEST_ALPHA)


def alpha_grid(prior: ArrayLike | None = None, n_values: int = 10) -> Vector:
    """So many levels from standard to worst class, evenly spaced on a logarithmic scale.

    With a class prior the grid ends where no cap binds any more, and holds the level of
    :func:`middle_alpha`; without one it ends at 0.01.

    Examples
    --------
    >>> alpha_grid(n_values=3).round(3).tolist()
    [1.0, 0.1, 0.01]
    >>> alpha_grid([0.95, 0.05], n_values=4).round(3).tolist()
    [1.0, 0.368, 0.1, 0.05]
    """
    if prior is None:
        return np.geomspace(1.0, LOWEST_ALPHA, n_values)
    lowest = float(np.clip(np.min(prior), LOWEST_ALPHA, 0.5))
    grid, middle = np.geomspace(1.0, lowest, n_values), middle_alpha(prior)
    if middle > lowest:
        nearest = int(np.argmin(np.abs(np.log(grid / middle))))
        grid[np.clip(nearest, 1, n_values - 2)] = middle
    return grid
