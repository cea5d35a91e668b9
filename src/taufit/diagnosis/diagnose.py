"""What is wrong with recordings of a robot, named by its cause.

First what the numbers alone say (units, clocks, stuck or clipped channels), then what the arm says
(`taufit.diagnosis.model_contradiction`).
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
from taufit.diagnosis.outlier_file import find_outlier_file
from taufit.diagnosis.unit_advice import (
    choose_unit_remedy,
    evidence_of,
    explained_in_degrees,
    measured_gains,
)
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.recording.units import DEGREES
from taufit.robot import Robot
from taufit.signals.sample_source import SampleSource
from taufit.signals.samples import Samples

# A file that leaves this many times what the others do has a fault of its own.
_UNLIKE = 1.8
# Beyond its limits by more than this, for more than this share of the time, an arm cannot be
# [rad or m, 1].
_BEYOND, _OFTEN = 0.2, 0.01
# Up to this share of a recording's rows may hold no possible numbers: they are left out, and the
# fit goes on. More is a fault of the whole file.
_FEW = 0.01
# Fewer rows than this are no motion.
_LEAST_ROWS = 10
# What may bring positions beyond the limits.
_OUTSIDE_KINDS = ("torque_sign", "swapped_joints", "zero_offset", "wrong_arm")
# What readers call numbers that cannot be measurements.
_IMPOSSIBLE = ("corrupt_rows", "impossible_rows", "missing_values")
# Findings of readers that no fit should be built on.
FATAL = ("unit", "velocity_sign", "clock_scale")
# What `recording_causes` may find.
CHANNEL_KINDS = (
    *FATAL, "stuck_encoder", "no_variation", "quantised", "clipping", "torque_sign",
    "repeated_log", "beyond_limits", "too_short",
)  # fmt: skip


class ContradictionError(RecordingError):
    """A recording that contradicts the robot; `causes` say how."""

    def __reduce__(self) -> Any:
        # Changes are functions, which other processes cannot be handed.
        return ContradictionError, (tuple(replace(cause, change=None) for cause in self.causes),)

    def __init__(self, causes: Sequence[Cause]) -> None:
        self.causes = tuple(causes)
        self.findings = tuple(cause.finding for cause in causes)
        texts = [f.message if f.message.endswith((".", "?")) else f"{f.message}." for f in
                 self.findings]  # fmt: skip
        text = "\n".join(dict.fromkeys(texts))
        super().__init__(
            f"{text}\nCorrect that, or fit nevertheless with --ignore-contradictions "
            f"(ignore_contradictions=True)."
        )


def raise_on_contradiction(causes: Sequence[Cause], force: bool) -> None:
    """Stop where something grave was found, unless the user wants to go on."""
    grave = [cause for cause in causes if cause.finding.severity == "error"]
    if grave and not force:
        raise ContradictionError(grave)


def recording_causes(robot: Robot, recordings: Sequence[Recording]) -> list[Cause]:
    """What the numbers of recordings say by themselves, before gains and filters."""
    found: list[Finding] = []
    for recording in recordings:
        if len(recording) < _LEAST_ROWS:
            found.append(_of_file(_short(recording), recording, recordings))
            continue
        own = [f for f in recording.findings if f.kind in FATAL and f.severity == "error"]
        own = [
            choose_unit_remedy(robot, recording, f) if f.kind == "clock_scale" else f for f in own
        ] + channel_findings(recording)
        found += [_of_file(f, recording, recordings) for f in own]
    found += _limits(robot, recordings, found)
    return [Cause(finding) for finding in _for_all(found, len(recordings))]


def _for_all(found: Sequence[Finding], files: int) -> list[Finding]:
    """Findings with only those remedies that every file needs: one map reads them all."""
    if files < 2:
        return list(found)
    needed = Counter(finding.remedy for finding in found)
    return [f if needed[f.remedy] >= files else replace(f, remedy=None) for f in found]


def _short(recording: Recording) -> Finding:
    return Finding(
        "too_short",
        "error",
        f"the recording has {len(recording)} rows: too short for a fit, which needs some seconds "
        "of motion",
        value=float(len(recording)),
    )


def _of_file(finding: Finding, recording: Recording, all_: Sequence[Recording]) -> Finding:
    """The finding with its file's name, where there are several."""
    if len(all_) < 2:
        return finding
    name = recording.meta.get("file", "the recording")
    return replace(finding, message=f"{name}: {finding.message}")


