"""How the command behaves as a process: pipes, closed streams, signals, odd terminals."""

from __future__ import annotations

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

# Outside of this rich prints nothing, or pads lines by the megabyte.
_WIDTHS = range(10, 10_001)


class _Outlet(io.FileIO):
    """A stream whose reader may leave: what is written after that goes nowhere.

    So `taufit ... | head` runs to its end and exits with the code of its result. Where `careless`,
    no error at all is raised: a message that cannot be shown must not change the exit code.
    """

    careless = False

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            return len(memoryview(data))  # type: ignore[arg-type]
        except OSError:
            if not self.careless:
                raise
            return len(memoryview(data))  # type: ignore[arg-type]


class _Stream(io.TextIOWrapper):
    """Text for a terminal. What a file may have smuggled in to act there is spelled out."""

    def write(self, text: str, /) -> int:
        return super().write(printable(text))

    @property
    def unfiltered(self) -> _Unfiltered:
        """The same for texts whose codes are our own (`Screen`)."""
        return _Unfiltered(self)


class _Unfiltered:
    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def configure_process() -> None:
    """Streams, terminal width and signals, before anything else runs."""
    _reserve_descriptors()
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, careless=False)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, careless=True)
        if not sys.warnoptions:
            # NumPy's words about a number are no words for a user; ours name file and place.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name)
        if text is not None and not (text.isdecimal() and len(text) < 9 and int(text) in _WIDTHS):
            del os.environ[name]


@contextmanager
def stoppable(*, patient: bool = False) -> Iterator[None]:
    """Signals end the run in order: what is under way is undone first, within seconds.

    Args:
        patient: Take the time an orderly end needs, as a recording that is finished does.
    """
    before = {}
    for name, handler in (("SIGTERM", _Stop(patient)), ("SIGHUP", _Stop(patient)),
                          ("SIGINT", _Interrupt(patient))):  # fmt: skip
        number = getattr(signal, name, None)
        if number is None:
            continue
        # Refused outside the main thread; what `nohup` has switched off stays off.
        with suppress(ValueError):
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    try:
        with process_cleanup.guard_signals(list(before)):
            yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
        process_cleanup.remove_registered()


class _Interrupt:
    """Ctrl-C as Python knows it."""

    def __init__(self, patient: bool) -> None:
        self.patient = patient

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.patient:
            process_cleanup.extend_deadline()
        raise KeyboardInterrupt


class _Stop:
    """First an exception, so that everything is left in order; if that does not help, the end."""

    def __init__(self, patient: bool) -> None:
        self.patient, self.asked = patient, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.patient:
            process_cleanup.extend_deadline()
        if self.asked:
            process_cleanup.remove_registered()
            os._exit(128 + number)
        self.asked = True
        raise SystemExit(128 + number)


def finish() -> None:
    """Everything printed has arrived, or an OSError says why not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try once more on its way out, and complain.
        _silence(1)
        raise OSError(error.errno, error.strerror, "standard output") from None
    finally:
        with suppress(OSError):
            sys.stderr.flush()


def _reserve_descriptors() -> None:
    """Closed standard streams are opened again: no file of ours may get their numbers.

    Standard output is opened such that writing to it fails, as it does when it is closed.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _stream(number: int, *, careless: bool) -> TextIO:
    # Python opened it with the locale's encoding; without one, UTF-8.
    before = sys.stdout if number == 1 else sys.stderr
    if before is not None:
        with suppress(OSError):
            before.flush()
    raw = _Outlet(number, "wb", closefd=False)
    raw.careless = careless
    return _Stream(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        # File names need not be UTF-8; what the terminal cannot show is spelled out.
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )


def _silence(number: int) -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
