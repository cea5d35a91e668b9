"""Friction functions in C: statements of the traced model, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taufit.export.c.friction_program import FrictionProgram, friction_program
from taufit.export.c.smooth_friction import sum_expression
from taufit.export.friction_parts import friction_coefficients
from taufit.model.fitted_model import FittedModel
from taufit.terms import DISSIPATIVE, DRAG, Term, has_memory


def memory_entries(model: FittedModel) -> int:
    """Number of friction states per joint."""
    if not has_memory(model.term_sum):
        return 0
    return len(friction_program(model.term_sum.of_joint(0), model.joint_shape[0]).memory)


def friction_functions(model: FittedModel) -> str:
    """C functions arm_friction (steady-state if friction has memory) and arm_friction_step."""
    steady_signature = (
        "void arm_friction(const double *q, const double *v, const double *rigid,\n"
        "                  const double *temperature, double *tau) {"
    )
    step_signature = (
        "void arm_friction_step(arm_state *state, const double *q, const double *v,\n"
        "                       const double *rigid, const double *temperature, double dt,\n"
        "                       double *tau) {"
    )
    if not has_memory(model.term_sum):
        call = (
            "  (void)dt;\n  state->started = 1;\n  arm_friction(q, v, rigid, temperature, tau);\n}"
        )
        return _function(model, steady_signature, model.term_sum) + f"\n\n{step_signature}\n{call}"
    return "\n\n".join(
        [
            _function(model, steady_signature, model.term_sum.steady_state()),
            _function(model, step_signature, model.term_sum),
        ]
    )


def friction_parts_function(model: FittedModel) -> str:
    """C function `friction_parts`: all terms with offset, dissipative ones, compensated ones.

    Compensated are dissipative terms with half of the viscous friction: a hand that guides the arm
    is hardly relieved less, and the arm cannot run away.
    """
    signature = (
        "static void friction_parts(arm_state *state, const double *q, const double *v,\n"
        "                           const double *rigid, const double *temperature, double dt,\n"
        "                           double *tau, double *friction, double *compensated) {"
    )
    entries = model.layout.drive_entries
    dissipative = np.array([entry.kind == DISSIPATIVE for entry in entries], float)
    drag = np.array([entry.parameter.group == DRAG for entry in entries], float)
    coefficients = friction_coefficients(model)
    shares = {
        "friction": coefficients * dissipative,
        "compensated": coefficients * dissipative * (1.0 - 0.5 * drag),
    }
    text = _function(model, signature, model.term_sum, shares)
    if not has_memory(model.term_sum):
        text = text.removesuffix("}") + "  (void)dt;\n  state->started = 1;\n}"
    return text


def _function(
    model: FittedModel,
    signature: str,
    friction: Term,
    shares: Mapping[str, np.ndarray] | None = None,
) -> str:
    coefficients = friction_coefficients(model)
    coupling = model.robot.drives.coupling
    outputs = {"tau": coefficients, **(shares or {})}
    # v_m = C v and tau = C' tau_m, so a motor carries C^-T tau.
    to_motors = np.linalg.inv(coupling).T
    motors = {name: "motor" if name == "tau" else f"{name}_motor" for name in outputs}
    lines = [signature, *(f"  double {motor}[N];" for motor in motors.values()),
             "  (void)q, (void)v, (void)rigid, (void)temperature;"]  # fmt: skip
    for i in range(model.robot.joints):
        inputs = {
            "velocity": sum_expression(coupling[i], "v"),
            "position": sum_expression(coupling[i], "q"),
            "load": sum_expression(to_motors[i], "rigid"),
            "degrees": f"temperature ? temperature[{i}] : usual_temperature[{i}]",
        }
        lines.append("  {")
        for name, text in inputs.items():
            lines += [f"    const double {name} = {text};", f"    (void){name};"]
        program = friction_program(friction.of_joint(i), model.joint_shape[i])
        used = [column for c, column in zip(coefficients[i], program.columns, strict=True) if c]
        lines += [f"    {line}" for line in _statements(program, i, used)]
        for name, factors in outputs.items():
            pairs = zip(factors[i], program.columns, strict=True)
            total = " + ".join(f"{float(c)!r} * {column}" for c, column in pairs if c) or "0.0"
            lines.append(f"    {motors[name]}[{i}] = {total};")
        lines.append("  }")
    for name, motor in motors.items():
        constant = "offset[{}] + " if name == "tau" else ""
        lines += [
            f"  {name}[{i}] = {constant.format(i)}{sum_expression(coupling[:, i], motor)};"
            for i in range(len(coupling))
        ]
    if has_memory(friction):
        lines.append("  state->started = 1;")
    lines.append("}")
    return "\n".join(lines)


def _statements(program: FrictionProgram, joint: int, columns: list[str]) -> list[str]:
    """Statements of the columns, between reading and writing the friction state of the joint."""
    if not program.memory:
        return program.statements_for(columns)
    joint_memory = f"state->memory[{joint}]"
    read = [
        f"const double m{k} = state->started ? {joint_memory}[{k}] : "
        f"{'travel' if first is None else repr(float(first))};"
        for k, first in enumerate(program.start)
    ]
    body = program.statements_for([*columns, *program.memory])
    write = [f"{joint_memory}[{k}] = {name};" for k, name in enumerate(program.memory)]
    return ["const double travel = velocity * dt;", *read, *body, *write]
