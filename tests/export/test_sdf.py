"""SDF as libsdformat, Gazebo's own parser, reads it: the same torques in Pinocchio."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import taufit
from taufit.export.to_sdf import sdf_model, to_sdf
from taufit.model.torque_model import TorqueModel
from taufit.terms import TERMS, friction_model
from taufit.terms.friction import Linear


def library() -> list[str]:
    if shutil.which("c++") is None or shutil.which("pkg-config") is None:
        pytest.skip("no C++ compiler or pkg-config on this machine")
    for name in ("sdformat12", "sdformat13", "sdformat14"):
        ran = subprocess.run(
            ["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True, check=False
        )
        if ran.returncode == 0:
            return ran.stdout.split()
    pytest.skip("libsdformat is not installed (Debian: libsdformat-dev)")


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("sdf") / "read_sdf"
    source = Path(__file__).with_name("read_sdf.cpp")
    subprocess.run(["c++", "-std=c++17", str(source), "-o", str(program), *library()], check=True)
    return program


def fitted(name: str, mounting: str = "ground", friction="linear", terms=()):
    robot = taufit.read_robot(name).with_mounting(mounting)
    model = TorqueModel(robot, friction_model(friction), terms=terms)
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = robot.parameters
    return model.with_values(values)


def read_by_others(program: Path, text: str, folder: Path):
    """Pinocchio model, damping, friction and stiffness as libsdformat has them."""
    pin = pytest.importorskip("pinocchio")
    path = folder / "arm.sdf"
    path.write_text(text)
    ran = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    head, *rows = (line.split() for line in ran.stdout.splitlines())
    model, parent, losses = pin.Model(), 0, []
    base = pin.SE3(pin.Quaternion(*map(float, (head[7], *head[4:7]))).matrix(), np.zeros(3))
    model.gravity.linear = base.rotation.T @ np.array([0.0, 0.0, -9.81])
    for name, kind, *words in rows:
        x = np.array(words, float)
        placement = pin.SE3(pin.Quaternion(x[6], *x[3:6]).matrix(), x[:3])
        joint = pin.JointModelPrismaticUnaligned if kind == "1" else pin.JointModelRevoluteUnaligned
        parent = model.addJoint(parent, joint(x[7:10]), placement, name)
        losses.append(x[10:13])
        mass, centre, tensor = x[13], x[14:17], x[21:27]
        full = np.array([[tensor[0], tensor[3], tensor[4]],
                         [tensor[3], tensor[1], tensor[5]],
                         [tensor[4], tensor[5], tensor[2]]])  # fmt: skip
        model.appendBodyToJoint(parent, pin.Inertia(mass, centre, full), pin.SE3.Identity())
    return pin, model, np.array(losses)


@pytest.mark.parametrize(
    ("name", "mounting"), [("ur5e", "ground"), ("panda", "wall"), ("kr5", "ceiling")]
)
def test_gazebos_parser_and_pinocchio_give_the_torques_of_the_model(
    reader, tmp_path, name, mounting
):
    model = fitted(name, mounting)
    text, dropped = to_sdf(model)
    assert any("rotor" in part for part in dropped) and any("offset" in part for part in dropped)
    pin, other, losses = read_by_others(reader, text, tmp_path)
    reduced = sdf_model(model).model
    data, rng = other.createData(), np.random.default_rng(3)
    for _ in range(30):
        q, v, a = rng.normal(size=(3, model.robot.joints))
        torque = pin.rnea(other, data, q, v, a) + losses[:, 0] * v + losses[:, 1] * np.sign(v)
        expected = reduced.torque(q, v, a)
        np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())


def test_another_mass_is_seen(reader, tmp_path):
    model = fitted("ur5e")
    text, _ = to_sdf(model)
    old = [line for line in text.splitlines() if "<mass>" in line][2]
    pin, other, losses = read_by_others(reader, text.replace(old, "<mass>9.9</mass>", 1), tmp_path)
    q, v, a = np.random.default_rng(1).normal(size=(3, 6))
    torque = pin.rnea(other, other.createData(), q, v, a) + losses[:, 0] * v
    torque += losses[:, 1] * np.sign(v)
    assert np.abs(torque - sdf_model(model).model.torque(q, v, a)).max() > 0.1


def test_springs_are_written(reader, tmp_path):
    model = fitted("ur3", terms=(TERMS["spring"](),))
    text, dropped = to_sdf(model)
    assert not any("spring" in part for part in dropped)
    *_, losses = read_by_others(reader, text, tmp_path)
    np.testing.assert_allclose(losses[:, 2], 0.3)


def test_friction_that_the_format_lacks_is_named():
    model = TorqueModel(taufit.read_robot("ur3"), friction_model("stribeck"))
    values = np.full(len(model.names), 0.3)
    values[model.layout.links] = model.robot.parameters
    _, dropped = to_sdf(model.with_values(values))
    assert any("friction term" in part for part in dropped)
    assert isinstance(sdf_model(model.with_values(values)).model.friction_model, Linear)
