"""Motion files edited by hand, by accident or with intent, and a judge that shares no proof with us.

An edit is unsafe where dense samples of its motion leave the arm's limits, where it is not at rest
at an end, or where flat bodies in MuJoCo overlap; it is safe where all of that holds with room, or
where the edit changes no pose. What lies between is not counted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
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
from taufit.excitation import Effort, SplineBasis, default_limits, mounting_plane, plan, scene_for
from taufit.excitation.motion_file import motion_from_dict, motion_to_dict
from taufit.robot import Limits, Robot, read_robot

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
    found = plan(kind, robot, basis=basis, effort=Effort(0.4, seed=seed), joints=joints)
    scene = scene_for(robot, planes=(mounting_plane(robot),), clearance=0.02)
    limits = found.limits
    if found.design is None:
        limits = Limits(
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
    joints = len(fourier["offset"])

    def edit(
        name: str, act: Callable[[Data], object], base: Data = fourier, verdict: str = ""
    ) -> Edit:
        data = copy.deepcopy(base)
        act(data)
        return Edit(f"{arm}: {name}", data, verdict)

    def scaled(factor: float) -> Callable[[Data], object]:
        def act(d: Data) -> None:
            for key in ("sine", "cosine"):
                d[key] = (factor * np.array(d[key])).tolist()

        return act

    def put(**values: Any) -> Callable[[Data], object]:
        return lambda d: d.update(values)

    def cell(**values: Any) -> Callable[[Data], object]:
        return lambda d: d["clearance"]["cell"].update(values)

    for k in range(8):
        moved = (np.array(fourier["offset"]) + rng.normal(0, 0.8, joints)).tolist()
        yield edit(f"offset moved {k}", put(offset=moved))
    for factor in (1.02, 1.2, 3.0, 20.0, 1000.0):
        yield edit(f"amplitudes times {factor}", scaled(factor))
    for periods in (0.724, 0.5, 0.1, 1.5, 1e-6):
        yield edit(f"{periods} periods", put(periods=periods))
    for hz in (0.11, 0.3, 5.0, 199.9, 500.0, 1e6):
        yield edit(f"{hz} Hz", put(frequency_hz=hz))
    yield edit("1e-9 Hz", put(frequency_hz=1e-9), verdict="refuse")
    yield edit("other form", put(form="amplitude"))
    yield edit("degrees", put(offset=np.degrees(fourier["offset"]).tolist()))
    yield edit("one coefficient", lambda d: d["sine"][1].__setitem__(0, d["sine"][1][0] + 0.5))
    nothing = [[0.0] * len(row) for row in fourier["cosine"]]
    yield edit("sines alone", put(cosine=nothing, sine=[[1.5, 0.0]] * joints, form="velocity"))
    yield edit("cosines alone", put(sine=nothing))
    for hz in (50.0, 125.0, 200.0, 199.9, 500.0, 1000.0, 1e3 / 0.6):
        hidden = {
            "sine": [[0.4, -0.2]] * joints,
            "cosine": [[0.0, 0.0]] * joints,
            "frequency_hz": hz,
            "form": "amplitude",
            "periods": float(np.floor(4 * hz)),
        }
        yield edit(f"hidden at {hz:.1f} Hz", put(**hidden))
    yield edit("an offset as text", lambda d: d["offset"].__setitem__(0, "1.0"))
    for bad in (float("nan"), float("inf"), 1e308, None, [1.0]):
        yield edit(f"an offset of {bad!r}", lambda d, x=bad: d["offset"].__setitem__(0, x),
                   verdict="refuse")  # fmt: skip
    # Splines, tables and strokes.
    control = np.array(spline["control"])
    middle = len(control) // 2
    for k in range(4):
        bent = control.copy()
        bent[middle] += rng.normal(0, 1.0, joints)
        yield edit(f"a control point moved {k}", put(control=bent.tolist()), spline)
    quick = (0.3 * np.array(spline["knots"])).tolist()
    yield edit("knots three times as fast", put(knots=quick), spline)
    yield edit("ends not repeated", lambda d: d["knots"].__setitem__(2, 0.1), spline, "refuse")
    hurried = control.copy()
    hurried[1] += 0.2
    yield edit("a spline that starts fast", put(control=hurried.tolist()), spline)
    start = np.array(motion_from_dict(spline).at(np.zeros(1))[0][0])
    grid = np.arange(0.0, 1.0005, 0.001)
    zigzag = np.tile(start, (len(grid), 1))
    zigzag[7:-7:2] += 0.05
    table = {"kind": "sampled", "time": grid.tolist(), "position": zigzag.tolist()}
    rest = {key: spline[key] for key in ("notes", "clearance")}
    yield Edit(f"{arm}: a table that wriggles between the steps", {**table, **copy.deepcopy(rest)})
    late = np.sort(np.r_[np.arange(0.0, 1.001, 0.01), 0.5001, 0.5002])
    spike = np.tile(start, (len(late), 1))
    spike[np.isclose(late, 0.5001)] += 0.1
    table = {"kind": "sampled", "time": late.tolist(), "position": spike.tolist()}
    yield Edit(f"{arm}: a table with two rows in 0.2 ms", {**table, **copy.deepcopy(rest)})
    ramp = start + np.linspace(0.0, 1.0, 101)[:, None] * np.ones(joints)
    table = {"kind": "sampled", "time": np.linspace(0, 1, 101).tolist(), "position": ramp.tolist()}
    yield Edit(f"{arm}: a table that starts at full speed", {**table, **copy.deepcopy(rest)})
    for key, factor in (("speed", 10.0), ("ramp", 0.02), ("displacement", 8.0)):
        values = (factor * np.array(strokes[key])).tolist()
        yield edit(f"strokes, {key} times {factor}", put(**{key: values}), strokes)
    other = [max(1, j - 4) for j in strokes["joint"]]
    yield edit("strokes of another joint", put(joint=other), strokes)
    yield edit("strokes about another pose",
               put(pose=(np.array(strokes["pose"]) + rng.normal(0, 1.0, joints)).tolist()),
               strokes)  # fmt: skip
    # What the file says about itself.
    yield edit("noted as not feasible", lambda d: d["notes"].update(feasible=False),
               verdict="refuse")  # fmt: skip
    yield edit("free space", cell(free_space=True), verdict="refuse")
    yield edit("no clearance", cell(clearance=0.0), verdict="refuse")
    yield edit("thin bodies", cell(radius=0.01), verdict="refuse")
    slow = [0.5 * x for x in fourier["clearance"]["cell"]["limits"]["velocity"]]
    yield edit("limits of the file below the motion",
               lambda d: d["clearance"]["cell"]["limits"].update(velocity=slow),
               verdict="refuse")  # fmt: skip

    def loose(d: Data) -> None:
        for key in ("velocity", "acceleration"):
            d["clearance"]["cell"]["limits"][key] = [1e6] * joints
        scaled(4.0)(d)

    yield edit("limits of the file raised, motion too", loose)
    yield edit("a wall through the arm",
               cell(planes=[{"name": "wall", "normal": [1.0, 0.0, 0.0], "offset": 0.0}]),
               verdict="refuse")  # fmt: skip
    yield edit("tip speed of 0.05 m/s", cell(tip_speed=0.05), verdict="refuse")
    yield edit("jerk of 0.1 rad/s^3", cell(jerk=0.1), verdict="refuse")
    # Edits that change no pose, or only how fast it is passed.
    yield edit("unchanged", lambda d: None, verdict="accept")
    yield edit("other notes", lambda d: d["notes"].update(criterion="d", remark="x"),
               verdict="accept")  # fmt: skip
    yield edit("two periods", put(periods=2.0), verdict="accept")
    yield edit("half the pace", lambda d: (d.update(frequency_hz=0.5 * d["frequency_hz"]),
               scaled(0.5)(d)) if d["form"] == "velocity"
               else d.update(frequency_hz=0.5 * d["frequency_hz"]), verdict="accept")  # fmt: skip
    backwards = (-np.array(fourier["sine"])).tolist()
    yield edit("backwards in time", put(sine=backwards), verdict="accept")
    yield edit("knots at half the pace", put(knots=(2.0 * np.array(spline["knots"])).tolist()),
               spline, "accept")  # fmt: skip
    turned = [float(fourier["offset"][0]) + _turn(fourier, arm), *fourier["offset"][1:]]
    yield edit("turned about the base", put(offset=turned), verdict="accept")
    slower = (0.5 * np.array(strokes["speed"])).tolist()
    yield edit("slower strokes", put(speed=slower), strokes, "accept")


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
    least = float(flat.gaps(q[:: max(1, len(q) // 1500)]).min())
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
        return ClearanceCheck(file, arm, way=way).clear(None).refusals()
    except TaufitError as error:
        return [str(error)]


def faults(edit: Edit, robot: Robot, flat: FlatArm, folder: Path) -> tuple[str, list[str], int]:
    """The judge's verdict, what was decided otherwise, and how many decisions were compared."""
    verdict = judged(edit, robot, flat)
    anew = certified_anew(edit.data, robot)
    bare = {key: value for key, value in edit.data.items() if key != "clearance"}
    wrong, count = [], 0
    for way in WAYS:
        variants = {"made anew": anew}
        if verdict == "refuse":
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
