"""Diagnosis of recordings. In: robot, recordings, samples. Out: findings with causes.

Elsewhere: reading (recording), drive gains and mounting (calibration), scores (validation).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.diagnosis.correction import Cause as Cause, Correction as Correction
    from taufit.diagnosis.diagnose import (
        CHANNEL_KINDS as CHANNEL_KINDS,
        ContradictionError as ContradictionError,
        raise_on_contradiction as raise_on_contradiction,
        recording_causes as recording_causes,
        sample_causes as sample_causes,
    )
    from taufit.diagnosis.prepare import (
        apply_declared_torque_kind as apply_declared_torque_kind,
        suitable_cutoff as suitable_cutoff,
    )

lazy_package(__name__)