def sample_causes(
    robot: Robot,
    recordings: Sequence[Recording],
    samples: Samples,
    known: Sequence[Cause] = (),
    evidence: HypothesisTest | None = None,
    source: SampleSource | None = None,
) -> list[Cause]:
    """What the arm says about conditioned samples.

    Args:
        robot: The arm with its mounting.
        recordings: Where the samples come from; rows are not needed.
        samples: Conditioned.
        known: Causes already found.
        evidence: Of these samples, where it is already there.
        source: Whose excerpt they are: what was found about the same excerpt before is found again.
    """
    causes = [*_names(robot, recordings)]
    if any(cause.finding.severity == "error" for cause in (*known, *causes)):
        # What is wrong already explains whatever else would be seen.
        return [*causes, *_impossible(recordings)]
    unsigned = samples.signed is not None and not np.all(samples.signed)
    if samples.joints == robot.joints and not unsigned and np.any(robot.parameters):
        # Of recordings nothing matters there but whether all have gains of their own.
        one = [next((r for r in recordings if r.gain is None), recordings[0])]
        if source is None or not source.of_excerpt(_as_it_should_be, robot, one):
            causes += _by_arm(robot, one, samples, evidence)
    return [*causes, *_impossible(recordings)]


def _as_it_should_be(robot: Robot, recordings: Sequence[Recording], source: SampleSource) -> bool:
    """Whether the arm finds no fault with an excerpt."""
    return not _by_arm(robot, recordings, source.excerpt)


def _by_arm(
    robot: Robot,
    recordings: Sequence[Recording],
    samples: Samples,
    evidence: HypothesisTest | None = None,
) -> list[Cause]:
    found = _unlike(robot, recordings, samples)
    if found:
        return found
    evidence = evidence or HypothesisTest(robot, samples)
    odd = find_outlier_file(evidence)
    if odd is None:
        return find_model_contradiction(robot, recordings, evidence)
    cause, others = odd
    if cause.finding.severity == "error":
        return [cause]
    return [cause, *find_model_contradiction(robot, recordings, HypothesisTest(robot, others))]


def _unlike(robot: Robot, recordings: Sequence[Recording], samples: Samples) -> list[Cause]:
    """Causes in single files that the arm explains far worse than it does the others."""
    names = list(dict.fromkeys(samples.names))
    if len(names) < 3:
        return []
    parts = {}
    for name in names:
        runs = [i for i, one in enumerate(samples.names) if one == name]
        part = samples.rows(np.isin(samples.run, runs))
        if np.count_nonzero(part.in_motion) >= 200:
            parts[name] = part
    shares = {
        name: HypothesisTest(robot, part, most_rows=400).plain.share for name, part in parts.items()
    }
    if len(shares) < 3:
        return []
    usual = float(np.median(list(shares.values())))
    out = []
    for name, share in shares.items():
        if share > _UNLIKE * usual and share > usual + 0.03:
            found = find_model_contradiction(robot, recordings, HypothesisTest(robot, parts[name]))
            out += [
                replace(
                    cause,
                    # What mends one file would spoil the others.
                    finding=replace(
                        cause.finding, message=f"{name}: {cause.finding.message}", remedy=None
                    ),
                )
                for cause in found
            ]
    return out


