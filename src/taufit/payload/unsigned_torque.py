"""A payload recorded without torque signs: the model of the empty arm and the payload tell them.

With mu = tau_a + W_n phi, the empty arm's torque and the payload's, a magnitude m has the expected
signed value m tanh(m mu / sigma^2). Expectation and least squares for phi in turns climb the
likelihood of the magnitudes; several masses to start from find its highest top. The recording then
gets the expected torque, on which every method works as on torque with signs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, RecordingError
from taufit.core.parameters import PER_LINK
from taufit.dynamics import engine
from taufit.model.fitted_model import FittedModel
from taufit.payload.estimate import PayloadEstimate
from taufit.recording import Recording, in_order
from taufit.robot.inertia import tensor_entries
from taufit.signals import Samples, condition
from taufit.signs.folded_normal import joint_log_likelihood
from taufit.signs.information import information_share
from taufit.signs.refined_search import torque_before_lowpass
from taufit.signs.samples import joints_with_signs, magnitudes

# Masses to start from, as parts of the arm's own.
_STARTS = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4)
_ROUNDS, _SETTLED = 60, 1e-6
# Log-likelihood by which another payload must lose: 5 standard deviations.
_CLEAR = 12.5
# Two tops are one where their masses differ by less than this part.
_SAME = 0.02
# Weak expectations that keep a motion that shows little from going astray [kg, kg m, kg m^2].
_SPREAD = np.array([1e3, *[1e2] * 3, *[1e2] * 6])


@dataclass(frozen=True, slots=True, eq=False)
class FoundPayloadSigns:
    """A recording with the torque signs a payload gives it.

    Attributes:
        recording: With expected torque where signs were not recorded.
        widening: How much wider intervals are than with recorded signs, because magnitudes near
            zero say less.
        margin: Log-likelihood by which the next best payload loses; infinite without one.
        rival: Its mass [kg], or None.
        open_share: Share of samples whose sign is open, below three standard deviations.
    """

    recording: Recording
    widening: float
    margin: float
    rival: float | None
    open_share: float

    @property
    def clear(self) -> bool:
        """Whether no other payload explains the magnitudes about as well."""
        return self.margin > _CLEAR

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know."""
        out = [
            "torque signs were not recorded: they were found with one payload carried throughout."
        ]
        if not self.clear:
            out.append(
                f"without signs a payload of {self.rival:.2f} kg explains the torque about as "
                "well: do not use this before a longer motion, or one with signs, decides it."
            )
        return tuple(out)


@dataclass(frozen=True, slots=True, eq=False)
class _Top:
    """One maximum of the likelihood."""

    phi: Float[Array, " 10"]
    predicted: Float[Array, "n j"]
    noise: Float[Array, " j"]
    likelihood: float


def is_unsigned(recording: Recording) -> bool:
    """Whether some joints' torque carries no sign."""
    return recording.signed is not None and not bool(np.all(recording.signed))


def with_payload_signs(model: FittedModel, recording: Recording) -> FoundPayloadSigns:
    """The recording with its torque signed by the empty arm's model and the payload that fits.

    Args:
        model: Of the empty arm.
        recording: Of the same arm with one payload throughout; `signed` says which joints carry
            their sign.
    """
    robot = model.robot
    recording = in_order(recording, robot.joint_names, robot=robot.name)
    if model.columns.coupling is not None or recording.coupling is not None:
        raise RecordingError(
            f"{recording.name} has torques of coupled motors without a sign; which joint they "
            "belong to cannot be told. Record signed torques."
        )
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz
    lacking = recording.gain is None or not np.all(np.isfinite(recording.gain))
    samples = condition(
        recording,
        cutoff_hz=None if np.isinf(cutoff) else cutoff,
        gains=conditioning.gain if lacking else None,
        delay_s=conditioning.delay_s,
    )
    fit = _PayloadSignFit(model, samples)
    tops = sorted((fit.climb(mass) for mass in _starts(model)), key=lambda top: -top.likelihood)
    best = tops[0]
    apart = max(_SAME * abs(best.phi[0]), 1e-3)
    others = [top for top in tops if abs(top.phi[0] - best.phi[0]) > apart]
    margin = best.likelihood - others[0].likelihood if others else np.inf
    return FoundPayloadSigns(
        _signed(recording, samples, best, conditioning.delay_s),
        fit.widening(best),
        float(margin),
        float(others[0].phi[0]) if others else None,
        fit.open_share(best),
    )


def widen_intervals(found: PayloadEstimate, factor: float) -> PayloadEstimate:
    """The same estimate with intervals wider by a factor."""
    if not found.judged:
        return found

    def about(value: Array, sides: tuple[Array, Array]) -> tuple[Array, Array]:
        return value + factor * (sides[0] - value), value + factor * (sides[1] - value)

    low, high = about(np.array(found.mass), tuple(map(np.asarray, found.mass_interval)))  # type: ignore[arg-type]
    return replace(
        found,
        mass_std=factor * found.mass_std,
        mass_interval=(float(low), float(high)),
        centre_std=factor * found.centre_std,
        centre_interval=about(found.centre, found.centre_interval),
        inertia_interval=about(tensor_entries(found.inertia), found.inertia_interval),
    )


