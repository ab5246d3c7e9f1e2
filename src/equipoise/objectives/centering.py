"""Newton steps in the intercepts alone: until the weighted risk has no gradient along them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.arrays import Mask, Vector, library, like, norm, to_numpy

if TYPE_CHECKING:
    from equipoise.objectives.base import Evaluation, Objective

# CENTER_STEPS, CENTER_HALVINGS: Newton steps in the intercepts, and halvings of one, at most.
CENTER_STEPS, CENTER_HALVINGS = 30, 10
# ROUNDING: relative rise of the weighted risk that is rounding.
ROUNDING = 1e-13
# MANY_INTERCEPTS: with more, the Hessian in them is not formed: Newton steps are found by products
# with it, or where each would be a pass over data that are not in memory, by its diagonal alone.
MANY_INTERCEPTS = 200
# PRODUCTS: for one step, at most; INEXACT: its relative error; NO_GAIN: predicted decrease, as a
# share of the risk, at which such steps end.
PRODUCTS, INEXACT, NO_GAIN = 60, 0.03, 1e-14


class ShiftMoments(NamedTuple):
    """Growth of the class risks by a shift of the scores; gradient and Hessian after it.

    The last may be a tensor, on the device of the rows.
    """

    growths: Vector
    gradient: Vector
    curvature: Any


def center_shift(
    objective: Objective, state: Evaluation, mass: Vector, left: float = 0.0
) -> tuple[Vector, Vector]:
    """The shift after which the weighted risk has no gradient, and growths of the risks.

    A gradient of the length ``left`` is none.
    """
    shift = objective.kernel.departed(mass)
    live = np.isfinite(shift)
    if not np.any(live):
        return shift, objective.growths(state, shift)
    here, reach = objective.moments_at(state, shift, mass), 1.0
    for _ in range(CENTER_STEPS):
        slope, no_gain = np.where(live, here.gradient, 0.0), objective.no_gain
        if float(np.abs(slope).sum()) <= 1e-13 or norm(slope) <= left:
            break
        product = None
        if here.curvature.ndim == 1:
            product = objective.intercept_product(state, shift, mass)
        if product is None:
            whole = intercept_step(here.curvature, slope, live)
        else:
            diagonal = np.maximum(to_numpy(here.curvature), 1e-300)
            whole = conjugate_gradients(
                product, np.where(live, 1 / diagonal, 0.0), slope, PRODUCTS, INEXACT
            )
            no_gain = max(no_gain, NO_GAIN)
        if float(slope @ whole) <= no_gain * float(mass @ (state.risks + here.growths)):
            break
        step = np.clip(whole, -reach, reach)
        if objective.flat and not np.array_equal(step, whole):
            reach *= 2  # without curvature, ever longer steps
        # The next Newton step would be the square of one as short as this.
        if here.curvature.ndim == 2 and float(np.abs(step).max()) < objective.kernel.settled:
            return shift - step, objective.growths(state, shift - step)
        moved = _search_shift(objective, state, mass, here, shift, step)
        if moved is None:
            break
        shift, here = moved
    return shift, here.growths


def _search_shift(
    objective: Objective,
    state: Evaluation,
    mass: Vector,
    here: ShiftMoments,
    shift: Vector,
    step: Vector,
) -> tuple[Vector, ShiftMoments] | None:
    """The step, halved until it does not raise the weighted risk; None where all do."""
    limit = float(mass @ here.growths) + ROUNDING * (1 + float(mass @ state.risks))
    for halvings in range(CENTER_HALVINGS):
        trial = shift - step / 2**halvings
        there = objective.moments_at(state, trial, mass)
        if float(mass @ there.growths) <= limit:
            return trial, there
    return None


def intercept_step(curvature: Any, slope: Vector, live: Mask) -> Vector:
    """A Newton step in the intercepts; with many classes, one by the diagonal alone."""
    if curvature.ndim == 1:
        # Two classes that are confused with each other make whole steps twice too long.
        return np.asarray(slope / (1.5 * np.maximum(to_numpy(curvature), 1e-300)))
    step, solve = np.zeros(len(slope)), import_module(library(curvature)).linalg.solve
    hessian = curvature if np.all(live) else curvature[live][:, live]
    typical, places = float(hessian.trace()) / len(hessian), np.arange(len(hessian))
    if len(slope) == 1:
        hessian = hessian + 0.0
    else:  # equal shifts change nothing: left singular, rounding would choose one
        hessian, typical = hessian + typical, 2 * typical
    # Where a loss is linear there is no curvature: the step is then as long as it may be.
    hessian[places, places] += 1e-12 * max(typical, 1e-3)
    step[live] = to_numpy(solve(hessian, like(slope[live], hessian)))
    return step


def conjugate_gradients(
    product: Callable[[Vector], Vector], inverse: Vector, left: Vector, most: int, accuracy: float
) -> Vector:
    """A solution for the right side ``left`` in a limited number of products.

    ``inverse`` is that of the diagonal; the accuracy is relative, in the norm that it makes.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> solution = conjugate_gradients(
    ...     matrix.__matmul__, 1 / matrix.diagonal(), np.array([3.0, 4.0]), 5, 1e-9
    ... )
    >>> solution.round(9).tolist()
    [1.0, 1.0]
    """
    step, along = np.zeros(len(left)), inverse * left
    now = first = float(left @ along)
    for _ in range(most):
        image = product(along)
        curvature = float(along @ image)
        if not curvature > 0:
            break
        step, left = step + now / curvature * along, left - now / curvature * image
        better = inverse * left
        before, now = now, float(left @ better)
        if now <= accuracy**2 * first:
            break
        along = better + now / before * along
    return step
