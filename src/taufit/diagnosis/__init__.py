"""What is wrong with a recording. In: robot, recordings, samples. Out: findings with causes.

Left to others: reading (recording), drive gains and mounting (calibration), scores (validation).
"""

from taufit.diagnosis.cause import Cause
from taufit.diagnosis.change import Change
from taufit.diagnosis.diagnose import (
    CHANNEL_KINDS,
    RefusedError,
    recording_causes,
    refuse,
    sample_causes,
)
from taufit.diagnosis.prepare import declared_torque, suitable_cutoff

__all__ = [
    "CHANNEL_KINDS",
    "Cause",
    "Change",
    "RefusedError",
    "declared_torque",
    "recording_causes",
    "refuse",
    "sample_causes",
    "suitable_cutoff",
]
