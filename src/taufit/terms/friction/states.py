"""What each joint's friction is doing: sliding fast, slow, turning, standing, or the arm at rest.

How well a torque model predicts depends on this more than on anything else, so noise is kept state
by state (`model.NoiseByState`). The states come from positions and velocities alone, cell by cell
and causally; cut anywhere, the result is the same.

A joint stands from `settle` seconds without motion on, until it is `displaced` away from where it
stood: an arm that is pushed gives way by a few milliradians and does not move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

STATES = ("fast", "slow", "turning", "standing", "rest")
FAST, SLOW, TURNING, STANDING, REST = range(len(STATES))
# Longer ago than anything that matters [cells].
_LONG_AGO = 1e9


@dataclass(frozen=True, slots=True)
class StateSettings:
    """Where one state ends and the next begins.

    Attributes:
        standstill: Slower than this a joint does not move [rad/s or m/s].
        slow: Slower than this, within `slow_for`, friction is far from its steady curve.
        slow_for: [s].
        reversal: For how long a change of direction counts [s].
        change: For how long a start or a stop of the joint counts [s].
        displaced: A joint that stood has started when it is this far away [rad or m].
        settle: A joint that has not moved for this long stands [s].
        quiet: The arm is at rest when all joints have stood for this long [s].
        blind_change: After a start or stop of its own a joint says nothing for this long [s].
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
    """States of consecutive cells.

    Attributes:
        state: Index into `STATES`, per joint.
        standing: Whether the joint stands, perhaps pushed about within `displaced`.
        reliable: Whether a change of torque can be told from friction's own: not just after a start or
            stop, and not where a joint that stands gives way while others move.
    """

    state: Int[Array, "n j"]
    standing: Bool[Array, "n j"]
    reliable: Bool[Array, "n j"]


class FrictionStates:
    """The states of an arm's joints, chunk by chunk.

    Args:
        joints: How many.
        step: Between two cells [s].
        settings: Speeds and times.

    Attributes:
        numbers, memory, arm: What the kernel goes on with, the same arrays for as long as it lives.
    """

    def __init__(self, joints: int, step: float, settings: StateSettings | None = None) -> None:
        self.joints, self.step = joints, step
        self.settings = limits = settings or StateSettings()
        times = [limits.slow_for, limits.reversal, limits.change, limits.settle]
        times += [limits.quiet, limits.blind_change]
        # Times in cells.
        self.numbers = np.array(
            [limits.standstill, limits.slow, limits.displaced, *(t / step - 1e-9 for t in times)]
        )
        # Per joint: where it stood, direction, whether it stands; cells since it moved, started or
        # stopped, turned, was slow.
        self.memory = np.empty((7, joints))
        # Whether there was a cell; cells since a joint did not stand, and since the arm stopped.
        self.arm = np.empty(3)
        self.clear()

    def clear(self) -> None:
        """The next cell follows on none: joints that do not move in it are taken to stand."""
        # In place: compiled code goes on with the same arrays.
        self.memory[:2], self.memory[2:] = 0.0, _LONG_AGO
        self.arm[0], self.arm[1:] = 0.0, _LONG_AGO

    def __call__(self, position: Float[Array, "n j"], velocity: Float[Array, "n j"]) -> StateRows:
        """States of the next cells."""
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
        """One cell; the kernel does the same."""
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
        # A joint that is about to stand has the friction of one that stands.
        is_reversing = (memory[5] < reversal) | (memory[3] > 0.0)
        state = np.where(~standing & is_reversing, TURNING, state)
        state = np.where(standing, REST if arm[1] >= quiet else STANDING, state)
        state = np.where(memory[4] < change, TURNING, state)
        reliable = (memory[4] >= blind_change) & ~(standing & is_moving & (not standing.all()))
        return state, standing, reliable & bool(arm[2] >= blind_change)
