"""What a robot carries, feels and loses while it moves.

In: a fitted model and samples as they come, from a robot that is on or a recording played back.
Out: readings, one per sample, and events. Detection is left to `payload`, `contact` and `health`.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.live.monitor import Monitor as Monitor, SampleCounts as SampleCounts
    from taufit.live.reading import (
        EVENT_KINDS as EVENT_KINDS,
        MonitorEvent as MonitorEvent,
        Reading as Reading,
    )

lazy_room(__name__)
