"""Objective of a motion search: criterion of the information plus penalties, with derivatives.

Free coefficients go through the limit scaling (joint limits always hold), then through the
information matrix to a criterion; torque, tip speed and clearances are penalties on another grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.excitation.certificate import predicted_torque
from taufit.excitation.criteria import Criterion
from taufit.excitation.limit_scaling import LimitScaling
from taufit.excitation.objective import InformationOf
from taufit.excitation.scene import Clearances, Scene
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class DesignProblem:
    """Objective, penalties and grids of a search about one centre pose."""

    information: InformationOf
    basis: Float[Array, "4 n m"]
    gauge: LimitScaling
    centre: Float[Array, " j"]
    prior: Float[Array, "b b"] | None
    scene: Scene
    clearances: Clearances
    torque: Float[Array, " j"]
    coarse: Float[Array, "4 k m"]
    margin: float = 0.0
    share: float = 0.98
    projectors: Float[Array, "j m m"] | None = None
    others: tuple[InformationOf, ...] = ()

    def coefficients(self, free: Float[Array, " f"]) -> tuple[Float[Array, "j m"], Any]:
        """Feasible coefficients from free ones, and intermediate results for the gradient."""
        shaped = free.reshape(len(self.centre), -1)
        if self.projectors is not None:
            shaped = np.einsum("jmk,jk->jm", self.projectors, shaped)
        return self.gauge.apply(shaped)

    def back(self, gradient: Float[Array, "j m"], memory: Any) -> Float[Array, " f"]:
        """Gradient with respect to the free coefficients."""
        pulled = self.gauge.pull(gradient, memory)
        if self.projectors is not None:
            pulled = np.einsum("jmk,jk->jm", self.projectors, pulled)
        return pulled.ravel()

    def states(
        self, coefficients: Float[Array, "j m"], basis: Float[Array, "4 n m"]
    ) -> list[Float[Array, "n j"]]:
        moved = basis[:3] @ coefficients.T
        return [moved[0] + self.centre, moved[1], moved[2]]

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
        by = np.stack(self.information.pull(states, rows, slope))
        if self.others:
            value, by = self._worst(states, criterion, value, by)
        gradient = _summed(by, self.basis)
        extra = 0.0
        if penalty > 0:
            extra, by = self.penalty(self.states(coefficients, self.coarse))
            value += penalty * extra
            gradient += penalty * _summed(by, self.coarse)
        return value, self.back(gradient, memory), matrix, extra

    def _worst(
        self, states: list[Float[Array, "n j"]], criterion: Criterion, value: float, by: Array
    ) -> tuple[float, Array]:
        """Smoothed maximum over the robot variations: ln sum exp(8 value)/8."""
        values, pulls = [value], [by]
        for other in self.others:
            matrix, rows = other.matrix(*states)
            one, slope = criterion.evaluate(matrix if self.prior is None else matrix + self.prior)
            values.append(one)
            pulls.append(np.stack(other.pull(states, rows, slope)))
        scaled_up = 8.0 * (np.array(values) - max(values))
        share = np.exp(scaled_up)
        total = share.sum()
        worst = max(values) + float(np.log(total)) / 8.0
        return worst, np.tensordot(share / total, np.array(pulls), axes=1)

    @property
    def constrained(self) -> bool:
        return bool(
            self.clearances.names
            or np.any(np.isfinite(self.torque))
            or np.isfinite(self.scene.tip_speed)
        )

    def penalty(self, states: list[Float[Array, "k j"]]) -> tuple[float, Float[Array, "3 k j"]]:
        """Penalty for violated torque, tip speed and clearance, and its derivative by q, v, a."""
        q, v, a = states
        total, by = 0.0, np.zeros((3, *q.shape))
        if self.clearances.names:
            total, by[0] = self.clearances.penalty(q, self.margin)
        if np.any(np.isfinite(self.torque)):
            # Limits apply to the torque of the links; friction shifts them.
            model = self.information.model
            engine = self.information.engine
            torque = predicted_torque(model, q, v, a)
            over = np.maximum(np.abs(torque) / (self.share * self.torque) - 1.0, 0.0)
            if np.any(over):
                total += 100.0 * float(np.sum(over**2)) / len(q)
                pull = 200.0 * over * np.sign(torque) / (self.share * self.torque) / len(q)
                pull[:, ~np.isfinite(self.torque)] = 0.0
                into = pull[:, :, None] * model.robot.parameters
                by += np.stack(engine.regressor_adjoint(q, v, a, into))
        if np.isfinite(self.scene.tip_speed):
            excess, by_q, by_v = _tip_speed(
                self.information.model.robot, q, v, self.share * self.scene.tip_speed
            )
            total += 100.0 * excess
            by[0] += 100.0 * by_q
            by[1] += 100.0 * by_v
        return total, by


def _summed(by: Float[Array, "3 n j"], basis: Float[Array, "4 n m"]) -> Float[Array, "j m"]:
    """Sum over q, v, a and times of by * basis."""
    joints, size = by.shape[2], basis.shape[2]
    return by.reshape(-1, joints).T @ basis[:3].reshape(-1, size)


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
    over = np.maximum(size / limit - 1.0, 0.0)
    n, joints = q.shape
    direction = speed / size[:, None]
    scale = 2.0 * over / limit / n
    by_v = scale[:, None] * np.einsum("nka,na->nk", j, direction)
    by_q = np.zeros_like(q)
    for i in range(joints):
        change = np.zeros((n, 3))
        for k in range(joints):
            turned = np.cross(w[:, i], j[:, k]) if i <= k else np.cross(w[:, k], j[:, i])
            change += turned * v[:, k, None]
        by_q[:, i] = scale * np.sum(change * direction, axis=1)
    return float(np.mean(over**2)), by_q, by_v
