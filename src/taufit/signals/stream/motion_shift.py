"""Shift of motion by the model's delay, sample by sample."""

from __future__ import annotations

from collections import deque

import numpy as np

from taufit.core.arrays import Array
from taufit.signals.stream.sample import CleanSample


class MotionShift:
    """Aligns motion with torque by the model's delay.

    A positive delay uses earlier motion; with a negative one samples wait for later motion. Before
    the first sample the robot stands at its first position.

    Args:
        delay_s: Delay of motion [s].
    """

    __slots__ = ("_motion", "_waiting", "delay_s")

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self._motion: deque[tuple[float, Array, Array]] = deque()
        self._waiting: deque[CleanSample] = deque()

    def __call__(self, sample: CleanSample) -> list[CleanSample]:
        """Add a sample; return the samples whose shifted motion is available."""
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
        return out

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
