"""Regressor of many samples: by the compiled kernel if available, else by NumPy.

Results equal those of `recursion`, the reference implementation; tests compare the two. A
`RegressorEngine` is a robot prepared for repeated calls; the functions here keep one per robot.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.parameters import PER_LINK
from taufit.robot import Robot

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Loaded only where the kernel does not do the work.
_RECURSION = "taufit.dynamics.recursion"
_CACHE_BYTES = 16 << 20  # size above which output bypasses the caches [bytes]


class RegressorEngine:
    """Constants of a robot, prepared for batches of states.

    Args:
        robot: Robot whose dynamics are evaluated.
        gravity, parameters: Values in place of the robot's.
        compiled: Whether to use the kernel; by default if available.

    Attributes:
        robot: Robot of the engine.
        gravity: Gravity vector in the base frame [m/s^2].
        compiled: Whether the kernel does the work.
    """

    __slots__ = ("_geometry", "_regressor_once", "_shape", "compiled", "gravity", "kernel", "robot")

    def __init__(
        self,
        robot: Robot,
        *,
        gravity: Float[Array, " 3"] | None = None,
        parameters: Float[Array, " p"] | None = None,
        compiled: bool | None = None,
    ) -> None:
        self.robot = robot
        self.gravity = np.array(robot.gravity if gravity is None else gravity, float)
        self.compiled = _kernel is not None if compiled is None else compiled
        self.compiled &= not robot.is_tree
        self.kernel: Any = None
        self._shape = (robot.joints, robot.layout.size)
        if self.compiled:
            if _kernel is None:
                raise ImportError("taufit was installed without its compiled kernel")
            self._geometry = (
                np.ascontiguousarray(robot.placements, float),
                np.ascontiguousarray(robot.screws, float),
                self.gravity,
            )
            self._set_parameters(robot.parameters if parameters is None else parameters)
        elif parameters is not None:
            self.robot = robot.with_parameters(parameters)

    def with_parameters(self, parameters: Float[Array, " p"]) -> RegressorEngine:
        """Engine of the same robot with other inertial parameters, for control loops."""
        if not self.compiled:
            return RegressorEngine(
                self.robot, gravity=self.gravity, parameters=parameters, compiled=False
            )
        out = copy(self)
        out._set_parameters(parameters)
        return out

    def _set_parameters(self, parameters: Float[Array, " p"]) -> None:
        self.kernel = _kernel.Engine(*self._geometry, parameters.reshape(-1, PER_LINK))
        self._regressor_once = self.kernel.regressor_once

    def regressor(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        *,
        threads: int = 1,
        out: Float[Array, "n j p"] | None = None,
    ) -> Float[Array, "n j p"]:
        """Regressor Y with tau = Y theta, theta the 10 j inertial parameters link after link.

        `out`, contiguous doubles, is filled and returned: reused memory is three times as fast as
        fresh memory for large batches.
        """
        q, v, a = self._check_states(q, v, a)
        if not self.compiled:
            rows: Array = import_module(_RECURSION).regressor(
                self.robot, q, v, a, gravity=self.gravity
            )
            if out is None:
                return rows
            out[:] = rows
            return out
        # Fresh pages are zeroed in the caches; only reused memory gains from bypassing them.
        bypass_caches = out is not None and out.nbytes > _CACHE_BYTES
        if out is None:
            out = np.empty((len(q), *self._shape))
        self.kernel.regressor(q, v, a, out, threads, bypass_caches)
        return out

    def regressor_once(
        self,
        q: Float[Array, " j"],
        v: Float[Array, " j"],
        a: Float[Array, " j"],
        out: Float[Array, "j p"] | None = None,
    ) -> Float[Array, "j p"]:
        """Regressor Y of a single sample, for real-time loops."""
        if out is None:
            out = np.empty(self._shape)
        if self.compiled:
            self._regressor_once(q, v, a, out)
        else:
            q, v, a = (np.asarray(x, float)[None] for x in (q, v, a))
            out[:] = self.regressor(q, v, a)[0]
        return out

    def inverse_dynamics(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        *,
        threads: int = 1,
    ) -> Float[Array, "n j"]:
        """Joint torques of the rigid links."""
        q, v, a = self._check_states(q, v, a)
        if not self.compiled:
            of_links = import_module(_RECURSION).inverse_dynamics
            return np.asarray(of_links(self.robot, q, v, a, gravity=self.gravity))
        out = np.empty_like(q)
        self.kernel.torque(q, v, a, out, threads)
        return out

    def forward_kinematics(self, q: Float[Array, "n j"]) -> Float[Array, "n k 4 4"]:
        """Poses in the base frame of the j link frames and, last, the tip."""
        if not self.compiled:
            return np.asarray(import_module(_RECURSION).forward_kinematics(self.robot, q))
        links = np.empty((len(q), self.robot.joints, 4, 4))
        self.kernel.poses(np.ascontiguousarray(q, float), links)
        return np.concatenate([links, links[:, -1:] @ self.robot.tip], axis=1)

    def regressor_adjoint(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        gradient: Float[Array, "n j p"],
        *,
        threads: int = 1,
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        """Gradient of sum(gradient * Y(q, v, a)) with respect to q, v and a, exact."""
        q, v, a = self._check_states(q, v, a)
        if not self.compiled:
            from taufit.dynamics import adjoint

            return adjoint.regressor_adjoint(
                self.robot, q, v, a, np.asarray(gradient, float), gravity=self.gravity
            )
        out = np.empty_like(q), np.empty_like(q), np.empty_like(q)
        self.kernel.adjoint(q, v, a, np.ascontiguousarray(gradient, float), *out, threads)
        return out

    def write_columns(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        first: int,
        last: int,
        place: Int[Array, "j p"],
        out: Float[Array, " m"],
        weights: Float[Array, "n j"] | None = None,
    ) -> None:
        """Write columns of Y for samples first <= s < last, each contiguous over samples.

        Y[s, i, c] * weights[s, i] goes to out[place[i, c] + s - first] where place is not negative
        and joint i moves the link of c; the other entries of Y are zero. Arrays must be
        contiguous doubles.
        """
        if self.compiled:
            self.kernel.columns(q, v, a, first, last, place, weights, out)
            return
        part = slice(first, last)
        rows = import_module(_RECURSION).regressor(
            self.robot, q[part], v[part], a[part], gravity=self.gravity
        )
        if weights is not None:
            rows *= weights[part, :, None]
        for i in range(self.robot.joints):
            for c in self.robot.layout.columns_of_joint(i):
                if place[i, c] >= 0:
                    out[place[i, c] : place[i, c] + last - first] = rows[:, i, c]

    def add_grams(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        a: Float[Array, "n j"],
        weights: Float[Array, "n j"] | None,
        extra: Float[Array, "e n"],
        numbering: tuple[Int[Array, "j p"], Int[Array, " e"], Int[Array, " j"]],
        out: Float[Array, " m"],
    ) -> None:
        """Add W'W of every joint's columns to `out`, one after the other; with the kernel only.

        Columns are numbered joint after joint. With `numbering` = (rows, extra_rows, widths)
        joint i has widths[i] of them, a multiple of four; Y[:, i, c] * weights[:, i] is number
        rows[i, c] unless that is negative, extra[e] is number extra_rows[e]. Only upper triangles
        are defined.
        """
        rows, extra_rows, widths = numbering
        self.kernel.grams(q, v, a, rows, weights, extra, extra_rows, widths, out)

    def _check_states(
        self, *arrays: Float[Array, "n j"]
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
        q, v, a = (np.ascontiguousarray(x, float) for x in arrays)
        joints = self.robot.joints
        if not (q.shape == v.shape == a.shape and q.ndim == 2 and q.shape[1] == joints):
            raise ValueError(
                f"{self.robot.name} has {joints} joints: q, v and a must be (n, {joints}), found "
                f"{q.shape}, {v.shape} and {a.shape}"
            )
        return q, v, a


@lru_cache(maxsize=32)
def _engine_for_key(robot: Robot, gravity: tuple[float, ...] | None) -> RegressorEngine:
    # Robots are compared by identity; the cache holds references, so identities stay unique.
    return RegressorEngine(robot, gravity=None if gravity is None else np.array(gravity))


def engine(robot: Robot, *, gravity: Float[Array, " 3"] | None = None) -> RegressorEngine:
    """Engine of a robot, prepared once."""
    return _engine_for_key(robot, None if gravity is None else tuple(float(x) for x in gravity))


def regressor(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    threads: int = 1,
    out: Float[Array, "n j p"] | None = None,
) -> Float[Array, "n j p"]:
    """Y with tau = Y theta, theta the 10 j inertial parameters link after link.

    Args:
        robot: Robot with its mounting.
        q, v, a: Joint position, velocity, acceleration.
        threads: Number of threads for large batches; results do not depend on it.
        out: Contiguous doubles to fill and return, in place of fresh memory.
    """
    return engine(robot).regressor(q, v, a, threads=threads, out=out)


def regressor_tiles(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    columns: Int[Array, " b"] | None = None,
) -> list[tuple[Int[Array, " c"], Float[Array, "c n"]]]:
    """Regressor Y joint by joint and column by column, without columns that are zero.

    Entry i is (indices, tile) with Y[:, i, indices] = tile.T and all other selected columns zero:
    those of links that joint i does not move.

    Args:
        robot: Robot with its mounting.
        q, v, a: Joint position, velocity, acceleration.
        columns: Columns among the 10 j; all by default.
    """
    robot_engine = engine(robot)
    q, v, a = robot_engine._check_states(q, v, a)
    n, joints = q.shape
    layout = robot.layout
    selected = np.arange(layout.size) if columns is None else np.asarray(columns, int)
    indices = [selected[np.isin(selected, layout.columns_of_joint(i))] for i in range(joints)]
    flat = np.empty(n * sum(len(joint_indices) for joint_indices in indices))
    offsets = np.full((joints, layout.size), -1, dtype=np.int64)
    tiles = []
    offset = 0
    for i, joint_indices in enumerate(indices):
        offsets[i, joint_indices] = offset + n * np.arange(len(joint_indices))
        tiles.append(flat[offset : offset + n * len(joint_indices)].reshape(len(joint_indices), n))
        offset += n * len(joint_indices)
    robot_engine.write_columns(q, v, a, 0, n, offsets, flat)
    return list(zip(indices, tiles, strict=True))


def regressor_adjoint(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    gradient: Float[Array, "n j p"],
    *,
    threads: int = 1,
) -> tuple[Float[Array, "n j"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Gradient of sum(gradient * Y(q, v, a)) with respect to q, v and a, exact.

    Reverse mode of `regressor`: it costs about three regressors for any scalar function.
    """
    return engine(robot).regressor_adjoint(q, v, a, gradient, threads=threads)


