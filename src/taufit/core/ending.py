"""What a process has under way, and its end by a signal, also inside calls that never come back.

Commands guard their signals; a library leaves them to its caller. The guard is in the kernel
(ending.cpp): a Python handler runs between two instructions of Python, and a call that holds the
interpreter's lock has none. Without the compiled kernel a thread does what it can.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Seconds after which a signal ends the process, come what may.
PATIENCE_S = 4
# Files and folders under way, with their numbers in the kernel's list.
_under_way: dict[str, int] = {}
# A fork has its parent's list, and nothing of its own in it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)
_kernel: Any = None


def keep(path: str | os.PathLike[str]) -> None:
    """Note, before it exists, something that must not outlive this process."""
    name = os.path.abspath(path)
    _under_way[name] = -1 if _kernel is None else _kernel.keep_path(name)


def drop(path: str | os.PathLike[str]) -> None:
    """Forget it: it is gone or finished."""
    number = _under_way.pop(os.path.abspath(path), -1)
    if _kernel is not None:
        _kernel.drop_path(number)


def is_kept(path: str | os.PathLike[str]) -> bool:
    """Whether something is noted."""
    return os.path.abspath(path) in _under_way


def discard() -> None:
    """Remove all that is under way; for a signal handler and for the end of a run."""
    for name in list(_under_way):
        shutil.rmtree(name, ignore_errors=True)
        drop(name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone after the block, and after a signal."""
    folder = Path(tempfile.mkdtemp(prefix="taufit-"))
    keep(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        drop(folder)


@contextmanager
def guarded(numbers: list[int]) -> Iterator[None]:
    """Signals that have a Python handler end the process within `PATIENCE_S` inside the block."""
    global _kernel
    try:
        from taufit import _kernel as compiled
    except ImportError:
        compiled = None
    if compiled is None or not hasattr(compiled, "guard_signal"):
        with _watched():
            yield
        return
    _kernel = compiled
    for name in _under_way:
        _under_way[name] = compiled.keep_path(name)
    for number in numbers:
        compiled.guard_signal(number, PATIENCE_S)
    try:
        yield
    finally:
        compiled.release_signals()
        for number in _under_way.values():
            compiled.drop_path(number)
        _kernel = None


def calm() -> None:
    """Take the time that is needed: Python runs, and the end is under way."""
    if _kernel is not None:
        _kernel.calm_alarm()
    _calmed.set()


_calmed = threading.Event()


@contextmanager
def _watched() -> Iterator[None]:
    """Without the kernel: a thread that sees signals, and gets to run where a call lets it."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    before = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    _calmed.clear()
    threading.Thread(target=_watch, args=(source,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(sink)


def _watch(source: int) -> None:
    with suppress(OSError), open(source, "rb", buffering=0) as stream:
        ending = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
        while number := stream.read(1):
            if number[0] in ending and not _calmed.wait(PATIENCE_S):
                discard()
                os._exit(128 + number[0])
