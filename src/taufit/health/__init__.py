"""Wear detection, compensated for temperature. In: a fitted model and runs. Out: health reports.

Not here: reading and conditioning recordings (validation), plots (report).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package
from taufit.core.names import renamed_names

if TYPE_CHECKING:
    from taufit.health.cusum import cusum as cusum, cusum_threshold as cusum_threshold
    from taufit.health.drift import (
        apply_drift as apply_drift,
        read_drift as read_drift,
        write_drift as write_drift,
    )
    from taufit.health.friction_index import (
        FrictionIndex as FrictionIndex,
        friction_index as friction_index,
    )
    from taufit.health.health_report import HealthReport as HealthReport, JointHealth as JointHealth
    from taufit.health.history import (
        History as History,
        HistoryRun as HistoryRun,
        assess_health as assess_health,
        start_history as start_history,
    )
    from taufit.health.history_file import (
        add_runs as add_runs,
        read_history as read_history,
        write_history as write_history,
    )
    from taufit.health.tracker import (
        FrictionDrift as FrictionDrift,
        FrictionTracker as FrictionTracker,
        TrackerSettings as TrackerSettings,
        track as track,
    )

lazy_package(__name__)
# Former names of 0.1, accepted with a warning until 0.3.
__getattr__ = renamed_names(__name__, judge="assess_health")
