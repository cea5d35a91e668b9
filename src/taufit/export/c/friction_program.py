"""Friction models as C statements, traced from one evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.terms import COMPILED, Term, terms_in
from taufit.terms.tracing import record

IN_C = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "greater": "({} > {})",
    "greater_equal": "({} >= {})",
    "less": "({} < {})",
    "less_equal": "({} <= {})",
    "maximum": "fmax({}, {})",
    "minimum": "fmin({}, {})",
    "arctan2": "atan2({}, {})",
    "power": "pow({}, {})",
    "where": "({} != 0.0 ? {} : {})",
    "negative": "(-{})",
    "absolute": "fabs({})",
    "tanh": "tanh({})",
    "exp": "exp({})",
    "log": "log({})",
    "sqrt": "sqrt({})",
    "sin": "sin({})",
    "cos": "cos({})",
    "arctan": "atan({})",
    "sign": "(double)(({0} > 0) - ({0} < 0))",
    "square": "({0} * {0})",
    "expm1": "expm1({})",
    "log1p": "log1p({})",
}
INPUTS = ("velocity", "position", "load", "degrees", "travel")


class _Statements:
    """Statements of a C function body, each value computed once; values are C names."""

    operations = IN_C.keys()

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def apply(self, name: str, *values: str) -> str:
        expression = IN_C[name].format(*values)
        if expression not in self._names:
            self._names[expression] = f"t{len(self._names)}"
            self.lines.append(f"const double {self._names[expression]} = {expression};")
        return self._names[expression]

    def constant(self, number: float) -> str:
        return repr(number)


@dataclass(frozen=True, slots=True)
class FrictionProgram:
    """Friction of one joint at one sample, as C.

    Inputs are called `velocity`, `position`, `load`, `degrees` and `travel`, friction states `m0`,
    `m1`, ...

    Attributes:
        statements: Statements in order.
        columns: C names of the columns.
        memory: C names of the new friction states.
        start: Initial friction states; None for the value after the first sample.
    """

    statements: list[str]
    columns: list[str]
    memory: list[str]
    start: list[float | None]

    def statements_for(self, values: Iterable[str]) -> list[str]:
        """Statements that the given values need."""
        return select_statements(self.statements, values)


def select_statements(statements: list[str], values: Iterable[str]) -> list[str]:
    """Statements that the given values need, without unused ones (C compilers warn)."""
    used, needed = set(values), []
    for line in reversed(statements):
        if line.split()[2] in used:
            used |= set(re.findall(r"[a-z]\w*", line))
            needed.append(line)
    return needed[::-1]


def require_compiled_inputs(model: Term) -> None:
    """Refuse terms that need a channel which exported code does not have."""
    unsupported = sorted(model.needs - {*COMPILED})
    if unsupported:
        term_name = next(
            type(term).__name__ for term in terms_in(model) if unsupported[0] in term.needs
        )
        raise TaufitError(
            f"term {term_name} needs the channel {unsupported[0]!r}, which exported code does not "
            "have; "
            "export as JSON instead."
        )


def friction_program(model: Term, shape: np.ndarray) -> FrictionProgram:
    """Trace one step of `advance` as C statements."""
    require_compiled_inputs(model)
    body = _Statements()
    step = record(model, shape, body, INPUTS, lambda k: f"m{k}")
    for name, first in zip(step.memory, step.start, strict=True):
        if first is None and name != "travel":
            raise TaufitError(
                f"the memory of friction model {type(model).__name__} begins with a value that is "
                "not an input, which the C export cannot write; export as JSON instead."
            )
    return FrictionProgram(body.lines, step.columns, step.memory, step.start)
