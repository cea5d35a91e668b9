"""Regression rows of the payload filter: low-passed columns of all unknowns.

With theta the fitted model, W_n the payload's columns and f the slope of friction over load,

    y = tau - W theta - friction + f W_n phi  =  (1 + f) W_n phi + Y d + extras + noise:

the model is linearised about the assumed payload phi. All columns and y pass one causal low-pass;
low-pass and friction keep their state between calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import PER_LINK
from taufit.dynamics import RegressorEngine
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_tape import record_friction
from taufit.payload.filter.causal_lowpass import CausalLowpass
from taufit.payload.filter.nuisance_model import NuisanceModel
from taufit.payload.filter.sliding_direction import SlidingDirection
from taufit.regression.residual_structure import (
    EXTRAS,
    LOW_SPEEDS,
    RIPPLE_CYCLES,
    extra_columns,
)
from taufit.terms import TermInput, needs
from taufit.terms.term import State

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Step of the difference quotient: far below relevant loads, far above rounding [N m].
_LOAD_STEP = 1e-3
# Loads below this have no sign [N m].
_ZERO_LOAD = 1e-9
# Sources of packed columns, in the order of the kernel's codes.
_KINDS = ("payload", "link", "rotor", "drive", "offset", "extra", "residual", "absent")


@dataclass(frozen=True, slots=True, eq=False)
class PayloadRows:
    """Rows of consecutive time bins.

    Attributes:
        time: Time of each bin [s].
        position, velocity: Joint positions and velocities.
        packed: Columns and y of one joint after the other, then the standstill fraction of joints.
        edges: First and last column of each joint.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    packed: Float[Array, "n c"]
    edges: Int[Array, " e"]

    def __len__(self) -> int:
        return len(self.time)

    def joint_rows(self, j: int) -> Float[Array, "n k"]:
        """Columns of joint j, y last."""
        return self.packed[:, self.edges[j] : self.edges[j + 1]]

    @property
    def y(self) -> Float[Array, "n j"]:
        """Residual of the model, a copy."""
        return self.packed[:, self.edges[1:] - 1]

    @property
    def standing(self) -> Float[Array, "n j"]:
        """Fraction of each bin at standstill, per joint, 0 to 1."""
        return np.clip(self.packed[:, self.edges[-1] :], 0.0, 1.0)

    def subtract_template(
        self, template: Float[Array, "n j"], matched: Float[Array, " n"]
    ) -> PayloadRows:
        """Copy with the residual template subtracted where the motion matches."""
        packed = self.packed.copy()
        packed[:, self.edges[1:] - 1] -= template
        # Without a match nothing is known: treat as standstill.
        packed[:, self.edges[-1] :] += (1.0 - matched)[:, None]
        return replace(self, packed=packed)

    def skip_first(self, count: int) -> PayloadRows:
        """Copy without the first rows."""
        return PayloadRows(
            self.time[count:],
            self.position[count:],
            self.velocity[count:],
            self.packed[count:],
            self.edges,
        )


