"""Calibration of the detection threshold on contact-free motion.

The largest evidence of blocks of two seconds has an exponential tail above its 90 % quantile.
Minutes of recordings do not prove a rate per hour: start and scale are means of the observed and
the default tail, weighted by the number of excesses, and the duration behind the observed one is
reported.
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
# Weight of the default tail, in excesses.
_DEFAULT_EXCESSES = 20.0
# Number of blocks below which the default tail is used.
_MIN_BLOCKS = 20


def alarm_tail(evidence: Sequence[Float[Array, " n"]], step: float) -> AlarmTail:
    """Tail of the evidence over contact-free runs, combined with the default.

    With n excesses over the start s of the observed tail, and n0 those of the default tail s0, c0:

        start = (n0 s0 + n s) / (n0 + n),    scale = (n0 c0 + sum of excesses) / (n0 + n)

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
    n, default_n = len(excess), _DEFAULT_EXCESSES
    return AlarmTail(
        (default_n * DEFAULT_TAIL.start + n * start) / (default_n + n),
        (default_n * DEFAULT_TAIL.scale + float(excess.sum())) / (default_n + n),
        TAIL_FRACTION,
        BLOCK_DURATION_S,
        minutes,
    )
