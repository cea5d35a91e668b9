"""Delay of torque behind motion joint by joint: drives whose current or filter lags differently.

The regressor of one joint's rows, links free, needs no nominal masses; the joints are independent
of each other. Their delays have a common bias of up to 17 ms (friction after a reversal), so only
differences between joints are nonzero.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.recording.finding import Finding
from taufit.recording.map.remedy import Remedy
from taufit.robot import Robot
from taufit.signals.samples import Samples

# Low-pass of the samples [Hz], that of the data below, and tested delays [s].
JOINT_CUTOFF_HZ = 5.0
_DELAYS = np.arange(-0.06, 0.1201, 0.004)
# Difference from the other joints [s] and ratio of residuals from which a joint has its own delay.
# Chosen on the first 70 % of one dVRK PSM motion (36 and 48 ms, ratios .84 and .62), with UR10e
# runs and simulated arms without such delays in view.
_MIN_DIFFERENCE_S, _MAX_RESIDUAL_RATIO = 0.02, 0.9
# Largest difference between the delays of a joint's two halves [s]: 4 ms on three PSM motions, 20
# ms and more at joints without a delay (first 70 % of UR10e runs, simulated arms, seeds 7 to 9).
_MAX_HALF_DIFFERENCE_S = 0.01
# Smallest delay of a joint, or of all of them if they have a smaller one [s]: torque that comes
# earlier than the motion is none, beyond the bias. Seen on a simulated FR3 (seed 7, 80 ms); of 96
# simulated runs (8 arms, seeds 20 to 23; 0, 40, 80 ms) one more joint stood out, at -33 ms.
_MIN_DELAY_S = -0.02
_MAX_ROWS = 2500
# Pre-sliding displacements [rad]: without them friction after a reversal looks like a delay.
_PRESLIDING_WIDTHS = (5e-4, 3e-2)


@dataclass(frozen=True, slots=True, eq=False)
class JointDelays:
    """Differences between the delays of the joints.

    Attributes:
        common: Delay that suits all joints best, with the common bias [s].
        differences: Delay of each joint beyond the common one [s]; 0 where none stands out.
        residual_ratio: Residual with the joint's delay over that with the common one.
        common_ratio: Mean residual with the common delay over that without delay.
    """

    common: float
    differences: Float[Array, " j"]
    residual_ratio: Float[Array, " j"]
    common_ratio: float

    @property
    def clear_common(self) -> float:
        """Common delay beyond its bias, or 0 [s]."""
        is_clear = abs(self.common) >= _MIN_DIFFERENCE_S and (
            self.common_ratio <= _MAX_RESIDUAL_RATIO
        )
        return self.common if is_clear else 0.0

    def reason(self, robot: Robot) -> str:
        """Explanation for users; empty if no joint stands out."""
        parts = [
            f"{1e3 * self.differences[j]:+.0f} ms at {robot.joint_names[j]} (leaves "
            f"{100 * self.residual_ratio[j]:.0f} % of its residual)"
            for j in np.flatnonzero(self.differences)
        ]
        return "torque has a further delay of " + ", ".join(parts) if parts else ""

    def findings(self, robot: Robot) -> list[Finding]:
        """Finding on joints whose torque lags more than that of the others."""
        reason = self.reason(robot)
        if not reason:
            return []
        remedy = Remedy(("--delay-s", "auto"))
        return [Finding("delay", "warning", f"{reason}. Fit with --delay-s auto", remedy=remedy)]


def estimate_joint_delays(robot: Robot, samples: Samples) -> JointDelays:
    """Estimate the delay d of each joint that minimises |tau_j(t + d) - W_j(t) theta|.

    Args:
        robot: Robot; nominal masses are not used.
        samples: Samples conditioned without delay, with a low-pass of about 5 Hz.
    """
    from taufit.fitting.fit import automatic_model
    from taufit.terms.settings import friction_model

    friction = friction_model("presliding", _PRESLIDING_WIDTHS, load=False)
    columns = automatic_model(robot, friction=friction).columns
    coupling = robot.drives.coupling
    regressor = columns.dense(
        samples.position, samples.velocity, samples.acceleration, columns.drive_at(samples)
    )
    joints = samples.joints
    cost = np.full((joints, 2, len(_DELAYS)), np.nan)
    for j in range(joints):
        indices = _rows(samples, j)
        active = columns.layout.active_columns(j, coupling)
        if len(indices) >= 3 * len(active):
            cost[j] = _residual_squares(samples, indices, j, regressor[indices, j][:, active])
    rms = np.sqrt(cost.sum(axis=1) + 1e-300)
    has_cost = np.isfinite(rms[:, 0])
    zero = int(np.argmin(np.abs(_DELAYS)))
    if not has_cost.any():
        return JointDelays(0.0, np.zeros(joints), np.ones(joints), 1.0)
    total = np.log(rms[has_cost]).sum(axis=0)
    centre = int(np.argmin(total))
    common, differences, ratios = _minimum(total), np.zeros(joints), np.ones(joints)
    for j in np.flatnonzero(has_cost).tolist():
        best = int(np.argmin(rms[j]))
        difference, ratio = _minimum(rms[j]) - common, rms[j, best] / rms[j, centre]
        halves = _DELAYS[np.argmin(cost[j], axis=1)]
        if (
            0 < best < len(_DELAYS) - 1
            and common + difference >= min(common, _MIN_DELAY_S)
            and abs(difference) >= _MIN_DIFFERENCE_S
            and ratio <= _MAX_RESIDUAL_RATIO
            and np.all(cost[j, :, best] < cost[j, :, centre])
            and np.ptp(halves) <= _MAX_HALF_DIFFERENCE_S
        ):
            differences[j], ratios[j] = round(float(difference), 3), ratio
    common_ratio = float(np.exp((total[centre] - total[zero]) / has_cost.sum()))
    return JointDelays(round(common, 4), differences, ratios, common_ratio)


def _rows(samples: Samples, joint: int) -> Int[Array, " m"]:
    """Rows of a joint whose delayed torque lies within their run, thinned."""
    edge = int(np.ceil(np.abs(_DELAYS).max() * samples.rate_hz)) + 1
    inside = np.zeros(len(samples.time), bool)
    for run in samples.run_slices():
        inside[run.start + edge : max(run.stop - edge, run.start + edge)] = True
    rows = np.flatnonzero(samples.keep[:, joint] & inside)
    return rows[:: max(1, len(rows) // _MAX_ROWS)]


def _residual_squares(
    samples: Samples, indices: Int[Array, " m"], joint: int, regressor: Float[Array, "m c"]
) -> Float[Array, "2 d"]:
    """Residual squares of both halves of the rows, for every delay."""
    scale = np.linalg.norm(regressor, axis=0)
    nonzero = scale > 1e-9 * scale.max()
    basis, triangle, _ = qr(regressor[:, nonzero] / scale[nonzero], mode="economic", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    basis = basis[:, pivots > 1e-6 * pivots[0]]
    grid = np.arange(len(samples.time))
    torque = np.stack(
        [
            np.interp(indices + delay * samples.rate_hz, grid, samples.torque[:, joint])
            for delay in _DELAYS
        ],
        axis=-1,
    )
    squares = np.square(torque - basis @ (basis.T @ torque))
    middle = len(indices) // 2
    return np.stack([squares[:middle].sum(axis=0), squares[middle:].sum(axis=0)])


def _minimum(cost: Float[Array, " d"]) -> float:
    """Delay of least cost, interpolated by a parabola [s]."""
    k = int(np.clip(np.argmin(cost), 1, len(cost) - 2))
    left, middle, right = cost[k - 1 : k + 2]
    curvature = left - 2.0 * middle + right
    shift = 0.5 * (left - right) / curvature if curvature > 0.0 else 0.0
    return float(_DELAYS[k] + np.clip(shift, -1.0, 1.0) * (_DELAYS[1] - _DELAYS[0]))
