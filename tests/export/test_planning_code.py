"""Gradients in C and CasADi, the reference controller, and how each would be seen to be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from tests.export.compiled import Compiled

import taufit
from taufit.export.c.smooth_friction import smooth_torque
from taufit.model.torque_model import TorqueModel
from taufit.terms import TERMS, friction_model
from taufit.terms.friction import FRICTION_MODELS

CASES = [("ur10e", "presliding"), ("panda", "stribeck_load"), ("kr5", "power_law")]


def fitted(name: str, friction: str, terms=(), coupled: bool = False):
    robot = taufit.read_robot(name)
    if coupled:
        from dataclasses import replace

        coupling = np.eye(robot.joints)
        coupling[-1, -2] = 0.7
        robot = replace(robot, drives=replace(robot.drives, coupling=coupling))
    model = TorqueModel(robot, friction_model(friction), rotor_inertia=True, terms=terms)
    values = np.random.default_rng(7).uniform(0.1, 1.0, len(model.names))
    values[model.layout.links] = robot.parameters
    return model.with_values(values)


def gradient(compiled: Compiled, q, v, a, temperature=None):
    n = len(q)
    tau, parts = np.empty(n), [np.empty((n, n)) for _ in range(3)]
    compiled.call("torque_gradient", q, v, a, temperature, tau, *parts)
    return tau, np.hstack(parts)


def smooth(compiled: Compiled, x):
    n = len(x) // 3
    tau = np.empty(n)
    compiled.call("smooth_torque", *(part.copy() for part in np.split(x, 3)), None, tau)
    return tau


def differences(function, x, step=1e-5):
    """Fourth-order central differences, columns by entry of x."""
    rows = []
    for e in step * np.eye(len(x)):
        near, far = function(x + e) - function(x - e), function(x + 2 * e) - function(x - 2 * e)
        rows.append((8.0 * near - far) / (12.0 * step))
    return np.stack(rows, 1)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize(("name", "friction"), CASES)
def test_the_gradient_is_that_of_the_smooth_torque(tmp_path, name, friction, coupled):
    model = fitted(name, friction, coupled=coupled)
    compiled, rng = Compiled(tmp_path, model), np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(size=3 * model.robot.joints)
        tau, got = gradient(compiled, *np.split(x, 3))
        np.testing.assert_allclose(smooth(compiled, x), tau, rtol=1e-12, atol=1e-12)
        python = smooth_torque(model, *(part[None] for part in np.split(x, 3)))[0]
        np.testing.assert_allclose(python, tau, rtol=1e-11, atol=1e-11)
        expected = differences(lambda y: smooth(compiled, y), x)
        # Worst of 200 states: 6e-10, the rounding of the differences.
        np.testing.assert_allclose(got, expected, atol=1e-8 * np.abs(expected).max())


def test_links_have_pinocchios_gradient(tmp_path):
    pin = pytest.importorskip("pinocchio")
    from taufit.export import to_urdf

    urdf = tmp_path / "arm.urdf"
    urdf.write_text(to_urdf(fitted("ur10e", "none"))[0])
    other, robot = pin.buildModelFromUrdf(str(urdf)), taufit.read_robot(urdf)
    model = TorqueModel(robot, friction_model("none"), rotor_inertia=False, offset=False)
    compiled = Compiled(tmp_path, model.with_values(robot.parameters))
    data, rng = other.createData(), np.random.default_rng(4)
    for _ in range(20):
        q, v, a = rng.normal(size=(3, 6))
        pin.computeRNEADerivatives(other, data, q, v, a)
        expected = np.hstack([data.dtau_dq, data.dtau_dv, np.triu(data.M) + np.triu(data.M, 1).T])
        _, got = gradient(compiled, q, v, a)
        np.testing.assert_allclose(got, expected, atol=1e-9 * np.abs(expected).max())


def test_a_wrong_gradient_is_seen(tmp_path):
    model = fitted("ur10e", "presliding")
    wrong = model.with_values(model.values * (1.0 + 1e-3 * (np.arange(len(model.values)) == 20)))
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    right, other = Compiled(tmp_path / "one", model), Compiled(tmp_path / "two", wrong)
    x = np.random.default_rng(1).normal(size=18)
    _, got = gradient(other, *np.split(x, 3))
    expected = differences(lambda y: smooth(right, y), x)
    assert np.abs(got - expected).max() > 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("friction", FRICTION_MODELS)
def test_casadi_has_the_torque_and_the_gradient_of_the_c(tmp_path, friction):
    casadi = pytest.importorskip("casadi")
    model = fitted("kr5", friction, terms=(TERMS["spring"](),))
    path = tmp_path / "arm.casadi"
    taufit.export_model(model, path)
    function = casadi.Function.load(str(path))
    compiled, rng = Compiled(tmp_path, model), np.random.default_rng(3)
    jacobian = function.jacobian()
    for _ in range(4):
        q, v, a = rng.normal(size=(3, 6))
        temperature = rng.uniform(20.0, 40.0, 6)
        tau, expected = gradient(compiled, q, v, a, temperature)
        got = np.array(function(q, v, a, temperature)[0]).ravel()
        np.testing.assert_allclose(got, tau, atol=1e-10 * np.abs(tau).max())
        columns = np.hstack([np.array(x) for x in jacobian(q, v, a, temperature, 0, 0)[:3]])
        np.testing.assert_allclose(columns, expected, atol=1e-10 * np.abs(expected).max())


def test_the_jacobian_of_the_flange_is_that_of_the_kinematics(tmp_path):
    from taufit.dynamics.recursion import jacobian

    model = fitted("panda", "linear")
    compiled, got = Compiled(tmp_path, model), np.empty((6, 7))
    q = np.random.default_rng(2).normal(size=7)
    compiled.call("jacobian", q, got)
    np.testing.assert_allclose(got, jacobian(model.robot, q[None])[0], atol=1e-12)


class ReferenceController:
    """The exported controller, called from Python."""

    def __init__(self, compiled: Compiled, states: int) -> None:
        self.compiled, n = compiled, compiled.joints
        # Two friction states (memory and a flag, padded), then arrays of doubles.
        self.head = 2 * states
        self.buffer = np.zeros(self.head + 10 * n + 10 + 8)
        self.joints = n
        compiled.call("controller_start", self.buffer)

    @property
    def level(self):
        return self.buffer[self.head : self.head + self.joints]

    def call(self, name, *arguments):
        out = np.empty(self.joints)
        self.compiled.call(name, self.buffer, *arguments, out)
        return out


def controller(tmp_path, model) -> ReferenceController:
    compiled = Compiled(tmp_path, model)
    return ReferenceController(compiled, len(compiled.state.raw) // 8)


def path(joints: int, samples: int = 1500, step: float = 0.002):
    t = step * np.arange(samples)[:, None]
    w = 1.0 + 0.4 * np.arange(joints)
    return np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t), step


def test_feed_forward_is_the_model_with_memory_and_a_payload_is_added(tmp_path):
    model = fitted("ur10e", "presliding")
    arm = controller(tmp_path, model)
    q, v, a, step = path(6, 300)
    given = np.array(
        [arm.call("feed_forward", *row, None, step) for row in zip(q, v, a, strict=True)]
    )
    np.testing.assert_allclose(given, model.torque(q, v, a, step=step), atol=1e-9)
    loaded = model.with_payload(2.5, centre=(0.02, -0.03, 0.08))
    arm.compiled.call("controller_start", arm.buffer)
    arm.compiled.call("controller_payload", arm.buffer, 2.5, np.array([0.02, -0.03, 0.08]), None)
    given = np.array(
        [arm.call("feed_forward", *row, None, step) for row in zip(q, v, a, strict=True)]
    )
    np.testing.assert_allclose(given, loaded.torque(q, v, a, step=step), atol=1e-9)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_the_friction_level_is_found_in_free_motion(tmp_path, factor):
    from taufit.terms import DISSIPATIVE

    model = fitted("ur10e", "presliding")
    kind = model.layout.of_kind(DISSIPATIVE)
    truth = model.with_values(np.where(kind, factor * model.values, model.values))
    arm = controller(tmp_path, model)
    q, v, a, step = path(6)
    applied = truth.torque(q, v, a, step=step)
    for k in range(len(q)):
        arm.call("feed_forward", q[k], v[k], a[k], None, step)
        arm.compiled.call("track_friction", arm.buffer, applied[k], step)
    np.testing.assert_allclose(arm.level, factor, atol=0.02)


def test_guiding_holds_gravity_and_never_exceeds_its_fraction_of_friction(tmp_path):
    model = fitted("ur10e", "linear")
    arm = controller(tmp_path, model)
    q, v, _, step = path(6, 200)
    rest = np.zeros(6)
    for k in range(len(q)):
        given = arm.call("guide", q[k], v[k], None, step)
        gravity = model.torque(q[k], rest, rest)
        friction = model.torque(q[k], v[k], rest) - model.torque(q[k], rest, rest)
        friction -= model.coriolis(q[k], v[k])
        share = (given - gravity) * np.sign(v[k])
        assert np.all(share > 0.0) and np.all(share <= 0.6 * np.abs(friction) + 1e-9)
    # Let go: after two seconds at rest the compensation has faded.
    for _ in range(1000):
        given = arm.call("guide", q[-1], np.full(6, 1e-3), None, step)
    np.testing.assert_allclose(given, model.torque(q[-1], rest, rest), atol=0.01)
