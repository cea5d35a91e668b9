"""Whether a motion stays where the model was fitted."""

from __future__ import annotations

import numpy as np

from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import Range
from taufit.signals.samples import Samples

# A motion may leave the range of training by this share of its span, for this share of its samples.
_SLACK = 0.05
_RARE = 0.01

_QUANTITIES = (
    ("position", "positions", 180.0 / np.pi, "deg", "m"),
    ("velocity", "speeds", 180.0 / np.pi, "deg/s", "m/s"),
    ("temperature", "temperatures", 1.0, "degC", "degC"),
)


def range_findings(model: FittedModel, samples: Samples) -> tuple[str, ...]:
    """One sentence per quantity for joints that leave the range the model was fitted in."""
    messages = []
    moving = samples.in_motion
    for name, words, scale, unit, slide_unit in _QUANTITIES:
        span: Range | None = getattr(model.training.ranges, name)
        values = getattr(samples, name)
        if span is None or values is None or not np.any(moving):
            continue
        low, high = span.low, span.high
        slack = _SLACK * np.maximum(high - low, 1e-12)
        outside = (values[moving] < low - slack) | (values[moving] > high + slack)
        share = outside.mean(axis=0)
        which = np.flatnonzero(share > _RARE)
        if len(which) == 0:
            continue
        worst = int(which[np.argmax(share[which])])
        slides = model.robot.links[worst].prismatic
        k, label = (1.0, slide_unit) if slides else (scale, unit)
        reach = values[moving, worst]
        listed = ", ".join(str(j + 1) for j in which)
        messages.append(
            f"{words} of joint {listed} leave the range of training (worst: joint {worst + 1}, "
            f"{k * reach.min():.3g} .. {k * reach.max():.3g} {label} where {k * low[worst]:.3g} .. "
            f"{k * high[worst]:.3g} was fitted, {100 * share[worst]:.0f} % of the samples)"
        )
    return tuple(messages)
