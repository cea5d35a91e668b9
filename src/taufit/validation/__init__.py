"""Validation of a fitted model. In: a fitted model and hold-out `Samples`. Out: scores, spectra,
findings and a verdict.

Elsewhere: presentation (report).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.validation.grades import (
        Grade as Grade,
        Grades as Grades,
        RecordingEvidence as RecordingEvidence,
        Thresholds as Thresholds,
        grade as grade,
        recording_evidence as recording_evidence,
    )
    from taufit.validation.noise_floor import (
        noise_share as noise_share,
        repeat_share as repeat_share,
    )
    from taufit.validation.nominal_comparison import compare_with_nominal as compare_with_nominal
    from taufit.validation.score import (
        Score as Score,
        range_findings as range_findings,
        score as score,
    )
    from taufit.validation.spectrum import (
        Spectrum as Spectrum,
        residual_spectrum as residual_spectrum,
    )
    from taufit.validation.verdict import (
        AcceptanceLimits as AcceptanceLimits,
        Verdict as Verdict,
        verdict as verdict,
    )

lazy_package(__name__)
