"""Sign recovery for a payload recorded with unsigned torque.

With mu = tau_a + W_n phi, the torque of robot and payload, a magnitude m has the expected signed
value m tanh(m mu / sigma^2). Expectation and least squares for phi alternate (EM) and maximise the
likelihood of the magnitudes, from several initial masses. The recording then gets the expected
torque, on which every method works as on signed torque.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.core.parameters import PER_LINK
from taufit.dynamics import engine
from taufit.model.fitted_model import FittedModel
from taufit.payload.estimate import PayloadEstimate
from taufit.recording import Recording, reorder_joints
from taufit.robot.inertia import tensor_entries
from taufit.signals import Samples, condition
from taufit.signs.folded_normal import joint_log_likelihood
from taufit.signs.information import information_share
from taufit.signs.refined_search import torque_before_lowpass
from taufit.signs.samples import joints_with_signs, magnitudes

# Initial masses as fractions of the robot's mass.
_INITIAL_MASSES = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4)
_MAX_ITERATIONS, _TOLERANCE = 60, 1e-6
# Smallest log-likelihood margin over other payloads: 5 standard deviations.
_CLEAR_MARGIN = 12.5
# Largest relative difference of masses of the same maximum.
_SAME_MASS = 0.02
# Standard deviations of a weak prior, for motions with little excitation [kg, kg m, kg m^2].
_PRIOR_STD = np.array([1e3, *[1e2] * 3, *[1e2] * 6])


@dataclass(frozen=True, slots=True, eq=False)
class PayloadSigns:
    """A recording with recovered torque signs.

    Attributes:
        recording: The recording, with expected torque where signs were not recorded.
        widening: Factor by which intervals are wider than with recorded signs, since magnitudes
            near zero carry less information.
        margin: Log-likelihood margin over the next best payload; infinite without one.
        other_mass: Mass of the next best payload [kg], or None.
        open_share: Fraction of samples with undetermined sign, below three standard deviations.
    """

    recording: Recording
    widening: float
    margin: float
    other_mass: float | None
    open_share: float

    @property
    def is_unique(self) -> bool:
        """Whether no other payload explains the magnitudes about as well."""
        return self.margin > _CLEAR_MARGIN

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages for the user."""
        out = [
            "torque signs were not recorded: they were found with one payload carried throughout."
        ]
        if not self.is_unique:
            out.append(
                f"without signs a payload of {self.other_mass:.2f} kg explains the torque about as "
                "well: do not use this before a longer motion, or one with signs, decides it."
            )
        return tuple(out)


@dataclass(frozen=True, slots=True, eq=False)
class _LikelihoodMaximum:
    """One maximum of the likelihood."""

    phi: Float[Array, " 10"]
    predicted: Float[Array, "n j"]
    noise: Float[Array, " j"]
    likelihood: float


def is_unsigned(recording: Recording) -> bool:
    """Whether the torque of some joints is unsigned."""
    return recording.signed is not None and not bool(np.all(recording.signed))


def recover_payload_signs(model: FittedModel, recording: Recording) -> PayloadSigns:
    """Recover the torque signs of a recording together with the payload.

    Args:
        model: Model of the robot without payload.
        recording: Recording of the same robot with one payload throughout; `signed` marks the
            joints with recorded signs.
    """
    robot = model.robot
    recording = reorder_joints(recording, robot.joint_names, robot=robot.name)
    if model.columns.coupling is not None or recording.coupling is not None:
        raise RecordingError(
            f"{recording.name} has torques of coupled motors without a sign; which joint they "
            "belong to cannot be told. Record signed torques."
        )
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz
    gains_missing = recording.gain is None or not np.all(np.isfinite(recording.gain))
    samples = condition(
        recording,
        cutoff_hz=None if np.isinf(cutoff) else cutoff,
        gains=conditioning.gain if gains_missing else None,
        delay_s=conditioning.delay_s,
    )
    sign_fit = _PayloadSignFit(model, samples)
    maxima = sorted(
        (sign_fit.maximise(mass) for mass in _initial_masses(model)),
        key=lambda maximum: -maximum.likelihood,
    )
    best_maximum = maxima[0]
    mass_tolerance = max(_SAME_MASS * abs(best_maximum.phi[0]), 1e-3)
    other_maxima = [
        maximum for maximum in maxima if abs(maximum.phi[0] - best_maximum.phi[0]) > mass_tolerance
    ]
    margin = best_maximum.likelihood - other_maxima[0].likelihood if other_maxima else np.inf
    return PayloadSigns(
        _apply_signs(recording, samples, best_maximum, conditioning.delay_s),
        sign_fit.widening(best_maximum),
        float(margin),
        float(other_maxima[0].phi[0]) if other_maxima else None,
        sign_fit.open_share(best_maximum),
    )


