"""Friction functions in C: statements of the traced model, joint by joint."""

from __future__ import annotations

import numpy as np

from taufit.export.c.friction_program import FrictionProgram, friction_program
from taufit.export.friction_parts import friction_coefficients
from taufit.model.fitted_model import FittedModel
from taufit.terms import Term, has_memory


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


def _function(model: FittedModel, signature: str, friction: Term) -> str:
    coefficients = friction_coefficients(model)
    coupling = model.robot.drives.coupling
    # v_m = C v and tau = C' tau_m, so a motor carries C^-T tau.
    to_motors = np.linalg.inv(coupling).T
    lines = [signature, "  double motor[N];", "  (void)q, (void)v, (void)rigid, (void)temperature;"]
    for i in range(model.robot.joints):
        inputs = {
            "velocity": _sum(coupling[i], "v"),
            "position": _sum(coupling[i], "q"),
            "load": _sum(to_motors[i], "rigid"),
            "degrees": f"temperature ? temperature[{i}] : usual_temperature[{i}]",
        }
        lines.append("  {")
        for name, text in inputs.items():
            lines += [f"    const double {name} = {text};", f"    (void){name};"]
        program = friction_program(friction.of_joint(i), model.joint_shape[i])
        pairs = zip(coefficients[i], program.columns, strict=True)
        used = [(float(c), column) for c, column in pairs if c != 0.0]
        lines += [f"    {line}" for line in _statements(program, i, [name for _, name in used])]
        total = " + ".join(f"{c!r} * {name}" for c, name in used) or "0.0"
        lines += [f"    motor[{i}] = {total};", "  }"]
    lines += [
        f"  tau[{i}] = offset[{i}] + {_sum(coupling[:, i], 'motor')};" for i in range(len(coupling))
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


def _sum(factors: np.ndarray, array: str) -> str:
    """C expression of factors . array, without zeros and unit factors."""
    return " + ".join(
        f"{array}[{k}]" if c == 1.0 else f"{float(c)!r} * {array}[{k}]"
        for k, c in enumerate(factors)
        if c != 0.0
    )
