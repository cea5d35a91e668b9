"""The exported C is the model: every friction model under every temperature law, on the path."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from compiled import STRICT, Compiled, compiler, written

from taufit.contact import ExternalTorque, default_noise
from taufit.dynamics import (
    forward_kinematics,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
)
from taufit.model.intervals import coulomb_level
from taufit.model.torque_model import TorqueModel
from taufit.robot import Drives, from_dh, read_robot
from taufit.terms import Ripple, start_shape, sum_of
from taufit.terms.friction import FRICTION_MODELS, Linear, Presliding, TemperatureDependent
from taufit.terms.friction.temperature_dependent import LAWS

STEP = 0.004
MATHEMATICS = {"sin", "cos", "sincos", "exp", "expm1", "pow", "tanh", "sqrt", "fmax", "fmin"}
ONE = np.array([[2.0, 0.2, 0.1, 0.3, 0.4, 0.01, 0.5, 0.02, 0.03, 0.3]])


def model_of(robot, friction, seed: int = 1):
    """With values for everything, none of them zero."""
    model = TorqueModel(robot, friction)
    rng = np.random.default_rng(seed)
    if friction is not None and friction.shapes:
        start = np.tile(start_shape(friction), (robot.joints, 1))
        model = replace(model, shape=start * rng.uniform(0.8, 1.2, start.shape))
    rest = rng.uniform(0.1, 2.0, len(model.names) - 10 * robot.joints)
    return model.with_values(np.concatenate([robot.parameters, rest]))


def motion(joints: int, count: int = 120, seed: int = 5):
    """Reversals every few samples, samples at rest, displacements over all the widths."""
    rng = np.random.default_rng(seed)
    q, a = rng.normal(size=(2, count, joints))
    v = 10.0 ** rng.uniform(-3, 0, (count, joints)) * np.sign(np.sin(np.arange(count)[:, None] / 7))
    v[count // 2 : count // 2 + 5] = 0.0
    return q, v, a, rng.uniform(20.0, 50.0, (count, joints))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max() + 1e-13)


FRICTIONS = {name: kind() for name, kind in FRICTION_MODELS.items()}
LOWER, UPPER = tuple(np.linspace(-1.0, -0.1, 6)), tuple(np.linspace(0.2, 0.8, 6))
FRICTIONS["ripple_presliding"] = sum_of(Presliding(), Ripple((1.0, 4.0), LOWER, UPPER))
CASES = {
    **FRICTIONS,
    **{
        f"{name}-{law}": TemperatureDependent(friction, law=law, affected=affected)
        for name, friction in FRICTIONS.items()
        if name not in ("none", "temperature_dependent", "ripple_presliding")
        for law in LAWS
        # Every term follows temperature in one of the laws, in the others the viscous ones.
        for affected in [tuple(t.name for t in friction.parameters) if law == LAWS[0] else ()]
    },
    "ripple-of-temperature": sum_of(TemperatureDependent(Presliding(), law="arrhenius"), Ripple()),
}


@pytest.mark.parametrize("name", CASES)
def test_every_friction_model_under_every_law_steps_as_in_python(tmp_path, name):
    model = model_of(read_robot("ur5e"), CASES[name])
    q, v, a, temperature = motion(6)
    want = model.torque(q, v, a, temperature=temperature, step=STEP)
    compiled = Compiled(tmp_path, model, "-O0")
    close(compiled.run(q, v, a, STEP, temperature), want)
    alone = np.empty_like(q)
    for i in range(len(q)):
        compiled.call("torque", q[i], v[i], a[i], temperature[i], alone[i])
    close(alone, model.torque(q, v, a, temperature=temperature))


def test_without_a_temperature_it_is_the_usual_one(tmp_path):
    model = model_of(read_robot("ur5e"), TemperatureDependent(Presliding(), law="exponential"))
    q, v, a, _ = motion(6)
    usual = np.tile(model.typical_temperature, (len(q), 1))
    want = model.torque(q, v, a, temperature=usual, step=STEP)
    close(Compiled(tmp_path, model).run(q, v, a, STEP), want)


@pytest.mark.parametrize("arm", ["ur10e", "panda", "coupled", "single"])
def test_the_parts_of_the_dynamics_are_those_of_python(tmp_path, arm):
    single = from_dh(np.array([[0.1, 0.2, 0.3, 0.4]]), name="one", parameters=ONE)
    robot = single if arm == "single" else read_robot({"coupled": "ur10"}.get(arm, arm))
    if arm == "coupled":
        coupling = np.eye(6)
        coupling[5, 4] = -1.0
        robot = replace(robot, drives=replace(Drives.direct_drive(6), coupling=coupling))
    n = robot.joints
    model = model_of(robot.with_mounting("20,-30,10"), Linear())
    robot = model.robot
    q, v, a, _ = motion(n, 40)
    compiled = Compiled(tmp_path, model)
    rotors = np.einsum(
        "ki,k,kj->ij",
        robot.drives.coupling,
        model.layout.split(model.values).rotors,
        robot.drives.coupling,
    )
    mass, hold, whirl, rigid, back = (np.empty((40, *s)) for s in ((n, n), (n,), (n,), (n,), (n,)))
    pose, left = np.empty((40, 4, 4)), np.empty((40, n))
    compiled.call("start", compiled.state)
    for i in range(40):
        compiled.call("mass_matrix", q[i], mass[i])
        compiled.call("gravity", q[i], hold[i])
        compiled.call("coriolis", q[i], v[i], whirl[i])
        compiled.call("inverse_dynamics", q[i], v[i], a[i], rigid[i])
        compiled.call("acceleration", q[i], v[i], rigid[i], back[i])
        compiled.call("forward_kinematics", q[i], pose[i])
        compiled.call("residual", compiled.state, q[i], v[i], a[i], None, STEP, v[i], left[i])
    zero = np.zeros_like(q)
    close(mass, mass_matrix(robot, q) + rotors)
    close(hold, gravity_torque(robot, q))
    close(whirl, inverse_dynamics(robot, q, v, zero) - gravity_torque(robot, q))
    close(rigid, inverse_dynamics(robot, q, v, a) + a @ rotors)
    close(back, a)
    close(pose, forward_kinematics(robot, q)[:, -1])
    close(left, v - model.torque(q, v, a))


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("friction", ["presliding", "stribeck_load"])
def test_compilers_do_not_warn_and_nothing_but_mathematics_is_called(tmp_path, cc, friction):
    source = written(tmp_path, model_of(read_robot("panda"), FRICTIONS[friction]))
    for level in ("-O0", "-O2"):
        command = [compiler(cc), *STRICT, "-Wshadow", "-Wconversion", level, "-c", str(source)]
        subprocess.run([*command, "-o", str(tmp_path / "arm.o")], check=True)
    listing = subprocess.run(
        [compiler("nm"), "-u", str(tmp_path / "arm.o")], check=True, capture_output=True, text=True
    )
    outside = {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines()}
    outside -= {"_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    # No malloc, no stdio: libm, and copies of fixed size.
    assert outside <= MATHEMATICS | {"memset", "memcpy"}
    names = subprocess.run(
        [compiler("nm"), "-g", "--defined-only", str(tmp_path / "arm.o")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(line.split()[-1].startswith("panda_") for line in names.splitlines())


MAIN = """
#include "arm.h"
int main(void) {
  static double q[ARM_JOINTS], v[ARM_JOINTS], a[ARM_JOINTS], tau[ARM_JOINTS];
  static double big[ARM_JOINTS * 10 * ARM_JOINTS];
  arm_state state;
  arm_start(&state);
  for (int i = 0; i < 200; i++) {
    for (int k = 0; k < ARM_JOINTS; k++) {
      q[k] += 0.01 * (k + 1);
      v[k] = i % 7 - 3;
      a[k] = i % 5 - 2;
    }
    arm_step(&state, q, v, a, i % 2 ? q : 0, 0.001, tau);
    arm_torque(q, v, a, 0, tau);
    arm_acceleration(q, v, tau, a);
    arm_mass_matrix(q, big);
    arm_forward_kinematics(q, big);
    arm_coriolis(q, v, tau);
    arm_gravity(q, tau);
    arm_regressor(q, v, a, big);
    arm_residual(&state, q, v, a, 0, 0.001, q, tau);
  }
  return 0;
}
"""


def test_sanitizers_find_nothing(tmp_path):
    model = model_of(read_robot("ur10e"), sum_of(TemperatureDependent(Presliding()), Ripple()))
    source = written(tmp_path, model)
    main = tmp_path / "main.c"
    main.write_text(MAIN.replace("arm_", "ur10e_").replace("ARM_", "UR10E_"))
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    program = str(tmp_path / "main")
    files = [str(main), str(source), "-lm", "-o", program]
    subprocess.run([compiler(), *STRICT, *flags, *files], check=True)
    # Leaks need ptrace, which containers deny; there is nothing that could leak (see above).
    run = {"ASAN_OPTIONS": "detect_leaks=0"}
    subprocess.run([program], check=True, env=run, timeout=60)


CPP = """
#include "arm.hpp"
int main() {
  ur10e_model arm;
  ur10e_model::Vector q{}, v{}, a{};
  v.fill(0.3);
  const auto tau = arm.step(q, v, a, 0.001);
  const auto left = arm.residual(q, v, a, 0.001, tau);
  const auto pose = ur10e_model::forward_kinematics(q);
  const auto m = ur10e_model::mass_matrix(q);
  const auto g = ur10e_model::gravity(q);
  const auto c = ur10e_model::coriolis(q, v);
  const auto back = ur10e_model::acceleration(q, v, ur10e_model::inverse_dynamics(q, v, a));
  double worst = 0.0;
  for (double x : back) worst = worst > x * x ? worst : x * x;
  return worst < 1e-16 && m[0] > 0.0 && pose[15] == 1.0 && left[0] != tau[0] && g[0] + c[0] != 7.0
             ? 0
             : 1;
}
"""


def test_the_cpp_header_is_a_class(tmp_path):
    source = written(tmp_path, model_of(read_robot("ur10e"), Presliding()))
    (tmp_path / "main.cpp").write_text(CPP)
    subprocess.run(
        [compiler(), "-std=c99", "-c", str(source), "-o", str(tmp_path / "arm.o")], check=True
    )
    strict = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    files = [str(tmp_path / "main.cpp"), str(tmp_path / "arm.o"), "-lm"]
    program = str(tmp_path / "main")
    subprocess.run([compiler("c++"), *strict, *files, "-o", program], check=True)
    subprocess.run([program], check=True, timeout=60)


def test_cmake_builds_the_target(tmp_path):
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake on this machine")
    compiler()
    written(tmp_path, model_of(read_robot("ur10e"), Linear()))
    (tmp_path / "main.c").write_text(MAIN.replace("arm_", "ur10e_").replace("ARM_", "UR10E_"))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.15)\nproject(demo C)\ninclude(arm.cmake)\n"
        "add_executable(demo main.c)\ntarget_link_libraries(demo PRIVATE ur10e_dynamics)\n"
    )
    build = str(tmp_path / "build")
    subprocess.run([cmake, "-S", str(tmp_path), "-B", build], check=True, capture_output=True)
    subprocess.run([cmake, "--build", build], check=True, capture_output=True)
    subprocess.run([f"{build}/demo"], check=True, timeout=60)


@pytest.mark.parametrize("friction", [Linear(), Presliding()])
def test_external_torque_and_states_are_those_of_python(tmp_path, friction):
    """Motion that stops and starts, with an offset force: C sample by sample, Python's cells."""
    model = model_of(read_robot("ur5e"), friction)
    step, n = 0.008, 700
    time = step * np.arange(n)
    moving = (time < 1.5) | (time > 3.0)
    v = np.where(moving[:, None], 0.4 * np.sin(2.0 * time[:, None] + np.arange(6)), 0.0)
    q = 0.3 + step * np.cumsum(v, axis=0)
    measured = (
        model.torque(q, v, np.gradient(v, step, axis=0)) - np.where(time > 4.0, 5.0, 0)[:, None]
    )
    noise = default_noise(model)
    sensed = ExternalTorque(model, 1.0 / step, noise.cutoff_hz, noise.states)
    felt = sensed(time, np.concatenate([q, v, measured], axis=1))
    compiled = Compiled(tmp_path, model)
    memory = ctypes.create_string_buffer(len(compiled.state) + 8 * 6 * 12 + 8)
    found, state = np.empty((n, 6)), np.empty((n, 6), np.intc)
    compiled.call("contact_start", memory)
    for i in range(n):
        pointer = state[i].ctypes.data_as(ctypes.POINTER(ctypes.c_int))
        given = (memory, q[i], v[i], measured[i], None, step, found[i], pointer)
        compiled.call("external_torque", *given)
    np.testing.assert_array_equal(state[1:], felt.state)
    assert len(np.unique(felt.state)) == 5
    np.testing.assert_allclose(found[1:], felt.smooth, atol=1e-9)
    bound = getattr(compiled.library, f"{compiled.name}_contact_threshold")
    bound.restype = ctypes.c_double
    # Wider than the noise: C does not follow the drift of friction.
    drift = 0.15 * coulomb_level(model)[2]
    assert bound(2, 1) == pytest.approx(6.0 * np.hypot(noise.level[1, 2], drift))
    assert bound(2, 3) == pytest.approx(6.0 * noise.level[3, 2])
    assert bound(6, 0) == np.inf and bound(0, 5) == np.inf
