"""Files of a fit that are far off the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.arrays import Array
from taufit.model.score import Score
from taufit.recording.finding import Finding

# A file whose RMSE is this many times the others' in most joints, or on average, is not like them.
_TIMES, _MEAN_TIMES = 2.5, 6.0


def unlike_files(scores: Sequence[Score]) -> list[Finding]:
    """A finding for every file whose training error is far above the others'."""
    if len(scores) < 3:
        return []
    errors = np.stack([one.rmse for one in scores])
    usual = np.maximum(np.median(errors, axis=0), 1e-12)
    out = []
    for one, error in zip(scores, errors, strict=True):
        times: Array = error / usual
        if np.median(times) > _TIMES or np.mean(times) > _MEAN_TIMES:
            worst = np.argsort(-times)[:2]
            listed = ", ".join(f"joint {j + 1} {times[j]:.1f} times" for j in worst)
            out.append(
                Finding(
                    "broken_file",
                    "error" if np.mean(times) > _MEAN_TIMES else "warning",
                    f"{one.file} is not like the other {len(scores) - 1} recordings: its RMSE is "
                    f"larger than theirs ({listed}). Leave it out, or look at it with `taufit "
                    f"convert {one.file} --report`",
                    value=float(np.mean(times)),
                )
            )
    return out
