"""Texts of source, headers and CMake target of a model."""

from __future__ import annotations

import re

from taufit.core.dataclasses import dataclass
from taufit.core.names import c_comment, c_header
from taufit.export.c.friction import (
    friction_functions,
    friction_parts_function,
    memory_entries,
)
from taufit.export.c.names import c_name, read_template, set_prefix
from taufit.export.c.smooth_friction import SMOOTH_WIDTH, smooth_friction_function
from taufit.export.c.tables import contact_noise, tables
from taufit.model.fitted_model import FittedModel
from taufit.terms import needs

# Friction that follows the load has the gradient of the load.
_LOAD_SLOPES = """\
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++) {
        /* dq, dv, da of the links alone; rotors are no load. */
        by_q[N * i + k] += by_load[N * i + j] * dq[N * j + k];
        by_v[N * i + k] += by_load[N * i + j] * dv[N * j + k];
        by_a[N * i + k] += by_load[N * i + j] * (da[N * j + k] - rotor[N * j + k]);
      }
  for (int k = 0; k < N * N; k++) da[k] += by_a[k];"""


# A serial arm has one link per joint, behind the one before it.
_CHAIN = {
    "BODIES": "#define B N\n#define BEFORE(i) ((i) - 1)\n#define ROTOR(i, k) rotor[N * (i) + (k)]",
    "BINDING": """\
#define links_posed bodies_posed
#define composite_mass bodies_mass

static void poses(const double *q, double r[B][9], double p[B][3]) {
  for (int i = 0; i < B; i++) pose(i, q[i], r[i], p[i]);
}""",
    "GRADIENT": "#define links_gradient bodies_gradient",
}


@dataclass(frozen=True, slots=True)
class CTexts:
    """C texts of a model.

    Attributes:
        source: C99 source.
        header: Header for C and C++.
        cpp_header: C++11 class.
        cmake: CMake target.
    """

    source: str
    header: str
    cpp_header: str
    cmake: str


def c_texts(model: FittedModel, stem: str | None = None) -> CTexts:
    """All texts, for files named `stem` with the suffixes .c, .h, .hpp and .cmake."""
    name = c_name(model)
    robot = model.robot
    entries = memory_entries(model)
    typical_temperatures = ", ".join(f"{t:.4g}" for t in model.typical_temperature)
    uses_temperature = needs(model.term_sum, "temperature")
    marks = {
        "FILE": c_header(f"{stem or name}.h").removesuffix(".h"),
        "TITLE": c_comment(robot.name),
        "ORIGIN": c_comment(robot.source or "no source given"),
        "JOINTS": str(robot.joints),
        "LINKS": str(robot.bodies),
        "MEMORY": f"  double memory[{name.upper()}_JOINTS][{entries}];" if entries else "",
        "TEMPERATURE": f"then {typical_temperatures}"
        if uses_temperature
        else "this model does not read it",
        "TABLES": tables(model),
        "STATES": _states(model),
        "FRICTION": set_prefix(friction_functions(model), name),
        "WIDTH": f"{SMOOTH_WIDTH:g}",
        "SMOOTH": smooth_friction_function(model),
        "LOADED": _LOAD_SLOPES if needs(model.term_sum, "load") else "  (void)by_load;",
        "PARTS": set_prefix(friction_parts_function(model), name),
        **_CHAIN,
    }
    if robot.is_tree:
        sizes = f"#define B {robot.bodies}\n#define BEFORE(i) parent[i]\n#define ROTOR(i, k) 0.0"
        marks |= {"BODIES": sizes, "BINDING": read_template("tree_binding.c"), "GRADIENT": ""}

    def fill_template(file: str) -> str:
        text = set_prefix(read_template(file), name)
        # In one pass: inserted text may look like a mark itself.
        return re.sub("@([A-Z]+)@\n?", lambda match: _line(marks[match[1]], match[0]), text)

    source, *later_texts = (
        "".join(fill_template(part) for part in parts)
        for parts in (
            ("arm.c", "gradient.c", "tree.c" if robot.is_tree else "chain.c", "controller.c"),
            ("arm.h",),
            ("arm.hpp",),
            ("arm.cmake",),
        )
    )
    return CTexts(source, *later_texts)


def _states(model: FittedModel) -> str:
    """Origin of the contact thresholds, for a comment."""
    noise = contact_noise(model)
    if noise.runs:
        return f"learnt from {noise.runs} contact-free recordings"
    if noise.seconds.any():
        return "learnt from the training; give contact-free recordings for more"
    return "taken from the size of friction; give contact-free recordings"


def _line(text: str, mark: str) -> str:
    """Text for a mark; an empty text for a mark alone on its line removes the line."""
    return text + ("\n" if mark.endswith("\n") and text else "")