def inverse_dynamics(
    robot: Robot,
    q: Float[Array, "n j"],
    v: Float[Array, "n j"],
    a: Float[Array, "n j"],
    *,
    gravity: Float[Array, " 3"] | None = None,
    threads: int = 1,
) -> Float[Array, "n j"]:
    """Joint torques of the rigid links, without rotors and friction.

    Rotor inertia and friction belong to the torque model. `gravity` replaces the robot's own.
    """
    return engine(robot, gravity=gravity).inverse_dynamics(q, v, a, threads=threads)


def gravity_torque(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n j"]:
    """Gravity torque g(q)."""
    zero = np.zeros_like(np.asarray(q, float))
    return inverse_dynamics(robot, q, zero, zero)


def coriolis_torque(
    robot: Robot, q: Float[Array, "n j"], v: Float[Array, "n j"]
) -> Float[Array, "n j"]:
    """Coriolis and centrifugal torque C(q, v) v."""
    return inverse_dynamics(robot, q, v, np.zeros_like(np.asarray(v, float)), gravity=np.zeros(3))


def mass_matrix(robot: Robot, q: Float[Array, "n j"]) -> Float[Array, "n j j"]:
    """Mass matrix M(q) of the links: column k is the torque of a unit acceleration of joint k."""
    q = np.asarray(q, float)
    n, joints = q.shape
    positions = np.repeat(q, joints, axis=0)
    units = np.tile(np.eye(joints), (n, 1))
    rows = inverse_dynamics(robot, positions, np.zeros_like(units), units, gravity=np.zeros(3))
    matrix = rows.reshape(n, joints, joints)
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))
