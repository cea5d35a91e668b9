"""Whether to believe a fitted model. In: a fitted `TorqueModel` and `Samples` it has not seen. Out:
scores, spectra, findings and a verdict.

Left to others: how it is shown (report).
"""

from taufit.validation.before import before_identification
from taufit.validation.contradictions import contradictions
from taufit.validation.cross_validation import cross_validate
from taufit.validation.excitation import excitation_findings
from taufit.validation.gravity_sign import gravity_findings
from taufit.validation.identification import Identification, condition_like, identify
from taufit.validation.mounting import (
    Gravity,
    Moved,
    estimate_gravity,
    mounting_findings,
    move_model,
)
from taufit.validation.range_of_training import range_findings
from taufit.validation.score import Score, check, score
from taufit.validation.spectrum import Spectrum, residual_spectrum
from taufit.validation.verdict import Limits, Verdict, verdict

__all__ = [
    "Gravity",
    "Identification",
    "Limits",
    "Moved",
    "Score",
    "Spectrum",
    "Verdict",
    "before_identification",
    "check",
    "condition_like",
    "contradictions",
    "cross_validate",
    "estimate_gravity",
    "excitation_findings",
    "gravity_findings",
    "identify",
    "mounting_findings",
    "move_model",
    "range_findings",
    "residual_spectrum",
    "score",
    "verdict",
]
