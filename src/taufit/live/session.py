"""Monitoring session: samples in, readings to the page, to programs and to a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taufit.core.errors import RecordingError, TaufitError
from taufit.live.batch_hub import BatchHub
from taufit.live.page_data import pack_readings
from taufit.recording import Recording, RecordingWriter

if TYPE_CHECKING:
    from taufit.live.monitor import Monitor, Reading
    from taufit.wire.source import Gap, SampleBlock, Source, SourceDescription

# Time between two batches; the page is drawn once per batch [s].
BATCH_S = 0.04


class StreamRecorder:
    """Recorder of a running source, on request.

    Args:
        path: Parquet file; further ones get a number, default names contain the time.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._writer: RecordingWriter | None = None
        self._description: SourceDescription | None = None
        self._first_time: float | None = None
        self._last_time = 0.0
        self.files: list[Path] = []
        self.problem = ""

    def set_description(self, description: SourceDescription) -> None:
        """Set the description of the source; required before recording."""
        with self._lock:
            self._description = description

    def start(self) -> None:
        """Start a file, unless one is being written."""
        with self._lock:
            if self._writer is not None:
                return
            if self._description is None:
                raise RecordingError("there is nothing to record yet: no source is connected.")
            description = self._description
            self._writer = RecordingWriter(
                self._next_free_path(),
                joints=description.joints,
                fields=[name for name in description.fields if name not in ("position", "signal")],
                signal_unit=description.signal_unit,
                torque_source=description.torque_source,
                meta={**description.meta, "effort": description.torque_kind},
            )
            self._first_time = None
            self.problem = ""

    def stop(self) -> None:
        """Complete the file, if there is one."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is None:
                return
            if self._first_time is None:
                writer._finish()
                writer.live_path.unlink()
                return
            writer.close()
            self.files.append(writer.path)

    def add(self, block: SampleBlock) -> None:
        """Write samples, if a file is open."""
        with self._lock:
            if self._writer is None or not len(block) or self._description is None:
                return
            if self._first_time is None:
                self._first_time = float(block.time[0])
            self._last_time = float(block.time[-1])
            values = {name: block.values[name] for name in self._description.fields}
            try:
                self._writer.extend(block.time, **values)
            except RecordingError as error:
                self.problem, self._writer = str(error), None

    def state(self) -> dict[str, Any]:
        """State for the page: whether it records, duration, and files written."""
        with self._lock:
            is_recording = self._writer is not None
            seconds = 0.0 if self._first_time is None else self._last_time - self._first_time
            return {
                "on": is_recording,
                "seconds": seconds if is_recording else 0.0,
                "file": self._writer.path.name if self._writer is not None else None,
                "written": [path.name for path in self.files],
                "problem": self.problem,
            }

    def _next_free_path(self) -> Path:
        """Unused file name; recordings are never overwritten."""
        first = self._path or Path(f"live-{datetime.now():%Y%m%d-%H%M%S}.parquet")
        for number in range(1, 10_000):
            path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
            if not path.exists() and not path.with_suffix(".live").exists():
                return path
        raise RecordingError(f"there are too many files called {first.stem}-N: remove some.")


class _RecordedSource:
    """Source whose blocks are recorded, with waiting times limited to a batch."""

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
        self._session.recorder.set_description(description)
        if self._session.record_immediately:
            self._session.recorder.start()
        return description

    def read(self, seconds: float) -> SampleBlock | None:
        self._session.flush()
        if self._session.stop_requested.is_set():
            raise _StoppedError
        block = self._source.read(min(seconds, self._session.time_to_batch()))
        if block is not None:
            self._session.recorder.add(block)
        return block

    def close(self) -> None:
        self._source.close()


class _StoppedError(Exception):
    """The session was asked to end."""


class Session:
    """Runs a monitor on a source in its own thread.

    Every reading goes to the sinks, then to the hub in a batch. `end_reason` is "" if the source
    ended or `stop` was called, else the error.

    Args:
        monitor: Monitor to run.
        source: Running robot, or recording, played at `pace` times its speed.
        hub: Receiver of batches.
        recorder: Records the source on request.
        sinks: Called with every reading.
        detectable_steps: Smallest detectable torque step per joint [N m], by threshold.
        pace: Playback speed of a recording; 0 is unlimited.
        record_immediately: Start recording with the first sample.
    """

    def __init__(
        self,
        monitor: Monitor,
        source: Source | Recording,
        hub: BatchHub,
        *,
        recorder: StreamRecorder | None = None,
        sinks: Sequence[Callable[[Reading], None]] = (),
        detectable_steps: Callable[[float], list[float] | None] = lambda threshold: None,
        pace: float = 1.0,
        record_immediately: bool = False,
    ) -> None:
        self.monitor, self.source, self.hub, self.pace = monitor, source, hub, pace
        self.recorder = StreamRecorder() if recorder is None else recorder
        self.record_immediately = record_immediately
        self.sinks, self.detectable_steps = tuple(sinks), detectable_steps
        self.stop_requested = threading.Event()
        self.is_finished = threading.Event()
        self.samples, self.end_reason = 0, ""
        self._batch: list[Reading] = []
        self._next_batch = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="taufit live", daemon=True)

    @property
    def playback(self) -> bool:
        """Whether the source is a recording."""
        return isinstance(self.source, Recording)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Stop the thread and wait; complete the recorded file."""
        self.stop_requested.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        self.hub.end()

    def _run(self) -> None:
        try:
            for reading in self._readings():
                self._distribute(reading)
                if self.playback and self.stop_requested.is_set():
                    break
        except _StoppedError:
            # Samples already received are processed: all recorded samples have readings.
            for reading in self.monitor.finish():
                self._distribute(reading)
        except TaufitError as error:
            self.end_reason = str(error)
        except BrokenPipeError:
            self.end_reason = "the program that reads the published lines has ended."
        except OSError as error:
            self.end_reason = f"{error.strerror or error}."
        finally:
            try:
                self.recorder.stop()
            except TaufitError as error:
                self.end_reason = self.end_reason or str(error)
            self.flush(at_once=True)
            self.hub.end()
            self.is_finished.set()

    def _distribute(self, reading: Reading) -> None:
        self._batch.append(reading)
        for sink in self.sinks:
            sink(reading)

    def _readings(self) -> Iterator[Reading]:
        if isinstance(self.source, Recording):
            yield from self._pace_readings(self.monitor.run(self.source))
        else:
            yield from self.monitor.run(_RecordedSource(self.source, self))

    def _pace_readings(self, readings: Iterator[Reading]) -> Iterator[Reading]:
        """Readings of a recording, none before its time."""
        start: float | None = None
        first = 0.0
        for reading in readings:
            clock = time.monotonic()
            if start is None:
                start, first = clock, float(reading.time)
            wait_s = 0.0 if not self.pace else (reading.time - first) / self.pace - (clock - start)
            # Wait until the next batch is due: waiting for single samples would cost more.
            while wait_s > 0.0 and not self.stop_requested.is_set():
                self.flush()
                self.stop_requested.wait(self.time_to_batch())
                wait_s = (reading.time - first) / self.pace - (time.monotonic() - start)
            yield reading
            if not self.pace:
                self.flush()

    def time_to_batch(self) -> float:
        """Time until the next batch, at least a few milliseconds [s]."""
        return max(self._next_batch - time.monotonic(), 0.1 * BATCH_S)

    def flush(self, *, at_once: bool = False) -> None:
        """Send the readings if a batch is due."""
        clock = time.monotonic()
        if not self._batch or (clock < self._next_batch and not at_once):
            return
        # Due times follow the clock, not the last batch, to keep the rate.
        self._next_batch = max(self._next_batch + BATCH_S, clock)
        extra_data: dict[str, Any] = {"recording": None if self.playback else self.recorder.state()}
        extra_data["account"] = self.monitor.sample_counts.to_dict()
        extra_data["limit"] = self.detectable_steps(self._batch[-1].threshold)
        self.hub.publish(pack_readings(self._batch, self.samples, extra_data))
        self.samples += len(self._batch)
        self._batch = []
