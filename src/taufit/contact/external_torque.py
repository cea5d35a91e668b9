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

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.dynamics import RegressorEngine
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_tape import FrictionTape
from taufit.model.noise_by_state import NoiseByState
from taufit.signals.recursive_filter import filter_rows
from taufit.terms import CONSTANT, DISSIPATIVE, INERTIAL, needs
from taufit.terms.friction.states import FAST, FrictionStates, StateSettings

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Cells are not longer than this: 125 Hz sees everything that a joint torque tells.
FASTEST_HZ = 125.0
# Corner of the first-order observer, in cut-offs of a fourth-order low-pass that passes as much
# noise: its noise bandwidth is pi/2 corners, that of Butterworth's 1.026.
_CORNER = 1.026 / (0.5 * np.pi)
WIDEST_HZ = 10.0
# Rows that are gone through one by one rather than by a filter.
_FEW = 8
# For how long an acceleration beyond the training's counts [s].
_JOLT_S = 0.4
_LARGEST_JOLT = 20.0
# Accelerations are taken over as many cells as make that of noise this small beside the training's
# largest, and twice that. Differences of velocity below so many standard deviations are noise; more
# of them where one cell is not enough, for a difference beyond counts for 0.4 s.
_SMALL, _MOST_CELLS = 0.15, 8
_NOISE, _MUCH_NOISE = 2.1, 5.6


@dataclass(frozen=True, slots=True, eq=False)
class ExternalTorqueBlock:
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
        jolts: By how much each joint's acceleration exceeds the training's, relative, within the
            last 0.4 s.
        acceleration: Of the joints over the step.
        measured: Torque of the joints as measured [N m].
        rigid: What the model expects of the links, what they carry and what balances them [N m].
        friction: What it expects of friction, also where the joint stands [N m].
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
    jolts: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    measured: Float[Array, "n j"]
    rigid: Float[Array, "n j"]
    friction: Float[Array, "n j"]

    @property
    def predicted(self) -> Float[Array, "n j"]:
        """Torque that the model expects to be measured [N m]."""
        return self.torque + self.measured + np.where(self.standing, self.friction, 0.0)

    @property
    def jolt(self) -> Float[Array, " n"]:
        """The largest of `jolts`."""
        out: Array = self.jolts.max(axis=1)
        return out

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def joined(cls, parts: list[ExternalTorqueBlock]) -> ExternalTorqueBlock:
        """Chunks one after the other."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))


def observer_gain(cutoff_hz: float) -> float:
    """K of the observer r' = K (tau_ext - r) that passes as much noise as a low-pass [1/s]."""
    return float(2.0 * np.pi * _CORNER * min(cutoff_hz, WIDEST_HZ))