class PayloadRowBuilder:
    """Builds rows from time bins of positions, velocities, torques and, if needed, temperatures.

    Attributes:
        channels: Number of values per bin.
        uses_temperature: Whether temperatures are among them.
    """

    def __init__(
        self,
        model: FittedModel,
        columns: NuisanceModel,
        *,
        rate_hz: float,
        cutoff_hz: float,
        standstill: float,
    ) -> None:
        joints = model.robot.joints
        self.model = model
        self.uses_temperature = needs(model.term_sum, "temperature")
        self.channels = joints * (4 if self.uses_temperature else 3)
        self._step = 1.0 / rate_hz
        self._standstill = standstill
        self._engine = RegressorEngine(model.robot)
        self._lowpass = CausalLowpass(rate_hz, cutoff_hz)
        self._model_columns = model.columns
        self._sliding = SlidingDirection(model.term_sum, joints)
        self._columns = len(columns)
        self._fading = columns.fading
        self._edges = np.cumsum([0, *(len(rows) + 1 for rows in columns.rows)])
        # Indices of the packed columns in the array of all joints by all unknowns.
        last = len(columns)
        flat = [
            j * (last + 1) + np.append(columns.order[rows], last)
            for j, rows in enumerate(columns.rows)
        ]
        self._packed_index = np.concatenate(flat)
        values, layout = np.asarray(model.values), model.layout
        self._inertial_values, self._drive_values = values[layout.links], values[layout.after_links]
        self._coefficients = layout.split(values).drive
        self._tip, links = layout.link(-1), layout.links.stop
        self._base_links = columns.base[columns.base < links]
        self._base_rest = columns.base[columns.base >= links] - links
        self._compiled = self._compile()
        self.clear()

    def clear(self) -> None:
        """Reset all states; the next bins start a new run."""
        if self._compiled is not None:
            self._compiled.clear()
        self._lowpass.clear()
        self._sliding.clear()
        self._state = self._model_columns.start()
        self._last_bins: tuple[Array, Array] | None = None

    def __call__(
        self, time: Float[Array, " n"], cells: Float[Array, "n c"], phi: Float[Array, " 10"]
    ) -> PayloadRows | None:
        """Build the rows of the next bins, linearised about phi; None if there are too few yet."""
        if self._last_bins is not None:
            time = np.concatenate([self._last_bins[0], time])
            cells = np.concatenate([self._last_bins[1], cells])
        # Acceleration is a central difference, so the newest bin waits.
        if len(time) < 3:
            self._last_bins = time, cells
            return None
        self._last_bins = time[-2:], cells[-2:]
        return self.rows_between(time, cells, phi)

    def rows_between(
        self, time: Float[Array, " m"], cells: Float[Array, "m c"], phi: Float[Array, " 10"]
    ) -> PayloadRows:
        """Rows of all bins but the first and the last, by the kernel where it can."""
        joints = self.model.robot.joints
        if self._compiled is None:
            packed = self._numpy_rows(cells, phi)
        else:
            packed = np.empty((len(cells) - 2, len(self._packed_index) + joints))
            self._compiled.advance(self._engine.kernel, cells, phi, packed)
        position, velocity = (
            np.ascontiguousarray(cells[1:-1, k * joints : (k + 1) * joints]) for k in range(2)
        )
        return PayloadRows(time[1:-1], position, velocity, packed, self._edges)

    def _numpy_rows(
        self, cells: Float[Array, "m c"], phi: Float[Array, " 10"]
    ) -> Float[Array, "n w"]:
        """Packed rows of `rows_between`, evaluated by NumPy."""
        joints = self.model.robot.joints
        velocities = cells[:, joints : 2 * joints]
        q = np.ascontiguousarray(cells[1:-1, :joints])
        v = np.ascontiguousarray(velocities[1:-1])
        a = (velocities[2:] - velocities[:-2]) / (2.0 * self._step)
        torque = cells[1:-1, 2 * joints : 3 * joints]
        temperature = cells[1:-1, 3 * joints :] if self.uses_temperature else None
        columns = self._all_columns(q, v, a, torque, temperature, phi)
        standing = np.abs(v) < self._standstill
        packed = np.concatenate([columns.reshape(len(q), -1)[:, self._packed_index], standing], 1)
        return np.ascontiguousarray(self._lowpass(packed))

    def _compile(self) -> Any:
        """Rows by the kernel; None for models that it cannot evaluate."""
        columns, term = self._model_columns, self.model.term_sum
        proportional = columns.term.by_load if needs(term, "load") else ()
        has_kernel = _kernel is not None and self._engine.compiled
        if not has_kernel or columns.coupling is not None or proportional is None:
            return None
        recorded = record_friction(columns, self._coefficients)
        if recorded is None:
            return None
        parts = self.model.layout.split(np.asarray(self.model.values, float))
        sections, steady_state = self._lowpass.sections
        return _kernel.PayloadRows(
            *(recorded.operations, recorded.registers, recorded.columns.ravel(), recorded.moves),
            *(recorded.start, recorded.initial_travels, np.ascontiguousarray(self._coefficients)),
            *(np.array(proportional, np.int32), np.stack([parts.rotors, parts.offsets])),
            *(self._inertial_values, self._column_sources(), self._fading, self._sliding.widths),
            *(self._sliding.has_memory, np.array(LOW_SPEEDS), np.array(RIPPLE_CYCLES)),
            *(sections, steady_state, self._step, self._standstill),
        )

    def _column_sources(self) -> Int[Array, "c 3"]:
        """Joint, kind and index among that kind of every packed column."""
        layout, joints = self.model.layout, self.model.robot.joints
        base_end = PER_LINK + len(self._base_links)
        extras_start = base_end + len(self._base_rest)
        extras = len(EXTRAS) + 1 + self._fading.shape[1]
        drives, rotors = len(layout.drive_entries), layout.drive.start - layout.after_links.start

        def source(joint: int, column: int) -> tuple[str, int]:
            if column == self._columns:
                return "residual", 0
            if column < PER_LINK:
                return "payload", column
            if column < base_end:
                return "link", int(self._base_links[column - PER_LINK])
            if column >= extras_start:
                owner, index = divmod(column - extras_start, extras)
                return ("extra", index) if owner == joint else ("absent", 0)
            drive_column = int(self._base_rest[column - base_end])
            if drive_column < rotors:
                return ("rotor" if drive_column == joint else "absent"), 0
            owner, index = divmod(drive_column - rotors, drives) if drives else (joints, 0)
            if owner >= joints:
                offset = drive_column - rotors - joints * drives
                return ("offset" if offset == joint else "absent"), 0
            return ("drive", index) if owner == joint else ("absent", 0)

        places = [divmod(int(flat), self._columns + 1) for flat in self._packed_index]
        sources = [(joint, *source(joint, column)) for joint, column in places]
        return np.array([(j, _KINDS.index(kind), i) for j, kind, i in sources], np.int32)

    def _all_columns(
        self, q: Array, v: Array, a: Array, torque: Array, temperature: Array | None, phi: Array
    ) -> Float[Array, "n j w"]:
        """Columns of payload, base parameters and extras, and y, per joint."""
        n, p = len(q), self._columns
        joints, b = self.model.robot.joints, len(self._base_links) + len(self._base_rest)
        links = self._engine.regressor(q, v, a)
        rigid = links @ self._inertial_values
        payload = links[..., self._tip]
        load = rigid + payload @ phi
        inputs = TermInput(v, q, load, temperature, step=self._step)
        state = self._state
        motor_columns, self._state = self._model_columns.advance(state, inputs)
        slope = self._load_slope(state, inputs, motor_columns)[..., None] * payload
        speed = self._model_columns.at_motors(v)
        direction, remaining = self._sliding(speed, self._step)

        out = np.zeros((n, joints, p + 1))
        out[..., :PER_LINK] = payload + slope
        base_end = PER_LINK + len(self._base_links)
        out[..., PER_LINK:base_end] = links[..., self._base_links]
        drive_columns = self._model_columns.term_columns(a, motor_columns)
        out[..., base_end : PER_LINK + b] = drive_columns[..., self._base_rest]
        extra = np.empty((n, joints, len(EXTRAS) + 1 + self._fading.shape[1]))
        extra[..., : len(EXTRAS)] = extra_columns(q, speed, direction, load)
        extra[..., len(EXTRAS)] = rigid
        extra[..., len(EXTRAS) + 1 :] = self._fading * remaining
        out[..., PER_LINK + b : p] = self._model_columns.to_joints(extra)
        out[..., p] = torque - rigid - drive_columns @ self._drive_values + slope @ phi
        return out

    def _load_slope(
        self, state: tuple[State, ...], inputs: TermInput, motor_columns: Float[Array, "n j k"]
    ) -> Float[Array, "n j"]:
        """Derivative of friction by load at the joints.

        Columns proportional to |load| are divided by it; others use a difference quotient.
        """
        if not needs(self.model.term_sum, "load"):
            return np.zeros_like(inputs.velocity)
        proportional = self._model_columns.term.by_load
        if proportional is not None and self._model_columns.coupling is None:
            load_columns = list(proportional)
            total = np.einsum(
                "njk,jk->nj", motor_columns[..., load_columns], self._coefficients[:, load_columns]
            )
            load = inputs.load
            assert load is not None
            loaded = np.abs(load) > _ZERO_LOAD
            return np.divide(total, load, out=np.zeros_like(total), where=loaded)
        up, down = (
            self._model_columns.advance(state, inputs.replace(load=inputs.load + small))[0]
            for small in (_LOAD_STEP, -_LOAD_STEP)
        )
        return np.einsum("njk,jk->nj", up - down, self._coefficients) / (2.0 * _LOAD_STEP)
