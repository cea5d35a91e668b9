"""The verbs as functions. In: a `Robot` and recordings. Out: a fitted model and its scores.

Left to others: how it is shown (report), options (cli).
"""

from taufit.workflow.conditioned import condition_like
from taufit.workflow.cross_validation import cross_validate
from taufit.workflow.identification import Identification
from taufit.workflow.identify import identify

__all__ = ["Identification", "condition_like", "cross_validate", "identify"]