class ExternalTorque:
    """External torque of an arm, chunk by chunk.

    Args:
        model: Of the arm with all that is on it.
        rate_hz: Of the cells.
        cutoff_hz: Bandwidth of the observer.
        states: When joints are in which friction state.
        velocity_noise: Of a cell, in fast motion [rad/s or m/s].
    """

    def __init__(
        self,
        model: FittedModel,
        rate_hz: float,
        cutoff_hz: float = WIDEST_HZ,
        states: StateSettings | None = None,
        velocity_noise: Float[Array, " j"] | None = None,
    ) -> None:
        self.model = model
        self.joints = model.robot.joints
        self.step = 1.0 / rate_hz
        self.warm = needs(model.term_sum, "temperature")
        self.channels = self.joints * (4 if self.warm else 3)
        self.engine = RegressorEngine(model.robot)
        parts = model.layout.split(np.asarray(model.values, float))
        # Conservative torque is no friction: it acts on a standing joint too, so it is taken off
        # the measured torque.
        self._friction = FrictionTape(model.only(DISSIPATIVE, INERTIAL, CONSTANT), self.step)
        self._rotors, self._offsets = parts.rotors, parts.offsets
        self._coupling = model.columns.coupling
        self.states = FrictionStates(self.joints, self.step, states)
        self.share = -float(np.expm1(-observer_gain(cutoff_hz) * self.step))
        reach = model.training.ranges.acceleration
        fastest = np.full(self.joints, np.inf) if reach is None else reach.largest
        self._base = _cells_of(velocity_noise, np.asarray(fastest, float) * self.step)
        many = np.where(self._base > 1.0, _MUCH_NOISE, _NOISE)
        noise = 0.0 if velocity_noise is None else many * velocity_noise
        unsure = np.maximum(noise, 2.0 * self.states.settings.standstill)
        # What a chunk leaves to the next: observer, who stood, the last velocities; whether
        # there was a step, the place in the ring of jolts, whether friction has a path.
        self._memory = np.zeros((2 + 2 * _MOST_CELLS, self.joints))
        self._lag, self._stood = self._memory[:2]
        self._clock = np.zeros(3)
        self._over = np.zeros((round(_JOLT_S / self.step) + 1, self.joints))
        self._unsure, self.fastest = unsure * np.ones(self.joints), np.asarray(fastest, float)
        self.turning = np.diag(self._rotors)
        if self._coupling is not None:
            self.turning = self._coupling.T @ self.turning @ self._coupling
        self._last: Array | None = None
        self.compiled = _kernel is not None and self._friction.compiled
        if self.compiled:
            self._loop = _kernel.ExternalTorque(
                *self._friction.parts,
                self.states.numbers,
                self.states.memory,
                self.states.arm,
                np.stack([self._rotors, self._offsets, self._unsure, self.fastest, self._base]),
                self._memory,
                self._clock,
                self._over,
                self.step,
                self.share,
            )
        self.clear()

    @classmethod
    def of(cls, model: FittedModel, noise: NoiseByState) -> ExternalTorque:
        """With the cells and states that noise by state was learnt from."""
        return cls(model, noise.rate_hz, noise.cutoff_hz, noise.states, noise.velocity[FAST])

    def clear(self) -> None:
        """The next chunk follows on none."""
        self.states.clear()
        self._friction.clear()
        self._last = None
        self._memory[:], self._clock[:], self._over[:] = 0.0, 0.0, 0.0

    def carry(self, payload: Float[Array, " 10"]) -> None:
        """The last link carries a body with these inertial parameters from now on."""
        links = np.array(self.model.robot.parameters, float)
        links[self.model.robot.layout.link(-1)] += payload
        self.engine = RegressorEngine(self.model.robot, parameters=links)

    def __call__(
        self, time: Float[Array, " n"], cells: Float[Array, "n c"]
    ) -> ExternalTorqueBlock | None:
        """The steps up to the next cells; None where there is no step yet.

        Args:
            time: Centres of the cells [s].
            cells: Positions, velocities, torques and, where friction needs them, temperatures.
        """
        if self._last is None:
            self._last = cells[0]
            time, cells = time[1:], cells[1:]
        n = len(time)
        if n == 0:
            return None
        ends = np.empty((n + 1, self.channels))
        ends[0], ends[1:] = self._last, cells
        self._last = np.array(ends[-1]) if self.model.has_conservative_terms else ends[-1]
        time = time - 0.5 * self.step
        j = self.joints
        if self.model.has_conservative_terms:
            ends[:, 2 * j : 3 * j] -= self.model.conservative_torque(ends[:, :j])
        felt = self._repeat(time, ends) if self.compiled else self._steps(time, ends)
        if self.model.has_conservative_terms:
            static = self.model.conservative_torque(felt.position)
            felt.measured[:] += static
            felt.rigid[:] += static
        return felt

    def _repeat(self, time: Float[Array, " n"], ends: Float[Array, "m c"]) -> ExternalTorqueBlock:
        """`_steps`, compiled."""
        n, j = len(time), self.joints
        out, jolts = np.empty((8, n, j)), np.empty((n, j))
        state, flags = np.empty((n, j), np.int64), np.empty((3, n, j), bool)
        self._loop.advance(self.engine.kernel, ends, out, jolts, state, flags)
        q, v, torque, smooth, change, measured, rigid, friction = out
        return ExternalTorqueBlock(
            time,
            q,
            v,
            torque,
            smooth,
            state,
            flags[0],
            flags[1],
            flags[2],
            jolts,
            change,
            measured,
            rigid,
            friction,
        )

    def _steps(self, time: Float[Array, " n"], ends: Float[Array, "m c"]) -> ExternalTorqueBlock:
        """Steps between consecutive cells; the kernel does the same."""
        j, h = self.joints, self.step
        middle = 0.5 * (ends[1:] + ends[:-1])
        q, v = np.ascontiguousarray(middle[:, :j]), np.ascontiguousarray(middle[:, j : 2 * j])
        change = (ends[1:, j : 2 * j] - ends[:-1, j : 2 * j]) / h
        rigid = self.engine.inverse_dynamics(q, v, change)
        measured = middle[:, 2 * j : 3 * j]
        bare = rigid + self._inertia(change) + self._offsets - measured
        states = self.states(q, v)
        friction = self._friction_of(q, v, rigid, middle)
        torque = bare + np.where(states.standing, 0.0, friction)
        smooth, switched, jolts = (
            self._smooth(torque),
            self._switched(states.standing),
            self._jolts(v),
        )
        self._clock[0] = 1.0
        return ExternalTorqueBlock(
            time,
            q,
            v,
            torque,
            smooth,
            *states,
            switched,
            jolts,
            change,
            measured,
            rigid,
            friction,
        )

    def _inertia(self, change: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Torque of the rotors, which turn with the motors."""
        if self._coupling is None:
            return self._rotors * change
        return (self._rotors * (change @ self._coupling.T)) @ self._coupling

    def _friction_of(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        load: Float[Array, "n j"],
        cells: Float[Array, "n c"],
    ) -> Float[Array, "n j"]:
        """Friction at the joints over each step; it remembers the steps before."""
        out = np.empty_like(q)
        for i in range(len(q)):
            warm = cells[i, 3 * self.joints :] if self.warm else None
            out[i] = self._friction(v[i], q[i], load[i], warm)
        return out if self._coupling is None else out @ self._coupling

    def _smooth(self, torque: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """The momentum observer r' = K (tau_ext - r)."""
        share = self.share
        lag = self._lag.copy() if self._clock[0] else torque[0]
        if len(torque) < _FEW:
            out = np.empty_like(torque)
            for i in range(len(torque)):
                lag = out[i] = lag + share * (torque[i] - lag)
        else:
            b, a = np.array([share, 0.0]), np.array([1.0, share - 1.0])
            out = filter_rows(b, a, torque.T, ((1.0 - share) * lag)[:, None])[0].T
        self._lag[:] = out[-1]
        return out

    def _switched(self, standing: Bool[Array, "n j"]) -> Bool[Array, "n j"]:
        earlier = np.empty_like(standing)
        earlier[0] = self._stood > 0.0 if self._clock[0] else standing[0]
        earlier[1:] = standing[:-1]
        self._stood[:] = standing[-1]
        return standing != earlier

    def _jolts(self, velocity: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Acceleration beyond the training's, the largest within the last moments, per joint."""
        n, longest = len(velocity), 2 * _MOST_CELLS
        path = np.empty((n + longest, self.joints))
        # In memory the newest comes first.
        path[:longest] = self._memory[:1:-1] if self._clock[0] else velocity[0]
        path[longest:] = velocity
        self._memory[2:] = path[: -longest - 1 : -1]
        over = np.full(velocity.shape, -1.0)
        for j in range(self.joints):
            for cells in (int(self._base[j]), 2 * int(self._base[j])):
                off = np.abs(velocity[:, j] - path[longest - cells : len(path) - cells, j])
                # Less what noise may be.
                rate = (off - self._unsure[j]) / cells / self.fastest[j]
                over[:, j] = np.maximum(over[:, j], rate / self.step - 1.0)
        out = np.empty_like(over)
        for i, value in enumerate(over):
            place = int(self._clock[1])
            self._over[place] = value
            self._clock[1] = (place + 1) % len(self._over)
            out[i] = self._over.max(axis=0)
        return np.clip(out, 0.0, _LARGEST_JOLT)

    def inertia(self, position: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """Change of external torque per acceleration of the joints, rotors included."""
        n, j = position.shape
        rows = np.repeat(position, j + 1, axis=0)
        units = np.tile(np.eye(j + 1, j), (n, 1))
        torque = self.engine.inverse_dynamics(rows, np.zeros_like(rows), units)
        torque = torque.reshape(n, j + 1, j)
        return np.swapaxes(torque[:, :j] - torque[:, j:], 1, 2) + self.turning


def _cells_of(noise: Float[Array, " j"] | None, most: Float[Array, " j"]) -> Float[Array, " j"]:
    """Cells over which accelerations are taken, so that noise is small beside them.

    Args:
        noise: Standard deviation of velocities.
        most: Largest change of velocity from cell to cell in training.
    """
    if noise is None:
        return np.ones(len(most))
    cells = np.ceil(np.sqrt(2.0) * noise / (_SMALL * most))
    return np.clip(cells, 1.0, float(_MOST_CELLS))
