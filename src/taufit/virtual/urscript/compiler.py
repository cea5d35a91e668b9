"""Statements of the syntax tree -> closures on a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from taufit.virtual.urscript import values
from taufit.virtual.urscript.expressions import Code, Expressions
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.machine import Frame, Machine, Wait
from taufit.virtual.urscript.parser import (
    Assign,
    Define,
    Expression,
    ExpressionStatement,
    If,
    KeywordStatement,
    Name,
    Return,
    Statement,
    ThreadStatement,
    While,
)
from taufit.virtual.urscript.values import Value, copy_value, is_true


class _Signal:
    """Signal that ends a block early."""

    __slots__ = ("value",)

    def __init__(self, value: Value = None) -> None:
        self.value = value


# Blocks with more statements may be interrupted between them.
_MAX_UNINTERRUPTED = 100
_BREAK, _CONTINUE = _Signal(), _Signal()


class Compiler(Expressions):
    """Compiles a program's statements for one machine."""

    def __init__(self, machine: Machine, statements: tuple[Statement, ...]) -> None:
        super().__init__(machine)
        self.shared: set[str] = set()
        self._collect(statements)
        self.statements = tuple(s for s in statements if not isinstance(s, Define))
        # Variables of the main program are visible in its functions and threads.
        self.shared |= {
            s.target.name
            for s in self.statements
            if isinstance(s, Assign) and isinstance(s.target, Name)
        }

    def main(self) -> Wait:
        """Main thread of the program."""
        for name, define in self.definitions.items():
            self._function(name, define)
        self.local = set()
        body = _generator(self.block(self.statements))

        def flow() -> Wait:
            yield from body({})

        return flow()

    def _collect(self, statements: tuple[Statement, ...]) -> None:
        """Collect functions and global names."""
        for s in _walk(statements):
            if isinstance(s, Define):
                if s.name in self.machine.functions:
                    raise ScriptError(
                        f"line {s.line}: {s.name} is a function of the controller already."
                    )
                self.definitions[s.name] = s
            elif isinstance(s, Assign) and s.scope == "global" and isinstance(s.target, Name):
                self.shared.add(s.target.name)

    def _function(self, name: str, define: Define) -> None:
        self.local = set()
        self.defaults[name] = {
            parameter: self.immediate(value, f"line {define.line}: a default value")
            for parameter, value in define.parameters
            if value is not None
        }
        self.local = {parameter for parameter, _ in define.parameters}
        for s in _walk(define.body, skip_functions=True):
            if isinstance(s, Assign) and isinstance(s.target, Name):
                is_local = s.scope == "local" or (not s.scope and s.target.name not in self.shared)
                if is_local:
                    self.local.add(s.target.name)
        body_statements = tuple(s for s in define.body if not isinstance(s, Define))
        self.depths[name] = 2 + _nesting(body_statements)
        block = _generator(self.block(body_statements))

        def run(frame: Frame) -> Wait:
            ended = yield from block(frame)
            return ended.value if ended is not None else None

        self.bodies[name] = run

    # Statements: None, or a signal that ends the block.

    def block(self, statements: tuple[Statement, ...]) -> Code:
        codes = [self.statement(s) for s in statements if not isinstance(s, Define)]
        machine = self.machine
        if len(codes) < _MAX_UNINTERRUPTED and not any(code.waits for code in codes):
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
                machine.budget_left -= 1
                if machine.budget_left < 0:
                    yield
            return None

        return Code(True, flow)

    def statement(self, s: Statement) -> Code:
        match s:
            case ExpressionStatement(value=value):
                return self._do(value)
            case Assign():
                return self._assign(s)
            case If():
                return self._if(s)
            case While():
                return self._while(s)
            case Return(value=value):
                return self._return(value)
            case KeywordStatement():
                return self._word(s)
            case ThreadStatement():
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

        def run_once(frame: Frame) -> None:
            run(frame)

        return Code(False, run_once)

    def _assign(self, s: Assign) -> Code:
        value = self.expression(s.value)
        store = self._store(s)
        run = value.run
        if value.waits:

            def flow(frame: Frame) -> Wait:
                store(frame, copy_value((yield from run(frame))))
                return None

            return Code(True, flow)

        def run_once(frame: Frame) -> None:
            store(frame, copy_value(run(frame)))

        return Code(False, run_once)

    def _store(self, s: Assign) -> Callable[[Frame, Value], None]:
        shared = self.machine.variables
        if isinstance(s.target, Name):
            name = s.target.name
            if name in self.local and s.scope != "global":
                return lambda frame, value: frame.__setitem__(name, value)
            return lambda frame, value: shared.__setitem__(name, value)
        list_code = self.immediate(s.target.target, f"line {s.line}: an assigned list").run
        indices = [self.immediate(i, f"line {s.line}: an index").run for i in s.target.items]

        def put(frame: Frame, value: Value) -> None:
            target = list_code(frame)
            for index in indices[:-1]:
                target = values.element(target, index(frame))
            element_index = indices[-1](frame)
            if not isinstance(target, list):
                raise ScriptError(f"line {s.line}: {values.format_value(target)} is not a list.")
            element_index = values.list_index(target, element_index)
            if isinstance(value, list) and isinstance(target[element_index], list) is False:
                raise ScriptError(f"line {s.line}: an element of a list becomes a list.")
            if isinstance(value, list) and len(value) != len(target[element_index]):
                raise ScriptError(f"line {s.line}: a row of another length.")
            target[element_index] = value

        if not indices:
            raise ScriptError(f"line {s.line}: an index is missing.")
        return put

    def _if(self, s: If) -> Code:
        arms = [(self.expression(condition), self.block(body)) for condition, body in s.arms]
        otherwise = self.block(s.otherwise)
        if not any(c.waits or b.waits for c, b in arms) and not otherwise.waits:
            pairs = [(condition.run, body.run) for condition, body in arms]
            last = otherwise.run

            def run_branches(frame: Frame) -> _Signal | None:
                for condition, body in pairs:
                    if is_true(condition(frame)):
                        return body(frame)
                return last(frame)

            return Code(False, run_branches)

        def flow(frame: Frame) -> Wait:
            for condition, body in arms:
                condition_value = (
                    (yield from condition.run(frame)) if condition.waits else condition.run(frame)
                )
                if is_true(condition_value):
                    return (yield from body.run(frame)) if body.waits else body.run(frame)
            return (yield from otherwise.run(frame)) if otherwise.waits else otherwise.run(frame)

        return Code(True, flow)

    def _while(self, s: While) -> Code:
        condition, body = self.expression(s.condition), self.block(s.body)
        machine = self.machine
        cost = 1 + _size(s.body)

        def flow(frame: Frame) -> Wait:
            while True:
                condition_value = (
                    (yield from condition.run(frame)) if condition.waits else condition.run(frame)
                )
                if not is_true(condition_value):
                    return None
                # Interrupt loops that never wait.
                machine.budget_left -= cost
                if machine.budget_left < 0:
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

    def _word(self, s: KeywordStatement) -> Code:
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

    def _order(self, s: ThreadStatement) -> Code:
        machine = self.machine
        handle = self.immediate(s.handle, f"{s.word}: a thread's handle").run
        if s.word == "kill":
            return Code(False, lambda frame: machine.kill(handle(frame)))

        def flow(frame: Frame) -> Wait:
            thread_handle = handle(frame)
            while machine.alive(thread_handle):
                yield
            return None

        return Code(True, flow)


