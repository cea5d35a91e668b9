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
_registered: dict[str, int] = {}
# A fork has its parent's list, and nothing of its own in it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_registered.clear)
_kernel: Any = None


def register_path(path: str | os.PathLike[str]) -> None:
    """Note, before it exists, something that must not outlive this process."""
    name = os.path.abspath(path)
    _registered[name] = -1 if _kernel is None else _kernel.keep_path(name)


def unregister_path(path: str | os.PathLike[str]) -> None:
    """Forget it: it is gone or finished."""
    number = _registered.pop(os.path.abspath(path), -1)
    if _kernel is not None:
        _kernel.drop_path(number)


def is_registered(path: str | os.PathLike[str]) -> bool:
    """Whether something is noted."""
    return os.path.abspath(path) in _registered


def remove_registered() -> None:
    """Remove all that is under way; for a signal handler and for the end of a run."""
    for name in list(_registered):
        shutil.rmtree(name, ignore_errors=True)
        unregister_path(name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone after the block, and after a signal."""
    folder = Path(tempfile.mkdtemp(prefix="taufit-"))
    register_path(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        unregister_path(folder)


@contextmanager
def guard_signals(numbers: list[int]) -> Iterator[None]:
    """Signals that have a Python handler end the process within `PATIENCE_S` inside the block."""
    global _kernel
    try:
        from taufit import _kernel as compiled
    except ImportError:
        compiled = None
    if compiled is None or not hasattr(compiled, "guard_signal"):
        with _watch_signals():
            yield
        return
    _kernel = compiled
    for name in _registered:
        _registered[name] = compiled.keep_path(name)
    for number in numbers:
        compiled.guard_signal(number, PATIENCE_S)
    try:
        yield
    finally:
        compiled.release_signals()
        for number in _registered.values():
            compiled.drop_path(number)
        _kernel = None


def extend_deadline() -> None:
    """Take the time that is needed: Python runs, and the end is under way."""
    if _kernel is not None:
        _kernel.calm_alarm()
    _deadline_extended.set()


_deadline_extended = threading.Event()


@contextmanager
def _watch_signals() -> Iterator[None]:
    """Without the kernel: a thread that sees signals, and gets to run where a call lets it."""
    if threading.current_thread() is not threading.main_thread() or os.name == "nt":
        yield
        return
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    previous = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    _deadline_extended.clear()
    threading.Thread(target=_signal_thread, args=(source,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        os.close(sink)


def _signal_thread(source: int) -> None:
    with suppress(OSError), open(source, "rb", buffering=0) as stream:
        ending = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
        while number := stream.read(1):
            if number[0] in ending and not _deadline_extended.wait(PATIENCE_S):
                remove_registered()
                os._exit(128 + number[0])