class _PayloadSignFit:
    """The folded likelihood of a payload's ten parameters."""

    def __init__(self, model: FittedModel, samples: Samples) -> None:
        self.model = model
        self.keep = np.asarray(samples.keep, bool)
        if np.any(~np.any(self.keep, 0)):
            raise PoorExcitationError(
                f"{samples.names[0]} has joints without a usable sample. Record a motion of every "
                "joint."
            )
        self.empty = torque_before_lowpass(model, samples)
        last = model.layout.link(-1)
        self.rows = engine(model.robot).regressor(
            samples.position, samples.velocity, samples.acceleration
        )[..., last]
        self.signed = np.broadcast_to(joints_with_signs(samples), self.empty.shape)
        raw = samples.torque if samples.raw_torque is None else samples.raw_torque
        self.values = np.where(self.signed, raw, magnitudes(samples))
        self.count = np.maximum(self.keep.sum(0), 1)
        rms = np.sqrt(np.sum(np.where(self.keep, self.values**2, 0.0), 0) / self.count)
        self.floor = np.maximum(1e-3 * rms, 1e-9)

    def climb(self, mass: float) -> _Top:
        """From a point mass at the flange to the nearest maximum."""
        flange = self.model.robot.tip[:3, 3]
        phi = np.zeros(PER_LINK)
        phi[0], phi[1:4] = mass, mass * flange
        predicted = self.empty + self.rows @ phi
        noise = self._noise(np.abs(self.values) - np.abs(predicted))
        for _ in range(_ROUNDS):
            expected = self.expected(predicted, noise)
            information = self._information(1.0 / noise**2)
            left = np.where(self.keep, (expected - self.empty) / noise**2, 0.0)
            phi = np.linalg.solve(information, np.einsum("njp,nj->p", self.rows, left))
            before, predicted = predicted, self.empty + self.rows @ phi
            square = self.values**2 - 2.0 * expected * predicted + predicted**2
            noise = np.sqrt(np.maximum(self._mean(square), self.floor**2))
            change = np.where(self.keep, (predicted - before) / noise, 0.0)
            if np.sqrt(np.mean(change**2)) < _SETTLED * np.sqrt(np.mean((predicted / noise) ** 2)):
                break
        each = joint_log_likelihood(self.values, self.signed, self.keep, predicted, noise)
        return _Top(phi, predicted, noise, float(each.sum()))

    def expected(
        self, predicted: Float[Array, "n j"], noise: Float[Array, " j"]
    ) -> Float[Array, "n j"]:
        """Expected signed torque."""
        soft = self.values * np.tanh(self.values * predicted / noise**2)
        return np.where(self.signed, self.values, soft)

    def widening(self, top: _Top) -> float:
        """Standard deviation of the mass against that with signs."""
        share = np.where(self.signed, 1.0, information_share(top.predicted / top.noise))
        known, found = (
            np.linalg.inv(self._information(weight))[0, 0]
            for weight in (1.0 / top.noise**2, share / top.noise**2)
        )
        return float(np.sqrt(max(found / known, 1.0)))

    def open_share(self, top: _Top) -> float:
        """Share of samples whose torque is within three standard deviations of zero."""
        near = self.keep & ~self.signed & (np.abs(top.predicted) < 3.0 * top.noise)
        return float(near.sum() / max(int(self.keep.sum()), 1))

    def _information(self, weight: Float[Array, "... j"]) -> Float[Array, "10 10"]:
        weight = np.where(self.keep, weight, 0.0)
        return np.einsum("njp,nj,njq->pq", self.rows, weight, self.rows, optimize=True) + np.diag(
            1.0 / _SPREAD**2
        )

    def _mean(self, square: Float[Array, "n j"]) -> Float[Array, " j"]:
        return np.sum(np.where(self.keep, square, 0.0), 0) / self.count

    def _noise(self, residual: Float[Array, "n j"]) -> Float[Array, " j"]:
        return np.sqrt(np.maximum(self._mean(residual**2), self.floor**2))


def _starts(model: FittedModel) -> tuple[float, ...]:
    """Masses to start from [kg]."""
    own = float(model.values[model.layout.masses].sum())
    return tuple(part * max(own, 1.0) for part in _STARTS)


def _signed(recording: Recording, samples: Samples, top: _Top, delay_s: float) -> Recording:
    """The recording's own channel, times the expected sign at each of its rows."""
    time = np.asarray(recording.time, float) - delay_s
    order = np.argsort(samples.time, kind="stable")
    signal = np.array(recording.signal, float)
    own = joints_with_signs(samples)
    gain = np.ones(signal.shape[1])
    if samples.gain is not None:
        gain = np.asarray(samples.gain, float)
    for i in np.flatnonzero(~own):
        predicted = np.interp(time, samples.time[order], top.predicted[order, i])
        magnitude = np.abs(signal[:, i] * gain[i])
        soft = np.tanh(magnitude * predicted / top.noise[i] ** 2)
        signal[:, i] = np.abs(signal[:, i]) * soft * np.sign(gain[i])
    return replace(recording, signal=signal, signed=np.ones(signal.shape[1], bool))