def _generator(code: Code) -> Callable[[Frame], Wait]:
    """Code as a generator, whether it waits or not."""
    if code.waits:
        return code.run

    def flow(frame: Frame) -> Wait:
        return code.run(frame)
        yield  # pragma: no cover

    return flow


def _walk(
    statements: tuple[Statement, ...], *, skip_functions: bool = False
) -> Iterator[Statement]:
    """All statements; `skip_functions` omits the bodies of nested functions."""
    for s in statements:
        yield s
        if isinstance(s, Define) and not skip_functions:
            yield from _walk(s.body)
        elif isinstance(s, If):
            for _, body in s.arms:
                yield from _walk(body, skip_functions=skip_functions)
            yield from _walk(s.otherwise, skip_functions=skip_functions)
        elif isinstance(s, While):
            yield from _walk(s.body, skip_functions=skip_functions)


def _size(statements: tuple[Statement, ...]) -> int:
    return sum(1 for _ in _walk(statements, skip_functions=True))


def _nesting(statements: tuple[Statement, ...]) -> int:
    deepest = 0
    for s in statements:
        if isinstance(s, If):
            inner = [body for _, body in s.arms] + [s.otherwise]
            deepest = max([deepest, *(1 + _nesting(body) for body in inner)])
        elif isinstance(s, While):
            deepest = max(deepest, 1 + _nesting(s.body))
    return deepest
