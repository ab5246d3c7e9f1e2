r"""The concave quadratic programme in the masses that every SQP step solves.

.. math:: \max_{m \in M} \; \langle m, b \rangle - \tfrac12 m^\top A m

It has one unknown per class and needs only the set's own ``maximize`` and ``project``. Each method
remembers where its last programme ended; ``solve`` gives masses within ``tol`` of the optimum, or
as near as rounding allows.
"""

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.sets import MassSet

# Above so many classes the vertices of simplicial decomposition cost more than projections.
MANY_CLASSES = 25
NEWTON_STEPS = 20


class SimplicialDecomposition:
    """Wolfe's method over the hull of the vertices that ``maximize`` has returned.

    Exact after finitely many steps on a polytope (von Hohenbalken 1977). Started from the
    vertices of the last programme, it usually needs one linear system.
    """

    def __init__(self, masses: MassSet, start: Vector) -> None:
        self._masses = masses
        self._vertices, self._shares = start[None, :], np.ones(1)

    def solve(self, A: Matrix, b: Vector, tol: float) -> Vector:
        vertices, shares = self._vertices, self._shares
        for _ in range(10 * len(b) + 50):
            shares = _best_in_hull(vertices @ A @ vertices.T, vertices @ b, shares)
            used = shares > 0
            vertices, shares = vertices[used], shares[used]
            mass = shares @ vertices
            slope = b - A @ mass
            vertex = self._masses.maximize(slope)
            known = np.any(np.all(vertices == vertex, axis=1))
            if slope @ (vertex - mass) <= tol or known:
                break
            vertices = np.vstack([vertices, vertex])
            shares = np.append(shares * (1 - 1e-3), 1e-3)
        self._vertices, self._shares = vertices, shares / shares.sum()
        return self._shares @ vertices


def _best_in_hull(Q: Matrix, q: Vector, shares: Vector) -> Vector:
    r"""Shares :math:`\lambda` in the simplex that maximise :math:`q \lambda - \lambda Q \lambda/2`.

    From interior shares, move to the optimum of the affine hull; where a share would turn
    negative, stop at zero and leave that vertex out.
    """
    shares = shares.copy()
    slight = 1e-14 * (np.trace(Q) + float(np.abs(q).max())) + np.finfo(float).tiny
    Q = Q + np.eye(len(q)) * slight
    active = np.flatnonzero(shares > 0)
    while True:
        goal = _affine_optimum(Q[np.ix_(active, active)], q[active])
        here = shares[active]
        if np.all(goal > 0):
            shares[:] = 0
            shares[active] = goal
            return shares
        falling = goal <= 0
        reach = float(np.min(here[falling] / (here[falling] - goal[falling])))
        moved = here + reach * (goal - here)
        moved[moved < 1e-14] = 0
        shares[active] = moved
        active = active[moved > 0]


def _affine_optimum(Q: Matrix, q: Vector) -> Vector:
    n = len(q)
    if n == 1:
        return np.ones(1)
    system = np.ones((n + 1, n + 1))
    system[:n, :n], system[n, n] = Q, 0
    return np.linalg.solve(system, np.append(q, 1.0))[:n]


class AcceleratedProjection:
    """Projected gradient steps with momentum and restarts (O'Donoghue and Candes 2015).

    When they have cost as many projections as a Newton step would, one is tried: ill-conditioned
    programmes end with it as soon as the face that holds the optimum is found.
    """

    def __init__(self, masses: MassSet, start: Vector) -> None:
        self._masses, self._mass = masses, start

    def solve(self, A: Matrix, b: Vector, tol: float) -> Vector:
        # Where there is hardly any curvature, a step of this length ends at the best vertex.
        slight = 1e-12 * float(np.abs(b).max()) + np.finfo(float).tiny
        step = 1 / max(_largest_eigenvalue(A), slight)
        mass = ahead = self._mass
        pace, patience = 1.0, 10 * -(-len(b) // 10)
        for count in range(1, 3001):
            new = self._masses.project(ahead + step * (b - A @ ahead))
            if (ahead - new) @ (new - mass) > 0:
                pace, ahead = 1.0, new
            else:
                faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
                ahead, pace = new + (pace - 1) / faster * (new - mass), faster
            mass = new
            if count % 10 > 0:
                continue
            if count >= patience:
                mass = ahead = self._polished(A, b, mass, step, tol)
                pace, patience = 1.0, 2 * patience
            if self._gap(A, b, mass) <= tol:
                break
        self._mass = mass
        return mass

    def _gap(self, A: Matrix, b: Vector, mass: Vector) -> float:
        """How far the objective can still rise, by its slope."""
        slope = b - A @ mass
        return float(slope @ (self._masses.maximize(slope) - mass))

    def _polished(self, A: Matrix, b: Vector, mass: Vector, step: float, tol: float) -> Vector:
        """Newton steps for as long as they halve the gap."""
        gap = self._gap(A, b, mass)
        for _ in range(NEWTON_STEPS):
            if gap <= tol:
                break
            trial = self._newton_step(A, b, mass, step)
            before, gap = gap, self._gap(A, b, trial)
            if not gap < 0.5 * before:
                break
            mass = trial
        return mass

    def _newton_step(self, A: Matrix, b: Vector, mass: Vector, step: float) -> Vector:
        r"""Newton's step for the fixed point :math:`m = \Pi_M(m + s (b - A m))`.

        The derivative of the projection is found by differences: on a polytope they are exact.
        """
        project, unit = self._masses.project, np.eye(len(b))
        point = mass + step * (b - A @ mass)
        image, small = project(point), 1e-7 * max(1.0, float(np.abs(point).max()))
        slopes = np.array([project(point + small * e) - image for e in unit]).T / small
        system = unit - slopes @ (unit - step * A)
        # Masses that change nothing are left alone.
        move = np.linalg.lstsq(system, image - mass, rcond=1e-13)[0]
        return np.asarray(project(mass + move))


def _largest_eigenvalue(A: Matrix) -> float:
    vector = np.cos(np.arange(len(A)))
    for _ in range(30):
        image = A @ vector
        vector = image / max(float(np.linalg.norm(image)), np.finfo(float).tiny)
    return 1.1 * float(np.linalg.norm(A @ vector))


MassProgram = SimplicialDecomposition | AcceleratedProjection


def mass_program(masses: MassSet, start: Vector) -> MassProgram:
    """The method that suits the number of classes."""
    many = masses.n_classes > MANY_CLASSES
    return (AcceleratedProjection if many else SimplicialDecomposition)(masses, start)
