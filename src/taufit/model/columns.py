"""Columns of the regressor W: torque per unit of each parameter.

    tau = W theta,      W = ( links | rotors | drive | offsets ),     ordered by `ParameterLayout`

With coupled motors (v_m = C v), rotor inertia and friction act at the motors and reach the joints
through C': their columns are C' diag(column of each motor). Friction and all further terms (the
block `drive`) come motor by motor from `advance`, so a run may be split anywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.dynamics import regressor
from taufit.terms import (
    ParameterLayout,
    State,
    Term,
    TermInput,
    TermSum,
    has_memory,
    level_columns,
    terms_in,
)

if TYPE_CHECKING:
    from taufit.model.torque_model import TorqueModel
    from taufit.signals.samples import Samples
    from taufit.signals.storage.column_cache import ColumnCache


def steady_drive_columns(model: TorqueModel, speed: Float[Array, " j"]) -> Float[Array, "j k"]:
    """Friction per unit of each parameter at a steady speed of every joint, without load."""
    term = model.term_sum
    return np.concatenate(
        [
            level_columns(term.of_joint(j), speed[j : j + 1], shape)
            for j, shape in enumerate(model.joint_shape)
        ]
    )


def select_channels(samples: Samples, names: Iterable[str]) -> dict[str, Float[Array, "n j"]]:
    """Recorded channels of samples among given names."""
    return {name: samples.channels[name] for name in sorted(names) if name in samples.channels}


class PlacedTerm(NamedTuple):
    """Term that does not act at the motors.

    Attributes:
        term: Term without memory.
        reach: Matrix R with the motion R q at its places, and joint torque R' f.
        columns, shapes: Its part of the drive columns and of the shape parameters.
    """

    term: Term
    reach: Float[Array, "j j"]
    columns: slice
    shapes: slice


class RegressorColumns:
    """Columns of a torque model.

    Args:
        model: Structure of the torque model.
        shape: Shape parameters in place of the model's; may be complex for derivatives.
    """

    def __init__(self, model: TorqueModel, *, shape: Float[Array, "j s"] | None = None) -> None:
        self.model = model
        self.term = model.term_sum
        self.shape = model.joint_shape if shape is None else np.asarray(shape)
        self.joints = model.robot.joints

    @cached_property
    def layout(self) -> ParameterLayout:
        """Layout of theta."""
        return self.model.layout

    @cached_property
    def coupling(self) -> Float[Array, "j j"] | None:
        """Coupling matrix C with v_m = C v, or None without coupling."""
        coupling = self.model.robot.drives.coupling
        return None if np.array_equal(coupling, np.eye(self.joints)) else coupling

    def at_motors(self, motion: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Motor positions, velocities or accelerations from those of the joints."""
        return motion if self.coupling is None else motion @ self.coupling.T

    @cached_property
    def joint_terms(self) -> tuple[Term, ...]:
        """Friction and further terms of every joint."""
        return tuple(self.term.of_joint(k) for k in range(self.joints))

    @cached_property
    def placed_terms(self) -> tuple[PlacedTerm, ...]:
        """Terms that do not act at the motors: at joints of coupled motors, at friction places."""
        coupling = self.model.robot.drives.coupling
        out, first, first_shape = [], 0, 0
        for term in terms_in(self.term):
            last, last_shape = first + len(term.parameters), first_shape + len(term.shapes)
            reach = term.reach(coupling)
            if not np.array_equal(reach, coupling):
                columns, shapes = slice(first, last), slice(first_shape, last_shape)
                out.append(PlacedTerm(term, reach, columns, shapes))
            first, first_shape = last, last_shape
        return tuple(out)

    def require_at_motors(self, theta: Float[Array, " p"]) -> None:
        """Raise if a term does not act at the motors: only torque per motor is supported.

        Raises:
            TaufitError: With the name of the first such nonzero parameter.
        """
        drive = self.layout.split(theta).drive
        for placed in self.placed_terms:
            if np.any(drive[:, placed.columns]):
                name = self.layout.drive_names[placed.columns][0]
                raise TaufitError(
                    f"{name} of {self.model.robot.name} does not act at the motors: compiled and "
                    "exported models do not hold that. Leave the term out."
                )

    # Friction and further terms, motor by motor.

    def start(self) -> tuple[State, ...]:
        """Initial state of every motor's terms, before the first sample."""
        return tuple(self.term.start(self.shape[k]) for k in range(self.joints))

    def advance(
        self, state: tuple[State, ...], inputs: TermInput
    ) -> tuple[Float[Array, "n j k"], tuple[State, ...]]:
        """Torque per unit of each motor's parameters at the next samples, and the final state.

        Inputs are those of the joints and must contain all channels that the terms need.
        """
        return self._advance_inputs(state, inputs.require(self.term.needs, self.term))

    def _advance_inputs(
        self, state: tuple[State, ...], inputs: TermInput
    ) -> tuple[Float[Array, "n j k"], tuple[State, ...]]:
        """`advance` on the inputs that terms read."""
        out, after = self._advance_motors(state, self._motor_inputs(inputs))
        for term, reach, columns, shapes in self.placed_terms:
            place_inputs = inputs.at_places(reach)
            for k in range(self.joints):
                out[:, k, columns] = term.of_joint(k).columns(
                    place_inputs.joint(k), self.shape[k, shapes]
                )
        return out, after

    def _advance_motors(
        self, state: tuple[State, ...], inputs: TermInput
    ) -> tuple[Float[Array, "n j k"], tuple[State, ...]]:
        columns, after = [], []
        for k, term in enumerate(self.joint_terms):
            values, last = term.advance(state[k], inputs.joint(k), self.shape[k])
            columns.append(values)
            after.append(last)
        # Each column contiguous, in the order of the filter and of the triangles.
        stacked = np.stack([values.T for values in columns], 1)
        return stacked.transpose(2, 1, 0), tuple(after)

    def drive_columns(self, inputs: TermInput) -> Float[Array, "n j k"]:
        """Drive columns of one complete run: `advance` from `start`."""
        return self.advance(self.start(), inputs)[0]

    def inputs_at(self, samples: Samples, load: Float[Array, "n j"] | None = None) -> TermInput:
        """Term inputs at samples, with the unfiltered velocity."""
        return TermInput(
            samples.friction_velocity,
            samples.position,
            load,
            channels=select_channels(samples, self.term.needs),
            step=1.0 / samples.rate_hz,
        )

    def drive_at(
        self,
        samples: Samples,
        *,
        load: Float[Array, "n j"] | None = None,
        filtered: bool = True,
    ) -> Float[Array, "n j k"]:
        """Drive columns of each motor at samples, with the low-pass of the torque.

        Friction is nonlinear in velocity, so it is computed from the unfiltered velocity and
        filtered afterwards. Memory is reset with every run. Columns that depend only on the motion
        are stored in the samples' column cache, if there is one.
        """
        from taufit.signals.filtering import lowpass

        inputs = self.inputs_at(samples, load).require(self.term.needs, self.term)
        if not filtered:
            return self._unfiltered_columns(samples, inputs)
        cache = samples.valid_column_cache
        if cache is None or self.term.shapes or self.term.by_load is None:
            return self._lowpass_columns(samples, self._unfiltered_columns(samples, inputs))
        if len(self._by_term) == 1 and not self.term.by_load:
            return self._cached_columns(samples, inputs, cache).transpose(2, 1, 0)
        out = np.empty((len(self.term.parameters), self.joints, len(samples)))
        offset = 0
        for columns in self._by_term:
            block = out[offset : offset + len(columns.term.parameters)]
            block[:] = columns._cached_columns(samples, inputs, cache)
            for k in columns.term.by_load or ():
                load_magnitude = np.abs(self._motor_inputs(inputs).load).T
                block[k] = lowpass(samples, (load_magnitude * block[k]).T).T
            offset += len(block)
        return out.transpose(2, 1, 0)

    @cached_property
    def _by_term(self) -> tuple[RegressorColumns, ...]:
        """Columns of each term alone."""
        if not isinstance(self.term, TermSum):
            return (self,)
        model = replace(self.model, friction=None, shape=None)
        return tuple(replace(model, terms=(term,)).columns for term in self.term.terms)

    def _motor_inputs(self, inputs: TermInput) -> TermInput:
        return inputs if self.coupling is None else inputs.at_motors(self.coupling)

    def _cached_columns(
        self, samples: Samples, inputs: TermInput, cache: ColumnCache
    ) -> Float[Array, "k j n"]:
        """Columns of one term from the cache; those proportional to load unfiltered at unit load.

        A term that holds no position at the edge of its range has the columns of the unbounded one.
        """
        columns = self
        unbounded = self.term.unbounded()
        if unbounded != self.term and self.term.contains(self._motor_inputs(inputs).position):
            columns = replace(self.model, friction=None, terms=(unbounded,)).columns
        return cache.get(
            columns._cache_key(samples), lambda: columns._cacheable_columns(samples, inputs)
        )

    def _unfiltered_columns(self, samples: Samples, inputs: TermInput) -> Float[Array, "n j k"]:
        """Columns before the low-pass."""
        if not has_memory(self.term):
            return self._advance_inputs(self.start(), inputs)[0]
        runs = [
            self._advance_inputs(self.start(), inputs.select_rows(run))[0]
            for run in samples.run_slices()
        ]
        return runs[0] if len(runs) == 1 else np.concatenate(runs)

    def _cacheable_columns(self, samples: Samples, inputs: TermInput) -> Float[Array, "k j n"]:
        """Columns for the cache, each contiguous."""
        proportional = list(self.term.by_load or ())
        if proportional:
            # Unit load at the motors, also where these are coupled.
            load = np.ones_like(inputs.load)
            inputs = inputs.replace(load=load if self.coupling is None else load @ self.coupling)
        unfiltered = self._unfiltered_columns(samples, inputs)
        out = self._lowpass_columns(samples, unfiltered)
        out[..., proportional] = unfiltered[..., proportional]
        return np.ascontiguousarray(out.transpose(2, 1, 0))

    def _cache_key(self, samples: Samples) -> str:
        """Key of cached columns: all that they depend on besides position and velocity."""
        recorded = {
            name: zlib.crc32(np.ascontiguousarray(values).tobytes())
            for name, values in select_channels(samples, self.term.needs).items()
        }
        coupling = b"" if self.coupling is None else np.ascontiguousarray(self.coupling).tobytes()
        low_pass = samples.rate_hz, samples.cutoff_hz, samples.periodic
        return f"{self.term!r} {low_pass} {coupling.hex()} {recorded}"

    def _lowpass_columns(
        self, samples: Samples, unfiltered: Float[Array, "n j k"]
    ) -> Float[Array, "n j k"]:
        """Columns through the torque's low-pass, except those linear in filtered motion."""
        from taufit.signals.filtering import lowpass

        out = lowpass(samples, unfiltered)
        direct = list(self.term.filtered_columns)
        if direct:
            out[..., direct] = unfiltered[..., direct]
        return out

    # From motors to joints.

    def to_joints(self, motor: Float[Array, "n j k"]) -> Float[Array, "n j m"]:
        """Columns of each motor distributed over the joints it drives: C' diag(columns)."""
        n, joints, _ = motor.shape
        out = self._distribute(motor)
        for placed in self.placed_terms:
            out[..., placed.columns] = np.einsum(
                "ki,nkt->nikt", placed.reach, motor[..., placed.columns]
            )
        return out.reshape(n, joints, -1)

    def _distribute(self, motor: Float[Array, "n j k"]) -> Float[Array, "n j j k"]:
        """C' diag(columns), for columns of the motors."""
        if self.coupling is not None:
            return np.asarray(np.einsum("ki,nkt->nikt", self.coupling, motor))
        n, joints, terms = motor.shape
        out = np.zeros((n, joints, joints, terms), dtype=motor.dtype)
        joint_index = np.arange(joints)
        out[:, joint_index, joint_index] = motor
        return out

    def rotors(self, acceleration: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """Torque per unit of each motor's inertia: C' diag(C a)."""
        return self._distribute(self.at_motors(acceleration)[:, :, None])[..., 0]

    def motor_columns(
        self, acceleration: Float[Array, "n j"], motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j t"]:
        """Columns of each motor without the others' zeros: rotor, friction and terms, offset."""
        parts = [motor]
        if self.layout.has("rotor"):
            parts.insert(0, self.at_motors(acceleration)[:, :, None])
        if self.layout.has("offset"):
            parts.append(np.ones((*motor.shape[:2], 1)))
        return np.concatenate(parts, -1)

    def term_torque(
        self,
        theta: Float[Array, " p"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> Float[Array, "n j"]:
        """Torque of all terms beside the links, without building their columns."""
        parts = self.layout.split(theta)
        torque = self.motor_torque(parts.drive, motor)
        torque = torque + parts.rotors * self.at_motors(acceleration)
        if self.coupling is not None:
            torque = torque @ self.coupling
        return np.asarray(torque + parts.offsets)

    def motor_torque(
        self, drive: Float[Array, "j k"], motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j"]:
        """Torque of friction and further terms, referred to the motors: tau = C' tau_m.

        Args:
            drive: Coefficients of every joint.
            motor: Columns of each motor.
        """
        at_motors = np.array(drive)
        for placed in self.placed_terms:
            at_motors[:, placed.columns] = 0.0
        torque = np.stack([motor[:, k] @ values for k, values in enumerate(at_motors)], 1)
        for _, reach, columns, _ in self.placed_terms:
            placed_torque = np.einsum("njk,jk->nj", motor[..., columns], drive[:, columns]) @ reach
            if self.coupling is not None:
                placed_torque = placed_torque @ np.linalg.inv(self.coupling)
            torque = torque + placed_torque
        return torque

    def term_columns(
        self, acceleration: Float[Array, "n j"], motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j m"]:
        """Columns of all terms beside the links: rotor inertia, friction and further terms, offset.

        Args:
            acceleration: Joint acceleration.
            motor: Columns of each motor, from `advance` or `drive_at`.
        """
        layout, first = self.layout, self.layout.after_links.start
        n, joints = acceleration.shape
        out = np.zeros((n, joints, layout.size - first), dtype=motor.dtype)
        if layout.has("rotor"):
            out[..., : layout.block_slice("rotor").stop - first] = self.rotors(acceleration)
        start, stop = layout.drive.start - first, layout.drive.stop - first
        out[..., start:stop] = self.to_joints(motor)
        if layout.has("offset"):
            out[..., stop:] = np.eye(joints)
        return out

    def write_term_column(
        self,
        out: Float[Array, " n"],
        column: int,
        joint: int,
        factor: float | Float[Array, " n"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> None:
        """Write one column beside the links, in one joint's rows, times a factor, into `out`.

        The compact form of `term_columns`.

        Args:
            out: Output array.
            column: Position of the parameter in theta.
            joint: Joint of the rows.
            factor: Weight of each row.
            acceleration: Motor acceleration (`at_motors`).
            motor: Friction columns of each motor.
        """
        layout = self.layout
        owner = layout.owner[column]
        if column >= layout.block_slice("offset").start:
            out[:] = factor if owner == joint else 0.0
            return
        motor_gain = float(owner == joint) if self.coupling is None else self.coupling[owner, joint]
        if column < layout.drive.start:
            values = acceleration[:, owner]
        else:
            k = (column - layout.drive.start) % len(layout.drive_entries)
            values = motor[:, owner, k]
            for placed in self.placed_terms:
                if placed.columns.start <= k < placed.columns.stop:
                    motor_gain = placed.reach[owner, joint]
        np.multiply(values, motor_gain * factor, out=out)

    def links(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
    ) -> Float[Array, "n j q"]:
        """Columns of the links."""
        return regressor(self.model.robot, position, velocity, acceleration)

    def dense(
        self,
        position: Float[Array, "n j"],
        velocity: Float[Array, "n j"],
        acceleration: Float[Array, "n j"],
        motor: Float[Array, "n j k"],
    ) -> Float[Array, "n j p"]:
        """Complete regressor W at samples, given the drive columns of each motor."""
        links = self.links(position, velocity, acceleration)
        return np.concatenate([links, self.term_columns(acceleration, motor)], -1)
