"""Friction of one sample after the other, fast: the model's own `advance`, run once on symbols.

`FrictionModel.advance` is NumPy code for many samples; called for one, its overhead is a hundred
times its work. Here it runs once on symbols that write down every operation, for all joints, with
their shapes and coefficients as constants; the kernel repeats that list for each sample. There is
no second formula that could drift from the first.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from taufit.arrays import Array, Float
from taufit.friction import FrictionInput
from taufit.model.fitted_model import FittedModel

try:
    from taufit import _kernel
except ImportError:  # no compiler when this was installed
    _kernel = None

# In the order of the kernel's codes.
_ORDER = (
    *("add", "subtract", "multiply", "divide", "greater", "greater_equal", "less", "less_equal"),
    *("maximum", "minimum", "power", "where", "negative", "absolute", "tanh", "exp", "log", "sqrt"),
    *("sin", "cos", "arctan", "sign", "square", "expm1", "log1p"),
)
_CODES = {name: code for code, name in enumerate(_ORDER)}
_SAME = {"true_divide": "divide", "fabs": "absolute", "float_power": "power"}
# Velocity, position, load, temperature, travel.
_INPUTS = 5
_TRAVEL = 4


class _Tape:
    """Registers and the operations between them; constants and equal operations once."""

    def __init__(self, inputs: int) -> None:
        self.registers = [0.0] * inputs
        self.operations: list[tuple[int, int, int, int, int]] = []
        self._constants: dict[float, int] = {}
        self._known: dict[tuple[int, int, int, int], int] = {}

    def new(self, value: float = 0.0) -> int:
        self.registers.append(value)
        return len(self.registers) - 1

    def constant(self, value: float) -> int:
        if value not in self._constants:
            self._constants[value] = self.new(value)
        return self._constants[value]

    def store(self, name: str, *given: Any) -> _Symbol:
        places = [x.place if isinstance(x, _Symbol) else self.constant(float(x)) for x in given]
        a, b, c = (*places, 0, 0)[:3]
        key = (_CODES[name], a, b, c)
        if key not in self._known:
            self._known[key] = self.new()
            self.operations.append((*key, self._known[key]))
        return _Symbol(self, self._known[key])


class _Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A register that NumPy code takes for a vector of one sample."""

    dtype = np.dtype(float)

    def __init__(self, tape: _Tape, place: int) -> None:
        self.tape, self.place = tape, place

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> _Symbol:
        return self

    def astype(self, kind: Any) -> _Symbol:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if method != "__call__" or any(isinstance(x, _Stack) for x in inputs):
            return NotImplemented
        return self.tape.store(_SAME.get(ufunc.__name__, ufunc.__name__), *inputs)

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function, args)


class _Stack(np.lib.mixins.NDArrayOperatorsMixin):
    """Several symbols side by side, as np.stack(..., -1) leaves them."""

    dtype = np.dtype(float)

    def __init__(self, symbols: list[Any]) -> None:
        self.symbols = symbols

    def __getitem__(self, index: Any) -> Any:
        chosen = index[1] if isinstance(index, tuple) else slice(None)
        if isinstance(chosen, (int, np.integer)):
            return self.symbols[chosen]
        if isinstance(chosen, slice):
            return _Stack(self.symbols[chosen])
        return _Stack([self.symbols[i] for i in chosen])

    def __setitem__(self, index: Any, value: Any) -> None:
        for place, symbol in zip(index[1], value.symbols, strict=True):
            self.symbols[place] = symbol

    def __len__(self) -> int:
        return 1

    def astype(self, kind: Any) -> _Stack:
        return _Stack(list(self.symbols))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        width = next(len(x.symbols) for x in inputs if isinstance(x, _Stack))
        spread = [x.symbols if isinstance(x, _Stack) else [x] * width for x in inputs]
        return _Stack([getattr(ufunc, method)(*row) for row in zip(*spread, strict=True)])

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function, args)


def _array_function(function: Any, args: Any) -> Any:
    name = function.__name__
    if name == "stack":
        return _Stack(list(args[0]))
    if name in ("concatenate", "hstack"):
        return _Stack([symbol for part in args[0] for symbol in part.symbols])
    if name == "where":
        tape = next(x.tape for x in args if isinstance(x, _Symbol))
        return tape.store("where", *args)
    if name == "result_type":
        return np.dtype(float)
    if name in ("zeros_like", "ones_like"):
        tape = args[0].tape
        return _Symbol(tape, tape.constant(0.0 if name == "zeros_like" else 1.0))
    raise NotImplementedError(name)


