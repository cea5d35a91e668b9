"""External joint torque from the balance of momentum over each time bin.

With generalised momentum p = M(q) v, over the step h from one time bin to the next

    p' - p = h (tau - friction - offset + C(q, v)' v - g(q) + tau_ext),

so the mean tau_ext over the step needs no acceleration, only the change of velocity. With
(M' - M)/h for dM/dt = C + C' the balance is inverse dynamics at the middle of the step,

    tau_ext = M (v' - v)/h + C v + g + rotors (v' - v)/h + friction + offset - tau.

Sign: torque of the environment on the robot. A mass hung on the tool gives J' m g, a hand that
lifts the tool the opposite.

At standstill friction lies anywhere within its stiction band; friction is then left out of the
balance, and only changes are informative.

Friction of a cold robot, or of another day, is not that of the training data. Its deviation in
level and slope is a slow random walk per joint, and the mean torque of a joint in fast motion is

    tau_ext = dFc f / Fc + dFv v + noise,

f the model's friction and Fc its level: a Kalman filter tracks dFc and dFv, and each bin is
corrected by what the bins before it show. Large innovations are limited, and contacts hold it.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.parameters import PER_LINK
from taufit.dynamics import RegressorEngine
from taufit.model.conservative_torque import ConservativeTorque
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_tape import FrictionTape
from taufit.model.intervals import coulomb_level
from taufit.model.noise_by_state import NoiseByState
from taufit.signals.recursive_filter import filter_rows
from taufit.terms import CONSTANT, DISSIPATIVE, INERTIAL, needs
from taufit.terms.friction.states import FAST, FrictionStates, StateSettings

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Upper limit of the rate of time bins: joint torque carries no information above [Hz].
MAX_RATE_HZ = 125.0
# Corner of the first-order observer relative to the cut-off of a 4th-order low-pass with equal
# noise: noise bandwidth pi/2 corners against 1.026 cut-offs (Butterworth).
_CORNER_RATIO = 1.026 / (0.5 * np.pi)
MAX_CUTOFF_HZ = 10.0
# Up to this number of rows a loop is used instead of a filter.
_LOOP_ROWS = 8
# Time for which an acceleration above the training range counts [s].
_EXCESS_HOLD_S = 0.4
_MAX_EXCESS = 20.0
# Accelerations are taken over the number of bins at which noise is this fraction of the largest
# training acceleration, and twice that number. Differences of velocity below this many standard
# deviations are noise; more if one bin is not enough, since an excess counts for 0.4 s.
_NOISE_FRACTION, _MAX_BINS = 0.15, 8
_NOISE_LIMIT, _HIGH_NOISE_LIMIT = 2.1, 5.6
# Drift of friction: standard deviation at the start of a run in Coulomb levels, at creeping and at
# the largest training speed; time in which the random walk reaches it [s]; memory of torque noise
# [s]; limit of innovations. A cold gear drags a third more than a warm one, and warms up in a
# quarter of an hour. Nine settings were tried on the shared UR10e runs: bands hold alike with
# 0.1-0.3, 100-1000 s and 0.3-0.6 s.
DRIFT_SCATTER = 0.15
_DRIFT_TIME_S, _NOISE_MEMORY_S, _INNOVATION_LIMIT = 1000.0, 0.3, 3.0


@dataclass(frozen=True, slots=True, eq=False)
class ExternalTorqueBlock:
    """External torque of consecutive time bins, with the motion of the joints.

    Attributes:
        time: Middle of each bin [s].
        position, velocity: Joint positions and velocities there.
        torque: External joint torque over the bin, without friction at standstill and without the
            drift of friction [N m].
        smooth: `torque` filtered by the momentum observer [N m].
        state: Friction regime of each joint.
        standing: Whether the joint stands.
        observable: Whether a change is due to external torque, not to friction.
        regime_changed: Whether the joint has begun or ceased to stand in this bin.
        acceleration_excess: Relative excess of each joint's acceleration over the training range,
            largest within the last 0.4 s.
        acceleration: Joint accelerations over the bin.
        measured: Measured joint torques [N m].
        rigid: Model torque of links, payload and gravity compensators [N m].
        friction: Model friction, also at standstill [N m].
        drift, drift_std: Tracked model error of friction and its standard deviation [N m].
    """

    time: Float[Array, " n"]
    position: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    smooth: Float[Array, "n j"]
    state: Int[Array, "n j"]
    standing: Bool[Array, "n j"]
    observable: Bool[Array, "n j"]
    regime_changed: Bool[Array, "n j"]
    acceleration_excess: Float[Array, "n j"]
    acceleration: Float[Array, "n j"]
    measured: Float[Array, "n j"]
    rigid: Float[Array, "n j"]
    friction: Float[Array, "n j"]
    drift: Float[Array, "n j"]
    drift_std: Float[Array, "n j"]

    @property
    def model_torque(self) -> Float[Array, "n j"]:
        """Model prediction of the measured torque, without drift of friction [N m]."""
        friction = np.where(self.standing, self.friction, 0.0)
        return self.torque + self.drift + self.measured + friction

    @property
    def max_excess(self) -> Float[Array, " n"]:
        """Largest `acceleration_excess` of all joints."""
        out: Array = self.acceleration_excess.max(axis=1)
        return out

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def concatenate(cls, parts: list[ExternalTorqueBlock]) -> ExternalTorqueBlock:
        """Concatenate consecutive blocks."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))


