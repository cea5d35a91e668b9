"""Friction functions in C: statements of the traced model, joint by joint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taufit.export.c.friction_program import FrictionProgram, friction_program
from taufit.export.c.smooth_friction import input_lines, sum_expression
from taufit.export.friction_parts import term_places
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
    joints = np.ones((model.robot.joints, 1))
    shares = {
        "friction": joints * dissipative,
        "compensated": joints * dissipative * (1.0 - 0.5 * drag),
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
    outputs = {"tau": np.ones((model.robot.joints, 1)), **(shares or {})}
    lines = [signature, "  (void)q, (void)v, (void)rigid, (void)temperature;"]
    totals = {name: [f"offset[{i}]" if name == "tau" else "" for i in range(model.robot.joints)]
              for name in outputs}  # fmt: skip
    for place in term_places(model, friction):
        arrays = {
            name: place.label if name == "tau" else f"{name}_{place.label}" for name in outputs
        }
        lines += [f"  double {array}[N];" for array in arrays.values()]
        for i in range(model.robot.joints):
            lines += ["  {", *input_lines(place, i)]
            program = friction_program(place.term.of_joint(i), place.shape[i])
            pairs = zip(place.coefficients[i], program.columns, strict=True)
            used = [column for c, column in pairs if c]
            lines += [f"    {line}" for line in _statements(program, i, used)]
            for name, share in outputs.items():
                part = share if name == "tau" else share[:, place.columns]
                factors = (place.coefficients * part)[i]
                terms = zip(factors, program.columns, strict=True)
                total = " + ".join(f"{float(c)!r} * {column}" for c, column in terms if c) or "0.0"
                lines.append(f"    {arrays[name]}[{i}] = {total};")
            lines.append("  }")
        for name, array in arrays.items():
            for i, sums in enumerate(totals[name]):
                parts = [sums, sum_expression(place.reach[:, i], array)]
                totals[name][i] = " + ".join(filter(None, parts))
    lines += [f"  {name}[{i}] = {text or '0.0'};" for name, texts in totals.items()
              for i, text in enumerate(texts)]  # fmt: skip
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
