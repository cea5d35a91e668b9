"""Whether to trust a fitted model. In: a fitted model and `Samples` it has not seen. Out: scores,
spectra, findings and a verdict.

Left to others: how it is shown (report).
"""

from taufit.validation.grades import Grade, Grades, Thresholds, floors, grade
from taufit.validation.nominal_comparison import before_identification
from taufit.validation.range_of_training import range_findings
from taufit.validation.score import Score, check, score
from taufit.validation.spectrum import Spectrum, residual_spectrum
from taufit.validation.verdict import Limits, Verdict, verdict

__all__ = [
    "Grade",
    "Grades",
    "Limits",
    "Score",
    "Spectrum",
    "Thresholds",
    "Verdict",
    "before_identification",
    "check",
    "floors",
    "grade",
    "range_findings",
    "residual_spectrum",
    "score",
    "verdict",
]
