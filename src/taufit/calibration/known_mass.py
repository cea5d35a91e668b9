"""Drive gains from one known mass: the robot is run with it and without it.

With gains K, recorded signal s, parameters theta of the robot and phi of the payload, per joint

    K_j s_j = W_j theta                      without the payload,
    K_j s_j = W_j theta + Y_j phi            with it,          phi = (m, h, I), m known.

All but m is unknown, and linear; without m the equations fix only ratios.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, PoorExcitationError, RecordingError
from taufit.core.parameters import PER_LINK
from taufit.robot.inertia import pseudo_inertia
from taufit.signals.drive_gains import DriveGains

METHODS = {
    "total_least_squares": "total least squares",
    "least_squares": "least squares",
    "constrained": "physically constrained total least squares",
}


def identify_gains(  # noqa: PLR0913 - the public call has one keyword per choice
    unloaded_signal: Float[Array, "n j"],
    unloaded_regressor: Float[Array, "n j p"],
    loaded_signal: Float[Array, "m j"],
    loaded_regressor: Float[Array, "m j p"],
    payload_regressor: Float[Array, "m j 10"],
    mass: float,
    *,
    method: str = "total_least_squares",
    mass_std: float = 0.0,
    block: int = 100,
) -> DriveGains:
    """Estimate drive gains from runs with and without a known mass.

    The noise is in the signal, and the signal multiplies the unknown, so ordinary least squares
    underestimates the gains. Total least squares does not; it minimises

        |A x|^2 / (x' C x),      x = (K, h, I, 1),    A = (1 - Q Q') [S, -Y, -Y_m m],

    where Q spans the columns of the robot without payload and C is the noise of the signal columns
    alone: motion and mass count as exact. "constrained" minimises x' (A'A - lambda C) x, lambda
    being that smallest ratio, over K >= 0 and physically consistent payloads (positive semidefinite
    pseudo-inertia).

    Args:
        unloaded_signal, loaded_signal: Conditioned signals, e.g. `Samples.torque` with unit gains.
        unloaded_regressor, loaded_regressor: Regressors of the robot without payload, with
            friction and offsets, filtered like the signals; columns may depend on each other.
        payload_regressor: Columns of m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz of the payload in
            the frame of the last link.
        mass: Payload mass [kg].
        method: "total_least_squares", "least_squares" or "constrained".
        mass_std: Standard deviation of the mass [kg].
        block: Number of samples over which residuals may be correlated, for the standard
            deviations.

    Raises:
        PoorExcitationError: The payload has no effect on the signal of some joint.
    """
    if not (np.isfinite(mass) and mass > 0):
        raise RecordingError(f"the known mass is {mass:g} kg; gains need a positive one.")
    if method not in METHODS:
        raise RecordingError(f"unknown method {method!r}; there are {', '.join(METHODS)}.")
    joints = unloaded_signal.shape[1]
    rows = _stack(
        np.concatenate([unloaded_signal, loaded_signal]),
        np.concatenate([unloaded_regressor, loaded_regressor]),
        np.concatenate([np.zeros((len(unloaded_signal), joints, PER_LINK)), payload_regressor]),
        mass,
        block,
    )
    weight = np.ones(joints)
    for _ in range(4):
        reduced = rows.project_out_robot(weight)
        x, curvature = _solve(reduced, rows, method, mass)
        gains = x[:joints]
        if not np.all(gains > 0):
            bad = ", ".join(str(j + 1) for j in np.flatnonzero(~(gains > 0)))
            raise PoorExcitationError(
                f"the known mass does not show the drive gain of joint {bad}. Move it more with "
                "the payload, use a heavier one, or read the gains from the controller."
            )
        residual = reduced @ x / weight[rows.joint]
        residual_std = np.array([np.std(residual[rows.joint == j]) for j in range(joints)])
        weight = 1.0 / np.maximum(residual_std, 1e-9 * max(float(residual_std.max()), 1e-300))

    # Residuals are correlated within a block: its scores are summed.
    residual = reduced @ x
    scores = np.zeros((int(rows.block.max()) + 1, len(x) - 1))
    np.add.at(scores, rows.block, reduced[:, :-1] * residual[:, None])
    inverse_curvature = np.linalg.pinv(curvature[:-1, :-1], rcond=1e-12, hermitian=True)
    covariance = inverse_curvature @ (scores.T @ scores) @ inverse_curvature
    std = np.sqrt(np.maximum(np.diag(covariance)[:joints], 0.0))
    return DriveGains(
        gains,
        np.hypot(std, gains * mass_std / mass),
        (f"known mass of {mass:g} kg, {METHODS[method]}",) * joints,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _KnownMassRows:
    """Rows, sorted by joint, of signal K = arm theta + payload (h, I) + known."""

    signal: Float[Array, " r"]
    joint: Int[Array, " r"]
    block: Int[Array, " r"]
    arm: Float[Array, "r q"]
    payload: Float[Array, "r 9"]
    mass_torque: Float[Array, " r"]

    @property
    def joints(self) -> int:
        return int(self.joint[-1]) + 1

    def project_out_robot(self, weight: Float[Array, " j"]) -> Float[Array, "r x"]:
        """Weighted columns of gains, payload and offset, orthogonal to those of the robot."""
        columns = np.zeros((len(self.signal), self.joints + PER_LINK))
        columns[np.arange(len(self.signal)), self.joint] = self.signal
        columns[:, self.joints : -1] = -self.payload
        columns[:, -1] = -self.mass_torque
        w = weight[self.joint][:, None]
        basis = np.linalg.qr(self.arm * w)[0]
        columns *= w
        return columns - basis @ (basis.T @ columns)


def _stack(
    signal: Float[Array, "n j"],
    arm: Float[Array, "n j p"],
    payload: Float[Array, "n j 10"],
    mass: float,
    block: int,
) -> _KnownMassRows:
    n, joints = signal.shape
    arm = arm.transpose(1, 0, 2).reshape(joints * n, -1)
    payload = payload.transpose(1, 0, 2).reshape(joints * n, PER_LINK)
    # Dependent columns add nothing to the span.
    size = np.linalg.norm(arm, axis=0)
    arm = arm[:, size > 1e-10 * size.max()]
    arm = arm / np.linalg.norm(arm, axis=0)
    upper, order = scipy.linalg.qr(np.linalg.qr(arm, mode="r"), mode="r", pivoting=True)
    pivots = np.abs(np.diag(upper))
    return _KnownMassRows(
        signal=signal.T.ravel(),
        joint=np.repeat(np.arange(joints), n),
        block=np.tile(np.arange(n) // block, joints),
        arm=arm[:, order[: np.count_nonzero(pivots > 1e-8 * pivots[0])]],
        payload=payload[:, 1:],
        mass_torque=mass * payload[:, 0],
    )


def _solve(
    reduced: Float[Array, "r x"], rows: _KnownMassRows, method: str, mass: float
) -> tuple[Float[Array, " x"], Float[Array, "x x"]]:
    """x = (K, h, I, 1) and the curvature of the minimised cost."""
    joints = rows.joints
    scale = np.linalg.norm(reduced, axis=0)
    if np.any(scale[:joints] == 0) or scale[-1] == 0:
        raise PoorExcitationError(
            "the known mass cannot be seen: a joint's signal, or the payload's own torque, is "
            "explained by the bare arm alone. Record the loaded run with another motion."
        )
    scale = np.maximum(scale, 1e-12 * scale.max())
    normal = (reduced / scale).T @ (reduced / scale)
    x = np.append(np.linalg.lstsq(normal[:-1, :-1], -normal[:-1, -1], rcond=1e-13)[0], 1.0)
    if method == "least_squares":
        return x * scale[-1] / scale, normal * np.outer(scale, scale)
    counts = np.bincount(rows.joint).astype(float)
    diagonal = np.arange(joints)
    noise = np.zeros_like(normal)
    ratio = 0.0
    for _ in range(50):
        # Rows are weighted by their residual K e, so the noise e of the signal is 1 / K in them.
        gains = np.maximum(np.abs(x[:joints] * scale[-1] / scale[:joints]), 1e-12)
        noise[diagonal, diagonal] = counts / np.square(gains * scale[:joints])
        # The smallest ratio x'Nx / x'Cx is one over the largest eigenvalue of the swapped pair.
        values, vectors = scipy.linalg.eigh(
            noise, normal + 1e-14 * np.eye(len(normal)), subset_by_index=[len(x) - 1, len(x) - 1]
        )
        previous, x, ratio = x, vectors[:, 0] / vectors[-1, 0], 1.0 / float(values[0])
        if np.allclose(x, previous, rtol=1e-9, atol=1e-12):
            break
    corrected = normal - ratio * noise
    if method == "constrained":
        x = _solve_constrained(corrected, scale, joints, mass)
    return x * scale[-1] / scale, corrected * np.outer(scale, scale)


def _solve_constrained(
    curvature: Float[Array, "x x"], scale: Float[Array, " x"], joints: int, mass: float
) -> Float[Array, " x"]:
    """min x' H x over K >= 0 and P(m, h, I) >= 0, with the last entry of x one."""
    import clarabel
    import scipy.sparse

    size = len(curvature) - 1
    hessian = curvature[:-1, :-1]
    # Rounding may leave the smallest eigenvalue slightly below zero.
    hessian = hessian + 1e-12 * np.trace(hessian) / size * np.eye(size)
    upper = np.triu_indices(4)
    order = np.lexsort(upper)
    row, column = upper[0][order], upper[1][order]
    scale_entries = np.where(row == column, 1.0, np.sqrt(2.0))
    # Metres to decimetres: the entries of P get similar magnitudes.
    length = np.array([10.0, 10.0, 10.0, 1.0])
    entries = pseudo_inertia(np.eye(10)) * np.outer(length, length)
    triangle = (entries[:, row, column] * scale_entries).T
    factor = scale[-1] / scale[:-1]
    constraint = np.zeros((joints + 10, size))
    constraint[:joints, :joints] = -np.eye(joints)
    constraint[joints:, joints:] = -triangle[:, 1:] * factor[joints:]
    bound = np.concatenate([np.zeros(joints), triangle[:, 0] * mass])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    answer = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix(np.triu(hessian)),
        curvature[:-1, -1],
        scipy.sparse.csc_matrix(constraint),
        bound,
        [clarabel.NonnegativeConeT(joints), clarabel.PSDTriangleConeT(4)],
        settings,
    ).solve()
    if "Solved" not in str(answer.status):
        raise InfeasibleError(
            f"the constrained gains could not be found ({answer.status}). Use "
            "method='total_least_squares', and check the known mass and its frame."
        )
    return np.append(np.array(answer.x), 1.0)
