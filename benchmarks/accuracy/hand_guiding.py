"""Hand guiding as in section 4.4 of [Xu2024]: force with and without the payload compensated.

The payload is what the filter found in a recording, not the true one. Rectangles in four planes, at
four places, at two speeds; the hand's unsteadiness differs from path to path and is the same with
and without compensation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.payload import identify_payload
from taufit.sim import read_preset
from taufit.sim.hand_guiding import simulate_hand_guiding
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

# The application payload of the paper.
MASS = 3.223
PLACES = (
    (0.0, -1.2, 1.6, -2.0, -1.57, 0.0),
    (1.2, -1.5, 1.9, -2.0, -1.57, 0.4),
    (-0.5, -0.7, 1.5, -2.4, -1.57, 0.0),
    (0.3, -1.6, 2.1, -2.1, -1.57, 0.2),
)
PLANES = (
    ((0.0, 0.3, 0.0), (0.2, 0.0, 0.0)),
    ((0.0, 0.3, 0.0), (0.0, 0.0, 0.2)),
    ((0.2, 0.0, 0.0), (0.0, 0.0, 0.2)),
    ((0.1, 0.25, 0.0), (0.1, 0.0, 0.15)),
)
SECONDS = (6.0, 12.0)


def rows() -> Iterator[Row]:
    preset: Any = read_preset("ur10-paper")
    effects = preset.twin.effects
    twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=3.0)))
    model = identify(twin.robot, [twin.run(preset.motion(periods=10), seed=301).recording]).model
    true = preset.payload.parameters * (MASS / preset.payload.parameters[0])
    run = twin.run(preset.motion(periods=1), seed=302, payload=CarriedPayload(true))
    found = identify_payload(model, run.recording).estimate
    error = 100.0 * abs(found.mass / MASS - 1.0)
    yield Row("mass found and compensated is off by", error, "%", "", f"true mass {MASS} kg")

    friction = _friction(twin.effects.friction)
    for share in (0.9, 0.7):
        falls = []
        for k, (start, sides, seconds) in enumerate(
            (start, sides, seconds) for start in PLACES for sides in PLANES for seconds in SECONDS
        ):
            heavy, light = (
                simulate_hand_guiding(
                    twin.robot,
                    true,
                    compensated=known,
                    friction=friction,
                    friction_compensation=share,
                    start=np.array(start),
                    sides=sides,
                    seconds=seconds,
                    seed=k,
                ).mean_force
                for known in (None, found.parameters)
            )
            falls.append(100.0 * (1.0 - light / heavy))
        note = f"{len(falls)} rectangles"
        left = f"{100 * (1.0 - share):.0f} % of friction left"
        paper = (12.99, 25.75, 44.24)
        for axis in range(3):
            at = np.array(falls)[:, axis]
            name, target = "xyz"[axis], ">= 40" if axis == 2 else ">= 0"
            yield Row(
                f"mean force in {name} falls by, median, {left}",
                float(np.median(at)),
                "%",
                target,
                f"{note}; paper {paper[axis]} on its path",
            )
            least = f"mean force in {name} falls by, least, {left}"
            yield Row(least, float(at.min()), "%", target, note)


def _friction(friction: Any) -> np.ndarray:
    """Friction of the simulated joints at a guided speed of 0.2 rad/s [N m]."""
    coefficients = np.asarray(friction.coefficients)
    powers = np.asarray(friction.shape)[:, 0]
    return coefficients[:, 0] + coefficients[:, 1] * 0.2**powers
