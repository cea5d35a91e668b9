"""Torque control of a simulated robot: a position loop with feed-forward by one of several models.

The simulated robot takes torques, at 500 Hz and one step late. Feed-forward is evaluated on the
command, led by that delay; friction memory follows the commanded path.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.dynamics.batch import inverse_dynamics
from taufit.excitation import Motion
from taufit.export.format_reduction import FormatTerms, reduce_to_format
from taufit.model.fitted_model import FittedModel
from taufit.sim.controller import effective_inertia
from taufit.sim.payload import CarriedPayload
from taufit.sim.simulation_loop import TICK_S
from taufit.sim.twin import Twin
from taufit.terms import DISSIPATIVE, friction_model

# Feed-forward by: nothing, the nominal links, links without friction, Coulomb and viscous friction,
# a memoryless curve (cubic in speed), the fitted model, and the fitted model with tracked friction.
CONTROLLERS = (
    "pd", "nominal", "rigid", "coulomb-viscous", "memoryless", "taufit", "taufit-tracked",
)  # fmt: skip
# Duration after a reversal whose largest error is reported [s].
REVERSAL_S = 0.1
# Friction tracking with the memory [s], weight of the model [s] and bounds of the level of the
# exported C. Nothing is learnt below a speed [rad/s]; the C takes that of `FrictionStates.slow`.
_MEMORY_S, _PRIOR_S, _LEVELS, _SLOW = 3.0, 0.05, (0.5, 1.6), 0.02


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """Feed-forward torque of a command.

    Attributes:
        friction: Dissipative part [N m].
        others: All other parts [N m].
        is_tracked: Whether the friction level is tracked.
    """

    friction: Float[Array, "n j"]
    others: Float[Array, "n j"]
    is_tracked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LoopResult:
    """Tracking of a command by a simulated robot.

    Attributes:
        time: Control times [s].
        error: Position error of the links [rad].
        velocity: Commanded velocity [rad/s].
        torque: Commanded torque [N m].
        level: Friction level at the end, 1 without tracking.
    """

    time: Float[Array, " n"]
    error: Float[Array, "n j"]
    velocity: Float[Array, "n j"]
    torque: Float[Array, "n j"]
    level: Float[Array, " j"]

    def rms(self, start: float = 0.0) -> Float[Array, " j"]:
        """Rms of the position error from a time on [rad]."""
        return np.asarray(np.sqrt(np.mean(self.error[self.time >= start] ** 2, axis=0)))

    def reversal_peaks(self, start: float = 0.0) -> Float[Array, " j"]:
        """Mean over reversals of the largest error within `REVERSAL_S` after each [rad]."""
        step = self.time[1] - self.time[0]
        width = max(1, round(REVERSAL_S / step))
        out = np.full(self.error.shape[1], np.nan)
        for joint in range(len(out)):
            # A pause between two directions is part of the reversal: it ends with the motion.
            moving = np.flatnonzero(np.abs(self.velocity[:, joint]) > 1e-9)
            directions = np.sign(self.velocity[moving, joint])
            reversals = moving[1:][directions[1:] != directions[:-1]]
            reversals = reversals[self.time[reversals] >= start]
            peaks = [np.abs(self.error[k : k + width, joint]).max() for k in reversals]
            out[joint] = np.mean(peaks) if peaks else np.nan
        return out

    @property
    def peak_torque(self) -> Float[Array, " j"]:
        return np.asarray(np.abs(self.torque).max(axis=0))


def feed_forward(
    name: str,
    model: FittedModel,
    position: Float[Array, "n j"],
    velocity: Float[Array, "n j"],
    acceleration: Float[Array, "n j"],
    step: float,
) -> FeedForward:
    """Feed-forward torque of a command by the controller `name`.

    Args:
        name: Name in `CONTROLLERS`.
        model: Fitted model; the simpler ones are refitted from its training record.
        position, velocity, acceleration: Command, one row per control step.
        step: Control period [s].
    """
    if name not in CONTROLLERS:
        raise TaufitError(f"controller {name!r} is not known: use {', '.join(CONTROLLERS)}.")
    zeros = np.zeros_like(position)
    if name == "pd":
        return FeedForward(zeros, zeros)
    if name == "nominal":
        return FeedForward(zeros, inverse_dynamics(model.robot, position, velocity, acceleration))
    if name in ("rigid", "coulomb-viscous", "memoryless"):
        friction = friction_model("polynomial" if name == "memoryless" else "linear")
        terms = FormatTerms(friction, rotor_inertia=True, offset=True, mounting=True)
        model = reduce_to_format(model, terms).model
    total = model.torque(position, velocity, acceleration, step=step)
    others = without_friction(model).torque(position, velocity, acceleration, step=step)
    if name == "rigid":
        return FeedForward(zeros, others)
    return FeedForward(total - others, others, name == "taufit-tracked")


def without_friction(model: FittedModel) -> FittedModel:
    """Model whose dissipative terms are zero: links, rotors, offsets, conservative terms."""
    dissipative = model.layout.of_kind(DISSIPATIVE)
    return model.with_values(np.where(dissipative, 0.0, model.values))


def run_closed_loop(
    twin: Twin,
    motion: Motion,
    controller: str,
    model: FittedModel,
    *,
    bandwidth_hz: float = 5.0,
    rate_hz: float = 500.0,
    seed: int = 0,
    payloads: tuple[CarriedPayload, ...] = (),
) -> LoopResult:
    """Follow a motion with torques: PD plus feed-forward, one control step late.

    Args:
        twin: Simulated robot; its own controller is switched off.
        motion: Command.
        controller: Name in `CONTROLLERS`.
        model: Fitted model of the feed-forward.
        bandwidth_hz: Bandwidth of the PD part [Hz], critically damped.
        rate_hz: Control rate [Hz].
        seed: Seed of noise and of the friction of the day.
        payloads: Payloads that the controller does not know.
    """
    twin = replace(twin, controller=replace(twin.controller, delay=0.0, friction=0.0))
    ticks = round(1.0 / (rate_hz * TICK_S))
    step = ticks * TICK_S
    time = step * np.arange(int(motion.duration / step))
    q, v, a = motion.at(time)
    arm = twin.start(q[0], seed=seed, payload=payloads, rate_hz=rate_hz)
    plant = arm.plant
    inertia = np.median(effective_inertia(plant.model_mass), axis=0)
    w = 2.0 * np.pi * bandwidth_hz
    stiffness, damping = inertia * w**2, 2.0 * inertia * w
    # At rest the servo holds the arm; the loop takes over what it has given.
    for name in ("stiffness", "damping", "integral_gain"):
        plant.arrays[name] = np.zeros_like(inertia)
    plant.arrays["integral"] = np.zeros_like(inertia)
    led_q, led_v, led_a = (np.concatenate([x[1:], x[-1:]]) for x in (q, v, a))
    forward = feed_forward(controller, model, led_q, led_v, led_a, step)
    tracker = LevelTracker(q.shape[1], step)
    torque, error = np.zeros_like(q), np.zeros_like(q)
    keep, command = np.zeros(1, np.int64), plant.arrays["command"].copy()
    for k in range(len(time)):
        tick = plant.tick
        torque[k] = command
        given = np.tile(command, (ticks, 1))
        states = plant.advance(np.zeros_like(given), np.zeros_like(given), given, keep)
        row = {name: values[0] for name, values in states.items()}
        error[k] = q[k] - row["position"]
        measured_q, measured_v, *_ = arm.sensors.read(tick, row)
        level = tracker.level if forward.is_tracked else 1.0
        command = forward.others[k] + level * forward.friction[k]
        command += stiffness * (q[k] - measured_q) + damping * (v[k] - measured_v)
        tracker.update(v[k], forward.friction[k], command - forward.others[k])
    return LoopResult(time, error, v, torque, tracker.level)


class LevelTracker:
    """Friction level per joint: least squares of applied on fed-forward friction, forgetting."""

    def __init__(self, joints: int, step: float) -> None:
        self.level = np.ones(joints)
        self._step, self._factor = step, np.exp(-step / _MEMORY_S)
        self._product, self._square, self._weight = np.zeros((3, joints))

    def update(
        self,
        velocity: Float[Array, " j"],
        friction: Float[Array, " j"],
        applied: Float[Array, " j"],
    ) -> None:
        """Add a control step; standing joints learn nothing."""
        moving = (np.abs(velocity) >= _SLOW) & (friction != 0.0)
        for total, new in (
            (self._product, friction * applied),
            (self._square, friction**2),
            (self._weight, 1.0),
        ):
            total[moving] = (self._factor * total + self._step * new)[moving]
        square, weight = self._square[moving], self._weight[moving]
        prior = _PRIOR_S * square / weight
        level = (self._product[moving] + prior) / (square + prior)
        self.level[moving] = np.clip(level, *_LEVELS)
