"""Tilt of the base: two angles of gravity, fitted beside the links and friction.

    y = W theta + T delta + e,     T = d gravity torque / d (roll, pitch) at the fitted links

theta is the maximum a posteriori of y = W theta + e; the joint solution is one Gauss-Newton step

    delta = S^-1 (T' w r - delta_0 / s^2),    S = T' w T + 1 / s^2 - X' (W' w W + P)^-1 X

with X = W' w T, residuals r, row weights w, prior precision P of theta, the tilt delta_0 so far and
its prior standard deviation s. The inverse of S is the covariance: links may move with the tilt.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.statistics import NORMAL_95
from taufit.dynamics import inverse_dynamics
from taufit.fitting.data_sufficiency import DataAmount
from taufit.fitting.fit import parameters_without_data
from taufit.fitting.selection.friction_terms import GUESSED_WEIGHT
from taufit.fitting.selection.prior_scales import (
    EvidenceMaximisation,
    PriorScales,
    maximise_evidence,
    prior_scales,
)
from taufit.fitting.unidirectional_joints import confounded_terms
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import GravityTilt
from taufit.recording.finding import Finding
from taufit.regression.rows import SampleRows
from taufit.robot import Robot
from taufit.robot.mounting import gravity_in_base
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples

# Prior standard deviation of roll and pitch about the declared mounting [rad].
TILT_STD = float(np.radians(1.0))
# Factor on standard deviations for errors of the model that repeat with the position, which rows
# do not average out: 1 to 4.5 on simulated UR5e arms with ripple and elasticity.
_ERROR_FACTOR = 2.0
# Upper 1 % quantile of the chi-square distribution with two degrees of freedom.
_SIGNIFICANT = 9.21
# Rounds of Gauss-Newton at most, step below which gravity is linear in the tilt, half step of the
# central difference [rad].
_ROUNDS, _SMALL, _STEP = 3, float(np.radians(0.5)), 1e-3


def with_tilt(
    model: TorqueModel, samples: Samples | SampleSource, dropped: tuple[str, ...] = ()
) -> tuple[TorqueModel, GravityTilt | None, PriorScales]:
    """Model with gravity as the data show it, the tilt, and its prior scales for `fit`.

    Without a significant tilt or without described links the mounting stays.
    """
    source = as_source(samples)
    amount = DataAmount.from_samples(model, source)
    joints = confounded_terms(model, source.excerpt).joints
    dropped = (*dropped, *parameters_without_data(model, source))

    def search_with(robot: Robot) -> EvidenceMaximisation:
        settings = dropped, amount.minimum_noise(source), None, joints
        return maximise_evidence(replace(model, robot=robot), source, *settings)

    search, so_far = search_with(model.robot), np.zeros(2)
    if search.nominal_weight == GUESSED_WEIGHT:
        # Tilt would stand in for links that nobody described.
        return model, None, prior_scales(search)
    tilt = estimate_tilt(search, so_far)
    # Used where it is significant against the noise of the rows, without the factor.
    if tilt.chi_square < _SIGNIFICANT / _ERROR_FACTOR**2:
        return model, None, prior_scales(search)
    for _ in range(_ROUNDS):
        if np.abs(tilt.angles - so_far).max() < _SMALL:
            break
        so_far = tilt.angles
        search = search_with(tilt.apply(model.robot))
        tilt = estimate_tilt(search, so_far)
    return replace(model, robot=tilt.apply(model.robot)), tilt, prior_scales(search)


def with_tilt_of_excerpt(
    model: TorqueModel, dropped: tuple[str, ...], source: SampleSource
) -> tuple[TorqueModel, GravityTilt | None, Float[Array, " p"] | None]:
    """Model with the tilt that the excerpt of a source shows, the tilt, and the load found."""
    tilted, tilt, scales = with_tilt(model, source.excerpt, dropped)
    return tilted, tilt, scales.load


def tilt_findings(tilt: GravityTilt | None) -> tuple[Finding, ...]:
    """Tilt with its 95 % interval, if it is significant and both halves of the data agree."""
    if tilt is None or not tilt.halves_agree or tilt.chi_square < _SIGNIFICANT:
        return ()
    roll, pitch = (
        f"{a:+.2f} +- {NORMAL_95 * s:.2f}"
        for a, s in zip(np.degrees(tilt.angles), np.degrees(tilt.std), strict=True)
    )
    message = (
        f"the base is tilted by {roll} deg in roll and {pitch} deg in pitch (95 %) against the "
        "declared mounting; the model uses this tilt. Both halves of the data agree on it."
    )
    return (Finding("gravity_tilt", "info", message),)


def estimate_tilt(search: EvidenceMaximisation, so_far: Float[Array, " 2"]) -> GravityTilt:
    """Tilt from a search whose robot is already tilted by `so_far` [rad]."""
    rows = search.regression.excerpt
    assert isinstance(rows, SampleRows)
    used = np.flatnonzero(rows.keep.any(axis=1))
    middle = int(used[len(used) // 2])
    robot = search.model.robot.with_parameters(search.theta[search.model.layout.links])
    halves = [thin_rows(rows, *span) for span in ((0, middle), (middle, len(rows)))]
    position = rows.samples.position
    parts = [
        products_beside(search, _gravity_slopes(robot, position[half]), half) for half in halves
    ]
    first, second, whole = (_solve(search, x, so_far) for x in (*parts, parts[0] + parts[1]))
    difference = GravityTilt(first.angles - second.angles, first.covariance + second.covariance)
    return replace(whole, halves_agree=difference.chi_square < _SIGNIFICANT)


def _solve(
    search: EvidenceMaximisation, products: Float[Array, "q q"], so_far: Float[Array, " 2"]
) -> GravityTilt:
    """Gauss-Newton step from the products of some rows."""
    schur = schur_complement(search, products) / _ERROR_FACTOR**2
    tilt_prior = np.eye(2) / TILT_STD**2
    covariance = np.linalg.inv(schur[:2, :2] + tilt_prior)
    return GravityTilt(so_far + covariance @ (schur[:2, 2] - tilt_prior @ so_far), covariance)


def schur_complement(
    search: EvidenceMaximisation, products: Float[Array, "q q"]
) -> Float[Array, "s s"]:
    """Products of (T, r) without what W and the prior of theta explain of them."""
    p = len(search.theta)
    prior = search.prior_precision() + np.diag(search.precision())
    total = products[:p, :p] + prior
    free = search.free & (np.diag(total) > 0.0)
    size = np.sqrt(np.diag(total)[free])
    scaled = total[np.ix_(free, free)] / np.outer(size, size) + 1e-9 * np.eye(len(size))
    beside = products[:p, p:].copy()
    # Zero for all rows, since theta is their optimum; not for a part of them.
    beside[:, -1] += search.prior_right() - prior @ search.theta
    beside = beside[free] / size[:, None]
    return np.asarray(products[p:, p:] - beside.T @ np.linalg.solve(scaled, beside))


def thin_rows(rows: SampleRows, first: int, last: int) -> slice:
    """Rows of a span, thinned to twice the cut-off."""
    return slice(first, last, max(1, int(rows.rate_hz / (2.0 * rows.samples.cutoff_hz))))


def products_beside(
    search: EvidenceMaximisation, slopes: Float[Array, "n j s"], part: slice
) -> Float[Array, "q q"]:
    """Weighted products of (W, T, r) over thinned rows, T their slopes."""
    rows = search.regression.excerpt
    assert isinstance(rows, SampleRows)
    columns = rows.block(part.start, part.stop, part.step)
    residual = rows.torque[part] - columns @ search.theta
    weight = np.sqrt(part.step * np.where(rows.keep[part], search.joint_weights, 0.0))
    stacked = np.concatenate([columns, slopes, residual[..., None]], -1) * weight[..., None]
    matrix = stacked.reshape(-1, stacked.shape[-1])
    return np.asarray(matrix.T @ matrix)


def _gravity_slopes(robot: Robot, position: Float[Array, "n j"]) -> Float[Array, "n j 2"]:
    """Derivative of the gravity torque with respect to roll and pitch: linear in gravity."""
    roll, pitch, yaw = robot.mounting
    zero = np.zeros_like(position)
    slopes = []
    for dr, dp in ((_STEP, 0.0), (0.0, _STEP)):
        ahead, behind = (gravity_in_base((roll + s * dr, pitch + s * dp, yaw)) for s in (1.0, -1.0))
        change = (ahead - behind) / (2.0 * _STEP)
        slopes.append(inverse_dynamics(robot, position, zero, zero, gravity=change))
    return np.stack(slopes, -1)
