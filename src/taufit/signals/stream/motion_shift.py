"""Motion shifted in time to meet the torque: a model's delay, sample by sample."""

from __future__ import annotations

from collections import deque

import numpy as np

from taufit.core.arrays import Array
from taufit.signals.stream.sample import CleanSample


class MotionShift:
    """Position and velocity of a delay ago with the torque of now.

    With a positive delay that is what has been; with a negative one samples wait until the motion
    that belongs to their torque has come. Before the first sample the arm is where it was then.

    Args:
        delay_s: By which motion is delayed [s].
    """

    __slots__ = ("_motion", "_waiting", "delay_s")

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self._motion: deque[tuple[float, Array, Array]] = deque()
        self._waiting: deque[CleanSample] = deque()

    def __call__(self, sample: CleanSample) -> list[CleanSample]:
        """The samples whose motion is known now."""
        self._motion.append((sample.time, sample.position, sample.velocity))
        self._waiting.append(sample)
        newest, out = sample.time, []
        while self._waiting and self._waiting[0].time - self.delay_s <= newest:
            out.append(self._shift(self._waiting.popleft()))
        return out

    def flush(self) -> list[CleanSample]:
        """Those that wait, with the last motion there is; the next sample follows on none."""
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
