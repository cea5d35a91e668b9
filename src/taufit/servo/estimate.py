"""Estimate of servo parameters from motions: both stages, floor and choice by left-out runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics import gravity_torque
from taufit.robot import Robot
from taufit.servo.contact_fit import with_contact_gains
from taufit.servo.floor_search import find_floor, lowest_height, refine_floor
from taufit.servo.joint_axes import JointAxes
from taufit.servo.linear_fit import (
    LinearFit,
    ServoRows,
    fit_linear,
    moving_rows,
    servo_rows,
    still_joints,
)
from taufit.servo.motion import CommandedMotion
from taufit.servo.parameters import Floor, ServoParameters
from taufit.servo.replay_rows import ReplayRows
from taufit.servo.rollout import replay
from taufit.servo.rollout_fit import RolloutFit, fit_rollouts
from taufit.servo.score import contact_rows
from taufit.servo.servo_types import ServoTypePrior
from taufit.servo.simulated_run import simulate_recording
from taufit.servo.unknowns import pack, servo_prior, unpack

_MIN_RUNS = 4  # fewer runs are split into parts for leaving out
_MIN_RUN_S = 6.0
_MAX_MASKED = 0.6  # with more contact rows the floor is part of the roll-outs instead of masked
_MAX_UNUSED = 0.75  # with more contact rows the first stage uses them all
GRAVITY_SEEN = 0.02  # std of the gravity torque in motion that shows kp [N m]; one SO-101, training
# Rounds of the bias: the second moves the delay by up to a standard deviation, further ones do not.
# Chosen on simulated arms 5000-5019 (benchmarks/accuracy/servo_intervals.py).
_BIAS_ROUNDS = 2
_MIN_USED = 100  # rows that a run needs for the comparison
STAGES = ("linear", "roll-outs", "roll-outs with acceleration limit")
_ITERATIONS = dict(zip(STAGES, (0, 12, 30), strict=True))  # the linear stage is only evaluated
_START_LIMIT = 40.0  # rad/s^2


@dataclass(frozen=True, slots=True, eq=False)
class ServoEstimate:
    """Estimated servo parameters and how they were chosen.

    Attributes:
        fit: Second stage at the chosen parameters; its motions are the units of the intervals.
        stage: Entry of `STAGES` that left-out runs chose.
        floor: Floor under the arm, or None.
        left_out: Replay error of left-out training runs by stage, root mean square [rad].
        gravity_std: Std of the gravity torque in motion, joint by joint [N m].
        contact_fraction: Fraction of training rows in contact.
        half_step: Half an encoder step [rad].
        still: Joints that hardly move.
    """

    fit: RolloutFit
    stage: str
    floor: Floor | None
    left_out: dict[str, float]
    gravity_std: Float[Array, " j"]
    contact_fraction: float
    half_step: float
    still: Bool[Array, " j"]

    @property
    def servo(self) -> ServoParameters:
        """Chosen parameters."""
        return self.fit.servo


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
    training = TrainingRuns.of_motions(robot, axes, motions, floor)
    rows, linear = training.linear_stage()
    if not training.is_masked:
        training = training.with_refined_floor(linear.servo)
    if prior is not None:
        linear = linear._replace(servo=_with_type_prior(linear.servo, prior))
    fits = training.fit_stages(linear, prior, STAGES if stage is None else (stage,))
    left_out = training.left_out_errors(rows, fits)
    chosen = choose_stage(left_out)
    fit = fits[chosen]
    training = training.with_refined_floor(fit.servo)
    if chosen != STAGES[0]:
        fit = training.without_bias(fit)
        fit, training = training.with_contact_gains(fit)
        training = training.with_refined_floor(fit.servo)
    return ServoEstimate(
        *(fit, chosen, training.floor),
        {name: float(np.sqrt(np.mean(e**2, axis=0)).mean()) for name, e in left_out.items()},
        *(_gravity_std(robot, rows), training.contact_fraction, training.half_step),
        still_joints(moving_rows(rows)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRuns:
    """Training runs of an arm, the floor under it, and their rows in contact.

    Attributes:
        robot: Robot with nominal links.
        axes: The same robot in joint axes.
        runs: Runs, or parts of them.
        floor: Floor under the arm, or None.
        is_given: Whether the floor, or that there is none, is given rather than searched.
        contact: Rows of each run in contact with the first floor.
    """

    robot: Robot
    axes: JointAxes
    runs: tuple[CommandedMotion, ...]
    floor: Floor | None
    is_given: bool
    contact: tuple[Bool[Array, " _"], ...]

    @classmethod
    def of_motions(
        cls,
        robot: Robot,
        axes: JointAxes,
        motions: Sequence[CommandedMotion],
        floor: Floor | str | None,
    ) -> TrainingRuns:
        """Runs over a floor, or with "auto" over one that is searched."""
        runs = tuple(split_runs(motions))

        def over(plane: Floor | None, is_given: bool) -> TrainingRuns:
            contact = tuple(contact_rows(axes, m, plane) for m in runs)
            return cls(robot, axes, runs, plane, is_given, contact)

        if not isinstance(floor, str):
            return over(floor, True)
        # A servo that presses on a floor looks weak: the search starts without the lowest rows.
        servo = over(Floor(lowest_height(axes, runs)), False).linear_stage()[1].servo
        return over(find_floor(axes, servo, runs), False)

    @property
    def half_step(self) -> float:
        """Half an encoder step [rad]."""
        return 0.5 * min(float(np.median([m.encoder_step for m in self.runs])), 0.01)

    @property
    def contact_fraction(self) -> float:
        """Fraction of rows in contact."""
        return float(np.concatenate(self.contact).mean())

    @property
    def is_masked(self) -> bool:
        """Whether the second stage leaves rows in contact out, or has the floor in roll-outs."""
        return self.floor is not None and self.contact_fraction < _MAX_MASKED

    @property
    def fit_floor(self) -> Floor | None:
        """Floor in the roll-outs of the second stage."""
        return None if self.is_masked else self.floor

    @property
    def used(self) -> list[Bool[Array, " _"]]:
        """Rows of each run that the second stage uses."""
        return [~rows if self.is_masked else np.ones(len(rows), bool) for rows in self.contact]

    def linear_stage(self) -> tuple[ServoRows, LinearFit]:
        """First stage without rows in contact, unless these are too many; its rows before it."""
        is_free = self.contact_fraction <= _MAX_UNUSED
        masks = [~rows if is_free else np.ones(len(rows), bool) for rows in self.contact]
        rows = servo_rows(self.robot, self.runs, masks)
        return rows, fit_linear(rows, self.half_step)

    def with_refined_floor(self, servo: ServoParameters) -> TrainingRuns:
        """Runs over the floor of least replay error, unless it is given."""
        if self.is_given or self.floor is None:
            return self
        return replace(self, floor=refine_floor(self.axes, servo, self.runs, self.floor))

    def fit_stages(
        self, linear: LinearFit, prior: ServoTypePrior | None, stages: Sequence[str]
    ) -> dict[str, RolloutFit]:
        """Stages as fits of roll-outs; the linear one is only evaluated."""
        rows = ReplayRows.of_runs(self.axes, self.runs, self.used)
        start_limit = _START_LIMIT if prior is None else prior.acceleration_limit
        fits = {}
        for name in stages:
            limit = start_limit if name == STAGES[2] else 0.0
            start = linear.servo.replace(acceleration_limit=limit)
            belief = servo_prior(pack(start), self.half_step, linear.kp_scatter, prior)
            fits[name] = fit_rollouts(
                rows, start, belief, self.fit_floor, iterations=_ITERATIONS[name]
            )
        return fits

    def left_out_errors(
        self, rows: ServoRows, fits: dict[str, RolloutFit]
    ) -> dict[str, Float[Array, "r j"]]:
        """Replay error of runs with the parameters of the others, run and joint by stage [rad].

        Contact rows that the fit does not use are not compared, nor runs with few other rows.
        """
        compared = [
            (number, motion, used)
            for number, (motion, used) in enumerate(zip(self.runs, self.used, strict=True))
            if used.sum() > _MIN_USED
        ]
        out = {}
        for name, fit in fits.items():
            errors, delay = [], float(fit.servo.delay[0])
            for number, motion, used in compared:
                servo = (
                    fit_linear(rows, self.half_step, without=number, delay=delay).servo
                    if name == STAGES[0]
                    else fit.without(number)
                )
                error = (replay(self.axes, servo, motion, self.floor) - motion.position)[used]
                errors.append(np.sqrt((error**2).mean(axis=0)))
            out[name] = np.array(errors)
        return out

    def without_bias(self, fit: RolloutFit) -> RolloutFit:
        """Fit less its bias: what it finds in recordings of the fitted arm, less its parameters.

        Encoders round, drivers truncate commands to whole encoder steps and the roll-outs take
        long steps. None of these averages out; the simulated recordings have all three. Each round
        simulates the arm that the bias of the round before leaves.
        """
        bias, gradient = np.zeros_like(fit.x), np.zeros_like(fit.gradient)
        for _ in range(_BIAS_ROUNDS):
            servo, step = unpack(fit.x - bias), 2 * self.half_step
            simulated = [
                simulate_recording(self.axes, servo, m, self.floor, step) for m in self.runs
            ]
            rows = ReplayRows.of_runs(self.axes, simulated, self.used)
            normal, gradient = rows.normal_equations(fit.x, self.fit_floor)
            slope = gradient.sum(axis=0) + fit.prior_precision @ bias
            bias = bias - np.linalg.solve(normal.sum(axis=0) + fit.prior_precision, slope)
        return fit.without_bias(bias, gradient)

    def with_contact_gains(self, fit: RolloutFit) -> tuple[RolloutFit, TrainingRuns]:
        """Fit that explains rows in contact, too, where left-out runs agree, and its floor."""
        if self.floor is None or not self.is_masked:
            return fit, self
        touching = ReplayRows.of_runs(self.axes, self.runs, self.contact)
        fit, floor = with_contact_gains(touching, fit, self.floor, is_fixed=self.is_given)
        return fit, replace(self, floor=floor)


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
