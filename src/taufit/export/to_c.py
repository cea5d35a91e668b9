"""The fitted arm as plain C99: no allocation, no library but libm, constants in tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from taufit.export.friction_parts import friction_coefficients, offsets
from taufit.export.traced import FrictionProgram, friction_program
from taufit.friction import FrictionModel, remembers
from taufit.model.fitted_model import FittedModel
from taufit.names import c_comment, c_header
from taufit.parameters import PER_LINK


def c_name(model: FittedModel) -> str:
    """The robot's name as a C identifier: the prefix of every function."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", model.robot.name[:60]).strip("_").lower() or "arm"
    return f"arm_{name}" if name[0].isdigit() else name


def to_c(model: FittedModel, header_name: str | None = None) -> tuple[str, str, tuple[str, ...]]:
    """C source, its header, and what of the model it could not hold.

    Functions, all with the prefix of the robot's name: inverse_dynamics (rigid links and rotors),
    gravity, friction (with offset), torque (everything), regressor (links; row-major n x 10 n).
    Friction that remembers its path has friction_step and torque_step besides, which take the
    caller's memory and the time since the last call; friction and torque are then those of steady
    motion.
    """
    robot = model.robot
    name = c_name(model)
    n = robot.joints
    rotor = model.values[model.layout.rotors] if model.rotor_inertia else robot.rotor_inertias
    coupling = robot.drives.coupling
    tables = "\n".join(
        [
            _table("placement_r", (link.placement[:3, :3].ravel() for link in robot.links), 9),
            _table("placement_p", (link.placement[:3, 3] for link in robot.links), 3),
            _table("screw", (link.screw for link in robot.links), 6),
            _table("link", (link.parameters for link in robot.links), PER_LINK),
            _vector("rotor", coupling.T @ np.diag(rotor) @ coupling),
            _vector("offset", offsets(model)),
            _vector("base_gravity", robot.gravity),
        ]
    )
    upper = name.upper()
    entries = 0
    if model.friction is not None and remembers(model.friction):
        entries = len(friction_program(model.friction, model.joint_shape[0]).memory)
    origin = c_comment(robot.source or "a fitted model")
    stepping = _STEPPING.format(name=name, upper=upper, entries=entries) if entries else ""
    header = _HEADER.format(name=name, upper=upper, n=n, source=origin, stepping=stepping)
    source = _SOURCE.format(
        header=c_header(header_name or f"{name}.h"),
        name=name,
        upper=upper,
        tables=tables,
        friction=_friction(model, name, upper),
        stepping=_STEPPING_SOURCE.format(name=name) if entries else "",
    )
    return source, header, ()


def _table(name: str, rows: Iterable[np.ndarray], width: int) -> str:
    """A constant of the C file: one row per link."""
    text = [_row(row) for row in rows]
    inner = ",\n  ".join(f"{{{row}}}" for row in text)
    return f"static const double {name}[{len(text)}][{width}] = {{\n  {inner}}};"


def _vector(name: str, values: np.ndarray) -> str:
    return f"static const double {name}[{values.size}] = {{{_row(values)}}};"


def _row(values: np.ndarray) -> str:
    return ", ".join(repr(float(x) + 0.0) for x in np.asarray(values, float).ravel())


def _friction(model: FittedModel, name: str, upper: str) -> str:
    """The friction of steady motion; behind it, where friction has memory, one step of it."""
    steady = (
        f"void {name}_friction(const double *velocity, const double *rigid, "
        "const double *joint_temperature, double *tau) {"
    )
    friction = model.friction
    texts = [_friction_function(model, steady, upper, friction and friction.steady())]
    if remembers(friction):
        stepping = (
            f"void {name}_friction_step({name}_memory *memory, const double *velocity, "
            "const double *rigid, const double *joint_temperature, double dt, double *tau) {"
        )
        texts.append(_friction_function(model, stepping, upper, friction))
    return "\n\n".join(texts)


