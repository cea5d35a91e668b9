"""Calibration of the detection threshold on contact-free motion.

The largest evidence of blocks of two seconds has an exponential tail above its 90 % quantile.
Minutes of recordings do not prove a rate per hour, so the tail is never shorter than the default,
and the duration it rests on is reported with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.model.noise_by_state import AlarmTail

# Default tail without contact-free recordings: tuned on recordings of one UR10e
# (benchmarks/accuracy/contact_found.py), so approximate for other robots.
DEFAULT_TAIL = AlarmTail(15.0, 9.0)
BLOCK_DURATION_S = 2.0
TAIL_FRACTION = 0.1
# Number of blocks below which the default tail is used.
_MIN_BLOCKS = 20


def alarm_tail(evidence: Sequence[Float[Array, " n"]], step: float) -> AlarmTail:
    """Tail of the evidence over contact-free runs, never below the default.

    Args:
        evidence: 2 ln B of every time bin of each run.
        step: Time between two bins [s].
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
