"""Motion files edited by accident or with intent, and a judge that shares no proof with us.

An edit is unsafe where dense samples of its motion leave the arm's limits, where it is not at rest
at an end, or where flat bodies in MuJoCo overlap; it is safe where all of that holds with room, or
where the edit changes no pose. What lies between is not counted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flat_bodies import FlatArm
from taufit.clearance import ClearanceCheck, clearance_block, read_motion_file
from taufit.clearance.cell import Cell
from taufit.clearance.playback import PROGRAM, STREAM, TRAJECTORY
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.excitation import (
    SearchEffort,
    SplineBasis,
    default_limits,
    mounting_plane,
    plan,
    scene_for,
)
from taufit.excitation.motion_file import motion_from_dict, motion_to_dict
from taufit.robot import JointLimits, Robot, read_robot

WAYS = (PROGRAM, STREAM, TRAJECTORY)
_DENSE_S, _MOST = 2.5e-4, 400_000
Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edited file.

    Attributes:
        name: What was done.
        data: Of the file.
        verdict: "refuse" or "accept" where the edit itself decides; "" where the judge does.
    """

    name: str
    data: Data
    verdict: str = ""


def designed(arm: str, kind: str = "identification", *, splines: int = 0, seed: int = 0) -> Data:
    """A motion file as `design` writes it."""
    robot = read_robot(arm)
    basis = SplineBasis(splines, 10.0) if splines else None
    joints = (robot.joints,) if kind == "friction-test" else ()
    found = plan(kind, robot, basis=basis, effort=SearchEffort(0.4, seed=seed), joints=joints)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    limits = found.limits
    if found.design is None:
        limits = JointLimits(
            limits.lower,
            limits.upper,
            limits.velocity,
            limits.acceleration,
            np.full(robot.joints, np.inf),
        )
    data = motion_to_dict(found.motion)
    data["notes"] = {"robot": arm, "mounting": list(robot.mounting), "feasible": True}
    data["clearance"] = clearance_block(found.motion, robot, Cell.of(scene, limits))
    return json.loads(json.dumps(data))


def certified_anew(data: Data, robot: Robot) -> Data:
    """The file with a certificate that fits it, as somebody who wants it played would make it."""
    out = copy.deepcopy(data)
    try:
        motion = motion_from_dict(out)
        cell = Cell.from_field(Field(out["clearance"]["cell"], "edit"), motion.joints)
        out["clearance"] = clearance_block(motion, robot, cell)
    except (TaufitError, KeyError, ValueError, OverflowError, FloatingPointError):
        return out
    return out


def edits(arm: str, fourier: Data, spline: Data, strokes: Data, seed: int = 0) -> Iterator[Edit]:
    """All edits of three designs of one arm."""
    rng = np.random.default_rng(seed)
    for name, data, verdict in (
        *_series(fourier, rng),
        *_tables(spline, strokes, rng),
        *_statements(fourier),
        *_harmless(fourier, spline, strokes, arm),
    ):
        yield Edit(f"{arm}: {name}", data, verdict)


_Named = Iterator[tuple[str, Data, str]]


def _with(base: Data, **values: Any) -> Data:
    """A copy with other values."""
    return {**copy.deepcopy(base), **values}


def _in_cell(base: Data, **values: Any) -> Data:
    """A copy with another cell."""
    out = copy.deepcopy(base)
    out["clearance"]["cell"].update(values)
    return out


def _scaled(base: Data, factor: float) -> Data:
    """A copy of a series with other amplitudes."""
    parts = {key: (factor * np.array(base[key])).tolist() for key in ("sine", "cosine")}
    return _with(base, **parts)


def _series(base: Data, rng: np.random.Generator) -> _Named:
    """Coefficients, frequencies and lengths of a Fourier series."""
    offset = np.array(base["offset"])
    joints = len(offset)
    for k in range(8):
        yield (
            f"offset moved {k}",
            _with(base, offset=(offset + rng.normal(0, 0.8, joints)).tolist()),
            "",
        )
    for factor in (1.02, 1.2, 3.0, 20.0, 1000.0):
        yield f"amplitudes times {factor}", _scaled(base, factor), ""
    for periods in (0.724, 0.5, 0.1, 1.5, 1e-6):
        yield f"{periods} periods", _with(base, periods=periods), ""
    for hz in (0.11, 0.3, 5.0, 199.9, 500.0, 1e6):
        yield f"{hz} Hz", _with(base, frequency_hz=hz), ""
    yield "1e-9 Hz", _with(base, frequency_hz=1e-9), "refuse"
    yield "other form", _with(base, form="amplitude"), ""
    yield "degrees", _with(base, offset=np.degrees(offset).tolist()), ""
    sine = np.array(base["sine"])
    sine[1, 0] += 0.5
    yield "one coefficient", _with(base, sine=sine.tolist()), ""
    nothing = np.zeros_like(sine).tolist()
    yield "sines alone", _with(base, cosine=nothing), ""
    yield "cosines alone", _with(base, sine=nothing), ""
    for hz in (50.0, 125.0, 200.0, 199.9, 500.0, 1000.0, 1e3 / 0.6):
        hidden = {
            "sine": [[0.4, -0.2]] * joints,
            "cosine": [[0.0, 0.0]] * joints,
            "frequency_hz": hz,
            "form": "amplitude",
            "periods": float(np.floor(4 * hz)),
        }
        yield f"hidden at {hz:.1f} Hz", _with(base, **hidden), ""
    yield "an offset as text", _with(base, offset=["1.0", *base["offset"][1:]]), ""
    for bad in (float("nan"), float("inf"), 1e308, None, [1.0]):
        yield f"an offset of {bad!r}", _with(base, offset=[bad, *base["offset"][1:]]), "refuse"


