"""Inertia of a payload from a planned wrist motion, beside the payload motion, on the twin.

A 3 kg cube of 0.2 m on the flange of UR10 and Panda. The empty arm is identified first from a
designed motion; then the payload is carried through both motions, each of 20 s at most and each
recorded empty before, so that errors of the empty arm's model cancel. Ripple belongs to the arm:
all runs of one seed have the same (a twin that draws it anew for every run is another arm each
time, and no template fits it).

    python -m benchmarks.accuracy.payload_inertia ARM [SEED ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks import Row

MASS, SIZE = 3.0, 0.2
LONGEST_S = 20.0
SEEDS = (3, 14, 15)
# Places of Ixx, Iyy, Izz among Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
ENTRIES = (0, 2, 5)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Moments of inertia about the centre of mass, as found.

    Attributes:
        kind: Of the motion.
        seconds: Of the recording.
        value, low, high: Of Ixx, Iyy, Izz [kg m^2], 95 %.
        truth: [kg m^2].
    """

    kind: str
    seconds: float
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    truth: float


def measured(arm: str, seed: int = 0) -> Iterator[Outcome]:
    """Both motions on one arm."""
    import taufit
    from taufit.excitation import InertiaGoal, SearchEffort, plan
    from taufit.payload import identify_payload
    from taufit.robot import read_robot
    from taufit.sim import CarriedPayload, Twin
    from taufit.sim.preset import typical_effects, typical_rotor

    robot = read_robot(arm)
    effects = typical_effects(robot)
    assert effects.ripple is not None
    effects = replace(effects, ripple=replace(effects.ripple, arm=1.0 + seed))
    twin = Twin(typical_rotor(robot), effects, rate_hz=250.0)
    runs = []
    for kind, number in (("identification", seed), ("validation", seed + 1)):
        motion = plan(kind, robot, effort=SearchEffort(seed=number)).motion
        runs.append(twin.run(motion, seed=10 + number).recording)
    model = taufit.identify(robot, runs).model
    residual = np.asarray(model.training.score.rmse)
    centre = robot.tip[:3, 3] + robot.tip[:3, 2] * 0.5 * SIZE
    moment = MASS * SIZE**2 / 6.0
    part = CarriedPayload.lump(MASS, centre, moment * np.eye(3))
    for kind in ("payload", "payload-inertia"):
        goal = InertiaGoal(MASS, SIZE, noise=residual, longest_s=LONGEST_S)
        found = plan(kind, robot, effort=SearchEffort(seed=seed + 2), inertia=goal)
        run = twin.run(found.motion, seed=77 + seed, payload=(part,))
        empty = twin.run(found.motion, seed=177 + seed).recording
        estimate = identify_payload(model, run.recording, template=[empty]).estimate
        low, high = estimate.inertia_interval
        value = np.diag(estimate.inertia)
        yield Outcome(
            kind,
            found.motion.duration,
            tuple(float(x) for x in value),
            tuple(float(low[i]) for i in ENTRIES),
            tuple(float(high[i]) for i in ENTRIES),
            moment,
        )


def rows() -> Iterator[Row]:
    for arm in ("ur10", "panda"):
        found = [one for seed in SEEDS for one in measured(arm, seed)]
        for kind in ("payload", "payload-inertia"):
            own = [one for one in found if one.kind == kind]
            errors = [100.0 * abs(one.value[2] / one.truth - 1.0) for one in own]
            inside = sum(one.low[2] <= one.truth <= one.high[2] for one in own)
            wanted = kind == "payload-inertia"
            note = f"median {np.median(errors):.1f} %, interval holds in {inside} of {len(own)}"
            name = f"{arm}, {kind}: error of Izz, worst of {len(own)} arms"
            yield Row(name, max(errors), "%", "<= 10" if wanted else "", note)
            lasts = max(one.seconds for one in own)
            yield Row(f"{arm}, {kind}: motion", lasts, "s", "<= 20" if wanted else "", note)
            held = inside / len(own)
            yield Row(f"{arm}, {kind}: 95 % interval of Izz holds", held, "", "", note)


if __name__ == "__main__":
    for number in sys.argv[2:] or ("0",):
        for outcome in measured(sys.argv[1], int(number)):
            print(sys.argv[1], number, outcome, flush=True)
