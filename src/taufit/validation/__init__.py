"""Whether to trust a fitted model. In: a fitted model and `Samples` it has not seen. Out: scores,
spectra, findings and a verdict.

Left to others: how it is shown (report).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.validation.grades import (
        Grade as Grade,
        Grades as Grades,
        Thresholds as Thresholds,
        floors as floors,
        grade as grade,
    )
    from taufit.validation.nominal_comparison import before_identification as before_identification
    from taufit.validation.score import (
        Score as Score,
        check as check,
        range_findings as range_findings,
        score as score,
    )
    from taufit.validation.spectrum import (
        Spectrum as Spectrum,
        residual_spectrum as residual_spectrum,
    )
    from taufit.validation.verdict import Limits as Limits, Verdict as Verdict, verdict as verdict

lazy_room(__name__)
