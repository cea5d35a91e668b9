"""Samples of a robot that is on, one by one: what comes in raw goes out clean.

In: time stamps, positions, velocities and the torque channel as they come. Out: samples in order of
time, torque at the joints in newton metres, motion shifted to meet it, without spikes and without
what is no measurement. Recordings go through the same class, so a file and a stream say the same.
"""

from taufit.signals.stream.conditioner import StreamConditioner, StreamCounts
from taufit.signals.stream.sample import NOTICES, CleanSample, Notice

__all__ = ["NOTICES", "CleanSample", "Notice", "StreamConditioner", "StreamCounts"]
