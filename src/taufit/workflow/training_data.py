"""Conversion of recordings to training samples: in memory if they are few, else in files.

Files are read and conditioned one after the other; only their conditioned samples are kept, in a
temporary folder. Time grid, gains and an automatic cut-off are determined from the first
recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from taufit.core.compute.engines import Engine, Processes
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.diagnosis import (
    apply_declared_torque_kind,
    raise_on_contradiction,
    recording_causes,
    suitable_cutoff,
)
from taufit.diagnosis.torque_delay import estimate_torque_delay, smooth
from taufit.model.fitted_model import FittedModel
from taufit.recording import Finding, Recording, reorder_joints
from taufit.recording.files import RecordingFiles
from taufit.robot import Robot
from taufit.signals import Samples, condition
from taufit.signals.drive_gains import DriveGains, joint_gains
from taufit.signals.sample_source import SamplesInMemory, SampleSource
from taufit.terms import needs
from taufit.workflow.file_cache import FileCache, PreparedFile
from taufit.workflow.fit_request import FitRequest
from taufit.workflow.inputs import LEAD_ROWS

if TYPE_CHECKING:
    from taufit.core.compute.cache import Cache
    from taufit.signals.storage.stored_samples import StoredPart


# Low-pass of the samples that an automatic delay is estimated from [Hz].
_DELAY_CUTOFF_HZ = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Conditioned data of a fit.

    Attributes:
        robot: Robot with drives as the recordings describe them.
        source: Conditioned samples.
        recordings: Recordings without their rows: names, findings, payloads.
        findings: Findings before conditioning.
    """

    robot: Robot
    source: SampleSource
    recordings: tuple[Recording, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def reader_findings(self) -> list[Finding]:
        """Findings of readers and conditioning, most severe first."""
        findings = [*(f for r in self.recordings for f in r.findings), *self.source.head.findings]
        return [f for severity in ("error", "warning") for f in findings if f.severity == severity]

    @property
    def warnings(self) -> list[str]:
        """Messages of these findings, and payloads that were carried."""
        reasons = [str(finding) for finding in self.reader_findings]
        payloads = {r.payload for r in self.recordings if r.payload}
        if payloads:
            masses = ", ".join(f"{mass:g} kg" for mass in sorted(payloads))
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
    """Condition recordings of one robot.

    Args:
        request: Settings of the fit.
        robot: Robot with its mounting.
        recordings: Recordings in memory, or files that are read one at a time.
        engine: Engine that distributes the files among workers.
        cache: Cache of results on files for later fits.
    """
    if not len(recordings):
        raise RecordingError("there is no recording to fit.")
    choices = _ConditioningChoices.from_request(request)
    if not isinstance(recordings, RecordingFiles):
        return _condition_in_memory(
            robot, [_screen_recording(robot, r, choices) for r in recordings], choices
        )
    file_cache = FileCache(recordings, cache if recordings.settings is not None else None)
    files = file_cache.count_lead_files(LEAD_ROWS)
    if files == len(recordings):
        recordings_read = [
            _screen_recording(robot, recording, choices)
            for k in range(files)
            for recording in recordings[k]
        ]
        data = _condition_in_memory(robot, recordings_read, choices)
    else:
        decisions = file_cache.evaluate_files(files, "decided", _DecideFromLead(robot, choices))
        data = _condition_files(
            robot, decisions, file_cache, engine or Processes(), request.callback
        )
    return replace(data, findings=(*data.findings, *recordings.findings))


@dataclass(frozen=True, slots=True)
class _ConditioningChoices:
    """Settings of the conditioning, and whether contradictions are ignored."""

    cutoff_hz: float | Literal["auto"]
    unsigned: bool
    delay_s: float | tuple[float, ...] | Literal["auto"]
    ignore_contradictions: bool

    @classmethod
    def from_request(cls, request: FitRequest) -> _ConditioningChoices:
        """Settings of a request that determine the samples."""
        unsigned = request.torque_signs == "unknown"
        return cls(request.cutoff_hz, unsigned, request.delay_s, request.ignore_contradictions)


def _condition_in_memory(
    robot: Robot, ordered: list[Recording], choices: _ConditioningChoices
) -> TrainingData:
    robot = with_drives(robot, ordered)
    heads = tuple(_without_rows(recording) for recording in ordered)
    ordered, findings = apply_declared_torque_kind(robot, ordered)
    cutoff, slow_finding = suitable_cutoff(ordered, choices.cutoff_hz)
    delay, reason = _choose_delay(robot, ordered, choices)
    samples = condition(ordered, cutoff_hz=cutoff, delay_s=delay)
    samples = replace(samples, reason="; ".join(filter(None, (samples.reason, reason))))
    findings += [] if slow_finding is None else [slow_finding]
    if robot.is_tree and choices.delay_s == 0.0 and not choices.unsigned:
        from taufit.diagnosis.joint_delay import JOINT_CUTOFF_HZ, estimate_joint_delays

        # Cables and long linkages: torque may lag joint by joint, which friction would take up.
        undelayed = smooth(samples, JOINT_CUTOFF_HZ)
        findings += estimate_joint_delays(_with_gains(robot, undelayed), undelayed).findings(robot)
    data = TrainingData(_with_gains(robot, samples), SamplesInMemory(samples), heads)
    return replace(data, findings=tuple(findings))


def _choose_delay(
    robot: Robot, recordings: Sequence[Recording], choices: _ConditioningChoices
) -> tuple[float | tuple[float, ...] | Literal["auto"], str]:
    """Delay of torque with its reason; one per joint where the joints differ.

    The common delay comes from the robot's masses, for trees without masses from their equations of
    motion, for other robots from generic terms.
    """
    if choices.delay_s != "auto" or choices.unsigned:
        return choices.delay_s, ""
    from taufit.diagnosis.joint_delay import JOINT_CUTOFF_HZ, estimate_joint_delays

    cutoff, _ = suitable_cutoff(recordings, _DELAY_CUTOFF_HZ)
    samples = condition(recordings, cutoff_hz=cutoff)
    by_joint = estimate_joint_delays(robot, smooth(samples, JOINT_CUTOFF_HZ))
    if np.any(robot.parameters):
        delay = estimate_torque_delay(robot, samples)
        common, reason = delay.seconds, delay.reason
    elif robot.is_tree:
        common, reason = by_joint.clear_common, ""
    else:
        generic = condition(recordings, cutoff_hz=cutoff, delay_s="auto")
        assert isinstance(generic.delay_s, float)
        common, reason = generic.delay_s, generic.reason
    joint_reason = by_joint.reason(robot)
    if not joint_reason:
        return common, reason
    delays = tuple(round(common + difference, 4) for difference in by_joint.differences.tolist())
    return delays, "; ".join(filter(None, (reason, joint_reason)))


@dataclass(frozen=True, slots=True, eq=False)
class _LeadDecisions:
    """Settings for all files, determined from the first recordings.

    Attributes:
        head: Samples without rows.
        choices: Settings with the determined cut-off and delay.
        pooled_gains: Gains for recordings without gains.
        gain_findings: Findings on the gains.
        findings: Findings on the recordings.
    """

    head: Samples
    choices: _ConditioningChoices
    pooled_gains: DriveGains | None
    gain_findings: tuple[Finding, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _DecideFromLead:
    robot: Robot
    choices: _ConditioningChoices

    def __call__(self, runs: Sequence[Recording]) -> _LeadDecisions:
        choices = self.choices
        lead = [_screen_recording(self.robot, recording, choices) for recording in runs]
        needs_gains = [_needs_gains(recording) for recording in lead]
        lead, findings = apply_declared_torque_kind(self.robot, lead)
        cutoff_hz, slow_finding = suitable_cutoff(lead, choices.cutoff_hz)
        findings += [] if slow_finding is None else [slow_finding]
        gains, gain_findings = joint_gains(lead, None)
        # An automatic cut-off or delay uses all recordings read; otherwise one suffices.
        delay_s, reason = _choose_delay(self.robot, lead, choices)
        use_all = "auto" in (cutoff_hz, delay_s)
        first = condition(
            lead if use_all else lead[:1],
            cutoff_hz=cutoff_hz,
            gains=gains[0],
            delay_s=delay_s,
        )
        pooled_gains = next(
            (gain for gain, needs_gain in zip(gains, needs_gains, strict=True) if needs_gain), None
        )
        reason = "; ".join(filter(None, (first.reason, reason)))
        head = replace(first.head(), findings=(), reason=reason)
        choices = replace(choices, cutoff_hz=head.cutoff_hz, delay_s=head.delay_s)
        return _LeadDecisions(head, choices, pooled_gains, tuple(gain_findings), tuple(findings))


def _condition_files(
    robot: Robot,
    decisions: _LeadDecisions,
    file_cache: FileCache,
    engine: Engine,
    callback: Callable[[], None] | None,
) -> TrainingData:
    from taufit.signals.storage.stored_samples import PartStore, StoredSamples

    head, signed = decisions.head, decisions.head.signed
    store = PartStore()
    while True:
        parts: list[StoredPart] = []
        heads: list[Recording] = []
        names: list[str] = []
        findings: list[Any] = list(decisions.gain_findings)
        rate = head.rate_hz
        prepare = _PrepareFile(robot, decisions.choices, head.rate_hz, decisions.pooled_gains)
        for prepared in file_cache.prepare_files(prepare, store.folder, engine):
            rate = min(rate, prepared.rate_hz)
            parts += prepared.parts
            heads += prepared.recordings
            names += [part.head.names[0] for part in prepared.parts]
            findings += prepared.findings
            if signed is not None and prepared.signed is not None:
                signed = signed & prepared.signed
            if callback is not None:
                callback()
        if rate >= head.rate_hz:
            break
        # A slower recording: repeat all on its time grid.
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
    results = file_cache.results(prepare, "temperature" not in head.channels)
    source = StoredSamples(parts, head, store, engine, callback, results)
    return TrainingData(_with_gains(robot, head), source, tuple(heads), decisions.findings)


@dataclass(frozen=True, slots=True, eq=False)
class _PrepareFile:
    """Condition the runs of one file and store them."""

    robot: Robot
    choices: _ConditioningChoices
    rate_hz: float
    pooled_gains: DriveGains | None

    def __call__(self, runs: list[Recording], stem: Path) -> PreparedFile:
        from taufit.signals.storage.stored_samples import StoredPart

        recordings = [_screen_recording(self.robot, recording, self.choices) for recording in runs]
        if self.pooled_gains is not None:
            recordings = [
                _with_pooled_gains(recording, self.pooled_gains) for recording in recordings
            ]
        recordings, _ = apply_declared_torque_kind(self.robot, recordings)
        cutoff = None if self.choices.cutoff_hz == np.inf else self.choices.cutoff_hz
        delay = self.choices.delay_s
        samples = condition(recordings, cutoff_hz=cutoff, delay_s=delay)
        rate_hz = samples.rate_hz
        if rate_hz > self.rate_hz:
            samples = condition(recordings, cutoff_hz=cutoff, delay_s=delay, rate_hz=self.rate_hz)
        samples = select_section(samples, recordings)
        parts = [
            StoredPart.write(samples.rows(run), stem.with_name(f"{stem.name}_{i}.npy"))
            for i, run in enumerate(samples.run_slices())
        ]
        heads = [_without_rows(recording) for recording in recordings]
        return PreparedFile(tuple(parts), tuple(heads), rate_hz, samples.findings, samples.signed)


def select_section(samples: Samples, recordings: list[Recording]) -> Samples:
    """Samples of a section of a file; its margins serve filters and friction only."""
    span = recordings[0].meta.get("counted_s")
    if len(recordings) != 1 or span is None:
        return samples
    in_section = (samples.time >= span[0]) & (samples.time < span[1])
    return replace(
        samples, keep=samples.keep & in_section[:, None], motion=samples.in_motion & in_section
    )


def _screen_recording(
    robot: Robot, recording: Recording, choices: _ConditioningChoices
) -> Recording:
    """Recording in the robot's joint order, screened; raises for invalid numbers."""
    ordered = in_robot_order(robot, recording)
    if choices.unsigned:
        from taufit.signs.samples import without_signs

        ordered = without_signs(ordered)
    causes = [
        replace(cause, finding=replace(cause.finding, file=recording.meta.get("file")))
        for cause in recording_causes(robot, [ordered])
    ]
    raise_on_contradiction(causes, choices.ignore_contradictions)
    new_findings = [cause.finding for cause in causes if cause.finding not in ordered.findings]
    return replace(ordered, findings=(*ordered.findings, *new_findings))


def in_robot_order(robot: Robot, recording: Recording, name: str | None = None) -> Recording:
    """Recording with its joints in the robot's order."""
    return reorder_joints(recording, robot.joint_names, robot=robot.name, name=name)


def with_drives(robot: Robot, recordings: Sequence[Recording]) -> Robot:
    """Robot with drives as the recordings describe them: side of the gear and coupling."""
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
    gain = recording.gain
    if gain is None:
        return recording.signal_unit != "N m"
    return not np.all(np.isfinite(gain))


def _with_pooled_gains(recording: Recording, pooled_gains: DriveGains) -> Recording:
    """Recording without gains, with those of its robot's drives."""
    if not _needs_gains(recording):
        return recording
    if recording.gain is None:
        return replace(recording, gain=pooled_gains.value, gain_std=pooled_gains.std)
    is_finite = np.isfinite(recording.gain)
    gain_std = np.zeros(len(is_finite)) if recording.gain_std is None else recording.gain_std
    return replace(
        recording,
        gain=np.where(is_finite, recording.gain, pooled_gains.value),
        gain_std=np.where(is_finite, gain_std, pooled_gains.std),
    )


def _without_rows(recording: Recording) -> Recording:
    n = len(recording.time)
    empty = recording.map(lambda values: values[:0].copy(), time=recording.time[:0].copy())
    return replace(empty, meta={**recording.meta, "rows": n})


def _with_only(head: Samples, channels: set[str]) -> Samples:
    """Copy with the channels that every recording has."""
    return head.with_channels(**{name: None for name in head.channels if name not in channels})


def condition_for_model(
    model: FittedModel,
    recordings: Sequence[Recording],
    *,
    cutoff_hz: float | None = None,
    name: str | None = None,
) -> Samples:
    """Condition recordings like the model's training data: equal low-pass and gains.

    A recording with numeric drive gains in its map keeps them; one in amperes without gains gets
    the model's.

    Args:
        model: Fitted model.
        recordings: Recordings of the same robot.
        cutoff_hz: Cut-off in place of the model's [Hz].
        name: Name for messages.
    """
    ordered = [in_robot_order(model.robot, recording, name) for recording in recordings]
    if any(recording.meta.get("gravity_removed") for recording in ordered):
        ordered, _ = apply_declared_torque_kind(model.robot, ordered)
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz if cutoff_hz is None else cutoff_hz
    needs_gains = any(r.gain is None or not np.all(np.isfinite(r.gain)) for r in ordered)
    gains = conditioning.gain if needs_gains else None
    samples = _with_temperature(
        model,
        select_section(
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
        # Magnitudes are compared with predicted magnitudes.
        from taufit.signs.samples import sign_by_model

        samples = sign_by_model(model, samples)
    return samples.with_column_cache()


def _with_temperature(model: FittedModel, samples: Samples) -> Samples:
    """Samples with temperatures, if the model needs them."""
    if not needs(model.term_sum, "temperature"):
        return samples
    from taufit.temperature.apply import with_temperature

    return with_temperature(model, samples)
