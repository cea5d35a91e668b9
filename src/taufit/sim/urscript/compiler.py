"""Syntax tree -> closures on a machine."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from taufit.sim.urscript import values
from taufit.sim.urscript.lexer import ScriptError
from taufit.sim.urscript.machine import BUDGET, Frame, Machine, Wait
from taufit.sim.urscript.parser import (
    Assign,
    Binary,
    Call,
    Define,
    Do,
    Expression,
    If,
    Index,
    ListOf,
    Literal,
    Name,
    Return,
    Start,
    Statement,
    ThreadOrder,
    Unary,
    While,
    Word,
)
from taufit.sim.urscript.values import Value, copied, truth


@dataclass(frozen=True, slots=True)
class Code:
    """Compiled tree: `run(frame)` gives a value, or a generator that does where it `waits`."""

    waits: bool
    run: Callable[[Frame], Any]


class _Signal:
    """Why a block ended early."""

    __slots__ = ("value",)

    def __init__(self, value: Value = None) -> None:
        self.value = value


# A block this long may be interrupted between its statements.
_LONG = 100
_BREAK, _CONTINUE = _Signal(), _Signal()


class Compiler:
    """Compiles a program's statements for one machine."""

    def __init__(self, machine: Machine, statements: tuple[Statement, ...]) -> None:
        self.machine = machine
        self.defined: dict[str, Define] = {}
        self.bodies: dict[str, Callable[[Frame], Wait]] = {}
        self.defaults: dict[str, dict[str, Code]] = {}
        self.depths: dict[str, int] = {}
        self.shared: set[str] = set()
        self.local: set[str] = set()
        self._collect(statements)
        self.statements = tuple(s for s in statements if not isinstance(s, Define))
        # What the program itself assigns is seen by its functions and threads.
        self.shared |= {
            s.target.name
            for s in self.statements
            if isinstance(s, Assign) and isinstance(s.target, Name)
        }

    def main(self) -> Wait:
        """The program's main thread."""
        for name, define in self.defined.items():
            self._function(name, define)
        self.local = set()
        body = _generator(self.block(self.statements))

        def flow() -> Wait:
            yield from body({})

        return flow()

    def _collect(self, statements: tuple[Statement, ...]) -> None:
        """Functions and global names, wherever they are written."""
        for s in _walk(statements):
            if isinstance(s, Define):
                if s.name in self.machine.functions:
                    raise ScriptError(
                        f"line {s.line}: {s.name} is a function of the controller already."
                    )
                self.defined[s.name] = s
            elif isinstance(s, Assign) and s.scope == "global" and isinstance(s.target, Name):
                self.shared.add(s.target.name)

    def _function(self, name: str, define: Define) -> None:
        self.local = set()
        self.defaults[name] = {
            parameter: self.plain(value, f"line {define.line}: a default value")
            for parameter, value in define.parameters
            if value is not None
        }
        self.local = {parameter for parameter, _ in define.parameters}
        for s in _walk(define.body, inside=True):
            if isinstance(s, Assign) and isinstance(s.target, Name):
                private = s.scope == "local" or (not s.scope and s.target.name not in self.shared)
                if private:
                    self.local.add(s.target.name)
        own = tuple(s for s in define.body if not isinstance(s, Define))
        self.depths[name] = 2 + _nesting(own)
        block = _generator(self.block(own))

        def run(frame: Frame) -> Wait:
            ended = yield from block(frame)
            return ended.value if ended is not None else None

        self.bodies[name] = run

    # Statements: None, or a signal that ends the block.

    def block(self, statements: tuple[Statement, ...]) -> Code:
        codes = [self.statement(s) for s in statements if not isinstance(s, Define)]
        machine = self.machine
        if len(codes) < _LONG and not any(code.waits for code in codes):
            steps = [code.run for code in codes]

            def run(frame: Frame) -> _Signal | None:
                for step in steps:
                    ended = step(frame)
                    if ended is not None:
                        return ended
                return None

            return Code(False, run)
        pairs = [(code.waits, code.run) for code in codes]

        def flow(frame: Frame) -> Wait:
            for waits, step in pairs:
                ended = (yield from step(frame)) if waits else step(frame)
                if ended is not None:
                    return ended
                machine.left -= 1
                if machine.left < 0:
                    yield
            return None

        return Code(True, flow)

    def statement(self, s: Statement) -> Code:
        match s:
            case Do(value=value):
                return self._do(value)
            case Assign():
                return self._assign(s)
            case If():
                return self._if(s)
            case While():
                return self._while(s)
            case Return(value=value):
                return self._return(value)
            case Word():
                return self._word(s)
            case ThreadOrder():
                return self._order(s)
        raise ScriptError(f"a {type(s).__name__} is out of place.")

    def _do(self, value: Expression) -> Code:
        code = self.expression(value)
        run = code.run
        if code.waits:

            def flow(frame: Frame) -> Wait:
                yield from run(frame)
                return None

            return Code(True, flow)

        def plain(frame: Frame) -> None:
            run(frame)

        return Code(False, plain)

    def _assign(self, s: Assign) -> Code:
        value = self.expression(s.value)
        store = self._store(s)
        run = value.run
        if value.waits:

            def flow(frame: Frame) -> Wait:
                store(frame, copied((yield from run(frame))))
                return None

            return Code(True, flow)

        def plain(frame: Frame) -> None:
            store(frame, copied(run(frame)))

        return Code(False, plain)

    def _store(self, s: Assign) -> Callable[[Frame, Value], None]:
        shared = self.machine.variables
        if isinstance(s.target, Name):
            name = s.target.name
            if name in self.local and s.scope != "global":
                return lambda frame, value: frame.__setitem__(name, value)
            return lambda frame, value: shared.__setitem__(name, value)
        whole = self.plain(s.target.target, f"line {s.line}: an assigned list").run
        indices = [self.plain(i, f"line {s.line}: an index").run for i in s.target.items]

        def put(frame: Frame, value: Value) -> None:
            target = whole(frame)
            for index in indices[:-1]:
                target = values.element(target, index(frame))
            at = indices[-1](frame)
            if not isinstance(target, list):
                raise ScriptError(f"line {s.line}: {values.show(target)} is not a list.")
            at = values.position(target, at)
            if isinstance(value, list) and isinstance(target[at], list) is False:
                raise ScriptError(f"line {s.line}: an element of a list becomes a list.")
            if isinstance(value, list) and len(value) != len(target[at]):
                raise ScriptError(f"line {s.line}: a row of another length.")
            target[at] = value

        if not indices:
            raise ScriptError(f"line {s.line}: an index is missing.")
        return put

    def _if(self, s: If) -> Code:
        arms = [(self.expression(condition), self.block(body)) for condition, body in s.arms]
        otherwise = self.block(s.otherwise)
        if not any(c.waits or b.waits for c, b in arms) and not otherwise.waits:
            pairs = [(condition.run, body.run) for condition, body in arms]
            last = otherwise.run

            def plain(frame: Frame) -> _Signal | None:
                for condition, body in pairs:
                    if truth(condition(frame)):
                        return body(frame)
                return last(frame)

            return Code(False, plain)

        def flow(frame: Frame) -> Wait:
            for condition, body in arms:
                met = (yield from condition.run(frame)) if condition.waits else condition.run(frame)
                if truth(met):
                    return (yield from body.run(frame)) if body.waits else body.run(frame)
            return (yield from otherwise.run(frame)) if otherwise.waits else otherwise.run(frame)

        return Code(True, flow)

    def _while(self, s: While) -> Code:
        condition, body = self.expression(s.condition), self.block(s.body)
        machine = self.machine
        cost = 1 + _size(s.body)

        def flow(frame: Frame) -> Wait:
            while True:
                met = (yield from condition.run(frame)) if condition.waits else condition.run(frame)
                if not truth(met):
                    return None
                # A loop that never waits cannot hold the clock.
                machine.left -= cost
                if machine.left < 0:
                    yield
                ended = (yield from body.run(frame)) if body.waits else body.run(frame)
                if ended is _BREAK:
                    return None
                if ended is not None and ended is not _CONTINUE:
                    return ended

        return Code(True, flow)

    def _return(self, value: Expression | None) -> Code:
        if value is None:
            return Code(False, lambda frame: _Signal())
        code = self.expression(value)
        run = code.run
        if code.waits:

            def flow(frame: Frame) -> Wait:
                return _Signal((yield from run(frame)))

            return Code(True, flow)
        return Code(False, lambda frame: _Signal(run(frame)))

    def _word(self, s: Word) -> Code:
        machine = self.machine
        actions: dict[str, Callable[[Frame], Any]] = {
            "break": lambda frame: _BREAK,
            "continue": lambda frame: _CONTINUE,
            "pass": lambda frame: None,
            "halt": lambda frame: machine.halt(),
            "enter_critical": lambda frame: machine.critical(True),
            "exit_critical": lambda frame: machine.critical(False),
        }
        return Code(False, actions[s.word])

    def _order(self, s: ThreadOrder) -> Code:
        machine = self.machine
        handle = self.plain(s.handle, f"{s.word}: a thread's handle").run
        if s.word == "kill":
            return Code(False, lambda frame: machine.kill(handle(frame)))

        def flow(frame: Frame) -> Wait:
            which = handle(frame)
            while machine.alive(which):
                yield
            return None

        return Code(True, flow)

    # Expressions.

    def plain(self, value: Expression, what: str) -> Code:
        """An expression that does not wait."""
        code = self.expression(value)
        if code.waits:
            raise ScriptError(f"{what} calls a function that takes time; use a variable.")
        return code

    def expression(self, e: Expression) -> Code:
        match e:
            case Literal(value=value):
                return Code(False, lambda frame: value)
            case Name():
                return self._name(e)
            case ListOf(items=items):
                return self._apply([*items], values.make_list)
            case Index():
                return self._index(e)
            case Unary(sign="not", value=inner):
                return self._apply([inner], lambda x: not truth(x[0]))
            case Unary(value=inner):
                return self._apply([inner], lambda x: values.negative(x[0]))
            case Binary(sign="and") | Binary(sign="or"):
                return self._logic(e)
            case Binary():
                return self._binary(e)
            case Call():
                return self._call(e)
            case Start():
                return self._start(e)
        raise ScriptError(f"a {type(e).__name__} is out of place.")

    def _name(self, e: Name) -> Code:
        name, line = e.name, e.line
        where = None if name in self.local else self.machine.variables

        def run(frame: Frame) -> Value:
            try:
                return (frame if where is None else where)[name]
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
        act = values.OPERATORS[e.sign]
        left, right = self.expression(e.left), self.expression(e.right)
        if left.waits or right.waits:
            return self._apply([e.left, e.right], lambda x: act(x[0], x[1]))
        a, b = left.run, right.run
        return Code(False, lambda frame: act(a(frame), b(frame)))

    def _logic(self, e: Binary) -> Code:
        left, right = self.expression(e.left), self.expression(e.right)
        stop = e.sign == "or"
        if not left.waits and not right.waits:
            a, b = left.run, right.run

            def plain(frame: Frame) -> bool:
                return stop if truth(a(frame)) is stop else truth(b(frame))

            return Code(False, plain)

        def flow(frame: Frame) -> Wait:
            first = (yield from left.run(frame)) if left.waits else left.run(frame)
            if truth(first) is stop:
                return stop
            return truth((yield from right.run(frame)) if right.waits else right.run(frame))

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
        if e.name in self.defined:
            return self._own(e)
        builtin = self.machine.functions.get(e.name)
        if builtin is None:
            raise ScriptError(
                f"line {e.line}: {e.name}() is not a function this controller knows; the program "
                "was not started."
            )
        names = [name for name, _ in e.named]
        if len(set(names)) != len(names):
            raise ScriptError(f"line {e.line}: {e.name}() is given one parameter twice.")
        try:
            inspect.signature(builtin.run).bind(*e.given, **dict(e.named))
        except TypeError as error:
            raise ScriptError(f"line {e.line}: {e.name}(): {error}.") from None
        count, act = len(e.given), builtin.run
        parts = [*e.given, *(value for _, value in e.named)]

        machine, cost = self.machine, builtin.cost

        def located(x: list[Value]) -> Any:
            machine.left -= cost
            if machine.left < -10 * BUDGET:
                raise ScriptError(f"line {e.line}: one statement takes longer than a step.")
            try:
                return act(*x[:count], **dict(zip(names, x[count:], strict=True)))
            except ScriptError as error:
                raise ScriptError(f"line {e.line}: {e.name}(): {error}") from None

        arguments = self._apply(parts, located)
        if not builtin.waits:
            return arguments

        def flow(frame: Frame) -> Wait:
            wait = (yield from arguments.run(frame)) if arguments.waits else arguments.run(frame)
            try:
                return (yield from wait)
            except ScriptError as error:
                raise ScriptError(f"line {e.line}: {e.name}(): {error}") from None

        return Code(True, flow)

    def _own(self, e: Call) -> Code:
        """A call of the program's own function."""
        machine, name = self.machine, e.name
        bind = self._binder(e.name, len(e.given), tuple(n for n, _ in e.named), e.line)
        arguments = self._apply([*e.given, *(value for _, value in e.named)], bind)
        bodies, depths = self.bodies, self.depths

        def flow(frame: Frame) -> Wait:
            own = (yield from arguments.run(frame)) if arguments.waits else arguments.run(frame)
            machine.left -= 1
            if machine.left < 0:
                yield
            depth = depths[name]
            machine.enter(depth)
            out = yield from bodies[name](own)
            machine.leave(depth)
            return out

        return Code(True, flow)

    def _binder(
        self, name: str, given: int, named: tuple[str, ...], line: int
    ) -> Callable[[list[Value]], Frame]:
        """From a call's values to the frame of the function it calls."""
        define = self.defined[name]
        parameters = [parameter for parameter, _ in define.parameters]
        chosen = [*parameters[:given], *named]
        optional = {parameter for parameter, value in define.parameters if value is not None}
        wrong = given > len(parameters) or any(n not in parameters for n in named)
        missing = [n for n in parameters if n not in chosen and n not in optional]
        if wrong or missing or len(set(chosen)) != len(chosen):
            raise ScriptError(
                f"line {line}: {name}() takes {', '.join(parameters) or 'no parameters'}; found "
                f"{given} by position and {', '.join(named) or 'none'} by name."
            )
        defaults = self.defaults

        def bind(x: list[Value]) -> Frame:
            frame = {n: copied(v) for n, v in zip(chosen, x, strict=True)}
            for parameter, code in defaults[name].items():
                if parameter not in frame:
                    frame[parameter] = copied(code.run({}))
            return frame

        return bind

    def _start(self, e: Start) -> Code:
        machine, name = self.machine, e.name
        if name not in self.defined:
            raise ScriptError(f"line {e.line}: there is no thread {name}.")
        bind = self._binder(name, len(e.given), (), e.line)
        bodies = self.bodies
        return self._apply([*e.given], lambda x: machine.start(bodies[name](bind(x))))


