"""robot + rotor inertia + friction + offset = joint torque, linear in one vector of parameters.

    tau = Y(q, v, a) theta_links + rotor a + friction(v) + offset

Parameters in order: 10 per link, one rotor inertia per joint, the friction terms joint after joint,
one offset per joint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.dynamics import regressor
from taufit.friction import FrictionModel, Linear
from taufit.robot import Robot


@dataclass(frozen=True, slots=True, eq=False)
class TorqueModel:
    """How an arm's torque follows from its motion.

    Attributes:
        robot: Kinematics, mounting, drives.
        friction: Of every joint, or None.
        rotor_inertia: Whether each joint has a reflected rotor inertia.
        offset: Whether each joint has a constant torque offset.
        shape: The friction model's nonlinear parameters, one row per joint.
        values: Fitted parameters in the order of `names`, or None before a fit.
        meta: Provenance, covariance and range of validity of a fitted model.
    """

    robot: Robot
    friction: FrictionModel | None = field(default_factory=Linear)
    rotor_inertia: bool = True
    offset: bool = True
    shape: Float[Array, "j s"] | None = None
    values: Float[Array, " p"] | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """One per parameter: link_1.m ..., joint_1.rotor ..., joint_1.coulomb ..., joint_1.offset."""
        joints = range(1, self.robot.joints + 1)
        terms = self.friction.terms if self.friction else ()
        return (
            *self.robot.parameter_names,
            *(f"joint_{i}.rotor" for i in joints if self.rotor_inertia),
            *(f"joint_{i}.{term.name}" for i in joints for term in terms),
            *(f"joint_{i}.offset" for i in joints if self.offset),
        )

    @property
    def nonnegative(self) -> Bool[Array, " p"]:
        """Which parameters physics wants >= 0 one by one (links have their own, joint, condition)."""
        joints = self.robot.joints
        terms = self.friction.terms if self.friction else ()
        return np.array(
            [False] * (10 * joints)
            + [True] * (joints * self.rotor_inertia)
            + [term.nonnegative for _ in range(joints) for term in terms]
            + [False] * (joints * self.offset)
        )

    def joint_columns(
        self,
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j m"]:
        """The columns behind the links': rotor inertia, friction, offset."""
        n, joints = velocity.shape
        terms = len(self.friction.terms) if self.friction else 0
        width = joints * (self.rotor_inertia + terms + self.offset)
        out = np.zeros((n, joints, width))
        at = 0
        if self.rotor_inertia:
            for i in range(joints):
                out[:, i, at + i] = acceleration[:, i]
            at += joints
        if self.friction:
            for i in range(joints):
                out[:, i, at + i * terms : at + (i + 1) * terms] = self.friction.columns(
                    velocity[:, i],
                    self.shape[i] if self.shape is not None else np.empty(0),
                    None if load is None else load[:, i],
                    None if temperature is None else temperature[:, i],
                )
            at += joints * terms
        if self.offset:
            for i in range(joints):
                out[:, i, at + i] = 1.0
        return out

    def regressor(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j p"]:
        """W with tau = W theta, theta in the order of `names`."""
        links = regressor(self.robot, position, velocity, acceleration)
        rest = self.joint_columns(velocity, acceleration, load=load, temperature=temperature)
        return np.concatenate([links, rest], -1)

    def with_values(self, values: Float[Array, " p"]) -> TorqueModel:
        """The same model with parameters; its robot carries the link parameters among them."""
        values = np.asarray(values, float)
        robot = self.robot.with_parameters(values[: 10 * self.robot.joints])
        return replace(self, robot=robot, values=values)

    def torque(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        temperature: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j"]:
        """Joint torque predicted by the fitted parameters."""
        if self.values is None:
            raise ValueError("this model has no parameters yet: fit it first")
        p = 10 * self.robot.joints
        rigid = regressor(self.robot, position, velocity, acceleration) @ self.values[:p]
        rest = self.joint_columns(velocity, acceleration, load=rigid, temperature=temperature)
        return rigid + rest @ self.values[p:]
