"""The verbs as functions. In: a `Robot` and recordings. Out: a fitted model and its scores.

Left to others: how it is shown (report), options (cli).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.workflow.conditioned import condition_like as condition_like
    from taufit.workflow.cross_validation import cross_validate as cross_validate
    from taufit.workflow.identification import Identification as Identification
    from taufit.workflow.identify import identify as identify

lazy_room(
    __name__,
    {
        "conditioned": "condition_like",
        "cross_validation": "cross_validate",
        "identification": "Identification",
        "identify": "identify",
    },
)
