"""Refined sign search with path-dependent friction, and noisy joints from the nominal robot.

Coulomb friction reverses at a velocity reversal; friction of real gears some milliseconds later, so
the torque of the samples in between has the other sign. Friction by path and load is linear once
the load torque of the gears is known, and the first search provides it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import TaufitError
from taufit.fitting.fit import fit, fitted_model
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import rigid_torque
from taufit.model.torque_model import TorqueModel
from taufit.signals import Samples
from taufit.signs.data import SearchData, prepare_search
from taufit.signs.findings import RecoveredSigns
from taufit.signs.folded_normal import joint_log_likelihood
from taufit.signs.rounds import SearchRound, search_rounds
from taufit.signs.samples import magnitudes
from taufit.signs.verdict import chi_squares
from taufit.terms import friction_model

# Number of fits that start from the nominal robot; with magnitudes below the noise, more would only
# follow the noise.
_ROUNDS = 1
# Factor on the information criterion, since noise is not quite white and columns can fit it.
_CRITERION_FACTOR = 3.0


def search_with_path(
    model: TorqueModel, data: SearchData, first_round: SearchRound, rounds: int, node_cap: int
) -> tuple[SearchData, SearchRound]:
    """Repeat a search with friction by path and load, and keep it if it explains more.

    Args:
        model: Model to be fitted; friction with unknown shapes is replaced by pre-sliding.
        data, first_round: Search with Coulomb and viscous friction.
        rounds, node_cap: Settings of `search_rounds`.
    """
    friction = model.friction
    if friction is None or friction.shapes:
        friction = friction_model("presliding")
    samples = data.samples
    values = np.zeros(len(data.model.names))
    values[data.rows.parameters] = first_round.fit.theta
    links = data.model.columns.links(samples.position, samples.velocity, samples.acceleration)
    load = links @ values[data.model.layout.links]
    refined_model = replace(model, friction=friction, shape=None)
    refined_data = prepare_search(refined_model, samples, data.hints, load=load)
    refined_round = search_rounds(refined_data, rounds, node_cap)
    if refined_round.certified < first_round.certified:
        return data, first_round
    is_better = chi_squares(refined_data, refined_round)[0] < chi_squares(data, first_round)[0]
    return (refined_data, refined_round) if is_better else (data, first_round)


def with_nominal_prior(model: TorqueModel, recovery: RecoveredSigns) -> RecoveredSigns:
    """Replace joints dominated by noise by a fit that starts from the nominal robot.

    If noise exceeds the torque, the best model may follow the noise. Unless it explains clearly
    more than the nominal robot, the torque of that robot is used, then that of the automatic fit to
    the magnitudes expected under it: unidentifiable parameters stay nominal.
    """
    is_noisy = recovery.noisy & ~recovery.recorded
    if not np.any(is_noisy) or not np.any(model.robot.parameters):
        return recovery
    samples = recovery.samples
    nominal_torque = rigid_torque(model, samples)
    result = _with_prediction(recovery, nominal_torque, is_noisy)
    # Bayesian information criterion, with the columns of one joint's link and drive.
    joint_parameters = len(model.names) / model.robot.joints
    count = np.maximum(np.sum(samples.keep, 0), 2)
    is_noisy &= _likelihood(recovery) - _likelihood(
        result
    ) < 0.5 * _CRITERION_FACTOR * joint_parameters * np.log(count)
    if not np.any(is_noisy):
        return recovery
    result = _with_prediction(recovery, nominal_torque, is_noisy)
    for _ in range(_ROUNDS):
        try:
            estimate = fit(model, result.fit_samples)
        except TaufitError:
            # The next fit reports the reason.
            return result
        fitted = fitted_model(model, estimate, result.fit_samples)
        result = _with_prediction(result, torque_before_lowpass(fitted, samples), is_noisy)
    return result


def _likelihood(recovery: RecoveredSigns) -> Float[Array, " j"]:
    """Log-likelihood of the magnitudes, by joint."""
    keep = np.asarray(recovery.samples.keep, bool)
    values = np.where(recovery.has_sign, recovery.expected, magnitudes(recovery.samples))
    return joint_log_likelihood(values, recovery.has_sign, keep, recovery.predicted, recovery.noise)


def torque_before_lowpass(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque of every sample before the low-pass, if available [N m]."""
    rigid = rigid_torque(model, samples)
    motor = model.columns.drive_at(samples, load=rigid, filtered=samples.raw_torque is None)
    return rigid + model.columns.term_torque(model.values, samples.acceleration, motor)


def _with_prediction(
    recovery: RecoveredSigns, predicted: Float[Array, "n j"], joints: Bool[Array, " j"]
) -> RecoveredSigns:
    """Expected torque and noise of some joints under another prediction."""
    magnitude, keep = magnitudes(recovery.samples), np.asarray(recovery.samples.keep, bool)
    count = np.maximum(keep.sum(0), 1)
    # For a magnitude of unknown sign E m^2 = mu^2 + sigma^2.
    square = np.sum(np.where(keep, magnitude**2 - predicted**2, 0.0), 0) / count
    noise = np.sqrt(np.maximum(square, 0.25 * recovery.noise**2))
    expected = magnitude * np.tanh(magnitude * predicted / noise**2)
    is_replaced = joints & ~recovery.has_sign
    return replace(
        recovery,
        expected=np.where(is_replaced, expected, recovery.expected),
        predicted=np.where(joints, predicted, recovery.predicted),
        noise=np.where(joints, noise, recovery.noise),
    )
