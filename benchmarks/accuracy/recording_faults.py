"""Faults of channels injected into simulated recordings: named? And recordings without faults.

200 faults on six arms: a position that sticks, a torque that is clipped, a log appended to itself,
two torque columns swapped, each at a random joint, time and size, with and without recorded
velocity. Without faults: all shared SO-101 runs and the AM-D02 file, whose coarse encoders stand
still and repeat. No setting was chosen on these seeds.

python -m benchmarks recording_faults
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import Row
from benchmarks.clean_runs import SHARED
from taufit.recording import Recording
from taufit.robot import Robot

ARMS = ("ur3e", "ur5e", "ur10e", "panda", "iiwa14", "kr5")
FAULTS = 200
NAMES = {
    "stuck": {"stuck_encoder"},
    "clipped": {"clipping"},
    "appended": {"repeated_log"},
    "swapped": {"swapped_torque", "swapped_joints"},
}


def faulty(recording: Recording, fault: str, rng: np.random.Generator) -> Recording | None:
    """Recording with a fault; None if it would not show (a joint that hardly moves then)."""
    joint = int(rng.integers(recording.joints))
    position, torque = np.array(recording.position), np.array(recording.signal)
    rate = len(recording) / (recording.time[-1] - recording.time[0])
    if fault == "stuck":
        length = int(rng.uniform(1.2, 3.0) * rate)
        start = int(rng.integers(int(2 * rate), len(recording) - length - int(2 * rate)))
        if np.ptp(position[start : start + length, joint]) < 0.2:
            return None
        position[start : start + length, joint] = position[start, joint]
    elif fault == "clipped":
        limit = rng.uniform(0.5, 0.85) * np.abs(torque[:, joint]).max()
        torque[:, joint] = np.clip(torque[:, joint], -limit, limit)
        if np.mean(np.abs(torque[:, joint]) == limit) < 0.02:
            return None
    elif fault == "swapped":
        other = int((joint + rng.integers(1, recording.joints)) % recording.joints)
        torque[:, [joint, other]] = torque[:, [other, joint]]
    else:
        return _appended(recording)
    return replace(recording, position=position, signal=torque)


def _appended(recording: Recording) -> Recording:
    """Recording twice in a row, with time going on."""
    period = recording.time[-1] - recording.time[0] + float(np.median(np.diff(recording.time)))
    arrays = {
        name: np.concatenate([value, value + (period if name == "time" else 0.0)])
        for name, value in ((n, getattr(recording, n)) for n in recording.__dataclass_fields__)
        if isinstance(value, np.ndarray) and len(value) == len(recording)
    }
    return replace(recording, **arrays)


def finding_kinds(robot: Robot, recording: Recording) -> set[str]:
    """Kinds of findings of a fit, also of one that is refused."""
    from taufit.diagnosis import ContradictionError
    from taufit.workflow import identify

    try:
        return {
            finding.kind for finding in identify(robot, [recording], friction="linear").findings
        }
    except ContradictionError as error:
        return {finding.kind for finding in error.findings}


def clean_findings() -> Iterator[tuple[str, set[str]]]:
    """Shared recordings that stand still or repeat without a fault, and kinds of channel faults."""
    from taufit.diagnosis.channels import channel_findings
    from taufit.workflow.draft import draft_files, read_with_draft

    sets = {"so101": ("so101.urdf", "*.csv.gz"), "am_d02": ("AM-D02.urdf", "*.npz")}
    for folder, (robot, pattern) in sets.items():
        for path in sorted((SHARED / folder).glob(pattern)):
            result = draft_files([path], robot=SHARED / folder / robot)
            (recording,) = read_with_draft(result)
            kinds = {f.kind for f in (*recording.findings, *channel_findings(recording))}
            yield path.name, kinds & {"stuck_encoder", "repeated_log"}


def injected(seed: int = 41, count: int = FAULTS) -> Iterator[tuple[str, str, bool, set[str]]]:
    """Arm, fault, whether it was named, and the kinds that were found."""
    from taufit.robot import read_robot
    from taufit.sim import Twin, random_fourier

    rng = np.random.default_rng(seed)
    done = 0
    while done < count:
        arm, fault = ARMS[done % len(ARMS)], [*NAMES][(done // len(ARMS)) % len(NAMES)]
        robot = read_robot(arm)
        run_seed = int(rng.integers(1 << 20))
        motion = random_fourier(robot, seed=run_seed)
        recording = Twin.typical(robot).run(motion, seed=run_seed).recording
        if rng.random() < 0.5:
            recording = replace(recording, velocity=None)
        spoilt = faulty(recording, fault, rng)
        if spoilt is not None:
            kinds = finding_kinds(robot, spoilt)
            yield arm, fault, bool(kinds & NAMES[fault]), kinds
            done += 1


def rows() -> Iterator[Row]:
    """Fraction of faults named, and recordings with a false fault."""
    results: Counter[str] = Counter()
    for _, fault, is_named, _ in injected():
        results[fault] += 1
        results[f"{fault} named"] += is_named
    named = sum(results[f"{fault} named"] for fault in NAMES)
    yield Row("injected stuck, clipped, appended, swapped faults named", 100 * named / FAULTS, "%",
              ">= 97")  # fmt: skip
    for fault in NAMES:
        yield Row(f"{fault}: named", 100 * results[f"{fault} named"] / results[fault], "%")
    if SHARED.exists():
        false = [name for name, kinds in clean_findings() if kinds]
        yield Row("SO-101 and AM-D02 files called stuck or appended", len(false), "", "== 0",
                  ", ".join(false))  # fmt: skip
