"""Fleets of robots of one type. In: recordings by robot and day. Out: a model of each robot, the
common prior, outliers with reasons, and trends of friction over days.

Elsewhere: single fits (workflow), pages (report), distribution of the work (engines).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.fleet.fleet_study import (
        prepare_reduction as prepare_reduction,
        study_fleet as study_fleet,
    )
    from taufit.fleet.result import FleetResult as FleetResult

lazy_package(__name__)
