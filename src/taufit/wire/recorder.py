"""Recording of a source: every sample is written to disk, for any end of the run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.core.errors import WireError
from taufit.recording import Recording, RecordingWriter
from taufit.recording.finding import Finding
from taufit.wire.player import PlaybackGuard, Player
from taufit.wire.source import Gap, SampleBlock, Source, SourceDescription

STOPPED_BY_USER = "stopped by Ctrl-C"


@dataclass(frozen=True, slots=True, eq=False)
class RecordingResult:
    """Result of a recording.

    Attributes:
        path: Path of the file.
        recording: Recording as read from the file.
        samples: Number of samples received.
        lost: Number of samples lost.
        duplicated: Number of samples received twice and dropped.
        seconds: Time from the first to the last sample [s].
        gaps: Gaps with missing samples.
        ended: Reason of an early end; "" if it ended as planned.
        messages: Messages of the controller.
    """

    path: Path
    recording: Recording
    samples: int
    lost: int
    duplicated: int
    seconds: float
    gaps: tuple[Gap, ...]
    ended: str
    messages: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "file": str(self.path),
            "samples": self.samples,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "seconds": self.seconds,
            "gaps": [gap.to_dict() for gap in self.gaps],
            "ended": self.ended,
            "messages": list(self.messages),
        }


def record(  # noqa: PLR0913 - the public call has one keyword per choice
    source: Source,
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    player: Player | None = None,
    guard: PlaybackGuard | None = None,
    description: SourceDescription | None = None,
    callback: Callable[[float], None] | None = None,
    meta: dict[str, Any] | None = None,
    about: dict[str, Any] | None = None,
    until: Callable[[SampleBlock], bool] | None = None,
) -> RecordingResult:
    """Record a source until `seconds` of samples were received, a player ends, or Ctrl-C.

    A failing source also ends the recording; the file contains all samples before, and `ended`
    gives
    the reason. An early end also stops the robot.

    Args:
        source: Source; connected here if no description is given, and closed.
        path: Path of the Parquet file; its `.live` form is next to it until the end.
        seconds: Duration in the source's time [s]; None for no limit.
        player: Player of the motion to record; started here.
        guard: Limits during playback; the first violation stops the robot.
        description: Description of a source that is already connected.
        callback: Called several times per second with the time recorded so far [s].
        meta: Further metadata of the recording.
        about: Further fields of `Recording`: payload, gain, gain_std.
        until: Called with every recorded block; the recording ends when it returns True.
    """
    source_description = source.connect() if description is None else description
    further_fields = [
        name for name in source_description.fields if name not in ("position", "signal")
    ]
    writer = RecordingWriter(
        path,
        joints=source_description.joints,
        fields=further_fields,
        signal_unit=source_description.signal_unit,
        torque_source=source_description.torque_source,
        **(about or {}),
        meta={**source_description.meta, "effort": source_description.torque_kind, **(meta or {})},
    )
    run = _RecordingRun(source, writer, source_description, seconds, player, guard, until)
    try:
        if player is not None:
            player.prepare()
            _discard_pending(source)
            player.start()
        ended = run.run(callback)
    except KeyboardInterrupt:
        ended = STOPPED_BY_USER
    except WireError as error:
        ended = str(error)
    finally:
        # After any exception: the robot must not move without monitoring.
        if player is not None:
            player.stop()
        source.close()
    return run.finish(ended)


def _discard_pending(source: Source) -> None:
    """Discard earlier samples, so that the next ones belong to the playback."""
    end = time.monotonic() + 0.5
    while source.read(0.0) is not None and time.monotonic() < end:
        pass


class _RecordingRun:
    def __init__(
        self,
        source: Source,
        writer: RecordingWriter,
        description: SourceDescription,
        seconds: float | None,
        player: Player | None,
        guard: PlaybackGuard | None,
        until: Callable[[SampleBlock], bool] | None,
    ) -> None:
        self.until = until
        self.source, self.writer, self.seconds, self.player = source, writer, seconds, player
        self.guard = guard
        self.fields = description.fields
        self.samples, self.first, self.last = 0, 0.0, 0.0

    def run(self, callback: Callable[[float], None] | None) -> str:
        last_tick = time.monotonic()
        while True:
            block = self.source.read(0.1)
            current_time = time.monotonic()
            if callback is not None and current_time - last_tick > 0.2:
                last_tick = current_time
                callback(self.last - self.first)
            if block is None:
                continue
            recorded = block if self.player is None else self.player.rows_to_record(block)
            if recorded is not None:
                self._write(recorded)
            reason = None if self.player is None else self.player.check_progress(block)
            if reason is not None:
                return reason
            excess = None if self.guard is None else self.guard.find_violation(block)
            if excess is not None:
                return f"{excess}, and was stopped"
            if self.seconds is not None and self.last - self.first >= self.seconds:
                return ""
            if self.until is not None and recorded is not None and self.until(recorded):
                return ""

    def _write(self, block: SampleBlock) -> None:
        if not self.samples:
            self.first = float(block.time[0])
        self.samples += len(block)
        self.last = float(block.time[-1])
        self.writer.extend(block.time, **{name: block.values[name] for name in self.fields})

    def finish(self, ended: str) -> RecordingResult:
        source = self.source
        if not self.samples:
            self.writer._finish()
            self.writer.live_path.unlink()
            raise WireError(f"no sample came: {ended or 'the source was silent'}")
        gaps = tuple(g for g in source.gaps if g.until > self.first and g.after < self.last)
        lost = sum(gap.lost for gap in gaps)
        findings = [_gap_finding(gap) for gap in gaps[:20]]
        if ended:
            findings.append(Finding("ended_early", "warning", f"the recording ended: {ended}"))
        counts = {"lost_samples": lost, "duplicated_samples": source.duplicated}
        recording = self.writer.close(findings=findings, meta=counts)
        return RecordingResult(
            path=self.writer.path,
            recording=recording,
            samples=self.samples,
            lost=lost,
            duplicated=source.duplicated,
            seconds=self.last - self.first,
            gaps=gaps,
            ended=ended,
            messages=tuple(source.messages),
        )


def _gap_finding(gap: Gap) -> Finding:
    qualifier = "" if gap.exact else "about "
    return Finding(
        "gap",
        "warning",
        f"{qualifier}{gap.lost} samples are missing after {gap.after:.3f} s ({gap.why})",
        time=gap.after,
        value=float(gap.lost),
    )
