"""The search once more with friction as it is, and joints whose torque noise drowns.

Coulomb friction turns over at a velocity reversal; friction of real gears some milliseconds later,
so the torque of the samples in between has the other sign. Friction by path and load is columns as
soon as the torque the gears carry is known, and the first search tells that.
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
from taufit.signs.data import SearchData, prepare
from taufit.signs.findings import FoundSigns
from taufit.signs.folded_normal import folded_likelihood
from taufit.signs.rounds import SearchRound, search_rounds
from taufit.signs.samples import magnitudes
from taufit.signs.verdict import chi_squares
from taufit.terms import friction_model

# Fits from the nominal robot on; magnitudes below the noise say little, and further ones would only
# follow that noise.
_ROUNDS = 1
# Noise is not quite white, and columns imitate it: the criterion must be met this many times over.
_CLEARLY = 3.0


def search_with_path(
    model: TorqueModel, data: SearchData, done: SearchRound, rounds: int, node_cap: int
) -> tuple[SearchData, SearchRound]:
    """A search with friction by path and load, where it explains more than the one before.

    Args:
        model: What is fitted; friction whose shapes are unknown is replaced by pre-sliding.
        data, done: The search with Coulomb and viscous friction.
        rounds, node_cap: As in `search_rounds`.
    """
    friction = model.friction
    if friction is None or friction.shapes:
        friction = friction_model("presliding")
    samples = data.samples
    values = np.zeros(len(data.model.names))
    values[data.rows.kept] = done.fit.theta
    links = data.model.columns.links(samples.position, samples.velocity, samples.acceleration)
    load = links @ values[data.model.layout.links]
    own = replace(model, friction=friction, shape=None)
    finer = prepare(own, samples, data.hints, load=load)
    again = search_rounds(finer, rounds, node_cap)
    if again.certified < done.certified:
        return data, done
    better = chi_squares(finer, again)[0] < chi_squares(data, done)[0]
    return (finer, again) if better else (data, done)


def with_nominal_prior(model: TorqueModel, found: FoundSigns) -> FoundSigns:
    """Signs found, with joints whose torque noise drowns explained from the nominal robot on.

    Where noise exceeds the torque, the model that fits best may follow the noise. Unless it
    explains clearly more than the nominal robot does, that robot's torque comes first, then the
    automatic fit's to what is expected of the magnitudes under it: what they do not show stays
    nominal.
    """
    lost = found.noisy & ~found.recorded
    if not np.any(lost) or not np.any(model.robot.parameters):
        return found
    samples = found.samples
    now = rigid_torque(model, samples)
    out = _explained_by(found, now, lost)
    # By the Bayesian information criterion, with the columns of a joint's own link and drive.
    own = len(model.names) / model.robot.joints
    count = np.maximum(np.sum(samples.keep, 0), 2)
    lost &= _likelihood(found) - _likelihood(out) < 0.5 * _CLEARLY * own * np.log(count)
    if not np.any(lost):
        return found
    out = _explained_by(found, now, lost)
    for _ in range(_ROUNDS):
        try:
            estimate = fit(model, out.fit_samples)
        except TaufitError:
            # Whoever fits next is told why.
            return out
        fitted = fitted_model(model, estimate, out.fit_samples)
        out = _explained_by(out, unfiltered_torque(fitted, samples), lost)
    return out


def _likelihood(found: FoundSigns) -> Float[Array, " j"]:
    """Of the magnitudes, joint by joint."""
    keep = np.asarray(found.samples.keep, bool)
    values = np.where(found.known, found.expected, magnitudes(found.samples))
    return folded_likelihood(values, found.known, keep, found.predicted, found.noise)


def unfiltered_torque(model: FittedModel, samples: Samples) -> Float[Array, "n j"]:
    """Torque of every sample as it was before the low-pass, where that was kept."""
    rigid = rigid_torque(model, samples)
    motor = model.columns.drive_at(samples, load=rigid, filtered=samples.raw_torque is None)
    return rigid + model.columns.term_torque(model.values, samples.acceleration, motor)


def _explained_by(
    found: FoundSigns, predicted: Float[Array, "n j"], joints: Bool[Array, " j"]
) -> FoundSigns:
    """Expected torque and noise of some joints under another prediction."""
    magnitude, keep = magnitudes(found.samples), np.asarray(found.samples.keep, bool)
    count = np.maximum(keep.sum(0), 1)
    # Of a magnitude with both signs open E m^2 = mu^2 + sigma^2.
    square = np.sum(np.where(keep, magnitude**2 - predicted**2, 0.0), 0) / count
    noise = np.sqrt(np.maximum(square, 0.25 * found.noise**2))
    expected = magnitude * np.tanh(magnitude * predicted / noise**2)
    use = joints & ~found.known
    return replace(
        found,
        expected=np.where(use, expected, found.expected),
        predicted=np.where(joints, predicted, found.predicted),
        noise=np.where(joints, noise, found.noise),
    )
