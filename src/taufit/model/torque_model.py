"""robot + rotor inertia + friction + offset = joint torque, linear in one vector of parameters.

    tau = Y(q, v, a) theta_links + rotor a + friction(v) + offset

Where motors are coupled (v_m = C v), rotor inertia and friction act at the motors and reach the
joints through C'.

Parameters in order: 10 per link, one rotor inertia per joint, the friction terms joint after
joint, one offset per joint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.parameters import ParameterLayout
from taufit.model.columns import Columns
from taufit.robot import Robot
from taufit.terms.friction import FrictionInput, FrictionModel, Linear, remembers, start_shape

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

    Example:
        >>> import taufit
        >>> model = taufit.TorqueModel(taufit.read_robot("ur3e"), friction=taufit.Linear())
        >>> len(model.names), model.names[0], model.names[-1]
        (84, 'link_1.m', 'joint_6.offset')
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
        """The prior of a fit: the robot's own parameters, no friction, no offset."""
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
    def columns(self) -> Columns:
        """What each parameter adds to the torque."""
        return Columns(self)

    def steady(self) -> TorqueModel:
        """The same with friction as it is at constant speed: no memory of the path."""
        return self if self.friction is None else replace(self, friction=self.friction.steady())

    def friction_columns(self, inputs: FrictionInput) -> Float[Array, "n j m"]:
        """Torque per unit of each friction term, joint after joint, over one run.

        With coupled motors friction acts at the motors: C' diag(f(C v)), loads being C^-T tau.
        """
        columns = self.columns
        return columns.to_joints(columns.motor_friction(inputs))

    def joint_columns(
        self,
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        position: Float[Array, "n j"] | None = None,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
        step: float | None = None,
    ) -> Float[Array, "n j m"]:
        """The columns behind the links': rotor inertia, friction, offset; see `regressor`."""
        inputs = FrictionInput(velocity, position, load, temperature, travel, step=step)
        columns = self._following(inputs).columns
        return columns.rest(acceleration, columns.motor_friction(inputs))

    def regressor(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
        step: float | None = None,
    ) -> Float[Array, "n j p"]:
        """W with tau = W theta, theta in the order of `names`.

        Samples without `travel` or `step` do not follow each other and have no path: friction that
        remembers it is then that of steady motion. Otherwise they are one run.

        Args:
            position: Of the joints, and so on.
            velocity: [rad/s].
            acceleration: [rad/s^2].
            load: Rigid-body torque, for friction that depends on it [N m].
            temperature: Of the joints [degC].
            travel: Velocity times the time between two samples, within one run, for friction that
                remembers its path.
            step: That time, in place of `travel` [s].
        """
        inputs = FrictionInput(velocity, position, load, temperature, travel, step=step)
        columns = self._following(inputs).columns
        motor = columns.motor_friction(inputs)
        return columns.dense(position, velocity, acceleration, motor)

    def _following(self, inputs: FrictionInput) -> TorqueModel:
        """The model itself; its steady form where friction remembers a path that is not known."""
        known = inputs.has("travel") or not remembers(self.friction)
        return self if known else self.steady()

    def with_values(self, values: Float[Array, " p"]) -> FittedModel:
        """This model with parameters, and an empty record of how they were found."""
        from taufit.model.fitted_model import FittedModel

        return FittedModel.of(self, values)