class FrictionTape:
    """Friction torque of every joint, sample by sample, with the state it leaves.

    Args:
        model: Fitted.
        step: Between two samples [s].
    """

    def __init__(self, model: FittedModel, step: float) -> None:
        self._model, self._step = model, step
        self._columns = model.columns
        self._own = model.layout.split(np.asarray(model.values, float)).friction
        self.compiled = _kernel is not None and self._columns.coupling is None and self._trace()
        self.clear()

    def clear(self) -> None:
        """Before the first sample."""
        self._state = self._columns.start()
        if self.compiled:
            self._registers[self._memory] = self._start
            self._begun = False

    def __call__(
        self,
        velocity: Float[Array, " j"],
        position: Float[Array, " j"],
        load: Float[Array, " j"],
        temperature: Float[Array, " j"] | None = None,
    ) -> Float[Array, " j"]:
        """Friction torque of the motors at the next sample [N m]."""
        if self.compiled:
            return self._repeat(velocity, position, load, temperature)
        warm = None if temperature is None else temperature[None]
        inputs = FrictionInput(velocity[None], position[None], load[None], warm, step=self._step)
        columns, self._state = self._columns.advance(self._state, inputs)
        return np.einsum("jk,jk->j", columns[0], self._own)

    def _repeat(
        self, velocity: Array, position: Array, load: Array, temperature: Array | None
    ) -> Float[Array, " j"]:
        inputs = self._inputs
        inputs[0], inputs[1], inputs[2] = velocity, position, load
        if temperature is not None:
            inputs[3] = temperature
        np.multiply(velocity, self._step, out=inputs[_TRAVEL])
        if not self._begun:
            self._begun = True
            self._registers[self._from_travel] = inputs[_TRAVEL, self._whose]
        out = np.empty(inputs.shape[1])
        _kernel.run_tape(self._operations, self._registers, self._results, self._moves, out)
        return out

    def _trace(self) -> bool:
        """Write down one step of `advance`; False where that cannot be done."""
        joints = self._columns.joints
        tape = _Tape(_INPUTS * joints)
        results, moves, start, travelled = [], [], [], []
        friction = self._columns.friction
        try:
            for j in range(joints):
                given = [cast(Any, _Symbol(tape, k * joints + j)) for k in range(_INPUTS)]
                v, q, load, warm, travel = given
                inputs = FrictionInput(v, q, load, warm, travel)
                shape = self._columns.shape[j]
                before = friction.start(shape)
                leaves = _leaves(before) if friction.memory else []
                places = [tape.new() for _ in leaves]
                symbols = iter([_Symbol(tape, place) for place in places])
                state = _renamed(before, symbols) if leaves else before
                columns: Any
                columns, after = friction.advance(state, inputs, shape)
                total: Any = _Symbol(tape, tape.constant(0.0))
                stacked = [] if isinstance(columns, np.ndarray) else columns.symbols
                for one, value in zip(stacked, self._own[j], strict=True):
                    total = total + one * float(value)
                results.append(total.place)
                news = _leaves(after) if leaves else []
                for place, leaf, new in zip(places, leaves, news, strict=True):
                    moves.append((_place(tape, new), place))
                    start.append((place, 0.0 if leaf is None else float(leaf)))
                    if leaf is None:
                        travelled.append((place, j))
        except Exception:
            # A model may use anything of NumPy; what cannot be written down is run as it is.
            return False
        self._registers = np.array(tape.registers, float)
        self._inputs = self._registers[: _INPUTS * joints].reshape(_INPUTS, joints)
        self._operations = np.array(tape.operations, np.int32).reshape(-1, 5)
        self._results = np.array(results, np.int32)
        self._moves = np.array(moves, np.int32).reshape(-1, 2)
        self._memory = np.array([place for place, _ in start], int)
        self._start = np.array([value for _, value in start], float)
        self._from_travel = np.array([place for place, _ in travelled], int)
        self._whose = np.array([j for _, j in travelled], int)
        return self._agrees()

    def _agrees(self) -> bool:
        """Whether the list says what the model says, over a few samples of its own."""
        rng = np.random.default_rng(0)
        joints = self._columns.joints
        velocity, position, load = rng.normal(size=(3, 12, joints))
        velocity[4:7] *= 1e-3
        warm = self._model.typical_temperature + rng.normal(size=(12, joints))
        inputs = FrictionInput(velocity, position, 10.0 * load, warm, step=self._step)
        known = np.einsum("njk,jk->nj", self._columns.motor_friction(inputs), self._own)
        self.compiled = True
        self.clear()
        found = [
            self._repeat(*row) for row in zip(velocity, position, 10.0 * load, warm, strict=True)
        ]
        size = max(float(np.abs(known).max(initial=0.0)), 1e-12)
        return bool(np.all(np.abs(np.array(found) - known) < 1e-9 * size))


def _place(tape: _Tape, value: Any) -> int:
    return value.place if isinstance(value, _Symbol) else tape.constant(float(value))


def _leaves(state: Any) -> list[Any]:
    """The numbers of a state, in order."""
    if isinstance(state, tuple | list | np.ndarray | _Stack):
        parts = state.symbols if isinstance(state, _Stack) else state
        return [leaf for part in parts for leaf in _leaves(part)]
    return [state]


def _renamed(state: Any, symbols: Any) -> Any:
    """The same state with a symbol in the place of every number."""
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_renamed(part, symbols) for part in state))
    if isinstance(state, tuple | list | np.ndarray):
        return [_renamed(part, symbols) for part in state]
    return next(symbols)
