"""Whether torque was recorded later, or earlier, than the motion it belongs to."""

from __future__ import annotations

import numpy as np

from taufit.diagnosis.change import Change
from taufit.diagnosis.evidence import Evidence
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy

# Lags that are tried [s]; smaller ones than the least do no harm at usual cut-offs.
_LAGS = (-0.15, -0.1, -0.06, -0.03, 0.03, 0.06, 0.1, 0.15, 0.2)
LEAST_S = 0.015
# The lag must make the model this much better, and by this many log odds.
_BETTER, _ODDS = 0.85, 30.0


def delay_finding(evidence: Evidence) -> Finding | None:
    """A delay that makes the arm explain the torque much better, or nothing."""
    plain = evidence.plain
    tried = [(lag, evidence.worth(rows=evidence.shifted(lag))) for lag in _LAGS]
    lag, worth = min(tried, key=lambda item: item[1].cost)
    if worth.cost > plain.cost - _ODDS / 2:
        return None
    for step in (0.02, 0.01, 0.005, 0.0025):
        for other in (lag - step, lag + step):
            found = evidence.worth(rows=evidence.shifted(other))
            if found.cost < worth.cost:
                lag, worth = other, found
    if abs(lag) < LEAST_S or worth.share > _BETTER * plain.share:
        return None
    held = evidence.compared(Change("delay", "", rows=lambda _: evidence.shifted(lag)))
    if held.gained < _ODDS or held.held_out > _BETTER or held.worst_fold > 1.0:
        return None
    word = "later" if lag > 0 else "earlier"
    return Finding(
        "delay",
        "warning",
        f"torque was recorded {1e3 * abs(lag):.0f} ms {word} than the motion it belongs to: "
        f"shifted back, {100 * worth.share:.1f} % of it stays unexplained instead of "
        f"{100 * plain.share:.1f} %. Fit with --delay-s {lag:.3f}",
        value=float(np.round(lag, 4)),
        remedy=Remedy(("--delay-s", f"{lag:.3f}")),
    )
