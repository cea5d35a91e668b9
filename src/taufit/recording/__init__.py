"""What was measured. In: a file a robot or a logger wrote. Out: a `Recording`.

Left to others: resampling, filtering and derivatives (signals).
"""

from taufit.recording.recording import Recording

__all__ = ["Recording"]
