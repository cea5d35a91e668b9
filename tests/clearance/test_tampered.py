"""Edited motion files: the unsafe are refused, the harmless are not, played either way."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest
from benchmarks.accuracy.clearance import clean
from benchmarks.flat_bodies import FlatArm
from benchmarks.tampered_motions import WAYS, edits, faults, outcome

from taufit.clearance import ClearanceCheck, clearance_block, read_motion_file
from taufit.clearance.cell import Cell
from taufit.clearance.digest import canonical, digest
from taufit.clearance.playback import PROGRAM, playback_parts
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.excitation.motion_file import motion_from_dict
from taufit.robot import read_robot

ROBOT = read_robot("ur5e")


def test_unsafe_edits_are_refused_and_harmless_ones_are_not(fourier, spline, strokes, tmp_path):
    flat = FlatArm("ur5e")
    verdicts, wrong = [], []
    # Those of all arms, with all their draws: benchmarks/accuracy/clearance.py.
    for edit in edits("ur5e", fourier, spline, strokes, seed=1):
        if re.search(r" [2-9]$|strokes of another", edit.name):
            continue
        verdict, mistakes, _ = faults(edit, ROBOT, flat, tmp_path, thorough=False)
        verdicts.append(verdict)
        wrong += mistakes
    assert not wrong
    assert verdicts.count("refuse") >= 45 and verdicts.count("accept") >= 8


def test_the_judge_itself_sees_a_touch(fourier):
    flat = FlatArm("ur5e")
    folded = np.array([0.0, -1.5, 2.9, 0.0, 0.0, 0.0])
    assert flat.gaps(folded)[0] < 0.0 < flat.gaps(motion_from_dict(fourier).at(np.zeros(1))[0])[0]


def test_clean_designs_are_not_refused():
    found = list(clean(("ur5e",), 0.0, stride=3))
    assert len(found) >= 4
    assert [name for name, reasons in found if reasons] == []


@pytest.mark.parametrize(
    ("act", "part"),
    [
        (lambda d: d["offset"].__setitem__(0, np.nextafter(d["offset"][0], 9.0)), "motion itself"),
        (lambda d: d["notes"].update(mounting=[0.1, 0.0, 0.0]), "mounting"),
        (lambda d: d["clearance"]["cell"].update(clearance=0.019), "cell"),
        (lambda d: d["clearance"]["cell"]["limits"]["lower"].__setitem__(0, -6.2), "joint limits"),
        (lambda d: d["clearance"]["home"].__setitem__(0, 0.123), "certificate"),
        (lambda d: d["clearance"]["digests"].update(motion="0"), "digests were edited"),
        (lambda d: d["clearance"].update(schema=99), "another version"),
        (lambda d: d["clearance"].pop("cell"), "states no cell"),
    ],
)
def test_a_change_after_the_design_is_named_and_can_be_accepted(fourier, tmp_path, act, part):
    data = copy.deepcopy(fourier)
    act(data)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data, indent=7))
    file = read_motion_file(path)
    arm = ROBOT.with_mounting(file.mounting)
    found = ClearanceCheck(file, arm, mode=PROGRAM).clear(None)
    assert found.reasons == () and len(found.uncertified) == 1 and part in found.uncertified[0]
    assert not found.is_cleared() and found.is_cleared(accept_uncertified=True)


def test_a_file_without_certificate_is_certified_anew_and_says_so(fourier, tmp_path):
    data = {key: value for key, value in fourier.items() if key != "clearance"}
    (tmp_path / "m.json").write_text(json.dumps(data))
    found = ClearanceCheck(read_motion_file(tmp_path / "m.json"), ROBOT, mode=PROGRAM).clear(None)
    assert found.is_cleared() and any("certified anew" in note for note in found.notes)
    assert any("bare flange" in note for note in found.notes)


def test_the_same_file_written_otherwise_has_the_same_digest(fourier, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(fourier, sort_keys=True, indent=3))
    for way in WAYS:
        assert outcome(fourier, ROBOT, way, tmp_path) == []
    again = read_motion_file(tmp_path / "motion.json")
    block = clearance_block(again.motion, ROBOT, again.cell)
    assert block == fourier["clearance"]
    assert Cell.from_field(Field(block["cell"], "x"), 6).to_dict() == block["cell"]


def test_one_spelling_of_numbers():
    assert canonical({"b": [1, -0.0, np.inf], "a": True}) == '{"a":true,"b":[1.0,0.0,"inf"]}'
    assert digest(1) == digest(1.0) == digest(np.float64(1.0)) != digest(1.0 + 1e-15)
    with pytest.raises(ValueError, match="NaN"):
        canonical(float("nan"))


def test_tables_take_finer_knots_where_coarse_ones_bend_too_much(spline):
    motion = motion_from_dict(spline)
    robot, names = ROBOT, ROBOT.joint_names
    cell = Cell.from_field(Field(spline["clearance"]["cell"], "x"), 6)
    _, between = playback_parts(motion, cell.limits, names, PROGRAM)
    assert between in (0.1, 0.05, 0.02)
    a = np.abs(motion.at(np.linspace(0, motion.duration, 20_001))[2]).max(0)
    tight = Cell.from_field(Field(spline["clearance"]["cell"], "x"), 6).limits
    object.__setattr__(tight, "acceleration", 1.0005 * a)
    _, finer = playback_parts(motion, tight, names, PROGRAM)
    assert finer < 0.1 and robot.joints == 6


@pytest.mark.parametrize("name", ["tool.xacro", "loose.yaml", "strange.yaml"])
def test_a_motion_cannot_bring_its_own_robot(fourier, tmp_path, name, monkeypatch):
    from taufit.cli.parts.playback import PlayOptions, read_planned_motion
    from taufit.wire.source_address import parse_address

    text = (ROBOT_YAML).replace("velocity: 3.141593", "velocity: 1000000")
    if name == "strange.yaml":
        text = text.replace("a: -0.425", "a: -0.475")
    (tmp_path / name).write_text(text)
    data = copy.deepcopy(fourier)
    data["notes"]["robot"] = str(tmp_path / name)
    for key in ("sine", "cosine"):
        data[key] = (4.0 * np.array(data[key])).tolist()
    data.pop("clearance")
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data))
    says = {"tool.xacro": "a xacro is a program", "strange.yaml": "name it yourself"}
    if name in says:
        with pytest.raises(TaufitError, match=says[name]):
            read_planned_motion(path, parse_address("127.0.0.1"), PlayOptions(), None)
        return
    planned = read_planned_motion(path, parse_address("127.0.0.1"), PlayOptions(), None)
    reasons = planned.check.clear(None).reasons
    assert any("speed of" in text for text in reasons)
    np.testing.assert_allclose(planned.check.limits.velocity, ROBOT.limits.velocity)


def _yaml():
    from importlib.resources import files

    return (files("taufit.robot") / "bundled" / "ur5e.yaml").read_text("utf-8")


ROBOT_YAML = _yaml()
