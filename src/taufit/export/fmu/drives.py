"""Friction of the drives in forward dynamics, as C: steady friction, ripple, slow parts."""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import InfeasibleError
from taufit.dynamics import inverse_dynamics, mass_matrix
from taufit.export.c.friction_program import friction_program
from taufit.export.c.tables import table, vector
from taufit.export.friction_parts import friction_coefficients, offsets
from taufit.model.fitted_model import FittedModel
from taufit.terms import (
    CONSERVATIVE,
    DISSIPATIVE,
    MEMORY,
    TermInput,
    has_memory,
    steady_friction_model,
)

# Maximum step of the integration in forward.c [s].
STEP_S = 1e-3


def drive_tables(model: FittedModel) -> str:
    """Constants of forward.c."""
    coupling = model.robot.drives.coupling
    rotor = model.layout.split(model.values).rotors
    slow, widths = slow_parts(model)
    return "\n".join(
        [
            vector("coupling", coupling),
            # v_m = C v and tau = C' tau_m, so a motor carries C^-T tau.
            vector("to_motors", np.linalg.inv(coupling).T),
            vector("rotor", coupling.T @ np.diag(rotor) @ coupling),
            vector("offset", offsets(model)),
            f"#define SLOW {len(widths)}",
            vector("slow_width", widths),
            table("slow_torque", slow, len(widths)),
        ]
    )


def slow_parts(model: FittedModel) -> tuple[Float[Array, "j e"], Float[Array, " e"]]:
    """Torques and widths of slow friction parts; one of zero torque if there is none."""
    if not has_memory(model.term_sum):
        return np.zeros((model.robot.joints, 1)), np.ones(1)
    widths = model.term_sum.memory[1:]
    memory_columns = [k for k, term in enumerate(model.term_sum.parameters) if term.group == MEMORY]
    if not memory_columns:
        return np.zeros((model.robot.joints, 1)), np.ones(1)
    return friction_coefficients(model)[:, memory_columns], np.array(widths)


def drive_functions(model: FittedModel) -> str:
    """C functions `level` (steady friction at each motor) and `ripple` (by motor angle)."""
    steady = (
        "/* Friction of steady motion at each motor. */\n"
        "static void level(const double *speed, const double *carried, const double *temperature,\n"
        "                  double *motor) {\n  (void)temperature;"
    )
    ripple = (
        "/* Torque that comes back at the same angle of a motor. */\n"
        "static void ripple(const double *at, const double *temperature, double *motor) {\n"
        "  (void)at, (void)temperature;"
    )
    return f"{steady}\n{_body(model, waves=False)}\n}}\n\n{ripple}\n{_body(model, waves=True)}\n}}"


def _body(model: FittedModel, *, waves: bool) -> str:
    coefficients = friction_coefficients(model)
    term = model.term_sum
    wanted_kind = CONSERVATIVE if waves else DISSIPATIVE
    selected = [k for k, kind in enumerate(term.kinds) if kind == wanted_kind]
    # Friction without memory.
    term = term.only(CONSERVATIVE) if waves else steady_friction_model(term)
    inputs = (
        {"position": "at[{0}]"} if waves else {"velocity": "speed[{0}]", "load": "carried[{0}]"}
    )
    lines = []
    for i in range(model.robot.joints):
        program = friction_program(term.of_joint(i), model.joint_shape[i])
        columns = program.columns or ["0.0"] * len(term.parameters)
        used = [(float(coefficients[i, k]), columns[k]) for k in selected if coefficients[i, k]]
        lines.append("  {")
        degrees = f"temperature ? temperature[{i}] : 0.0"
        for name, text in {**inputs, "degrees": degrees}.items():
            lines += [f"    const double {name} = {text.format(i)};", f"    (void){name};"]
        lines += [f"    {line}" for line in program.statements_for([name for _, name in used])]
        total = " + ".join(f"{c!r} * {name}" for c, name in used) or "0.0"
        lines += [f"    motor[{i}] = {total};", "  }"]
    return "\n".join(lines)


def presliding(model: FittedModel, poses: int = 41) -> Float[Array, " j"]:
    """Displacement over which friction reverses: that of the model, or the smallest stable one.

    A reversal of friction F along w is a spring of stiffness F / w; with the inertia M of a motor,
    steps of h are stable if h^2 F / (w M) is at most 1/4.
    """
    robot, rng = model.robot, np.random.default_rng(0)
    joints = robot.joints
    half_turn = np.full(joints, np.pi)
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -half_turn)
    upper = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, half_turn)
    top_speed = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, half_turn)
    q = lower + (upper - lower) * rng.uniform(size=(poses, joints))
    v = 0.5 * top_speed * rng.uniform(-1.0, 1.0, (poses, joints))
    a = 4.0 * rng.uniform(-1.0, 1.0, (poses, joints))
    coupling = robot.drives.coupling
    rotor = coupling.T @ np.diag(model.layout.split(model.values).rotors) @ coupling
    mass = mass_matrix(robot, q) + rotor
    require_movable(model, mass)
    inverse = np.linalg.inv(mass)
    motor_inertia = (1.0 / np.einsum("ki,nij,kj->nk", coupling, inverse, coupling)).min(0)
    load = 1.5 * np.abs(inverse_dynamics(robot, q, v, a)).max(0) + 1.0
    floor = 4.0 * _largest_friction(model, 0.02 * top_speed, load) * STEP_S**2 / motor_inertia
    model_width = model.term_sum.memory[0] if has_memory(model.term_sum) else 0.0
    return np.maximum(np.maximum(floor, model_width), 1e-9)


def require_movable(model: FittedModel, mass: Float[Array, "n j j"]) -> None:
    """InfeasibleError for a joint without inertia."""
    if not np.all(np.isfinite(mass)):
        raise InfeasibleError("the inertia of this arm is not finite, so it cannot be simulated.")
    values, vectors = np.linalg.eigh(mass)
    worst = int(np.argmin(values[:, 0] / np.maximum(values[:, -1], 1e-3)))
    if values[worst, 0] < 1e-10 * max(float(values[worst, -1]), 1e-3):
        joint = model.robot.joint_names[int(np.abs(vectors[worst, :, 0]).argmax())]
        raise InfeasibleError(
            f"{joint} has no inertia to move: its links are too thin about the axis and it has no "
            "rotor inertia. Forward dynamics needs a physically consistent fit "
            "(--estimator consistent_sdp); --kind inverse does not."
        )


def _largest_friction(
    model: FittedModel, speed: Float[Array, " j"], load: Float[Array, " j"]
) -> Float[Array, " j"]:
    """Largest friction per motor between standstill and a low speed, without and with load."""
    steady = steady_friction_model(model.term_sum)
    largest = np.zeros(model.robot.joints)
    for j, coefficients in enumerate(friction_coefficients(model)):
        grid = np.concatenate([s * np.linspace(1e-9, speed[j], 20) for s in (-1.0, 1.0)])
        zeros, temperature = np.zeros_like(grid), np.full_like(grid, model.typical_temperature[j])
        for motor_load in (0.0, load[j]):
            inputs = TermInput(grid, zeros, zeros + motor_load, temperature, zeros)
            torque = np.sign(grid) * (steady.columns(inputs, model.joint_shape[j]) @ coefficients)
            largest[j] = max(largest[j], float(torque.max()))
    return largest
