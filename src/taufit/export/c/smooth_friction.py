"""Smooth friction for planning: steady motion, sign(v) as tanh(v / width), with derivatives in C.

The traced operations of a friction model are differentiated one by one (forward mode), with respect
to velocity, position and load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.export.c.friction_program import (
    IN_C,
    INPUTS,
    require_compiled_inputs,
    select_statements,
)
from taufit.export.friction_parts import TermPlaces, term_places
from taufit.model.fitted_model import FittedModel
from taufit.terms.tracing import record

# Speed over which friction changes its sign [rad/s or m/s]: a smaller value is closer to steady
# friction and costs a planner iterations. Not tuned on any arm.
SMOOTH_WIDTH = 0.05
# Inputs with respect to which friction is differentiated.
DIRECTIONS = ("velocity", "position", "load")

# Derivatives by each operand, given operands {0}, {1}, ... and the result {r}.
_SLOPES: dict[str, tuple[str, ...]] = {
    "add": ("1.0", "1.0"),
    "subtract": ("1.0", "-1.0"),
    "multiply": ("{1}", "{0}"),
    "divide": ("(1.0 / {1})", "(-{r} / {1})"),
    "greater": (),
    "greater_equal": (),
    "less": (),
    "less_equal": (),
    "maximum": ("({0} >= {1} ? 1.0 : 0.0)", "({0} >= {1} ? 0.0 : 1.0)"),
    "minimum": ("({0} <= {1} ? 1.0 : 0.0)", "({0} <= {1} ? 0.0 : 1.0)"),
    "arctan2": ("({1} / ({0} * {0} + {1} * {1}))", "(-{0} / ({0} * {0} + {1} * {1}))"),
    "power": ("({1} * pow({0}, {1} - 1.0))",),
    "where": ("0.0", "({0} != 0.0 ? 1.0 : 0.0)", "({0} != 0.0 ? 0.0 : 1.0)"),
    "negative": ("-1.0",),
    "absolute": ("({0} < 0.0 ? -1.0 : 1.0)",),
    "tanh": ("(1.0 - {r} * {r})",),
    "exp": ("{r}",),
    "log": ("(1.0 / {0})",),
    "sqrt": ("(0.5 / {r})",),
    "sin": ("cos({0})",),
    "cos": ("(-sin({0}))",),
    "arctan": ("(1.0 / (1.0 + {0} * {0}))",),
    "square": ("(2.0 * {0})",),
    "expm1": ("({r} + 1.0)",),
    "log1p": ("(1.0 / (1.0 + {0}))",),
}


@dataclass(frozen=True, slots=True)
class TracedValue:
    """C name of a value and of its derivatives; None for a derivative of zero."""

    name: str
    slopes: tuple[str | None, ...] = (None,) * len(DIRECTIONS)


class SlopeStatements:
    """Recorder of C statements of values and their derivatives, with a smooth sign."""

    operations = IN_C.keys()

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def constant(self, number: float) -> TracedValue:
        return TracedValue(repr(number))

    def apply(self, name: str, *values: TracedValue) -> TracedValue:
        if name == "sign":
            scaled = self.apply("divide", values[0], self.constant(SMOOTH_WIDTH))
            return self.apply("tanh", scaled)
        names = [value.name for value in values]
        result = self._assign(IN_C[name].format(*names))
        slopes = []
        for k in range(len(DIRECTIONS)):
            parts = [
                f"{slope.format(*names, r=result)} * {value.slopes[k]}"
                for slope, value in zip(_SLOPES[name], values, strict=False)
                if value.slopes[k] is not None
            ]
            slopes.append(self._assign(" + ".join(parts)) if parts else None)
        return TracedValue(result, tuple(slopes))

    def _assign(self, expression: str) -> str:
        if expression not in self._names:
            self._names[expression] = f"t{len(self._names)}"
            self.lines.append(f"const double {self._names[expression]} = {expression};")
        return self._names[expression]


def smooth_friction_function(model: FittedModel) -> str:
    """C function `smooth_friction` with optional derivatives by q, v and load at the joints."""
    joints = model.robot.joints
    lines = [
        "static void smooth_friction(const double *q, const double *v, const double *rigid,",
        "                            const double *temperature, double *tau, double *by_q,",
        "                            double *by_v, double *by_load) {",
        "  (void)q, (void)v, (void)rigid, (void)temperature;",
    ]
    totals = [f"offset[{i}]" for i in range(joints)]
    slopes = {name: [""] * joints**2 for name in ("by_v", "by_q", "by_load")}
    for place in term_places(model, model.term_sum.steady_state()):
        lines.append(f"  double {place.label}[N], {place.label}_slope[3][N];")
        for i in range(joints):
            lines += _joint_lines(place, i)
        right_factors = {"by_v": place.reach, "by_q": place.reach}
        if place.label == "motor":
            right_factors["by_load"] = np.linalg.inv(place.reach).T
        for i in range(joints):
            totals[i] = _sum_text(totals[i], sum_expression(place.reach[:, i], place.label))
            for k, (name, right) in enumerate(right_factors.items()):
                for j in range(joints):
                    weights = place.reach[:, i] * right[:, j]
                    text = sum_expression(weights, f"{place.label}_slope[{k}]")
                    slopes[name][joints * i + j] = _sum_text(slopes[name][joints * i + j], text)
    lines += [f"  tau[{i}] = {text};" for i, text in enumerate(totals)]
    lines += ["  if (!by_q) return;"]
    lines += [f"  {name}[{k}] = {text or '0.0'};" for name, texts in slopes.items()
              for k, text in enumerate(texts)]  # fmt: skip
    return "\n".join([*lines, "}"])


def _sum_text(*texts: str) -> str:
    return " + ".join(filter(None, texts))


def input_lines(place: TermPlaces, joint: int) -> list[str]:
    """C statements of the inputs of one joint's terms.

    Motors move by v_m = C v with tau = C' tau_m, so they carry C^-T tau; other places carry no
    load.
    """
    at_motors = place.label == "motor"
    load = sum_expression(np.linalg.inv(place.reach).T[joint], "rigid") if at_motors else "0.0"
    temperature = f"temperature ? temperature[{joint}] : usual_temperature[{joint}]"
    inputs = {
        "velocity": sum_expression(place.reach[joint], "v") or "0.0",
        "position": sum_expression(place.reach[joint], "q") or "0.0",
        "load": load,
        "degrees": temperature,
    }
    lines = [f"    const double {name} = {text};" for name, text in inputs.items()]
    return [*lines, "    (void)velocity, (void)position, (void)load, (void)degrees;"]


def _joint_lines(place: TermPlaces, joint: int) -> list[str]:
    friction = place.term.of_joint(joint)
    require_compiled_inputs(friction)
    body = SlopeStatements()
    inputs = [
        TracedValue(name, tuple("1.0" if name == x else None for x in DIRECTIONS))
        for name in INPUTS
    ]
    step = record(friction, place.shape[joint], body, inputs, no_memory)
    total = body.constant(0.0)
    for coefficient, column in zip(place.coefficients[joint], step.columns, strict=True):
        if coefficient != 0.0:
            term = body.apply("multiply", column, body.constant(float(coefficient)))
            total = body.apply("add", total, term)
    values = [total.name, *(slope for slope in total.slopes if slope is not None)]
    lines = ["  {", *input_lines(place, joint)]
    lines += [f"    {line}" for line in select_statements(body.lines, values)]
    lines.append(f"    {place.label}[{joint}] = {total.name};")
    lines += [
        f"    {place.label}_slope[{k}][{joint}] = {total.slopes[k] or '0.0'};" for k in range(3)
    ]
    return [*lines, "  }"]


def no_memory(index: int) -> Any:
    """Memory entry for the trace of a steady term, which has none."""
    raise AssertionError("friction of steady motion has no memory")


def sum_expression(factors: np.ndarray, array: str) -> str:
    """C expression of factors . array, without zeros and unit factors."""
    return " + ".join(
        f"{array}[{k}]" if c == 1.0 else f"{float(c)!r} * {array}[{k}]"
        for k, c in enumerate(factors)
        if c != 0.0
    )


def smooth_torque(
    model: FittedModel,
    position: np.ndarray,
    velocity: np.ndarray,
    acceleration: np.ndarray,
    temperature: np.ndarray | None = None,
) -> np.ndarray:
    """Torque of the model with friction smoothed as in the exported functions, n x j [N m]."""
    steady = model.torque(position, velocity, acceleration, temperature=temperature)
    return steady + smoothing_difference(model, position, velocity, acceleration, temperature)


def smoothing_difference(
    model: FittedModel,
    position: np.ndarray,
    velocity: np.ndarray,
    acceleration: np.ndarray,
    temperature: np.ndarray | None = None,
) -> np.ndarray:
    """Smooth less steady friction at the joints, n x j [N m]."""
    rigid = model.columns.links(position, velocity, acceleration) @ model.values[model.layout.links]
    warm = np.broadcast_to(model.typical_temperature, velocity.shape)
    warm = warm if temperature is None else temperature
    out = np.zeros_like(velocity)
    for place in term_places(model, model.term_sum.steady_state()):
        at_motors = place.label == "motor"
        load = rigid @ np.linalg.inv(place.reach) if at_motors else np.zeros_like(rigid)
        motion = [velocity @ place.reach.T, position @ place.reach.T, load, warm]
        for i in range(model.robot.joints):
            values = [values[:, i] for values in motion]
            for smooth in (True, False):
                recorder = ArrayRecorder(smooth)
                step = record(place.term.of_joint(i), place.shape[i], recorder,
                              [*values, np.zeros(len(velocity))], no_memory)  # fmt: skip
                pairs = zip(place.coefficients[i], step.columns, strict=True)
                total = np.asarray(sum(c * column for c, column in pairs))
                out += (total if smooth else -total)[:, None] * place.reach[i]
    return out


class ArrayRecorder:
    """Recorder that evaluates the operations on arrays, with a smooth or a sharp sign."""

    operations = IN_C.keys()

    def __init__(self, smooth: bool) -> None:
        self.smooth = smooth

    def constant(self, number: float) -> np.ndarray:
        return np.asarray(number)

    def apply(self, name: str, *values: np.ndarray) -> np.ndarray:
        if name == "sign" and self.smooth:
            return np.tanh(values[0] / SMOOTH_WIDTH)
        function: Callable[..., np.ndarray] = getattr(np, name)
        return function(*values)
