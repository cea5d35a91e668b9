"""C of trees with bound joints: every function as in Python, no warning, no heap, no bad access."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.dynamics.random_arms import random_arm
from tests.dynamics.random_trees import random_tree
from tests.export.compiled import STRICT, Compiled, compiler, written
from tests.export.test_c_code import MAIN, MATHEMATICS
from tests.export.test_planning_code import differences, gradient, smooth

import taufit
from taufit.dynamics import (
    forward_kinematics,
    gravity_torque,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    regressor,
)
from taufit.export.c.smooth_friction import smooth_torque
from taufit.fitting.fit import automatic_model
from taufit.model.torque_model import TorqueModel
from taufit.terms import friction_model

PSM = Path(__file__).parents[2] / "examples" / "arms" / "psm.yaml"


def _model(seed: int):
    robot = random_tree(seed, 9)
    robot = robot.with_tip(robot.tips[-1].name)
    model = TorqueModel(robot, friction_model("stribeck"))
    values = np.random.default_rng(seed).uniform(0.1, 1.0, len(model.names))
    values[model.layout.links] = robot.parameters
    return model.with_values(values)


def _close(got, expected):
    assert np.abs(got - expected).max() < 1e-9 * max(np.abs(expected).max(), 1.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_functions_are_those_of_python(tmp_path, seed):
    model = _model(seed)
    robot, n = model.robot, model.robot.joints
    compiled = Compiled(tmp_path, model)
    q, v, a = np.random.default_rng(seed).normal(size=(3, 8, n))
    rotors = model.layout.split(model.values).rotors
    zero = np.zeros_like(q)
    expected = {
        "mass_matrix": (mass_matrix(robot, q) + np.diag(rotors), (q,)),
        "gravity": (gravity_torque(robot, q), (q,)),
        "coriolis": (inverse_dynamics(robot, q, v, zero) - gravity_torque(robot, q), (q, v)),
        "inverse_dynamics": (inverse_dynamics(robot, q, v, a) + rotors * a, (q, v, a)),
        "forward_kinematics": (forward_kinematics(robot, q)[:, -1], (q,)),
        "jacobian": (jacobian(robot, q), (q,)),
        "regressor": (regressor(robot, q, v, a), (q, v, a)),
    }
    for name, (values, arguments) in expected.items():
        got = np.empty_like(values)
        for i in range(len(q)):
            compiled.call(name, *(x[i] for x in arguments), got[i])
        _close(got, values)
    back, torque = np.empty_like(q), expected["inverse_dynamics"][0]
    for i in range(len(q)):
        compiled.call("acceleration", q[i], v[i], torque[i], back[i])
    _close(back, a)
    _close(compiled.run(q, v, a, 0.01), model.torque(q, v, a, step=0.01))
    x = np.concatenate([q[0], v[0], a[0]])
    _, slopes = gradient(compiled, q[0], v[0], a[0])
    by_difference = differences(lambda y: smooth(compiled, y), x)
    np.testing.assert_allclose(slopes, by_difference, atol=1e-8 * np.abs(by_difference).max())


def test_sanitizers_find_nothing_and_nothing_is_allocated(tmp_path):
    model = _model(4)
    source = written(tmp_path, model)
    main, program = tmp_path / "main.c", str(tmp_path / "main")
    text = MAIN.replace("10 * ARM_JOINTS", f"10 * {model.robot.bodies}")
    main.write_text(text.replace("arm_", "random_tree_").replace("ARM_", "RANDOM_TREE_"))
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    files = [str(main), str(source), "-lm", "-o", program]
    subprocess.run([compiler(), *STRICT, *flags, *files], check=True)
    subprocess.run([program], check=True, env={"ASAN_OPTIONS": "detect_leaks=0"}, timeout=60)
    shared = ["-Wshadow", "-Wconversion", "-O2", "-c", str(source), "-o", str(tmp_path / "arm.o")]
    subprocess.run([compiler(), *STRICT, *shared], check=True)
    command = [compiler("nm"), "-u", str(tmp_path / "arm.o")]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    outside = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    outside -= {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    assert outside <= MATHEMATICS | {"memset", "memcpy"}


def test_unit_of_a_tree_is_written(tmp_path):
    assert taufit.export_model(_model(5), tmp_path / "arm.fmu") == ()
    assert (tmp_path / "arm.fmu").stat().st_size > 1000


@pytest.mark.parametrize("friction", ["stribeck", "presliding"])
def test_friction_at_places_beside_coupled_motors(tmp_path, friction):
    psm = taufit.read_robot(PSM)
    psm = psm.with_parameters(random_arm(0, len(psm.links)).parameters)
    model = automatic_model(psm, friction=friction, terms=("spring",))
    theta = np.random.default_rng(4).uniform(0.1, 1.0, model.layout.size)
    theta[[model.layout.index(name) for name in model.absent]] = 0.0
    theta[model.layout.links] = psm.parameters
    fitted = model.with_values(theta)
    compiled = Compiled(tmp_path, fitted)
    q, v, a = np.random.default_rng(5).normal(size=(3, 30, 7))
    _close(compiled.run(q, v, a, 0.01), fitted.torque(q, v, a, step=0.01))
    x = np.concatenate([q[0], v[0], a[0]])
    _, slopes = gradient(compiled, q[0], v[0], a[0])
    by_difference = differences(lambda y: smooth(compiled, y), x)
    np.testing.assert_allclose(slopes, by_difference, atol=1e-8 * np.abs(by_difference).max())
    smoothed = smooth_torque(fitted, *(x[:1] for x in (q, v, a)))
    _close(smooth(compiled, x), smoothed[0])
