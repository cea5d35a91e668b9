"""The functions a URScript program may call, by name; everything else is refused by its name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import coriolis_torque, mass_matrix
from taufit.virtual.controllers.kinematics import from_pose, inverse_pose, rotation_vector, to_pose
from taufit.virtual.controllers.ur_motion import MOTIONS, joints, positive
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.machine import Builtin
from taufit.virtual.urscript.values import LONGEST_TEXT, UrList, Value, number, show

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController

# Known to programs, without effect on this arm.
_WITHOUT_EFFECT = (
    "force_mode",
    "end_force_mode",
    "force_mode_set_damping",
    "force_mode_set_gain_scaling",
    "zero_ftsensor",
    "teach_mode",
    "end_teach_mode",
    "freedrive_mode",
    "end_freedrive_mode",
    "rtde_set_watchdog",
    "ft_rtde_input_enable",
    "enable_external_ft_sensor",
    "popup",
    "set_tool_voltage",
    "set_standard_digital_out",
    "set_configurable_digital_out",
    "set_tool_digital_out",
    "set_standard_analog_out",
)
# Known to programs, but a program that calls one is stopped: what it would do is not simulated.
_NOT_SIMULATED = (
    "movel",
    "movep",
    "movec",
    "speedl",
    "servoc",
    "direct_torque",
)


def functions(robot: UrController) -> dict[str, Builtin]:
    """All functions, bound to one controller."""
    out: dict[str, Builtin] = {}
    for name, motion in MOTIONS.items():
        out[name] = Builtin(functools.partial(motion, robot), waits=True)
    for name, calculate in _MATHEMATICS.items():
        out[name] = Builtin(calculate)
    for name, read in _STATE.items():
        out[name] = Builtin(functools.partial(read, robot))
    for name, solve in _KINEMATICS.items():
        out[name] = Builtin(functools.partial(solve, robot), cost=200)
    for name in _WITHOUT_EFFECT:
        out[name] = Builtin(functools.partial(_nothing, robot, name))
    for name in _NOT_SIMULATED:
        out[name] = Builtin(functools.partial(_refuse, name))
    return out


def _nothing(robot: UrController, called: str, /, *given: Value, **named: Value) -> None:
    robot.say(f"{called}() has no effect on this virtual controller")


def _refuse(called: str, /, *given: Value, **named: Value) -> None:
    raise ScriptError(f"{called} is not simulated by this virtual controller.")


# Mathematics.


def _real(act: Callable[..., float]) -> Callable[[Value], float]:
    def one(x: Value) -> float:
        try:
            return act(number(x))
        except (ValueError, OverflowError):
            raise ScriptError(f"not defined for {show(x)}.") from None

    return one


def _two(act: Callable[[float, float], float]) -> Callable[[Value, Value], float]:
    def two(x: Value, y: Value) -> float:
        try:
            return act(float(number(x)), float(number(y)))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise ScriptError(f"not defined for {show(x)} and {show(y)}.") from None

    return two


def _norm(a: Value) -> float:
    if isinstance(a, list):
        return math.sqrt(sum(float(number(x)) ** 2 for x in a))
    return abs(float(number(a)))


def _text(*parts: Value) -> str:
    return "".join(show(part) for part in parts)[:LONGEST_TEXT]


def _length(a: Value) -> int:
    if isinstance(a, (list, str)):
        return len(a)
    raise ScriptError(f"{show(a)} has no length.")


def _pose(value: Value) -> Float[Array, "4 4"]:
    return to_pose(joints(value))


def _pose_sub(p_to: Value, p_from: Value) -> UrList:
    to, start = _pose(p_to), _pose(p_from)
    turn = rotation_vector(to[:3, :3] @ start[:3, :3].T)
    return UrList([*(to[:3, 3] - start[:3, 3]).tolist(), *turn.tolist()])


def _pose_add(p_1: Value, p_2: Value) -> UrList:
    one, two = _pose(p_1), _pose(p_2)
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = one[:3, :3] @ two[:3, :3], one[:3, 3] + two[:3, 3]
    return UrList(from_pose(out))


def _interpolate(p_from: Value, p_to: Value, alpha: Value) -> UrList:
    start, end, share = _pose(p_from), _pose(p_to), float(number(alpha))
    turn = rotation_vector(end[:3, :3] @ start[:3, :3].T)
    out = to_pose(np.array([*(start[:3, 3] + share * (end - start)[:3, 3]), *(share * turn)]))
    out[:3, :3] = out[:3, :3] @ start[:3, :3]
    return UrList(from_pose(out))


_MATHEMATICS: dict[str, Callable[..., Any]] = {
    **{name: _real(getattr(math, name)) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    "sqrt": _real(math.sqrt),
    "floor": _real(math.floor),
    "ceil": _real(math.ceil),
    "exp": _real(math.exp),
    "d2r": _real(math.radians),
    "r2d": _real(math.degrees),
    "atan2": _two(math.atan2),
    "pow": _two(math.pow),
    "log": _two(lambda base, x: math.log(x) / math.log(base)),
    "norm": _norm,
    "length": _length,
    "get_list_length": _length,
    "to_str": _text,
    "str_cat": _text,
    "pose_trans": lambda p_from, p_from_to: UrList(from_pose(_pose(p_from) @ _pose(p_from_to))),
    "pose_inv": lambda p_from: UrList(from_pose(inverse_pose(_pose(p_from)))),
    "pose_sub": _pose_sub,
    "pose_add": _pose_add,
    "pose_dist": lambda p_from, p_to: _norm(_pose_sub(p_to, p_from)[:3]),
    "point_dist": lambda p_from, p_to: _norm(_pose_sub(p_to, p_from)[:3]),
    "interpolate_pose": _interpolate,
}


# State of the controller.


def _register(robot: UrController, kind: str, index: Value) -> int:
    at = int(number(index))
    if not 0 <= at < 48:
        raise ScriptError(f"{kind} register {at}; there are 0 to 47.")
    return at


def _write_integer(robot: UrController, index: Value, value: Value) -> None:
    whole = int(number(value))
    if not -(2**31) <= whole < 2**31:
        raise ScriptError(f"{show(value)} does not fit into an integer register.")
    robot.integers[_register(robot, "integer", index)] = whole


def _write_double(robot: UrController, index: Value, value: Value) -> None:
    robot.doubles[_register(robot, "float", index)] = float(number(value))


def _read_integer(robot: UrController, index: Value) -> int:
    return int(robot.inputs[f"input_int_register_{_register(robot, 'integer', index)}"])


def _read_double(robot: UrController, index: Value) -> float:
    return float(robot.inputs[f"input_double_register_{_register(robot, 'float', index)}"])


def _set_payload(robot: UrController, m: Value, cog: Value = None) -> None:
    robot.mass = _kilograms(m)
    if cog is not None:
        robot.centre = joints(cog, 3).tolist()


def _set_target_payload(
    robot: UrController, m: Value, cog: Value, inertia: Value = None, transition_time: Value = 0
) -> None:
    _set_payload(robot, m, cog)
    if inertia is not None:
        robot.inertia = joints(inertia).tolist()


def _kilograms(m: Value) -> float:
    mass = float(number(m))
    if not 0.0 <= mass < 1000.0:
        raise ScriptError(f"a payload of {show(m)} kg.")
    return mass


def _set_tcp(robot: UrController, pose: Value, tcp_name: Value = "") -> None:
    robot.tool = _pose(pose)


def _history(robot: UrController, steps: Value = 0) -> UrList:
    back = int(number(steps))
    if not 0 <= back < len(robot.history):
        raise ScriptError(f"the positions {back} steps ago are not kept.")
    return UrList(robot.history[-1 - back].tolist())


def _textmsg(robot: UrController, s1: Value = "", s2: Value = "") -> None:
    robot.say(_text(s1, s2))


def _protective_stop(robot: UrController) -> None:
    robot.protective_stop("asked for by the program")


def _list(values: Float[Array, " n"]) -> UrList:
    return UrList(np.asarray(values, float).tolist())


_STATE: dict[str, Callable[..., Any]] = {
    "read_input_integer_register": _read_integer,
    "read_input_float_register": _read_double,
    "write_output_integer_register": _write_integer,
    "write_output_float_register": _write_double,
    "set_payload": _set_payload,
    "set_target_payload": _set_target_payload,
    "set_payload_mass": _set_payload,
    "set_payload_cog": lambda r, cog: setattr(r, "centre", joints(cog, 3).tolist()),
    "get_target_payload": lambda r: r.mass,
    "get_target_payload_cog": lambda r: UrList(r.centre),
    "get_target_payload_inertia": lambda r: UrList(r.inertia),
    "set_tcp": _set_tcp,
    "get_tcp_offset": lambda r: UrList(from_pose(r.tool)),
    "set_gravity": lambda r, d: joints(d, 3) is None,
    "textmsg": _textmsg,
    "get_actual_joint_positions": lambda r: _list(r.sample.position),
    "get_joint_positions": lambda r: _list(r.sample.position),
    "get_actual_joint_speeds": lambda r: _list(r.sample.velocity),
    "get_target_joint_positions": lambda r: _list(r.target),
    "get_target_joint_speeds": lambda r: _list(r.target_speed),
    "get_target_joint_accelerations": lambda r: _list(r.target_acceleration),
    "get_actual_joint_positions_history": _history,
    "get_joint_torques": lambda r: UrList(r.torque_without_gravity()),
    "get_joint_temp": lambda r, j: float(r.sample.temperature[_joint(j)]),
    "get_steptime": lambda r: r.step,
    "get_target_waypoint": lambda r: UrList(r.tool_pose(r.target)),
    "get_target_speed_fraction": lambda r: r.slider,
    "is_steady": lambda r: bool(np.abs(r.target_speed).max() < 1e-4),
    "is_within_safety_limits": lambda r, pose, qnear=None: True,
    "get_freedrive_status": lambda r: 0,
    "tool_contact": lambda r, direction=None: 0,
    "protective_stop": _protective_stop,
    "get_controller_temp": lambda r: 30.0,
}


# Kinematics and dynamics of the arm, by the same code that fits it.


def _joint(value: Value) -> int:
    at = int(number(value))
    if not 0 <= at < 6:
        raise ScriptError(f"joint {at}; there are 0 to 5.")
    return at


def _q(robot: UrController, q: Value) -> Float[Array, " 6"]:
    return robot.sample.position if q is None else joints(q)


def _tool(robot: UrController, tcp: Value) -> Float[Array, "4 4"]:
    return robot.tool if tcp is None or tcp == "active_tcp" else _pose(tcp)


def _forward(robot: UrController, q: Value = None, tcp: Value = None) -> UrList:
    flange = robot.kinematics.flange(_q(robot, q))
    return UrList(from_pose(flange @ _tool(robot, tcp)))


def _solve(robot: UrController, x: Value, qnear: Value, tcp: Value) -> Float[Array, " 6"] | None:
    near = robot.target if qnear is None else joints(qnear)
    return robot.kinematics.inverse(_pose(x) @ inverse_pose(_tool(robot, tcp)), near)


def _inverse(
    robot: UrController,
    x: Value,
    qnear: Value = None,
    maxPositionError: Value = 1e-10,
    maxOrientationError: Value = 1e-10,
    tcp: Value = None,
) -> UrList:
    positive(maxPositionError, "maxPositionError")
    positive(maxOrientationError, "maxOrientationError")
    found = _solve(robot, x, qnear, tcp)
    if found is None:
        raise ScriptError(f"the arm does not reach {show(x)}.")
    return _list(found)


def _reachable(
    robot: UrController,
    x: Value,
    qnear: Value = None,
    maxPositionError: Value = 1e-10,
    maxOrientationError: Value = 1e-10,
    tcp: Value = None,
) -> bool:
    return _solve(robot, x, qnear, tcp) is not None


def _matrix(values: Float[Array, "m n"]) -> UrList:
    return UrList(_list(row) for row in values)


def _mass_matrix(
    robot: UrController, q: Value = None, include_rotors_inertia: Value = False
) -> UrList:
    mass = mass_matrix(robot.twin.robot, _q(robot, q)[None])[0]
    if include_rotors_inertia:
        mass = mass + np.diag(robot.twin.robot.rotor_inertias)
    return _matrix(mass)


def _coriolis(robot: UrController, q: Value = None, qd: Value = None) -> UrList:
    speed = robot.sample.velocity if qd is None else joints(qd)
    return _list(coriolis_torque(robot.twin.robot, _q(robot, q)[None], speed[None])[0])


def _jacobian(robot: UrController, q: Value = None, tcp: Value = None) -> UrList:
    return _matrix(robot.kinematics.jacobian(_q(robot, q), _tool(robot, tcp)))


def _jacobian_derivative(
    robot: UrController, q: Value = None, qd: Value = None, tcp: Value = None
) -> UrList:
    at, tool = _q(robot, q), _tool(robot, tcp)
    speed = robot.sample.velocity if qd is None else joints(qd)
    small = 1e-6
    ahead = robot.kinematics.jacobian(at + small * speed, tool)
    behind = robot.kinematics.jacobian(at - small * speed, tool)
    return _matrix((ahead - behind) / (2.0 * small))


_KINEMATICS: dict[str, Callable[..., Any]] = {
    "get_forward_kin": _forward,
    "get_inverse_kin": _inverse,
    "get_inverse_kin_has_solution": _reachable,
    "get_actual_tcp_pose": lambda r: UrList(r.tool_pose(r.sample.position)),
    "get_target_tcp_pose": lambda r: UrList(r.tool_pose(r.target)),
    "get_actual_tcp_speed": lambda r: UrList(r.tool_speed(r.sample.position, r.sample.velocity)),
    "get_target_tcp_speed": lambda r: UrList(r.tool_speed(r.target, r.target_speed)),
    "get_actual_tool_flange_pose": lambda r: UrList(
        from_pose(r.kinematics.flange(r.sample.position))
    ),
    "get_mass_matrix": _mass_matrix,
    "get_coriolis_and_centrifugal_torques": _coriolis,
    "get_jacobian": _jacobian,
    "get_jacobian_time_derivative": _jacobian_derivative,
}
