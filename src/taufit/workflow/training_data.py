"""From recordings to samples a fit goes through: in memory where they are few, else in files.

Files are read and conditioned one after the other; what is kept of each is its conditioned samples
in a temporary folder and a few words. Grid, gains and an automatic cut-off come from the first
recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from taufit.core.compute.cache import Cache
from taufit.core.compute.engines import Engine, Processes
from taufit.core.errors import RecordingError
from taufit.diagnosis import (
    apply_declared_torque_kind,
    raise_on_contradiction,
    recording_causes,
    suitable_cutoff,
)
from taufit.model.fitted_model import FittedModel
from taufit.recording import Finding, Recording, in_order
from taufit.recording.files import RecordingFiles
from taufit.robot import Robot
from taufit.signals import Samples, condition
from taufit.signals.drive_gains import Gains, joint_gains
from taufit.signals.sample_source import SamplesInMemory, SampleSource
from taufit.signals.storage.stored_samples import PartStore, StoredPart, StoredSamples
from taufit.temperature.apply import with_temperature
from taufit.workflow.file_cache import FileCache, PreparedFile
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.inputs import LEAD_ROWS


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """What is fitted.

    Attributes:
        robot: With drives as the recordings have them.
        source: Conditioned samples.
        recordings: Without their rows: names, findings, payloads.
        findings: What was found about them before they were conditioned.
    """

    robot: Robot
    source: SampleSource
    recordings: tuple[Recording, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def noticed(self) -> list[Finding]:
        """Findings of readers and conditioning, gravest first."""
        found = [*(f for r in self.recordings for f in r.findings), *self.source.head.findings]
        return [f for grave in ("error", "warning") for f in found if f.severity == grave]

    @property
    def warnings(self) -> list[str]:
        """The same in words, and payloads that were carried."""
        reasons = [str(finding) for finding in self.noticed]
        carried = {r.payload for r in self.recordings if r.payload}
        if carried:
            masses = ", ".join(f"{mass:g} kg" for mass in sorted(carried))
            reasons.append(
                f"the arm carried {masses}: the fitted last link contains that payload. Fit an "
                "empty arm for `taufit payload`."
            )
        return reasons


def training_data(
    request: FitRequest,
    robot: Robot,
    recordings: Sequence[Recording] | RecordingFiles,
    *,
    engine: Engine | None = None,
    cache: Cache | None = None,
) -> TrainingData:
    """Recordings of one robot, conditioned alike.

    Args:
        request: Choices of the fit.
        robot: The arm.
        recordings: In memory, or files that are read one at a time.
        engine: That shares the files among workers.
        cache: Where results on files are kept for the next fit.
    """
    if not len(recordings):
        raise RecordingError("there is no recording to fit.")
    how = _How.of(request)
    if not isinstance(recordings, RecordingFiles):
        return _in_memory(robot, [_ordered(robot, r, how) for r in recordings], how)
    known = FileCache(recordings, cache if recordings.settings is not None else None)
    files = known.lead(LEAD_ROWS)
    if files == len(recordings):
        lead = [_ordered(robot, one, how) for k in range(files) for one in recordings[k]]
        data = _in_memory(robot, lead, how)
    else:
        decided = known.of_first(files, "decided", _Decide(robot, how))
        data = _in_files(robot, decided, known, engine or Processes(), request.callback)
    return replace(data, findings=(*data.findings, *recordings.findings))


@dataclass(frozen=True, slots=True)
class _How:
    """How recordings are conditioned, and what is overlooked."""

    cutoff_hz: float | Literal["auto"]
    unsigned: bool
    delay_s: float | Literal["auto"]
    ignore_contradictions: bool

    @classmethod
    def of(cls, request: FitRequest) -> _How:
        """The choices that decide what samples become."""
        unsigned = request.torque_signs == "unknown"
        return cls(request.cutoff_hz, unsigned, request.delay_s, request.ignore_contradictions)


def _in_memory(robot: Robot, ordered: list[Recording], how: _How) -> TrainingData:
    robot = with_drives(robot, ordered)
    heads = tuple(_without_rows(one) for one in ordered)
    ordered, found = apply_declared_torque_kind(robot, ordered)
    cutoff, slow = suitable_cutoff(ordered, how.cutoff_hz)
    samples = condition(ordered, cutoff_hz=cutoff, delay_s=how.delay_s)
    found += [] if slow is None else [slow]
    data = TrainingData(_with_gains(robot, samples), SamplesInMemory(samples), heads)
    return replace(data, findings=tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """What the first recordings decide for all.

    Attributes:
        head: Samples without any.
        how: With the cut-off and delay that were found.
        pooled: Gains for recordings without their own.
        gain_findings: About them.
        found: About the recordings.
    """

    head: Samples
    how: _How
    pooled: Gains | None
    gain_findings: tuple[Finding, ...]
    found: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Decide:
    robot: Robot
    how: _How

    def __call__(self, runs: Sequence[Recording]) -> _Decided:
        how = self.how
        lead = [_ordered(self.robot, one, how) for one in runs]
        needing = [_needs_gains(one) for one in lead]
        lead, found = apply_declared_torque_kind(self.robot, lead)
        cutoff_hz, slow = suitable_cutoff(lead, how.cutoff_hz)
        found += [] if slow is None else [slow]
        gains, gain_findings = joint_gains(lead, None)
        # An automatic cut-off or delay looks at all that was read; the rest is the same for all.
        every = "auto" in (cutoff_hz, how.delay_s)
        first = condition(
            lead if every else lead[:1], cutoff_hz=cutoff_hz, gains=gains[0], delay_s=how.delay_s
        )
        pooled = next((own for own, needs in zip(gains, needing, strict=True) if needs), None)
        head = replace(first.head(), findings=())
        how = replace(how, cutoff_hz=head.cutoff_hz, delay_s=head.delay_s)
        return _Decided(head, how, pooled, tuple(gain_findings), tuple(found))


def _in_files(
    robot: Robot,
    decided: _Decided,
    known: FileCache,
    engine: Engine,
    watch: Callable[[], None] | None,
) -> TrainingData:
    head, signed = decided.head, decided.head.signed
    store = PartStore()
    while True:
        parts: list[StoredPart] = []
        heads: list[Recording] = []
        names: list[str] = []
        findings: list[Any] = list(decided.gain_findings)
        rate = head.rate_hz
        prepare = _Prepare(robot, decided.how, head.rate_hz, decided.pooled)
        for done in known.prepared(prepare, store.folder, engine):
            rate = min(rate, done.rate_hz)
            parts += done.parts
            heads += done.recordings
            names += [part.head.names[0] for part in done.parts]
            findings += done.findings
            if signed is not None and done.signed is not None:
                signed = signed & done.signed
            if watch is not None:
                watch()
        if rate >= head.rate_hz:
            break
        # A slower logger turned up: all go to its grid.
        head = replace(head, rate_hz=rate)
    robot = with_drives(robot, heads)
    common = set(head.channels).intersection(*(part.head.channels for part in parts))
    if any(set(part.head.channels) != common for part in parts):
        parts = [replace(part, head=_with_only(part.head, common)) for part in parts]
        head = _with_only(head, common)
    variances = [np.square(np.asarray(part.head.noise)) for part in parts]
    counts = [part.summary.samples for part in parts]
    noise = np.sqrt(np.average(variances, axis=0, weights=counts))
    head = replace(head, names=tuple(names), findings=tuple(findings), noise=noise, signed=signed)
    results = known.results(prepare, "temperature" not in head.channels)
    source = StoredSamples(parts, head, store, engine, watch, results)
    return TrainingData(_with_gains(robot, head), source, tuple(heads), decided.found)


@dataclass(frozen=True, slots=True, eq=False)
class _Prepare:
    """Condition one file's runs and store them."""

    robot: Robot
    how: _How
    rate_hz: float
    pooled: Gains | None

    def __call__(self, runs: list[Recording], stem: Path) -> PreparedFile:
        found = [_ordered(self.robot, one, self.how) for one in runs]
        if self.pooled is not None:
            found = [_filled(one, self.pooled) for one in found]
        found, _ = apply_declared_torque_kind(self.robot, found)
        cutoff = None if self.how.cutoff_hz == np.inf else self.how.cutoff_hz
        delay = self.how.delay_s
        samples = condition(found, cutoff_hz=cutoff, delay_s=delay)
        own = samples.rate_hz
        if own > self.rate_hz:
            samples = condition(found, cutoff_hz=cutoff, delay_s=delay, rate_hz=self.rate_hz)
        samples = counted(samples, found)
        parts = [
            StoredPart.write(samples.rows(run), stem.with_name(f"{stem.name}_{i}.npy"))
            for i, run in enumerate(samples.run_slices())
        ]
        heads = [_without_rows(one) for one in found]
        return PreparedFile(tuple(parts), tuple(heads), own, samples.findings, samples.signed)


