"""Robot programs of a motion: URScript, ROS 2 joint trajectory, CSV table."""

from __future__ import annotations

import io

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.names import c_identifier, yaml_scalar
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.wire.player import (
    APPROACH,
    APPROACH_ACCELERATION,
    APPROACH_SPEED,
    FINISHED,
    PREPARATION,
    RECORDED,
    Approach,
)
from taufit.wire.ur_player import approach_lines


def to_csv(motion: Motion, rate_hz: float = 100.0) -> str:
    """CSV table of t, q_1.., v_1.., a_1.. at a fixed rate, SI units."""
    time = _times(motion, rate_hz)
    table = np.hstack([time[:, None], *motion.at(time)])
    header = ["t"] + [f"{letter}_{i + 1}" for letter in "qva" for i in range(motion.joints)]
    text = io.StringIO()
    np.savetxt(text, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")
    return text.getvalue()


def to_joint_trajectory(
    motion: Motion, joint_names: tuple[str, ...], rate_hz: float = 50.0, approach_s: float = 5.0
) -> str:
    """trajectory_msgs/JointTrajectory as YAML; the first point leaves time to reach the start.

    Args:
        motion: Motion to play.
        joint_names: Joint names of the controller.
        rate_hz: Rate of the points [Hz]; the controller interpolates between them.
        approach_s: Time to move from the current pose to the first point [s].
    """
    time = _times(motion, rate_hz)
    q, v, a = motion.at(time)
    lines = ["joint_names: [" + ", ".join(map(yaml_scalar, joint_names)) + "]", "points:"]
    for i, t in enumerate(time + approach_s):
        seconds = int(t)
        lines += [
            f"- positions: {_row(q[i])}",
            f"  velocities: {_row(v[i])}",
            f"  accelerations: {_row(a[i])}",
            f"  time_from_start: {{sec: {seconds}, nanosec: {int((t - seconds) * 1e9)}}}",
        ]
    return "\n".join(lines) + "\n"


# Output register with the phase of the program, for the recorder.
PHASE_REGISTER = 24
_SERVO = "servoj(q, t=step, lookahead_time=0.03, gain=1000)"
# Time between the knots of a motion that is not a Fourier series [s].
KNOTS_S = 0.1


def to_urscript(  # noqa: PLR0913 - the public call has one keyword per choice
    motion: Motion,
    name: str = "taufit_excitation",
    *,
    step_s: float = 0.002,
    slow: float = 0.0,
    warm_up_s: float = 0.0,
    phases: bool = False,
    call: bool = True,
    approach: Approach | None = None,
    back: Approach | None = None,
    knots_s: float = KNOTS_S,
) -> str:
    """URScript program with the complete motion, evaluated on the controller.

    The motion does not depend on the network, and the program can be read before it runs. It moves
    to the start pose with movej, waits, then plays the motion with servoj at the controller's step.

    Args:
        motion: Motion of six joints. A Fourier series is evaluated from its coefficients, any
            other motion from knots.
        name: Program name; `taufit_` is put in front unless it begins so, to avoid keywords and
            functions of URScript.
        step_s: Controller step [s]: 0.002 for e-Series, 0.008 for CB3.
        slow: Play one period (or the motion, if it has none) at this fraction of the speed first;
            0 for none.
        warm_up_s: Play the motion for this long before the recording [s].
        phases: Write the phase to output register PHASE_REGISTER: APPROACH, PREPARATION (slow and
            warm-up), RECORDED (half a second of rest, the motion, half a second of rest), FINISHED.
        call: End with a call of the program, needed in a script file but not in a program sent to
            the controller.
        approach: Verified legs to the start, from the current pose of the robot; None: a straight
            `movej`.
        back: Verified legs from the end to the start; None: one straight leg.
        knots_s: Time between the knots of a motion that is not a Fourier series [s].
    """
    if motion.joints != 6:
        raise TaufitError(
            f"a URScript program moves six joints, this motion {motion.joints}; write it as a "
            "table (--csv) or a joint trajectory (--ros2) instead."
        )
    name = c_identifier(name if name.startswith("taufit_") else f"taufit_{name}")
    start = motion.at(np.zeros(1))[0][0]
    player: _FourierProgram | _MotionTable = (
        _FourierProgram(motion, step_s, start)
        if isinstance(motion, Fourier)
        else _MotionTable(motion, step_s, start, back, knots_s)
    )

    def phase(number: int) -> list[str]:
        return [f"  write_output_integer_register({PHASE_REGISTER}, {number})"] if phases else []

    lines = [f"def {name}():", *player.head()]
    if approach is None:
        lines += [
            *phase(APPROACH),
            f"  movej({_row(start)}, a={APPROACH_ACCELERATION}, v={APPROACH_SPEED})",
        ]
    else:
        lines += approach_lines(approach)
    lines += ["  sleep(1.0)"]
    if slow > 0.0 or warm_up_s > 0.0:
        lines += phase(PREPARATION)
    if slow > 0.0:
        lines += [*player.single_period(slow), "  stopj(2.0)", "  sleep(0.5)"]
    if warm_up_s > 0.0:
        lines += [*player.warm_up(warm_up_s), "  stopj(2.0)"]
    lines += phase(RECORDED)
    lines += ["  sleep(0.5)"] if phases else []
    lines += [*player.complete(), "  stopj(2.0)"]
    lines += ["  sleep(0.5)"] if phases else []
    lines += [*phase(FINISHED), "end"]
    if call:
        lines.append(f"{name}()")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, eq=False)
