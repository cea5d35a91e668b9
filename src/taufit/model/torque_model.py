"""robot + rotor inertia + friction + offset = joint torque, linear in one vector of parameters.

    tau = Y(q, v, a) theta_links + rotor a + friction(v) + offset

Where motors are coupled (v_m = C v), rotor inertia and friction act at the motors and reach the
joints through C'.

Parameters in order: 10 per link, one rotor inertia per joint, the friction terms joint after
joint, one offset per joint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.dynamics import regressor
from taufit.friction import FrictionModel, Linear, remembers_path, start_shape
from taufit.parameters import ParameterLayout
from taufit.robot import Robot

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class TorqueModel:
    """How an arm's torque follows from its motion: the structure, without fitted parameters.

    Attributes:
        robot: Kinematics, mounting, drives.
        friction: Of every joint, or None.
        rotor_inertia: Whether each joint has a reflected rotor inertia.
        offset: Whether each joint has a constant torque offset.
        shape: The friction model's nonlinear parameters, one row per joint.
    """

    robot: Robot
    friction: FrictionModel | None = field(default_factory=Linear)
    rotor_inertia: bool = True
    offset: bool = True
    shape: Float[Array, "j s"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """One per parameter: link_1.m, ..., joint_1.rotor, ..., joint_1.coulomb, joint_1.offset."""
        return self.layout.names

    @property
    def layout(self) -> ParameterLayout:
        """Which entry of theta is what."""
        terms = tuple(term.name for term in self.friction.terms) if self.friction else ()
        return ParameterLayout.of(self.robot.joints, terms, self.rotor_inertia, self.offset)

    @property
    def nonnegative(self) -> Bool[Array, " p"]:
        """Which parameters physics wants >= 0 one by one (links have a condition of their own)."""
        layout = self.layout
        out = np.zeros(layout.size, bool)
        out[layout.rotors] = True
        terms = self.friction.terms if self.friction else ()
        out[layout.friction] = np.tile([term.nonnegative for term in terms], layout.joints)
        return out

    @property
    def nominal(self) -> Float[Array, " p"]:
        """What is believed before a fit: the robot's own parameters, no friction, no offset."""
        layout = self.layout
        out = np.zeros(layout.size)
        out[layout.links] = self.robot.parameters
        if self.rotor_inertia:
            out[layout.rotors] = self.robot.rotor_inertias
        return out

    @property
    def joint_shape(self) -> Float[Array, "j s"]:
        """`shape`, or where there is none yet the middle of each starting grid."""
        if self.shape is not None:
            return np.asarray(self.shape)
        start = start_shape(self.friction) if self.friction else np.empty(0)
        return np.tile(start, (self.robot.joints, 1))

    @property
    def _coupling(self) -> Float[Array, "j j"] | None:
        """C with v_m = C v where motors move several joints, else None."""
        coupling = self.robot.drives.coupling
        return None if np.array_equal(coupling, np.eye(self.robot.joints)) else coupling

    def rotor_columns(self, acceleration: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """Torque per unit of each motor's inertia: C' diag(C a)."""
        coupling = self._coupling
        motor = acceleration if coupling is None else acceleration @ coupling.T
        return self.to_joints(motor[:, :, None])

    def motor_friction(
        self,
        velocity: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        shape: Float[Array, "j s"] | None = None,
        travel: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j k"]:
        """Friction per unit of each motor's own terms, before it is mapped to the joints.

        Velocity and load are the joints'. `shape` replaces the model's own and may be complex for
        derivatives. `travel` is velocity times the time between two samples, within one run, for
        friction that remembers its path; without it such friction is that of steady motion.
        """
        n, joints = velocity.shape
        if self.friction is None:
            return np.zeros((n, joints, 0))
        shapes = self.joint_shape if shape is None else np.asarray(shape)
        coupling = self._coupling
        if coupling is not None:
            velocity = velocity @ coupling.T
            load = None if load is None else load @ np.linalg.inv(coupling)
            travel = None if travel is None else travel @ coupling.T
        path = travel if remembers_path(self.friction) else None
        return np.stack(
            [
                self.friction.columns(
                    velocity[:, k],
                    shapes[k],
                    None if load is None else load[:, k],
                    None if temperature is None else temperature[:, k],
                    **({} if path is None else {"travel": path[:, k]}),
                )
                for k in range(joints)
            ],
            1,
        )

    def to_joints(self, motor: Float[Array, "n j k"]) -> Float[Array, "n j m"]:
        """Columns of each motor's terms spread over the joints it drives: C' diag(columns)."""
        n, joints, terms = motor.shape
        coupling = self._coupling
        if coupling is not None:
            return np.einsum("ki,nkt->nikt", coupling, motor).reshape(n, joints, -1)
        out = np.zeros((n, joints, joints, terms), dtype=motor.dtype)
        every = np.arange(joints)
        out[:, every, every] = motor
        return out.reshape(n, joints, -1)

    def friction_columns(
        self,
        velocity: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        shape: Float[Array, "j s"] | None = None,
        travel: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j m"]:
        """Torque per unit of each friction term, joint after joint.

        With coupled motors friction acts at the motors: C' diag(f(C v)), loads being C^-T tau.
        """
        return self.to_joints(
            self.motor_friction(
                velocity, load=load, temperature=temperature, shape=shape, travel=travel
            )
        )

    def joint_columns(
        self,
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j m"]:
        """The columns behind the links': rotor inertia, friction, offset."""
        n, joints = velocity.shape
        parts = [self.friction_columns(velocity, load=load, temperature=temperature, travel=travel)]
        if self.rotor_inertia:
            parts.insert(0, self.rotor_columns(acceleration))
        if self.offset:
            parts.append(np.broadcast_to(np.eye(joints), (n, joints, joints)))
        return np.concatenate(parts, -1)

    def regressor(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
    ) -> Float[Array, "n j p"]:
        """W with tau = W theta, theta in the order of `names`."""
        links = regressor(self.robot, position, velocity, acceleration)
        rest = self.joint_columns(
            velocity, acceleration, load=load, temperature=temperature, travel=travel
        )
        return np.concatenate([links, rest], -1)

    def with_values(self, values: Float[Array, " p"]) -> FittedModel:
        """This model with parameters, and an empty record of how they were found."""
        from taufit.model.fitted_model import FittedModel

        return FittedModel.of(self, values)
