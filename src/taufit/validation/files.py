"""Files of a fit that are far off the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array
from taufit.model.score import Score
from taufit.recording.finding import Finding

# A file whose RMSE is this many times the others' in most joints, or whose RMSE and nrmse are in
# two joints, is not like them.
_TIMES, _TWO_JOINTS = 2.5, 3.0
# It is refused where either is this many times the others' on average, or, with this nrmse, which
# is no model at all, this many.
_MEAN_TIMES, _NOTHING, _NOTHING_TIMES = 6.0, 0.5, 3.0


def unlike_files(scores: Sequence[Score]) -> list[Finding]:
    """A finding for every file whose training error is far above the others'."""
    if len(scores) < 3:
        return []
    errors = np.stack([one.rmse for one in scores])
    shares = np.nan_to_num(np.stack([one.nrmse for one in scores]))
    usual, usual_share = (np.maximum(np.median(each, axis=0), 1e-12) for each in (errors, shares))
    out = []
    for one, error, share in zip(scores, errors, shares, strict=True):
        times: Array = error / usual
        relative: Array = share / usual_share
        # A faster motion has larger torques, a joint that stands has hardly any: both must say so.
        both = np.sort(np.minimum(times, relative))[::-1]
        grave = min(float(np.mean(times)), float(np.mean(relative)))
        refused = np.mean(times) > _MEAN_TIMES or (
            float(np.mean(share)) > _NOTHING and grave > _NOTHING_TIMES
        )
        if refused or np.median(times) > _TIMES or both[:2][-1] > _TWO_JOINTS:
            worst = np.argsort(-times)[:2]
            listed = ", ".join(f"joint {j + 1} {times[j]:.1f} times" for j in worst)
            out.append(
                Finding(
                    "broken_file",
                    "error" if refused else "warning",
                    f"{one.file} is not like the other {len(scores) - 1} recordings: its RMSE is "
                    f"larger than theirs ({listed}). Leave it out, or look at it with `taufit "
                    f"convert {one.file} --report`",
                    value=float(np.mean(times)),
                )
            )
    return out
