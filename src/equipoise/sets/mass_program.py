r"""The concave quadratic programme in the masses that every SQP step solves.

.. math:: \max_{m \in M} \; \langle m, b \rangle - \tfrac12 m^\top A m

It has one unknown per class. Between floors and caps an active-set method solves it, and so it does
in an ellipsoid, whose multiplier is found by a search; any other set is asked for its ``maximize``
and ``project`` alone. Each method remembers where its last programme ended; ``solve`` gives masses
within ``tol`` of the optimum, or as near as rounding allows.
"""

from collections.abc import Callable

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.sets.base import MassSet

# Linear systems that are solved before projections look for the face: FEW_STEPS, and SMALL_STEPS
# divided by the number of classes more, so that many small systems cost as much as one large.
FEW_STEPS, SMALL_STEPS = 4, 2000
# Projections that look for a face, and those that end a programme over a curved set, where a face
# does not help.
FEW_PROJECTIONS, MANY_PROJECTIONS = 40, 3000
# Multipliers of an ellipsoid that are tried: halving its bracket alone takes as many, from the
# largest number to the rounding of one.
MOST_MULTIPLIERS = 120
# The least normal number, and the machine epsilon, of float64.
_TINY, _EPS = float(np.finfo(float).tiny), float(np.finfo(float).eps)


def _rounding(A: Matrix, b: Vector) -> Callable[[Vector], float]:
    """What rounding leaves unknown of the slopes ``b - A m``, for a semi-definite ``A``."""
    deviations = np.sqrt(np.maximum(A.diagonal(), 0.0))
    size, largest = float(np.abs(b).max()), float(deviations.max())
    return lambda mass: 4 * _EPS * (size + largest * float(deviations @ mass))


class ActiveSet:
    """Newton steps on the face between floors and caps that holds the optimum, once it is found.

    A primal active-set method (Nocedal and Wright 2006, section 16.5): classes at a bound join the
    face when their slope draws them off it, and leave when a step ends at a bound. Started from the
    last face, it usually needs one linear system; a face far from the last is found by projections.
    """

    def __init__(self, masses: MassSet, box: tuple[Vector, Vector], start: Vector) -> None:
        self._masses, self._box, self._mass = masses, box, start

    def solve(self, A: Matrix, b: Vector, tol: float) -> Vector:
        few = FEW_STEPS + SMALL_STEPS // len(b)
        mass, optimal = _best_between(A, b, *self._box, self._mass, tol, few)
        if not optimal:
            mass = _by_projections(self._masses, A, b, mass, tol, FEW_PROJECTIONS)
            mass, _ = _best_between(A, b, *self._box, mass, tol)
        self._mass = mass
        return mass.copy()


def _best_between(
    A: Matrix,
    b: Vector,
    lower: Vector,
    upper: Vector,
    mass: Vector,
    tol: float,
    most: int | None = None,
) -> tuple[Vector, bool]:
    """The masses between floors and caps, of the sum of those to start from; and if it has them."""
    rounding = _rounding(A, b)
    for _ in range(10 * len(b) + 50 if most is None else most):
        slope, room, fall = b - A @ mass, upper - mass, lower - mass
        free = (fall < 0) & (room > 0)
        face = free.nonzero()[0]
        if len(face) == 0:
            face = _best_pair(slope, room, fall)
            if not fall[face[1]] < 0 < room[face[0]]:
                return mass, True
        slope -= slope[face].sum() / len(face)
        # Whatever the level that slopes are measured from, no masses can gain more.
        if np.maximum(slope * room, slope * fall).sum() <= max(tol, rounding(mass)):
            return mass, True
        pull = np.maximum(np.where(room > 0, slope, 0.0), np.where(fall < 0, -slope, 0.0))
        face = (free | (pull > 0.5 * pull[~free].max(initial=0.0))).nonzero()[0]
        face, step = _newton_on_face(A, slope, room, fall, face)
        end = np.where(step < 0, fall[face], room[face])
        reach = np.divide(end, step, out=np.full(len(step), np.inf), where=step != 0)
        length = min(1.0, reach.min())
        mass = mass.copy()
        mass[face] = np.where(
            reach <= length,
            np.where(step < 0, lower[face], upper[face]),
            np.clip(mass[face] + length * step, lower[face], upper[face]),
        )
    return mass, False


