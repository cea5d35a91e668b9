"""Files of a fit that are far off the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.arrays import Array
from taufit.model.score import Score
from taufit.recording.finding import Finding

# A file whose error is this many times the others' median, and this much larger, is not like them.
_TIMES, _MORE = 2.5, 0.05


def unlike_files(scores: Sequence[Score]) -> list[Finding]:
    """A finding for every file whose training error is far above the others'."""
    if len(scores) < 3:
        return []
    errors = np.array([one.mean_nrmse for one in scores])
    usual = float(np.median(errors))
    out = []
    for one, error in zip(scores, errors, strict=True):
        if error > _TIMES * usual and error > usual + _MORE:
            worst: Array = np.argsort(-one.nrmse)[:2] + 1
            out.append(
                Finding(
                    "broken_file",
                    "error",
                    f"{one.file} is not like the other {len(scores) - 1} recordings: mean nrmse "
                    f"{error:.3f} where they have {usual:.3f} (worst joints "
                    f"{', '.join(map(str, worst))}). Leave it out, or look at it with `taufit "
                    f"convert {one.file} --report`",
                    value=float(error),
                )
            )
    return out
