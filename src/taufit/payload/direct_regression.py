"""Direct regression of the model's residual on payload and friction changes.

    tau - Y pi_a = W_n phi + W_f d + noise

`direct` weights joints by their noise and filters both sides equally; `khalil` is ordinary least
squares on differentiated signals with Coulomb, viscous and offset changes, after [Khalil2007];
`static` uses poses at standstill, after [Gaz2017], which determine mass and centre of mass only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.errors import PoorExcitationError
from taufit.core.parameters import PER_LINK
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import engine
from taufit.model.fitted_model import FittedModel
from taufit.model.friction_level import friction_level
from taufit.payload.filter import PayloadFilter
from taufit.payload.identification import MassReading, PayloadRun
from taufit.payload.linear_estimate import linear_estimate
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream
from taufit.signals.motion_intervals import intervals, speed_threshold, standing_mask
from taufit.signals.noise import noise_std

# Shortest standstill of a pose [s] and smallest difference of two poses [rad or m].
_STANDSTILL_S, _POSE_DIFFERENCE = 0.4, 0.05
# Speed below which a pose is at standstill: controllers settle slowly [rad/s or m/s].
_STANDSTILL_SPEED = 5e-3


def run_direct(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    callback: Callable[..., None] | None = None,
) -> PayloadRun:
    """Weighted regression on ten payload parameters and friction changes, at fixed robot model."""
    payload_filter = PayloadFilter(model, settings)
    history: list[MassReading] = []
    due, ready_at = 0.5, None
    fixed_sources = ("links", "gains")

    def solve() -> tuple[Array, Array]:
        posterior, weak_prior = (
            payload_filter.posterior(without=fixed_sources),
            np.diag([1e-6, *[1e-3] * 3, *[1e-2] * 6]),
        )
        phi = np.linalg.solve(posterior.information + weak_prior, posterior.target)
        # The robot model is fixed for the estimate, but its uncertainty counts for the interval.
        return phi, np.linalg.inv(payload_filter.posterior().information + weak_prior)

    phi, covariance = np.zeros(PER_LINK), np.eye(PER_LINK)
    for sample in source.samples():
        payload_filter.feed(*sample)
        if sample[0] >= due:
            due += 0.5
            payload_filter.estimate()
            phi, covariance = solve()
            half = NORMAL_95 * float(np.sqrt(covariance[0, 0]))
            ready = payload_filter.ready_at is not None
            ready_at = sample[0] if ready and ready_at is None else ready_at
            mass = float(phi[0])
            history.append(MassReading(sample[0], mass, mass - half, mass + half, ready))
            if callback is not None:
                callback(payload_filter, payload_filter.estimate())
    payload_filter.estimate()
    phi, covariance = solve()
    posterior = linear_estimate(float(source.time[-1]), phi, covariance, ready_at is not None)
    return PayloadRun(
        "direct",
        posterior,
        ready_at,
        None,
        tuple(history),
        warnings=(*source.warnings, *posterior.warnings),
    )


def run_khalil(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    callback: Callable[..., None] | None = None,
) -> PayloadRun:
    """Ordinary least squares on measured, differentiated signals."""
    joints = model.robot.joints
    valid = np.isfinite(source.position + source.velocity + source.torque).all(axis=1)
    time, q, v = source.time[valid], source.position[valid], source.velocity[valid]
    a = np.gradient(v, time, axis=0)
    moving = np.any(np.abs(v) > settings.standstill_speed, axis=1)
    if np.count_nonzero(moving) < 100:
        raise PoorExcitationError(f"nothing moves in {source.name}: there is no motion to regress.")
    links = engine(model.robot).regressor(q, v, a)
    layout = model.layout
    rigid = links @ np.asarray(model.values)[layout.links]
    temperature = None if source.temperature is None else source.temperature[valid]
    drive_columns = model.structure.joint_columns(
        v, a, position=q, load=rigid, temperature=temperature
    )
    residual = (
        source.torque[valid] - rigid - drive_columns @ np.asarray(model.values)[layout.after_links]
    )
    columns = np.zeros((len(time), joints, PER_LINK + 3 * joints))
    columns[..., :PER_LINK] = links[..., layout.link(-1)]
    for j in range(joints):
        columns[:, j, PER_LINK + 3 * j] = np.sign(v[:, j])
        columns[:, j, PER_LINK + 1 + 3 * j] = v[:, j]
        columns[:, j, PER_LINK + 2 + 3 * j] = 1.0
    history: list[MassReading] = []
    ends = [int(k) for k in np.flatnonzero(moving)[:: max(1, int(moving.sum()) // 20)][1:]]
    phi = np.zeros(PER_LINK)
    for end in [*ends, len(time)]:
        rows = columns[:end][moving[:end]].reshape(-1, columns.shape[-1])
        right = residual[:end][moving[:end]].reshape(-1)
        solution, *_ = np.linalg.lstsq(rows, right, rcond=1e-9)
        phi = solution[:PER_LINK]
        end_time = float(time[min(end, len(time) - 1)])
        history.append(MassReading(end_time, float(phi[0]), np.nan, np.nan, True))
    # Residuals are correlated and the robot model has errors: an ordinary covariance is invalid.
    estimate = linear_estimate(float(time[-1]), phi, None, True)
    return PayloadRun(
        "khalil",
        estimate,
        None,
        None,
        tuple(history),
        warnings=(*source.warnings, *estimate.warnings),
    )


def run_static(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    callback: Callable[..., None] | None = None,
) -> PayloadRun:
    """Mass and centre of mass from poses at standstill; friction lies within its stiction band."""
    valid = np.isfinite(source.position + source.velocity + source.torque).all(axis=1)
    time, q, v = source.time[valid], source.position[valid], source.velocity[valid]
    rate = 1.0 / float(np.median(np.diff(time)))
    # Averaging over 0.1 s removes velocity noise that would interrupt a standstill.
    width = max(1, int(0.1 * rate))
    smooth_velocity = np.stack(
        [np.convolve(c, np.full(width, 1.0 / width), "same") for c in v.T], 1
    )
    threshold = np.maximum(
        speed_threshold(smooth_velocity, noise_std(v) / np.sqrt(width)), _STANDSTILL_SPEED
    )
    standing = np.asarray(
        standing_mask(smooth_velocity, rate, threshold=threshold, min_duration_s=_STANDSTILL_S).all(
            axis=1
        )
    )
    poses: list[Array] = []
    torques: list[Array] = []
    end_times: list[float] = []
    for start, stop in intervals(standing):
        # The first part contains the settling of the controller.
        first = start + int(0.3 * (stop - start))
        pose = q[first:stop].mean(axis=0)
        # A standstill interrupted by noise counts once; approached from the other side it counts
        # again.
        if (
            poses
            and np.abs(pose - poses[-1]).max() < _POSE_DIFFERENCE
            and time[start] - end_times[-1] < _STANDSTILL_S
        ):
            continue
        poses.append(pose)
        torques.append(source.torque[valid][first:stop].mean(axis=0))
        end_times.append(float(time[stop - 1]))
    if len(poses) < 3:
        raise PoorExcitationError(
            f"{source.name} holds {len(poses)} different poses still for {_STANDSTILL_S:g} s; at "
            f"least 3 "
            "are needed, better 10 approached from both sides. Use the method filter for motion."
        )
    pose = np.array(poses)
    links = engine(model.robot).regressor(pose, 0 * pose, 0 * pose)
    parts = model.layout.split(np.asarray(model.values))
    residual = np.array(torques) - links @ parts.links.ravel() - parts.offsets
    residual -= model.conservative_torque(pose)
    # At standstill only mass and first moments are observable.
    gravity = links[..., model.layout.link(-1)][..., :4]
    std = 0.5 * friction_level(model) + 0.1
    rows = (gravity / std[:, None]).reshape(-1, 4)
    right = (residual / std).reshape(-1)
    information = rows.T @ rows + np.diag([1e-4, *[1.0 / settings.com_std**2 * 0.1] * 3])
    gravity_covariance = np.linalg.inv(information)
    solution = gravity_covariance @ (rows.T @ right)
    phi = np.zeros(PER_LINK)
    phi[:4] = solution
    mass = max(float(phi[0]), 1e-6)
    c = phi[1:4] / mass
    # Point mass: static poses do not determine the inertia.
    tensor = mass * (c @ c * np.eye(3) - np.outer(c, c))
    phi[4:] = tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    covariance = np.zeros((PER_LINK, PER_LINK))
    covariance[:4, :4] = gravity_covariance
    estimate = linear_estimate(float(time[-1]), phi, covariance, True)
    return PayloadRun(
        "static",
        estimate,
        end_times[2],
        None,
        warnings=(
            *source.warnings,
            f"{len(poses)} static poses: the inertia is a point mass's, poses do not show it.",
        ),
        details={"poses": len(poses)},
    )
