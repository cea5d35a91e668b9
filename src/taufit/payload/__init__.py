"""What a known arm carries. In: a fitted model and samples. Out: mass, centre of mass, inertia.

Left to others: pictures and the wire (report).
"""

from typing import Any

from taufit.payload.difference import run_difference, run_printed
from taufit.payload.direct import run_direct, run_khalil, run_static
from taufit.payload.estimate import PayloadEstimate
from taufit.payload.filter import Event, PayloadFilter
from taufit.payload.run import PayloadRun, identify_payload, run_filter
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream, stream

METHODS: dict[str, Any] = {
    "filter": run_filter,
    "direct": run_direct,
    "difference": run_difference,
    "printed": run_printed,
    "khalil": run_khalil,
    "static": run_static,
}

__all__ = [
    "METHODS",
    "Event",
    "PayloadEstimate",
    "PayloadFilter",
    "PayloadRun",
    "PayloadSettings",
    "Stream",
    "identify_payload",
    "stream",
]
