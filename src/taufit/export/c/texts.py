"""Source, headers and CMake target of one model, as texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from taufit.core.names import c_comment, c_header
from taufit.export.c.friction import friction_functions, memory_entries
from taufit.export.c.names import c_name, renamed, template
from taufit.export.c.tables import noise_of, tables
from taufit.model.fitted_model import FittedModel
from taufit.terms import needs


@dataclass(frozen=True, slots=True)
class CTexts:
    """The model in C.

    Attributes:
        source: C99.
        header: Declares it, for C and C++.
        cpp_header: The same as a class, C++11.
        cmake: A target of it.
    """

    source: str
    header: str
    cpp_header: str
    cmake: str


def c_texts(model: FittedModel, stem: str | None = None) -> CTexts:
    """All texts, for files called `stem` with the endings .c, .h, .hpp and .cmake."""
    name = c_name(model)
    robot = model.robot
    entries = memory_entries(model)
    usual = ", ".join(f"{t:.4g}" for t in model.typical_temperature)
    used = needs(model.term_sum, "temperature")
    marks = {
        "FILE": c_header(f"{stem or name}.h").removesuffix(".h"),
        "TITLE": c_comment(robot.name),
        "ORIGIN": c_comment(robot.source or "no source given"),
        "JOINTS": str(robot.joints),
        "MEMORY": f"  double memory[{name.upper()}_JOINTS][{entries}];" if entries else "",
        "TEMPERATURE": f"then {usual}" if used else "this model does not read it",
        "TABLES": tables(model),
        "STATES": _states(model),
        "FRICTION": renamed(friction_functions(model), name),
    }

    def filled(file: str) -> str:
        text = renamed(template(file), name)
        # In one go: what is filled in may look like a mark itself.
        return re.sub("@([A-Z]+)@\n?", lambda found: _line(marks[found[1]], found[0]), text)

    return CTexts(*(filled(file) for file in ("arm.c", "arm.h", "arm.hpp", "arm.cmake")))


def _states(model: FittedModel) -> str:
    """What the thresholds rest on, in words."""
    noise = noise_of(model)
    if noise.runs:
        return f"learnt from {noise.runs} contact-free recordings"
    if noise.seconds.any():
        return "learnt from the training; give contact-free recordings for more"
    return "taken from the size of friction; give contact-free recordings"


def _line(text: str, mark: str) -> str:
    """In the mark's place; a mark alone on its line takes the line along where it is empty."""
    return text + ("\n" if mark.endswith("\n") and text else "")
