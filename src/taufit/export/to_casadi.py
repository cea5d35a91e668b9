"""Fitted model as a CasADi function, for planning and model predictive control.

Torque of links, rotors, offsets, further terms and friction of steady motion, with sign(v) smoothed
so that CasADi can differentiate it. Friction states are no use for planning: their derivative over
one sample is up to the friction torque over 3e-5 rad.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.extras import missing_extra
from taufit.core.files import replace_file
from taufit.export.c.friction_program import IN_C, require_compiled_inputs
from taufit.export.c.names import c_name
from taufit.export.c.smooth_friction import SMOOTH_WIDTH, no_memory, smoothing_difference
from taufit.export.export_format import ExportResult
from taufit.export.friction_parts import friction_coefficients, offsets
from taufit.model.fitted_model import FittedModel
from taufit.robot import Link
from taufit.terms import has_memory
from taufit.terms.tracing import record


def write_casadi(model: FittedModel, path: Path) -> ExportResult:
    """Write a function (q, v, a, temperature) -> (tau, rigid) for `casadi.Function.load`."""
    with replace_file(path) as file:
        casadi_torque(model).save(str(file))
    return ExportResult((path,), (), tuple(_notes(model)))


def casadi_torque(model: FittedModel) -> Any:
    """CasADi function (q, v, a, temperature) -> (tau, rigid), rigid the torque of the links.

    Example:
        >>> import taufit
        >>> from taufit.export import casadi_torque
        >>> torque = casadi_torque(taufit.read_model("model.json"))
        >>> torque.name_in(), torque.size_out(0)
        (['q', 'v', 'a', 'temperature'], (6, 1))
    """
    casadi = import_casadi()
    joints = model.robot.joints
    q, v, a, temperature = (casadi.SX.sym(name, joints) for name in ("q", "v", "a", "temperature"))
    rigid = _links_torque(casadi, model, q, v, a)
    coupling = casadi.DM(model.robot.drives.coupling)
    rotors = casadi.DM(model.layout.split(model.values).rotors)
    motor = _motor_torque(casadi, model, coupling @ q, coupling @ v, temperature, rigid)
    motor += rotors * (coupling @ a)
    tau = rigid + coupling.T @ motor + casadi.DM(offsets(model))
    names = ["q", "v", "a", "temperature"], ["tau", "rigid"]
    return casadi.Function(f"{c_name(model)}_torque", [q, v, a, temperature], [tau, rigid], *names)


def import_casadi() -> Any:
    """Module casadi, or an error with the command that installs it."""
    try:
        import casadi
    except ImportError:
        raise missing_extra("casadi", "A CasADi export") from None
    return casadi


def _motor_torque(casadi: Any, model: FittedModel, q: Any, v: Any, degrees: Any, rigid: Any) -> Any:
    """Smooth friction and further terms at the motors."""
    load = casadi.DM(np.linalg.inv(model.robot.drives.coupling).T) @ rigid
    friction = model.term_sum.steady_state()
    coefficients, out = friction_coefficients(model), []
    for i in range(model.robot.joints):
        term = friction.of_joint(i)
        require_compiled_inputs(term)
        inputs = [v[i], q[i], load[i], degrees[i], casadi.SX(0.0)]
        step = record(term, model.joint_shape[i], SymbolRecorder(casadi), inputs, no_memory)
        products = zip(coefficients[i], step.columns, strict=True)
        out.append(sum((float(c) * column for c, column in products), casadi.SX(0.0)))
    return casadi.vertcat(*out)


# CasADi's names of functions and operators where they differ from NumPy's.
_FUNCTIONS = {
    "absolute": "fabs",
    "maximum": "fmax",
    "minimum": "fmin",
    "arctan": "atan",
    "arctan2": "atan2",
    "where": "if_else",
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
}


class SymbolRecorder:
    """Recorder that builds CasADi expressions, with a smooth sign."""

    operations = IN_C.keys()

    def __init__(self, casadi: Any) -> None:
        self.casadi = casadi

    def constant(self, number: float) -> Any:
        return self.casadi.SX(number)

    def apply(self, name: str, *values: Any) -> Any:
        if name == "sign":
            return self.casadi.tanh(values[0] / SMOOTH_WIDTH)
        if name == "square":
            return values[0] * values[0]
        if name in _OPERATORS:
            return _OPERATORS[name](*values)
        return getattr(self.casadi, _FUNCTIONS.get(name, name))(*values)


def _links_torque(casadi: Any, model: FittedModel, q: Any, v: Any, a: Any) -> Any:
    """Inverse dynamics of the links by the recursion of `dynamics.recursion`."""
    robot = model.robot
    twist = casadi.SX.zeros(6)
    acceleration = casadi.SX(np.concatenate([np.zeros(3), -robot.gravity]))
    poses, wrenches = [], []
    for i, link in enumerate(robot.links):
        pose = _pose(casadi, link, q[i])
        step = casadi.DM(link.screw) * v[i]
        twist = _to_child(casadi, *pose, twist)
        acceleration = _to_child(casadi, *pose, acceleration) + casadi.DM(link.screw) * a[i]
        acceleration += _motion_cross(casadi, twist, step)
        twist += step
        inertia = casadi.DM(_inertia_matrix(link.parameters))
        momentum = inertia @ twist
        poses.append(pose)
        wrenches.append(inertia @ acceleration + _force_cross(casadi, twist, momentum))
    torque, wrench = [], casadi.SX.zeros(6)
    for link, (rotation, position), axis in reversed(
        list(zip(robot.links, poses, wrenches, strict=True))
    ):
        wrench += axis
        torque.append(casadi.dot(casadi.DM(link.screw), wrench))
        force = rotation @ wrench[3:]
        wrench = casadi.vertcat(rotation @ wrench[:3] + casadi.cross(position, force), force)
    return casadi.vertcat(*reversed(torque))


def _pose(casadi: Any, link: Link, q: Any) -> tuple[Any, Any]:
    """Rotation and position of M exp([S] q)."""
    w, u = link.screw[:3], link.screw[3:]
    base, origin = link.placement[:3, :3], link.placement[:3, 3]
    if link.is_prismatic:
        return casadi.SX(base), casadi.DM(origin) + q * casadi.DM(base @ u)
    hat = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    s, c = casadi.sin(q), 1.0 - casadi.cos(q)
    rotation = casadi.DM(base) + s * casadi.DM(base @ hat) + c * casadi.DM(base @ hat @ hat)
    moment = np.cross(w, u)
    shift = -s * casadi.DM(base @ hat @ moment) - c * casadi.DM(base @ hat @ hat @ moment)
    return rotation, casadi.DM(origin) + shift + q * casadi.DM(base @ (w * (w @ u)))


def _to_child(casadi: Any, rotation: Any, position: Any, twist: Any) -> Any:
    linear = twist[3:] - casadi.cross(position, twist[:3])
    return casadi.vertcat(rotation.T @ twist[:3], rotation.T @ linear)


def _motion_cross(casadi: Any, x: Any, y: Any) -> Any:
    return casadi.vertcat(
        casadi.cross(x[:3], y[:3]), casadi.cross(x[3:], y[:3]) + casadi.cross(x[:3], y[3:])
    )


def _force_cross(casadi: Any, x: Any, f: Any) -> Any:
    return casadi.vertcat(
        casadi.cross(x[:3], f[:3]) + casadi.cross(x[3:], f[3:]), casadi.cross(x[:3], f[3:])
    )


def _inertia_matrix(parameters: np.ndarray) -> np.ndarray:
    """Spatial inertia (angular; linear) of ten parameters."""
    m, h = parameters[0], parameters[1:4]
    xx, xy, yy, xz, yz, zz = parameters[4:]
    hat = np.array([[0.0, -h[2], h[1]], [h[2], 0.0, -h[0]], [-h[1], h[0], 0.0]])
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[tensor, hat], [-hat, m * np.eye(3)]])


def _notes(model: FittedModel) -> list[str]:
    """Difference of the smooth friction to the model, at random speeds up to the trained ones."""
    if not model.term_sum.parameters:
        return []
    rng = np.random.default_rng(0)
    span = model.training.ranges.velocity
    top = np.ones(model.robot.joints) if span is None else np.maximum(span.largest, 1e-3)
    q = rng.uniform(-1.0, 1.0, (500, model.robot.joints))
    v = rng.uniform(-1.0, 1.0, q.shape) * top
    gap = np.sqrt(np.mean(smoothing_difference(model, q, v, np.zeros_like(q)) ** 2, axis=0))
    joint = int(np.argmax(gap))
    memory = " and without friction states" if has_memory(model.term_sum) else ""
    return [
        f"For planning: sign(v) is tanh(v / {SMOOTH_WIDTH:g} rad/s){memory}. At random speeds that "
        f"differs from steady friction by {gap[joint]:.2g} N m rms on joint {joint + 1}, less on "
        "the others."
    ]