def _newton_on_face(
    A: Matrix, slope: Vector, room: Vector, fall: Vector, face: Indices
) -> tuple[Indices, Vector]:
    """The Newton step on a face, and the face: less the classes at a bound that it would cross."""
    # Just enough to move along a valley without curvature, until a bound ends the step.
    trace = float(A.trace())
    slight = 1e-14 * (trace + float(np.abs(slope).max())) + _TINY
    while True:
        n = len(face)
        system = np.full((n + 1, n + 1), trace / len(A) + slight)
        system[:n, :n] = A[face[:, None], face]
        system.flat[:: n + 2] += slight
        system[n, n] = 0.0
        step = np.linalg.solve(system, np.append(slope[face], 0.0))[:n]
        inward = np.where(step < 0, fall[face] < 0, room[face] > 0)
        if inward.all():
            return face, step
        face = face[inward]
        if len(face) < 2:
            one, other = face = _best_pair(slope, room, fall)
            bend = A[one, one] + A[other, other] - 2 * A[one, other]
            shift = min(1.0, (slope[one] - slope[other]) / max(bend, slight))
            return face, np.array([shift, -shift])


def _best_pair(slope: Vector, room: Vector, fall: Vector) -> Indices:
    """The two classes between which a shift of mass gains most."""
    best, worst = np.where(room > 0, slope, -np.inf), np.where(fall < 0, slope, np.inf)
    return np.array([best.argmax(), worst.argmin()])


class InEllipsoid:
    r"""The programme between floors and caps, for the multiplier of the ellipsoid.

    .. math:: \max_{m \ge 0} \; \langle m, b \rangle - \tfrac12 m^\top A m
              - \tfrac{\lambda}{2} \bigl(\textstyle\sum_i w_i (m_i - c_i)^2 - 1\bigr)

    The distance from the centre falls with the multiplier, and its inverse is close to linear (Moré
    and Sorensen 1983). Masses on the boundary, inside of it, are within
    :math:`\tfrac{\lambda}{2} (1 - \sum_i w_i (m_i - c_i)^2)` of the optimum.
    """

    def __init__(self, center: Vector, weights: Vector, start: Vector) -> None:
        self._center, self._caps = center, np.isfinite(weights).astype(float)
        self._weights = np.where(np.isfinite(weights), weights, 0.0)
        self._mass, self._multiplier = start, 0.0

    def solve(self, A: Matrix, b: Vector, tol: float) -> Vector:
        multiplier = self._multiplier or self._first_multiplier(A, b) or tol
        low, high, best = -np.inf, np.inf, self._center
        known = [(0.0, -1.0)]  # multipliers, and inverse distances less one
        for _ in range(MOST_MULTIPLIERS):
            mass, square = self._at(multiplier, A, b, 0.5 * tol)
            known.append((multiplier, 1 / max(square, _TINY) ** 0.5 - 1))
            if square <= 1:
                high, best = multiplier, mass
                if multiplier * (1 - square) <= tol:
                    break
            else:
                low = multiplier
            if low >= (1 - 4 * _EPS) * high:
                break
            multiplier = _next_multiplier(known, low, high, tol)
        self._multiplier, self._mass = high if np.isfinite(high) else 0.0, best
        return best.copy()

    def _at(self, multiplier: float, A: Matrix, b: Vector, tol: float) -> tuple[Vector, float]:
        """The best masses for a multiplier, and the square of their distance from the centre."""
        pull = multiplier * self._weights
        system, floors = A + np.diag(pull), np.zeros(len(b))
        aims = b + pull * self._center
        self._mass, _ = _best_between(system, aims, floors, self._caps, self._mass, tol)
        return self._mass, float(self._weights @ (self._mass - self._center) ** 2)

    def _first_multiplier(self, A: Matrix, b: Vector) -> float:
        """The multiplier of the programme without curvature and floors."""
        inside = self._weights > 0
        slope = (b - A @ self._center)[inside]
        roots = np.sqrt(self._weights[inside])
        return float(np.linalg.norm((slope - slope.mean()) / roots))