def counted(samples: Samples, recordings: list[Recording]) -> Samples:
    """Samples of a section of a file; those beside it are there for filters and friction only."""
    span = recordings[0].meta.get("counted_s")
    if len(recordings) != 1 or span is None:
        return samples
    inside = (samples.time >= span[0]) & (samples.time < span[1])
    return replace(samples, keep=samples.keep & inside[:, None], motion=samples.in_motion & inside)


def _ordered(robot: Robot, recording: Recording, how: _How) -> Recording:
    """In the robot's order and looked over; numbers that cannot be measurements are refused."""
    ordered = in_robot_order(robot, recording)
    if how.unsigned:
        from taufit.signs.samples import without_signs

        ordered = without_signs(ordered)
    causes = recording_causes(robot, [ordered])
    raise_on_contradiction(causes, how.ignore_contradictions)
    new = [cause.finding for cause in causes if cause.finding not in ordered.findings]
    return replace(ordered, findings=(*ordered.findings, *new))


def in_robot_order(robot: Robot, recording: Recording, name: str | None = None) -> Recording:
    """The recording with its joints in the robot's order."""
    return in_order(recording, robot.joint_names, robot=robot.name, name=name)


def with_drives(robot: Robot, recordings: Sequence[Recording]) -> Robot:
    """The robot with drives as the recordings describe them: side of the gear and coupling."""
    first = recordings[0]
    for other in recordings[1:]:
        if (other.torque_source == "joint_torque_sensor") != (
            first.torque_source == "joint_torque_sensor"
        ):
            raise RecordingError(
                "some recordings have torque from before the gear (motor), others from behind it "
                "(link). Fit them separately: friction is not the same there."
            )
    side = "link" if first.torque_source == "joint_torque_sensor" else "motor"
    coupling = robot.drives.coupling if first.coupling is None else first.coupling
    if side == robot.drives.side and np.array_equal(coupling, robot.drives.coupling):
        return robot
    return replace(
        robot, drives=replace(robot.drives, side=side, coupling=np.asarray(coupling, float))
    )


