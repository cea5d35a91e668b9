"""Motion and torque of an arm, chunk by chunk, into the columns of what is unknown, low-passed.

With theta the fitted model, W_n the payload's columns and f how friction follows the load,

    y = tau - W theta - friction + f W_n phi  =  (1 + f) W_n phi + Y d + extras + noise:

the model is linearised about the assumed payload phi. Every column and y go through one causal
low-pass, and friction remembers its path, from chunk to chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.parameters import PER_LINK
from taufit.dynamics import RegressorEngine
from taufit.model.fitted_model import FittedModel
from taufit.payload.filter.lowpass import CausalLowpass
from taufit.payload.filter.nuisance_model import NuisanceModel
from taufit.payload.filter.sliding_direction import SlidingDirection
from taufit.regression.residual_structure import EXTRAS, extra_columns
from taufit.terms import TermInput, needs
from taufit.terms.term import State

# Step of the difference quotient: far below any load that matters, far above rounding [N m].
_SMALL_LOAD = 1e-3
# Loads below this have no direction [N m].
_NO_LOAD = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class PayloadRows:
    """Rows of consecutive cells of the grid.

    Attributes:
        time: Of each cell [s].
        position, velocity: Of the joints.
        packed: Columns and y of one joint after the other, then how much each joint stands still.
        edges: Where the joints' columns begin and end.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    packed: Float[Array, "n c"]
    edges: Int[Array, " j+1"]

    def __len__(self) -> int:
        return len(self.time)

    def of(self, j: int) -> Float[Array, "n k"]:
        """Columns of joint j, y last."""
        return self.packed[:, self.edges[j] : self.edges[j + 1]]

    @property
    def y(self) -> Float[Array, "n j"]:
        """What the model leaves over, a copy."""
        return self.packed[:, self.edges[1:] - 1]

    @property
    def still(self) -> Float[Array, "n j"]:
        """How much each joint stands still, 0 to 1."""
        return np.clip(self.packed[:, self.edges[-1] :], 0.0, 1.0)

    def less(self, left: Float[Array, "n j"], there: Float[Array, " n"]) -> PayloadRows:
        """Rows less the residuals of an empty run, where there is such a run."""
        packed = self.packed.copy()
        packed[:, self.edges[1:] - 1] -= left
        # Where the motion is another one nothing is known: as at standstill.
        packed[:, self.edges[-1] :] += (1.0 - there)[:, None]
        return replace(self, packed=packed)

    def after(self, skip: int) -> PayloadRows:
        """Without the first ones."""
        return PayloadRows(
            self.time[skip:],
            self.position[skip:],
            self.velocity[skip:],
            self.packed[skip:],
            self.edges,
        )