class _FourierProgram:
    """Program of a Fourier series, evaluated on the controller from its coefficients."""

    motion: Fourier
    step_s: float
    start: Float[Array, " 6"]

    def head(self) -> list[str]:
        sine, cosine = self.motion.amplitudes()
        lines = [
            "  # Fourier excitation, q = q0 + sum_l a_l sin(l w t) - b_l cos(l w t): starts and",
            "  # ends at rest. Run it at low speed first; set the payload to what is mounted, and",
            "  # the speed slider to 100 % for the recording itself.",
            f"  local w = {2 * np.pi * self.motion.frequency_hz:.12g}",
            f"  local step = {self.step_s:.9g}",
            f"  local q0 = {_row(self.motion.offset)}",
        ]
        for joint in range(6):
            lines.append(f"  local a{joint} = {_row(sine[joint])}")
            lines.append(f"  local b{joint} = {_row(cosine[joint])}")
        zero = ["  local duration = 0.0", "  local t = 0.0", "  local pace = 1.0"]
        return [*lines, *zero, f"  local q = {_row(self.start)}"]

    def single_period(self, pace: float) -> list[str]:
        """One period at a fraction of the speed."""
        return self._loop(self.motion.period, pace)

    def warm_up(self, seconds: float) -> list[str]:
        """Complete periods for at least some time."""
        return self._loop(float(np.ceil(seconds / self.motion.period)) * self.motion.period, 1.0)

    def complete(self) -> list[str]:
        return self._loop(self.motion.duration, 1.0)

    def _loop(self, duration: float, pace: float) -> list[str]:
        lines = [
            f"  duration = {duration:.9g}",
            f"  pace = {pace:.9g}",
            "  t = 0.0",
            "  while t < duration:",
        ]
        for joint in range(6):
            terms = "".join(
                f" + a{joint}[{k}] * sin({k + 1} * w * t) - b{joint}[{k}] * cos({k + 1} * w * t)"
                for k in range(self.motion.harmonics)
            )
            lines.append(f"    q[{joint}] = q0[{joint}]{terms}")
        return [*lines, f"    {_SERVO}", "    t = t + pace * step", "  end"]