def _friction_function(
    model: FittedModel, signature: str, upper: str, friction: FrictionModel | None
) -> str:
    coefficients = friction_coefficients(model)
    coupling = model.robot.drives.coupling
    # v_m = C v and tau = C' tau_m, so a motor carries C^-T tau.
    to_motors = np.linalg.inv(coupling).T
    lines = [
        signature,
        f"  double motor[{upper}_JOINTS];",
        f"  for (int i = 0; i < {upper}_JOINTS; i++) tau[i] = offset[i];",
    ]
    for i in range(model.robot.joints):
        lines.append("  {")
        lines.append(f"    const double v = {_sum(coupling[i], 'velocity')};")
        lines.append(f"    const double load = {_sum(to_motors[i], 'rigid')};")
        lines.append(
            f"    const double temperature = joint_temperature ? joint_temperature[{i}] : 25.0;"
        )
        lines.append("    (void)v; (void)load; (void)temperature;")
        columns: list[str] = []
        if friction is not None:
            program = friction_program(friction, model.joint_shape[i])
            columns = program.columns
            lines += [f"    {line}" for line in _with_memory(program, i)]
        total = " + ".join(
            f"{float(c)!r} * {column}"
            for c, column in zip(coefficients[i], columns, strict=True)
            if c != 0.0
        )
        lines.append(f"    motor[{i}] = {total or '0.0'};")
        lines.append("  }")
    lines += [f"  tau[{i}] += {_sum(coupling[:, i], 'motor')};" for i in range(len(coupling))]
    if remembers(friction):
        lines.append("  memory->started = 1;")
    lines.append("}")
    return "\n".join(lines)


def _with_memory(program: FrictionProgram, joint: int) -> list[str]:
    """The statements between reading the joint's memory and writing it."""
    if not program.memory:
        return program.statements
    own = f"memory->values[{joint}]"
    read = [
        f"const double m{k} = memory->started ? {own}[{k}] : "
        f"{'travel' if first is None else repr(float(first))};"
        for k, first in enumerate(program.start)
    ]
    write = [f"{own}[{k}] = {name};" for k, name in enumerate(program.memory)]
    return ["const double travel = v * dt;", *read, *program.statements, *write]


def _sum(factors: np.ndarray, array: str) -> str:
    """factors . array as C, without the zeros and ones."""
    return " + ".join(
        f"{array}[{k}]" if c == 1.0 else f"{float(c)!r} * {array}[{k}]"
        for k, c in enumerate(factors)
        if c != 0.0
    )


_HEADER = """\
/* Inverse dynamics of {name}, from: {source}.
   SI units; arrays hold one value per joint. No function allocates or keeps state of its own. */
#ifndef {upper}_DYNAMICS_H
#define {upper}_DYNAMICS_H

#define {upper}_JOINTS {n}

#ifdef __cplusplus
extern "C" {{
#endif

/* Torque of the links and rotors alone. */
void {name}_inverse_dynamics(const double *q, const double *v, const double *a, double *tau);
/* Torque that holds the arm still, without friction. */
void {name}_gravity(const double *q, double *tau);
/* Friction and offset. `rigid` is the torque of the links alone, for models whose friction
   follows the load; `joint_temperature` in degrees Celsius may be NULL (25 degrees). */
void {name}_friction(const double *v, const double *rigid, const double *joint_temperature,
                     double *tau);
/* Everything: links, rotors, friction, offset. */
void {name}_torque(const double *q, const double *v, const double *a,
                   const double *joint_temperature, double *tau);
/* Row-major JOINTS x 10 JOINTS matrix Y; Y times the link parameters (m, hx, hy, hz, Ixx, Ixy, Iyy,
   Ixz, Iyz, Izz per link) is the torque of the links. */
void {name}_regressor(const double *q, const double *v, const double *a, double *y);
{stepping}
#ifdef __cplusplus
}}
#endif
#endif
"""

_STEPPING = """
/* Friction here remembers the path of the joints. Keep one memory per arm, all zero to begin with
   (memset), and call these once per sample, `dt` seconds apart; {name}_friction and {name}_torque
   give the friction of steady motion. */
typedef struct {{
  double values[{upper}_JOINTS][{entries}];
  int started;
}} {name}_memory;
void {name}_friction_step({name}_memory *memory, const double *v, const double *rigid,
                          const double *joint_temperature, double dt, double *tau);
void {name}_torque_step({name}_memory *memory, const double *q, const double *v, const double *a,
                        const double *joint_temperature, double dt, double *tau);
"""

