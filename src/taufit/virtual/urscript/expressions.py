"""Expressions of the syntax tree -> closures on a machine: names, operators, calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.virtual.urscript import values
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.machine import BUDGET, Frame, Machine, Wait
from taufit.virtual.urscript.parser import (
    Binary,
    Call,
    Define,
    Expression,
    Index,
    ListExpression,
    Literal,
    Name,
    StartThread,
    Unary,
)
from taufit.virtual.urscript.values import Value, copy_value, is_true


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled code: `run(frame)` returns a value, or a generator if it `waits`."""

    waits: bool
    run: Callable[[Frame], Any]


class Expressions:
    """Compiles expressions for one machine.

    Attributes:
        machine: Machine that runs the code.
        definitions, bodies, defaults, depths: Functions of the program, by name.
        local: Local names of the function being compiled.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.definitions: dict[str, Define] = {}
        self.bodies: dict[str, Callable[[Frame], Wait]] = {}
        self.defaults: dict[str, dict[str, Code]] = {}
        self.depths: dict[str, int] = {}
        self.local: set[str] = set()

    def immediate(self, value: Expression, description: str) -> Code:
        """Compile an expression without calls that take time."""
        code = self.expression(value)
        if code.waits:
            raise ScriptError(f"{description} calls a function that takes time; use a variable.")
        return code

    def expression(self, e: Expression) -> Code:
        match e:
            case Literal(value=value):
                return Code(False, lambda frame: value)
            case Name():
                return self._name(e)
            case ListExpression(items=items):
                return self._apply([*items], values.make_list)
            case Index():
                return self._index(e)
            case Unary(operator="not", value=inner):
                return self._apply([inner], lambda x: not is_true(x[0]))
            case Unary(value=inner):
                return self._apply([inner], lambda x: values.negate(x[0]))
            case Binary(operator="and") | Binary(operator="or"):
                return self._logic(e)
            case Binary():
                return self._binary(e)
            case Call():
                return self._call(e)
            case StartThread():
                return self._start(e)
        raise ScriptError(f"a {type(e).__name__} is out of place.")

    def _name(self, e: Name) -> Code:
        name, line = e.name, e.line
        variables = None if name in self.local else self.machine.variables

        def run(frame: Frame) -> Value:
            try:
                return (frame if variables is None else variables)[name]
            except KeyError:
                raise ScriptError(f"line {line}: {name} has no value yet.") from None

        return Code(False, run)

    def _apply(self, items: list[Expression], act: Callable[[list[Value]], Value]) -> Code:
        codes = [self.expression(item) for item in items]
        if not any(code.waits for code in codes):
            parts = [code.run for code in codes]
            return Code(False, lambda frame: act([part(frame) for part in parts]))

        def flow(frame: Frame) -> Wait:
            out = []
            for code in codes:
                out.append((yield from code.run(frame)) if code.waits else code.run(frame))  # noqa: PERF401 - yields
            return act(out)

        return Code(True, flow)

    def _binary(self, e: Binary) -> Code:
        act = values.OPERATORS[e.operator]
        left, right = self.expression(e.left), self.expression(e.right)
        if left.waits or right.waits:
            return self._apply([e.left, e.right], lambda x: act(x[0], x[1]))
        a, b = left.run, right.run
        return Code(False, lambda frame: act(a(frame), b(frame)))

    def _logic(self, e: Binary) -> Code:
        left, right = self.expression(e.left), self.expression(e.right)
        stop = e.operator == "or"
        if not left.waits and not right.waits:
            a, b = left.run, right.run

            def run_logic(frame: Frame) -> bool:
                return stop if is_true(a(frame)) is stop else is_true(b(frame))

            return Code(False, run_logic)

        def flow(frame: Frame) -> Wait:
            first = (yield from left.run(frame)) if left.waits else left.run(frame)
            if is_true(first) is stop:
                return stop
            return is_true((yield from right.run(frame)) if right.waits else right.run(frame))

        return Code(True, flow)

    def _index(self, e: Index) -> Code:
        line = e.line

        def act(x: list[Value]) -> Value:
            out = x[0]
            try:
                for index in x[1:]:
                    out = values.element(out, index)
            except ScriptError as error:
                raise ScriptError(f"line {line}: {error}") from None
            return out

        return self._apply([e.target, *e.items], act)

    def _call(self, e: Call) -> Code:
        if e.name in self.definitions:
            return self._program_call(e)
        builtin = self.machine.functions.get(e.name)
        if builtin is None:
            raise ScriptError(
                f"line {e.line}: {e.name}() is not a function this controller knows; the program "
                "was not started."
            )
        names = [name for name, _ in e.keywords]
        if len(set(names)) != len(names):
            raise ScriptError(f"line {e.line}: {e.name}() is given one parameter twice.")
        try:
            inspect.signature(builtin.run).bind(*e.positional, **dict(e.keywords))
        except TypeError as error:
            raise ScriptError(f"line {e.line}: {e.name}(): {error}.") from None
        count, act = len(e.positional), builtin.run
        parts = [*e.positional, *(value for _, value in e.keywords)]

        machine, cost = self.machine, builtin.cost

        def call_builtin(x: list[Value]) -> Any:
            machine.budget_left -= cost
            if machine.budget_left < -10 * BUDGET:
                raise ScriptError(f"line {e.line}: one statement takes longer than a step.")
            try:
                return act(*x[:count], **dict(zip(names, x[count:], strict=True)))
            except ScriptError as error:
                raise ScriptError(f"line {e.line}: {e.name}(): {error}") from None

        arguments = self._apply(parts, call_builtin)
        if not builtin.waits:
            return arguments

        def flow(frame: Frame) -> Wait:
            wait = (yield from arguments.run(frame)) if arguments.waits else arguments.run(frame)
            try:
                return (yield from wait)
            except ScriptError as error:
                raise ScriptError(f"line {e.line}: {e.name}(): {error}") from None

        return Code(True, flow)

    def _program_call(self, e: Call) -> Code:
        """Compile a call of a program's function."""
        machine, name = self.machine, e.name
        bind = self._binder(e.name, len(e.positional), tuple(n for n, _ in e.keywords), e.line)
        arguments = self._apply([*e.positional, *(value for _, value in e.keywords)], bind)
        bodies, depths = self.bodies, self.depths

        def flow(frame: Frame) -> Wait:
            call_frame = (
                (yield from arguments.run(frame)) if arguments.waits else arguments.run(frame)
            )
            machine.budget_left -= 1
            if machine.budget_left < 0:
                yield
            depth = depths[name]
            machine.enter_call(depth)
            out = yield from bodies[name](call_frame)
            machine.leave_call(depth)
            return out

        return Code(True, flow)

    def _binder(
        self, name: str, positional: int, keywords: tuple[str, ...], line: int
    ) -> Callable[[list[Value]], Frame]:
        """Function from the values of a call to the frame of the called function."""
        define = self.definitions[name]
        parameters = [parameter for parameter, _ in define.parameters]
        bound_names = [*parameters[:positional], *keywords]
        optional = {parameter for parameter, value in define.parameters if value is not None}
        is_wrong = positional > len(parameters) or any(n not in parameters for n in keywords)
        missing = [n for n in parameters if n not in bound_names and n not in optional]
        if is_wrong or missing or len(set(bound_names)) != len(bound_names):
            raise ScriptError(
                f"line {line}: {name}() takes {', '.join(parameters) or 'no parameters'}; found "
                f"{positional} by position and {', '.join(keywords) or 'none'} by name."
            )
        defaults = self.defaults

        def bind(x: list[Value]) -> Frame:
            frame = {n: copy_value(v) for n, v in zip(bound_names, x, strict=True)}
            for parameter, code in defaults[name].items():
                if parameter not in frame:
                    frame[parameter] = copy_value(code.run({}))
            return frame

        return bind

    def _start(self, e: StartThread) -> Code:
        machine, name = self.machine, e.name
        if name not in self.definitions:
            raise ScriptError(f"line {e.line}: there is no thread {name}.")
        bind = self._binder(name, len(e.positional), (), e.line)
        bodies = self.bodies
        return self._apply([*e.positional], lambda x: machine.start(bodies[name](bind(x))))
