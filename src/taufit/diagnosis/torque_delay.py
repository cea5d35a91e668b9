"""Delay of recorded torque behind motion, by the robot's equations of motion.

`fit --delay-s auto` and the diagnosis use this estimate; `taufit.signals.estimate_delay` needs no
robot and is less accurate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.diagnosis.correction import Correction
from taufit.diagnosis.hypothesis_test import HypothesisTest
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.robot import Robot
from taufit.signals.filtering import dilate_mask, lowpass, settling_time
from taufit.signals.samples import Samples

# Pre-sliding displacements [rad]: with wider ones friction after a reversal looks like a delay.
# Chosen on simulated UR3e, UR5 and UR10 and two runs of a real UR10e.
_PRESLIDING_WIDTHS = (5e-4, 3e-2)
# Low-pass of torque at the motor [Hz]: above it friction after a reversal outweighs the rest.
# Chosen among 5, 7, 10 Hz on the first 70 % of simulated UR3, UR5e, UR10e, KR 5 (seeds 1 to 3) and
# of 16 UR10e runs: rms errors 1.4, 1.1, .7 ms and 2.1, 1.5, 1.6 ms.
_MOTOR_CUTOFF_HZ = 7.0
# Delays tested first, and those around the best through whose costs a parabola is drawn [s]: single
# costs jump where a friction column turns negative and is left out.
_DELAYS = np.arange(-0.06, 0.2001, 0.02)
_SHIFTS = 0.004 * np.arange(-2, 3)
# Rows of the first test, and log odds (twice) below which there is no delay.
_QUICK_ROWS, _MIN_LOG_ODDS = 400, 1.0
# Estimates below this are taken as 0 [s]: twice the rms error on those UR10e runs.
_MIN_ESTIMATE_S = 0.003
# Shorter delays are negligible at usual cut-off frequencies [s]; delays tested before an estimate;
# required ratio of nrmse and log odds (twice) for a finding.
MIN_DELAY_S = 0.015
_QUICK_DELAYS = (-0.15, -0.1, -0.06, -0.03, 0.03, 0.06, 0.1, 0.15, 0.2)
_DELAY_NRMSE_RATIO, _DELAY_LOG_ODDS = 0.85, 30.0


@dataclass(frozen=True, slots=True)
class TorqueDelay:
    """Delay of torque behind motion.

    Attributes:
        seconds: Delay, rounded to 0.1 ms; 0 if none stands out [s].
        nrmse, undelayed_nrmse: Nrmse of the robot with and without the delay.
    """

    seconds: float
    nrmse: float
    undelayed_nrmse: float

    @property
    def reason(self) -> str:
        """Explanation for users."""
        if self.seconds == 0.0:
            return "no delay between motion and torque stands out"
        return (
            f"torque lags motion by {1e3 * self.seconds:.1f} ms: {100 * self.nrmse:.1f} % of it is "
            f"unexplained with this delay, {100 * self.undelayed_nrmse:.1f} % without"
        )


def estimate_torque_delay(robot: Robot, samples: Samples) -> TorqueDelay:
    """Estimate the delay d of torque that minimises the cost of `HypothesisTest` at tau(t + d).

    The cost holds the links near nominal; the delay with free links counts beside it.

    Args:
        robot: Robot with nominal masses.
        samples: Samples conditioned without delay, with a low-pass of about 10 Hz.
    """
    from taufit.fitting.delay_of_rigid_torque import with_free_links

    if robot.drives.side == "link":
        # A sensor behind the gear feels little friction; more columns of it follow the gravity of
        # an upright arm that is shifted in time.
        test = HypothesisTest(robot, samples, presliding_widths=None)
    else:
        test = HypothesisTest(
            robot, smooth(samples, _MOTOR_CUTOFF_HZ), presliding_widths=_PRESLIDING_WIDTHS
        )
    quick = test.thin(_QUICK_ROWS)
    centre = float(min(_DELAYS, key=lambda delay_s: _cost(quick, delay_s)))
    for step in (0.01, 0.005):
        centre = min((centre - step, centre, centre + step), key=lambda d: _cost(test, d))
    costs = [_cost(test, centre + shift) for shift in _SHIFTS]
    square, slope, _ = np.polyfit(_SHIFTS, costs, 2)
    shift = -0.5 * slope / square if square > 0.0 else 0.0
    nominal_s = centre + float(np.clip(shift, _SHIFTS[0], _SHIFTS[-1]))
    # The curvature of the cost, twice the log odds, is 1 / variance.
    delay_s = round(with_free_links(robot, samples, nominal_s, max(float(square), 0.0)), 4)
    undelayed = test.unchanged_fit
    delayed = test.fit(rows=test.shift_torque(delay_s))
    if abs(delay_s) < _MIN_ESTIMATE_S or undelayed.cost - delayed.cost < _MIN_LOG_ODDS:
        return TorqueDelay(0.0, undelayed.nrmse, undelayed.nrmse)
    return TorqueDelay(delay_s, delayed.nrmse, undelayed.nrmse)


def smooth(samples: Samples, cutoff_hz: float) -> Samples:
    """Samples with a lower cut-off, without the rows that standstill reaches through it."""
    if samples.cutoff_hz <= cutoff_hz:
        return samples
    rests = dilate_mask(~samples.in_motion, samples.rate_hz, settling_time(cutoff_hz))
    keep = samples.keep & ~rests[:, None]
    samples = replace(samples, cutoff_hz=cutoff_hz, keep=keep)
    return replace(
        samples,
        position=lowpass(samples, samples.position),
        velocity=lowpass(samples, samples.velocity),
        acceleration=lowpass(samples, samples.acceleration),
        torque=lowpass(samples, samples.torque),
    )


def _cost(test: HypothesisTest, delay_s: float) -> float:
    return test.fit(rows=test.shift_torque(delay_s)).cost


def delay_finding(evidence: HypothesisTest) -> Finding | None:
    """Finding on a delay with which the robot explains the torque much better, or None."""
    unchanged = evidence.unchanged_fit
    fits = [evidence.fit(rows=evidence.shift_torque(delay_s)) for delay_s in _QUICK_DELAYS]
    if min(fit.cost for fit in fits) > unchanged.cost - _DELAY_LOG_ODDS / 2:
        return None
    delay_s = estimate_torque_delay(evidence.rows.robot, evidence.samples).seconds
    best = evidence.fit(rows=evidence.shift_torque(delay_s))
    if abs(delay_s) < MIN_DELAY_S or best.nrmse > _DELAY_NRMSE_RATIO * unchanged.nrmse:
        return None
    comparison = evidence.compare(
        Correction("delay", "", rows=lambda _: evidence.shift_torque(delay_s))
    )
    if (
        comparison.log_odds < _DELAY_LOG_ODDS
        or comparison.holdout_ratio > _DELAY_NRMSE_RATIO
        or comparison.worst_fold > 1.0
    ):
        return None
    direction = "later" if delay_s > 0 else "earlier"
    return Finding(
        "delay",
        "warning",
        f"torque was recorded {1e3 * abs(delay_s):.0f} ms {direction} than the motion it belongs "
        f"to: shifted back, {100 * best.nrmse:.1f} % of it stays unexplained instead of "
        f"{100 * unchanged.nrmse:.1f} %. Fit with --delay-s {delay_s:.3f}",
        value=float(np.round(delay_s, 4)),
        remedy=Remedy(("--delay-s", f"{delay_s:.3f}")),
    )


def delay_log_odds(evidence: HypothesisTest, delay: Finding) -> float:
    """Twice the log odds of a delay."""
    assert isinstance(delay.value, float)
    return evidence.unchanged_fit.cost - evidence.fit(rows=evidence.shift_torque(delay.value)).cost
