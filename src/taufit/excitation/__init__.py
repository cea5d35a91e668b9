"""Motions worth recording. In: a `Robot`, limits, a criterion. Out: a `Motion`.

Left to others: playing it (live, sim) and fitting what it showed (estimation).
"""

from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.excitation.motion_file import MOTIONS, read_motion, write_motion
from taufit.excitation.sampled import Sampled

__all__ = ["MOTIONS", "Fourier", "Motion", "Sampled", "read_motion", "write_motion"]
