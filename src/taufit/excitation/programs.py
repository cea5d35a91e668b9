"""A motion in the forms controllers take: URScript, a ROS 2 joint trajectory, a table."""

from __future__ import annotations

import io

import numpy as np

from taufit.arrays import Array, Float
from taufit.errors import TaufitError
from taufit.excitation.fourier import Fourier
from taufit.excitation.motion import Motion
from taufit.names import c_identifier, yaml_scalar


def to_csv(motion: Motion, rate_hz: float = 100.0) -> str:
    """t, q_1.., v_1.., a_1.. at a fixed rate, SI units."""
    time = _times(motion, rate_hz)
    table = np.hstack([time[:, None], *motion.at(time)])
    header = ["t"] + [f"{letter}_{i + 1}" for letter in "qva" for i in range(motion.joints)]
    text = io.StringIO()
    np.savetxt(text, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")
    return text.getvalue()


def to_joint_trajectory(
    motion: Motion, joint_names: tuple[str, ...], rate_hz: float = 50.0, approach_s: float = 5.0
) -> str:
    """A trajectory_msgs/JointTrajectory as YAML; the first point gives time to reach the start.

    Args:
        motion: What to play.
        joint_names: As the controller knows them.
        rate_hz: Of the points; the controller interpolates in between.
        approach_s: Time given to get from wherever the arm is to the first point.
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


# Output register in which a program says what it is doing, for whoever records it.
PHASE_REGISTER = 24
APPROACH, PREPARATION, RECORDED, FINISHED = 1, 2, 3, 4


def to_urscript(
    motion: Motion,
    name: str = "taufit_excitation",
    *,
    step_s: float = 0.002,
    slow: float = 0.0,
    warm_up_s: float = 0.0,
    phases: bool = False,
    call: bool = True,
) -> str:
    """A URScript program with the coefficients inside, evaluated on the controller.

    Nothing on a network can disturb the motion, and whoever is responsible for the cell can read
    it before it runs. The program moves to the start pose with movej first, waits, then plays the
    series with servoj at the controller's own step.

    Args:
        motion: A Fourier motion of six joints.
        name: Of the program.
        step_s: 0.002 for e-Series, 0.008 for CB3.
        slow: Play one period at this share of the speed first; 0 for none.
        warm_up_s: Play the motion for this long before it counts [s].
        phases: Say in output register PHASE_REGISTER what is going on: APPROACH, PREPARATION
            (slow and warm-up), RECORDED (half a second of rest, the motion, half a second of
            rest), FINISHED.
        call: End with a call of the program, as a script file needs it; a program sent to the
            controller needs none.
    """
    if not isinstance(motion, Fourier) or motion.joints != 6:
        raise TaufitError(
            "a URScript program needs a Fourier motion of six joints; write this motion as a table "
            "(--csv) or a joint trajectory (--ros2) instead."
        )
    name = c_identifier(name)
    start = motion.at(np.zeros(1))[0][0]

    def phase(number: int) -> list[str]:
        return [f"  write_output_integer_register({PHASE_REGISTER}, {number})"] if phases else []

    lines = _urscript_head(motion, name, step_s, start)
    lines += phase(APPROACH)
    lines += [f"  movej({_row(start)}, a=0.5, v=0.3)", "  sleep(1.0)"]
    if slow > 0.0 or warm_up_s > 0.0:
        lines += phase(PREPARATION)
    if slow > 0.0:
        slowly = _urscript_loop(motion, motion.period, "pace * step")
        lines += [f"  local pace = {slow:.9g}", *slowly, "  stopj(2.0)", "  sleep(0.5)"]
    if warm_up_s > 0.0:
        whole = np.ceil(warm_up_s / motion.period) * motion.period
        lines += [*_urscript_loop(motion, whole, "step"), "  stopj(2.0)"]
    lines += phase(RECORDED)
    lines += ["  sleep(0.5)"] if phases else []
    lines += [*_urscript_loop(motion, motion.duration, "step"), "  stopj(2.0)"]
    lines += ["  sleep(0.5)"] if phases else []
    lines += [*phase(FINISHED), "end"]
    if call:
        lines.append(f"{name}()")
    return "\n".join(lines) + "\n"


def _urscript_head(
    motion: Fourier, name: str, step_s: float, start: Float[Array, " 6"]
) -> list[str]:
    sine, cosine = motion.amplitudes()
    lines = [
        f"def {name}():",
        "  # Fourier excitation, q = q0 + sum_l a_l sin(l w t) - b_l cos(l w t): starts and ends",
        "  # at rest. Run it at low speed first; set the payload to what is mounted, and the",
        "  # speed slider to 100 % for the recording itself.",
        f"  local w = {2 * np.pi * motion.frequency_hz:.12g}",
        f"  local step = {step_s:.9g}",
        f"  local q0 = {_row(motion.offset)}",
    ]
    for joint in range(6):
        lines.append(f"  local a{joint} = {_row(sine[joint])}")
        lines.append(f"  local b{joint} = {_row(cosine[joint])}")
    return [*lines, "  local duration = 0.0", "  local t = 0.0", f"  local q = {_row(start)}"]


def _urscript_loop(motion: Fourier, duration: float, advance: str) -> list[str]:
    """The motion up to a time, which grows by `advance` per step."""
    lines = [
        f"  duration = {duration:.9g}",
        "  t = 0.0",
        "  while t < duration:",
    ]
    for joint in range(6):
        terms = "".join(
            f" + a{joint}[{k}] * sin({k + 1} * w * t) - b{joint}[{k}] * cos({k + 1} * w * t)"
            for k in range(motion.harmonics)
        )
        lines.append(f"    q[{joint}] = q0[{joint}]{terms}")
    return [
        *lines,
        "    servoj(q, t=step, lookahead_time=0.03, gain=1000)",
        f"    t = t + {advance}",
        "  end",
    ]


def _times(motion: Motion, rate_hz: float) -> Float[Array, " n"]:
    count = max(2, int(np.ceil(motion.duration * rate_hz)) + 1)
    return np.linspace(0.0, motion.duration, count)


def _row(values: Float[Array, " n"]) -> str:
    return "[" + ", ".join(f"{float(x) + 0.0:.9g}" for x in values) + "]"
