"""Payload from the difference of two sets of base parameters, after [Xu2024].

The base parameters with payload follow by recursive least squares from commanded motion,

    K = P Y' (xi 1 + Y P Y')^-1,   pi += K (tau - Y pi),   P -= K Y P,

from pi_a and P = 10 1. What the paper calls a forgetting factor, xi = 100, is the variance of the
torque: nothing is forgotten, and the result is ridge regression towards pi_a,

    min sum |tau - Y pi|^2 / xi + |pi - pi_a|^2 / 10.

The difference eps = pi_b - pi_a = C phi is solved by the paper's chain for its UR10, and for any
robot by phi = (C' L C)^-1 C' L eps with L the inverse covariance of eps, which uses all relations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError, TaufitError
from taufit.core.gaussian import inverse_at_unit_diagonal
from taufit.core.parameters import link_parameter
from taufit.dynamics import engine
from taufit.dynamics.base_parameters import base_parameters
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.payload.identification import MassReading, PayloadRun
from taufit.payload.linear_estimate import linear_estimate
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream
from taufit.terms import needs

TORQUE_VARIANCE = 100.0
START_VARIANCE = 10.0
# Stop rule of the paper: largest change in one sample, and number of samples in a row.
STOP_CHANGE, STOP_COUNT = 0.005, 300


@dataclass(slots=True, eq=False)
class RecursiveLeastSquares:
    """Recursive least squares as printed in the paper.

    Attributes:
        values: pi.
        covariance: P, in units of xi.
        xi: Variance of the torque, equal for all joints.
    """

    values: Float[Array, " p"]
    covariance: Float[Array, "p p"]
    xi: float = TORQUE_VARIANCE

    @classmethod
    def from_values(
        cls, values: Float[Array, " p"], start: float = START_VARIANCE, xi: float = TORQUE_VARIANCE
    ) -> Any:
        """Start from pi_a with P = start 1."""
        return cls(np.array(values, float), start * np.eye(len(values)), xi)

    def update(self, rows: Float[Array, "j p"], torque: Float[Array, " j"]) -> float:
        """Process one sample; return the largest change of a parameter."""
        cross_covariance = self.covariance @ rows.T
        gain = np.linalg.solve(
            self.xi * np.eye(len(rows)) + rows @ cross_covariance, cross_covariance.T
        ).T
        change = gain @ (torque - rows @ self.values)
        self.values += change
        self.covariance -= gain @ cross_covariance.T
        # Keep it symmetric against rounding over thousands of samples.
        self.covariance = 0.5 * (self.covariance + self.covariance.T)
        self.change = change
        return float(np.abs(change).max())

    change: Any = None


def paper_chain(
    difference: Float[Array, " 58"], a3: float, a4: float, d5: float, d6: float
) -> Float[Array, " 10"]:
    """Payload by the paper's equations (12) to (16), with its pi_31 read as Ixy of link 6.

    Args:
        difference: pi_b - pi_a in the paper's order.
        a3, a4, d5, d6: Lengths of its modified DH table [m].

    Returns:
        m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in the last link's frame.
    """
    e = np.concatenate([[0.0], np.asarray(difference)])  # numbered from 1 as in the paper
    ixy, ixz, iyz, izz, hx, hy = e[31], e[32], e[33], e[34], e[35], e[36]
    levers = np.array([a3, a4, d5])
    mass = levers @ np.array([e[7], e[14], e[22]]) / (levers @ levers)
    hz = -d6 * mass - e[29]
    iyy = 0.5 * (e[23] + e[27]) - 2.0 * d6 * hz - d6**2 * mass
    return np.array([mass, hx, hy, hz, e[30] + iyy, ixy, iyy, ixz, iyz, izz])


# The paper's base parameters used by its chain, by number, as sums of link parameters; the third
# entry is a length of its modified DH table.
_RELATIONS: dict[int, tuple[tuple[str, float, str], ...]] = {
    7: (("link_2.hx", 1, ""), *((link_parameter(i - 1, "m"), 1, "a3") for i in (3, 4, 5, 6))),
    14: (("link_3.hx", 1, ""), *((link_parameter(i - 1, "m"), 1, "a4") for i in (4, 5, 6))),
    22: (
        ("link_4.hy", 1, ""),
        ("link_5.hz", 1, ""),
        *((link_parameter(i - 1, "m"), 1, "d5") for i in (5, 6)),
    ),
    23: (
        ("link_5.Ixx", 1, ""),
        ("link_5.Iyy", -1, ""),
        ("link_6.Iyy", 1, ""),
        ("link_6.hz", 2, "d6"),
        ("link_6.m", 1, "d6^2"),
    ),
    27: (
        ("link_5.Izz", 1, ""),
        ("link_6.Iyy", 1, ""),
        ("link_6.hz", 2, "d6"),
        ("link_6.m", 1, "d6^2"),
    ),
    29: (("link_5.hy", 1, ""), ("link_6.hz", -1, ""), ("link_6.m", -1, "d6")),
    30: (("link_6.Ixx", 1, ""), ("link_6.Iyy", -1, "")),
    **{
        31 + i: ((f"link_6.{name}", 1, ""),)
        for i, name in enumerate(("Ixy", "Ixz", "Iyz", "Izz", "hx", "hy"))
    },
}


def paper_relations(
    model: FittedModel | TorqueModel, columns: Array, mapping: Float[Array, "b p"]
) -> tuple[Float[Array, "58 b"], tuple[float, float, float, float]]:
    """Matrix from this robot's base parameters to the paper's 58 differences, and a3, a4, d5, d6.

    Raises:
        TaufitError: The robot is not built like a UR, or its frames are not modified DH.
    """
    not_ur_error = TaufitError(
        f"the relations printed in [Xu2024] hold for arms built like a UR10, in modified DH "
        f"frames; {model.robot.name} is not one. Use the method difference: it holds for any."
    )
    if model.robot.joints != 6 or model.robot.is_tree:
        raise not_ur_error
    origin = model.robot.placements[:, :3, 3]
    lengths = {"a3": origin[2, 0], "a4": origin[3, 0], "d5": origin[4, 1], "d6": -origin[5, 1]}
    lengths |= {"": 1.0, "d6^2": lengths["d6"] ** 2}
    names = list(model.names)
    out = np.zeros((58, len(columns)))
    for number, parts in _RELATIONS.items():
        row = np.zeros(len(names))
        for name, factor, length in parts:
            row[names.index(name)] += factor * lengths[length]
        out[number - 1] = row[columns]
        if not np.allclose(row[columns] @ mapping, row, atol=1e-6):
            raise not_ur_error
    return out, (lengths["a3"], lengths["a4"], lengths["d5"], lengths["d6"])


def solve_difference(
    difference: Float[Array, " b"],
    covariance: Float[Array, "b b"],
    link_columns: Float[Array, "b 10"],
) -> tuple[Float[Array, " 10"], Float[Array, "10 10"]]:
    """phi = (C' L C)^-1 C' L eps over all relations, and its covariance.

    Args:
        difference: eps of the inertial base parameters.
        covariance: Covariance of eps.
        link_columns: C, the last link's ten parameters in the base parameters.
    """
    weight = inverse_at_unit_diagonal(covariance)
    payload_covariance = np.linalg.inv(link_columns.T @ weight @ link_columns)
    return payload_covariance @ (link_columns.T @ (weight @ difference)), payload_covariance


def run_difference(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    callback: Callable[..., None] | None = None,
) -> PayloadRun:
    """Run the paper's method with the payload solved over all relations."""
    return _run_recursion(model, source, printed=False)


def run_printed(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    callback: Callable[..., None] | None = None,
) -> PayloadRun:
    """Run the paper's method exactly as printed, with its equations (12) to (16)."""
    return _run_recursion(model, source, printed=True)


def _run_recursion(model: FittedModel, source: Stream, *, printed: bool) -> PayloadRun:
    if source.commanded is None:
        raise RecordingError(
            f"{source.name} has no commanded position, velocity and acceleration, which the method "
            "difference works on. Record them, or use the method filter."
        )
    joints = model.robot.joints
    base = base_parameters(model.structure)
    columns, mapping = np.asarray(base.columns), base.mapping
    model_base = mapping @ np.asarray(model.values)
    layout = model.layout
    last = layout.link(-1)
    all_columns = mapping[:, last]
    inertial = np.flatnonzero(np.any(all_columns != 0.0, axis=1))
    link_columns = all_columns[inertial]
    last_link = range(last.start, last.stop)
    last_columns = np.array(
        [i for i, c in enumerate(columns) if c in last_link and layout.quantities[c] != "Ixx"], int
    )
    relations, lengths = (
        paper_relations(model, columns, mapping) if printed else (None, (0.0, 0.0, 0.0, 0.0))
    )

    def solve(variance: float) -> tuple[Array, Array]:
        phi, covariance = _solve_relations(rls, model_base, inertial, link_columns, variance)
        if relations is None:
            return phi, covariance
        difference = relations @ (rls.values - model_base)
        # The chain is linear: covariance by its matrix.
        jacobian = np.stack([paper_chain(row, *lengths) for row in np.eye(58)], axis=1) @ relations
        last_columns = jacobian @ rls.covariance @ jacobian.T * (variance / rls.xi)
        return paper_chain(difference, *lengths), last_columns

    rls = RecursiveLeastSquares.from_values(model_base)
    q, v, a = source.commanded
    valid = np.isfinite(q + v + a + source.torque).all(axis=1)
    dynamics = engine(model.robot)
    history: list[MassReading] = []
    small_changes, stop_time, next_reading, residual_power, row_count = 0, None, 0.1, 0.0, 0
    load = None
    for i in np.flatnonzero(valid):
        sample = slice(i, i + 1)
        links = dynamics.regressor(q[sample], v[sample], a[sample])
        if needs(model.term_sum, "load"):
            load = links @ np.asarray(model.values)[layout.links]
        temperature = None if source.temperature is None else source.temperature[sample]
        regressor = model.structure.regressor(
            q[sample], v[sample], a[sample], load=load, temperature=temperature
        )
        rows = regressor[0][:, columns]
        residual = source.torque[i] - rows @ rls.values
        residual_power, row_count = residual_power + float(residual @ residual), row_count + joints
        rls.update(rows, source.torque[i])
        largest_change = np.abs(rls.change[last_columns]).max() if len(last_columns) else 0.0
        small_changes = small_changes + 1 if largest_change < STOP_CHANGE else 0
        if small_changes > STOP_COUNT and stop_time is None:
            stop_time = float(source.time[i])
        if source.time[i] >= next_reading:
            next_reading = (np.floor(source.time[i] / 0.1) + 1.0) * 0.1
            phi, _ = solve(residual_power / max(row_count, 1))
            mass = float(phi[0])
            reading = (float(source.time[i]), mass, np.nan, np.nan, stop_time is not None)
            history.append(MassReading(*reading))
    phi, _ = solve(residual_power / max(row_count, 1))
    # The covariance lacks the errors of the robot model: no valid interval.
    estimate = linear_estimate(float(source.time[-1]), phi, None, stop_time is not None)
    return PayloadRun(
        "printed" if printed else "difference",
        estimate,
        stop_time,
        stop_time,
        tuple(history),
        warnings=(*source.warnings, *estimate.warnings),
        details={
            "base_parameters": len(columns),
            "note": "the stop rule of [Xu2024] counts small changes and says nothing of accuracy",
        },
    )


def _solve_relations(
    rls: RecursiveLeastSquares,
    model_base: Array,
    inertial: Array,
    link_columns: Array,
    variance: float,
) -> tuple[Array, Array]:
    """Payload over all relations, with P scaled to the variance of the residual torque."""
    covariance = rls.covariance[np.ix_(inertial, inertial)] * (variance / rls.xi)
    return solve_difference((rls.values - model_base)[inertial], covariance, link_columns)
