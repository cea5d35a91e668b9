"""URScript functions of the simulated controller, by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.dynamics import coriolis_torque, mass_matrix
from taufit.virtual.controllers.kinematics import from_pose, inverse_pose, rotation_vector, to_pose
from taufit.virtual.controllers.ur_motion import MOTIONS, joint_values, positive_number
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.machine import Builtin
from taufit.virtual.urscript.values import MAX_TEXT_LENGTH, UrList, Value, format_value, number

if TYPE_CHECKING:
    from taufit.virtual.controllers.ur_controller import UrController

# Accepted without effect.
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
# Not simulated: a program that calls one is stopped.
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
    for name, math_function in _MATHEMATICS.items():
        out[name] = Builtin(math_function)
    for name, state_function in _STATE.items():
        out[name] = Builtin(functools.partial(state_function, robot))
    for name, kinematics_function in _KINEMATICS.items():
        out[name] = Builtin(functools.partial(kinematics_function, robot), cost=200)
    for name in _WITHOUT_EFFECT:
        out[name] = Builtin(functools.partial(_report_no_effect, robot, name))
    for name in _NOT_SIMULATED:
        out[name] = Builtin(functools.partial(_raise_not_simulated, name))
    return out


def _report_no_effect(
    robot: UrController, function_name: str, /, *arguments: Value, **keywords: Value
) -> None:
    robot.add_message(f"{function_name}() has no effect on this virtual controller")


def _raise_not_simulated(function_name: str, /, *arguments: Value, **keywords: Value) -> None:
    raise ScriptError(f"{function_name} is not simulated by this virtual controller.")


# Mathematics.


def _unary_function(function: Callable[..., float]) -> Callable[[Value], float]:
    def wrapper(x: Value) -> float:
        try:
            return function(number(x))
        except (ValueError, OverflowError):
            raise ScriptError(f"not defined for {format_value(x)}.") from None

    return wrapper


def _binary_function(function: Callable[[float, float], float]) -> Callable[[Value, Value], float]:
    def wrapper(x: Value, y: Value) -> float:
        try:
            return function(float(number(x)), float(number(y)))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise ScriptError(f"not defined for {format_value(x)} and {format_value(y)}.") from None

    return wrapper


def _norm(a: Value) -> float:
    if isinstance(a, list):
        return math.sqrt(sum(float(number(x)) ** 2 for x in a))
    return abs(float(number(a)))


def _join_text(*parts: Value) -> str:
    return "".join(format_value(part) for part in parts)[:MAX_TEXT_LENGTH]


def _length(a: Value) -> int:
    if isinstance(a, (list, str)):
        return len(a)
    raise ScriptError(f"{format_value(a)} has no length.")


def _pose(value: Value) -> Float[Array, "4 4"]:
    return to_pose(joint_values(value))


def _pose_sub(p_to: Value, p_from: Value) -> UrList:
    to, start = _pose(p_to), _pose(p_from)
    rotation = rotation_vector(to[:3, :3] @ start[:3, :3].T)
    return UrList([*(to[:3, 3] - start[:3, 3]).tolist(), *rotation.tolist()])


def _pose_add(p_1: Value, p_2: Value) -> UrList:
    first, second = _pose(p_1), _pose(p_2)
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = first[:3, :3] @ second[:3, :3], first[:3, 3] + second[:3, 3]
    return UrList(from_pose(out))


def _interpolate(p_from: Value, p_to: Value, alpha: Value) -> UrList:
    start, end, fraction = _pose(p_from), _pose(p_to), float(number(alpha))
    rotation = rotation_vector(end[:3, :3] @ start[:3, :3].T)
    out = to_pose(
        np.array([*(start[:3, 3] + fraction * (end - start)[:3, 3]), *(fraction * rotation)])
    )
    out[:3, :3] = out[:3, :3] @ start[:3, :3]
    return UrList(from_pose(out))


_MATHEMATICS: dict[str, Callable[..., Any]] = {
    **{
        name: _unary_function(getattr(math, name))
        for name in ("sin", "cos", "tan", "asin", "acos", "atan")
    },
    "sqrt": _unary_function(math.sqrt),
    "floor": _unary_function(math.floor),
    "ceil": _unary_function(math.ceil),
    "exp": _unary_function(math.exp),
    "d2r": _unary_function(math.radians),
    "r2d": _unary_function(math.degrees),
    "atan2": _binary_function(math.atan2),
    "pow": _binary_function(math.pow),
    "log": _binary_function(lambda base, x: math.log(x) / math.log(base)),
    "norm": _norm,
    "length": _length,
    "get_list_length": _length,
    "to_str": _join_text,
    "str_cat": _join_text,
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
    register = int(number(index))
    if not 0 <= register < 48:
        raise ScriptError(f"{kind} register {register}; there are 0 to 47.")
    return register


def _write_integer(robot: UrController, index: Value, value: Value) -> None:
    integer = int(number(value))
    if not -(2**31) <= integer < 2**31:
        raise ScriptError(f"{format_value(value)} does not fit into an integer register.")
    robot.integers[_register(robot, "integer", index)] = integer


def _write_double(robot: UrController, index: Value, value: Value) -> None:
    robot.doubles[_register(robot, "float", index)] = float(number(value))


def _read_integer(robot: UrController, index: Value) -> int:
    return int(robot.inputs[f"input_int_register_{_register(robot, 'integer', index)}"])


def _read_double(robot: UrController, index: Value) -> float:
    return float(robot.inputs[f"input_double_register_{_register(robot, 'float', index)}"])


def _set_payload(robot: UrController, m: Value, cog: Value = None) -> None:
    robot.mass = _kilograms(m)
    if cog is not None:
        robot.centre = joint_values(cog, 3).tolist()


def _set_target_payload(
    robot: UrController, m: Value, cog: Value, inertia: Value = None, transition_time: Value = 0
) -> None:
    _set_payload(robot, m, cog)
    if inertia is not None:
        robot.inertia = joint_values(inertia).tolist()


def _kilograms(m: Value) -> float:
    mass = float(number(m))
    if not 0.0 <= mass < 1000.0:
        raise ScriptError(f"a payload of {format_value(m)} kg.")
    return mass


def _set_tcp(robot: UrController, pose: Value, tcp_name: Value = "") -> None:
    robot.tool = _pose(pose)


def _history(robot: UrController, steps: Value = 0) -> UrList:
    steps_back = int(number(steps))
    if not 0 <= steps_back < len(robot.history):
        raise ScriptError(f"the positions {steps_back} steps ago are not kept.")
    return UrList(robot.history[-1 - steps_back].tolist())


def _textmsg(robot: UrController, s1: Value = "", s2: Value = "") -> None:
    robot.add_message(_join_text(s1, s2))


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
    "set_payload_cog": lambda r, cog: setattr(r, "centre", joint_values(cog, 3).tolist()),
    "get_target_payload": lambda r: r.mass,
    "get_target_payload_cog": lambda r: UrList(r.centre),
    "get_target_payload_inertia": lambda r: UrList(r.inertia),
    "set_tcp": _set_tcp,
    "get_tcp_offset": lambda r: UrList(from_pose(r.tool)),
    "set_gravity": lambda r, d: joint_values(d, 3) is None,
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


# Kinematics and dynamics, with the code used for fitting.


def _joint(value: Value) -> int:
    joint_index = int(number(value))
    if not 0 <= joint_index < 6:
        raise ScriptError(f"joint {joint_index}; there are 0 to 5.")
    return joint_index


def _q(robot: UrController, q: Value) -> Float[Array, " 6"]:
    return robot.sample.position if q is None else joint_values(q)


def _tool(robot: UrController, tcp: Value) -> Float[Array, "4 4"]:
    return robot.tool if tcp is None or tcp == "active_tcp" else _pose(tcp)


def _forward(robot: UrController, q: Value = None, tcp: Value = None) -> UrList:
    flange = robot.kinematics.flange(_q(robot, q))
    return UrList(from_pose(flange @ _tool(robot, tcp)))


def _solve(robot: UrController, x: Value, qnear: Value, tcp: Value) -> Float[Array, " 6"] | None:
    start = robot.target if qnear is None else joint_values(qnear)
    return robot.kinematics.inverse(_pose(x) @ inverse_pose(_tool(robot, tcp)), start)


def _inverse(
    robot: UrController,
    x: Value,
    qnear: Value = None,
    maxPositionError: Value = 1e-10,
    maxOrientationError: Value = 1e-10,
    tcp: Value = None,
) -> UrList:
    positive_number(maxPositionError, "maxPositionError")
    positive_number(maxOrientationError, "maxOrientationError")
    solution = _solve(robot, x, qnear, tcp)
    if solution is None:
        raise ScriptError(f"the arm does not reach {format_value(x)}.")
    return _list(solution)


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
    speed = robot.sample.velocity if qd is None else joint_values(qd)
    return _list(coriolis_torque(robot.twin.robot, _q(robot, q)[None], speed[None])[0])


def _jacobian(robot: UrController, q: Value = None, tcp: Value = None) -> UrList:
    return _matrix(robot.kinematics.jacobian(_q(robot, q), _tool(robot, tcp)))


def _jacobian_derivative(
    robot: UrController, q: Value = None, qd: Value = None, tcp: Value = None
) -> UrList:
    position, tool = _q(robot, q), _tool(robot, tcp)
    speed = robot.sample.velocity if qd is None else joint_values(qd)
    step = 1e-6
    forward = robot.kinematics.jacobian(position + step * speed, tool)
    backward = robot.kinematics.jacobian(position - step * speed, tool)
    return _matrix((forward - backward) / (2.0 * step))


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
