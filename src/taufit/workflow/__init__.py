"""Identification and checking as functions. In: a `Robot` and recordings. Out: a fitted model and
its scores.

Elsewhere: presentation (report), options (cli).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package
from taufit.core.names import renamed_names

if TYPE_CHECKING:
    from taufit.workflow.cross_validation import (
        cross_validate_structure as cross_validate_structure,
    )
    from taufit.workflow.fit_request import FitRequest as FitRequest
    from taufit.workflow.identification import IdentificationResult as IdentificationResult
    from taufit.workflow.identify import identify as identify
    from taufit.workflow.training_data import condition_for_model as condition_for_model

lazy_package(__name__)
# Former names of 0.1, accepted with a warning until 0.3.
__getattr__ = renamed_names(__name__, condition_like="condition_for_model")
