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

from dataclasses import dataclass, replace
from functools import cached_property
from operator import add

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.gaussian import unit_diagonal
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import Residuals, ResidualStructure
from taufit.regression.repeated_motion import BAND_HZ, repeated_power
from taufit.regression.result_reuse import reusable_model
from taufit.regression.rows import RowBuilder
from taufit.signals.estimates.periodicity import find_period
from taufit.signals.filtering import lowpass
from taufit.signals.sample_source import SampleSource, as_source
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
# Rows per period of the low-pass that are enough for sums.
_PER_CUTOFF = 4.0
_ROUNDS = 2
_BLOCK = 4096


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


def residual_structure(model: FittedModel, samples: Samples | SampleSource) -> Residuals:
    """Noise density of each joint, and what is known of base parameters and extras together.

    Args:
        model: Fitted.
        samples: What it was fitted to.
    """
    source = as_source(samples)
    joints = source.joints
    stride = max(1, int(source.rate_hz / (_PER_CUTOFF * source.cutoff_hz)))
    names = () if model.training.base is None else model.training.base.names
    base = np.array([model.layout.index(name) for name in names], int)
    settled = reusable_model(model, source)
    seen = source.total(_Look(settled, base, stride), add)
    densities = seen.densities
    known = replace(model.training.residuals, noise_density=densities[0])
    if not len(base) or np.any(seen.rms == 0.0) or not np.all(np.isfinite(seen.rms)):
        return known
    every = [*names, *(joint_parameter(j, extra) for j in range(joints) for extra in EXTRAS)]
    prior = np.concatenate([np.zeros(len(base)), 1.0 / _extra_std(seen.rms).ravel() ** 2])
    thin = _Thin(model, source.excerpt, base, stride)
    alone = thin.noise().densities
    for _ in range(_ROUNDS):
        total, target = np.diag(prior), np.zeros(len(every))
        for (at, gram), density in zip(seen.grams, densities[1], strict=True):
            total[np.ix_(at, at)] += gram[:-1, :-1] / density
            target[at] += gram[:-1, -1] / density
        # A direction that no row shows is known by nothing; it must not stop the rest.
        scaled, size = unit_diagonal(total, 1e-9)
        mean = np.linalg.solve(scaled, target / size) / size
        left = thin.noise(mean).densities
        # What the structure takes away is measured where samples are at hand.
        densities = tuple(
            now if source.excerpt_is_all else whole * now / before
            for whole, now, before in zip(seen.densities, left, alone, strict=True)
        )
    factor = np.linalg.cholesky(scaled).T * size
    structure = ResidualStructure(
        tuple(every),
        np.array([float(f"{x:.6g}") for x in mean]),
        np.array([float(f"{x:.10g}") for x in factor[np.triu_indices(len(every))]]),
    )
    return replace(known, noise_density=densities[0], structure=structure)


def _extra_std(rms: Float[Array, " j"]) -> Float[Array, "j k"]:
    """Of the extras, before anything is known of them."""
    slow = len(LOW_SPEEDS)
    own = np.empty((len(rms), len(EXTRAS)))
    own[:, :slow], own[:, slow] = 3.0 * rms[:, None], _LOAD_STD
    own[:, slow + 1 :] = (_RIPPLE_SHARE * rms / np.sqrt(len(RIPPLE_CYCLES)))[:, None]
    return own


