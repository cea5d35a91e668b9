"""The evidence that contact-free motion exceeds as often as accepted, and what that rests on.

Evidence of blocks of two seconds has an exponential tail beyond its 90 % quantile. Minutes of
recordings never prove a rate per hour, so the tail is never taken to be shorter than that of arms
in general, and how many minutes it rests on is said with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.noise_by_state import AlarmTail

# Of arms in general, where no contact-free recording is given: chosen on recordings of one UR10e
# (benchmarks/accuracy/contact_found.py says which), so a guess for other arms: give --free runs.
DEFAULT_TAIL = AlarmTail(15.0, 9.0)
BLOCK_DURATION_S = 2.0
TAIL_FRACTION = 0.1
# Blocks below which a tail says nothing of its own.
_MIN_BLOCKS = 20


def alarm_tail(evidence: Sequence[Float[Array, " n"]], step: float) -> AlarmTail:
    """The tail of evidence over contact-free runs, never below that of arms in general.

    Args:
        evidence: 2 ln B of every cell of each run.
        step: Between two cells [s].
    """
    size = round(BLOCK_DURATION_S / step)
    blocks = np.array(
        [
            run[first : first + size].max()
            for run in evidence
            for first in range(0, len(run) - size + 1, size)
        ]
    )
    minutes = sum(map(len, evidence)) * step / 60.0
    if len(blocks) < _MIN_BLOCKS:
        default = DEFAULT_TAIL
        return AlarmTail(default.start, default.scale, default.share, BLOCK_DURATION_S, minutes)
    start = float(np.quantile(blocks, 1.0 - TAIL_FRACTION))
    excess = blocks[blocks > start] - start
    scale = float(excess.mean()) if len(excess) else 0.0
    return AlarmTail(
        max(start, DEFAULT_TAIL.start),
        max(scale, DEFAULT_TAIL.scale),
        TAIL_FRACTION,
        BLOCK_DURATION_S,
        minutes,
    )
