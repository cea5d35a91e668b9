"""Inner loop of the simulation, compiled if available, else in Python.

One tick is one millisecond: the controller acts, then the bodies move by leapfrog steps

    a_k = forward dynamics(q_k, v_k),  v_{k+1/2} = v_{k-1/2} + h a_k,  q_{k+1} = q_k + h v_{k+1/2}

with v_k predicted half a step ahead by the last acceleration. The recorded torque, q_k, v_k and a_k
satisfy the equations of motion exactly; the path is of second order in h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.sim.mujoco_arm import MujocoArm, compiled_kernel

if TYPE_CHECKING:
    from taufit.sim.tree_arm import TreeArm

TICK_S = 1e-3
MAXIMUM_SPEED = 200.0
OUTPUTS = (
    "position",
    "velocity",
    "acceleration",
    "motor_torque",
    "link_torque",
    "friction",
    "temperature",
    "drive_position",
    "drive_velocity",
)


def advance(
    arm: MujocoArm | TreeArm,
    arrays: dict[str, Any],
    steps: int,
    substeps: int,
    *,
    compiled: bool = True,
) -> int:
    """Run `steps` ticks on `arrays`; returns -1, or the tick of divergence."""
    loop_kernel = compiled_kernel() if compiled else None
    if loop_kernel is None:
        return _advance(arm, arrays, steps, substeps)
    return loop_kernel.twin_run(
        arrays,
        *arm.calls(),
        steps,
        arm.joints,
        substeps,
        TICK_S,
        MAXIMUM_SPEED,
    )


def mujoco_arrays(arm: MujocoArm | TreeArm) -> dict[str, Any]:
    """MuJoCo arrays that the loop reads and writes."""
    model, data, state = arm.model, arm.data, arm.state
    hand, payload = arm.hand, arm.payload_body
    return {
        "qpos": state.qpos,
        "qvel": state.qvel,
        "qacc_smooth": state.qacc_smooth,
        "qfrc_applied": state.qfrc_applied,
        "xfrc_hand": data.xfrc_applied[hand],
        "xpos_hand": data.xpos[hand],
        "xmat_hand": data.xmat[hand],
        "xipos_hand": data.xipos[hand],
        "payload_mass": model.body_mass[payload : payload + 1],
        "payload_ipos": model.body_ipos[payload],
        "payload_iquat": model.body_iquat[payload],
        "payload_inertia": model.body_inertia[payload],
    }


def _level(
    x: dict[str, Any], joint: int, side: int, speed: float, load: float, temperature: float
) -> float:
    """Multilinear interpolation in the friction table."""
    speeds, loads, temperatures = (int(n) for n in x["table_sizes"])
    grid = x["speed_grid"][joint]
    i = min(
        int(math.asinh(speed / x["speed_scale"][joint]) / x["speed_span"][joint] * (speeds - 1)),
        speeds - 2,
    )
    f = (speed - grid[i]) / (grid[i + 1] - grid[i])
    table = x["table"][joint, side]

    def cell(value: float, size: int) -> tuple[int, float]:
        value = max(value, 0.0)
        index = min(int(value), size - 2)
        return index, min(value - index, 1.0)

    l, fl = cell(abs(load) / x["top_load"][joint] * (loads - 1), loads) if loads > 1 else (0, 0.0)
    lowest, highest = x["warmth"]
    w, fw = (
        cell((temperature - lowest) / (highest - lowest) * (temperatures - 1), temperatures)
        if temperatures > 1
        else (0, 0.0)
    )
    level = 0.0
    for dl, load_weight in ((0, 1.0 - fl), (1, fl)):
        for dw, temperature_weight in ((0, 1.0 - fw), (1, fw)):
            if load_weight * temperature_weight != 0.0:
                row = table[l + dl, w + dw]
                level += load_weight * temperature_weight * (row[i] + f * (row[i + 1] - row[i]))
    return float(level)


def _advance(arm: MujocoArm | TreeArm, x: dict[str, Any], steps: int, substeps: int) -> int:
    """Python version of `twin_run` of kernel/twin.cpp."""
    row_by_tick = {int(tick): row for row, tick in enumerate(x["keep"])}
    start = float(x["start_tick"][0])
    for k in range(steps):
        for event in x["loads"]:
            if int(event[0]) == int(start) + k:
                x["payload_mass"][0], x["payload_ipos"][:] = event[1], event[2:5]
                x["payload_iquat"][:], x["payload_inertia"][:] = event[5:9], event[9:12]
        x["loss"][:] = 0.0
        for sub in range(substeps):
            row = row_by_tick.get(k) if sub == 0 else None
            if not _substep(arm, x, k, sub, TICK_S / substeps, row):
                return k
        if x["flags"][1]:
            _update_temperature(x)
    return -1


def _substep(
    arm: MujocoArm | TreeArm, x: dict[str, Any], k: int, sub: int, h: float, row: int | None
) -> bool:
    """Step of `h` seconds, stored in `row` of the outputs; False on divergence."""
    data = arm.state
    has_friction, _, is_elastic, is_coupled = (bool(flag) for flag in x["flags"])
    coupling, q, half_velocity, command = x["coupling"], x["q"], x["v_half"], x["command"]
    theta, theta_half, theta_last = x["theta"], x["theta_half"], x["theta_last"]
    data.qpos[:] = q
    data.qvel[:] = half_velocity + 0.5 * h * x["a_last"]
    arm.forward("Position")
    arm.forward("Velocity")
    drive_position = servo_position = theta.copy() if is_elastic else q.copy()
    speed = servo_velocity = theta_half + 0.5 * h * theta_last if is_elastic else data.qvel.copy()
    # With joint elasticity the servo runs on the motor side, at the rate of the small steps.
    if sub == 0 or is_elastic:
        _servo(x, k, sub * h, servo_position, servo_velocity, duration=h if is_elastic else TICK_S)
    if is_coupled:
        drive_position, speed = coupling @ q, coupling @ data.qvel
    drag = _drive_friction(x, drive_position, speed, h) if has_friction else np.zeros(arm.joints)
    x["drive_before"][:] = drive_position
    cycles, amplitude, phase = (x[f"ripple_{part}"] for part in ("cycles", "amplitude", "phase"))
    angle = np.clip(drive_position[:, None], x["ripple_low"], x["ripple_high"])
    waves = [amplitude[:, w] * np.sin(c * angle[:, w] + phase[:, w]) for w, c in enumerate(cycles)]
    heating_count = int(x["heating_waves"][0])
    drag = sum(waves[:heating_count], drag)
    # Compensators are conservative: no heat.
    x["loss"] += np.abs(drag * speed) * (h / TICK_S)
    drag = sum(waves[heating_count:], drag)
    drag = (coupling.T @ drag if is_coupled else drag) + x["offset"]
    if is_elastic:
        spring = x["spring"] * (theta - q) + x["spring_damping"] * (servo_velocity - data.qvel)
        data.qfrc_applied[:] = spring
        theta_last[:] = (command - drag - spring) / x["rotor"]
    else:
        data.qfrc_applied[:] = command - drag
    _push(x, (float(x["start_tick"][0]) + k) * TICK_S + sub * h)
    arm.forward("Acceleration")
    a = data.qacc_smooth
    if not np.all(np.abs(half_velocity + h * a) < MAXIMUM_SPEED):
        return False
    x["load"][:] = data.qfrc_applied
    if is_coupled:
        x["load"][:] -= coupling.T @ (x["rotor"] * (coupling @ a))
    elif not is_elastic:
        x["load"][:] -= x["rotor"] * a
    if row is not None:
        for name, value in (
            ("position", q),
            ("velocity", data.qvel),
            ("acceleration", a),
            ("motor_torque", command),
            ("link_torque", x["load"]),
            ("friction", drag),
            ("temperature", x["temperature"]),
            ("drive_position", servo_position),
            ("drive_velocity", servo_velocity),
        ):
            x[f"out_{name}"][row] = value
    half_velocity += h * a
    q += h * half_velocity
    x["a_last"][:] = a
    if is_elastic:
        theta_half += h * theta_last
        theta += h * theta_half
    return True


def _servo(
    x: dict[str, Any],
    k: int,
    delay: float,
    position: Float[Array, " j"],
    velocity: Float[Array, " j"],
    *,
    duration: float,
) -> None:
    """Set the command of the position loop, `delay` seconds after tick k."""
    error = x["reference_position"][k] + delay * x["reference_velocity"][k] - position
    demand = (
        x["feedforward"][k]
        + x["stiffness"] * error
        + x["damping"] * (x["reference_velocity"][k] - velocity)
        + x["integral"]
    )
    x["command"][:] = np.clip(demand, -x["torque_limit"], x["torque_limit"])
    is_unsaturated = x["command"] == demand
    x["integral"][is_unsaturated] += (x["integral_gain"] * error * duration)[is_unsaturated]


def _drive_friction(
    x: dict[str, Any], position: Float[Array, " j"], speed: Float[Array, " j"], h: float
) -> Float[Array, " j"]:
    """Friction torque of the drives; updates bristle deflections and ages."""
    travel = position - x["drive_before"]
    s = np.sign(travel)
    fade = np.exp(-np.abs(travel) / x["slip"])
    x["bristle"][:] = np.where(travel != 0.0, s + (x["bristle"] - s) * fade, x["bristle"])
    slow = x["slow_state"]
    decay = np.exp(-np.abs(travel)[:, None] / x["slow_width"])
    slow[:] = np.where(travel[:, None] != 0.0, s[:, None] + (slow - s[:, None]) * decay, slow)
    age = x["age"]
    age *= np.exp(-np.abs(travel) / x["rest"][1])
    age += (1.0 - age) * (1.0 - math.exp(-h / x["rest"][0]))
    drag = np.zeros(len(position))
    motor_load = x["to_motors"] @ x["load"] if x["flags"][3] else x["load"]
    for i, bristle in enumerate(x["bristle"]):
        side, load, temperature = 0 if bristle >= 0.0 else 1, motor_load[i], x["temperature"][i]
        level = _level(x, i, side, abs(speed[i]), load, temperature) + x["load_friction"][i] * abs(
            load
        )
        drag[i] = level * bristle * (1.0 + x["breakaway"][i] * age[i])
    return drag + (x["slow_torque"] * (slow - x["bristle"][:, None])).sum(1)


def _push(x: dict[str, Any], time: float) -> None:
    """Set force and moment of the pushes on the hand at time `time`."""
    x["xfrc_hand"][:] = 0.0
    for pulse in x["pulses"]:
        phase = (time - pulse[0]) / pulse[1]
        if 0.0 < phase < 1.0:
            force, moment = math.sin(math.pi * phase) * pulse[2:].reshape(2, 3)
            tip = x["xpos_hand"] + x["xmat_hand"].reshape(3, 3) @ x["tip"]
            x["xfrc_hand"][:3] += force
            x["xfrc_hand"][3:] += moment + np.cross(tip - x["xipos_hand"], force)


def _update_temperature(x: dict[str, Any]) -> None:
    """Update temperatures by the heat of one tick: drives, housing, air."""
    ambient, speed_up = x["ambient"]
    power = x["loss"] + x["copper"] * x["command"] ** 2
    flow = x["conductance"] * (x["temperature"] - x["housing"])
    outward = x["conductance_ambient"] * (x["housing"] - ambient)
    x["temperature"] += TICK_S * speed_up * (power - flow) / x["heat_capacity"]
    x["housing"] += TICK_S * speed_up * (flow - outward) / x["heat_capacity_housing"]
