"""Diagnosis of recordings: faults named by their cause.

First checks of the numbers alone (units, clocks, stuck or clipped channels), then comparison with
the robot (`taufit.diagnosis.model_contradiction`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.errors import RecordingError
from taufit.diagnosis.channels import channel_findings
from taufit.diagnosis.correction import Cause
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.diagnosis.model_contradiction import find_model_contradiction
from taufit.diagnosis.other_robots import LIMIT_MARGIN, OUTSIDE_FRACTION
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples

# Ratio of nrmse to the median of all files above which a file is diagnosed separately.
_OUTLIER_RATIO = 1.8
# Fraction of invalid rows that is tolerated and left out; more is an error of the file.
_TOLERATED_FRACTION = 0.01
# Smallest number of rows of a recording.
_MIN_ROWS = 10
# Kinds of findings that explain positions outside the limits.
_OUTSIDE_KINDS = ("torque_sign", "swapped_joints", "zero_offset", "wrong_arm")
# Kinds of reader findings on invalid numbers.
_IMPOSSIBLE = ("corrupt_rows", "impossible_rows", "missing_values")
# Kinds of reader findings that prevent a fit.
FATAL = ("unit", "velocity_sign", "clock_scale")
# Kinds of findings of `recording_causes`.
CHANNEL_KINDS = (
    *FATAL, "stuck_encoder", "no_variation", "dead_torque", "quantised", "clipping", "torque_sign",
    "repeated_log", "beyond_limits", "too_short",
)  # fmt: skip


class ContradictionError(RecordingError):
    """A recording that contradicts the robot; `causes` are the reasons."""

    def __reduce__(self) -> Any:
        # Corrections hold functions, which cannot be pickled.
        return ContradictionError, (
            tuple(replace(cause, correction=None) for cause in self.causes),
        )

    def __init__(self, causes: Sequence[Cause]) -> None:
        self.causes = tuple(causes)
        self.findings = tuple(cause.finding for cause in causes)
        files = {finding.file for finding in self.findings}
        self.file = files.pop() if len(files) == 1 else None
        texts = [f.message if f.message.endswith((".", "?")) else f"{f.message}." for f in
                 self.findings]  # fmt: skip
        text = "\n".join(dict.fromkeys(texts))
        super().__init__(
            f"{text}\nCorrect that, or fit nevertheless with --ignore-contradictions "
            f"(ignore_contradictions=True)."
        )


def raise_on_contradiction(causes: Sequence[Cause], ignore_contradictions: bool) -> None:
    """Raise `ContradictionError` if any cause is an error, unless contradictions are ignored."""
    errors = [cause for cause in causes if cause.finding.severity == "error"]
    if errors and not ignore_contradictions:
        raise ContradictionError(errors)


def recording_causes(robot: Robot, recordings: Sequence[Recording]) -> list[Cause]:
    """Causes visible in the numbers of recordings alone, before gains and filters."""
    findings: list[Finding] = []
    for recording in recordings:
        if len(recording) < _MIN_ROWS:
            findings.append(_with_file_name(_too_short_finding(recording), recording, recordings))
            continue
        file_findings = [f for f in recording.findings if f.kind in FATAL and f.severity == "error"]
        file_findings = [
            _with_tested_unit(robot, recording, f) if f.kind == "clock_scale" else f
            for f in file_findings
        ] + channel_findings(recording)
        findings += [_with_file_name(f, recording, recordings) for f in file_findings]
    findings += _limit_findings(robot, recordings, findings)
    return [Cause(finding) for finding in _keep_common_remedies(findings, len(recordings))]


def _keep_common_remedies(findings: Sequence[Finding], files: int) -> list[Finding]:
    """Keep only remedies that every file needs, since one column map reads them all."""
    if files < 2:
        return list(findings)
    remedy_counts = Counter(finding.remedy for finding in findings)
    return [f if remedy_counts[f.remedy] >= files else replace(f, remedy=None) for f in findings]


def _too_short_finding(recording: Recording) -> Finding:
    return Finding(
        "too_short",
        "error",
        f"the recording has {len(recording)} rows: too short for a fit, which needs some seconds "
        "of motion",
        value=float(len(recording)),
    )


def _with_file_name(finding: Finding, recording: Recording, all_: Sequence[Recording]) -> Finding:
    """Finding with its file name in the message, if there are several files."""
    if len(all_) < 2:
        return finding
    name = recording.meta.get("file", "the recording")
    return replace(finding, message=f"{name}: {finding.message}")


def sample_causes(
    robot: Robot,
    recordings: Sequence[Recording],
    samples: Samples,
    known_causes: Sequence[Cause] = (),
    evidence: HypothesisTest | None = None,
    source: SampleSource | None = None,
) -> list[Cause]:
    """Causes found by comparing conditioned samples with the robot.

    Args:
        robot: Robot with its mounting.
        recordings: Recordings of the samples; rows are not needed.
        samples: Conditioned samples.
        known_causes: Causes already found.
        evidence: Hypothesis test of these samples, if already built.
        source: Source of the excerpt, for cached results.
    """
    causes = [*_robot_name_causes(robot, recordings)]
    if any(cause.finding.severity == "error" for cause in (*known_causes, *causes)):
        # An error already explains any further disagreement.
        return [*causes, *_invalid_row_causes(recordings)]
    unsigned = samples.signed is not None and not np.all(samples.signed)
    has_masses = bool(np.any(robot.parameters))
    if unsigned or not has_masses:
        reason = "it was recorded without sign" if unsigned else "the robot has no nominal masses"
        causes.append(
            Cause(
                Finding(
                    "sign_unchecked",
                    "warning",
                    f"sign and unit of the torque are not checked against gravity: {reason}",
                )
            )
        )
    if samples.joints == robot.joints and not unsigned and has_masses:
        # Only the presence of drive gains in all recordings matters there.
        representative = [next((r for r in recordings if r.gain is None), recordings[0])]
        is_free = (
            source is not None
            and source.is_cached
            and source.compute_on_excerpt(_is_free_of_faults, robot, representative)
        )
        if not is_free:
            causes += _robot_causes(robot, representative, samples, evidence)
    return [*causes, *_invalid_row_causes(recordings)]


def _is_free_of_faults(robot: Robot, recordings: Sequence[Recording], source: SampleSource) -> bool:
    """Whether the robot explains an excerpt without a fault."""
    return not _robot_causes(robot, recordings, source.excerpt)


def _robot_causes(
    robot: Robot,
    recordings: Sequence[Recording],
    samples: Samples,
    evidence: HypothesisTest | None = None,
) -> list[Cause]:
    file_causes = _outlier_file_causes(robot, recordings, samples)
    if file_causes:
        return file_causes
    evidence = evidence or HypothesisTest(robot, samples)
    outlier = None
    if len(set(samples.names)) > 1:
        from taufit.diagnosis.outlier_file import find_outlier_file

        outlier = find_outlier_file(evidence)
    if outlier is None:
        return find_model_contradiction(robot, recordings, evidence)
    cause, other_samples = outlier
    if cause.finding.severity == "error":
        return [cause]
    return [
        cause,
        *find_model_contradiction(robot, recordings, HypothesisTest(robot, other_samples)),
    ]


def _outlier_file_causes(
    robot: Robot, recordings: Sequence[Recording], samples: Samples
) -> list[Cause]:
    """Causes in single files that the robot explains far worse than the others."""
    names = list(dict.fromkeys(samples.names))
    if len(names) < 3:
        return []
    parts = {}
    for name in names:
        runs = [i for i, run_name in enumerate(samples.names) if run_name == name]
        part = samples.rows(np.isin(samples.run, runs))
        if np.count_nonzero(part.in_motion) >= 200:
            parts[name] = part
    nrmse_by_file = {
        name: HypothesisTest(robot, part, max_rows=400).unchanged_fit.nrmse
        for name, part in parts.items()
    }
    if len(nrmse_by_file) < 3:
        return []
    median_nrmse = float(np.median(list(nrmse_by_file.values())))
    out = []
    for name, nrmse in nrmse_by_file.items():
        if nrmse > _OUTLIER_RATIO * median_nrmse and nrmse > median_nrmse + 0.03:
            causes = find_model_contradiction(robot, recordings, HypothesisTest(robot, parts[name]))
            out += [
                replace(
                    cause,
                    # A remedy for one file would spoil the others.
                    finding=replace(
                        cause.finding,
                        message=f"{name}: {cause.finding.message}",
                        remedy=None,
                        file=name,
                    ),
                )
                for cause in causes
            ]
    return out


def _robot_name_causes(robot: Robot, recordings: Sequence[Recording]) -> list[Cause]:
    from taufit.robot import bundled_robots

    bundled = set(bundled_robots())
    findings = []
    for recording in recordings:
        name = recording.meta.get("robot")
        if (
            isinstance(name, str)
            and name in bundled
            and robot.name in bundled
            and name != robot.name
        ):
            findings.append(
                Finding(
                    "wrong_arm",
                    "error",
                    f"{recording.meta.get('file', 'the recording')} is of {name!r}, as its map or "
                    f"file says, and the robot given is {robot.name!r}. Fit with {name!r}, or "
                    "correct `robot:` in the column map",
                    remedy=Remedy(robot=name),
                )
            )
    return [Cause(finding) for finding in dict.fromkeys(findings)]


def _invalid_row_causes(recordings: Sequence[Recording]) -> list[Cause]:
    """Causes for invalid rows; errors if they are more than a few after the first valid row."""
    return [
        Cause(
            Finding(
                finding.kind,
                "warning"
                if finding.rows
                and len(finding.rows) - _first_rows(finding.rows)
                <= _TOLERATED_FRACTION * _row_count(recording)
                else "error",
                f"{recording.meta.get('file', 'the recording')}: {finding}",
                rows=finding.rows,
                file=recording.meta.get("file"),
            )
        )
        for recording in recordings
        for finding in recording.findings
        if finding.kind in _IMPOSSIBLE
    ]


def _first_rows(rows: Sequence[int]) -> int:
    """Number of invalid rows before the first valid one, as of a logger that starts early."""
    return sum(row == place for place, row in enumerate(rows, 1))


def _row_count(recording: Recording) -> int:
    """Number of rows, including those set aside."""
    return int(recording.meta.get("rows", len(recording)))


def _limit_findings(
    robot: Robot, recordings: Sequence[Recording], findings: Sequence[Finding]
) -> list[Finding]:
    """Finding on joint positions outside the limits, with the likely unit."""
    if any(f.kind == "unit" and f.severity == "error" for f in findings):
        return []
    for recording in recordings:
        if recording.joints != robot.joints:
            continue
        q = recording.position
        low, high = robot.limits.lower, robot.limits.upper
        outside = (
            np.mean((q < low - LIMIT_MARGIN) | (q > high + LIMIT_MARGIN), axis=0) > OUTSIDE_FRACTION
        )
        if not outside.any():
            continue
        j = int(np.flatnonzero(outside)[0])
        k, unit = (1.0, "m") if robot.is_prismatic[j] else (180.0 / np.pi, "deg")
        range_text = (
            f"joint {j + 1} goes {k * q[:, j].min():.0f} .. {k * q[:, j].max():.0f} {unit}, its "
            f"limits are {k * low[j]:.0f} .. {k * high[j]:.0f}"
        )
        kind, cause, remedy = _explain_limits(robot, recording, j)
        if kind == "beyond_limits":
            robot_explanation = _explain_limits_by_robot(robot, recording)
            if robot_explanation is not None:
                kind, cause, remedy = robot_explanation
        return [
            Finding(
                kind,
                "error",
                f"positions are outside what {robot.name} can reach: {range_text}. Cause: {cause}",
                joint=j + 1,
                remedy=remedy,
            )
        ]
    return []


def _with_tested_unit(robot: Robot, recording: Recording, finding: Finding) -> Finding:
    from taufit.diagnosis.unit_advice import choose_unit_remedy

    return choose_unit_remedy(robot, recording, finding)


def _explain_limits_by_robot(
    robot: Robot, recording: Recording
) -> tuple[str, str, Remedy | None] | None:
    """Kind, cause and remedy of the correction that fits the torque, if there is one."""
    from taufit.diagnosis.unit_advice import hypothesis_test_for, measured_gains

    evidence = hypothesis_test_for(robot, recording)
    causes = [] if evidence is None else find_model_contradiction(robot, [recording], evidence)
    findings = [cause.finding for cause in causes if cause.finding.kind in _OUTSIDE_KINDS]
    if measured_gains(recording) is None:
        # Torque scaled to this robot cannot identify another.
        findings = [finding for finding in findings if finding.kind != "wrong_arm"]
    return (findings[0].kind, findings[0].message, findings[0].remedy) if findings else None


def _explain_limits(robot: Robot, recording: Recording, j: int) -> tuple[str, str, Remedy | None]:
    """Kind, cause and remedy of positions outside the limits of joint j."""
    q, low, high = recording.position, robot.limits.lower, robot.limits.upper
    turning = ~robot.is_prismatic
    if turning[j]:
        degrees = np.radians(q[:, turning])
        inside = (degrees > low[turning] - LIMIT_MARGIN) & (degrees < high[turning] + LIMIT_MARGIN)
        largest = float(np.abs(q[:, turning]).max())
        if largest > 2 * np.pi and np.mean(inside) > 0.99 and largest < 800.0:
            from taufit.diagnosis.unit_advice import is_explained_in_degrees
            from taufit.recording.units import DEGREES_REMEDY

            if is_explained_in_degrees(robot, recording):
                text = "positions are in degrees: give `unit: deg` in the column map"
                return "unit", text, DEGREES_REMEDY
            text = (
                "angles of the motor? Give `side: motor` and gear_ratio in the column map (in "
                "degrees, `unit: deg`, they would be within the limits, but the arm would not "
                "explain the torque)"
            )
            return "unit", text, None
        if largest > 20 * np.pi:
            return "unit", "angles of the motor? Give `side: motor` and gear_ratio", None
    text = "is it the right robot, are signs and zero offsets (`offset`) right (--map)?"
    return "beyond_limits", text, None