def _with_gains(robot: Robot, samples: Samples) -> Robot:
    if samples.gain is None:
        return robot
    std = np.zeros_like(samples.gain) if samples.gain_std is None else samples.gain_std
    return replace(robot, drives=replace(robot.drives, gain=samples.gain, gain_std=std))


def _needs_gains(recording: Recording) -> bool:
    own = recording.gain
    if own is None:
        return recording.signal_unit != "N m"
    return not np.all(np.isfinite(own))


def _filled(recording: Recording, pooled: Gains) -> Recording:
    """A recording without gains of its own with those of its robot's drives."""
    if not _needs_gains(recording):
        return recording
    if recording.gain is None:
        return replace(recording, gain=pooled.value, gain_std=pooled.std)
    known = np.isfinite(recording.gain)
    own = np.zeros(len(known)) if recording.gain_std is None else recording.gain_std
    return replace(
        recording,
        gain=np.where(known, recording.gain, pooled.value),
        gain_std=np.where(known, own, pooled.std),
    )


def _without_rows(recording: Recording) -> Recording:
    n = len(recording.time)
    short = recording.map(lambda values: values[:0].copy(), time=recording.time[:0].copy())
    return replace(short, meta={**recording.meta, "rows": n})


def _with_only(head: Samples, channels: set[str]) -> Samples:
    """Copy with the channels that every recording has."""
    return head.with_channels(**{name: None for name in head.channels if name not in channels})


def condition_like(
    model: FittedModel,
    recordings: Sequence[Recording],
    *,
    cutoff_hz: float | None = None,
    name: str | None = None,
) -> Samples:
    """Recordings conditioned as the model's training data were: same low-pass, same gains.

    A recording whose map gives drive gains in numbers keeps its own; one in amperes without gains
    gets the model's, since it is the same robot.

    Args:
        model: A fitted model.
        recordings: Of the same robot.
        cutoff_hz: Replaces the model's low-pass.
        name: For messages.
    """
    ordered = [in_robot_order(model.robot, recording, name) for recording in recordings]
    if any(recording.meta.get("gravity_removed") for recording in ordered):
        ordered, _ = apply_declared_torque_kind(model.robot, ordered)
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz if cutoff_hz is None else cutoff_hz
    needs = any(r.gain is None or not np.all(np.isfinite(r.gain)) for r in ordered)
    gains = conditioning.gain if needs else None
    samples = with_temperature(
        model,
        counted(
            condition(
                ordered,
                cutoff_hz=None if np.isinf(cutoff) else cutoff,
                gains=gains,
                delay_s=conditioning.delay_s,
            ),
            ordered,
        ),
    )
    if samples.signed is not None and not np.all(samples.signed):
        # Magnitudes are compared with the magnitude predicted.
        from taufit.signs.samples import signed_by_model

        samples = signed_by_model(model, samples)
    return samples.with_column_cache()
