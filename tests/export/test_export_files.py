"""`taufit export` writes files other tools read, and a URDF keeps what it was."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from taufit.export import EXPORTS, to_mjcf, to_urdf
from taufit.model.model_file import read_model, write_model
from taufit.model.torque_model import TorqueModel
from taufit.robot import read_robot
from taufit.terms.friction import Linear

URDF = """<?xml version="1.0"?>
<robot name="two">
  <!-- kept -->
  <link name="base"/>
  <link name="upper">
    <visual><geometry><mesh filename="package://nowhere/upper.stl"/></geometry></visual>
    <inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="lower">
    <inertial><origin xyz="0.1 0 0" rpy="0 0 0.3"/><mass value="1"/>
      <inertia ixx="0.01" ixy="0.001" ixz="0" iyy="0.012" iyz="0" izz="0.01"/></inertial>
  </link>
  <link name="tool">
    <inertial><origin xyz="0 0 0.05" rpy="0 0 0"/><mass value="0.5"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/></inertial>
  </link>
  <joint name="first" type="revolute"><origin xyz="0 0 0.2" rpy="0 0 0"/><parent link="base"/>
    <child link="upper"/><axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="50" velocity="2"/>
  </joint>
  <joint name="second" type="revolute"><origin xyz="0 0 0.3" rpy="1.5707963 0 0"/>
    <parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="2"/></joint>
  <joint name="flange" type="fixed"><origin xyz="0.2 0 0" rpy="0 0.4 0"/><parent link="lower"/>
    <child link="tool"/></joint>
</robot>
"""


def _fitted(robot):
    model = TorqueModel(robot, Linear())
    rest = np.full(len(model.names) - 10 * robot.joints, 0.5)
    return model.with_values(np.r_[robot.parameters, rest])


@pytest.fixture
def from_urdf(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(URDF)
    return _fitted(read_robot(path))


def test_a_urdf_keeps_everything_but_its_inertials(from_urdf, tmp_path):
    text, _ = to_urdf(from_urdf)
    root = ET.fromstring(text)
    assert "package://nowhere/upper.stl" in text and "kept" in text
    assert root.find("link[@name='tool']/inertial") is None
    pin = pytest.importorskip("pinocchio")
    before, after = pin.buildModelFromXML(URDF), pin.buildModelFromXML(text)
    rng = np.random.default_rng(0)
    for q, v, a in rng.normal(size=(50, 3, 2)):
        want = pin.rnea(before, before.createData(), q, v, a)
        got = pin.rnea(after, after.createData(), q, v, a)
        # The URDF's angle has eight digits and is read as exactly a right angle.
        np.testing.assert_allclose(got, want, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("format", EXPORTS)
def test_the_command_writes_every_format(from_urdf, tmp_path, format):
    write_model(from_urdf, tmp_path / "model.json")
    out = tmp_path / ("arm" + EXPORTS[format].ending)
    done = subprocess.run(
        [sys.executable, "-m", "taufit", "export", str(tmp_path / "model.json")]
        + ["--format", format, "-o", str(out), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    data = json.loads(done.stdout)
    assert out.exists() and any(file.startswith(str(out)) for file in data["files"])
    if format == "urdf":
        assert any("offset" in part for part in data["dropped"])
    if format == "json":
        np.testing.assert_array_equal(read_model(out).values, from_urdf.values)


def test_an_unknown_format_is_refused(from_urdf, tmp_path):
    write_model(from_urdf, tmp_path / "model.json")
    done = subprocess.run(
        [sys.executable, "-m", "taufit", "export", str(tmp_path / "model.json")]
        + ["--format", "step"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "urdf, mjcf, sdf, json, c, fmu, ros2, casadi" in done.stderr


@pytest.mark.parametrize("name", ["ur10", "panda", "kr5"])
def test_bundled_arms_export_to_what_mujoco_accepts(name):
    import mujoco

    from taufit.export import to_mjcf

    mujoco.MjModel.from_xml_string(to_mjcf(_fitted(read_robot(name)))[0])


def test_an_arm_is_moved_to_another_mounting_and_what_is_unknown_is_told(tmp_path):
    write_model(_fitted(read_robot("ur5")), tmp_path / "model.json")
    done = subprocess.run(
        [sys.executable, "-m", "taufit", "export", str(tmp_path / "model.json"), "--json"]
        + ["--format", "json", "--mounting", "wall", "-o", str(tmp_path / "wall.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(done.stdout)["unknown"]) == 2
    moved = read_model(tmp_path / "wall.json").robot
    np.testing.assert_allclose(moved.gravity, [0.0, -9.81, 0.0], atol=1e-12)


def test_names_that_a_format_cannot_hold_get_others_and_the_rest_stays(tmp_path):
    """Empty, repeated, or the format's own: simulators read the file all the same."""
    import mujoco

    pinocchio = pytest.importorskip("pinocchio")
    robot = read_robot("ur3")
    links = ("world", "", "tip", "base_link", "tip", "wrist")
    joints = ("tip_joint", "a", "a", "", " ", "b")
    robot = replace(
        robot,
        urdf=None,
        links=tuple(
            replace(link, name=name, joint=joint)
            for link, name, joint in zip(robot.links, links, joints, strict=True)
        ),
    )
    model = TorqueModel(robot, Linear())
    values = np.full(len(model.names), 0.5)
    values[model.layout.links] = robot.parameters
    fitted = model.with_values(values)
    arm = mujoco.MjModel.from_xml_string(to_mjcf(fitted)[0])
    assert [arm.body(k).name for k in range(1, 7)] == [
        "world_2", "link_2", "tip", "base_link", "tip_2", "wrist"
    ]  # fmt: skip
    loaded = pinocchio.buildModelFromXML(to_urdf(fitted)[0])
    assert list(loaded.names)[1:] == ["tip_joint", "a", "a_2", "joint_4", "joint_5", "b"]