def widen_intervals(estimate: PayloadEstimate, factor: float) -> PayloadEstimate:
    """Copy of an estimate with intervals wider by a factor."""
    if not estimate.has_intervals:
        return estimate

    def widen(value: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = (value + factor * (end - value) for end in interval)
        return np.asarray(low), np.asarray(high)

    low, high = widen(np.array(estimate.mass), tuple(map(np.asarray, estimate.mass_interval)))  # type: ignore[arg-type]
    return replace(
        estimate,
        mass_std=factor * estimate.mass_std,
        mass_interval=(float(low), float(high)),
        centre_std=factor * estimate.centre_std,
        centre_interval=widen(estimate.centre, estimate.centre_interval),
        inertia_interval=widen(tensor_entries(estimate.inertia), estimate.inertia_interval),
    )


class _PayloadSignFit:
    """Maximises the folded likelihood of a payload's ten parameters."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        self.model = model
        self.keep = np.asarray(samples.keep, bool)
        if np.any(~np.any(self.keep, 0)):
            raise PoorExcitationError(
                f"{samples.names[0]} has joints without a usable sample. Record a motion of every "
                "joint."
            )
        self.model_torque = torque_before_lowpass(model, samples)
        last = model.layout.link(-1)
        self.rows = engine(model.robot).regressor(
            samples.position, samples.velocity, samples.acceleration
        )[..., last]
        self.signed = np.broadcast_to(joints_with_signs(samples), self.model_torque.shape)
        raw = samples.torque if samples.raw_torque is None else samples.raw_torque
        self.values = np.where(self.signed, raw, magnitudes(samples))
        self.count = np.maximum(self.keep.sum(0), 1)
        rms = np.sqrt(np.sum(np.where(self.keep, self.values**2, 0.0), 0) / self.count)
        self.floor = np.maximum(1e-3 * rms, 1e-9)

    def maximise(self, mass: float) -> _LikelihoodMaximum:
        """Iterate from a point mass at the flange to the nearest maximum."""
        flange = self.model.robot.tip[:3, 3]
        phi = np.zeros(PER_LINK)
        phi[0], phi[1:4] = mass, mass * flange
        predicted = self.model_torque + self.rows @ phi
        noise = self._noise(np.abs(self.values) - np.abs(predicted))
        for _ in range(_MAX_ITERATIONS):
            signed_torque = self.torque_expectation(predicted, noise)
            information = self._information(1.0 / noise**2)
            weighted_residual = np.where(
                self.keep, (signed_torque - self.model_torque) / noise**2, 0.0
            )
            phi = np.linalg.solve(information, np.einsum("njp,nj->p", self.rows, weighted_residual))
            previous, predicted = predicted, self.model_torque + self.rows @ phi
            square = self.values**2 - 2.0 * signed_torque * predicted + predicted**2
            noise = np.sqrt(np.maximum(self._joint_mean(square), self.floor**2))
            change = np.where(self.keep, (predicted - previous) / noise, 0.0)
            if np.sqrt(np.mean(change**2)) < _TOLERANCE * np.sqrt(
                np.mean((predicted / noise) ** 2)
            ):
                break
        likelihoods = joint_log_likelihood(self.values, self.signed, self.keep, predicted, noise)
        return _LikelihoodMaximum(phi, predicted, noise, float(likelihoods.sum()))

    def torque_expectation(
        self, predicted: Float[Array, "n j"], noise: Float[Array, " j"]
    ) -> Float[Array, "n j"]:
        """Expected signed torque."""
        expected_values = self.values * np.tanh(self.values * predicted / noise**2)
        return np.where(self.signed, self.values, expected_values)

    def widening(self, maximum: _LikelihoodMaximum) -> float:
        """Ratio of the standard deviation of the mass to that with recorded signs."""
        share = np.where(self.signed, 1.0, information_share(maximum.predicted / maximum.noise))
        signed_variance, unsigned_variance = (
            np.linalg.inv(self._information(weight))[0, 0]
            for weight in (1.0 / maximum.noise**2, share / maximum.noise**2)
        )
        return float(np.sqrt(max(unsigned_variance / signed_variance, 1.0)))

    def open_share(self, maximum: _LikelihoodMaximum) -> float:
        """Fraction of samples with torque within three standard deviations of zero."""
        undetermined = self.keep & ~self.signed & (np.abs(maximum.predicted) < 3.0 * maximum.noise)
        return float(undetermined.sum() / max(int(self.keep.sum()), 1))

    def _information(self, weight: Float[Array, "... j"]) -> Float[Array, "10 10"]:
        weight = np.where(self.keep, weight, 0.0)
        return np.einsum("njp,nj,njq->pq", self.rows, weight, self.rows, optimize=True) + np.diag(
            1.0 / _PRIOR_STD**2
        )

    def _joint_mean(self, square: Float[Array, "n j"]) -> Float[Array, " j"]:
        return np.sum(np.where(self.keep, square, 0.0), 0) / self.count

    def _noise(self, residual: Float[Array, "n j"]) -> Float[Array, " j"]:
        return np.sqrt(np.maximum(self._joint_mean(residual**2), self.floor**2))


def _initial_masses(model: FittedModel) -> tuple[float, ...]:
    """Initial masses [kg]."""
    robot_mass = float(model.values[model.layout.masses].sum())
    return tuple(fraction * max(robot_mass, 1.0) for fraction in _INITIAL_MASSES)


def _apply_signs(
    recording: Recording,
    samples: Samples,
    maximum: _LikelihoodMaximum,
    delay_s: float | tuple[float, ...],
) -> Recording:
    """Copy of the recording with its torque channel multiplied by the expected sign of each row."""
    time = np.asarray(recording.time, float)
    delay = np.broadcast_to(delay_s, recording.signal.shape[1:])
    order = np.argsort(samples.time, kind="stable")
    signal = np.array(recording.signal, float)
    signed_joints = joints_with_signs(samples)
    gain = np.ones(signal.shape[1])
    if samples.gain is not None:
        gain = np.asarray(samples.gain, float)
    for i in np.flatnonzero(~signed_joints):
        predicted = np.interp(time - delay[i], samples.time[order], maximum.predicted[order, i])
        magnitude = np.abs(signal[:, i] * gain[i])
        expected_sign = np.tanh(magnitude * predicted / maximum.noise[i] ** 2)
        signal[:, i] = np.abs(signal[:, i]) * expected_sign * np.sign(gain[i])
    return replace(recording, signal=signal, signed=np.ones(signal.shape[1], bool))
