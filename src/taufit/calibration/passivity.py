"""Least squares with passive friction: linear inequalities on the coefficients.

Coulomb, static and load terms are not negative, nor is friction by load at low speed. The viscous
part p(v) = f1 v + f2 v|v| + f3 v^3 is dissipative and does not fall with speed: p'(v) >= 0 up to a
top speed.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.terms import LOAD
from taufit.terms.friction import Friction

_SPEED_POINTS = 25


@dataclass(frozen=True, slots=True, eq=False)
class PassivityConstraints:
    """Linear inequalities G x >= 0 on the coefficients x of a friction model.

    Attributes:
        rows: G, one row per inequality and one column per term.
    """

    rows: Float[Array, "g k"]

    def holds(self, x: Float[Array, " m"], active: Bool[Array, " k"]) -> bool:
        """Whether coefficients of the active terms satisfy every inequality."""
        values = self.rows[:, active] @ x
        return bool(np.all(values >= -1e-9 * max(1e-12, float(np.abs(x).max(initial=0.0)))))

    def solve(
        self, columns: Float[Array, "n m"], y: Float[Array, " n"], active: Bool[Array, " k"]
    ) -> Float[Array, " m"]:
        """min |columns x - y| with rows x >= 0, exactly: least distance by NNLS [Lawson1974].

        With columns = Q R and z = R x - Q'y the inequalities are H z >= h; the nearest z to 0 comes
        from the residual of NNLS on (H'; h') against the last unit vector.
        """
        from scipy.optimize import nnls

        # With fewer rows than columns, the ridge below determines the rest of x.
        missing_rows = max(0, columns.shape[1] - len(columns))
        columns, y = np.pad(columns, ((0, missing_rows), (0, 0))), np.pad(y, (0, missing_rows))
        size = np.linalg.norm(columns, axis=0)
        size[size == 0.0] = 1.0
        q, r = np.linalg.qr(columns / size)
        # Columns that nearly coincide are separated by a ridge far below the noise.
        r = r + 1e-10 * np.eye(len(r))
        projection = q.T @ y
        limits = self.rows[:, active] / size
        limits = limits[np.any(limits != 0, axis=1)]
        length = np.linalg.norm(limits, axis=1, keepdims=True)
        h_rows = np.linalg.solve(r.T, (limits / length).T).T
        h = -h_rows @ projection
        scale = max(1.0, float(np.abs(h).max(initial=0.0)))
        stacked = np.vstack([h_rows.T, h[None] / scale])
        unit = np.zeros(len(stacked))
        unit[-1] = 1.0
        dual, _ = nnls(stacked, unit)
        residual = stacked @ dual - unit
        z = -residual[:-1] / residual[-1] * scale if residual[-1] != 0 else np.zeros(len(r))
        return np.linalg.solve(r, z + projection) / size


def passivity_constraints(model: Friction, top_speed: float) -> PassivityConstraints:
    """Inequalities of a passive friction curve up to a speed."""
    size = len(model.parameters)
    rows = [
        np.eye(size)[i]
        for i, term in enumerate(model.parameters)
        if term.nonnegative and not term.power
    ]
    # Friction by load at low speed is the sum of the coefficients per unit of load.
    by_load = [term.group == LOAD and term.unit == "1" for term in model.parameters]
    if sum(by_load) > 1:
        rows.append(np.array(by_load, float))
    powers = np.array([term.power for term in model.parameters])
    if np.any(powers):
        for v in np.linspace(0.0, top_speed, _SPEED_POINTS):
            # d/dv v^p, in units that do not grow with speed.
            slope = np.where(powers > 0, powers * v ** np.maximum(powers - 1, 0), 0.0)
            rows.append(slope / np.abs(slope).max())
    return PassivityConstraints(np.array(rows).reshape(-1, size))
