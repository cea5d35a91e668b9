"""Stream conditioning: raw samples of a running robot in, clean samples out, one by one.

In: time stamps, positions, velocities and the torque channel as received. Out: time-ordered samples
with joint torque [N m], motion shifted by the model's delay, without spikes and invalid values.
Recordings use the same class, so files and streams give equal results.
"""

from taufit.signals.stream.conditioner import StreamConditioner, StreamCounts
from taufit.signals.stream.sample import NOTICES, CleanSample, Notice

__all__ = ["NOTICES", "CleanSample", "Notice", "StreamConditioner", "StreamCounts"]
