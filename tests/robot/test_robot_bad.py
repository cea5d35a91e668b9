"""Bad descriptions: one clear sentence, exit code 1, never a traceback."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from arm_texts import ur10_urdf

from taufit.cli import main
from taufit.core.errors import MissingExtraError, RobotError
from taufit.robot import bundled_robots, from_urdf, from_yaml, read_robot
from taufit.robot.checks import description_warnings, validate_robot

GOOD = ur10_urdf()
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {y} "{f"&{x};" * 10}">' for x, y in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><robot name="&i;"/>'
)
LOOP = GOOD.replace(
    "</robot>",
    '<joint name="back" type="fixed"><parent link="wrist_3_link"/><child link="base_link"/></joint>'
    "</robot>",
)
CLOSED = """<robot name="ring"><link name="a"/><link name="b"/>
<joint name="ab" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>
<joint name="ba" type="revolute"><parent link="b"/><child link="a"/><axis xyz="0 0 1"/></joint>
</robot>"""

URDF = {
    "two joints above a link": (LOOP, "hangs on two joints"),
    "closed loop": (CLOSED, "loop"),
    "missing axis": (GOOD.replace('<axis xyz="0 0 1"/>', "", 1), "'pan' has no axis"),
    "zero axis": (GOOD.replace('axis xyz="0 0 1"', 'axis xyz="0 0 0"', 1), "zero axis"),
    "axis of two numbers": (GOOD.replace('axis xyz="0 0 1"', 'axis xyz="0 1"', 1), "three numbers"),
    "axis of words": (GOOD.replace('axis xyz="0 0 1"', 'axis xyz="0 0 up"', 1), "must be a number"),
    "mimic joint": (
        GOOD.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/><mimic joint="hand"/>', 1),
        "mimics another joint",
    ),
    "floating joint": (GOOD.replace('type="revolute"', 'type="floating"', 1), "is floating"),
    "planar joint": (GOOD.replace('type="revolute"', 'type="planar"', 1), "is planar"),
    "unknown joint type": (GOOD.replace('type="revolute"', 'type="screw"', 1), "'screw'"),
    "negative mass": (GOOD.replace('value="12.93"', 'value="-12.93"'), "negative mass"),
    "mass not a number": (GOOD.replace('value="12.93"', 'value="nan"'), "finite number"),
    "infinite inertia": (GOOD.replace('ixx="0.4218"', 'ixx="inf"'), "finite number"),
    "limits upside down": (GOOD.replace('lower="-6.28"', 'lower="7"', 1), "lower limit"),
    "unknown parent": (GOOD.replace('<parent link="forearm"/>', '<parent link="x"/>'), "a link of"),
    "no name": (GOOD.replace('joint name="elbow"', "joint"), "has no name"),
    "two links of one name": (GOOD.replace('link name="tool0"', 'link name="world"'), "two links"),
    "entities that expand": (BOMB, "entities"),
    "truncated": (GOOD[: len(GOOD) // 2], "not complete"),
    "empty": ("", "not complete"),
    "not a robot": ("<sdf/>", "<robot>"),
    "no links": ('<robot name="x"/>', "no links"),
    "nothing moves": ('<robot name="x"><link name="a"/></robot>', "nothing can move"),
    "two trees": (
        GOOD.replace('revolute"><parent link="base_link"/>', 'revolute"><parent link="o"/>')
        .replace('<link name="tool0"/>', '<link name="tool0"/><link name="o"/>'),
        "separate trees",
    ),
}  # fmt: skip

TABLE = "convention: standard\njoints:\n  - {d: 0.1, alpha: pi/2}\n  - {a: 0.4}\n"
YAML = {
    "nan in the table": (TABLE.replace("0.4", ".nan"), "a of joint 2 must be a finite number"),
    "text in the table": (TABLE.replace("0.4", "long"), "a of joint 2 must be a number"),
    "list in the table": (TABLE.replace("0.4", "[1]"), "must be a number"),
    "yes in the table": (TABLE.replace("0.4", "yes"), "must be a number"),
    "unknown key": (TABLE.replace("alpha", "alfa"), "did you mean 'alpha'"),
    "unknown convention": (TABLE.replace("standard", "craig"), "use standard, modified"),
    "no joints": ("convention: standard\n", "list `joints`"),
    "joints not a list": ("joints: 3\n", "list `joints`"),
    "not a mapping": ("- 1\n- 2\n", "mapping"),
    "empty": ("", "mapping"),
    "not YAML": ("joints: [1, 2\n", "not valid YAML"),
    "aliases": ("a: &x [1]\njoints: *x\n", "aliases"),
    "deep nesting": ("joints: " + "[" * 500 + "]" * 500, "nested"),
    "negative mass": (TABLE.replace("{a: 0.4}", "{a: 0.4, mass: -1}"), "negative"),
    "limits upside down": (TABLE.replace("{a: 0.4}", "{lower: 1, upper: -1}"), "lower limit"),
    "zero velocity": (TABLE.replace("{a: 0.4}", "{velocity: 0}"), "must be positive"),
    "two joints of one name": (
        "joints:\n  - {name: a}\n  - {name: a}\n",
        "two joints called 'a'",
    ),
    "zero screw": ("convention: screws\njoints:\n- {screw: [0,0,0,0,0,0]}\n", "zero axis"),
    "screw with a pitch": ("convention: screws\njoints:\n- {screw: [0,0,1,0,0,1]}\n", "pitch"),
    "short screw": ("convention: screws\njoints:\n- {screw: [0,0,1]}\n", "6 numbers"),
    "no rotation": (
        "convention: frames\njoints:\n"
        "- {screw: [0,0,1,0,0,0], placement: [[2,0,0,0],[0,1,0,0],[0,0,1,0]]}\n",
        "not a rotation",
    ),
    "coupling that loses a joint": (
        TABLE + "drives: {coupling: [[1, 1], [1, 1]]}\n",
        "cannot be inverted",
    ),
    "side nobody knows": (TABLE + "drives: {side: left}\n", "motor or link"),
    "mounting nobody knows": (TABLE + "mounting: floor\n", "mounting 'floor'"),
    "mounting of two angles": (TABLE + "mounting: [0, 1]\n", "mounting must be ground"),
    "more joints than an arm has": (
        "joints:\n" + "  - {a: 0.1}\n" * 1000,
        "1000 joints are more than a serial arm has",
    ),
    "a joint that is a number": ("joints: [3]\n", "joint 1 must be a mapping"),
    "a kind of joint nobody knows": (TABLE.replace("{a: 0.4}", "{type: ball}"), "'ball'"),
    "called prismatic with a turning screw": (
        "convention: screws\njoints:\n- {type: prismatic, screw: [0,0,1,0,0,0]}\n",
        "called prismatic but its screw is not",
    ),
    "an angle over zero": (TABLE.replace("pi/2", "pi/0"), "divides by zero"),
    "inertia twice": (
        TABLE.replace("{a: 0.4}", "{mass: 1, parameters: [1,0,0,0,1,0,0,1,0,1]}"),
        "either parameters or mass",
    ),
    "drives as a list": (TABLE + "drives: [1, 2]\n", "drives must be a mapping"),
    "tip as a list": (TABLE + "tip: [0, 0, 1]\n", "tip must be a mapping"),
    "tip of two angles": (TABLE + "tip: {rpy: [0, 0]}\n", "rpy of the tip must be 3 angles"),
    "tip turned by two rows": (TABLE + "tip: {rotation: [[1,0,0],[0,1,0]]}\n", "3 rows of 3"),
    "tip that is a mirror": (
        TABLE + "tip: {rotation: [[1,0,0],[0,1,0],[0,0,-1]]}\n",
        "not a rotation matrix",
    ),
    "negative rotor": (TABLE.replace("{a: 0.4}", "{rotor_inertia: -1}"), "negative rotor"),
    "no gain": (TABLE.replace("{a: 0.4}", "{gain: 0}"), "cannot be zero"),
}


@pytest.mark.parametrize("text, says", URDF.values(), ids=list(URDF))
def test_bad_urdf_is_refused_with_a_reason(text, says):
    with pytest.raises(RobotError) as error:
        from_urdf(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text, says", YAML.values(), ids=list(YAML))
def test_bad_yaml_is_refused_with_a_reason(text, says):
    with pytest.raises(RobotError) as error:
        from_yaml(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("bomb.urdf", BOMB, "entities"),
        ("cut.urdf", GOOD[:900], "not complete"),
        ("table.yaml", YAML["text in the table"][0], "a of joint 2"),
        ("binary.urdf", "\udcff\udcfe", "UTF-8"),
        ("robot.step", "x", ".urdf, .xacro, .xml (MJCF) or .yaml"),
    ],
)
def test_the_command_line_says_it_in_one_line_and_exits_with_1(
    name, content, says, tmp_path, capsys
):
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogateescape"))

    with pytest.raises(SystemExit) as stop:
        main(["inspect", str(path)])

    captured = capsys.readouterr()
    assert stop.value.code == 3
    assert captured.out == ""
    assert says in captured.err and name in captured.err
    assert "Traceback" not in captured.err and len(captured.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("placement", np.full((4, 4), np.nan), "a pose that is not finite"),
        ("parameters", np.full(10, np.inf), "an inertial parameter that is not finite"),
    ],
)
def test_an_arm_put_together_in_python_is_checked_like_a_file(field, value, says):
    arm = read_robot("ur10")
    links = (replace(arm.links[0], **{field: value}), *arm.links[1:])
    with pytest.raises(RobotError, match=says):
        validate_robot(replace(arm, links=links))


def test_what_a_description_leaves_open_is_said():
    empty = description_warnings(from_yaml(TABLE))
    assert any("no nominal mass" in text for text in empty)
    assert any("no velocity limit" in text for text in empty)
    arm = read_robot("ur10")
    hollow = arm.links[2].parameters.copy()
    hollow[4:] *= -1.0
    links = (*arm.links[:2], replace(arm.links[2], parameters=hollow), *arm.links[3:])
    (told,) = description_warnings(replace(arm, links=links))
    assert "physically impossible" in told and arm.links[2].name in told
    assert description_warnings(arm) == ()


def test_unknown_names_come_with_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["inspect", "ur11"])

    message = capsys.readouterr().err
    assert stop.value.code == 3
    assert "Did you mean 'ur10'?" in message
    assert all(name in message for name in bundled_robots())


def test_missing_file_is_named():
    with pytest.raises(RobotError, match=r"nowhere\.urdf cannot be read"):
        read_robot("nowhere.urdf")


def test_base_and_tip_belong_to_urdf():
    with pytest.raises(RobotError, match="--base, --tip and --hold"):
        read_robot("ur10", tip="wrist_3_link")


@pytest.mark.parametrize(
    "base, tip, says",
    [
        (None, "hand", "tip link 'hand' is not in this URDF; it has"),
        ("elbow_link", None, "base link 'elbow_link' is not in this URDF"),
        ("forearm", "shoulder", "does not hang below"),
        ("wrist_3_link", "tool0", "no joint moves"),
    ],
)
def test_chains_that_do_not_exist(base, tip, says):
    with pytest.raises(RobotError, match=says):
        from_urdf(GOOD, base=base, tip=tip)


def test_a_gripper_asks_for_the_tip_and_then_rides_along():
    fingers = "".join(
        f'<link name="finger_{side}"><inertial><mass value="0.1"/></inertial></link>'
        f'<joint name="slide_{side}" type="prismatic"><parent link="tool0"/>'
        f'<child link="finger_{side}"/><axis xyz="0 1 0"/>'
        f'<limit lower="0" upper="0.04" effort="10" velocity="1"/>{mimic}</joint>'
        for side, mimic in (("left", ""), ("right", '<mimic joint="slide_left"/>'))
    )
    text = GOOD.replace("</robot>", fingers + "</robot>")

    with pytest.raises(RobotError, match="choose the end with --tip, for example --tip tool0"):
        from_urdf(text)
    with pytest.raises(RobotError, match="mimics another joint"):
        from_urdf(text, tip="finger_right")
    arm = from_urdf(text, tip="tool0")
    assert arm.joints == 6
    assert arm.links[-1].parameters[0] == pytest.approx(0.202 + 0.2)


def test_xacro_without_the_extra_names_it(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(GOOD)

    with pytest.raises(MissingExtraError, match=r"taufit\[xacro\]"):
        read_robot(path)


def long_chain(count: int, kind: str) -> str:
    links = "".join(f'<link name="l{i}"/>' for i in range(count + 1))
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
        '<axis xyz="0 0 1"/></joint>'
        for i in range(count)
    )
    return f'<robot name="snake">{links}{joints}</robot>'


@pytest.mark.unchecked
@pytest.mark.parametrize(
    "text, says",
    [
        (long_chain(20_000, "revolute"), "20000 joints are more"),
        (long_chain(20_000, "fixed"), "no joint moves"),
        ("<robot>" + "<!--" * 500_000, "not complete"),
        ("<robot>" + "<a>" * 100_000, "inside each other"),
        ("<robot>" + "<a>" * 100_000 + "</a>" * 100_000 + "</robot>", "inside each other"),
        ("<robot>" + "<link name='x'/>" * 100_000, "not complete"),
        ("<robot>" + "<a/>" * 600_000 + "</robot>", "more than 500000 elements"),
    ],
    ids=["moving chain", "fixed chain", "comments", "cut depth", "depth", "width", "count"],
)
def test_huge_descriptions_do_not_hang(text, says):
    start = time.process_time()
    with pytest.raises(RobotError, match=says):
        from_urdf(text)
    assert time.process_time() - start < 5.0


def test_a_document_type_inside_a_comment_is_only_a_comment():
    assert from_urdf("<!-- <!DOCTYPE robot> -->" + GOOD).joints == 6
