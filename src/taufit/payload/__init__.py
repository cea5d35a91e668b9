"""Payload identification. In: a fitted model and a recording. Out: mass, centre of mass, inertia.

Not here: plots and HTML pages (report), connections to robots (wire).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taufit.core.lazy import Registry, lazy_package

if TYPE_CHECKING:
    from collections.abc import Callable

    from taufit.payload.estimate import PayloadEstimate as PayloadEstimate
    from taufit.payload.filter import PayloadEvent as PayloadEvent, PayloadFilter as PayloadFilter
    from taufit.payload.identification import (
        PayloadRun as PayloadRun,
        identify_payload as identify_payload,
    )
    from taufit.payload.settings import PayloadSettings as PayloadSettings
    from taufit.payload.stream import Stream as Stream, stream as stream

METHODS: Registry[Callable[..., PayloadRun]] = Registry(
    {
        "filter": "taufit.payload.identification:run_filter",
        "direct": "taufit.payload.direct_regression:run_direct",
        "difference": "taufit.payload.parameter_difference:run_difference",
        "printed": "taufit.payload.parameter_difference:run_printed",
        "khalil": "taufit.payload.direct_regression:run_khalil",
        "static": "taufit.payload.direct_regression:run_static",
    }
)
__all__ = ["METHODS"]

lazy_package(__name__)
