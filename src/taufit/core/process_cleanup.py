"""Clean-up of temporary files when a signal ends the process, also inside calls that block.

Commands guard their signals; a library leaves them to its caller. The guard is in the kernel
(ending.cpp), since a Python handler does not run while a call holds the interpreter's lock. Without
the compiled kernel a thread is used.
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

# Time after which a signal ends the process unconditionally [s].
PATIENCE_S = 4
# Temporary files and folders, with their numbers in the kernel's list.
_registered: dict[str, int] = {}
# A forked process must not remove files of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_registered.clear)
_kernel: Any = None


def register_path(path: str | os.PathLike[str]) -> None:
    """Register a path, before it exists, that must not outlive this process."""
    name = os.path.abspath(path)
    _registered[name] = -1 if _kernel is None else _kernel.keep_path(name)


def unregister_path(path: str | os.PathLike[str]) -> None:
    """Unregister a path that is finished or removed."""
    number = _registered.pop(os.path.abspath(path), -1)
    if _kernel is not None:
        _kernel.drop_path(number)


def is_registered(path: str | os.PathLike[str]) -> bool:
    """Whether a path is registered."""
    return os.path.abspath(path) in _registered


def remove_registered() -> None:
    """Remove all registered paths; for signal handlers and the end of a run."""
    for name in list(_registered):
        shutil.rmtree(name, ignore_errors=True)
        unregister_path(name)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Context with a folder that is removed afterwards, also after a signal."""
    folder = Path(tempfile.mkdtemp(prefix="taufit-"))
    register_path(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        unregister_path(folder)


@contextmanager
def guard_signals(numbers: list[int]) -> Iterator[None]:
    """Within the block, signals with a Python handler end the process within `PATIENCE_S`."""
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
    """Cancel the deadline: the Python handler runs and ends the process itself."""
    if _kernel is not None:
        _kernel.calm_alarm()
    _deadline_extended.set()


_deadline_extended = threading.Event()


@contextmanager
def _watch_signals() -> Iterator[None]:
    """Guard without the kernel: a thread that receives signals."""
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
