"""Clearance of a motion on a robot, proved anew for every start.

Everything independent of the current pose is prepared once (bodies, levers, home poses); the proofs
are made by each call of `clear`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.clearance.approach import Approaches, Way
from taufit.clearance.cell import Cell, limits_to_keep, smaller_limits
from taufit.clearance.identity import known_limits
from taufit.clearance.motion_file import MotionFile, changed_parts
from taufit.clearance.playback import Part, parts_of, rest_reasons, turned, turns_towards
from taufit.clearance.proof import prove_clear, prove_limits, prove_tip_speed, sampled_torque
from taufit.clearance.space import Space
from taufit.core.arrays import Array, Float
from taufit.excitation import Fourier, Motion
from taufit.robot import Limits, Robot
from taufit.wire.player import ACCELERATION, SPEED, Approach, MotionDemand

# Maximum duration of the approach [s].
_LONGEST_S = 120.0


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
    reach: MotionDemand
    limits: Limits

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
        way: One of `playback.PROGRAM`, `STREAM`, `TRAJECTORY`.
        repeated: Whether it is played more than once, slowly first or to warm up.
    """

    def __init__(
        self,
        file: MotionFile,
        robot: Robot,
        *,
        way: str,
        motion: Motion | None = None,
        repeated: bool = True,
    ) -> None:
        self.file, self.robot, self.way, self.repeated = file, robot, way, repeated
        self.motion = file.motion if motion is None else motion
        cell = Cell.default(robot) if file.cell is None else file.cell
        self.cell = cell
        known = known_limits(robot)
        self.known_arm = known is not None
        # A description of a bundled robot does not widen that robot's limits.
        own = robot.limits if known is None else smaller_limits(robot.limits, known)
        limits = limits_to_keep(replace(robot, limits=own), cell)
        self.limits = limits
        self.space = Space(robot, cell.scene(robot), limits)
        self.approaches = Approaches.among(self.space)
        # Legs move at the default speed unless a limit of the cell is lower.
        slowest = 0.9 * float(np.minimum(limits.velocity, np.inf).min())
        reach = float(self.space.tip_levers.sum())
        tip = 0.9 * cell.tip_speed / reach if np.isfinite(cell.tip_speed) else np.inf
        self.speed = min(SPEED, slowest, tip)
        self.acceleration = min(ACCELERATION, 0.9 * float(limits.acceleration.min()))

    def clear(self, here: Float[Array, " j"] | None) -> Clearance:
        """Prove everything that would be played from a pose; None: without approach."""
        names = self.robot.joint_names
        reasons = rest_reasons(self.motion, self.limits, names)
        if not self.file.feasible:
            reasons.append("`design` noted that the motion is not feasible; plan another one")
        parts, between = parts_of(self.motion, self.limits, names, self.way)
        for part in parts:
            reasons += self._excesses(part)
        uncertified, notes = self._certification()
        back = None if reasons else self._back(self.motion, reasons)
        motion, way = self.motion, None
        if here is not None and not reasons:
            here = np.asarray(here, float)
            motion, way = self._way(here, reasons)
            if motion is not self.motion:
                back = self._back(motion, reasons)
                notes.append("the motion is played a full turn on, where it can be reached")
        approach = None
        if way is not None:
            approach = Approach(way.poses, self.speed, self.acceleration)
            if approach.seconds > _LONGEST_S:
                reasons.append(
                    f"the way to the start takes {approach.seconds:.0f} s at "
                    f"{self.speed:.2g} rad/s; jog the arm nearer to {_degrees(way.poses[-1])}"
                )
        return Clearance(
            motion,
            tuple(dict.fromkeys(reasons)),
            tuple(uncertified),
            tuple(notes),
            approach,
            back,
            "" if way is None else way.kind,
            between,
            self._reach(motion, [one.poses for one in (approach, back) if one is not None]),
            self.limits,
        )

    def _back(self, motion: Motion, reasons: list[str]) -> Approach | None:
        """Proved legs from the end of a motion to its start, if it is played again."""
        ends = np.array([motion.duration, 0.0])
        if isinstance(motion, Fourier) or not self.repeated:
            return None
        end, start = motion.at(ends)[0]
        if np.abs(end - start).max() <= 1e-6:
            return None
        found = self.approaches.find(end, start)
        if found is None:
            reasons.append(
                "no clear way back from the end of the motion to its start was found. Play it once "
                "(--slow 0), or plan another one"
            )
            return None
        return Approach(found.poses, self.speed, self.acceleration)

    def _excesses(self, part: Part) -> list[str]:
        """Limits and clearances that a part violates."""
        limits, names = self.limits, self.robot.joint_names
        found = []
        remedy = f"Plan it again with `taufit design {self.robot.name}`"
        jerk = self.cell.jerk if part.name == "the motion" else np.inf
        found += prove_limits(part.curve, limits, names, jerk=jerk, share=part.share)
        if not found:
            # Clearance of a motion that violates limits takes long to prove and changes nothing.
            tip = prove_tip_speed(part.curve, self.space, share=part.share)
            torque = sampled_torque(part.curve, self.robot, limits.torque, names)
            near = prove_clear(part.curve, self.space)
            found += [one for one in (tip, torque, near) if one is not None]
        return [f"{part.name}: {one}. {remedy}" for one in found]

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
        changed = changed_parts(file, self.robot)
        if file.incomplete:
            uncertified.append(f"{file.path.name}: {file.incomplete}")
        elif changed:
            uncertified.append(
                f"{file.path.name}: changed since `design` certified it: {', '.join(changed)}"
            )
        return uncertified, notes

    def _way(self, here: Float[Array, " j"], reasons: list[str]) -> tuple[Motion, Way | None]:
        """Proved path to the start, with the motion shifted by full turns if needed."""
        ways, limits, names = self.approaches, self.limits, self.robot.joint_names
        over = np.maximum(here - limits.upper, limits.lower - here)
        if over.max() > 1e-3:
            joint = int(over.argmax())
            reasons.append(
                f"{names[joint]} stands at {here[joint]:.3f}, outside its limits: jog it back first"
            )
            return self.motion, None
        pair, beyond = ways.space.nearest(here)
        if not ways.is_free(np.clip(here, limits.lower, limits.upper)):
            kept = float(ways.space.kept[ways.space.names.index(pair)])
            reasons.append(
                f"the arm stands with {pair} {1e3 * (kept + beyond):.0f} mm apart; "
                f"{1e3 * kept:.0f} mm are kept on the way. Jog them apart first"
            )
            return self.motion, None
        goal = self.motion.at(np.zeros(1))[0][0]
        found = ways.find(here, goal)
        if found is not None:
            return self.motion, found
        revolute = ~np.array([link.prismatic for link in self.robot.links])
        turns = turns_towards(self.motion, here, limits, revolute)
        if np.any(turns):
            moved = turned(self.motion, turns)
            parts, _ = parts_of(moved, limits, names, self.way)
            found = ways.find(here, moved.at(np.zeros(1))[0][0])
            if found is not None and not any(self._excesses(part) for part in parts):
                return moved, found
        reasons.append(self._no_way(here, goal))
        return self.motion, None

    def _no_way(self, here: Float[Array, " j"], goal: Float[Array, " j"]) -> str:
        """Message with the blocking pair of bodies, and a pose from which the path is proved."""
        pair, apart = self.approaches.blocking(here, goal)
        text = (
            "no clear way from here to the start was found: on the straight one "
            + (
                f"{pair} come within {1e3 * apart:.0f} mm"
                if apart > 0
                else f"{pair} touch ({-1e3 * apart:.0f} mm deep)"
            )
            + ". "
        )
        homes = self.approaches.homes_before(goal)
        saved = self.file.home
        if saved is not None and self.approaches.leg_is_clear(saved, goal):
            homes.append(saved)
        if not homes:
            return text + f"Jog the arm to the start itself, {_degrees(goal)} degrees"
        nearest = min(homes, key=lambda pose: float(np.abs(pose - here).max()))
        return text + f"Jog the arm to {_degrees(nearest)} degrees: the way from there is proved"

    def _reach(self, motion: Motion, ways: list[Float[Array, "n j"]]) -> MotionDemand:
        """Demand of the motion, its positions extended by the approach."""
        time = np.linspace(0.0, motion.duration, max(500, min(200_000, int(200 * motion.duration))))
        reach = MotionDemand.of(*motion.at(time), motion.duration)
        if not ways:
            return reach
        poses = np.vstack(ways)
        return replace(
            reach,
            lower=np.minimum(reach.lower, poses.min(axis=0)),
            upper=np.maximum(reach.upper, poses.max(axis=0)),
        )


def _degrees(pose: Array) -> str:
    return "[" + ", ".join(f"{x:.0f}" for x in np.degrees(pose)) + "]"
