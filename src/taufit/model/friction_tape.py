"""Compiled evaluation of friction, one sample at a time.

`Term.advance` is NumPy code for many samples; for a single one its overhead is a hundred times its
work. Here it runs once on symbols that record every operation (terms/tracing.py), for all joints,
with their shapes and coefficients as constants; the kernel repeats that list for each sample.
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.model.columns import RegressorColumns
from taufit.model.fitted_model import FittedModel
from taufit.terms import COMPILED, TermInput
from taufit.terms.tracing import record

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# Operations in the order of the kernel's codes.
_ORDER = (
    *("add", "subtract", "multiply", "divide", "greater", "greater_equal", "less", "less_equal"),
    *("maximum", "minimum", "power", "where", "negative", "absolute", "tanh", "exp", "log", "sqrt"),
    *("sin", "cos", "arctan", "sign", "square", "expm1", "log1p"),
)
_CODES = {name: code for code, name in enumerate(_ORDER)}
# Velocity, position, load, temperature, travel.
_INPUTS = 5
_TRAVEL = 4


class _OperationTape:
    """Registers and the operations between them; constants and equal operations are shared."""

    operations = _CODES.keys()

    def __init__(self, inputs: int) -> None:
        self.registers = [0.0] * inputs
        self.steps: list[tuple[int, int, int, int, int]] = []
        self._constants: dict[float, int] = {}
        self._numbers: dict[int, float] = {}
        self._computed: dict[tuple[int, int, int, int], int] = {}

    def new_register(self, value: float = 0.0) -> int:
        self.registers.append(value)
        return len(self.registers) - 1

    def constant(self, number: float) -> int:
        if number not in self._constants:
            self._constants[number] = self.new_register(number)
            self._numbers[self._constants[number]] = number
        return self._constants[number]

    def apply(self, name: str, *values: int) -> int:
        simpler = self._simplify(name, values)
        if simpler is not None:
            return simpler
        a, b, c = (*values, 0, 0)[:3]
        key = (_CODES[name], a, b, c)
        if key not in self._computed:
            self._computed[key] = self.new_register()
            self.steps.append((*key, self._computed[key]))
        return self._computed[key]

    def _simplify(self, name: str, values: tuple[int, ...]) -> int | None:
        """Register of a sum or product with 0 or 1; None if the operation is needed."""
        if name not in ("add", "subtract", "multiply") or len(values) != 2:
            return None
        first, second = (self._numbers.get(value) for value in values)
        if name == "multiply":
            if first == 0.0 or second == 0.0:
                return self.constant(0.0)
            return values[1] if first == 1.0 else values[0] if second == 1.0 else None
        if second == 0.0:
            return values[0]
        return values[1] if first == 0.0 and name == "add" else None


@dataclass(frozen=True, slots=True)
class FrictionOperations:
    """Friction of all motors as a list of operations between registers.

    Attributes:
        operations: Code, three operands and place of each.
        registers: Initial registers; the first are velocity, position, load, temperature and travel
            of every motor.
        results: Register of each motor's friction.
        columns: Registers of its columns, per unit of each parameter.
        moves: Registers whose value another one has at the next sample.
        start: Value before the first sample, one per move.
        initial_travels: Pairs of a register and the motor whose first travel it has instead.
    """

    operations: Int[Array, "o 5"]
    registers: Float[Array, " r"]
    results: Int[Array, " j"]
    columns: Int[Array, "j k"]
    moves: Int[Array, "m 2"]
    start: Float[Array, " m"]
    initial_travels: Int[Array, " t"]


def record_friction(
    columns: RegressorColumns, coefficients: Float[Array, "j k"]
) -> FrictionOperations | None:
    """Record one step of `advance` for every motor; None if that is not possible."""
    if not columns.term.needs <= {*COMPILED}:
        return None
    joints = columns.joints
    tape = _OperationTape(_INPUTS * joints)
    results, columns_by_joint, moves, start, initial_travels = [], [], [], [], []
    try:
        for j in range(joints):
            inputs = [k * joints + j for k in range(_INPUTS)]
            step = record(
                columns.joint_terms[j],
                columns.shape[j],
                tape,
                inputs,
                lambda _: tape.new_register(),
            )
            total = tape.constant(0.0)
            for column, value in zip(step.columns, coefficients[j], strict=True):
                term = tape.apply("multiply", column, tape.constant(float(value)))
                total = tape.apply("add", total, term)
            results.append(total)
            columns_by_joint.append(step.columns)
            for register, initial, final in zip(step.before, step.start, step.memory, strict=True):
                moves.append((final, register))
                start.append(0.0 if initial is None else float(initial))
                if initial is None:
                    initial_travels.append((register, j))
    except Exception:
        # Models with unsupported NumPy operations are evaluated without compilation.
        return None
    return FrictionOperations(
        np.array(tape.steps, np.int32).reshape(-1, 5),
        np.array(tape.registers, float),
        np.array(results, np.int32),
        np.array(columns_by_joint, np.int32).reshape(joints, -1),
        np.array(moves, np.int32).reshape(-1, 2),
        np.array(start, float),
        np.array(initial_travels, np.int32).reshape(-1),
    )


class FrictionTape:
    """Friction torque of every joint, sample by sample, with its internal state.

    Args:
        model: Fitted model.
        step: Sampling period [s].

    Attributes:
        compiled: Whether the kernel evaluates it.
    """

    def __init__(self, model: FittedModel, step: float) -> None:
        self._model, self._step = model, step
        self._columns = model.columns
        self._coefficients = model.layout.split(np.asarray(model.values, float)).drive
        is_supported = self._columns.coupling is None and not self._columns.placed_terms
        self.compiled = _kernel is not None and is_supported and self._trace()
        self.clear()

    def clear(self) -> None:
        """Reset to the state before the first sample."""
        self._state = self._columns.start()
        if self.compiled:
            self._registers[self._memory] = self._start
            self._has_started = False

    def __call__(
        self,
        velocity: Float[Array, " j"],
        position: Float[Array, " j"],
        load: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> Float[Array, " j"]:
        """Friction torque of the motors at the next sample [N m]."""
        if self.compiled:
            return self._run_compiled(velocity, position, load, temperature)
        temperatures = None if temperature is None else temperature[None]
        inputs = TermInput(
            velocity[None], position[None], load[None], temperatures, step=self._step
        )
        columns, self._state = self._columns.advance(self._state, inputs)
        return np.asarray(self._columns.motor_torque(self._coefficients, columns)[0])

    @property
    def parts(self) -> tuple[Array, Array, Array, Array, Array]:
        """Operations, registers, results, moves and initial travels, for other compiled loops.

        Only if `compiled`. Inputs are the first registers; travels are pairs of a register and the
        joint whose travel it holds before the first sample.
        """
        return self._operations, self._registers, self._results, self._moves, self._initial_travels

    def _run_compiled(
        self, velocity: Array, position: Array, load: Array, temperature: Array | None
    ) -> Float[Array, " j"]:
        inputs = self._inputs
        inputs[0], inputs[1], inputs[2] = velocity, position, load
        if temperature is not None:
            inputs[3] = temperature
        np.multiply(velocity, self._step, out=inputs[_TRAVEL])
        if not self._has_started:
            self._has_started = True
            self._registers[self._from_travel] = inputs[_TRAVEL, self._travel_joints]
        out = np.empty(inputs.shape[1])
        _kernel.run_tape(self._operations, self._registers, self._results, self._moves, out)
        return out

    def _trace(self) -> bool:
        """Record one step of `advance`; returns False if that is not possible."""
        recorded = record_friction(self._columns, self._coefficients)
        if recorded is None:
            return False
        joints = self._columns.joints
        self._registers = recorded.registers
        self._inputs = self._registers[: _INPUTS * joints].reshape(_INPUTS, joints)
        self._operations, self._results = recorded.operations, recorded.results
        self._moves, self._memory = recorded.moves, recorded.moves[:, 1].astype(int)
        self._start, self._initial_travels = recorded.start, recorded.initial_travels
        self._from_travel, self._travel_joints = recorded.initial_travels.reshape(-1, 2).T.astype(
            int
        )
        return self._matches_model()

    def _matches_model(self) -> bool:
        """Whether the recorded operations reproduce the model on test samples."""
        rng = np.random.default_rng(0)
        joints = self._columns.joints
        velocity, position, load = rng.normal(size=(3, 12, joints))
        velocity[4:7] *= 1e-3
        temperature = self._model.typical_temperature + rng.normal(size=(12, joints))
        inputs = TermInput(velocity, position, 10.0 * load, temperature, step=self._step)
        expected = np.einsum("njk,jk->nj", self._columns.drive_columns(inputs), self._coefficients)
        self.compiled = True
        self.clear()
        computed = [
            self._run_compiled(*row)
            for row in zip(velocity, position, 10.0 * load, temperature, strict=True)
        ]
        size = max(float(np.abs(expected).max(initial=0.0)), 1e-12)
        return bool(np.all(np.abs(np.array(computed) - expected) < 1e-9 * size))
