"""RTDE variables of a simulated controller: names, types and software versions."""

from __future__ import annotations

from taufit.wire.rtde import IN_USE, NOT_FOUND

Version = tuple[int, int, int, int]

_V6, _V3 = "VECTOR6D", "VECTOR3D"
_OUTPUTS: dict[str, str] = {
    "timestamp": "DOUBLE",
    "target_q": _V6,
    "target_qd": _V6,
    "target_qdd": _V6,
    "target_current": _V6,
    "target_moment": _V6,
    "actual_q": _V6,
    "actual_qd": _V6,
    "actual_current": _V6,
    "actual_current_window": _V6,
    "joint_control_output": _V6,
    "actual_TCP_pose": _V6,
    "actual_TCP_speed": _V6,
    "actual_TCP_force": _V6,
    "target_TCP_pose": _V6,
    "target_TCP_speed": _V6,
    "actual_digital_input_bits": "UINT64",
    "actual_digital_output_bits": "UINT64",
    "joint_temperatures": _V6,
    "actual_execution_time": "DOUBLE",
    "robot_mode": "INT32",
    "joint_mode": "VECTOR6INT32",
    "safety_mode": "INT32",
    "safety_status": "INT32",
    "actual_tool_accelerometer": _V3,
    "speed_scaling": "DOUBLE",
    "target_speed_fraction": "DOUBLE",
    "actual_momentum": "DOUBLE",
    "actual_main_voltage": "DOUBLE",
    "actual_robot_voltage": "DOUBLE",
    "actual_robot_current": "DOUBLE",
    "actual_joint_voltage": _V6,
    "runtime_state": "UINT32",
    "elbow_position": _V3,
    "elbow_velocity": _V3,
    "robot_status_bits": "UINT32",
    "safety_status_bits": "UINT32",
    "analog_io_types": "UINT32",
    "standard_analog_input0": "DOUBLE",
    "standard_analog_input1": "DOUBLE",
    "standard_analog_output0": "DOUBLE",
    "standard_analog_output1": "DOUBLE",
    "io_current": "DOUBLE",
    "tool_mode": "UINT32",
    "tool_analog_input0": "DOUBLE",
    "tool_analog_input1": "DOUBLE",
    "tool_output_voltage": "INT32",
    "tool_output_current": "DOUBLE",
    "tool_temperature": "DOUBLE",
    "tcp_force_scalar": "DOUBLE",
    "script_control_line": "UINT32",
    "output_bit_registers0_to_31": "UINT32",
    "output_bit_registers32_to_63": "UINT32",
    **{f"output_int_register_{i}": "INT32" for i in range(48)},
    **{f"output_double_register_{i}": "DOUBLE" for i in range(48)},
}
# Type, first CB3 version and first e-Series version with it; None for never.
_VERSIONED_OUTPUTS: dict[str, tuple[str, tuple[int, int] | None, tuple[int, int]]] = {
    "payload": ("DOUBLE", (3, 11), (5, 5)),
    "payload_cog": (_V3, (3, 11), (5, 5)),
    "payload_inertia": (_V6, (3, 15), (5, 11)),
    "ft_raw_wrench": (_V6, None, (5, 9)),
    # Documented without a version.
    "control_step": ("UINT64", None, (5, 23)),
    "target_gravity": (_V3, None, (5, 23)),
    "tcp_offset": (_V6, None, (5, 23)),
    "actual_current_as_torque": (_V6, None, (5, 23)),
}
INPUTS: dict[str, str] = {
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": _V6,
    "input_bit_registers0_to_31": "UINT32",
    "input_bit_registers32_to_63": "UINT32",
    **{f"input_bit_register_{i}": "BOOL" for i in range(64, 128)},
    **{f"input_int_register_{i}": "INT32" for i in range(48)},
    **{f"input_double_register_{i}": "DOUBLE" for i in range(48)},
}


def output_types(version: Version) -> dict[str, str]:
    """Names and types of the output variables of a software version."""
    out = dict(_OUTPUTS)
    for name, (kind, cb3, e_series) in _VERSIONED_OUTPUTS.items():
        first_version = cb3 if version[0] < 5 else e_series
        if first_version is not None and version[:2] >= first_version:
            out[name] = kind
    return out


def input_types(names: list[str], reserved: set[str]) -> list[str]:
    """Type of every requested input; IN_USE if another client writes it."""
    return [IN_USE if name in reserved else INPUTS.get(name, NOT_FOUND) for name in names]
