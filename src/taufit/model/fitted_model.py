"""Fitted model: structure, parameters and training record.

    tau = W(q, v, a) values

The robot of the structure has the fitted link parameters, so that all functions of a robot (mass
matrix, export, simulation) use them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.names import RenamedAttribute
from taufit.core.notebook_display import NotebookDisplay, draw
from taufit.dynamics import gravity_torque, inverse_dynamics, mass_matrix
from taufit.model.columns import RegressorColumns
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import TrainingRecord
from taufit.robot import Robot
from taufit.terms import CONSERVATIVE, DISSIPATIVE, Kind, ParameterLayout, Term
from taufit.terms.term import ROOM_TEMPERATURE

if TYPE_CHECKING:
    from taufit.model.compiled_torque import CompiledTorque
    from taufit.model.payload import Payload
    from taufit.model.stepper import TorqueStepper
    from taufit.signals import Samples


class TorqueGradient(NamedTuple):
    """Derivatives of the joint torque, each d tau_i / d x_k in row i, column k.

    Attributes:
        position: With respect to joint position [N m/rad].
        velocity: With respect to joint velocity [N m s/rad].
        acceleration: With respect to joint acceleration [kg m^2].
    """

    position: Float[Array, "*n j j"]
    velocity: Float[Array, "*n j j"]
    acceleration: Float[Array, "*n j j"]


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel(NotebookDisplay):
    """Torque model with parameters and training record.

    Attributes:
        structure: Terms of the torque model; its robot has the fitted links.
        values: Parameters in the order of `names`, SI.
        training: Record of the training: data, validity range, uncertainty.
        payload: Known payload, contained in the last link's parameters; see `with_payload`.
        bare_link: Parameters of the last link without the payload; None without payload.

    Example:
        >>> import numpy as np, taufit
        >>> model = taufit.read_model("model.json")
        >>> model
        FittedModel(ur3e: 6 joints, ...)
        >>> rest = np.zeros((1, 6))
        >>> model.torque(rest, rest, rest).shape
        (1, 6)
    """

    # Attributes that determine its torque.
    digest_of = ("structure", "values")

    structure: TorqueModel
    values: Float[Array, " p"]
    training: TrainingRecord = field(default_factory=TrainingRecord)
    payload: Payload | None = None
    bare_link: Float[Array, " 10"] | None = None

    # Former names of 0.1, accepted with a warning until 0.3.
    of = RenamedAttribute("from_values")
    steady = RenamedAttribute("steady_state")

    @classmethod
    def from_values(
        cls,
        structure: TorqueModel,
        values: Float[Array, " p"],
        training: TrainingRecord | None = None,
    ) -> FittedModel:
        """Build a fitted model; the robot receives the link parameters among the values."""
        values = np.asarray(values, float)
        if values.shape != (len(structure.names),):
            raise TaufitError(
                f"this model has {len(structure.names)} parameters, got values of shape "
                f"{values.shape}."
            )
        robot = structure.robot.with_parameters(values[structure.layout.links])
        return cls(replace(structure, robot=robot), values, training or TrainingRecord())

    def __repr__(self) -> str:
        friction = type(self.friction_model).__name__ if self.friction_model else "no friction"
        payload = "" if self.payload is None else f", payload {self.payload.parameters[0]:.3g} kg"
        return f"FittedModel({self.robot.name}: {self.robot.joints} joints, {friction}{payload})"

    def plot_friction(self, joints: Sequence[int] | None = None) -> Any:
        """Plot friction over speed with matplotlib; returns the axes. Joints count from 0."""
        return draw("plot_friction", self, joints)

    def plot_torque(self, samples: Samples, joints: Sequence[int] | None = None) -> Any:
        """Plot measured and predicted torque over time with matplotlib; returns the axes."""
        return draw("plot_torque", self, samples, joints)

    @property
    def robot(self) -> Robot:
        """Robot with its fitted links."""
        return self.structure.robot

    @property
    def friction_model(self) -> Term | None:
        """Friction model of the joints; None without friction."""
        return self.structure.friction

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.structure.terms

    @property
    def term_sum(self) -> Term:
        """Friction and the further terms as one."""
        return self.structure.term_sum

    @property
    def channels(self) -> tuple[str, ...]:
        """Recorded channels that terms need, besides joint temperature."""
        return self.structure.channels

    def has(self, block: str) -> bool:
        """Whether there is a "rotor", an "offset" or, in "drive", any other term."""
        return self.structure.has(block)

    @property
    def rotor_inertia(self) -> bool:
        return self.structure.rotor_inertia

    @property
    def offset(self) -> bool:
        return self.structure.offset

    @property
    def shape(self) -> Float[Array, "j s"] | None:
        return self.structure.shape

    @property
    def joint_shape(self) -> Float[Array, "j s"]:
        return self.structure.joint_shape

    @property
    def layout(self) -> ParameterLayout:
        """Layout of the parameters `values`."""
        return self.structure.layout

    @property
    def names(self) -> tuple[str, ...]:
        """One per parameter."""
        return self.structure.names

    @property
    def columns(self) -> RegressorColumns:
        """Regressor columns of the model."""
        return self.structure.columns

    def steady_state(self) -> FittedModel:
        """Model with every term at steady state: without memory."""
        return replace(self, structure=self.structure.steady_state())

    @property
    def typical_temperature(self) -> Float[Array, " j"]:
        """Typical temperature of each joint [degC]: middle of training, or the law's reference."""
        span = self.training.ranges.temperature
        if span is not None:
            return span.middle
        reference = self.term_sum.typical_value("temperature")
        return np.full(self.robot.joints, ROOM_TEMPERATURE if reference is None else reference)

    def only(self, *kinds: Kind) -> FittedModel:
        """Model with only the links and terms of some kinds; others have zero parameters and
        columns.
        """
        selected = self.layout.of_kind(*kinds)
        selected[self.layout.links] = True
        if selected.all():
            return self
        reduced = replace(self, structure=self.structure.only(*kinds))
        return replace(reduced, values=np.where(selected, self.values, 0.0))

    @property
    def has_conservative_terms(self) -> bool:
        """Whether any term beside the links gives torque by position alone."""
        is_conservative = self.layout.of_kind(CONSERVATIVE)
        return bool(np.any(self.values[is_conservative]))

    def conservative_torque(self, position: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Torque of conservative terms at the joints, without the links [N m]."""
        from taufit.model.conservative_torque import ConservativeTorque

        return ConservativeTorque(self)(position)

    def with_values(self, values: Float[Array, " p"]) -> FittedModel:
        """Copy with other parameters."""
        copy = FittedModel.from_values(self.structure, values, self.training)
        return replace(copy, payload=self.payload, bare_link=self.bare_link)

    def with_payload(
        self,
        payload: Payload | float | None,
        centre: Sequence[float] | Float[Array, " 3"] = (0.0, 0.0, 0.0),
        inertia: Float[Array, "3 3"] | None = None,
    ) -> FittedModel:
        """Copy with a known payload instead of the present one.

        Its ten parameters are added to the last link, so gravity, inertia and load-dependent
        friction contain it; its covariance widens prediction intervals.

        Args:
            payload: Payload, its mass [kg], or None for the robot without payload.
            centre: Centre of mass in the last link's frame [m], if a mass is given.
            inertia: Inertia about the centre of mass [kg m^2]; by default that of an aluminium
                sphere.

        Example:
            >>> import taufit
            >>> loaded = taufit.read_model("model.json").with_payload(1.2, (0.0, 0.0, 0.05))
            >>> round(loaded.payload.mass, 3)
            1.2
        """
        from taufit.model.payload import Payload

        if payload is None and self.payload is None:
            return self
        last = self.robot.layout.link(-1)
        values = np.array(self.values)
        if self.bare_link is not None:
            values[last] = self.bare_link
        if payload is None:
            return FittedModel.from_values(self.structure, values, self.training)
        if not isinstance(payload, Payload):
            payload = Payload.from_mass(float(payload), centre, inertia)
        bare_link = values[last].copy()
        values[last] += payload.parameters
        loaded = FittedModel.from_values(self.structure, values, self.training)
        return replace(loaded, payload=payload, bare_link=bare_link)

    def with_training(self, training: TrainingRecord) -> FittedModel:
        """Copy with another training record."""
        return replace(self, training=training)

    def with_robot(self, robot: Robot) -> FittedModel:
        """Copy with another robot description (mounting, drives)."""
        return replace(self, structure=replace(self.structure, robot=robot))

    def with_tip(self, name: str) -> FittedModel:
        """Copy that uses one of several tips, for payloads and forces."""
        return self.with_robot(self.robot.with_tip(name))

    def torque(
        self,
        position: Float[Array, "*n j"],
        velocity: Float[Array, "*n j"],
        acceleration: Float[Array, "*n j"],
        *,
        temperature: Float[Array, "*n j"] | None = None,
        channels: Mapping[str, Float[Array, "*n j"]] | None = None,
        step: float | None = None,
    ) -> Float[Array, "*n j"]:
        """Predicted joint torque, unfiltered, of one sample (j,) or many (n, j).

        With `step`, the sampling period [s], the samples are one run; without it they are
        independent, and friction with memory is evaluated at steady state.
        """
        if not channels:
            motion = position, velocity, acceleration
            torque = compiled_torque(self).torque(*motion, temperature, step)
            if torque is not None:
                return torque
        return self.torque_by_columns(
            position, velocity, acceleration, temperature=temperature, channels=channels, step=step
        )

    def torque_gradient(
        self,
        position: Float[Array, "*n j"],
        velocity: Float[Array, "*n j"],
        acceleration: Float[Array, "*n j"],
        *,
        temperature: Float[Array, "*n j"] | None = None,
        channels: Mapping[str, Float[Array, "*n j"]] | None = None,
    ) -> TorqueGradient:
        """Derivatives of `torque` with respect to position, velocity and acceleration.

        Of one sample (j,) or many (n, j), with friction at steady state. At standstill, where
        Coulomb friction jumps, velocity derivatives are those of the friction beside the jump.

        Example:
            >>> import numpy as np, taufit
            >>> model = taufit.read_model("model.json")
            >>> rest = np.zeros(6)
            >>> gradient = model.torque_gradient(rest, rest, rest)
            >>> bool(np.allclose(gradient.acceleration, model.mass_matrix(rest)))
            True
        """
        motion = position, velocity, acceleration
        jacobian = None if channels else compiled_torque(self).gradient(*motion, temperature)
        if jacobian is None:
            from taufit.model.compiled_torque import difference_gradient

            jacobian = difference_gradient(self, *motion, temperature, channels)
        joints = self.robot.joints
        return TorqueGradient(
            jacobian[..., :joints], jacobian[..., joints : 2 * joints], jacobian[..., 2 * joints :]
        )

    def acceleration(
        self,
        position: Float[Array, "*n j"],
        velocity: Float[Array, "*n j"],
        torque: Float[Array, "*n j"],
        *,
        temperature: Float[Array, "*n j"] | None = None,
        channels: Mapping[str, Float[Array, "*n j"]] | None = None,
        friction: bool = True,
    ) -> Float[Array, "*n j"]:
        """Joint acceleration that a torque gives: forward dynamics, of one sample or many.

        Inverse of `torque` at steady-state friction; a joint at standstill has no friction here.

        Args:
            position: Joint position [rad or m].
            velocity: Joint velocity [rad/s or m/s].
            torque: Joint torque [N m].
            temperature: Joint temperature [degC].
            channels: Further recorded channels that terms need, by name.
            friction: Whether the torque contains friction, further terms and offset; without, that
                of links and rotors alone.

        Example:
            >>> import numpy as np, taufit
            >>> model = taufit.read_model("model.json")
            >>> q, v, a = 0.3 * np.ones((3, 6))
            >>> bool(np.allclose(model.acceleration(q, v, model.torque(q, v, a)), a))
            True
        """
        arrays = position, velocity, torque, temperature
        computed = None if channels else compiled_torque(self).acceleration(*arrays, friction)
        if computed is None:
            from taufit.model.compiled_torque import newton_acceleration

            computed = newton_acceleration(self, *arrays, channels, friction)
        return computed

    def torque_by_columns(
        self,
        position: Float[Array, "*n j"],
        velocity: Float[Array, "*n j"],
        acceleration: Float[Array, "*n j"],
        *,
        temperature: Float[Array, "*n j"] | None = None,
        channels: Mapping[str, Float[Array, "*n j"]] | None = None,
        step: float | None = None,
    ) -> Float[Array, "*n j"]:
        """`torque` as columns times parameters: without the kernel, for any term."""
        if np.ndim(position) == 1:
            one = {name: np.asarray(x, float)[None] for name, x in (channels or {}).items()}
            torque = self.torque_by_columns(
                *(np.asarray(x, float)[None] for x in (position, velocity, acceleration)),
                temperature=None if temperature is None else np.asarray(temperature, float)[None],
                channels=one or None,
                step=step,
            )
            return np.asarray(torque[0])
        links = self.values[self.layout.links]
        rigid = self.columns.links(position, velocity, acceleration) @ links
        term_columns = self.structure.joint_columns(
            velocity,
            acceleration,
            position=position,
            load=rigid,
            temperature=temperature,
            channels=channels,
            step=step,
        )
        return np.asarray(rigid + term_columns @ self.values[self.layout.after_links])

    def gravity(self, position: Float[Array, "*n j"]) -> Float[Array, "*n j"]:
        """Gravity torque of the fitted links g(q), of one sample or many [N m]."""
        q = np.atleast_2d(np.asarray(position, float))
        return gravity_torque(self.robot, q).reshape(np.shape(position))

    def mass_matrix(self, position: Float[Array, "*n j"]) -> Float[Array, "*n j j"]:
        """Mass matrix M(q) of links and rotors, of one sample or many."""
        q = np.atleast_2d(np.asarray(position, float))
        coupling, rotors = self.robot.drives.coupling, self.layout.split(self.values).rotors
        matrices = mass_matrix(self.robot, q) + coupling.T @ (rotors[:, None] * coupling)
        return np.asarray(matrices if np.ndim(position) > 1 else matrices[0])

    def coriolis(
        self, position: Float[Array, "*n j"], velocity: Float[Array, "*n j"]
    ) -> Float[Array, "*n j"]:
        """Coriolis and centrifugal torque c(q, v), of one sample or many [N m]."""
        q, v = (np.atleast_2d(np.asarray(x, float)) for x in (position, velocity))
        rigid = inverse_dynamics(self.robot, q, v, np.zeros_like(q))
        return np.reshape(rigid - gravity_torque(self.robot, q), np.shape(position))

    def friction(
        self,
        position: Float[Array, "*n j"],
        velocity: Float[Array, "*n j"],
        acceleration: Float[Array, "*n j"] | None = None,
        *,
        temperature: Float[Array, "*n j"] | None = None,
    ) -> Float[Array, "*n j"]:
        """Torque of dissipative terms at steady state, of one sample or many [N m].

        Acceleration matters only through the load of load-dependent friction.
        """
        if acceleration is None:
            acceleration = np.zeros_like(np.asarray(velocity, float))
        model = self.steady_state()
        dissipative = self.layout.of_kind(DISSIPATIVE)
        other = model.with_values(np.where(dissipative, 0.0, self.values))
        motion: Any = (position, velocity, acceleration)
        with_friction = model.torque_by_columns(*motion, temperature=temperature)
        return np.asarray(with_friction - other.torque_by_columns(*motion, temperature=temperature))

    def stepper(self, rate_hz: float) -> TorqueStepper:
        """Torque sample by sample at a rate [Hz], with the memory of friction, as exported C."""
        from taufit.model.stepper import TorqueStepper

        return TorqueStepper(self, rate_hz)


# Models are compared by identity; the cache holds references, so identities stay unique.
@lru_cache(maxsize=32)
def compiled_torque(model: FittedModel) -> CompiledTorque:
    """Model prepared for the kernel, once."""
    from taufit.model.compiled_torque import CompiledTorque

    return CompiledTorque(model)


def require_fitted(model: FittedModel, action: str) -> FittedModel:
    """Return the model; raise if it is a structure without parameters."""
    if isinstance(model, FittedModel):
        return model
    if isinstance(model, (str, os.PathLike)):
        raise TaufitError(
            f"cannot {action}: expected a fitted model, got the name {str(model)!r}. The model "
            "comes first; `taufit.read_model(FILE)` reads one."
        )
    raise TaufitError(
        f"cannot {action}: this model has no parameters yet. Fit it first (`taufit fit`, or "
        "taufit.identify)."
    )