def _next_multiplier(
    known: list[tuple[float, float]], low: float, high: float, tol: float
) -> float:
    """Where a line through the last two meets the boundary, a little inside; or half way."""
    (before, old), (here, value) = known[-2:]
    wanted = 0.25 * tol / max(here, _TINY)
    guess = here + (wanted - value) * (here - before) / (value - old) if value != old else np.nan
    if np.isinf(high):
        return float(np.clip(np.nan_to_num(guess), 2 * here, 100 * here))
    # A bracket that hardly shrinks is halved.
    if low < guess < high and guess > 0 and len(known) % 4:
        return float(guess)
    return 0.0 if low < 0 else max((low * high) ** 0.5, 1e-3 * high)


class SimplicialDecomposition:
    """Wolfe's method over the hull of the vertices that ``maximize`` has returned.

    Exact after finitely many steps on a polytope (von Hohenbalken 1977). Started from the
    vertices of the last programme, it usually needs one linear system. Where a curved set takes too
    many vertices, projections end the programme.
    """

    def __init__(self, masses: MassSet, start: Vector) -> None:
        self._masses = masses
        self._vertices, self._shares = start[None, :], np.ones(1)

    def solve(self, A: Matrix, b: Vector, tol: float) -> Vector:
        vertices, shares = self._vertices, self._shares
        images, rounding = vertices @ A, _rounding(A, b)
        for _ in range(2 * len(b) + 50):
            n = len(shares)
            shares, _ = _best_between(
                images @ vertices.T, vertices @ b, np.zeros(n), np.ones(n), shares, 0.1 * tol
            )
            used = shares > 0
            vertices, images, shares = vertices[used], images[used], shares[used] / shares.sum()
            mass: Vector = shares @ vertices
            slope = b - shares @ images
            vertex = self._masses.maximize(slope)
            known = np.any(np.all(vertices == vertex, axis=1))
            if known or slope @ (vertex - mass) <= max(tol, rounding(mass)):
                self._vertices, self._shares = vertices, shares
                return mass
            vertices, shares = np.vstack([vertices, vertex]), np.append(shares, 0.0)
            images = np.vstack([images, vertex @ A])
        mass = _by_projections(self._masses, A, b, mass, tol, MANY_PROJECTIONS)
        self._vertices, self._shares = mass[None], np.ones(1)
        return mass.copy()


def _by_projections(
    masses: MassSet, A: Matrix, b: Vector, mass: Vector, tol: float, most: int
) -> Vector:
    """Gradient steps with momentum and restarts, each projected (O'Donoghue and Candes 2015)."""
    # Where there is hardly any curvature, a step of this length ends at the best vertex.
    step = 1 / max(_largest_eigenvalue(A), 1e-12 * float(np.abs(b).max()) + _TINY)
    ahead, pace, rounding = mass, 1.0, _rounding(A, b)
    for count in range(1, most + 1):
        new = masses.project(ahead + step * (b - A @ ahead))
        if (ahead - new) @ (new - mass) > 0:
            pace, ahead = 1.0, new
        else:
            faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
            ahead, pace = new + (pace - 1) / faster * (new - mass), faster
        mass = new
        if count % 10 == 0:
            slope = b - A @ mass
            if slope @ (masses.maximize(slope) - mass) <= max(tol, rounding(mass)):
                break
    return mass


def _largest_eigenvalue(A: Matrix) -> float:
    vector = np.cos(np.arange(len(A)))
    for _ in range(30):
        image = A @ vector
        vector = image / max(float(np.linalg.norm(image)), np.finfo(float).tiny)
    return 1.1 * float(np.linalg.norm(A @ vector))


MassProgram = ActiveSet | InEllipsoid | SimplicialDecomposition


def mass_program(masses: MassSet, start: Vector) -> MassProgram:
    """The method that suits the set."""
    if masses.box is not None:
        return ActiveSet(masses, masses.box, start)
    if masses.ellipsoid is not None:
        return InEllipsoid(*masses.ellipsoid, start)
    return SimplicialDecomposition(masses, start)
