"""What is wrong with recordings of a robot, named by its cause.

First what the numbers alone say (units, clocks, stuck or clipped channels), then what the arm says:
if its links explain the torque as well as each joint's own columns do, and lie where the nominal
robot has them, nothing is wrong; else every hypothesis is tried and the one that puts it right is
named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.calibration.mounting import Gravity, estimate_gravity, spoken
from taufit.diagnosis.alternatives import other_arms
from taufit.diagnosis.change import Change, torque_scale
from taufit.diagnosis.channels import channel_findings
from taufit.diagnosis.evidence import Evidence, Worth
from taufit.diagnosis.hypotheses import Tried, hypotheses, ranked
from taufit.diagnosis.lag import delay_finding
from taufit.diagnosis.slopes import gravity_slopes, middle_slope
from taufit.errors import RecordingError
from taufit.recording import Recording
from taufit.recording.finding import Finding
from taufit.robot import Robot
from taufit.signals.samples import Samples

# Links explain a joint's torque worse than its own columns by this factor, or lie this far from
# the nominal ones (squared, in units of 100 %), or leave this share unexplained: look closer.
_WORSE, _FAR, _SHARE = 1.4, 5.0, 0.08
# A hypothesis is named when it gains this many log odds (twice) and explains this much more, or
# brings the links back to the nominal arm by this much.
ODDS, BETTER, CLOSER = 40.0, 0.93, 10.0
# It is refused, not only named, when it gains this many and leaves this share of what was left.
SURE, _HALF = 100.0, 0.7
# Gravity relative to the nominal arm that no tool or bad description explains: of a unit, of
# another arm.
_ABSURD, _ANOTHER = (0.15, 6.5), (0.55, 1.9)
# Nothing is put right that leaves more than this unexplained, and hypotheses are compared on this
# many rows before the best is confirmed on all.
_WRONG, _QUICK_ROWS = 0.5, 400
# Joints whose velocities are correlated more than this move as one: no cause can be separated.
_AS_ONE = 0.98
_MOTION_KINDS = ("zero_offset", "swapped_joints", "swapped_torque", "clock_scale")
# A file that leaves this many times what the others do has a fault of its own.
_UNLIKE = 1.8
# Gravity in the torque, relative to the nominal arm: none; as it should be.
_NONE, _RIGHT = 0.3, (0.5, 2.0)
# Beyond its limits by more than this, for more than this share of the time, an arm cannot be
# [rad or m, 1].
_BEYOND, _OFTEN = 0.2, 0.01
# What readers call numbers that cannot be measurements.
_IMPOSSIBLE = ("corrupt_rows", "impossible_rows", "missing_values")
# Findings of readers that no fit should be built on.
FATAL = ("unit", "velocity_sign", "clock_scale")
# What `recording_causes` may find.
CHANNEL_KINDS = (
    *FATAL, "stuck_encoder", "no_variation", "quantised", "clipping", "torque_sign",
    "repeated_log", "beyond_limits",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """What is wrong, and the change that was found to put it right, if one was."""

    finding: Finding
    change: Change | None = None


class RefusedError(RecordingError):
    """A recording that contradicts the robot; `causes` say how."""

    def __reduce__(self) -> Any:
        # Changes are functions, which other processes cannot be handed.
        return RefusedError, (tuple(replace(cause, change=None) for cause in self.causes),)

    def __init__(self, causes: Sequence[Cause]) -> None:
        self.causes = tuple(causes)
        self.findings = tuple(cause.finding for cause in causes)
        texts = [f.message if f.message.endswith((".", "?")) else f"{f.message}." for f in
                 self.findings]  # fmt: skip
        text = "\n".join(dict.fromkeys(texts))
        super().__init__(f"{text}\nCorrect that, or fit nevertheless with --force (force=True).")


def refuse(causes: Sequence[Cause], force: bool) -> None:
    """Stop where something grave was found, unless the user wants to go on."""
    grave = [cause for cause in causes if cause.finding.severity == "error"]
    if grave and not force:
        raise RefusedError(grave)


def recording_causes(robot: Robot, recordings: Sequence[Recording]) -> list[Cause]:
    """What the numbers of recordings say by themselves, before gains and filters."""
    found: list[Finding] = []
    for recording in recordings:
        own = [f for f in recording.findings if f.kind in FATAL and f.severity == "error"]
        own += channel_findings(recording)
        found += [_of_file(f, recording, recordings) for f in own]
    found += _limits(robot, recordings, found)
    return [Cause(finding) for finding in found]


def _of_file(finding: Finding, recording: Recording, all_: Sequence[Recording]) -> Finding:
    """The finding with its file's name, where there are several."""
    if len(all_) < 2:
        return finding
    name = recording.meta.get("file", "the recording")
    return replace(finding, message=f"{name}: {finding.message}")


