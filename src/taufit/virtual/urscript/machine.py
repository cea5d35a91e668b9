"""Execution of a program: threads, critical sections and a budget per tick.

The syntax tree is compiled to closures, never to Python source: a program can only call the given
functions. Code that waits or loops is a generator that yields once per control tick; other code is
a
function, bounded by the length of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import field
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.virtual.urscript.lexer import ScriptError
from taufit.virtual.urscript.parser import Define, Statement, parse_program
from taufit.virtual.urscript.values import Value, copy_value

Wait = Generator[None, None, Value]
Frame = dict[str, Value]

# Statements per tick; a program continues in the next one.
BUDGET = 4000
MAX_THREADS = 32
# Largest depth of nested calls and blocks.
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the controller.

    Attributes:
        run: Function called with the program's arguments; a generator function if it waits.
        waits: Whether it is a generator function.
        cost: Cost of one call, in statements.
    """

    run: Callable[..., Any]
    waits: bool = False
    cost: int = 1


@dataclass(slots=True, eq=False)
class Thread:
    """Thread of a program."""

    handle: int
    flow: Wait
    depth: int = 0


@dataclass(slots=True, eq=False)
class Machine:
    """A program in execution; `tick` runs every thread to the end of its control step.

    Attributes:
        functions: Functions available to the program, by name.
        variables: Global variables.
    """

    functions: Mapping[str, Builtin]
    variables: Frame = field(default_factory=dict)
    threads: dict[int, Thread] = field(default_factory=dict)
    budget_left: int = BUDGET
    running: bool = True
    current_thread: Thread | None = None
    critical_thread: Thread | None = None
    last_handle: int = 0

    def tick(self) -> bool:
        """Run one control step; False when the program has ended."""
        self.budget_left = BUDGET
        for thread in list(self.threads.values()):
            if not self.running:
                break
            if self.threads.get(thread.handle) is not thread:
                continue
            if self.critical_thread is not None and self.critical_thread is not thread:
                continue
            self._advance(thread)
        return self.running

    def _advance(self, thread: Thread) -> None:
        self.current_thread = thread
        try:
            next(thread.flow)
        except (StopIteration, _ThreadEnd):
            self._remove_thread(thread)
        except RecursionError:
            raise ScriptError("the program calls itself too deeply.") from None
        except (OverflowError, ValueError, MemoryError) as error:
            raise ScriptError(f"a calculation failed: {error}.") from None
        finally:
            self.current_thread = None

    def _remove_thread(self, thread: Thread) -> None:
        self.threads.pop(thread.handle, None)
        if self.critical_thread is thread:
            self.critical_thread = None
        if thread.handle == 0:
            self.running = False

    def stop(self) -> None:
        """End the program."""
        self.running = False
        for thread in self.threads.values():
            if thread is not self.current_thread:
                thread.flow.close()
        self.threads.clear()
        self.critical_thread = None

    # Functions called by compiled code.

    def start(self, flow: Wait) -> int:
        if len(self.threads) >= MAX_THREADS:
            raise ScriptError(f"more than {MAX_THREADS} threads at once.")
        self.last_handle += 1
        self.threads[self.last_handle] = Thread(self.last_handle, flow)
        return self.last_handle

    def is_alive(self, handle: Value) -> bool:
        return bool(handle) and handle in self.threads

    def kill(self, handle: Value) -> None:
        """End a thread; handle 0 and None are ignored."""
        thread = self.threads.get(handle) if handle and isinstance(handle, int) else None
        if thread is None:
            return
        self._remove_thread(thread)
        if thread is self.current_thread:
            raise _ThreadEnd
        thread.flow.close()

    def set_critical(self, enter: bool) -> None:
        self.critical_thread = self.current_thread if enter else None

    def halt(self) -> None:
        self.running = False
        raise _ThreadEnd

    def enter_call(self, depth: int) -> None:
        assert self.current_thread is not None
        self.current_thread.depth += depth
        if self.current_thread.depth > MAX_DEPTH:
            raise ScriptError("the program calls itself too deeply.")

    def leave_call(self, depth: int) -> None:
        if self.current_thread is not None:
            self.current_thread.depth -= depth


class _ThreadEnd(BaseException):
    """Unwinds a thread that ended itself; programs cannot catch it."""


def load_program(program: str, functions: Mapping[str, Builtin]) -> Machine:
    """Compile a program and create its main thread.

    A single `def` is the program; otherwise the statements between the definitions are.
    """
    from taufit.virtual.urscript.compiler import Compiler

    statements = parse_program(program)
    machine = Machine(functions)
    while len(statements) == 1 and isinstance(statements[0], Define):
        statements = statements[0].body
    flow = Compiler(machine, statements).main()
    machine.threads[0] = Thread(0, flow)
    return machine


__all__ = ["Builtin", "Machine", "ScriptError", "Statement", "copy_value", "load_program"]
