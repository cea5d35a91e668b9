"""Friction regime of each joint: fast, slow, reversing, standing, or the whole robot at rest.

The accuracy of a torque model depends mainly on it, so noise is stored by state
(`model.NoiseByState`). States are computed from positions and velocities only, causally, and may be
continued anywhere.

A joint stands after `settle` seconds without motion, until it is `displaced` away from that
position: a pushed robot yields by a few milliradians without moving.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

STATES = ("fast", "slow", "turning", "standing", "rest")
FAST, SLOW, TURNING, STANDING, REST = range(len(STATES))
# Initial number of time bins since an event.
_LONG_AGO = 1e9


@dataclass(frozen=True, slots=True)
class StateSettings:
    """Limits between friction states.

    Attributes:
        standstill: Speed below which a joint does not move [rad/s or m/s].
        slow: Speed below which, within `slow_for`, friction is not at steady state [rad/s or m/s].
        slow_for: Duration after slow motion that counts as slow [s].
        reversal: Duration after a velocity reversal that counts as reversing [s].
        change: Duration after a start or stop of the joint that counts as reversing [s].
        displaced: Displacement at which a standing joint has started [rad or m].
        settle: Duration without motion after which a joint stands [s].
        quiet: Duration of standing of all joints after which the robot is at rest [s].
        blind_change: Duration after a start or stop in which torque changes are unreliable [s].
    """

    standstill: float = 1e-3
    slow: float = 0.06
    slow_for: float = 0.2
    reversal: float = 0.15
    change: float = 0.3
    displaced: float = 0.008
    settle: float = 0.1
    quiet: float = 0.5
    blind_change: float = 0.08


class StateRows(NamedTuple):
    """States of consecutive time bins.

    Attributes:
        state: Index into `STATES`, per joint.
        standing: Whether the joint stands, possibly displaced within `displaced`.
        reliable: Whether a torque change can be distinguished from friction: not just after a start
            or stop, and not where a standing joint yields while others move.
    """

    state: Int[Array, "n j"]
    standing: Bool[Array, "n j"]
    reliable: Bool[Array, "n j"]


class FrictionStates:
    """Friction states of a robot's joints, block by block.

    Args:
        joints: Number of joints.
        step: Length of a time bin [s].
        settings: Speeds and durations.

    Attributes:
        numbers, memory, arm: State arrays of the kernel, constant in memory.
    """

    def __init__(self, joints: int, step: float, settings: StateSettings | None = None) -> None:
        self.joints, self.step = joints, step
        self.settings = limits = settings or StateSettings()
        times = [limits.slow_for, limits.reversal, limits.change, limits.settle]
        times += [limits.quiet, limits.blind_change]
        # Durations in time bins.
        self.numbers = np.array(
            [limits.standstill, limits.slow, limits.displaced, *(t / step - 1e-9 for t in times)]
        )
        # Per joint: standing position, direction, whether it stands; bins since motion, start or
        # stop, reversal, slow motion.
        self.memory = np.empty((7, joints))
        # Whether there was a bin; bins since a joint moved, and since the robot stopped.
        self.arm = np.empty(3)
        self.clear()

    def clear(self) -> None:
        """Reset: joints that do not move in the next bin are assumed to stand."""
        # In place: compiled code holds references to these arrays.
        self.memory[:2], self.memory[2:] = 0.0, _LONG_AGO
        self.arm[0], self.arm[1:] = 0.0, _LONG_AGO

    def __call__(self, position: Float[Array, "n j"], velocity: Float[Array, "n j"]) -> StateRows:
        """States of the next time bins."""
        shape = position.shape
        state = np.empty(shape, np.int64)
        standing, reliable = np.empty(shape, bool), np.empty(shape, bool)
        if _kernel is not None:
            _kernel.friction_states(
                np.ascontiguousarray(position, float),
                np.ascontiguousarray(velocity, float),
                self.numbers,
                self.memory,
                self.arm,
                state,
                standing,
                reliable,
            )
        else:
            for i in range(len(position)):
                state[i], standing[i], reliable[i] = self._next(position[i], velocity[i])
        return StateRows(state, standing, reliable)

    def _next(
        self, position: Float[Array, " j"], velocity: Float[Array, " j"]
    ) -> tuple[Int[Array, " j"], Bool[Array, " j"], Bool[Array, " j"]]:
        """States of one time bin; equivalent to the kernel."""
        standstill, slow, displaced = self.numbers[:3]
        slow_for, reversal, change, settle, quiet, blind_change = self.numbers[3:]
        speed = np.abs(velocity)
        is_moving = speed >= standstill
        memory, arm = self.memory, self.arm
        if arm[0] == 0.0:
            arm[0] = 1.0
            memory[0], memory[2] = position, ~is_moving
        memory[3] = np.where(is_moving, 0.0, memory[3] + 1.0)
        was_standing = memory[2] > 0.0
        stops = ~was_standing & (memory[3] >= settle)
        starts = was_standing & (np.abs(position - memory[0]) > displaced)
        memory[0] = np.where(stops, position, memory[0])
        standing = (was_standing | stops) & ~starts
        memory[2] = standing
        memory[4] = np.where(stops | starts, 0.0, memory[4] + 1.0)
        direction = np.where(is_moving, np.sign(velocity), memory[1])
        memory[5] = np.where(direction * memory[1] < 0.0, 0.0, memory[5] + 1.0)
        memory[1] = direction
        memory[6] = np.where(speed < slow, 0.0, memory[6] + 1.0)

        arm[1] = arm[1] + 1.0 if standing.all() else 0.0
        arm[2] = 0.0 if standing.all() and not was_standing.all() else arm[2] + 1.0

        state = np.where(memory[6] <= slow_for, SLOW, FAST)
        # A joint about to stand has the friction of a standing one.
        is_reversing = (memory[5] < reversal) | (memory[3] > 0.0)
        state = np.where(~standing & is_reversing, TURNING, state)
        state = np.where(standing, REST if arm[1] >= quiet else STANDING, state)
        state = np.where(memory[4] < change, TURNING, state)
        reliable = (memory[4] >= blind_change) & ~(standing & is_moving & (not standing.all()))
        return state, standing, reliable & bool(arm[2] >= blind_change)
