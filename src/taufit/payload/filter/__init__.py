"""The recommended payload estimator, sample by sample. In: motion and torque. Out: mass, centre of
mass, inertia, picks and drops.

Left to others: whole recordings and rival methods (payload).
"""

from taufit.payload.filter.payload_filter import PayloadEvent, PayloadFilter

__all__ = ["PayloadEvent", "PayloadFilter"]
