"""W: what each parameter adds to the torque. The one place where its columns are put together.

    tau = W theta,      W = ( links | rotors | friction | offsets )      as `ParameterLayout` has it

Where motors are coupled (v_m = C v), rotor inertia and friction act at the motors and reach the
joints through C': their columns are C' diag(column of each motor). Friction comes motor by motor
from `advance`, so a run may be cut into tiles or chunks anywhere.
"""

from __future__ import annotations

import zlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.parameters import ParameterLayout
from taufit.dynamics import regressor
from taufit.terms.friction import (
    FrictionInput,
    NoFriction,
    State,
    level_columns,
    of_joint,
    remembers,
)

if TYPE_CHECKING:
    from taufit.model.torque_model import TorqueModel
    from taufit.signals.samples import Samples


def terms_at(model: TorqueModel, speed: Float[Array, " j"]) -> Float[Array, "j k"]:
    """Torque per unit of each friction term at a steady speed of every joint, without load."""
    if model.friction is None:
        return np.zeros((model.robot.joints, 0))
    return np.concatenate(
        [
            level_columns(of_joint(model.friction, j), speed[j : j + 1], shape)
            for j, shape in enumerate(model.joint_shape)
        ]
    )


class Columns:
    """The columns of a torque model.

    Args:
        model: Structure: robot, friction, what else there is.
        shape: Of the friction, in place of the model's own; may be complex for derivatives.
    """

    def __init__(self, model: TorqueModel, *, shape: Float[Array, "j s"] | None = None) -> None:
        self.model = model
        self.friction = model.friction or NoFriction()
        self.shape = model.joint_shape if shape is None else np.asarray(shape)
        self.layout: ParameterLayout = model.layout
        self.joints = model.robot.joints

    @cached_property
    def coupling(self) -> Float[Array, "j j"] | None:
        """C with v_m = C v where motors move several joints, else None."""
        coupling = self.model.robot.drives.coupling
        return None if np.array_equal(coupling, np.eye(self.joints)) else coupling

    def at_motors(self, motion: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Positions, velocities or accelerations of the motors from those of the joints."""
        return motion if self.coupling is None else motion @ self.coupling.T

    # Friction, motor by motor.

    def start(self) -> tuple[State, ...]:
        """The state of every motor's friction before the first sample."""
        return tuple(self.friction.start(self.shape[k]) for k in range(self.joints))

    def advance(
        self, state: tuple[State, ...], inputs: FrictionInput
    ) -> tuple[Float[Array, "n j k"], tuple[State, ...]]:
        """Friction per unit of each motor's own terms at the next samples, and the state then.

        Inputs are the joints'; all that the friction model needs must be there.
        """
        return self._advanced(state, self._at_motors(inputs))

    def _at_motors(self, inputs: FrictionInput) -> FrictionInput:
        read = inputs.require(self.friction.needs, self.friction)
        return read if self.coupling is None else read.at_motors(self.coupling)

    def _advanced(
        self, state: tuple[State, ...], read: FrictionInput
    ) -> tuple[Float[Array, "n j k"], tuple[State, ...]]:
        """`advance` on inputs of the motors."""
        columns, after = [], []
        for k in range(self.joints):
            friction = of_joint(self.friction, k)
            own, last = friction.advance(state[k], read.joint(k), self.shape[k])
            columns.append(own)
            after.append(last)
        return np.stack(columns, 1), tuple(after)

    def motor_friction(self, inputs: FrictionInput) -> Float[Array, "n j k"]:
        """Of one whole run: `advance` from `start`."""
        return self.advance(self.start(), inputs)[0]

    def inputs_at(self, samples: Samples, load: Float[Array, "n j"] | None = None) -> FrictionInput:
        """What samples say that friction may depend on: the velocity before the low-pass."""
        return FrictionInput(
            samples.friction_velocity,
            samples.position,
            load,
            samples.temperature,
            step=1.0 / samples.rate_hz,
        )

    def friction_at(
        self,
        samples: Samples,
        *,
        load: Float[Array, "n j"] | None = None,
        filtered: bool = True,
    ) -> Float[Array, "n j k"]:
        """Friction columns of each motor at samples, low-passed as the torque was.

        Friction is not linear in velocity, so it is computed from the unfiltered one and filtered
        afterwards. Memory starts anew with every run. Columns that only the motion decides are kept
        with the samples, where these have a place for them.
        """
        from taufit.signals.filtering import lowpass

        read = self._at_motors(self.inputs_at(samples, load))
        if not filtered:
            return self._of_runs(samples, read)
        keeper = samples.keeper
        proportional = getattr(self.friction, "by_load", None)
        if keeper is None or self.friction.shapes or proportional is None:
            return lowpass(samples, self._of_runs(samples, read))
        kept = keeper.get(self._key(samples), lambda: self._kept(samples, read, proportional))
        if not proportional:
            return kept.transpose(2, 1, 0)
        out = np.array(kept)
        carried = np.abs(read.load).T
        for k in proportional:
            out[k] = lowpass(samples, (carried * kept[k]).T).T
        return out.transpose(2, 1, 0)

    def _of_runs(self, samples: Samples, read: FrictionInput) -> Float[Array, "n j k"]:
        """Columns before the low-pass, from inputs of the motors."""
        if not remembers(self.friction):
            return self._advanced(self.start(), read)[0]
        runs = [self._advanced(self.start(), read.span(run))[0] for run in samples.run_slices()]
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def _kept(
        self, samples: Samples, read: FrictionInput, proportional: tuple[int, ...]
    ) -> Float[Array, "k j n"]:
        """Low-passed columns; those that a load multiplies at a load of one, before the low-pass.

        Each is contiguous, as who writes tiles reads them.
        """
        from taufit.signals.filtering import lowpass

        if proportional:
            read = read.replace(load=np.ones_like(read.load))
        made = self._of_runs(samples, read)
        out = np.array(lowpass(samples, made).transpose(2, 1, 0), order="C")
        for k in proportional:
            out[k] = made[:, :, k].T
        return out

    def _key(self, samples: Samples) -> str:
        """What the kept columns depend on, besides position and velocity."""
        warm = 0
        if "temperature" in self.friction.needs and samples.temperature is not None:
            warm = zlib.crc32(np.ascontiguousarray(samples.temperature).tobytes())
        coupling = b"" if self.coupling is None else np.ascontiguousarray(self.coupling).tobytes()
        low_pass = samples.rate_hz, samples.cutoff_hz, samples.periodic
        return f"{self.friction!r} {low_pass} {coupling.hex()} {warm}"

    # From motors to joints, and side by side.

    def to_joints(self, motor: Float[Array, "n j k"]) -> Float[Array, "n j m"]:
        """Columns of each motor's terms spread over the joints it drives: C' diag(columns)."""
        n, joints, terms = motor.shape
        if self.coupling is not None:
            return np.asarray(
                np.einsum("ki,nkt->nikt", self.coupling, motor).reshape(n, joints, -1)
            )
        out = np.zeros((n, joints, joints, terms), dtype=motor.dtype)
        every = np.arange(joints)
        out[:, every, every] = motor
        return out.reshape(n, joints, -1)

    def rotors(self, acceleration: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """Torque per unit of each motor's inertia: C' diag(C a)."""
        return self.to_joints(self.at_motors(acceleration)[:, :, None])

    def own(
        self, acceleration: Float[Array, "n j"], motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j t"]:
        """Each motor's own columns side by side, without the others' zeros: rotor, friction, 1."""
        parts = [motor]
        if self.layout.rotor_inertia:
            parts.insert(0, self.at_motors(acceleration)[:, :, None])
        if self.layout.offset:
            parts.append(np.ones((*motor.shape[:2], 1)))
        return np.concatenate(parts, -1)

    def rest_torque(
        self,
        theta: Float[Array, " p"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> Float[Array, "n j"]:
        """`rest` times its parameters, without making the columns."""
        parts = self.layout.split(theta)
        torque = np.stack([motor[:, k] @ own for k, own in enumerate(parts.friction)], 1)
        torque = torque + parts.rotors * self.at_motors(acceleration)
        if self.coupling is not None:
            torque = torque @ self.coupling
        return np.asarray(torque + parts.offsets)

    def rest(
        self, acceleration: Float[Array, "n j"], motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j m"]:
        """The columns behind the links': rotor inertia, friction, offset.

        Args:
            acceleration: Of the joints.
            motor: Friction columns of each motor, from `advance` or `friction_at`.
        """
        layout, behind = self.layout, self.layout.rest.start
        n, joints = acceleration.shape
        out = np.zeros((n, joints, layout.size - behind), dtype=motor.dtype)
        if layout.rotor_inertia:
            out[..., : layout.rotors.stop - behind] = self.rotors(acceleration)
        start, stop = layout.friction.start - behind, layout.friction.stop - behind
        out[..., start:stop] = self.to_joints(motor)
        if layout.offset:
            out[..., stop:] = np.eye(joints)
        return out

    def write_rest(
        self,
        out: Float[Array, " n"],
        column: int,
        joint: int,
        factor: float | Float[Array, " n"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> None:
        """One of the columns behind the links', in one joint's rows, times a factor, into `out`.

        The compact form of `rest`: nothing is made for columns that nobody asks for.

        Args:
            out: Where it goes.
            column: Its place in theta.
            joint: Whose rows.
            factor: Weight of each row.
            acceleration: Of the motors (`at_motors`).
            motor: Friction columns of each motor.
        """
        layout = self.layout
        owner = layout.owner[column]
        if column >= layout.offsets.start:
            out[:] = factor if owner == joint else 0.0
            return
        share = float(owner == joint) if self.coupling is None else self.coupling[owner, joint]
        values = (
            acceleration[:, owner]
            if column < layout.friction.start
            else motor[:, owner, (column - layout.friction.start) % len(layout.terms)]
        )
        np.multiply(values, share * factor, out=out)

    def links(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j q"]:
        """The links' columns."""
        return regressor(self.model.robot, position, velocity, acceleration)

    def dense(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> Float[Array, "n j p"]:
        """All of W at some samples, given the friction columns of each motor."""
        links = self.links(position, velocity, acceleration)
        return np.concatenate([links, self.rest(acceleration, motor)], -1)