def sample_causes(
    robot: Robot, recordings: Sequence[Recording], samples: Samples, known: Sequence[Cause] = ()
) -> list[Cause]:
    """What the arm says about conditioned samples."""
    causes = [*_names(robot, recordings)]
    if any(cause.finding.severity == "error" for cause in (*known, *causes)):
        # What is wrong already explains whatever else would be seen.
        return [*causes, *_impossible(recordings)]
    unsigned = samples.signed is not None and not np.all(samples.signed)
    if samples.joints == robot.joints and not unsigned and np.any(robot.parameters):
        causes += _unlike(robot, recordings, samples) or _by_model(robot, recordings, samples)
    return [*causes, *_impossible(recordings)]


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
        name: Evidence(robot, part, most_rows=400).plain.share for name, part in parts.items()
    }
    if len(shares) < 3:
        return []
    usual = float(np.median(list(shares.values())))
    out = []
    for name, share in shares.items():
        if share > _UNLIKE * usual and share > usual + 0.03:
            found = _by_model(robot, recordings, parts[name])
            out += [
                replace(cause, finding=replace(cause.finding, message=f"{name}: "
                        f"{cause.finding.message}")) for cause in found
            ]  # fmt: skip
    return out


def _by_model(robot: Robot, recordings: Sequence[Recording], samples: Samples) -> list[Cause]:
    own_gain = all(r.gain is not None for r in recordings) and samples.gain is not None
    evidence = Evidence(robot, samples, samples.gain if own_gain else None)
    if not evidence.enough:
        return []
    gravity = estimate_gravity(robot, samples)
    slopes = gravity_slopes(evidence.rows)
    out: list[Cause] = []
    if suspicious(evidence, gravity, slopes):
        best = _best(evidence, gravity, slopes)
        if best is None and _scaled(slopes):
            tried = Tried(_scale(middle_slope(slopes)), evidence.plain)
            return [_cause(tried, gravity, robot, _severity(tried, evidence.plain, slopes))]
        if best is not None:
            severity = _severity(best, evidence.plain, slopes)
            return [_cause(best, gravity, robot, severity)]
        if gravity is not None and gravity.wrong:
            return [Cause(Finding("mounting", "error", spoken(gravity, robot)))]
    lag = delay_finding(evidence)
    if lag is not None:
        out.append(Cause(lag))
    return out


def suspicious(evidence: Evidence, gravity: Gravity | None, slopes: np.ndarray) -> bool:
    """Whether the arm and the rows disagree enough to look for a cause."""
    plain = evidence.plain
    own = np.diag(evidence.own_shares())
    worse = np.max(plain.shares / np.maximum(own, 0.01))
    scaled = _scaled(slopes)
    tilted = gravity is not None and gravity.wrong
    return bool(worse > _WORSE or plain.prior > _FAR or plain.share > _SHARE or scaled or tilted)


def _best(evidence: Evidence, gravity: Gravity | None, slopes: np.ndarray) -> Tried | None:
    """The hypothesis that puts things right, or None."""
    middle = middle_slope(slopes)
    untested = _MOTION_KINDS if _together(evidence) else ()
    changes = [
        change
        for change in hypotheses(evidence, gravity)
        if (change.kind != "gravity_removed" or abs(middle) < _NONE) and change.kind not in untested
    ]
    if _scaled(slopes):
        changes.append(_scale(middle))
    changes += other_arms(evidence.rows.robot, middle)
    quick = evidence.thinned(_QUICK_ROWS)
    tried = [Tried(one.change, evidence.worth(one.change)) for one in ranked(quick, changes)[:4]]
    tried.sort(key=lambda one: one.worth.cost + one.change.rank)
    plain = evidence.plain
    for one in tried:
        if one.worth.share > _WRONG:
            continue
        gained = plain.cost - one.worth.cost
        better = one.worth.share < BETTER * plain.share
        closer = one.worth.prior < plain.prior - CLOSER
        if gained > ODDS and (better or closer):
            return one
    return None