_STEPPING_SOURCE = """
void {name}_torque_step({name}_memory *memory, const double *q, const double *v, const double *a,
                        const double *joint_temperature, double dt, double *tau) {{
  double rigid[N];
  links(q, v, a, rigid);
  {name}_friction_step(memory, v, rigid, joint_temperature, dt, tau);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
}}
"""

_SOURCE = """\
/* Generated by taufit; see the header for what each function does. */
#include "{header}"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define N {upper}_JOINTS

{tables}

static void cross(const double *a, const double *b, double *c) {{
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}}

/* Pose of link i in the one before it: its placement times exp(screw * q). */
static void pose(int i, double q, double *r, double *p) {{
  const double *w = screw[i], *u = screw[i] + 3, *m = placement_r[i];
  double e[9], d[3], wxu[3], wxwxu[3];
  if (w[0] == 0.0 && w[1] == 0.0 && w[2] == 0.0) {{
    static const double identity[9] = {{1, 0, 0, 0, 1, 0, 0, 0, 1}};
    memcpy(e, identity, sizeof e);
    for (int k = 0; k < 3; k++) d[k] = q * u[k];
  }} else {{
    const double s = sin(q), c = 1.0 - cos(q), pitch = w[0] * u[0] + w[1] * u[1] + w[2] * u[2];
    const double hat[9] = {{0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0}};
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++)
        e[3 * j + k] = (j == k) * (1.0 - c) + s * hat[3 * j + k] + c * w[j] * w[k];
    cross(w, u, wxu);
    cross(w, wxu, wxwxu);
    for (int k = 0; k < 3; k++) d[k] = c * wxu[k] - s * wxwxu[k] + q * pitch * w[k];
  }}
  for (int j = 0; j < 3; j++) {{
    p[j] = placement_p[i][j];
    for (int k = 0; k < 3; k++) {{
      p[j] += m[3 * j + k] * d[k];
      r[3 * j + k] = m[3 * j] * e[k] + m[3 * j + 1] * e[3 + k] + m[3 * j + 2] * e[6 + k];
    }}
  }}
}}

/* A twist of the previous frame seen from the child frame. */
static void to_child(const double *r, const double *p, const double *x, double *y) {{
  double pxw[3], l[3];
  cross(p, x, pxw);
  for (int k = 0; k < 3; k++) l[k] = x[3 + k] - pxw[k];
  for (int k = 0; k < 3; k++) {{
    y[k] = r[k] * x[0] + r[3 + k] * x[1] + r[6 + k] * x[2];
    y[3 + k] = r[k] * l[0] + r[3 + k] * l[1] + r[6 + k] * l[2];
  }}
}}

/* The wrench (moment; force) a link needs, per unit of each of its ten parameters. */
static void wrench_columns(const double *twist, const double *acc6, double out[6][10]) {{
  const double *w = twist, *al = acc6;
  double f[3];
  cross(w, twist + 3, f);
  for (int k = 0; k < 3; k++) f[k] += acc6[3 + k];
  const double ww = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
  const double ha[9] = {{0, -al[2], al[1], al[2], 0, -al[0], -al[1], al[0], 0}};
  const double hf[9] = {{0, -f[2], f[1], f[2], 0, -f[0], -f[1], f[0], 0}};
  memset(out, 0, sizeof(double) * 60);
  for (int j = 0; j < 3; j++) {{
    out[3 + j][0] = f[j];
    for (int k = 0; k < 3; k++) {{
      out[3 + j][1 + k] = ha[3 * j + k] + w[j] * w[k] - (j == k) * ww;
      out[j][1 + k] = -hf[3 * j + k];
    }}
  }}
  static const int row[6] = {{0, 0, 1, 0, 1, 2}}, column[6] = {{0, 1, 1, 2, 2, 2}};
  for (int c = 0; c < 6; c++) {{
    double iw[3] = {{0, 0, 0}}, ia[3] = {{0, 0, 0}}, g[3];
    iw[row[c]] += w[column[c]];
    ia[row[c]] += al[column[c]];
    if (row[c] != column[c]) {{
      iw[column[c]] += w[row[c]];
      ia[column[c]] += al[row[c]];
    }}
    cross(w, iw, g);
    for (int k = 0; k < 3; k++) out[k][4 + c] = ia[k] + g[k];
  }}
}}

static void motion(const double *q, const double *v, const double *a, double r[N][9],
                   double p[N][3], double twist[N][6], double acc[N][6]) {{
  double base_twist[6] = {{0}}, base_acc[6] = {{0}};
  for (int k = 0; k < 3; k++) base_acc[3 + k] = -base_gravity[k];
  for (int i = 0; i < N; i++) {{
    double step[6], b[3], c[3];
    pose(i, q[i], r[i], p[i]);
    to_child(r[i], p[i], i ? twist[i - 1] : base_twist, twist[i]);
    to_child(r[i], p[i], i ? acc[i - 1] : base_acc, acc[i]);
    for (int k = 0; k < 6; k++) step[k] = v ? screw[i][k] * v[i] : 0.0;
    cross(twist[i], step, b);
    for (int k = 0; k < 3; k++) acc[i][k] += b[k];
    cross(twist[i] + 3, step, b);
    cross(twist[i], step + 3, c);
    for (int k = 0; k < 3; k++) acc[i][3 + k] += b[k] + c[k];
    for (int k = 0; k < 6; k++) {{
      acc[i][k] += a ? screw[i][k] * a[i] : 0.0;
      twist[i][k] += step[k];
    }}
  }}
}}

static void links(const double *q, const double *v, const double *a, double *tau) {{
  double r[N][9], p[N][3], twist[N][6], acc[N][6], wrench[6] = {{0}};
  motion(q, v, a, r, p, twist, acc);
  for (int i = N - 1; i >= 0; i--) {{
    double columns[6][10], f[3], m[3], c[3];
    wrench_columns(twist[i], acc[i], columns);
    tau[i] = 0.0;
    for (int k = 0; k < 6; k++) {{
      for (int j = 0; j < 10; j++) wrench[k] += columns[k][j] * link[i][j];
      tau[i] += wrench[k] * screw[i][k];
    }}
    for (int k = 0; k < 3; k++) {{
      m[k] = r[i][3 * k] * wrench[0] + r[i][3 * k + 1] * wrench[1] + r[i][3 * k + 2] * wrench[2];
      f[k] = r[i][3 * k] * wrench[3] + r[i][3 * k + 1] * wrench[4] + r[i][3 * k + 2] * wrench[5];
    }}
    cross(p[i], f, c);
    for (int k = 0; k < 3; k++) {{
      wrench[k] = m[k] + c[k];
      wrench[3 + k] = f[k];
    }}
  }}
}}

static void add_rotors(const double *a, double *tau) {{
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) tau[i] += rotor[N * i + k] * a[k];
}}

void {name}_inverse_dynamics(const double *q, const double *v, const double *a, double *tau) {{
  links(q, v, a, tau);
  add_rotors(a, tau);
}}

void {name}_gravity(const double *q, double *tau) {{ links(q, NULL, NULL, tau); }}

{friction}

void {name}_torque(const double *q, const double *v, const double *a,
                   const double *joint_temperature, double *tau) {{
  double rigid[N];
  links(q, v, a, rigid);
  {name}_friction(v, rigid, joint_temperature, tau);
  for (int i = 0; i < N; i++) tau[i] += rigid[i];
  add_rotors(a, tau);
}}
{stepping}
void {name}_regressor(const double *q, const double *v, const double *a, double *y) {{
  double r[N][9], p[N][3], twist[N][6], acc[N][6], carried[N][6];
  motion(q, v, a, r, p, twist, acc);
  memset(y, 0, sizeof(double) * N * 10 * N);
  for (int b = 0; b < N; b++) {{
    double columns[6][10];
    for (int i = 0; i < b; i++) {{
      double moved[6];
      to_child(r[b], p[b], carried[i], moved);
      memcpy(carried[i], moved, sizeof moved);
    }}
    memcpy(carried[b], screw[b], sizeof carried[b]);
    wrench_columns(twist[b], acc[b], columns);
    for (int i = 0; i <= b; i++)
      for (int c = 0; c < 10; c++)
        for (int k = 0; k < 6; k++) y[i * 10 * N + 10 * b + c] += carried[i][k] * columns[k][c];
  }}
}}
"""
