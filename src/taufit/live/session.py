"""One robot watched: samples in, readings out to the page, to programs and to a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.errors import RecordingError, TaufitError
from taufit.live.hub import Hub
from taufit.live.packing import pack
from taufit.recording import Recording, RecordingWriter

if TYPE_CHECKING:
    from taufit.live.monitor import Monitor, Reading
    from taufit.wire.source import Gap, SampleBlock, Source, SourceDescription

# Between two batches [s]: the page draws once per batch.
BATCH = 0.04


class StreamRecorder:
    """The file that a running source is recorded to, where somebody asks for it.

    Args:
        path: The Parquet file; further ones get a number, and without a name the time of day.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._writer: RecordingWriter | None = None
        self._description: SourceDescription | None = None
        self._since: float | None = None
        self._until = 0.0
        self.written: list[Path] = []
        self.problem = ""

    def describe(self, description: SourceDescription) -> None:
        """What will come: nothing can be recorded before."""
        with self._lock:
            self._description = description

    def start(self) -> None:
        """Begin a file; nothing where one is being written."""
        with self._lock:
            if self._writer is not None:
                return
            if self._description is None:
                raise RecordingError("there is nothing to record yet: no source is connected.")
            given = self._description
            self._writer = RecordingWriter(
                self._free(),
                joints=given.joints,
                fields=[name for name in given.fields if name not in ("position", "signal")],
                signal_unit=given.signal_unit,
                torque_source=given.torque_source,
                meta={**given.meta, "effort": given.torque_kind},
            )
            self._since = None
            self.problem = ""

    def stop(self) -> None:
        """Finish the file; nothing where there is none."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is None:
                return
            if self._since is None:
                writer._finish()
                writer.live_path.unlink()
                return
            writer.close()
            self.written.append(writer.path)

    def add(self, block: SampleBlock) -> None:
        """Write samples, where a file is open."""
        with self._lock:
            if self._writer is None or not len(block) or self._description is None:
                return
            if self._since is None:
                self._since = float(block.time[0])
            self._until = float(block.time[-1])
            values = {name: block.values[name] for name in self._description.fields}
            try:
                self._writer.extend(block.time, **values)
            except RecordingError as error:
                self.problem, self._writer = str(error), None

    def state(self) -> dict[str, Any]:
        """For the page: whether it runs, since when, and what was written."""
        with self._lock:
            running = self._writer is not None
            seconds = 0.0 if self._since is None else self._until - self._since
            return {
                "on": running,
                "seconds": seconds if running else 0.0,
                "file": self._writer.path.name if self._writer is not None else None,
                "written": [path.name for path in self.written],
                "problem": self.problem,
            }

    def _free(self) -> Path:
        """A name nothing has yet; a recording is never written over."""
        first = self._path or Path(f"live-{datetime.now():%Y%m%d-%H%M%S}.parquet")
        for number in range(1, 10_000):
            path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
            if not path.exists() and not path.with_suffix(".live").exists():
                return path
        raise RecordingError(f"there are too many files called {first.stem}-N: remove some.")


class _Tapped:
    """A source that hands every block to a tape on the way, and never waits longer than a batch."""

    def __init__(self, source: Source, session: Session) -> None:
        self._source, self._session = source, session

    @property
    def gaps(self) -> list[Gap]:
        return self._source.gaps

    @property
    def duplicated(self) -> int:
        return self._source.duplicated

    @property
    def messages(self) -> list[str]:
        return self._source.messages

    def connect(self) -> SourceDescription:
        description = self._source.connect()
        self._session.tape.describe(description)
        if self._session.record_at_once:
            self._session.tape.start()
        return description

    def read(self, seconds: float) -> SampleBlock | None:
        self._session.flush()
        if self._session.stopping.is_set():
            raise _StoppedError
        block = self._source.read(min(seconds, self._session.until_due()))
        if block is not None:
            self._session.tape.add(block)
        return block

    def close(self) -> None:
        self._source.close()


class _StoppedError(Exception):
    """Somebody asked the session to end."""


class Session:
    """Runs a monitor on a source in a thread of its own.

    Every reading reaches, in order: the sinks, then the hub in a batch. What ends the session is in
    `ended` afterwards: "" where the source came to its end or `stop` was called.

    Args:
        monitor: To run.
        source: A robot that is on, or a recording, which is played at `pace` times its own speed.
        hub: Where batches go.
        tape: Records the source, where asked to.
        sinks: Called with every reading.
        limits: The step of external torque per joint [N m] that reaches a threshold of evidence.
        pace: Of a recording; 0 plays it as fast as it goes.
        record_at_once: Begin the tape with the first sample.
    """

    def __init__(
        self,
        monitor: Monitor,
        source: Source | Recording,
        hub: Hub,
        *,
        tape: StreamRecorder | None = None,
        sinks: Sequence[Callable[[Reading], None]] = (),
        limits: Callable[[float], list[float] | None] = lambda threshold: None,
        pace: float = 1.0,
        record_at_once: bool = False,
    ) -> None:
        self.monitor, self.source, self.hub, self.pace = monitor, source, hub, pace
        self.tape = StreamRecorder() if tape is None else tape
        self.record_at_once = record_at_once
        self.sinks, self.limits = tuple(sinks), limits
        self.stopping = threading.Event()
        self.done = threading.Event()
        self.samples, self.ended = 0, ""
        self._batch: list[Reading] = []
        self._due = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="taufit live", daemon=True)

    @property
    def playback(self) -> bool:
        """Whether a recording is played, not a robot watched."""
        return isinstance(self.source, Recording)

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """End it and wait for that; the tape's file is finished."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        self.hub.end()

    def _run(self) -> None:
        try:
            for reading in self._readings():
                self._hand_on(reading)
                if self.playback and self.stopping.is_set():
                    break
        except _StoppedError:
            # What had come is read to its end: what is on the tape has its readings.
            for reading in self.monitor.finish():
                self._hand_on(reading)
        except TaufitError as error:
            self.ended = str(error)
        except BrokenPipeError:
            self.ended = "the program that reads the published lines has ended."
        except OSError as error:
            self.ended = f"{error.strerror or error}."
        finally:
            try:
                self.tape.stop()
            except TaufitError as error:
                self.ended = self.ended or str(error)
            self.flush(at_once=True)
            self.hub.end()
            self.done.set()

    def _hand_on(self, reading: Reading) -> None:
        self._batch.append(reading)
        for sink in self.sinks:
            sink(reading)

    def _readings(self) -> Iterator[Reading]:
        if isinstance(self.source, Recording):
            yield from self._paced(self.monitor.run(self.source))
        else:
            yield from self.monitor.run(_Tapped(self.source, self))

    def _paced(self, readings: Iterator[Reading]) -> Iterator[Reading]:
        """Readings of a recording, none before its time."""
        begun: float | None = None
        first = 0.0
        for reading in readings:
            now = time.monotonic()
            if begun is None:
                begun, first = now, float(reading.time)
            early = 0.0 if not self.pace else (reading.time - first) / self.pace - (now - begun)
            # Until the next batch is due: waiting for every single sample would cost more.
            while early > 0.0 and not self.stopping.is_set():
                self.flush()
                self.stopping.wait(self.until_due())
                early = (reading.time - first) / self.pace - (time.monotonic() - begun)
            yield reading
            if not self.pace:
                self.flush()

    def until_due(self) -> float:
        """Seconds until the next batch is, a few milliseconds at least."""
        return max(self._due - time.monotonic(), 0.1 * BATCH)

    def flush(self, *, at_once: bool = False) -> None:
        """Send what has come, where a batch is due."""
        now = time.monotonic()
        if not self._batch or (now < self._due and not at_once):
            return
        # By the clock, not by the last one: a computer that wakes late sends as many.
        self._due = max(self._due + BATCH, now)
        more: dict[str, Any] = {"recording": None if self.playback else self.tape.state()}
        more["account"] = self.monitor.account.to_dict()
        more["limit"] = self.limits(self._batch[-1].threshold)
        self.hub.publish(pack(self._batch, self.samples, more))
        self.samples += len(self._batch)
        self._batch = []
