"""Tracing of one step of a friction model: its NumPy code runs once on symbols.

Every operation is passed to a recorder, which stores it as C statements or as codes for the kernel.
Models need no second formula, so the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from taufit.core.arrays import Array
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.terms.input import TermInput
from taufit.terms.term import Term

_SYNONYMS = {"true_divide": "divide", "fabs": "absolute", "float_power": "power"}

Value = TypeVar("Value")


@runtime_checkable
class Recorder(Protocol[Value]):
    """Storage of operations between values, in a representation of its own."""

    @property
    def operations(self) -> Collection[str]:
        """NumPy names of supported operations, `where` among them."""

    def apply(self, name: str, *values: Value) -> Value:
        """Value of an operation."""

    def constant(self, number: float) -> Value:
        """Value of a number."""


class _Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """Traced value that NumPy code treats as a vector of one sample."""

    dtype = np.dtype(float)

    def __init__(self, recorder: Recorder[Any], value: Any) -> None:
        self.recorder, self.value = recorder, value

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise _unsupported_error("`if` (use np.where)")

    def __iter__(self) -> Iterator[Any]:
        raise _unsupported_error("a loop over samples")

    def __getitem__(self, index: Any) -> _Symbol | _Stack:
        # x[:, None] is a column; any other index selects samples, of which there is one.
        column = isinstance(index, tuple) and len(index) == 2 and index[1] is None
        return _Stack([self]) if column else self

    def astype(self, kind: Any) -> _Symbol:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if method != "__call__" or any(isinstance(x, _Stack) for x in inputs):
            return NotImplemented
        if ufunc.__name__ == "power" and isinstance(inputs[1], int) and 1 <= inputs[1] <= 4:
            # Integer powers as products: exact, and far cheaper.
            product = self
            for _ in range(inputs[1] - 1):
                product = product * self
            return product
        return _apply_operation(
            self.recorder, _SYNONYMS.get(ufunc.__name__, ufunc.__name__), inputs
        )

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function.__name__, args)


class _Stack(np.lib.mixins.NDArrayOperatorsMixin):
    """Several symbols side by side, as from np.stack(..., -1)."""

    dtype = np.dtype(float)

    def __init__(self, symbols: list[Any]) -> None:
        self.symbols = symbols

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        column = index[1] if isinstance(index, tuple) else slice(None)
        if isinstance(column, (int, np.integer)):
            return self.symbols[column]
        if isinstance(column, slice):
            return _Stack(self.symbols[column])
        return _Stack([self.symbols[i] for i in column])

    def __setitem__(self, index: Any, value: Any) -> None:
        for column, symbol in zip(index[1], value.symbols, strict=True):
            self.symbols[column] = symbol

    def astype(self, kind: Any) -> _Stack:
        return _Stack(list(self.symbols))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        width = max(len(x.symbols) for x in inputs if isinstance(x, _Stack))
        operands = [
            x.symbols * (width if len(x.symbols) == 1 else 1)
            if isinstance(x, _Stack)
            else [x] * width
            for x in inputs
        ]
        return _Stack([getattr(ufunc, method)(*row) for row in zip(*operands, strict=True)])

    def __array_function__(self, function: Any, kinds: Any, args: Any, settings: Any) -> Any:
        return _array_function(function.__name__, args)


def _apply_operation(recorder: Recorder[Any], name: str, inputs: Sequence[Any]) -> _Symbol:
    if name not in recorder.operations:
        raise _unsupported_error(f"numpy.{name}")
    return _Symbol(recorder, recorder.apply(name, *(_value(recorder, x) for x in inputs)))


def _array_function(name: str, args: Any) -> Any:
    if name in ("stack", "column_stack"):
        return _Stack(list(args[0]))
    if name == "clip":
        return np.minimum(np.maximum(args[0], args[1]), args[2])
    if name in ("concatenate", "hstack"):
        parts = [part.symbols for part in args[0] if isinstance(part, _Stack)]
        return _Stack([symbol for part in parts for symbol in part])
    if name == "where":
        return _apply_operation(
            next(x.recorder for x in args if isinstance(x, _Symbol)), name, args
        )
    if name == "result_type":
        return np.dtype(float)
    if name in ("zeros_like", "ones_like"):
        recorder = args[0].recorder
        return _Symbol(recorder, recorder.constant(float(name == "ones_like")))
    raise _unsupported_error(f"numpy.{name}")


def _unsupported_error(what: str) -> TaufitError:
    return TaufitError(
        f"the friction model uses {what}, which the C export cannot write. Use arithmetic, "
        "np.where and np.stack([...], -1), or export as JSON instead."
    )


def _value(recorder: Recorder[Any], operand: Any) -> Any:
    return operand.value if isinstance(operand, _Symbol) else recorder.constant(float(operand))


@dataclass(frozen=True, slots=True)
class FrictionStep(Generic[Value]):
    """One step of `Term.advance`.

    Attributes:
        columns: Values of the columns.
        before: Memory entries before the step.
        memory: Memory entries after the step.
        start: Initial memory entries; None for those set by the first sample.
    """

    columns: list[Value]
    before: list[Value]
    memory: list[Value]
    start: list[float | None]


def record(
    model: Term,
    shape: Array,
    recorder: Recorder[Value],
    inputs: Sequence[Value],
    entry: Callable[[int], Value],
) -> FrictionStep[Value]:
    """Trace one step of a joint's friction.

    Args:
        model: Any friction model.
        shape: Shape parameters of the joint.
        recorder: Storage of the operations.
        inputs: Values of velocity, position, load, temperature and travel.
        entry: Function that returns the value of a memory entry before the step.
    """
    symbolic_inputs = TermInput(*(cast(Any, _Symbol(recorder, value)) for value in inputs))
    before = model.start(shape)
    start = _leaves(before) if model.memory else []
    memory_values = [entry(k) for k in range(len(start))]
    symbols = (_Symbol(recorder, place) for place in memory_values)
    state = _replace_numbers(before, symbols) if start else before
    columns: Any
    try:
        columns, after = model.advance(state, symbolic_inputs, shape)
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise _unsupported_error(f"an operation ({error})") from error
    column_symbols = (
        columns.ravel().tolist() if isinstance(columns, np.ndarray) else columns.symbols
    )
    if len(column_symbols) != len(model.parameters):
        raise _unsupported_error("columns that are not stacked with np.stack([...], -1)")
    return FrictionStep(
        [_value(recorder, column) for column in column_symbols],
        memory_values,
        [_value(recorder, leaf) for leaf in _leaves(after)] if start else [],
        start,
    )


def _leaves(state: Any) -> list[Any]:
    """Numbers of a state, in order."""
    if isinstance(state, _Stack):
        state = state.symbols
    if isinstance(state, tuple | list | np.ndarray):
        return [leaf for part in state for leaf in _leaves(part)]
    return [state]


def _replace_numbers(state: Any, symbols: Iterator[_Symbol]) -> Any:
    """State with a symbol in place of every number."""
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(_replace_numbers(part, symbols) for part in state))
    if isinstance(state, tuple | list | np.ndarray):
        return [_replace_numbers(part, symbols) for part in state]
    return next(symbols)
