"""Recommended payload estimator, sample by sample. In: motion and torque. Out: mass, centre of
mass, inertia, picks and drops.

Not here: complete recordings and other methods (payload).
"""

from taufit.payload.filter.payload_filter import PayloadEvent, PayloadFilter

__all__ = ["PayloadEvent", "PayloadFilter"]
