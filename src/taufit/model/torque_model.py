"""Torque model: links and a sum of terms, linear in one vector of parameters.

    tau = Y(q, v, a) theta_links + rotor a + friction(v) + further terms + offset

With coupled motors (v_m = C v), rotor inertia and friction act at the motors and reach the joints
through C'.

Order of parameters: 10 per link, one rotor inertia per joint, friction and further terms joint
after joint, one offset per joint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.names import RenamedAttribute
from taufit.core.parameters import joint_parameter
from taufit.model.columns import RegressorColumns
from taufit.robot import Robot
from taufit.terms import (
    MOTION,
    TERMS,
    Kind,
    ParameterLayout,
    Term,
    TermInput,
    has_memory,
    start_shape,
    sum_of,
    terms_in,
)
from taufit.terms.friction import Friction, Linear

if TYPE_CHECKING:
    from taufit.model.fitted_model import FittedModel
    from taufit.model.training_record import Range


@dataclass(frozen=True, eq=False)
class TorqueModel:
    """Structure of a robot's torque model, without fitted parameters.

    Attributes:
        robot: Kinematics, mounting, drives.
        friction: Friction model of every joint, or None.
        terms: Further terms of every joint: ripple, gravity compensators, springs.
        rotor_inertia: Whether each joint has a reflected rotor inertia.
        offset: Whether each joint has a constant torque offset.
        shape: Shape parameters of friction and terms, one row per joint.

    Example:
        >>> import taufit
        >>> model = taufit.TorqueModel(taufit.read_robot("ur3e"), friction=taufit.Linear())
        >>> len(model.names), model.names[0], model.names[-1]
        (84, 'link_1.m', 'joint_6.offset')
    """

    robot: Robot
    friction: Term | None = field(default_factory=Linear)
    rotor_inertia: bool = True
    offset: bool = True
    shape: Float[Array, "j s"] | None = None
    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        """Split a sum given as friction into its first friction and further terms."""
        all_terms = () if self.friction is None else terms_in(self.friction)
        friction = next((term for term in all_terms if isinstance(term, Friction)), None)
        further = tuple(term for term in all_terms if term is not friction)
        if further:
            object.__setattr__(self, "friction", friction)
            object.__setattr__(self, "terms", (*further, *self.terms))

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names: link_1.m, ..., joint_1.rotor, ..., joint_1.coulomb, joint_1.offset."""
        return self.layout.names

    @cached_property
    def layout(self) -> ParameterLayout:
        """Layout of the parameter vector theta."""
        return ParameterLayout.from_terms(self.robot.layout, self.all_terms)

    @property
    def all_terms(self) -> tuple[Term, ...]:
        """All terms except the links, in the order of their parameters."""
        return (
            *((TERMS["rotor"](),) if self.rotor_inertia else ()),
            self.term_sum,
            *((TERMS["offset"](),) if self.offset else ()),
        )

    @cached_property
    def term_sum(self) -> Term:
        """Sum of friction and further terms: all joint torque except links, rotor and offset."""
        return sum_of(self.friction, *self.terms)

    @property
    def channels(self) -> tuple[str, ...]:
        """Recorded channels that terms need, besides joint temperature."""
        return tuple(sorted(self.term_sum.needs - {*MOTION, "temperature"}))

    def has(self, block: str) -> bool:
        """Whether there is a "rotor", an "offset" or, in "drive", any other term."""
        return self.layout.has(block)

    @property
    def nonnegative(self) -> Bool[Array, " p"]:
        """Mask of parameters that must be >= 0 (links have a separate condition)."""
        layout = self.layout
        return np.array(
            [parameter is not None and parameter.nonnegative for parameter in layout.parameters],
            bool,
        )

    @property
    def nominal(self) -> Float[Array, " p"]:
        """Prior mean of a fit: nominal links, nominal values of terms, else zero."""
        layout = self.layout
        out = np.zeros(layout.size)
        out[layout.links] = self.robot.parameters
        for term in self.all_terms:
            out[layout.block_slice(term.block)] = term.nominal(self.robot).ravel()
        return out

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of parameters that some joints do not have; fixed at zero."""
        term, joints = self.term_sum, range(self.robot.joints)
        return tuple(joint_parameter(j, name) for j in joints for name in term.absent(j))

    @property
    def joint_shape(self) -> Float[Array, "j s"]:
        """`shape`, or the middle of each starting grid if there is none yet."""
        if self.shape is not None:
            return np.asarray(self.shape)
        return np.tile(start_shape(self.term_sum), (self.robot.joints, 1))

    @property
    def columns(self) -> RegressorColumns:
        """Regressor columns of the model."""
        return RegressorColumns(self)

    # Former names of 0.1, accepted with a warning until 0.3.
    steady = RenamedAttribute("steady_state")

    def steady_state(self) -> TorqueModel:
        """Model with every term at steady state: without memory."""
        return self._map_terms(lambda term: term.steady_state())

    def restrict_to_range(self, trained: Range) -> TorqueModel:
        """Model whose terms hold the position of every motor at the edge of its trained range."""
        coupling = self.robot.drives.coupling
        ends = np.stack([np.nan_to_num(trained.low), np.nan_to_num(trained.high)])
        products = coupling * ends[:, None]
        lower, upper = products.min(axis=0).sum(axis=1), products.max(axis=0).sum(axis=1)
        return self._map_terms(
            lambda term: term.restrict_to_range(tuple(lower.tolist()), tuple(upper.tolist()))
        )

    def unbounded(self) -> TorqueModel:
        """Model whose terms do not hold their inputs at the edge of the trained range."""
        return self._map_terms(lambda term: term.unbounded())

    def only(self, *kinds: Kind) -> TorqueModel:
        """Model with equal parameters; terms of other kinds give no torque."""
        return self._map_terms(lambda term: term.only(*kinds))

    def _map_terms(self, change: Callable[[Term], Any]) -> TorqueModel:
        friction = None if self.friction is None else change(self.friction)
        return replace(self, friction=friction, terms=tuple(change(term) for term in self.terms))

    def friction_columns(self, inputs: TermInput) -> Float[Array, "n j m"]:
        """Drive columns at the joints, joint after joint, over one run.

        With coupled motors friction acts at the motors: C' diag(f(C v)), loads being C^-T tau.
        """
        columns = self.columns
        return columns.to_joints(columns.drive_columns(inputs))

    def joint_columns(
        self,
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        position: Float[Array, "n j"] | None = None,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
        channels: Mapping[str, Float[Array, "n j"]] | None = None,
        step: float | None = None,
    ) -> Float[Array, "n j m"]:
        """Columns beside the links: rotor inertia, friction, offset; see `regressor`."""
        inputs = TermInput(
            velocity, position, load, temperature, travel, channels=channels, step=step
        )
        columns = self._matching_memory(inputs).columns
        return columns.term_columns(acceleration, columns.drive_columns(inputs))

    def regressor(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        *,
        load: Float[Array, "n j"] | None = None,
        temperature: Float[Array, "n j"] | None = None,
        travel: Float[Array, "n j"] | None = None,
        channels: Mapping[str, Float[Array, "n j"]] | None = None,
        step: float | None = None,
    ) -> Float[Array, "n j p"]:
        """Regressor W with tau = W theta, theta in the order of `names`.

        Samples without `travel` or `step` are independent: friction with memory is then evaluated
        at steady state. Otherwise they are one run.

        Args:
            position: Joint position [rad or m].
            velocity: Joint velocity [rad/s or m/s].
            acceleration: Joint acceleration [rad/s^2 or m/s^2].
            load: Rigid-body torque for load-dependent friction [N m].
            temperature: Joint temperature [degC].
            travel: Velocity times sampling period, within one run, for friction with memory.
            channels: Further recorded channels that terms need, by name.
            step: Sampling period in place of `travel` [s].
        """
        inputs = TermInput(
            velocity, position, load, temperature, travel, channels=channels, step=step
        )
        columns = self._matching_memory(inputs).columns
        motor = columns.drive_columns(inputs)
        return columns.dense(position, velocity, acceleration, motor)

    def _matching_memory(self, inputs: TermInput) -> TorqueModel:
        """Model, in its steady form if friction has memory but the path is unknown."""
        has_path = inputs.has("travel") or not has_memory(self.term_sum)
        return self if has_path else self.steady_state()

    def with_values(self, values: Float[Array, " p"]) -> FittedModel:
        """Fitted model with given parameters and an empty training record."""
        from taufit.model.fitted_model import FittedModel

        return FittedModel.from_values(self, values)
