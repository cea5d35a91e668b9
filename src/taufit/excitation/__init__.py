"""Motions worth recording. In: a `Robot`, limits, a criterion. Out: a `Motion`.

Left to others: playing it (live, sim) and fitting what it showed (estimation).
"""

from taufit.excitation.motion import Motion

__all__ = ["Motion"]
