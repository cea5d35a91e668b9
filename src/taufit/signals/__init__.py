"""Conditioning: from measured channels to uniform samples. In: a `Recording`. Out: `Samples`.

Not here: models of torque (dynamics, terms).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.signals.conditioning import condition as condition
    from taufit.signals.controller_gains import controller_gains as controller_gains
    from taufit.signals.delay import (
        estimate_delay as estimate_delay,
        tracking_delay as tracking_delay,
    )
    from taufit.signals.differentiation import DIFFERENTIATIONS as DIFFERENTIATIONS
    from taufit.signals.drive_gains import (
        KNOWN_GAINS as KNOWN_GAINS,
        DriveGains as DriveGains,
        known_gains as known_gains,
    )
    from taufit.signals.filtering import lowpass as lowpass, zero_phase as zero_phase
    from taufit.signals.quality_report import quality_report as quality_report
    from taufit.signals.samples import Samples as Samples

lazy_package(__name__)
