"""Any friction model as C: its own NumPy code runs once on symbols and leaves statements behind.

No model needs a second formula for C, so none can drift from its first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from taufit.errors import TaufitError
from taufit.friction import FrictionInput, FrictionModel

_BINARY = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "true_divide": "({} / {})",
    "greater": "({} > {})",
    "greater_equal": "({} >= {})",
    "less": "({} < {})",
    "less_equal": "({} <= {})",
    "maximum": "fmax({}, {})",
    "minimum": "fmin({}, {})",
    "arctan2": "atan2({}, {})",
    "power": "pow({}, {})",
    "float_power": "pow({}, {})",
}
_UNARY = {
    "negative": "(-{})",
    "absolute": "fabs({})",
    "fabs": "fabs({})",
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


class Program:
    """Statements of one C function body, each value computed once."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._known: dict[str, str] = {}

    def symbol(self, name: str) -> Symbol:
        return Symbol(self, name)

    def store(self, expression: str) -> Symbol:
        if expression not in self._known:
            name = f"t{len(self._known)}"
            self._known[expression] = name
            self.statements.append(f"const double {name} = {expression};")
        return Symbol(self, self._known[expression])


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A number of the C program that NumPy code takes for a vector of samples."""

    def __init__(self, program: Program, text: str) -> None:
        self.program, self.text = program, text

    dtype = np.dtype(float)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Symbol:
        return self

    def astype(self, kind: Any) -> Symbol:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if any(isinstance(x, Columns) for x in inputs):
            return NotImplemented
        words = [_text(x) for x in inputs]
        if method == "__call__":
            if ufunc.__name__ == "power" and isinstance(inputs[1], int) and 1 <= inputs[1] <= 4:
                # A whole power is a product: exact, and far cheaper than pow().
                return self.program.store("(" + " * ".join([words[0]] * inputs[1]) + ")")
            if ufunc.__name__ in _BINARY:
                return self.program.store(_BINARY[ufunc.__name__].format(*words))
            if ufunc.__name__ in _UNARY:
                return self.program.store(_UNARY[ufunc.__name__].format(*words))
        raise TaufitError(
            f"the friction model uses numpy.{ufunc.__name__}, which the C export cannot write; "
            "export as JSON instead."
        )

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function, args)


class Columns(np.lib.mixins.NDArrayOperatorsMixin):
    """Several symbols side by side, as np.stack(..., -1) leaves them."""

    dtype = np.dtype(float)

    def __init__(self, symbols: list[Any]) -> None:
        self.symbols = symbols

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Columns | Symbol:
        chosen = index[1] if isinstance(index, tuple) else slice(None)
        if isinstance(chosen, (int, np.integer)):
            return self.symbols[chosen]
        if isinstance(chosen, slice):
            return Columns(self.symbols[chosen])
        return Columns([self.symbols[i] for i in chosen])

    def __setitem__(self, index: Any, value: Any) -> None:
        for place, symbol in zip(index[1], value.symbols, strict=True):
            self.symbols[place] = symbol

    def astype(self, kind: Any) -> Columns:
        return Columns(list(self.symbols))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        width = next(len(x.symbols) for x in inputs if isinstance(x, Columns))
        spread = [x.symbols if isinstance(x, Columns) else [x] * width for x in inputs]
        return Columns([getattr(ufunc, method)(*row) for row in zip(*spread, strict=True)])

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function, args)


def _array_function(function: Any, args: Any) -> Any:
    name = function.__name__
    if name == "stack":
        return Columns(list(args[0]))
    if name in ("concatenate", "hstack"):
        parts = [part.symbols for part in args[0] if isinstance(part, Columns)]
        return Columns([symbol for part in parts for symbol in part])
    if name == "where":
        program = next(x.program for x in args if isinstance(x, Symbol))
        return program.store("({} != 0.0 ? {} : {})".format(*(_text(x) for x in args)))
    if name == "result_type":
        return np.dtype(float)
    if name in ("zeros_like", "ones_like"):
        program = args[0].program
        return program.symbol("0.0" if name == "zeros_like" else "1.0")
    raise TaufitError(
        f"the friction model uses numpy.{name}, which the C export cannot write; export as JSON "
        "instead."
    )


def _text(value: Any) -> str:
    return value.text if isinstance(value, Symbol) else repr(float(value))


@dataclass(frozen=True, slots=True)
class FrictionProgram:
    """Friction of one joint at one sample, as C.

    Inputs are called `velocity`, `position`, `load`, `degrees` and `travel`, entries of the memory
    `m0`, `m1`, ...

    Attributes:
        statements: To be run in order.
        columns: Names of the columns' values.
        memory: Names of what each entry of the memory becomes.
        start: What each was before the first sample; None for what it becomes with that sample.
    """

    statements: list[str]
    columns: list[str]
    memory: list[str]
    start: list[float | None]

    def statements_for(self, wanted: Iterable[str]) -> list[str]:
        """Those that some values are made of, and no others: C warns of values nobody uses."""
        used, kept = set(wanted), []
        for line in reversed(self.statements):
            if line.split()[2] in used:
                used |= set(re.findall(r"[a-z]\w*", line))
                kept.append(line)
        return kept[::-1]


def friction_program(model: FrictionModel, shape: np.ndarray) -> FrictionProgram:
    """One step of `advance`, written down."""
    program = Program()
    names_in_c = ("velocity", "position", "load", "degrees", "travel")
    inputs = FrictionInput(*(cast(Any, program.symbol(name)) for name in names_in_c))
    before = model.start(shape)
    start = _leaves(before) if model.memory else []
    names = iter(range(len(start)))
    state = _renamed(before, lambda: program.symbol(f"m{next(names)}")) if start else before
    columns: Any
    columns, after = model.advance(state, inputs, shape)
    if isinstance(columns, np.ndarray):
        return FrictionProgram([], [], [], [])
    memory = [_text(leaf) for leaf in _leaves(after)] if start else []
    for name, first in zip(memory, start, strict=True):
        if first is None and name != "travel":
            raise TaufitError(
                f"the memory of friction model {type(model).__name__} begins with a value that is "
                "not an input, which the C export cannot write; export as JSON instead."
            )
    return FrictionProgram(
        program.statements, [_text(symbol) for symbol in columns.symbols], memory, start
    )


def _leaves(state: Any) -> list[Any]:
    """The numbers of a state, in order."""
    if isinstance(state, tuple | list | np.ndarray):
        return [leaf for part in state for leaf in _leaves(part)]
    return [state]


def _renamed(state: Any, new: Callable[[], Symbol]) -> Any:
    """The same state with a symbol in the place of every number."""
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_renamed(part, new) for part in state))
    if isinstance(state, tuple | list | np.ndarray):
        return [_renamed(part, new) for part in state]
    return new()
