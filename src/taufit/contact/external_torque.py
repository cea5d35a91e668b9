"""The torque that the outside puts on the joints, from the balance of momentum over each cell.

With generalised momentum p = M(q) v, over the step h from one cell of the grid to the next

    p' - p = h (tau - friction - offset + C(q, v)' v - g(q) + tau_ext),

so tau_ext, its average over the step, needs no acceleration: only the change of velocity. With
(M' - M)/h for dM/dt = C + C' the balance is inverse dynamics at the middle of the step,

    tau_ext = M (v' - v)/h + C v + g + rotors (v' - v)/h + friction + offset - tau.

Sign: what the outside does to the arm. A mass hung on the tool gives J' m g, a hand that lifts the
tool the opposite.

Where a joint stands its friction may be anything within its band; friction is then left out of the
balance, and only changes say something.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from taufit.arrays import Array, Bool, Float, Int
from taufit.dynamics import Engine
from taufit.friction import FrictionInput, needs
from taufit.friction.states import FrictionStates, StateSettings
from taufit.model.fitted_model import FittedModel
from taufit.signals.recursive import filter_rows

# Cells are not longer than this: 125 Hz sees everything that a joint torque tells.
FASTEST_HZ = 125.0
# Corner of the first-order observer, in cut-offs of a fourth-order low-pass that passes as much
# noise: its noise bandwidth is pi/2 corners, that of Butterworth's 1.026.
_CORNER = 1.026 / (0.5 * np.pi)
WIDEST_HZ = 10.0
# For how long an acceleration beyond the training's counts [s].
_JOLT_S = 0.4
_LARGEST_JOLT = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Felt:
    """External torque of consecutive steps, and what the joints were doing.

    Attributes:
        time: Middle of each step [s].
        position, velocity: Of the joints there.
        torque: External joint torque over the step; friction left out where the joint stands [N m].
        smooth: The same through the momentum observer, friction left out likewise [N m].
        state: Friction state of each joint.
        standing: Whether the joint stands.
        sure: Whether a change says something about the outside.
        switched: Whether the joint has begun or ceased to stand with this step.
        jolt: By how much acceleration exceeds the training's, relative, within the last 0.4 s.
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    smooth: Float[Array, "n j"]
    state: Int[Array, "n j"]
    standing: Bool[Array, "n j"]
    sure: Bool[Array, "n j"]
    switched: Bool[Array, "n j"]
    jolt: Float[Array, " n"]

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def joined(cls, parts: list[Felt]) -> Felt:
        """Chunks one after the other."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))


class ExternalTorque:
    """External torque of an arm, chunk by chunk.

    Args:
        model: Of the arm with all that is on it.
        rate_hz: Of the cells.
        cutoff_hz: Bandwidth of the observer.
        states: When joints are in which friction state.
    """

    def __init__(
        self,
        model: FittedModel,
        rate_hz: float,
        cutoff_hz: float = WIDEST_HZ,
        states: StateSettings | None = None,
    ) -> None:
        self.model = model
        self.joints = model.robot.joints
        self.step = 1.0 / rate_hz
        self.warm = needs(model.friction, "temperature")
        self.channels = self.joints * (4 if self.warm else 3)
        self._engine = Engine(model.robot)
        self._columns = model.columns
        self._values = np.asarray(model.values, float)
        self.states = FrictionStates(self.joints, self.step, states)
        gain = 2.0 * np.pi * _CORNER * min(cutoff_hz, WIDEST_HZ)
        share = -float(np.expm1(-gain * self.step))
        self._observer = np.array([share, 0.0]), np.array([1.0, share - 1.0])
        reach = model.training.ranges.acceleration
        self._fastest = np.full(self.joints, np.inf) if reach is None else reach.largest
        self.clear()

    @cached_property
    def offsets(self) -> Float[Array, " j"]:
        """Torque offsets of the model [N m]."""
        return self.model.layout.split(self._values).offsets

    def clear(self) -> None:
        """The next chunk follows on none."""
        self.states.clear()
        self._friction = self._columns.start()
        self._last: Array | None = None
        self._lag: Array | None = None
        self._before: Array | None = None
        self._speeds: Array | None = None
        self._over = np.zeros(round(_JOLT_S / self.step))

    def __call__(self, time: Float[Array, " n"], cells: Float[Array, "n c"]) -> Felt | None:
        """The steps up to the next cells; None where there is no step yet.

        Args:
            time: Centres of the cells [s].
            cells: Positions, velocities, torques and, where friction needs them, temperatures.
        """
        if self._last is None:
            self._last = np.append(time[0], cells[0])
            time, cells = time[1:], cells[1:]
        if len(time) == 0:
            return None
        j, h = self.joints, self.step
        ends = np.vstack([self._last[1:], cells])
        self._last = np.append(time[-1], cells[-1])
        middle = 0.5 * (ends[1:] + ends[:-1])
        q, v = np.ascontiguousarray(middle[:, :j]), np.ascontiguousarray(middle[:, j : 2 * j])
        change = (ends[1:, j : 2 * j] - ends[:-1, j : 2 * j]) / h
        measured = middle[:, 2 * j : 3 * j]
        warm = middle[:, 3 * j :] if self.warm else None

        rigid = self._engine.inverse_dynamics(q, v, change)
        motor, self._friction = self._columns.advance(
            self._friction, FrictionInput(v, q, rigid, warm, step=h)
        )
        full = rigid + self._columns.rest_torque(self._values, change, motor) - measured
        bare = rigid + self._columns.rest_torque(self._values, change, 0.0 * motor) - measured
        states = self.states(q, v)
        torque = np.where(states.standing, bare, full)
        return Felt(
            time - 0.5 * h,
            q,
            v,
            torque,
            self._smooth(torque),
            states.state,
            states.standing,
            states.sure,
            self._switched(states.standing),
            self._jolts(ends[1:, j : 2 * j]),
        )

    def _smooth(self, torque: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """The momentum observer r' = K (tau_ext - r)."""
        b, a = self._observer
        if self._lag is None:
            # As if the first value had lasted for ever: the state of the filter's direct form.
            self._lag = ((1.0 - b[0]) * torque[0])[:, None]
        out, self._lag = filter_rows(b, a, torque.T, self._lag)
        return out.T

    def _switched(self, standing: Bool[Array, "n j"]) -> Bool[Array, "n j"]:
        before = standing[0] if self._before is None else self._before
        self._before = standing[-1]
        return standing != np.vstack([before, standing[:-1]])

    def _jolts(self, velocity: Float[Array, "n j"]) -> Float[Array, " n"]:
        """Acceleration beyond the training's, the largest within the last moments."""
        before = velocity[:1] if self._speeds is None else self._speeds
        self._speeds = velocity[-1:]
        # Speeds that count as none are noise, and so is their difference.
        noise = 2.0 * self.states.settings.standstill
        path = np.vstack([before, velocity])
        rate = np.maximum(np.abs(path[1:] - path[:-1]) - noise, 0.0) / self.step
        over = np.maximum(rate / self._fastest - 1.0, 0.0).max(axis=1)
        held = np.concatenate([self._over, over])
        span = len(self._over) + 1
        self._over = held[len(held) - span + 1 :]
        windows = np.lib.stride_tricks.sliding_window_view(held, span)
        return np.minimum(windows.max(axis=1), _LARGEST_JOLT)
