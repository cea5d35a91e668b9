"""Estimate of servo parameters from motions: both stages, floor and choice by left-out runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.dynamics import gravity_torque
from taufit.robot import Robot
from taufit.servo.contact_fit import with_contact_gains
from taufit.servo.floor_search import find_floor, lowest_height, refine_floor
from taufit.servo.joint_axes import JointAxes
from taufit.servo.linear_fit import ServoRows, fit_linear, moving_rows, servo_rows, still_joints
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import (
    START_LIMIT,
    RolloutFit,
    fit_rollouts,
    normal_equations,
    pack,
    servo_prior,
    unpack,
    used_rows,
)
from taufit.servo.score import contact_rows
from taufit.servo.servo_types import ServoTypePrior
from taufit.servo.simulated_run import simulate_recording

_MIN_RUNS = 4  # fewer runs are split into parts for leaving out
_MIN_RUN_S = 6.0
_WINDOW_S = 15.0  # length of the motions of the second stage, which are also its blocks [s]
_TOTAL_S = 300.0  # motion used by the second stage [s]
_MAX_MASKED = 0.6  # with more contact rows the floor is part of the roll-outs instead of masked
_MAX_UNUSED = 0.75  # with more contact rows the first stage uses them all
GRAVITY_SEEN = 0.02  # std of the gravity torque in motion that shows kp [N m]; one SO-101, training
# Rounds of the bias: the second moves the delay by up to a standard deviation, further ones do not.
# Chosen with the covariance of the intervals on simulated arms 5000-5019
# (benchmarks/accuracy/servo_intervals.py).
_BIAS_ROUNDS = 2
_MIN_USED = 100  # rows that a run needs for the comparison
STAGES = ("linear", "roll-outs", "roll-outs with acceleration limit")


@dataclass(frozen=True, slots=True, eq=False)
class ServoEstimate:
    """Estimated servo parameters and how they were chosen.

    Attributes:
        servo: Chosen parameters.
        linear: Parameters of the first stage.
        stage: Entry of `STAGES` that left-out runs chose.
        floor: Floor under the arm, or None.
        left_out: Replay error of left-out training runs by stage, root mean square [rad].
        fit: Second stage at the chosen parameters, for intervals.
        gravity_std: Std of the gravity torque in motion, joint by joint [N m].
        contact_fraction: Fraction of training rows in contact.
        half_step: Half an encoder step [rad].
        still: Joints that hardly move.
        run: Run of every motion of `fit`: the independent units of its intervals.
    """

    servo: ServoParameters
    linear: ServoParameters
    stage: str
    floor: Floor | None
    left_out: dict[str, float]
    fit: RolloutFit
    gravity_std: Float[Array, " j"]
    contact_fraction: float
    half_step: float
    still: Bool[Array, " j"]
    run: Int[Array, " u"]


def estimate_servo(
    robot: Robot,
    axes: JointAxes,
    motions: Sequence[CommandedMotion],
    *,
    floor: Floor | str | None = "auto",
    prior: ServoTypePrior | None = None,
    stage: str | None = None,
) -> ServoEstimate:
    """Estimate servo parameters.

    Args:
        robot: Robot with nominal links.
        axes: The same robot in joint axes.
        motions: Training runs.
        floor: A floor, "auto" to search one, or None.
        prior: Prior of the servo type.
        stage: Entry of `STAGES` in place of the choice by left-out runs.
    """
    runs = split_runs(motions)
    half_step = 0.5 * min(float(np.median([m.encoder_step for m in runs])), 0.01)
    plane = floor
    if floor == "auto":
        # A servo that presses on a floor looks weak: the search starts without the lowest rows.
        provisional = Floor(lowest_height(axes, runs))
        plane = find_floor(axes, _fit_off_floor(robot, axes, runs, provisional, half_step)[1], runs)
    assert not isinstance(plane, str)
    contact = [contact_rows(axes, m, plane) for m in runs]
    masked = float(np.concatenate(contact).mean())
    is_masked = plane is not None and masked < _MAX_MASKED
    rows, linear = _fit_off_floor(robot, axes, runs, plane, half_step)
    if floor == "auto" and plane is not None and not is_masked:
        plane = refine_floor(axes, linear, runs, plane)
    if prior is not None:
        linear = _with_type_prior(linear, prior)
    used = [~c if is_masked else np.ones(len(c), bool) for c in contact]
    fit_floor = None if is_masked else plane
    stages = STAGES if stage is None else (stage,)
    fits = _fit_stages(axes, runs, used, linear, fit_floor, half_step, prior, stages)
    left_out = _left_out_errors(axes, runs, used, rows, linear, fits, plane, half_step)
    chosen = choose_stage(left_out)
    fit = fits[chosen].fit
    if floor == "auto" and plane is not None:
        plane = refine_floor(axes, fit.servo, runs, plane)
    if chosen != STAGES[0]:
        bias = np.zeros_like(fit.x)
        for _ in range(_BIAS_ROUNDS):
            bias, gradient = _bias(axes, runs, used, fit, bias, plane, fit_floor, half_step)
        fit = fit.without_bias(bias, gradient)
    gravity = _gravity_std(robot, rows)
    if chosen != STAGES[0] and is_masked and plane is not None:
        windows, run, parts = _windows(runs)
        touching = [~used[number][part] for number, part in zip(run, parts, strict=True)]
        is_fixed = floor != "auto"
        fit, plane = with_contact_gains(axes, windows, touching, run, fit, plane, is_fixed=is_fixed)
    return ServoEstimate(
        *(fit.servo, linear, chosen, plane),
        {name: float(np.sqrt(np.mean(e**2, axis=0)).mean()) for name, e in left_out.items()},
        *(fit, gravity, masked, half_step),
        still_joints(moving_rows(rows)),
        fits[chosen].run,
    )


def _fit_off_floor(
    robot: Robot,
    axes: JointAxes,
    runs: Sequence[CommandedMotion],
    floor: Floor | None,
    half_step: float,
) -> tuple[ServoRows, ServoParameters]:
    """First stage without rows in contact, unless these are too many; its rows with it."""
    masks = [~contact_rows(axes, m, floor) for m in runs]
    if 1.0 - np.concatenate(masks).mean() > _MAX_UNUSED:
        masks = [np.ones(len(mask), bool) for mask in masks]
    rows = servo_rows(robot, runs, masks)
    return rows, fit_linear(rows, half_step)


def split_runs(motions: Sequence[CommandedMotion]) -> list[CommandedMotion]:
    """Runs, or parts of them where there are too few to leave some out."""
    if len(motions) >= _MIN_RUNS:
        return list(motions)
    count = -(-_MIN_RUNS // len(motions))
    out = []
    for motion in motions:
        out += motion.split(max(1, min(count, int(motion.seconds / _MIN_RUN_S))))
    return out


def _with_type_prior(linear: ServoParameters, prior: ServoTypePrior) -> ServoParameters:
    """Start of the second stage with a damping ratio within the prior of the servo type."""
    width = np.exp(2 * prior.damping_log_std)
    low, high = prior.damping_ratio / width, prior.damping_ratio * width
    return linear.replace(damping=linear.kp * np.clip(linear.damping / linear.kp, low, high))


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """Fit of a stage and the run of each of its motions."""

    fit: RolloutFit
    run: Array


def _windows(runs: Sequence[CommandedMotion]) -> tuple[list[CommandedMotion], Array, list[slice]]:
    """Motions of the second stage, the run of each, and their rows in it."""
    share = min(1.0, _TOTAL_S / sum(m.seconds for m in runs))
    windows, run, rows = [], [], []
    for number, motion in enumerate(runs):
        length = min(round(_WINDOW_S / motion.step), len(motion.position))
        count = max(1, round(share * motion.seconds / _WINDOW_S))
        for start in np.linspace(0, len(motion.position) - length, count).astype(int):
            windows.append(motion.part(int(start), int(start) + length))
            rows.append(slice(int(start), int(start) + length))
            run.append(number)
    return windows, np.array(run), rows


def _fit_stages(
    axes: JointAxes,
    runs: Sequence[CommandedMotion],
    used: Sequence[Bool[Array, " _"]],
    linear: ServoParameters,
    floor: Floor | None,
    half_step: float,
    prior: ServoTypePrior | None,
    stages: Sequence[str],
) -> dict[str, _Stage]:
    """Stages as a fit of roll-outs; the first one is only evaluated."""
    windows, run, rows = _windows(runs)
    valid = [used[number][part] for number, part in zip(run, rows, strict=True)]
    limit = START_LIMIT if prior is None else prior.acceleration_limit
    out = {}
    for name in stages:
        value, iterations = dict(zip(STAGES, ((0.0, 0), (0.0, 12), (limit, 30)), strict=True))[name]
        start = linear.replace(acceleration_limit=value)
        belief = servo_prior(pack(start), axes.joints, half_step, prior)
        fit = fit_rollouts(axes, windows, valid, start, belief, floor, iterations=iterations)
        out[name] = _Stage(fit, run)
    return out


def _bias(
    axes: JointAxes,
    runs: Sequence[CommandedMotion],
    used: Sequence[Bool[Array, " _"]],
    fit: RolloutFit,
    bias: Float[Array, " p"],
    floor: Floor | None,
    fit_floor: Floor | None,
    half_step: float,
) -> tuple[Float[Array, " p"], Float[Array, "u p"]]:
    """Bias of the second stage: what it finds in recordings of the fitted arm, less its parameters.

    Encoders round, drivers truncate commands to whole encoder steps and the roll-outs take long
    steps. None of these averages out; the simulated recordings have all three.

    Args:
        axes, runs, used: Arm, training runs, and their rows in use.
        fit: Second stage.
        bias: Its bias as far as it is known: the simulated arm has the other parameters.
        floor, fit_floor: Floor under the simulated arm and in the roll-outs.
        half_step: Half an encoder step [rad].

    Returns:
        The bias, and J'Wr of every simulated motion.
    """
    truth = fit.x - bias
    servo = unpack(truth, axes.joints)
    simulated = [simulate_recording(axes, servo, m, floor, 2 * half_step) for m in runs]
    windows, run, rows = _windows(simulated)
    masks = [
        used_rows(m, used[number][part]) for m, number, part in zip(windows, run, rows, strict=True)
    ]
    normal, gradient = normal_equations(axes, fit.x, windows, masks, fit_floor)
    slope = gradient.sum(axis=0) + fit.prior_precision @ bias
    return bias - np.linalg.solve(normal.sum(axis=0) + fit.prior_precision, slope), gradient


def _left_out_errors(
    axes: JointAxes,
    runs: Sequence[CommandedMotion],
    used: Sequence[Bool[Array, " _"]],
    rows: ServoRows,
    linear: ServoParameters,
    stages: dict[str, _Stage],
    floor: Floor | None,
    half_step: float,
) -> dict[str, Float[Array, "r j"]]:
    """Replay error of runs with the parameters of the other runs, run and joint by stage [rad].

    Contact rows that the fit does not use are not compared, nor runs with few other rows.
    """
    delay = float(linear.delay[0])
    compared = [k for k, rows_of_run in enumerate(used) if rows_of_run.sum() > _MIN_USED]
    out = {}
    for name, stage in stages.items():
        errors = []
        for number in compared:
            motion = runs[number]
            servo = (
                fit_linear(rows, half_step, without=number, delay=delay)
                if name == STAGES[0]
                else stage.fit.without(stage.run == number)
            )
            error = (replay(axes, servo, motion, floor) - motion.position)[used[number]]
            errors.append(np.sqrt((error**2).mean(axis=0)))
        out[name] = np.array(errors)
    return out


def choose_stage(left_out: dict[str, Float[Array, "r j"]]) -> str:
    """Stage that replaces the one before where the median left-out run improves.

    The mean would let the one run that shows a parameter decide when it is left out. Of 16
    simulated arms whose fast motion is in one run, half of them without acceleration limit
    (benchmarks/accuracy/servo_intervals.py), the median chooses the right stage in all.

    Args:
        left_out: Replay errors of left-out runs, run and joint, by stage in order.
    """
    chosen, *others = left_out
    for name in others:
        ratio = left_out[name].mean(axis=1) / left_out[chosen].mean(axis=1)
        if np.median(np.log(ratio)) < 0:
            chosen = name
    return chosen


def _gravity_std(robot: Robot, rows: ServoRows) -> Float[Array, " j"]:
    """Std of the nominal gravity torque over the rows in which each joint moves [N m]."""
    gravity = gravity_torque(robot, rows.position)
    moving = moving_rows(rows)
    return np.array(
        [gravity[moving[:, j], j].std() if moving[:, j].any() else 0.0 for j in range(robot.joints)]
    )