@dataclass(frozen=True, slots=True, eq=False)
class _MotionTable:
    """Program of any other motion: equidistant knots with cubic Hermite interpolation.

    q(s) = (1 + 2 s) (1 - s)^2 q_a + s (1 - s)^2 u_a + s^2 (3 - 2 s) q_b + s^2 (s - 1) u_b, u being
    the velocity times the time between knots: the pace only changes the number of steps.
    """

    motion: Motion
    step_s: float
    start: Float[Array, " 6"]
    back: Approach | None
    knots_s: float

    def head(self) -> list[str]:
        time, q, v = knots(self.motion, self.knots_s)
        interval = float(time[1])
        lines = [
            "  # A motion through knots: run it at low speed first; set the payload to what is",
            "  # mounted, and the speed slider to 100 % for the recording itself.",
            f"  global step = {self.step_s:.9g}",
            f"  global steps = {interval / self.step_s:.9g}",
            "  global done = 0.0",
            f"  global qa = {_row(q[0])}",
            f"  global ua = {_row(interval * v[0])}",
            "  def to(qb, ub):",
            f"    local q = {_row(q[0])}",
            "    while done < steps:",
            "      local s = done / steps",
            "      local ha = (1 + 2 * s) * (1 - s) * (1 - s)",
            "      local ka = s * (1 - s) * (1 - s)",
            "      local hb = s * s * (3 - 2 * s)",
            "      local kb = s * s * (s - 1)",
            "      local i = 0",
            "      while i < 6:",
            "        q[i] = ha * qa[i] + ka * ua[i] + hb * qb[i] + kb * ub[i]",
            "        i = i + 1",
            "      end",
            f"      {_SERVO}",
            "      done = done + 1.0",
            "    end",
            "    # What is over belongs to the next curve: steps need not divide the time.",
            "    done = done - steps",
            "    qa = qb",
            "    ua = ub",
            "  end",
            "  def motion():",
            "    done = 0.0",
            f"    qa = {_row(q[0])}",
            f"    ua = {_row(interval * v[0])}",
        ]
        lines += [
            f"    to({_row(a)}, {_row(interval * b)})" for a, b in zip(q[1:], v[1:], strict=True)
        ]
        return [*lines, "  end"]

    def single_period(self, pace: float) -> list[str]:
        slow = [f"  steps = steps / {pace:.9g}", "  motion()", f"  steps = steps * {pace:.9g}"]
        return [*slow, *self._back()]

    def warm_up(self, seconds: float) -> list[str]:
        times = max(1, int(np.ceil(seconds / self.motion.duration)))
        return ["  motion()", *self._back()] * times

    def _back(self) -> list[str]:
        """Return to the start if the motion ends elsewhere."""
        end_pose = self.motion.at(np.array([self.motion.duration]))[0][0]
        if np.abs(end_pose - self.start).max() <= 1e-6:
            return []
        return_path = self.back or Approach(np.stack([end_pose, self.start]))
        moves = f"a={return_path.acceleration:.9g}, v={return_path.speed:.9g}"
        return [
            "  stopj(2.0)",
            *(f"  movej({_row(pose)}, {moves})" for pose in return_path.poses[1:]),
        ]

    def complete(self) -> list[str]:
        return ["  motion()"]


def knots(
    motion: Motion, between: float
) -> tuple[Float[Array, " n"], Float[Array, "n j"], Float[Array, "n j"]]:
    """Times, positions and velocities of equidistant knots, at most `between` seconds apart."""
    count = max(1, int(np.ceil(motion.duration / between)))
    time = np.linspace(0.0, motion.duration, count + 1)
    q, v, _ = motion.at(time)
    return time, q, v


def _times(motion: Motion, rate_hz: float) -> Float[Array, " n"]:
    count = max(2, int(np.ceil(motion.duration * rate_hz)) + 1)
    return np.linspace(0.0, motion.duration, count)


def _row(values: Float[Array, " n"]) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in values) + "]"
