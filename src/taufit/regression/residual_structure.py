"""What a fitted model leaves over, described so that a later run of the same arm knows it.

The residual of the fit is taken as errors d of the base parameters, torque that no model holds but
that comes back at the same place (ripple, friction at low speed and under load, coefficients e),
and noise of density S,

    r = X d + E e + noise,        e ~ N(0, prior),

solved for both at once: where the same motion comes again, X d + E e is known well although
neither is; elsewhere it is not, and the joint information says by how much. A motion that repeats
averages its noise n times and its structure never, so the noise that counts in the fit is

    S_fit = S_between + n (S - S_between),

S_between being what differs from period to period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.fft import rfft, rfftfreq

from taufit.arrays import Array, Float
from taufit.friction import needs
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import Residuals, ResidualStructure
from taufit.parameters import joint_parameter
from taufit.regression.rows import SampleRows
from taufit.signals.filtering import lowpass
from taufit.signals.periodicity import find_period
from taufit.signals.samples import Samples

# Cycles per turn (or per metre) of torque that repeats with position.
RIPPLE_CYCLES = (2.0, 4.0, 8.0, 16.0)
# Speeds over which friction differs from the model and comes back to it [rad/s or m/s].
LOW_SPEEDS = (0.03, 0.1, 0.4)
EXTRAS = (
    *(f"below_{speed:g}" for speed in LOW_SPEEDS),
    "load",
    *(f"{wave}_{cycles:g}" for cycles in RIPPLE_CYCLES for wave in ("cos", "sin")),
)
# Part of the residual's standard deviation that ripple may have before anything is known.
_RIPPLE_SHARE = 0.7
# Ratio of friction to carried torque that a model may have missed.
_LOAD_STD = 0.02
# Motions have their power below this [Hz]; noise is measured where they are.
_BAND_HZ = 2.0
_SHORTEST_S = 4.0
# Rows per period of the low-pass that are enough for sums.
_PER_CUTOFF = 4.0
_ROUNDS = 2


def extra_columns(
    position: Float[Array, "n j"],
    speed: Float[Array, "n j"],
    direction: Float[Array, "n j"],
    load: Float[Array, "n j"],
) -> Float[Array, "n j k"]:
    """What no model holds, per joint: `EXTRAS` in their order."""
    out = np.empty((*position.shape, len(EXTRAS)))
    slow = np.array(LOW_SPEEDS)
    first = len(slow) + 1
    out[..., : first - 1] = np.sign(speed)[..., None] * np.exp(-np.abs(speed)[..., None] / slow)
    out[..., first - 1] = direction * np.abs(load)
    angle = position[..., None] * np.array(RIPPLE_CYCLES)
    out[..., first::2], out[..., first + 1 :: 2] = np.cos(angle), np.sin(angle)
    return out


def residual_structure(
    model: FittedModel, samples: Samples, predicted: Float[Array, "n j"]
) -> Residuals:
    """Noise density of each joint, and what is known of base parameters and extras together.

    Args:
        model: Fitted.
        samples: What it was fitted to.
        predicted: Its torque there.
    """
    joints = samples.joints
    stride = max(1, int(samples.rate_hz / (_PER_CUTOFF * samples.cutoff_hz)))
    thin = _Thin(samples, predicted, stride)
    residual, keep = thin.residual, thin.keep
    rms = np.sqrt(np.square(residual).sum(axis=0) / np.maximum(keep.sum(axis=0), 1))
    told = thin.densities(residual)
    known = replace(model.training.residuals, noise_density=told[0])
    base = [] if model.training.base is None else list(model.training.base.names)
    if not base or np.any(rms == 0.0) or not np.all(np.isfinite(rms)):
        return known
    columns = _Columns(model, samples, base, stride)
    names = [*base, *(joint_parameter(j, extra) for j in range(joints) for extra in EXTRAS)]
    grams = columns.grams(residual, keep, stride / samples.rate_hz)
    slow = len(LOW_SPEEDS)
    own = np.empty((joints, len(EXTRAS)))
    own[:, :slow], own[:, slow] = 3.0 * rms[:, None], _LOAD_STD
    own[:, slow + 1 :] = (_RIPPLE_SHARE * rms / np.sqrt(len(RIPPLE_CYCLES)))[:, None]
    prior = np.concatenate([np.zeros(len(base)), 1.0 / own.ravel() ** 2])
    for _ in range(_ROUNDS):
        total, target = np.diag(prior), np.zeros(len(names))
        for (at, gram), density in zip(grams, told[1], strict=True):
            total[np.ix_(at, at)] += gram[:-1, :-1] / density
            target[at] += gram[:-1, -1] / density
        # A direction that no row shows is known by nothing; it must not stop the rest.
        size = np.sqrt(np.maximum(np.diag(total), 1e-12))
        scaled = total / np.outer(size, size) + 1e-9 * np.eye(len(names))
        mean = np.linalg.solve(scaled, target / size) / size
        told = thin.densities(residual - columns.explained(mean) * keep)
    factor = np.linalg.cholesky(scaled).T * size
    structure = ResidualStructure(
        tuple(names),
        np.array([float(f"{x:.6g}") for x in mean]),
        np.array([float(f"{x:.10g}") for x in factor[np.triu_indices(len(names))]]),
    )
    return replace(known, noise_density=told[0], structure=structure)


class _Columns:
    """Base columns of the model, and the extras of every joint filtered as the torque was."""

    def __init__(self, model: FittedModel, samples: Samples, base: list[str], stride: int) -> None:
        self.model, self.stride = model, stride
        joints = model.robot.joints
        plain = SampleRows(model.structure, samples)
        rigid = plain.rigid(np.asarray(model.values))
        loaded = needs(model.friction, "load")
        load = model.values if loaded else None
        self.rows = SampleRows(model.structure, samples, load=load)
        self.base = np.array([model.names.index(name) for name in base])
        self.coupling = model.robot.drives.coupling
        speed = samples.friction_velocity
        if not np.array_equal(self.coupling, np.eye(joints)):
            speed = speed @ self.coupling.T
        direction = np.sign(speed)
        every = slice(None, None, stride)
        self.extras = extra_columns(
            samples.position[every], speed[every], direction[every], rigid[every]
        )
        # What follows position is slow and smooth already; what turns with velocity is not.
        for k, slow in enumerate(LOW_SPEEDS):
            raw = direction * np.exp(-np.abs(speed) / slow)
            self.extras[..., k] = lowpass(samples, raw)[every]
        raw = direction * np.abs(rigid)
        self.extras[..., len(LOW_SPEEDS)] = lowpass(samples, raw)[every]

    def blocks(self) -> Iterator[tuple[slice, Float[Array, "n j b"]]]:
        """Base columns of every stride-th sample, and which of them these are."""
        for first, last in self.rows.blocks():
            skip = -first % self.stride
            start = (first + skip) // self.stride
            block = self.rows.block(first + skip, last, self.stride)[..., self.base]
            yield slice(start, start + len(block)), block

    def grams(self, residual: Array, keep: Array, step: float) -> list[tuple[Array, Array]]:
        """Per joint its unknowns and the integral of [columns, residual]' [columns, residual]."""
        b, k = len(self.base), len(EXTRAS)
        out = []
        for j in range(residual.shape[1]):
            at = np.flatnonzero(np.isin(self.base, self.rows.live(j)))
            mine = [b + k * int(m) + np.arange(k) for m in np.flatnonzero(self.coupling[:, j])]
            every = np.concatenate([at, *mine])
            out.append((every, np.zeros((len(every) + 1,) * 2)))
        for part, block in self.blocks():
            for j, (every, gram) in enumerate(out):
                motors = np.flatnonzero(self.coupling[:, j])
                own = [self.extras[part, m] * self.coupling[m, j] for m in motors]
                links = block[:, j][:, every[every < b]]
                x = np.concatenate([links, *own, residual[part, j, None]], axis=1)
                x = x[keep[part, j]]
                gram += x.T @ x * step
        return out

    def explained(self, mean: Float[Array, " p"]) -> Float[Array, "n j"]:
        """X d + E e."""
        joints, b = self.model.robot.joints, len(self.base)
        own = np.einsum("nmk,mk->nm", self.extras, mean[b:].reshape(joints, -1))
        out = own @ self.coupling
        for part, block in self.blocks():
            out[part] += block @ mean[:b]
        return out