class PayloadRowBuilder:
    """Makes rows of cells: positions, velocities, torques and perhaps temperatures side by side.

    Attributes:
        channels: Values per cell.
        warm: Whether temperatures are among them.
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
        self.warm = needs(model.term_sum, "temperature")
        self.channels = joints * (4 if self.warm else 3)
        self._step = 1.0 / rate_hz
        self._standstill = standstill
        self._engine = RegressorEngine(model.robot)
        self._lowpass = CausalLowpass(rate_hz, cutoff_hz)
        self._of = model.columns
        self._sliding = SlidingDirection(model.term_sum, joints)
        self._columns = len(columns)
        self._fading = columns.fading
        self._edges = np.cumsum([0, *(len(rows) + 1 for rows in columns.rows)])
        # Where the packed columns stand among those of all joints by all unknowns.
        last = len(columns)
        flat = [
            j * (last + 1) + np.append(columns.order[rows], last)
            for j, rows in enumerate(columns.rows)
        ]
        self._flat = np.concatenate(flat)
        values, layout = np.asarray(model.values), model.layout
        self._inertial, self._rest = values[layout.links], values[layout.after_links]
        self._coefficients = layout.split(values).drive
        self._tip, links = layout.link(-1), layout.links.stop
        self._base_links = columns.base[columns.base < links]
        self._base_rest = columns.base[columns.base >= links] - links
        self.clear()

    def clear(self) -> None:
        """The next chunk follows on none."""
        self._lowpass.clear()
        self._sliding.clear()
        self._state = self._of.start()
        self._tail: tuple[Array, Array] | None = None

    def __call__(
        self, time: Float[Array, " n"], cells: Float[Array, "n c"], phi: Float[Array, " 10"]
    ) -> PayloadRows | None:
        """Rows of the next cells, linearised about phi; None where there are too few yet."""
        if self._tail is not None:
            time = np.concatenate([self._tail[0], time])
            cells = np.concatenate([self._tail[1], cells])
        # Acceleration is the central difference, so the newest cell waits.
        if len(time) < 3:
            self._tail = time, cells
            return None
        self._tail = time[-2:], cells[-2:]
        joints = self.model.robot.joints
        velocities = cells[:, joints : 2 * joints]
        q = np.ascontiguousarray(cells[1:-1, :joints])
        v = np.ascontiguousarray(velocities[1:-1])
        a = (velocities[2:] - velocities[:-2]) / (2.0 * self._step)
        torque = cells[1:-1, 2 * joints : 3 * joints]
        warm = cells[1:-1, 3 * joints :] if self.warm else None
        columns = self._all_columns(q, v, a, torque, warm, phi)
        still = np.abs(v) < self._standstill
        packed = np.concatenate([columns.reshape(len(q), -1)[:, self._flat], still], 1)
        return PayloadRows(time[1:-1], q, v, self._lowpass(packed), self._edges)

    def _all_columns(
        self, q: Array, v: Array, a: Array, torque: Array, warm: Array | None, phi: Array
    ) -> Float[Array, "n j p+1"]:
        """Payload, base parameters, extras and y, joint by joint."""
        n, p = len(q), self._columns
        joints, b = self.model.robot.joints, len(self._base_links) + len(self._base_rest)
        links = self._engine.regressor(q, v, a)
        rigid = links @ self._inertial
        payload = links[..., self._tip]
        load = rigid + payload @ phi
        inputs = TermInput(v, q, load, warm, step=self._step)
        before = self._state
        motor, self._state = self._of.advance(before, inputs)
        slope = self._load_slope(before, inputs, motor)[..., None] * payload
        speed = self._of.at_motors(v)
        direction, left = self._sliding(speed, self._step)

        out = np.zeros((n, joints, p + 1))
        out[..., :PER_LINK] = payload + slope
        at = PER_LINK + len(self._base_links)
        out[..., PER_LINK:at] = links[..., self._base_links]
        rest = self._of.term_columns(a, motor)
        out[..., at : PER_LINK + b] = rest[..., self._base_rest]
        extra = np.empty((n, joints, len(EXTRAS) + 1 + self._fading.shape[1]))
        extra[..., : len(EXTRAS)] = extra_columns(q, speed, direction, load)
        extra[..., len(EXTRAS)] = rigid
        extra[..., len(EXTRAS) + 1 :] = self._fading * left
        out[..., PER_LINK + b : p] = self._of.to_joints(extra)
        out[..., p] = torque - rigid - rest @ self._rest + slope @ phi
        return out

    def _load_slope(
        self, before: tuple[State, ...], inputs: TermInput, motor: Float[Array, "n j k"]
    ) -> Float[Array, "n j"]:
        """d friction / d load at the joints: what one newton metre more costs in friction.

        Columns proportional to |load| are divided by it; others take a difference quotient.
        """
        if not needs(self.model.term_sum, "load"):
            return np.zeros_like(inputs.velocity)
        proportional = self._of.term.by_load
        if proportional is not None and self._of.coupling is None:
            at = list(proportional)
            total = np.einsum("njk,jk->nj", motor[..., at], self._coefficients[:, at])
            load = inputs.load
            assert load is not None
            loaded = np.abs(load) > _NO_LOAD
            return np.divide(total, load, out=np.zeros_like(total), where=loaded)
        up, down = (
            self._of.advance(before, inputs.replace(load=inputs.load + small))[0]
            for small in (_SMALL_LOAD, -_SMALL_LOAD)
        )
        return np.einsum("njk,jk->nj", up - down, self._coefficients) / (2.0 * _SMALL_LOAD)