def observer_gain(cutoff_hz: float) -> float:
    """Gain K of the observer r' = K (tau_ext - r) with the noise bandwidth of a low-pass [1/s]."""
    return float(2.0 * np.pi * _CORNER_RATIO * min(cutoff_hz, MAX_CUTOFF_HZ))


class ExternalTorque:
    """Computes external torque from time bins.

    Args:
        model: Model of the robot including its tool.
        rate_hz: Rate of the time bins [Hz].
        cutoff_hz: Bandwidth of the observer [Hz]. Lower values reduce noise and add delay.
        states: Limits of the friction regimes.
        velocity_noise: Standard deviation of the velocity of a bin in fast motion [rad/s or m/s].
        noise_level: Standard deviation of torque in fast motion [N m]; None: friction never drifts.
    """

    def __init__(
        self,
        model: FittedModel,
        rate_hz: float,
        cutoff_hz: float = MAX_CUTOFF_HZ,
        states: StateSettings | None = None,
        velocity_noise: Float[Array, " j"] | None = None,
        noise_level: Float[Array, " j"] | None = None,
    ) -> None:
        self.model = model
        self.joints = model.robot.joints
        self.step = 1.0 / rate_hz
        self.uses_temperature = needs(model.term_sum, "temperature")
        self.channels = self.joints * (4 if self.uses_temperature else 3)
        self.engine = RegressorEngine(model.robot)
        self._links = np.array(model.robot.parameters, float)
        parts = model.layout.split(np.asarray(model.values, float))
        # Conservative torque acts on a standing joint too and is subtracted from the measured
        # torque.
        self._friction = FrictionTape(model.only(DISSIPATIVE, INERTIAL, CONSTANT), self.step)
        self._conservative = ConservativeTorque(model)
        self._rotors, self._offsets = parts.rotors, parts.offsets
        self._coupling = model.columns.coupling
        self.states = FrictionStates(self.joints, self.step, states)
        self.step_response = -float(np.expm1(-observer_gain(cutoff_hz) * self.step))
        training_range = model.training.ranges.acceleration
        max_acceleration = (
            np.full(self.joints, np.inf) if training_range is None else training_range.largest
        )
        self._acceleration_bins = _acceleration_bins(
            velocity_noise, np.asarray(max_acceleration, float) * self.step
        )
        noise_limit = np.where(self._acceleration_bins > 1.0, _HIGH_NOISE_LIMIT, _NOISE_LIMIT)
        noise = 0.0 if velocity_noise is None else noise_limit * velocity_noise
        velocity_limit = np.maximum(noise, 2.0 * self.states.settings.standstill)
        # State between calls: observer, standing joints, last velocities; whether there was a step,
        # index in the ring of excesses, whether friction has a path, whether its drift is held.
        self._memory = np.zeros((2 + 2 * _MAX_BINS, self.joints))
        self._observer, self._was_standing = self._memory[:2]
        self._counters = np.zeros(4)
        self._excess_ring = np.zeros((round(_EXCESS_HOLD_S / self.step) + 1, self.joints))
        self._velocity_noise_limit, self.max_acceleration = (
            velocity_limit * np.ones(self.joints),
            np.asarray(max_acceleration, float),
        )
        self._set_drift(noise_level)
        self.rotor_matrix = np.diag(self._rotors)
        if self._coupling is not None:
            self.rotor_matrix = self._coupling.T @ self.rotor_matrix @ self._coupling
        self._last_bin: Array | None = None
        is_available = _kernel is not None and self.engine.compiled
        self.is_compiled = is_available and self._friction.compiled
        if self.is_compiled:
            self._loop = _kernel.ExternalTorque(
                *self._friction.parts,
                self.states.numbers,
                self.states.memory,
                self.states.arm,
                np.stack(
                    [
                        self._rotors,
                        self._offsets,
                        self._velocity_noise_limit,
                        self.max_acceleration,
                        self._acceleration_bins,
                        *self._drift_settings,
                    ]
                ),
                self._memory,
                self._counters,
                self._excess_ring,
                self._drift,
                self.step,
                self.step_response,
            )
        self.clear()

    @classmethod
    def from_noise(cls, model: FittedModel, noise: NoiseByState) -> ExternalTorque:
        """Use the time bins and friction regimes of the given noise."""
        velocity_noise, noise_level = noise.velocity[FAST], noise.level[FAST]
        rate_hz, cutoff_hz = noise.rate_hz, noise.cutoff_hz
        return cls(model, rate_hz, cutoff_hz, noise.states, velocity_noise, noise_level)

    def _set_drift(self, noise_level: Float[Array, " j"] | None) -> None:
        """Arrays of the drift of friction: settings, and state with its covariance."""
        level = np.maximum(coulomb_level(self.model), 1e-3)
        training_range = self.model.training.ranges.velocity
        speed = 1.0 if training_range is None else np.maximum(training_range.largest, 1e-3)
        noise = np.zeros(self.joints) if noise_level is None else np.asarray(noise_level, float)
        zeros, is_tracked = np.zeros(self.joints), noise > 0.0
        variance = np.where(is_tracked, DRIFT_SCATTER * np.stack([level, level / speed]), 0.0) ** 2
        memory_bins = max(_NOISE_MEMORY_S / self.step, 1.0)
        walk = variance * self.step / _DRIFT_TIME_S
        self._drift_settings = np.stack([level, noise, memory_bins * noise**2, *walk])
        self._start_drift = np.stack([zeros, zeros, variance[0], zeros, variance[1]])
        self._drift = self._start_drift.copy()

    def restart_drift(self) -> None:
        """Forget the drift of friction, after a load that was not known."""
        self._drift[:] = self._start_drift

    def hold_drift(self, is_held: bool) -> None:
        """Hold the drift of friction during a contact, or let it go on."""
        self._counters[3] = is_held

    def clear(self) -> None:
        """Reset all states; the next bins start a new run."""
        self.states.clear()
        self._friction.clear()
        self._last_bin = None
        self._memory[:], self._counters[:], self._excess_ring[:] = 0.0, 0.0, 0.0
        self.restart_drift()

    def set_payload(self, payload: Float[Array, " 10"]) -> None:
        """Add a payload with these inertial parameters to the last link."""
        links = self._links.copy()
        links[-PER_LINK:] += payload
        self.engine = self.engine.with_parameters(links)

    def __call__(
        self, time: Float[Array, " n"], cells: Float[Array, "n c"]
    ) -> ExternalTorqueBlock | None:
        """External torque up to the next time bins; None before the first step.

        Args:
            time: Centres of the bins [s].
            cells: Positions, velocities, torques and, if friction needs them, temperatures.
        """
        if self._last_bin is None:
            self._last_bin = cells[0]
            time, cells = time[1:], cells[1:]
        n = len(time)
        if n == 0:
            return None
        ends = np.empty((n + 1, self.channels))
        ends[0], ends[1:] = self._last_bin, cells
        self._last_bin = ends[-1] if self._conservative.is_zero else np.array(ends[-1])
        time = time - 0.5 * self.step
        j = self.joints
        if not self._conservative.is_zero:
            ends[:, 2 * j : 3 * j] -= self._conservative(ends[:, :j])
        block = self._kernel_steps(time, ends) if self.is_compiled else self._steps(time, ends)
        if not self._conservative.is_zero:
            conservative = self._conservative(block.position)
            block.measured[:] += conservative
            block.rigid[:] += conservative
        return block

    def _kernel_steps(
        self, time: Float[Array, " n"], ends: Float[Array, "m c"]
    ) -> ExternalTorqueBlock:
        """Compute `_steps` with the compiled kernel."""
        n, j = len(time), self.joints
        out, excess = np.empty((10, n, j)), np.empty((n, j))
        state, flags = np.empty((n, j), np.int64), np.empty((3, n, j), bool)
        self._loop.advance(self.engine.kernel, ends, out, excess, state, flags)
        columns = (*out[:4], state, *flags, excess, *out[4:])
        return ExternalTorqueBlock(time, *columns)

    def _steps(self, time: Float[Array, " n"], ends: Float[Array, "m c"]) -> ExternalTorqueBlock:
        """Compute the steps between consecutive time bins; equal to the kernel."""
        j, h = self.joints, self.step
        middle = 0.5 * (ends[1:] + ends[:-1])
        q, v = np.ascontiguousarray(middle[:, :j]), np.ascontiguousarray(middle[:, j : 2 * j])
        acceleration = (ends[1:, j : 2 * j] - ends[:-1, j : 2 * j]) / h
        rigid = self.engine.inverse_dynamics(q, v, acceleration)
        measured = middle[:, 2 * j : 3 * j]
        without_friction = rigid + self._rotor_torque(acceleration) + self._offsets - measured
        states = self.states(q, v)
        friction = self._step_friction(q, v, rigid, middle)
        torque = without_friction + np.where(states.standing, 0.0, friction)
        regime_changed, excess = self._find_regime_changes(states.standing), self._find_excess(v)
        is_held = excess.max(axis=1) > 0.0 if not self._counters[3] else np.ones(len(v), bool)
        informative = (states.state == FAST) & ~is_held[:, None]
        drift, drift_std = self._track_drift(torque, friction, v, informative)
        drift[states.standing] = drift_std[states.standing] = 0.0
        torque = torque - drift
        smooth = self._observe(torque)
        self._counters[0] = 1.0
        motion = (time, q, v, torque, smooth, *states, regime_changed, excess, acceleration)
        return ExternalTorqueBlock(*motion, measured, rigid, friction, drift, drift_std)

    def _track_drift(
        self,
        torque: Float[Array, "n j"],
        friction: Float[Array, "n j"],
        v: Float[Array, "n j"],
        informative: Bool[Array, "n j"],
    ) -> tuple[Float[Array, "n j"], Float[Array, "n j"]]:
        """Error of the model's friction in each bin, from the bins before, and its deviation."""
        level, noise, variance, *walk = self._drift_settings
        out = np.empty((2, *torque.shape))
        informative = informative & (noise > 0.0) & np.isfinite(torque)
        for i, columns in enumerate(np.stack([friction / level, v], 1)):
            self._drift[[2, 4]] += walk
            covariance = self._drift[[[2, 3], [3, 4]]]
            gain = np.einsum("abj,bj->aj", covariance, columns)
            predicted = np.maximum(np.sum(columns * gain, axis=0), 0.0)
            expected = np.sum(columns * self._drift[:2], axis=0)
            out[:, i] = expected, np.sqrt(predicted)
            limit = _INNOVATION_LIMIT * np.sqrt(predicted + noise**2)
            total = np.where(informative[i], predicted + variance, np.inf)
            self._drift[:2] += gain * np.clip(torque[i] - expected, -limit, limit) / total
            self._drift[2:] -= gain[[0, 0, 1]] * gain[[0, 1, 1]] / total
        return out[0], out[1]

    def _rotor_torque(self, acceleration: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Torque of the rotor inertias."""
        if self._coupling is None:
            return self._rotors * acceleration
        return (self._rotors * (acceleration @ self._coupling.T)) @ self._coupling

    def _step_friction(
        self,
        q: Float[Array, "n j"],
        v: Float[Array, "n j"],
        load: Float[Array, "n j"],
        cells: Float[Array, "n c"],
    ) -> Float[Array, "n j"]:
        """Friction at the joints over each step, with its state."""
        out = np.empty_like(q)
        for i in range(len(q)):
            temperature = cells[i, 3 * self.joints :] if self.uses_temperature else None
            out[i] = self._friction(v[i], q[i], load[i], temperature)
        return out if self._coupling is None else out @ self._coupling

    def _observe(self, torque: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Apply the momentum observer r' = K (tau_ext - r)."""
        response = self.step_response
        observer = self._observer.copy() if self._counters[0] else torque[0]
        if len(torque) < _LOOP_ROWS:
            out = np.empty_like(torque)
            for i in range(len(torque)):
                observer = out[i] = observer + response * (torque[i] - observer)
        else:
            b, a = np.array([response, 0.0]), np.array([1.0, response - 1.0])
            out = filter_rows(b, a, torque.T, ((1.0 - response) * observer)[:, None])[0].T
        self._observer[:] = out[-1]
        return out

    def _find_regime_changes(self, standing: Bool[Array, "n j"]) -> Bool[Array, "n j"]:
        earlier = np.empty_like(standing)
        earlier[0] = self._was_standing > 0.0 if self._counters[0] else standing[0]
        earlier[1:] = standing[:-1]
        self._was_standing[:] = standing[-1]
        return standing != earlier

    def _find_excess(self, velocity: Float[Array, "n j"]) -> Float[Array, "n j"]:
        """Relative excess of acceleration over the training range within 0.4 s, per joint."""
        n, history = len(velocity), 2 * _MAX_BINS
        velocities = np.empty((n + history, self.joints))
        # The memory holds the newest velocity first.
        velocities[:history] = self._memory[:1:-1] if self._counters[0] else velocity[0]
        velocities[history:] = velocity
        self._memory[2:] = velocities[: -history - 1 : -1]
        excess = np.full(velocity.shape, -1.0)
        for j in range(self.joints):
            for bins in (int(self._acceleration_bins[j]), 2 * int(self._acceleration_bins[j])):
                difference = np.abs(
                    velocity[:, j] - velocities[history - bins : len(velocities) - bins, j]
                )
                # Subtract the possible noise.
                rate = (
                    (difference - self._velocity_noise_limit[j]) / bins / self.max_acceleration[j]
                )
                excess[:, j] = np.maximum(excess[:, j], rate / self.step - 1.0)
        out = np.empty_like(excess)
        for i, value in enumerate(excess):
            ring_index = int(self._counters[1])
            self._excess_ring[ring_index] = value
            self._counters[1] = (ring_index + 1) % len(self._excess_ring)
            out[i] = self._excess_ring.max(axis=0)
        return np.clip(out, 0.0, _MAX_EXCESS)

    def mass_matrix(self, position: Float[Array, "n j"]) -> Float[Array, "n j j"]:
        """Mass matrix including rotors: external torque per joint acceleration."""
        n, j = position.shape
        rows = np.repeat(position, j + 1, axis=0)
        units = np.tile(np.eye(j + 1, j), (n, 1))
        torque = self.engine.inverse_dynamics(rows, np.zeros_like(rows), units)
        torque = torque.reshape(n, j + 1, j)
        return np.swapaxes(torque[:, :j] - torque[:, j:], 1, 2) + self.rotor_matrix


def _acceleration_bins(
    noise: Float[Array, " j"] | None, max_change: Float[Array, " j"]
) -> Float[Array, " j"]:
    """Number of bins per acceleration at which its noise is small.

    Args:
        noise: Standard deviation of velocities.
        max_change: Largest change of velocity between bins in the training data.
    """
    if noise is None:
        return np.ones(len(max_change))
    # A joint that stands throughout has neither noise nor changes.
    bins = np.ceil(np.sqrt(2.0) * noise / (_NOISE_FRACTION * np.maximum(max_change, 1e-12)))
    return np.clip(bins, 1.0, float(_MAX_BINS))