def _generator(code: Code) -> Callable[[Frame], Wait]:
    """The same code as a generator, whether it waits or not."""
    if code.waits:
        return code.run

    def flow(frame: Frame) -> Wait:
        return code.run(frame)
        yield  # pragma: no cover

    return flow


def _walk(statements: tuple[Statement, ...], *, inside: bool = False) -> Iterator[Statement]:
    """All statements; `inside` leaves out the bodies of nested functions."""
    for s in statements:
        yield s
        if isinstance(s, Define) and not inside:
            yield from _walk(s.body)
        elif isinstance(s, If):
            for _, body in s.arms:
                yield from _walk(body, inside=inside)
            yield from _walk(s.otherwise, inside=inside)
        elif isinstance(s, While):
            yield from _walk(s.body, inside=inside)


def _size(statements: tuple[Statement, ...]) -> int:
    return sum(1 for _ in _walk(statements, inside=True))


def _nesting(statements: tuple[Statement, ...]) -> int:
    deepest = 0
    for s in statements:
        if isinstance(s, If):
            inner = [body for _, body in s.arms] + [s.otherwise]
            deepest = max([deepest, *(1 + _nesting(body) for body in inner)])
        elif isinstance(s, While):
            deepest = max(deepest, 1 + _nesting(s.body))
    return deepest