class _Thin:
    """Every stride-th sample of a residual: enough for a band far below its low-pass."""

    def __init__(self, samples: Samples, predicted: Array, stride: int) -> None:
        every = slice(None, None, stride)
        self.keep = (samples.keep & samples.in_motion[:, None])[every]
        self.residual = np.where(self.keep, (samples.torque - predicted)[every], 0.0)
        self.rate_hz = samples.rate_hz / stride
        self.band_hz = min(_BAND_HZ, samples.cutoff_hz)
        self.runs = []
        for run in samples.run_slices():
            period = find_period(samples.velocity[run], samples.rate_hz)
            lag = 0 if period is None else round(period * self.rate_hz)
            part = slice(-(-run.start // stride), -(-run.stop // stride))
            self.runs.append((part, lag))

    def densities(self, left: Float[Array, "n j"]) -> tuple[Array, Array]:
        """Power per hertz (two-sided) where motions have theirs: of a new run, and in the fit."""
        joints = left.shape[1]
        new, fit, weight = np.zeros(joints), np.zeros(joints), np.zeros(joints)
        for run, lag in self.runs:
            length = run.stop - run.start
            for j in range(joints):
                there, values = self.keep[run, j], left[run, j]
                seconds = np.count_nonzero(there) / self.rate_hz
                if seconds < _SHORTEST_S:
                    continue
                whole = between = self._power(values, there)
                repeats = 1.0
                if 0 < lag <= length // 2:
                    both = there[lag:] & there[:-lag]
                    apart = np.where(both, values[lag:] - values[:-lag], 0.0) / np.sqrt(2.0)
                    if np.count_nonzero(both) >= _SHORTEST_S * self.rate_hz:
                        between = min(self._power(apart, both), whole)
                        repeats = length / lag
                new[j] += seconds * whole
                fit[j] += seconds * (between + repeats * (whole - between))
                weight[j] += seconds
        short = weight == 0.0
        spread = np.square(left).sum(axis=0) / np.maximum(self.keep.sum(axis=0), 1)
        new[short] = fit[short] = 0.1 * spread[short]
        weight[short] = 1.0
        return np.maximum(new / weight, 1e-12), np.maximum(fit / weight, 1e-12)

    def _power(self, values: Array, there: Array) -> float:
        """|integral of r exp(-iwt)|^2 is the density times the seconds kept; mean over the band."""
        spectrum = np.abs(rfft(values) / self.rate_hz) ** 2
        frequency = rfftfreq(len(values), 1.0 / self.rate_hz)
        band = (frequency > 0.0) & (frequency <= self.band_hz)
        return float(spectrum[band].mean()) * self.rate_hz / np.count_nonzero(there)
