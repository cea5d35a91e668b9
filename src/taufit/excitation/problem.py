"""Objective of a motion search: criterion of the information plus penalties, with derivatives.

Free coefficients go through the limit scaling (joint limits always hold), then through the
information matrix to a criterion; torque, tip speed and clearances are penalties on another grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation.certificate import predicted_torque
from taufit.excitation.criteria import Criterion
from taufit.excitation.limit_scaling import LimitScaling
from taufit.excitation.objective import MotionInformation
from taufit.excitation.scene import Clearances, Scene
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class DesignProblem:
    """Objective, penalties and grids of a search about one centre pose."""

    information: MotionInformation
    basis: Float[Array, "4 n m"]
    limit_scaling: LimitScaling
    centre: Float[Array, " j"]
    prior: Float[Array, "b b"] | None
    scene: Scene
    clearances: Clearances
    torque: Float[Array, " j"]
    penalty_basis: Float[Array, "4 k m"]
    margin: float = 0.0
    limit_fraction: float = 0.98
    projectors: Float[Array, "j m m"] | None = None
    variations: tuple[MotionInformation, ...] = ()

    def coefficients(self, free: Float[Array, " f"]) -> tuple[Float[Array, "j m"], Any]:
        """Feasible coefficients from free ones, and intermediate results for the gradient."""
        shaped = free.reshape(len(self.centre), -1)
        if self.projectors is not None:
            shaped = np.einsum("jmk,jk->jm", self.projectors, shaped)
        return self.limit_scaling.apply(shaped)

    def free_gradient(self, gradient: Float[Array, "j m"], memory: Any) -> Float[Array, " f"]:
        """Gradient with respect to the free coefficients."""
        free_gradient = self.limit_scaling.pull(gradient, memory)
        if self.projectors is not None:
            free_gradient = np.einsum("jmk,jk->jm", self.projectors, free_gradient)
        return free_gradient.ravel()

    def states(
        self, coefficients: Float[Array, "j m"], basis: Float[Array, "4 n m"]
    ) -> list[Float[Array, "n j"]]:
        deviations = basis[:3] @ coefficients.T
        return [deviations[0] + self.centre, deviations[1], deviations[2]]

    def matrix(self, states: list[Float[Array, "n j"]]) -> tuple[Array, Array]:
        matrix, rows = self.information.matrix(*states)
        return (matrix if self.prior is None else matrix + self.prior), rows

    def evaluate(
        self, free: Float[Array, " f"], criterion: Criterion, penalty: float
    ) -> tuple[float, Float[Array, " f"], Float[Array, "b b"], float]:
        """Objective, its gradient, the information matrix and the penalty."""
        coefficients, memory = self.coefficients(free)
        states = self.states(coefficients, self.basis)
        matrix, rows = self.matrix(states)
        value, slope = criterion.evaluate(matrix)
        state_gradient = np.stack(self.information.pull(states, rows, slope))
        if self.variations:
            value, state_gradient = self._worst_case(states, criterion, value, state_gradient)
        gradient = _coefficient_gradient(state_gradient, self.basis)
        extra = 0.0
        if penalty > 0:
            extra, state_gradient = self.penalty(self.states(coefficients, self.penalty_basis))
            value += penalty * extra
            gradient += penalty * _coefficient_gradient(state_gradient, self.penalty_basis)
        return value, self.free_gradient(gradient, memory), matrix, extra

    def _worst_case(
        self, states: list[Float[Array, "n j"]], criterion: Criterion, value: float, gradient: Array
    ) -> tuple[float, Array]:
        """Smoothed maximum over the robot variations: ln sum exp(8 value)/8."""
        values, pulls = [value], [gradient]
        for variation in self.variations:
            matrix, rows = variation.matrix(*states)
            varied_value, slope = criterion.evaluate(
                matrix if self.prior is None else matrix + self.prior
            )
            values.append(varied_value)
            pulls.append(np.stack(variation.pull(states, rows, slope)))
        scaled_up = 8.0 * (np.array(values) - max(values))
        factors = np.exp(scaled_up)
        total = factors.sum()
        worst = max(values) + float(np.log(total)) / 8.0
        return worst, np.tensordot(factors / total, np.array(pulls), axes=1)

    @property
    def has_penalties(self) -> bool:
        return bool(
            self.clearances.names
            or np.any(np.isfinite(self.torque))
            or np.isfinite(self.scene.tip_speed)
        )

    def penalty(self, states: list[Float[Array, "k j"]]) -> tuple[float, Float[Array, "3 k j"]]:
        """Penalty for violated torque, tip speed and clearance, and its derivative by q, v, a."""
        q, v, a = states
        total, gradient = 0.0, np.zeros((3, *q.shape))
        if self.clearances.names:
            total, gradient[0] = self.clearances.penalty(q, self.margin)
        if np.any(np.isfinite(self.torque)):
            # Limits apply to the torque of the links; friction shifts them.
            model = self.information.model
            engine = self.information.engine
            torque = predicted_torque(model, q, v, a)
            over = np.maximum(np.abs(torque) / (self.limit_fraction * self.torque) - 1.0, 0.0)
            if np.any(over):
                total += 100.0 * float(np.sum(over**2)) / len(q)
                pull = 200.0 * over * np.sign(torque) / (self.limit_fraction * self.torque) / len(q)
                pull[:, ~np.isfinite(self.torque)] = 0.0
                regressor_gradient = pull[:, :, None] * model.robot.parameters
                gradient += np.stack(engine.regressor_adjoint(q, v, a, regressor_gradient))
        if np.isfinite(self.scene.tip_speed):
            excess, by_q, by_v = _tip_speed(
                self.information.model.robot, q, v, self.limit_fraction * self.scene.tip_speed
            )
            total += 100.0 * excess
            gradient[0] += 100.0 * by_q
            gradient[1] += 100.0 * by_v
        return total, gradient


def _coefficient_gradient(
    state_gradient: Float[Array, "3 n j"], basis: Float[Array, "4 n m"]
) -> Float[Array, "j m"]:
    """Sum over q, v, a and times of by * basis."""
    joints, size = state_gradient.shape[2], basis.shape[2]
    return state_gradient.reshape(-1, joints).T @ basis[:3].reshape(-1, size)


def _tip_speed(
    robot: Robot, q: Float[Array, "n j"], v: Float[Array, "n j"], limit: float
) -> tuple[float, Float[Array, "n j"], Float[Array, "n j"]]:
    """Mean squared excess of the tip's speed over its limit, with derivatives.

    The tip moves with J v; dJ_k/dq_i = w_i x J_k for i <= k and w_k x J_i for i > k.
    """
    from taufit.dynamics import jacobian

    full = jacobian(robot, q)
    w, j = np.swapaxes(full[:, :3], 1, 2), np.swapaxes(full[:, 3:], 1, 2)
    speed = np.einsum("nka,nk->na", j, v)
    size = np.maximum(np.linalg.norm(speed, axis=1), 1e-9)
    excess = np.maximum(size / limit - 1.0, 0.0)
    n, joints = q.shape
    direction = speed / size[:, None]
    scale = 2.0 * excess / limit / n
    by_v = scale[:, None] * np.einsum("nka,na->nk", j, direction)
    by_q = np.zeros_like(q)
    for i in range(joints):
        change = np.zeros((n, 3))
        for k in range(joints):
            column_change = np.cross(w[:, i], j[:, k]) if i <= k else np.cross(w[:, k], j[:, i])
            change += column_change * v[:, k, None]
        by_q[:, i] = scale * np.sum(change * direction, axis=1)
    return float(np.mean(excess**2)), by_q, by_v
