"""Clearance of a motion on a robot, proved anew for every start.

Everything independent of the current pose is prepared once (bodies, levers, home poses); the proofs
are made by each call of `clear`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.clearance.approach import Approaches, JointPath
from taufit.clearance.cell import Cell, intersect_limits, limits_to_keep
from taufit.clearance.identity import catalogue_limits
from taufit.clearance.motion_file import MotionFile, find_changed_parts
from taufit.clearance.playback import (
    PlaybackPart,
    playback_parts,
    rest_reasons,
    shift_by_turns,
    turns_towards,
)
from taufit.clearance.proof import check_torque, prove_clear, prove_limits, prove_tip_speed
from taufit.clearance.space import CollisionSpace
from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.excitation import Fourier, Motion
from taufit.robot import JointLimits, Robot
from taufit.wire.player import APPROACH_ACCELERATION, APPROACH_SPEED, Approach, MotionRanges

# Maximum duration of the approach [s].
_MAXIMUM_APPROACH_S = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class Clearance:
    """Result: whether a motion may be played from the current pose, and how.

    Attributes:
        motion: Motion to play; shifted by full turns if only that can be reached.
        reasons: Reasons against it; each names a remedy.
        uncertified: Facts that no proof covers and the user must accept.
        notes: Messages for the user.
        approach: Proved legs to the start; None if there are none or the pose is unknown.
        back: Proved legs from the end to the start; None if the motion ends where it starts or
            is played only once.
        via: Kind of the approach, for messages.
        knots_s: Time between the knots of a program [s].
        reach: Range, speed and acceleration of everything played.
        limits: Joint limits kept by all parts.
    """

    motion: Motion
    reasons: tuple[str, ...]
    uncertified: tuple[str, ...]
    notes: tuple[str, ...]
    approach: Approach | None
    back: Approach | None
    via: str
    knots_s: float
    reach: MotionRanges
    limits: JointLimits

    def is_cleared(self, *, accept_uncertified: bool = False) -> bool:
        """Whether nothing forbids playback."""
        return not self.reasons and (accept_uncertified or not self.uncertified)

    def refusals(self, *, accept_uncertified: bool = False) -> list[str]:
        """Reasons against playback."""
        if accept_uncertified:
            return list(self.reasons)
        return [
            *self.reasons,
            *(f"{text} (--uncertified accepts that)" for text in self.uncertified),
        ]


class ClearanceCheck:
    """Proofs of one motion on one robot.

    Args:
        file: Motion and its cell.
        robot: Robot, mounted as the motion was planned for.
        motion: Motion as played; default: that of the file.
        mode: One of `playback.PROGRAM`, `STREAM`, `TRAJECTORY`.
        is_repeated: Whether it is played more than once, slowly first or to warm up.
    """

    def __init__(
        self,
        file: MotionFile,
        robot: Robot,
        *,
        mode: str,
        motion: Motion | None = None,
        is_repeated: bool = True,
    ) -> None:
        self.file, self.robot, self.mode, self.is_repeated = file, robot, mode, is_repeated
        self.motion = file.motion if motion is None else motion
        cell = Cell.default(robot) if file.cell is None else file.cell
        self.cell = cell
        bundled_limits = catalogue_limits(robot)
        self.is_known_robot = bundled_limits is not None
        # A description of a bundled robot does not widen that robot's limits.
        robot_limits = (
            robot.limits
            if bundled_limits is None
            else intersect_limits(robot.limits, bundled_limits)
        )
        limits = limits_to_keep(replace(robot, limits=robot_limits), cell)
        self.limits = limits
        self.space = CollisionSpace(robot, cell.scene(robot), limits)
        self.approaches = Approaches.from_space(self.space)
        # Legs move at the default speed unless a limit of the cell is lower.
        lowest_speed = 0.9 * float(np.minimum(limits.velocity, np.inf).min())
        tip_reach = float(self.space.tip_levers.sum())
        tip_limit = 0.9 * cell.tip_speed / tip_reach if np.isfinite(cell.tip_speed) else np.inf
        self.speed = min(APPROACH_SPEED, lowest_speed, tip_limit)
        self.acceleration = min(APPROACH_ACCELERATION, 0.9 * float(limits.acceleration.min()))

    def clear(self, current_pose: Float[Array, " j"] | None) -> Clearance:
        """Prove everything that would be played from a pose; None: without approach."""
        names = self.robot.joint_names
        reasons = rest_reasons(self.motion, self.limits, names)
        if not self.file.feasible:
            reasons.append("`design` noted that the motion is not feasible; plan another one")
        parts, knots_s = playback_parts(self.motion, self.limits, names, self.mode)
        for part in parts:
            reasons += self._violations(part)
        uncertified, notes = self._certification()
        back = None if reasons else self._return_path(self.motion, reasons)
        motion, path = self.motion, None
        if current_pose is not None and not reasons:
            current_pose = np.asarray(current_pose, float)
            motion, path = self._find_path(current_pose, reasons)
            if motion is not self.motion:
                back = self._return_path(motion, reasons)
                notes.append("the motion is played a full turn on, where it can be reached")
        approach = None
        if path is not None:
            approach = Approach(path.poses, self.speed, self.acceleration)
            if approach.duration > _MAXIMUM_APPROACH_S:
                reasons.append(
                    f"the way to the start takes {approach.duration:.0f} s at "
                    f"{self.speed:.2g} rad/s; jog the arm nearer to "
                    f"{_format_degrees(path.poses[-1])}"
                )
        return Clearance(
            motion,
            tuple(dict.fromkeys(reasons)),
            tuple(uncertified),
            tuple(notes),
            approach,
            back,
            "" if path is None else path.kind,
            knots_s,
            self._demand(motion, [legs.poses for legs in (approach, back) if legs is not None]),
            self.limits,
        )

    def _return_path(self, motion: Motion, reasons: list[str]) -> Approach | None:
        """Proved legs from the end of a motion to its start, if it is played again."""
        ends = np.array([motion.duration, 0.0])
        if isinstance(motion, Fourier) or not self.is_repeated:
            return None
        end, start = motion.at(ends)[0]
        if np.abs(end - start).max() <= 1e-6:
            return None
        path = self.approaches.find(end, start)
        if path is None:
            reasons.append(
                "no clear way back from the end of the motion to its start was found. Play it once "
                "(--slow 0), or plan another one"
            )
            return None
        return Approach(path.poses, self.speed, self.acceleration)

    def _violations(self, part: PlaybackPart) -> list[str]:
        """Limits and clearances that a part violates."""
        limits, names = self.limits, self.robot.joint_names
        violations = []
        remedy = f"Plan it again with `taufit design {self.robot.name}`"
        jerk = self.cell.jerk if part.name == "the motion" else np.inf
        violations += prove_limits(part.curve, limits, names, jerk=jerk, tolerance=part.tolerance)
        if not violations:
            # Clearance of a motion that violates limits takes long to prove and changes nothing.
            tip_speed = prove_tip_speed(part.curve, self.space, tolerance=part.tolerance)
            torque = check_torque(part.curve, self.robot, limits.torque, names)
            distance = prove_clear(part.curve, self.space)
            violations += [
                violation for violation in (tip_speed, torque, distance) if violation is not None
            ]
        return [f"{part.name}: {violation}. {remedy}" for violation in violations]

    def _certification(self) -> tuple[list[str], list[str]]:
        """Uncertified facts, and notes."""
        file = self.file
        notes = ["bare flange: no body of a tool or payload is known, none is kept clear"]
        uncertified = self.cell.uncertified(self.robot)
        if file.cell is None and not file.digests and not file.incomplete:
            notes.append(
                "the file states no cell and no digest (written by hand or by an older taufit): "
                f"certified anew, {1e3 * self.cell.clearance:.0f} mm clear of the arm itself and "
                "its mounting surface"
            )
            return uncertified, notes
        changed = find_changed_parts(file, self.robot)
        if file.incomplete:
            uncertified.append(f"{file.path.name}: {file.incomplete}")
        elif changed:
            uncertified.append(
                f"{file.path.name}: changed since `design` certified it: {', '.join(changed)}"
            )
        return uncertified, notes

    def _find_path(
        self, current_pose: Float[Array, " j"], reasons: list[str]
    ) -> tuple[Motion, JointPath | None]:
        """Proved path to the start, with the motion shifted by full turns if needed."""
        approaches, limits, names = self.approaches, self.limits, self.robot.joint_names
        excess = np.maximum(current_pose - limits.upper, limits.lower - current_pose)
        if excess.max() > 1e-3:
            joint = int(excess.argmax())
            reasons.append(
                f"{names[joint]} stands at {current_pose[joint]:.3f}, outside its limits: jog it "
                "back first"
            )
            return self.motion, None
        pair, margin = approaches.space.nearest(current_pose)
        if not approaches.is_free(np.clip(current_pose, limits.lower, limits.upper)):
            required = float(approaches.space.required[approaches.space.names.index(pair)])
            reasons.append(
                f"the arm stands with {pair} {1e3 * (required + margin):.0f} mm apart; "
                f"{1e3 * required:.0f} mm are kept on the way. Jog them apart first"
            )
            return self.motion, None
        goal = self.motion.at(np.zeros(1))[0][0]
        path = approaches.find(current_pose, goal)
        if path is not None:
            return self.motion, path
        revolute = ~self.robot.is_prismatic
        turns = turns_towards(self.motion, current_pose, limits, revolute)
        if np.any(turns):
            shifted = shift_by_turns(self.motion, turns)
            parts, _ = playback_parts(shifted, limits, names, self.mode)
            path = approaches.find(current_pose, shifted.at(np.zeros(1))[0][0])
            if path is not None and not any(self._violations(part) for part in parts):
                return shifted, path
        reasons.append(self._blocked_message(current_pose, goal))
        return self.motion, None

    def _blocked_message(self, current_pose: Float[Array, " j"], goal: Float[Array, " j"]) -> str:
        """Message with the blocking pair of bodies, and a pose from which the path is proved."""
        pair, distance = self.approaches.blocking(current_pose, goal)
        text = (
            "no clear way from here to the start was found: on the straight one "
            + (
                f"{pair} come within {1e3 * distance:.0f} mm"
                if distance > 0
                else f"{pair} touch ({-1e3 * distance:.0f} mm deep)"
            )
            + ". "
        )
        homes = self.approaches.homes_with_leg_to(goal)
        file_home = self.file.home
        if file_home is not None and self.approaches.leg_is_clear(file_home, goal):
            homes.append(file_home)
        if not homes:
            return text + f"Jog the arm to the start itself, {_format_degrees(goal)} degrees"
        nearest = min(homes, key=lambda pose: float(np.abs(pose - current_pose).max()))
        return (
            text
            + f"Jog the arm to {_format_degrees(nearest)} degrees: the way from there is proved"
        )

    def _demand(self, motion: Motion, paths: list[Float[Array, "n j"]]) -> MotionRanges:
        """Demand of the motion, its positions extended by the approach."""
        time = np.linspace(0.0, motion.duration, max(500, min(200_000, int(200 * motion.duration))))
        demand = MotionRanges.from_samples(*motion.at(time), motion.duration)
        if not paths:
            return demand
        poses = np.vstack(paths)
        return replace(
            demand,
            lower=np.minimum(demand.lower, poses.min(axis=0)),
            upper=np.maximum(demand.upper, poses.max(axis=0)),
        )


def _format_degrees(pose: Array) -> str:
    return "[" + ", ".join(f"{x:.0f}" for x in np.degrees(pose)) + "]"
