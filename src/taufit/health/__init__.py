"""Drift and wear, distinguished from temperature. In: a fitted model and runs. Out: verdicts.

Left to others: reading and conditioning recordings (validation), pictures (report).
"""

from taufit.health.cusum import cusum, threshold_for
from taufit.health.history import (
    History,
    Run,
    judge,
    start_history,
)
from taufit.health.history_file import add_runs, read_history, write_history
from taufit.health.index import FrictionIndex, friction_index
from taufit.health.judgement import JointHealth, Judgement
from taufit.health.tracker import FrictionTracker, TrackerSettings, track

__all__ = [
    "FrictionIndex",
    "FrictionTracker",
    "History",
    "JointHealth",
    "Judgement",
    "Run",
    "TrackerSettings",
    "add_runs",
    "cusum",
    "friction_index",
    "judge",
    "read_history",
    "start_history",
    "threshold_for",
    "track",
    "write_history",
]
