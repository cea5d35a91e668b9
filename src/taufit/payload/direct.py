"""Direct regression: what the arm's own torque leaves over is payload and changed friction.

    tau - Y pi_a = W_n phi + W_f d + noise

`direct` weights joints by their noise and filters both sides alike; `khalil` is plain least squares
on differentiated signals with Coulomb, viscous and offset changes, after [Khalil2007]; `static`
uses poses held still, after [Gaz2017], which show mass and centre of mass only.
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
from taufit.payload.linear import linear_estimate
from taufit.payload.run import MassReading, PayloadRun
from taufit.payload.settings import PayloadSettings
from taufit.payload.stream import Stream
from taufit.signals.noise import noise_std
from taufit.signals.windows import intervals, speed_threshold, standing_mask

# Poses held still for this long count [s]; two poses differ by at least this much [rad or m].
_HELD, _APART = 0.4, 0.05
# Slower than this a pose is held: controllers settle slowly [rad/s or m/s].
_CREEP = 5e-3


def run_direct(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    watch: Callable[..., None] | None = None,
) -> PayloadRun:
    """Weighted regression on ten payload parameters and changed friction; the arm is known."""
    live = PayloadFilter(model, settings)
    history: list[MassReading] = []
    due, ready_at = 0.5, None
    known = ("links", "gains")

    def solved() -> tuple[Array, Array]:
        found, weak = live.posterior(without=known), np.diag([1e-6, *[1e-3] * 3, *[1e-2] * 6])
        phi = np.linalg.solve(found.information + weak, found.target)
        # The arm is taken as known for the estimate; for its interval it is not.
        return phi, np.linalg.inv(live.posterior().information + weak)

    phi, spread = np.zeros(PER_LINK), np.eye(PER_LINK)
    for sample in source.samples():
        live.feed(*sample)
        if sample[0] >= due:
            due += 0.5
            live.estimate()
            phi, spread = solved()
            half = NORMAL_95 * float(np.sqrt(spread[0, 0]))
            ready = live.ready_at is not None
            ready_at = sample[0] if ready and ready_at is None else ready_at
            mass = float(phi[0])
            history.append(MassReading(sample[0], mass, mass - half, mass + half, ready))
            if watch is not None:
                watch(live, live.estimate())
    live.estimate()
    phi, spread = solved()
    found = linear_estimate(float(source.time[-1]), phi, spread, ready_at is not None)
    return PayloadRun(
        "direct",
        found,
        ready_at,
        None,
        tuple(history),
        warnings=(*source.warnings, *found.warnings),
    )


def run_khalil(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    watch: Callable[..., None] | None = None,
) -> PayloadRun:
    """Plain least squares on measured, differentiated signals."""
    joints = model.robot.joints
    good = np.isfinite(source.position + source.velocity + source.torque).all(axis=1)
    time, q, v = source.time[good], source.position[good], source.velocity[good]
    a = np.gradient(v, time, axis=0)
    moving = np.any(np.abs(v) > settings.standstill, axis=1)
    if np.count_nonzero(moving) < 100:
        raise PoorExcitationError(f"nothing moves in {source.name}: there is no motion to regress.")
    links = engine(model.robot).regressor(q, v, a)
    layout = model.layout
    rigid = links @ np.asarray(model.values)[layout.links]
    warm = None if source.temperature is None else source.temperature[good]
    rest = model.structure.joint_columns(v, a, position=q, load=rigid, temperature=warm)
    left = source.torque[good] - rigid - rest @ np.asarray(model.values)[layout.after_links]
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
        right = left[:end][moving[:end]].reshape(-1)
        solution, *_ = np.linalg.lstsq(rows, right, rcond=1e-9)
        phi = solution[:PER_LINK]
        at = float(time[min(end, len(time) - 1)])
        history.append(MassReading(at, float(phi[0]), np.nan, np.nan, True))
    # Residuals are correlated and the arm is not known exactly: no plain covariance holds.
    found = linear_estimate(float(time[-1]), phi, None, True)
    return PayloadRun(
        "khalil", found, None, None, tuple(history), warnings=(*source.warnings, *found.warnings)
    )


def run_static(
    model: FittedModel,
    source: Stream,
    settings: PayloadSettings,
    *,
    template: Any = None,
    watch: Callable[..., None] | None = None,
) -> PayloadRun:
    """Mass and centre of mass from poses held still; friction is anywhere in its band there."""
    good = np.isfinite(source.position + source.velocity + source.torque).all(axis=1)
    time, q, v = source.time[good], source.position[good], source.velocity[good]
    rate = 1.0 / float(np.median(np.diff(time)))
    # A tenth of a second averages the noise of the velocity, which would break a hold.
    width = max(1, int(0.1 * rate))
    calm = np.stack([np.convolve(c, np.full(width, 1.0 / width), "same") for c in v.T], 1)
    threshold = np.maximum(speed_threshold(calm, noise_std(v) / np.sqrt(width)), _CREEP)
    still = np.asarray(standing_mask(calm, rate, threshold=threshold, lasting_s=_HELD).all(axis=1))
    poses: list[Array] = []
    torques: list[Array] = []
    when: list[float] = []
    for start, stop in intervals(still):
        # The controller settles first.
        first = start + int(0.3 * (stop - start))
        pose = q[first:stop].mean(axis=0)
        # One hold broken by a flicker; the same pose from the other side counts anew.
        if poses and np.abs(pose - poses[-1]).max() < _APART and time[start] - when[-1] < _HELD:
            continue
        poses.append(pose)
        torques.append(source.torque[good][first:stop].mean(axis=0))
        when.append(float(time[stop - 1]))
    if len(poses) < 3:
        raise PoorExcitationError(
            f"{source.name} holds {len(poses)} different poses still for {_HELD:g} s; at least 3 "
            "are needed, better 10 approached from both sides. Use the method filter for motion."
        )
    pose = np.array(poses)
    links = engine(model.robot).regressor(pose, 0 * pose, 0 * pose)
    parts = model.layout.split(np.asarray(model.values))
    left = np.array(torques) - links @ parts.links.ravel() - parts.offsets
    left -= model.conservative_torque(pose)
    # Without motion the first moments and the mass are all there is.
    gravity = links[..., model.layout.link(-1)][..., :4]
    std = 0.5 * friction_level(model) + 0.1
    rows = (gravity / std[:, None]).reshape(-1, 4)
    right = (left / std).reshape(-1)
    information = rows.T @ rows + np.diag([1e-4, *[1.0 / settings.com_spread**2 * 0.1] * 3])
    spread = np.linalg.inv(information)
    gentle = spread @ (rows.T @ right)
    phi = np.zeros(PER_LINK)
    phi[:4] = gentle
    mass = max(float(phi[0]), 1e-6)
    c = phi[1:4] / mass
    # A point mass: static poses say nothing about the inertia.
    tensor = mass * (c @ c * np.eye(3) - np.outer(c, c))
    phi[4:] = tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    covariance = np.zeros((PER_LINK, PER_LINK))
    covariance[:4, :4] = spread
    found = linear_estimate(float(time[-1]), phi, covariance, True)
    return PayloadRun(
        "static",
        found,
        when[2],
        None,
        warnings=(
            *source.warnings,
            f"{len(poses)} static poses: the inertia is a point mass's, poses do not show it.",
        ),
        details={"poses": len(poses)},
    )