def _together(evidence: Evidence) -> bool:
    """Whether joints move as one: such a motion cannot tell one joint's angle from another's."""
    velocity = evidence.rows.velocity
    active = velocity[:, velocity.std(axis=0) > 1e-3]
    if active.shape[1] < 2:
        return False
    correlation = np.abs(np.corrcoef(active.T))
    return bool(np.max(correlation - np.eye(len(correlation))) > _AS_ONE)


def _scaled(slopes: np.ndarray) -> bool:
    """Whether gravity is far from the nominal arm's in most joints that carry any."""
    middle = middle_slope(slopes)
    return bool(np.isfinite(middle) and middle > 1e-9 and not _RIGHT[0] < middle < _RIGHT[1])


def _scale(middle: float) -> Change:
    """Torque in another unit, where gravity is as many times too large or small."""
    size = abs(middle)
    if 500 < size < 2000:
        cause = "it is in mN m? Give `unit: mN m` at the torque in the column map"
    elif 5e-4 < size < 2e-3:
        cause = "it is in kN m? Give `unit: kN m` at the torque in the column map"
    elif 6.0 < size < 12.0:
        cause = "it is in lbf in? Give `unit: lbf in` at the torque in the column map"
    elif size < 0.5:
        cause = (
            "it is a current, or the torque of the motor before its gear? Give `current:` with "
            "gains, or gear_ratio, in the column map"
        )
    else:
        cause = "check its unit and the drive gains in the column map"
    return torque_scale(
        1.0 / middle,
        f"the torque is {middle:.2g} times what gravity on the nominal robot makes of it: "
        f"{cause}; a factor of {1 / middle:.3g} (`scale`) makes them agree",
    )


def _severity(best: Tried, plain: Worth, slopes: np.ndarray) -> str:
    """Refused where the evidence is overwhelming, else only named.

    A unit or another arm explains no more torque, it only moves the links: there gravity itself
    must be out of all proportion.
    """
    kind = best.change.kind
    middle = middle_slope(slopes)
    if kind in ("unit", "wrong_arm"):
        low, high = _ABSURD if kind == "unit" else _ANOTHER
        return "warning" if low < middle < high else "error"
    if kind in ("mounting", "gravity_removed"):
        return "error"
    sure = plain.cost - best.worth.cost > SURE
    return "error" if sure and best.worth.share < _HALF * plain.share else "warning"


def _cause(best: Tried, gravity: Gravity | None, robot: Robot, severity: str = "error") -> Cause:
    change = best.change
    message = change.message
    if change.kind == "mounting" and gravity is not None:
        message = spoken(gravity, robot)
    return Cause(Finding(change.kind, severity, message, joint=change.joint), change)


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
                )
            )
    return [Cause(finding) for finding in dict.fromkeys(found)]


def _impossible(recordings: Sequence[Recording]) -> list[Cause]:
    return [
        Cause(
            Finding(
                finding.kind,
                "error",
                f"{recording.meta.get('file', 'the recording')}: {finding}",
                rows=finding.rows,
            )
        )
        for recording in recordings
        for finding in recording.findings
        if finding.kind in _IMPOSSIBLE
    ]


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
        turning = np.array([not link.prismatic for link in robot.links])
        k, unit = (180.0 / np.pi, "deg") if turning[j] else (1.0, "m")
        listed = (
            f"joint {j + 1} goes {k * q[:, j].min():.0f} .. {k * q[:, j].max():.0f} {unit}, its "
            f"limits are {k * low[j]:.0f} .. {k * high[j]:.0f}"
        )
        degrees = q[:, turning] * np.pi / 180.0
        inside = (degrees > low[turning] - _BEYOND) & (degrees < high[turning] + _BEYOND)
        largest = float(np.abs(q[:, turning]).max()) if turning.any() else 0.0
        if turning[j] and largest > 2 * np.pi and np.mean(inside) > 0.99 and largest < 800.0:
            kind, cause = "unit", "positions are in degrees: give `unit: deg` in the column map"
        elif turning[j] and largest > 20 * np.pi:
            kind, cause = "unit", "angles of the motor? Give `side: motor` and gear_ratio"
        else:
            kind = "beyond_limits"
            cause = "is it the right robot, are signs and zero offsets (`offset`) right (--map)?"
        return [
            Finding(
                kind,
                "error",
                f"positions are outside what {robot.name} can reach: {listed}. Cause: {cause}",
                joint=j + 1,
            )
        ]
    return []
