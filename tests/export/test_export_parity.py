"""Exports give the model's own torque in Pinocchio, MuJoCo and compiled C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from taufit.core.errors import InfeasibleError
from taufit.export import to_c, to_mjcf, to_urdf
from taufit.model.torque_model import TorqueModel
from taufit.robot import Drives, from_dh
from taufit.robot.inertia import from_pseudo_inertia
from taufit.terms import start_shape
from taufit.terms.friction import FRICTION_MODELS, Linear, Presliding, TemperatureDependent

CC = ("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC")
ROWS = np.array(
    [
        [0.0, 0.2, 0.05, np.pi / 2],
        [0.1, 0.0, 0.4, 0.0],
        [0.0, 0.03, 0.3, -np.pi / 2],
        [0.2, 0.1, 0.0, 0.7],
    ]
)


def _arm(convention: str, prismatic: tuple[bool, ...], seed: int = 0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(4, 4, 4)) * np.array([0.2, 0.2, 0.2, 1.5])[:, None]
    bodies = from_pseudo_inertia(roots @ np.swapaxes(roots, -1, -2))
    return from_dh(
        ROWS, convention=convention, name="test arm", prismatic=prismatic, parameters=bodies
    ).with_mounting("20,-30,10")


ARMS = {
    "standard": _arm("standard", (False,) * 4),
    "modified": _arm("modified", (False,) * 4),
    "sliding": _arm("standard", (False, True, False, True)),
}


def _model(robot, friction=None, seed: int = 1, rotor: bool = True, offset: bool = True):
    model = TorqueModel(robot, friction, rotor_inertia=rotor, offset=offset)
    if friction is not None and friction.shapes:
        shape = np.tile(start_shape(friction), (robot.joints, 1))
        model = replace(model, shape=shape)
    rng = np.random.default_rng(seed)
    rest = rng.uniform(0.1, 2.0, size=len(model.names) - 10 * robot.joints)
    return model.with_values(np.concatenate([robot.parameters, rest]))


def _states(joints: int, count: int = 1000, seed: int = 2):
    return np.random.default_rng(seed).normal(size=(3, count, joints))


def _close(got, want):
    # 1e-9 of the largest torque: the must of the exports; 1e-12 is what they reach.
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("arm", ARMS)
def test_urdf_gives_the_same_torque_in_pinocchio(arm):
    pin = pytest.importorskip("pinocchio")
    model = _model(ARMS[arm], Linear())
    text, lost = to_urdf(model)
    assert any("rotor" in line for line in lost) and any("offset" in line for line in lost)
    reloaded = pin.buildModelFromXML(text)
    reloaded.gravity.linear = model.robot.gravity
    reloaded.armature = np.zeros(reloaded.nv)
    data = reloaded.createData()
    q, v, a = _states(4)
    got = np.array([_pin_torque(pin, reloaded, data, *row) for row in zip(q, v, a, strict=True)])
    n = model.robot.joints
    want = TorqueModel(model.robot, None, rotor_inertia=False, offset=False).with_values(
        model.values[: 10 * n]
    )
    _close(got, want.torque(q, v, a))


def _pin_torque(pin, model, data, q, v, a):
    full = []
    for at, joint in enumerate(model.joints[1:]):
        assert joint.nq == 1
        full += [q[at]]
    return pin.rnea(model, data, np.array(full), v, a)


@pytest.mark.parametrize("arm", ARMS)
def test_mjcf_gives_the_same_torque_in_mujoco(arm):
    import mujoco

    model = _model(ARMS[arm], None, offset=False)
    text, lost = to_mjcf(model)
    assert lost == ()
    reloaded = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reloaded)
    q, v, a = _states(4)
    got = []
    for row in zip(q, v, a, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = row
        mujoco.mj_inverse(reloaded, data)
        got.append(data.qfrc_inverse.copy())
    _close(np.array(got), model.torque(q, v, a))


def test_mjcf_holds_friction_drag_rotors_and_offsets_in_mujoco():
    import mujoco

    model = _model(ARMS["standard"], FRICTION_MODELS["polynomial"]())
    text, lost = to_mjcf(model)
    assert lost == ()
    reloaded = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reloaded)
    q, v, a = _states(4, 300)
    # Dry friction is a soft constraint near standstill: nearer than this it is not compared.
    v = np.where(np.abs(v) < 0.05, 0.05, v)
    got = []
    for row in zip(q, v, a, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = row
        mujoco.mj_inverse(reloaded, data)
        # What the actuators' control must be: its gain is 1, its bias the offset.
        got.append(data.qfrc_inverse - reloaded.actuator_biasprm[:, 0])
    _close(np.array(got), model.torque(q, v, a))


def test_mjcf_names_what_it_does_not_hold():
    text, lost = to_mjcf(_model(ARMS["standard"], FRICTION_MODELS["stribeck"]()))
    assert "frictionloss" in text and "damping" in text
    assert any("static" in line for line in lost)


def test_urdf_friction_is_that_of_the_model_in_pinocchio():
    pin = pytest.importorskip("pinocchio")
    model = _model(ARMS["standard"], Linear(), rotor=False, offset=False)
    text, lost = to_urdf(model.with_robot(model.robot.with_mounting("ground")))
    assert lost == ()
    reloaded = pin.buildModelFromXML(text)
    coulomb, viscous = model.layout.split(model.values).drive.T
    names = [term.name for term in Linear().parameters]
    if names[0] == "viscous":
        coulomb, viscous = viscous, coulomb
    np.testing.assert_allclose(reloaded.friction, coulomb, rtol=1e-12)
    np.testing.assert_allclose(reloaded.damping, viscous, rtol=1e-12)


def test_joints_without_limits_stay_revolute():
    text, _ = to_urdf(_model(ARMS["standard"], Linear()))
    assert "continuous" not in text and text.count('type="revolute"') == 4


def _compiled(tmp_path, model):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    source, header, lost = to_c(model)
    (tmp_path / "test_arm.h").write_text(header)
    (tmp_path / "test_arm.c").write_text(source)
    library = tmp_path / "libarm.so"
    subprocess.run(
        [*CC, "-o", "libarm.so", "test_arm.c", "-lm"],
        cwd=tmp_path,
        check=True,
    )
    return ctypes.CDLL(str(library)), lost


def _call(function, *arrays):
    pointer = ctypes.POINTER(ctypes.c_double)
    function(*(None if x is None else x.ctypes.data_as(pointer) for x in arrays))


@pytest.mark.parametrize("name", FRICTION_MODELS)
def test_compiled_c_gives_the_whole_torque(tmp_path, name):
    model = _model(ARMS["standard"], FRICTION_MODELS[name]())
    library, lost = _compiled(tmp_path, model)
    assert lost == ()
    q, v, a = _states(4, 200)
    temperature = np.full((200, 4), 31.0)
    want = model.torque(q, v, a, temperature=temperature)
    got = np.empty_like(want)
    for i in range(len(q)):
        _call(library.test_arm_torque, q[i], v[i], a[i], temperature[i], got[i])
    _close(got, want)


class _Memory(ctypes.Structure):
    _fields_: ClassVar = [("memory", ctypes.c_double * 6 * 4), ("started", ctypes.c_int)]


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize(
    "friction",
    [
        Presliding(),
        TemperatureDependent(Presliding()),
        TemperatureDependent(Presliding(load=False), law="exponential"),
    ],
    ids=["presliding", "linear law", "exponential law"],
)
def test_compiled_c_remembers_the_path(tmp_path, friction, coupled):
    robot = ARMS["standard"]
    if coupled:
        coupling = np.eye(4)
        coupling[3, 2], coupling[1, 2] = 1.0, -0.5
        robot = replace(robot, drives=replace(Drives.joint_torque(4), coupling=coupling))
    model = _model(robot, friction)
    library, _ = _compiled(tmp_path, model)
    rng = np.random.default_rng(5)
    q, a = rng.normal(size=(2, 300, 4))
    # Reversals every few samples, samples at rest, and displacements over all the widths.
    v = 10.0 ** rng.uniform(-3, 0, (300, 4)) * np.sign(np.sin(np.arange(300)[:, None] / 7.0))
    v[100:110] = 0.0
    temperature = rng.uniform(20.0, 50.0, (300, 4))
    want = model.torque(q, v, a, temperature=temperature, step=0.004)
    got, memory = np.empty_like(want), _Memory()
    pointer = ctypes.POINTER(ctypes.c_double)
    for i in range(len(q)):
        arrays = [x[i].ctypes.data_as(pointer) for x in (q, v, a, temperature)]
        tau = got[i].ctypes.data_as(pointer)
        library.test_arm_step(ctypes.byref(memory), *arrays, ctypes.c_double(0.004), tau)

    _close(got, want)
    assert np.abs(want - model.torque(q, v, a, temperature=temperature)).max() > 0.1


@pytest.mark.parametrize("arm", ARMS)
def test_compiled_c_regressor_and_gravity(tmp_path, arm):
    from taufit.dynamics import gravity_torque, regressor

    model = _model(ARMS[arm], Linear())
    library, _ = _compiled(tmp_path, model)
    q, v, a = _states(4)
    want = regressor(model.robot, q, v, a)
    got, hold = np.empty_like(want), np.empty_like(q)
    for i in range(len(q)):
        _call(library.test_arm_regressor, q[i], v[i], a[i], got[i])
        _call(library.test_arm_gravity, q[i], hold[i])
    _close(got, want)
    _close(hold, gravity_torque(model.robot, q))


@pytest.mark.parametrize("name", ["linear", "linear_load"])
def test_compiled_c_handles_coupled_motors(tmp_path, name):
    coupling = np.eye(4)
    coupling[3, 2] = 1.0
    robot = ARMS["standard"]
    drives = Drives.joint_torque(4)
    robot = replace(robot, drives=replace(drives, coupling=coupling))
    model = _model(robot, FRICTION_MODELS[name]())
    library, _ = _compiled(tmp_path, model)
    q, v, a = _states(4, 100)
    got = np.empty_like(q)
    for i in range(len(q)):
        _call(library.test_arm_torque, q[i], v[i], a[i], None, got[i])
    _close(got, model.torque(q, v, a))


def test_an_impossible_model_is_refused():
    robot = ARMS["standard"]
    bad = robot.parameters.copy()
    bad[10] = -1.0
    model = _model(robot.with_parameters(bad), Linear())
    with pytest.raises(InfeasibleError, match="link_2"):
        to_urdf(model)
    with pytest.raises(InfeasibleError, match="link_2"):
        to_mjcf(model)
