"""Verdicts on wrong structures: shared recordings with one thing wrong must not pass as if right.

A wrong structure that passes is "worse" if its error on the hold-out exceeds 1.25 times that of the
right structure (plus 0.005), or if its unit is wrong and the drive gains count as known: relative
errors do not show a factor. Structures that are nearly right (a chain cut after some joint, an arm
of the same build, a zero off by 10 deg) may pass with at most twice the error and with a finding.
The limits of the grades are requirements. The checks against the nominal robot were set with both
halves of the arms in view, so the second half is no independent test of them.

python -m benchmarks verdicts
python -m benchmarks.accuracy.verdicts FOLDER [SECONDS] [ARM ...]   what FOLDER does not hold yet
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import Row
from benchmarks.clean_runs import SHARED
from benchmarks.shared_arms import EXAMPLES, RecordedArm, recorded_arm
from taufit.recording import Recording
from taufit.robot import Drives, JointLimits, Robot, read_robot

CHOSEN = ("ur10e", "panda", "kr300", "tx40", "med7")
TESTED = ("lwr4", "ur10_bag", "xmate", "airbot", "kinova", "so101")
# Arms whose right structure must pass; the default fit does not predict the hold-out of the others.
CLEAN = ("ur10e", "panda", "kr300", "tx40", "lwr4", "ur10_bag", "airbot")
_RATIO, _MARGIN, _NEAR_RATIO = 1.25, 0.005, 2.0
# Findings that make a nearly right structure known to the user.
_TELLING = (
    "undescribed_load", "missing_links", "wrong_arm", "zero_offset", "mounting", "unit",
    "worse_than_nominal", "delay", "chain_end", "similar_robot",
)  # fmt: skip
# Robots by number of joints for "another arm", and those that are of one build.
_ROBOTS = {
    6: ("ur10e", "ur3e", "kr5", "tx40", "airbot"),
    7: ("panda", "iiwa7", "lwr4", "xmate", "kinova"),
}
_BUILDS = (
    {"ur10e", "ur3e", "ur10_bag"},
    {"iiwa7", "lwr4", "med7", "xmate", "kinova"},
)
_FILES = {
    "tx40": SHARED / "staubli_tx40" / "tx40_mdh_modified.urdf",
    "airbot": SHARED / "airbot_play" / "airbot_play.urdf",
    "lwr4": EXAMPLES / "arms" / "lwr4.yaml",
    "xmate": SHARED / "xmate7p" / "XM7p.urdf",
    "kinova": SHARED / "kinova_gen3" / "gen3.urdf",
}
Change = Callable[[Recording], Recording]


def structures(name: str, right: RecordedArm) -> Iterator[tuple[str, RecordedArm]]:
    """The right structure ("none") and every wrong one, by name."""
    joints = right.robot.joints
    yield "none", right
    for fault, change in _faults(joints):
        yield fault, right.change(change)
    yield "other_run", _with_torque_of_other_motion(right)
    for count in (1, 2, 3):
        index = list(range(joints - count))
        cut = right.change(lambda run, index=index: _columns(run, index))
        yield f"cut_{count}", replace(cut, robot=first_joints(right.robot, joints - count))
    for other in _ROBOTS.get(joints, ()):
        if other != name.removesuffix("_second"):
            arm = read_robot(_FILES.get(other, other))
            arm = replace(arm, drives=right.robot.drives, mounting=right.robot.mounting)
            yield f"arm_{other}", replace(right.change(_without_robot_name), robot=arm)


def _faults(joints: int) -> Iterator[tuple[str, Change]]:
    """Faults of the recordings by name."""

    def torque(change: Callable[[np.ndarray], np.ndarray]) -> Change:
        return lambda recording: replace(recording, signal=change(recording.signal))

    def zero(angle: float) -> Change:
        offset = np.eye(joints)[1] * np.radians(angle)
        return lambda recording: replace(recording, position=recording.position + offset)

    def exchanged(i: int, k: int) -> list[int]:
        order = list(range(joints))
        order[i], order[k] = k, i
        return order

    yield "signs_all", torque(lambda x: -x)
    for j in (0, 1, 2, joints - 2):
        yield f"sign_{j + 1}", torque(lambda x, j=j: x * (1.0 - 2.0 * np.eye(joints)[j]))
    for i, k in ((0, 1), (1, 2), (joints - 2, joints - 1)):
        order = exchanged(i, k)
        yield f"swapped_torque_{i + 1}{k + 1}", torque(lambda x, order=order: x[:, order])
    yield "swapped_joints_23", lambda recording: _columns(recording, exchanged(1, 2))
    for factor in (1000.0, 0.001, 0.1, 8.85):
        yield f"unit_{factor:g}", torque(lambda x, factor=factor: factor * x)
    rng = np.random.default_rng(1)
    yield "shuffled", torque(lambda x: x[rng.permutation(len(x))])
    yield "rolled", torque(lambda x: np.roll(x, len(x) // 2, axis=0))
    for angle in (90.0, 30.0, -10.0):
        yield f"zero2_{angle:g}", zero(angle)


def _columns(recording: Recording, index: list[int]) -> Recording:
    """Recording with some of its joints, in the given order, without their names."""
    per_joint = {
        key: None if getattr(recording, key) is None else np.asarray(getattr(recording, key))[index]
        for key in ("signed", "gain", "gain_std")
    }
    coupling = recording.coupling
    meta = {k: v for k, v in recording.meta.items() if k != "joint_names"}
    return replace(
        recording.map(lambda x: x[:, index]),
        coupling=None if coupling is None else coupling[np.ix_(index, index)],
        meta=meta,
        **per_joint,
    )


def _without_robot_name(recording: Recording) -> Recording:
    """Recording that does not say of which robot it is."""
    return replace(recording, meta={k: v for k, v in recording.meta.items() if k != "robot"})


def first_joints(robot: Robot, joints: int) -> Robot:
    """The first joints of a robot, as if the rest did not exist."""
    limits = JointLimits(
        *(
            getattr(robot.limits, name)[:joints]
            for name in ("lower", "upper", "velocity", "acceleration", "torque")
        )
    )
    drives = robot.drives
    return replace(
        robot,
        name=f"{robot.name}_cut",
        links=robot.links[:joints],
        limits=limits,
        drives=Drives(
            *(
                getattr(drives, name)[:joints]
                for name in ("gain", "gain_std", "gear_ratio", "torque_constant")
            ),
            drives.side,
            drives.coupling[:joints, :joints],
        ),
        tip=np.eye(4),
        urdf=None,
        joint_zeros=robot.joint_zeros[:joints],
        compensators=tuple(c for c in robot.compensators if c.joint < joints),
    )


def _with_torque_of_other_motion(right: RecordedArm) -> RecordedArm:
    """Torque of the hold-out on the motion of the training, and the reverse."""

    def pair(recording: Recording, other: Recording) -> Recording:
        rows = min(len(recording), len(other))
        short = recording.map(lambda x: x[:rows], recording.time[:rows])
        return replace(short, signal=other.signal[:rows])

    training, holdout = right.training, right.holdout
    return replace(
        right,
        training=[pair(run, holdout[i % len(holdout)]) for i, run in enumerate(training)],
        holdout=[pair(run, training[i % len(training)]) for i, run in enumerate(holdout)],
    )


def judge(arm: RecordedArm) -> dict:
    """Verdict of a fit, with its figure on the hold-out; "REFUSED" with the reason."""
    from taufit.core.errors import TaufitError
    from taufit.workflow import identify

    holdout = {"holdout": arm.holdout}
    try:
        result = identify(arm.robot, arm.training, holdout=holdout, cutoff_hz=arm.cutoff_hz)
    except TaufitError as error:
        kinds = [finding.kind for finding in getattr(error, "findings", ())]
        return {"verdict": "REFUSED", "text": str(error)[:300], "kinds": kinds}
    grades = result.grades
    return {
        "verdict": "FAIL" if grades.overall == "poor" else "PASS",
        "unexplained": grades.unexplained,
        "nrmse": [grade.nrmse for grade in grades.joints],
        "reasons": list(grades.reasons),
        "kinds": [f.kind for f in result.findings],
    }


def work(folder: Path, seconds: float = float("inf"), arms: tuple[str, ...] = ()) -> None:
    """Judge what has no result in the folder yet, until the CPU time is spent."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    for name in arms or (*CHOSEN, *TESTED):
        for fault, arm in structures(name, recorded_arm(name)):
            path = folder / f"{name}-{fault}.json"
            if path.exists():
                continue
            if time.process_time() - started > seconds:
                return
            path.write_text(json.dumps(judge(arm), indent=1) + "\n")


