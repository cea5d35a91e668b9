"""Payloads of a simulated KR5 whose torques have no signs, against the same runs with signs.

The model is fitted without signs to one empty run; another motion carries the payload. 667 samples
in 13.3 s, torque noise 5 % of each joint's rms, as the preset kr5-unsigned has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import taufit
from benchmarks import Row
from taufit.payload import identify_payload
from taufit.sim import CarriedPayload, read_preset
from taufit.workflow.identify import identify

RUNS, FIRST = 100, 7000


@dataclass(frozen=True, slots=True)
class Weighed:
    """One payload, weighed without signs and with them."""

    mass: float
    found: float
    inside: bool
    centre_inside: bool
    centre_error: float
    clear: bool
    with_signs: float
    with_signs_inside: bool


def weigh(seed: int) -> Weighed:
    """One arm model, one payload."""
    preset = read_preset("kr5-unsigned")
    rng = np.random.default_rng(seed)
    mass = float(rng.uniform(1.0, 5.0))
    centre = rng.uniform([-0.05, -0.05, 0.02], [0.05, 0.05, 0.12])
    twin = preset.twin
    sensing = twin.effects.sensing
    assert sensing is not None
    signed = replace(twin, effects=replace(twin.effects, sensing=replace(sensing, absolute=False)))
    empty = twin.run(preset.motion(seed, None), seed=seed).recording
    model = identify(taufit.read_robot("kr5"), [empty]).model
    carried = CarriedPayload.lump(mass, centre)
    motion = preset.motion(seed + 100_000, None)
    done, known = (
        identify_payload(model, arm.run(motion, seed=seed + 100_000, payload=(carried,)).recording)
        for arm in (twin, signed)
    )
    low, high = done.estimate.mass_interval
    centre_low, centre_high = done.estimate.centre_interval
    return Weighed(
        mass,
        done.estimate.mass,
        low <= mass <= high,
        bool(np.all((centre_low <= centre) & (centre <= centre_high))),
        float(np.linalg.norm(done.estimate.centre - centre)),
        bool(done.details["torque_signs"]["clear"]),
        known.estimate.mass,
        known.estimate.mass_interval[0] <= mass <= known.estimate.mass_interval[1],
    )


def rows() -> Iterator[Row]:
    done = [weigh(seed) for seed in range(FIRST, FIRST + RUNS)]
    mass = np.array([one.mass for one in done])
    error = np.abs(np.array([one.found for one in done]) / mass - 1.0)
    known = np.abs(np.array([one.with_signs for one in done]) / mass - 1.0)
    heavy = mass >= 2.0
    note = f"{RUNS} runs, 1-5 kg; with signs"
    for name, share in (("median", 50), ("95th percentile", 95)):
        yield Row(
            f"mass error without signs, {name}",
            100 * float(np.percentile(error, share)),
            "%",
            "<= 2",
            f"{note} {100 * np.percentile(known, share):.2f} %; from 2 kg on "
            f"{100 * np.percentile(error[heavy], share):.2f} %",
        )
    yield Row(
        "mass in its 95 % interval without signs",
        100 * float(np.mean([one.inside for one in done])),
        "%",
        ">= 93",
        f"{note} {100 * np.mean([one.with_signs_inside for one in done]):.0f} %; all three "
        f"coordinates of the centre in {100 * np.mean([one.centre_inside for one in done]):.0f} %, "
        f"off by {1e3 * np.median([one.centre_error for one in done]):.1f} mm in the median",
    )
    yield Row(
        "no other payload explains the magnitudes",
        100 * float(np.mean([one.clear for one in done])),
        "%",
    )
