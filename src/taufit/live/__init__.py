"""Live monitoring: payload, contacts and friction of a moving robot.

In: a fitted model and samples of a running robot or a recording. Out: readings, one per sample, and
events. Not here: the detection itself (`payload`, `contact`, `health`).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.live.monitor import Monitor as Monitor, SampleCounts as SampleCounts
    from taufit.live.reading import (
        EVENT_KINDS as EVENT_KINDS,
        MonitorEvent as MonitorEvent,
        Reading as Reading,
    )

lazy_package(__name__)