def _tables(spline: Data, strokes: Data, rng: np.random.Generator) -> _Named:
    """Splines, tables of samples and strokes."""
    control = np.array(spline["control"])
    joints = control.shape[1]
    for k in range(4):
        bent = control.copy()
        bent[len(bent) // 2] += rng.normal(0, 1.0, joints)
        yield f"a control point moved {k}", _with(spline, control=bent.tolist()), ""
    knots = np.array(spline["knots"])
    yield "knots three times as fast", _with(spline, knots=(knots / 3).tolist()), ""
    loose = [*knots[:2].tolist(), 0.1, *knots[3:].tolist()]
    yield "ends not repeated", _with(spline, knots=loose), "refuse"
    hurried = control.copy()
    hurried[1] += 0.2
    yield "a spline that starts fast", _with(spline, control=hurried.tolist()), ""
    start = motion_from_dict(spline).at(np.zeros(1))[0][0]

    def table(time: np.ndarray, position: np.ndarray) -> Data:
        rest = {key: copy.deepcopy(spline[key]) for key in ("notes", "clearance")}
        return {"kind": "sampled", "time": time.tolist(), "position": position.tolist(), **rest}

    grid = np.arange(0.0, 1.0005, 0.001)
    zigzag = np.tile(start, (len(grid), 1))
    zigzag[7:-7:2] += 0.05
    yield "a table that wriggles between the steps", table(grid, zigzag), ""
    late = np.sort(np.r_[np.arange(0.0, 1.001, 0.01), 0.5001, 0.5002])
    spike = np.tile(start, (len(late), 1))
    spike[np.isclose(late, 0.5001)] += 0.1
    yield "a table with two rows in 0.2 ms", table(late, spike), ""
    even = np.linspace(0.0, 1.0, 101)
    yield "a table at full speed", table(even, start + even[:, None] * np.ones(joints)), ""
    for key, factor in (("speed", 10.0), ("ramp", 0.02), ("displacement", 8.0)):
        values = (factor * np.array(strokes[key])).tolist()
        yield f"strokes, {key} times {factor}", _with(strokes, **{key: values}), ""
    other = [max(1, joint - 4) for joint in strokes["joint"]]
    yield "strokes of another joint", _with(strokes, joint=other), ""
    pose = (np.array(strokes["pose"]) + rng.normal(0, 1.0, joints)).tolist()
    yield "strokes about another pose", _with(strokes, pose=pose), ""


def _statements(base: Data) -> _Named:
    """What a file says about itself."""
    notes = {**base["notes"], "feasible": False}
    yield "noted as not feasible", _with(base, notes=notes), "refuse"
    yield "free space", _in_cell(base, free_space=True), "refuse"
    yield "no clearance", _in_cell(base, clearance=0.0), "refuse"
    yield "thin bodies", _in_cell(base, radius=0.01), "refuse"
    limits = base["clearance"]["cell"]["limits"]
    slow = {**limits, "velocity": [0.5 * x for x in limits["velocity"]]}
    yield "limits below the motion", _in_cell(base, limits=slow), "refuse"
    high = {**limits, "velocity": [1e6] * len(slow["velocity"])}
    high["acceleration"] = high["velocity"]
    yield "limits raised, motion too", _scaled(_in_cell(base, limits=high), 4.0), ""
    wall = [{"name": "wall", "normal": [1.0, 0.0, 0.0], "offset": 0.0}]
    yield "a wall through the arm", _in_cell(base, planes=wall), "refuse"
    yield "tip speed of 0.05 m/s", _in_cell(base, tip_speed=0.05), "refuse"
    yield "jerk of 0.1 rad/s^3", _in_cell(base, jerk=0.1), "refuse"


def _harmless(base: Data, spline: Data, strokes: Data, arm: str) -> _Named:
    """Edits that change no pose, or only how fast it is passed."""
    yield "unchanged", copy.deepcopy(base), "accept"
    notes = {**base["notes"], "criterion": "d", "remark": "x"}
    yield "other notes", _with(base, notes=notes), "accept"
    yield "two periods", _with(base, periods=2.0), "accept"
    slow = _scaled(base, 0.5) if base["form"] == "velocity" else base
    half = 0.5 * base["frequency_hz"]
    yield "half the pace", _with(slow, frequency_hz=half), "accept"
    backwards = (-np.array(base["sine"])).tolist()
    yield "backwards in time", _with(base, sine=backwards), "accept"
    knots = (2.0 * np.array(spline["knots"])).tolist()
    yield "knots at half the pace", _with(spline, knots=knots), "accept"
    turned = [float(base["offset"][0]) + _turn(base, arm), *base["offset"][1:]]
    yield "turned about the base", _with(base, offset=turned), "accept"
    speed = (0.5 * np.array(strokes["speed"])).tolist()
    yield "slower strokes", _with(strokes, speed=speed), "accept"


def _turn(fourier: Data, arm: str) -> float:
    """A turn of the first joint that its limits allow."""
    limits = default_limits(read_robot(arm))
    q = motion_from_dict(fourier).at(np.linspace(0, 10, 2000))[0][:, 0]
    up, down = limits.upper[0] - q.max(), q.min() - limits.lower[0]
    return float(np.clip(0.3, -0.5 * down, 0.5 * up))


def judged(edit: Edit, robot: Robot, flat: FlatArm) -> str:
    """ "refuse" for an unsafe motion, "accept" for a safe one, "" in between."""
    if edit.verdict:
        return edit.verdict
    try:
        motion = motion_from_dict(edit.data)
    except TaufitError:
        return "refuse"
    whole = max(motion.duration, getattr(motion, "period", 0.0))
    seconds = min(whole, 60.0)
    time = np.linspace(0.0, seconds, min(_MOST, max(1000, int(seconds / _DENSE_S))))
    limits = default_limits(robot)
    longer = motion
    if hasattr(motion, "periods"):
        from dataclasses import replace

        longer = replace(motion, periods=max(1.0, motion.periods))
    with np.errstate(all="ignore"):
        q, v, a = longer.at(time)
        ends = motion.at(np.array([0.0, motion.duration]))
    worst = max(
        float(np.max(np.maximum(q - limits.upper, limits.lower - q))) + 1.0,
        float(np.max(np.abs(v) / limits.velocity)),
        float(np.max(np.abs(a) / limits.acceleration)) / 1.02,
        1.0 + 100 * float(np.max(np.abs(ends[1]) / limits.velocity)) - 0.2,
        1.0 + 10 * float(np.max(np.abs(ends[2]) / limits.acceleration)) - 0.2,
    )
    if not worst <= 1.002:
        return "refuse"
    least = float(flat.gaps(q[:: max(1, len(q) // 800)]).min())
    if least < 0.0:
        return "refuse"
    return "accept" if worst < 0.99 and least > 0.15 else ""


def outcome(data: Data, robot: Robot, way: str, folder: Path) -> list[str]:
    """Why a file is refused, played one way; empty where it is cleared."""
    path = folder / "motion.json"
    path.write_text(json.dumps(data))
    try:
        file = read_motion_file(path)
        arm = robot if file.mounting is None else robot.with_mounting(file.mounting)
        return ClearanceCheck(file, arm, mode=way).clear(None).refusals()
    except TaufitError as error:
        return [str(error)]


def faults(
    edit: Edit, robot: Robot, flat: FlatArm, folder: Path, *, thorough: bool = True
) -> tuple[str, list[str], int]:
    """The judge's verdict, what was decided otherwise, and how many decisions were compared.

    Where not `thorough`, certificates kept and removed are tried in one way of playing.
    """
    verdict = judged(edit, robot, flat)
    anew = certified_anew(edit.data, robot)
    bare = {key: value for key, value in edit.data.items() if key != "clearance"}
    wrong, count = [], 0
    for way in WAYS:
        variants = {"made anew": anew}
        if verdict == "refuse" and (thorough or way == PROGRAM):
            variants["as it was"] = edit.data
            touches_file = edit.verdict == "refuse" and "clearance" in edit.data
            if not touches_file:
                variants["removed"] = bare
        for name, data in variants.items():
            reasons = outcome(data, robot, way, folder)
            count += verdict != ""
            if verdict == "refuse" and not reasons:
                wrong.append(f"{edit.name} ({way}, certificate {name}): accepted")
            if verdict == "accept" and reasons:
                wrong.append(f"{edit.name} ({way}): refused, {reasons[0]}")
    return verdict, wrong, count