@dataclass(frozen=True, slots=True, eq=False)
class _NoiseSums:
    """Sums over residuals of some runs, per joint.

    Attributes:
        new, fit: Power per hertz of a new run and in the fit, times seconds.
        seconds: That they are from.
        square: Sum of squares.
        count: Of how many.
    """

    new: Float[Array, " j"]
    fit: Float[Array, " j"]
    seconds: Float[Array, " j"]
    square: Float[Array, " j"]
    count: Int[Array, " j"]

    def __add__(self, other: _NoiseSums) -> _NoiseSums:
        return _NoiseSums(
            self.new + other.new,
            self.fit + other.fit,
            self.seconds + other.seconds,
            self.square + other.square,
            self.count + other.count,
        )

    @property
    def densities(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """Power per hertz (two-sided) where motions have theirs: of a new run, and in the fit."""
        short = self.seconds == 0.0
        spread = 0.1 * self.square / np.maximum(self.count, 1)
        weight = np.where(short, 1.0, self.seconds)
        new = np.where(short, spread, self.new / weight)
        fit = np.where(short, spread, self.fit / weight)
        return np.maximum(new, 1e-12), np.maximum(fit, 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualTotals:
    """What a pass over the residuals adds up.

    Attributes:
        noise: Sums over residuals.
        grams: Per joint its unknowns and the integral of [columns, residual]' [columns, residual].
    """

    noise: _NoiseSums
    grams: tuple[tuple[Int[Array, " u"], Float[Array, "v v"]], ...]

    def __add__(self, other: _ResidualTotals) -> _ResidualTotals:
        both = zip(self.grams, other.grams, strict=True)
        return _ResidualTotals(
            self.noise + other.noise, tuple((at, a + b) for (at, a), (_, b) in both)
        )

    @property
    def rms(self) -> Float[Array, " j"]:
        return np.asarray(np.sqrt(self.noise.square / np.maximum(self.noise.count, 1)))

    @property
    def densities(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        return self.noise.densities


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    model: FittedModel
    base: Int[Array, " b"]
    stride: int

    def __call__(self, part: Samples) -> _ResidualTotals:
        thin = _Thin(self.model, part, self.base, self.stride)
        grams = thin.grams() if len(self.base) else ()
        return _ResidualTotals(thin.noise(), grams)


class _Thin:
    """Every stride-th sample of a residual: enough for a band far below its low-pass."""

    def __init__(
        self, model: FittedModel, samples: Samples, base: Int[Array, " b"], stride: int
    ) -> None:
        self.base, self.stride, self.samples = base, stride, samples
        self.coupling = model.robot.drives.coupling
        self.rows = RowBuilder(model.structure, model.values)(samples)
        self.keep = samples.keep & samples.in_motion[:, None]
        predicted = self.rows.explained(model.values)
        self.residual = np.where(self.keep, samples.torque - predicted, 0.0)
        self.rate_hz = samples.rate_hz / stride
        self.band_hz = min(BAND_HZ, samples.cutoff_hz)
        self.rigid = self.rows.rigid(model.values)

    @cached_property
    def extras(self) -> Float[Array, "m j k"]:
        """Extras of every joint at the samples that are looked at, filtered as the torque was."""
        samples, every = self.samples, slice(None, None, self.stride)
        speed = samples.friction_velocity
        if not np.array_equal(self.coupling, np.eye(samples.joints)):
            speed = speed @ self.coupling.T
        direction = np.sign(speed)
        out = extra_columns(
            samples.position[every], speed[every], direction[every], self.rigid[every]
        )
        # What follows position is slow and smooth already; what turns with velocity is not.
        for k, slow in enumerate(LOW_SPEEDS):
            out[..., k] = lowpass(samples, direction * np.exp(-np.abs(speed) / slow))[every]
        out[..., len(LOW_SPEEDS)] = lowpass(samples, direction * np.abs(self.rigid))[every]
        return out

    def grams(self) -> tuple[tuple[Int[Array, " u"], Float[Array, "v v"]], ...]:
        b, k, joints = len(self.base), len(EXTRAS), self.samples.joints
        motors = [np.flatnonzero(self.coupling[:, j]) for j in range(joints)]
        out: dict[int, tuple[Int[Array, " u"], Float[Array, "v v"]]] = {}
        for first, last in self.rows.blocks(_BLOCK * self.stride):
            first += -first % self.stride
            found = self.rows.joint_columns(first, last, self.stride, self.base)
            every = slice(first, last, self.stride)
            part = slice(first // self.stride, first // self.stride + found[0][1].shape[1])
            for j, (at, links) in enumerate(found):
                keep = self.keep[every, j]
                own = [(self.extras[part, m] * self.coupling[m, j]).T for m in motors[j]]
                x = np.concatenate([links, *own, self.residual[every, j][None]]) * keep
                unknowns = np.concatenate([at, *(b + k * int(m) + np.arange(k) for m in motors[j])])
                gram = x @ x.T / self.rate_hz
                out[j] = unknowns, gram + (out[j][1] if j in out else 0.0)
        return tuple(out[j] for j in range(joints))

    def noise(self, mean: Float[Array, " u"] | None = None) -> _NoiseSums:
        """Of the residuals, or of what is left of them without a structure X d + E e."""
        every = slice(None, None, self.stride)
        keep, left = self.keep[every], self.residual[every]
        if mean is not None:
            b, joints = len(self.base), self.samples.joints
            theta = np.zeros(len(self.rows.names))
            theta[self.base] = mean[:b]
            own = np.einsum("nmk,mk->nm", self.extras, mean[b:].reshape(joints, -1))
            left = left - (self.rows.explained(theta)[every] + own @ self.coupling) * keep
        joints = left.shape[1]
        new, fit, weight = np.zeros(joints), np.zeros(joints), np.zeros(joints)
        for run in self.samples.run_slices():
            period = find_period(self.samples.velocity[run], self.samples.rate_hz)
            lag = 0 if period is None else round(period * self.rate_hz)
            part = slice(-(-run.start // self.stride), -(-run.stop // self.stride))
            for j in range(joints):
                there = keep[part, j]
                found = repeated_power(left[part, j], there, lag, self.rate_hz, self.band_hz)
                if found is not None:
                    seconds = np.count_nonzero(there) / self.rate_hz
                    new[j] += seconds * found[0]
                    fit[j] += seconds * found[1]
                    weight[j] += seconds
        return _NoiseSums(new, fit, weight, np.square(left).sum(axis=0), keep.sum(axis=0))