def _is_nearly_right(name: str, fault: str) -> bool:
    """Whether a structure predicts well with its fault: a cut chain, the same build, 10 deg."""
    other = fault.removeprefix("arm_")
    return (
        fault.startswith("cut")
        or fault == "zero2_-10"
        or any(name in build and other in build for build in _BUILDS)
    )


def _has_wrong_unit(fault: str, result: dict) -> bool:
    """Whether the torque is wrong by a factor that is not said to be unknown."""
    return fault.startswith("unit") and "gains_unknown" not in result["kinds"]


def _reference(right: dict, wrong: dict) -> float:
    """Error of the right structure on the joints that the wrong one has."""
    values = np.array(right.get("nrmse", [np.inf]), float)[: len(wrong["nrmse"])]
    return float(np.nanmean(values))


def counts(folder: Path) -> Iterator[Row]:
    """The figures of a folder."""
    for label, arms in (("chosen", CHOSEN), ("tested", TESTED)):
        results = {
            (name, path.stem.split("-", 1)[1]): json.loads(path.read_text())
            for name in arms
            for path in sorted(folder.glob(f"{name}-*.json"))
        }
        right = {name: x for (name, fault), x in results.items() if fault == "none"}
        wrong = {key: x for key, x in results.items() if key[1] != "none" and key[0] in right}
        if not wrong:
            continue
        passed = {key: x for key, x in wrong.items() if x["verdict"] == "PASS"}
        worse, near = list[str](), list[str]()
        for (name, fault), x in passed.items():
            reference = _reference(right[name], x)
            if _is_nearly_right(name, fault):
                told = set(x["kinds"]) & set(_TELLING)
                good = told and x["unexplained"] <= _NEAR_RATIO * reference
                near += [] if good else [f"{name} {fault}"]
            elif x["unexplained"] > _RATIO * reference + _MARGIN or _has_wrong_unit(fault, x):
                worse.append(f"{name} {fault}")
        clean = [name for name in CLEAN if name in right]
        refused = [name for name in clean if right[name]["verdict"] != "PASS"]
        total = f"of {len(wrong)} wrong structures, {len(passed)} pass"
        yield _row(f"{label} arms: wrong structures that pass worse", worse, "<= 1", total)
        yield _row(f"{label} arms: nearly right ones that pass unsaid or worse", near, "<= 0")
        note = f"of {len(clean)}"
        yield _row(f"{label} arms: right structures that do not pass", refused, "<= 0", note)


def _row(name: str, cases: list[str], target: str, note: str = "") -> Row:
    text = ", ".join(cases) or "none"
    return Row(name, len(cases), "", target, f"{note}; {text}" if note else text)


def rows() -> Iterator[Row]:
    """Verdicts on wrong and right structures of shared recordings."""
    if not SHARED.exists():
        return
    with TemporaryDirectory() as folder:
        work(Path(folder))
        yield from counts(Path(folder))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    work(place, float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"), tuple(sys.argv[3:]))
    for row in counts(place):
        print(row.name, row.value, row.note)
