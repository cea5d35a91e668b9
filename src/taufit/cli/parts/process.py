"""Process behaviour of the command: pipes, closed streams, signals, terminals."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

from taufit.core import process_cleanup
from taufit.core.names import printable

# New objects after which Python looks for cycles; 700 by default.
_OBJECTS_PER_COLLECTION = 50_000
# Terminal widths that rich handles.
_WIDTHS = range(10, 10_001)


class _PipeSafeFile(io.FileIO):
    """Stream whose reader may close it: later output is discarded.

    `taufit ... | head` then runs to its end with the exit code of its result. With `careless`, no
    error is raised at all: a message that cannot be shown must not change the exit code.
    """

    ignore_errors = False

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            return len(memoryview(data))  # type: ignore[arg-type]
        except OSError:
            if not self.ignore_errors:
                raise
            return len(memoryview(data))  # type: ignore[arg-type]


class _FilteredStream(io.TextIOWrapper):
    """Text stream for a terminal; control characters from files are escaped."""

    def write(self, text: str, /) -> int:
        return super().write(printable(text))

    @property
    def unfiltered(self) -> _UnfilteredStream:
        """Stream without the filter, for text with our own control codes (`SafeConsole`)."""
        return _UnfilteredStream(self)


class _UnfilteredStream:
    def __init__(self, stream: _FilteredStream) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def configure_process() -> None:
    """Configure streams, terminal width, signals and garbage collection, before all else."""
    # A command makes few cycles and many objects that stay: looking for the former is a tenth of a
    # fit with the defaults, a fourth of that when Python ends.
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    atexit.register(gc.freeze)
    _reserve_descriptors()
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _open_stream(1, ignore_errors=False)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _open_stream(2, ignore_errors=True)
        if not sys.warnoptions:
            # NumPy warnings are replaced by messages that name file and place.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name)
        if text is not None and not (text.isdecimal() and len(text) < 9 and int(text) in _WIDTHS):
            del os.environ[name]


@contextmanager
def handle_signals(*, wait_for_end: bool = False) -> Iterator[None]:
    """Handle signals: clean up first, within seconds, then end.

    Args:
        wait_for_end: Take the time of an orderly end, e.g. to complete a recording.
    """
    old_handlers = {}
    for name, handler in (
        ("SIGTERM", _TerminationHandler(wait_for_end)),
        ("SIGHUP", _TerminationHandler(wait_for_end)),
        ("SIGINT", _InterruptHandler(wait_for_end)),
    ):
        number = getattr(signal, name, None)
        if number is None:
            continue
        # Not allowed outside the main thread; signals ignored by `nohup` stay ignored.
        with suppress(ValueError):
            if signal.getsignal(number) != signal.SIG_IGN:
                old_handlers[number] = signal.signal(number, handler)
    try:
        with process_cleanup.guard_signals(list(old_handlers)):
            yield
    finally:
        for number, old_handler in old_handlers.items():
            signal.signal(number, old_handler)
        process_cleanup.remove_registered()


class _InterruptHandler:
    """Handler of Ctrl-C."""

    def __init__(self, wait_for_end: bool) -> None:
        self.wait_for_end = wait_for_end

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.wait_for_end:
            process_cleanup.extend_deadline()
        raise KeyboardInterrupt


class _TerminationHandler:
    """Handler of termination: an exception at first for clean-up, then immediate exit."""

    def __init__(self, wait_for_end: bool) -> None:
        self.wait_for_end, self.was_signalled = wait_for_end, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.wait_for_end:
            process_cleanup.extend_deadline()
        if self.was_signalled:
            process_cleanup.remove_registered()
            os._exit(128 + number)
        self.was_signalled = True
        raise SystemExit(128 + number)


def flush_output() -> None:
    """Flush all output; raises OSError if that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try again at exit.
        _redirect_to_null(1)
        raise OSError(error.errno, error.strerror, "standard output") from None
    finally:
        with suppress(OSError):
            sys.stderr.flush()


def _reserve_descriptors() -> None:
    """Reopen closed standard streams, so that no other file gets their numbers.

    Standard output is opened such that writing fails, as on a closed stream.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _open_stream(number: int, *, ignore_errors: bool) -> TextIO:
    # Encoding of the locale as chosen by Python, else UTF-8.
    original = sys.stdout if number == 1 else sys.stderr
    if original is not None:
        with suppress(OSError):
            original.flush()
    raw = _PipeSafeFile(number, "wb", closefd=False)
    raw.ignore_errors = ignore_errors
    return _FilteredStream(
        io.BufferedWriter(raw),
        encoding=getattr(original, "encoding", None) or "utf-8",
        # File names may not be UTF-8: escape undisplayable characters.
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )


def _redirect_to_null(number: int) -> None:
    with suppress(OSError):
        null_file = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_file, number)
        os.close(null_file)