def _names(robot: Robot, recordings: Sequence[Recording]) -> list[Cause]:
    from taufit.robot import bundled_robots

    known = set(bundled_robots())
    found = []
    for recording in recordings:
        name = recording.meta.get("robot")
        if isinstance(name, str) and name in known and robot.name in known and name != robot.name:
            found.append(
                Finding(
                    "wrong_arm",
                    "error",
                    f"{recording.meta.get('file', 'the recording')} is of {name!r}, as its map or "
                    f"file says, and the robot given is {robot.name!r}. Fit with {name!r}, or "
                    "correct `robot:` in the column map",
                    remedy=Remedy(robot=name),
                )
            )
    return [Cause(finding) for finding in dict.fromkeys(found)]


def _impossible(recordings: Sequence[Recording]) -> list[Cause]:
    """Rows that hold no possible numbers; grave where they are more than a few."""
    return [
        Cause(
            Finding(
                finding.kind,
                "warning" if 0 < len(finding.rows) <= _FEW * _rows(recording) else "error",
                f"{recording.meta.get('file', 'the recording')}: {finding}",
                rows=finding.rows,
            )
        )
        for recording in recordings
        for finding in recording.findings
        if finding.kind in _IMPOSSIBLE
    ]


def _rows(recording: Recording) -> int:
    """Rows it has, or had before they were set aside."""
    return int(recording.meta.get("rows", len(recording)))


def _limits(
    robot: Robot, recordings: Sequence[Recording], known: Sequence[Finding]
) -> list[Finding]:
    """One finding on joints that are recorded where they cannot go, with the likely unit."""
    if any(f.kind == "unit" and f.severity == "error" for f in known):
        return []
    for recording in recordings:
        if recording.joints != robot.joints:
            continue
        q = recording.position
        low, high = robot.limits.lower, robot.limits.upper
        outside = np.mean((q < low - _BEYOND) | (q > high + _BEYOND), axis=0) > _OFTEN
        if not outside.any():
            continue
        j = int(np.flatnonzero(outside)[0])
        k, unit = (1.0, "m") if robot.links[j].prismatic else (180.0 / np.pi, "deg")
        listed = (
            f"joint {j + 1} goes {k * q[:, j].min():.0f} .. {k * q[:, j].max():.0f} {unit}, its "
            f"limits are {k * low[j]:.0f} .. {k * high[j]:.0f}"
        )
        kind, cause, remedy = _why_outside(robot, recording, j)
        if kind == "beyond_limits":
            known_by_arm = _outside_by_arm(robot, recording)
            if known_by_arm is not None:
                kind, cause, remedy = known_by_arm
        return [
            Finding(
                kind,
                "error",
                f"positions are outside what {robot.name} can reach: {listed}. Cause: {cause}",
                joint=j + 1,
                remedy=remedy,
            )
        ]
    return []


def _outside_by_arm(robot: Robot, recording: Recording) -> tuple[str, str, Remedy | None] | None:
    """Kind, cause and remedy by which the arm explains the torque, where there is one."""
    evidence = evidence_of(robot, recording)
    found = [] if evidence is None else find_model_contradiction(robot, [recording], evidence)
    named = [one.finding for one in found if one.finding.kind in _OUTSIDE_KINDS]
    if measured_gains(recording) is None:
        # In a torque that is scaled to this arm no other one can be recognised.
        named = [finding for finding in named if finding.kind != "wrong_arm"]
    return (named[0].kind, named[0].message, named[0].remedy) if named else None


def _why_outside(robot: Robot, recording: Recording, j: int) -> tuple[str, str, Remedy | None]:
    """Kind, cause and remedy of positions that joint j, and maybe others, cannot reach."""
    q, low, high = recording.position, robot.limits.lower, robot.limits.upper
    turning = np.array([not link.prismatic for link in robot.links])
    if turning[j]:
        degrees = np.radians(q[:, turning])
        inside = (degrees > low[turning] - _BEYOND) & (degrees < high[turning] + _BEYOND)
        largest = float(np.abs(q[:, turning]).max())
        if largest > 2 * np.pi and np.mean(inside) > 0.99 and largest < 800.0:
            if explained_in_degrees(robot, recording):
                text = "positions are in degrees: give `unit: deg` in the column map"
                return "unit", text, DEGREES
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
