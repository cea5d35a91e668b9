"""Many robots of one type. In: their recordings, by robot and day. Out: a model for each, what they
have in common, which of them are unlike the others and why, how friction moves over days.

Left to others: single fits (workflow), pages (report), where the work is done (engines).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.fleet.fleet_study import study_fleet as study_fleet
    from taufit.fleet.result import FleetResult as FleetResult

lazy_room(__name__)
