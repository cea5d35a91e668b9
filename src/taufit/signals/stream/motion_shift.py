"""Shift of motion by the model's delay, sample by sample."""

from __future__ import annotations

from collections import deque

import numpy as np

from taufit.core.arrays import Array
from taufit.signals.stream.sample import CleanSample


class MotionShift:
    """Aligns motion with torque by the model's delay.

    A positive delay uses earlier motion; with a negative one samples wait for later motion. Before
    the first sample the robot stands at its first position. Joints with a shorter delay than the
    longest take earlier torque.

    Args:
        delay_s: Delay of torque behind motion [s]; one number or one per joint.
    """

    __slots__ = ("_motion", "_torque", "_torque_delay", "_waiting", "delay_s")

    def __init__(self, delay_s: float | tuple[float, ...]) -> None:
        self.delay_s = max(delay_s) if isinstance(delay_s, tuple) else delay_s
        # What the delay of each joint lacks of the longest [s].
        self._torque_delay = self.delay_s - np.atleast_1d(delay_s)
        self._torque: deque[tuple[float, Array]] = deque()
        self._motion: deque[tuple[float, Array, Array]] = deque()
        self._waiting: deque[CleanSample] = deque()

    def __call__(self, sample: CleanSample) -> list[CleanSample]:
        """Add a sample; return the samples whose shifted motion is available."""
        sample = self._shift_torque(sample)
        self._motion.append((sample.time, sample.position, sample.velocity))
        self._waiting.append(sample)
        newest, out = sample.time, []
        while self._waiting and self._waiting[0].time - self.delay_s <= newest:
            out.append(self._shift(self._waiting.popleft()))
        return out

    def flush(self) -> list[CleanSample]:
        """Return waiting samples with the last motion available, and restart."""
        out = [self._shift(sample) for sample in self._waiting]
        self._waiting.clear()
        self._motion.clear()
        self._torque.clear()
        return out

    def _shift_torque(self, sample: CleanSample) -> CleanSample:
        if not self._torque_delay.any():
            return sample
        history = self._torque
        history.append((sample.time, sample.torque))
        oldest = sample.time - self._torque_delay.max()
        while len(history) > 2 and history[1][0] <= oldest:
            history.popleft()
        times = [time for time, _ in history]
        torque = np.array([
            np.interp(sample.time - delay, times, [row[j] for _, row in history])
            for j, delay in enumerate(self._torque_delay)
        ])  # fmt: skip
        return sample._replace(torque=torque)

    def _shift(self, sample: CleanSample) -> CleanSample:
        motion_time, motion = sample.time - self.delay_s, self._motion
        while len(motion) > 2 and motion[1][0] <= motion_time:
            motion.popleft()
        i = 0
        while i < len(motion) - 2 and motion[i + 1][0] <= motion_time:
            i += 1
        first, second = motion[i], motion[min(i + 1, len(motion) - 1)]
        width = second[0] - first[0]
        fraction = (
            float(np.clip((motion_time - first[0]) / width, 0.0, 1.0)) if width > 0.0 else 0.0
        )
        position = first[1] + fraction * (second[1] - first[1])
        velocity = first[2] + fraction * (second[2] - first[2])
        return sample._replace(position=position, velocity=velocity)
