"""The regressor a second time, by Lagrange on 4x4 poses: no twists, no wrenches, no recursion of
forces. It accepts complex states, so a complex step differentiates it exactly.

    tau_i = sum over links b of  trace(dT_b/dq_i  P_b  (T_b'' - [0 g; 0 0])')

with P_b the link's 4x4 pseudo-inertia, which is linear in the ten parameters.
"""

from __future__ import annotations

import numpy as np

from taufit.robot import Robot, pseudo_inertia


def _matrix(screw: np.ndarray) -> np.ndarray:
    w, u = screw[:3], screw[3:]
    out = np.zeros((4, 4))
    out[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    out[:3, 3] = u
    return out


def _exponential(s: np.ndarray, q: complex) -> np.ndarray:
    """exp(s q): for a unit or zero rotation s^4 = -s^2 resp. s^2 = 0."""
    if not np.any(s[:3, :3]):
        return np.eye(4) + s * q
    return np.eye(4) + s * q + s @ s * (1 - np.cos(q)) + s @ s @ s * (q - np.sin(q))


def lagrange_regressor(robot: Robot, q, v, a) -> np.ndarray:
    """Y of one state, real or complex."""
    joints = robot.joints
    basis = pseudo_inertia(np.eye(10))
    gravity = np.zeros((4, 4))
    gravity[:3, 3] = robot.gravity
    kind = np.result_type(q, v, a)
    out = np.zeros((joints, 10 * joints), kind)
    pose, rate, second = np.eye(4, dtype=kind), np.zeros((4, 4), kind), np.zeros((4, 4), kind)
    slopes: list[np.ndarray] = []  # dT/dq_i of the link at hand
    for b, link in enumerate(robot.links):
        s = _matrix(link.screw)
        step = link.placement @ _exponential(s, q[b])
        step_rate = step @ s * v[b]
        step_second = step @ (s @ s * v[b] ** 2 + s * a[b])
        second = second @ step + 2 * rate @ step_rate + pose @ step_second
        rate = rate @ step + pose @ step_rate
        pose = pose @ step
        slopes = [slope @ step for slope in slopes] + [pose @ s]
        for i, slope in enumerate(slopes):
            inner = slope.T @ (second - gravity)
            out[i, 10 * b : 10 * b + 10] = np.einsum("kxy,xy->k", basis, inner)
    return out
