"""Many robots of one type. In: their recordings, by robot and day. Out: a model for each, what they
have in common, which of them are unlike the others and why, how friction moves over days.

Left to others: single fits (workflow), pages (report), where the work is done (engines).
"""

from taufit.fleet.result import FleetResult
from taufit.fleet.run import study_fleet

__all__ = ["FleetResult", "study_fleet"]
