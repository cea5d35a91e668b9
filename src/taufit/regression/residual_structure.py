"""Structure of the residuals of a fitted model, stored for later runs of the same robot.

The residual of the fit is modelled as errors d of the base parameters, unmodelled torque that is
repeatable (ripple, friction at low speed and under load, coefficients e), and noise of density S,

    r = X d + E e + noise,        e ~ N(0, prior),

estimated jointly: where a motion repeats, X d + E e is known well although neither is; elsewhere it
is not, and the joint information quantifies that. n repeats of a motion average the noise but not
the structure, so the effective noise power in the fit is

    S_fit = S_between + n (S - S_between),

with S_between the power of differences from period to period.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from operator import add

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.gaussian import unit_diagonal
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import Residuals, ResidualStructure
from taufit.regression.repeated_motion import BAND_HZ, power_with_repeats
from taufit.regression.result_reuse import reusable_model
from taufit.regression.rows import RowBuilder
from taufit.signals.estimates.periodicity import find_period
from taufit.signals.filtering import lowpass
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples

# Orders of torque ripple considered [cycles per turn or per metre].
RIPPLE_CYCLES = (2.0, 4.0, 8.0, 16.0)
# Speed scales over which low-speed friction errors decay [rad/s or m/s].
LOW_SPEEDS = (0.03, 0.1, 0.4)
EXTRAS = (
    *(f"below_{speed:g}" for speed in LOW_SPEEDS),
    "load",
    *(f"{wave}_{cycles:g}" for cycles in RIPPLE_CYCLES for wave in ("cos", "sin")),
)
# Prior standard deviation of ripple, relative to that of the residual.
_RIPPLE_SHARE = 0.7
# Prior standard deviation of unmodelled load friction [-].
_LOAD_STD = 0.02
# Samples per period of the cut-off frequency that suffice for sums.
_PER_CUTOFF = 4.0
_ROUNDS = 2
_BLOCK = 4096


def extra_columns(
    position: Float[Array, "n j"],
    speed: Float[Array, "n j"],
    direction: Float[Array, "n j"],
    load: Float[Array, "n j"],
) -> Float[Array, "n j k"]:
    """Columns of unmodelled torque per joint, in the order of `EXTRAS`."""
    out = np.empty((*position.shape, len(EXTRAS)))
    slow = np.array(LOW_SPEEDS)
    first = len(slow) + 1
    out[..., : first - 1] = np.sign(speed)[..., None] * np.exp(-np.abs(speed)[..., None] / slow)
    out[..., first - 1] = direction * np.abs(load)
    angle = position[..., None] * np.array(RIPPLE_CYCLES)
    out[..., first::2], out[..., first + 1 :: 2] = np.cos(angle), np.sin(angle)
    return out


def residual_structure(model: FittedModel, samples: Samples | SampleSource) -> Residuals:
    """Estimate noise density of each joint, and joint information on base parameters and extras.

    Args:
        model: Fitted model.
        samples: Training samples.
    """
    source = as_source(samples)
    joints = source.joints
    stride = max(1, int(source.rate_hz / (_PER_CUTOFF * source.cutoff_hz)))
    names = () if model.training.base is None else model.training.base.names
    base = np.array([model.layout.index(name) for name in names], int)
    reference_model = reusable_model(model, source)
    totals = source.total(_ResidualPass(reference_model, base, stride), add)
    densities = totals.densities
    residuals = replace(model.training.residuals, noise_density=densities[0])
    if not len(base) or np.any(totals.rms == 0.0) or not np.all(np.isfinite(totals.rms)):
        return residuals
    names_and_extras = [
        *names,
        *(joint_parameter(j, extra) for j in range(joints) for extra in EXTRAS),
    ]
    prior = np.concatenate([np.zeros(len(base)), 1.0 / _extra_std(totals.rms).ravel() ** 2])
    thin = _ThinnedResidual(model, source.excerpt, base, stride)
    excerpt_densities = thin.noise().densities
    for _ in range(_ROUNDS):
        total, target = np.diag(prior), np.zeros(len(names_and_extras))
        for (indices, gram), density in zip(totals.grams, densities[1], strict=True):
            total[np.ix_(indices, indices)] += gram[:-1, :-1] / density
            target[indices] += gram[:-1, -1] / density
        # Unidentifiable directions must not make the matrix singular.
        scaled, size = unit_diagonal(total, 1e-9)
        mean = np.linalg.solve(scaled, target / size) / size
        corrected = thin.noise(mean).densities
        # The noise reduction by the structure is evaluated on the excerpt in memory.
        densities = tuple(
            after if source.excerpt_is_all else total_density * after / initial
            for total_density, after, initial in zip(
                totals.densities, corrected, excerpt_densities, strict=True
            )
        )
    factor = np.linalg.cholesky(scaled).T * size
    structure = ResidualStructure(
        tuple(names_and_extras),
        np.array([float(f"{x:.6g}") for x in mean]),
        np.array([float(f"{x:.10g}") for x in factor[np.triu_indices(len(names_and_extras))]]),
    )
    return replace(residuals, noise_density=densities[0], structure=structure)


def _extra_std(rms: Float[Array, " j"]) -> Float[Array, "j k"]:
    """Prior standard deviations of the extras."""
    slow = len(LOW_SPEEDS)
    std = np.empty((len(rms), len(EXTRAS)))
    std[:, :slow], std[:, slow] = 3.0 * rms[:, None], _LOAD_STD
    std[:, slow + 1 :] = (_RIPPLE_SHARE * rms / np.sqrt(len(RIPPLE_CYCLES)))[:, None]
    return std


@dataclass(frozen=True, slots=True, eq=False)
class _NoiseSums:
    """Sums over residuals of some runs, per joint.

    Attributes:
        run_power, fit_power: Power density of a new run and effective power density in the fit,
            times seconds.
        seconds: Duration of the residuals [s].
        square: Sum of squares.
        count: Number of samples.
    """

    run_power: Float[Array, " j"]
    fit_power: Float[Array, " j"]
    seconds: Float[Array, " j"]
    square: Float[Array, " j"]
    count: Int[Array, " j"]

    def __add__(self, other: _NoiseSums) -> _NoiseSums:
        return _NoiseSums(
            self.run_power + other.run_power,
            self.fit_power + other.fit_power,
            self.seconds + other.seconds,
            self.square + other.square,
            self.count + other.count,
        )

    @property
    def densities(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        """Two-sided power density in the band of motions: of a new run, and in the fit."""
        without_data = self.seconds == 0.0
        white_density = 0.1 * self.square / np.maximum(self.count, 1)
        weight = np.where(without_data, 1.0, self.seconds)
        run_density = np.where(without_data, white_density, self.run_power / weight)
        fit_density = np.where(without_data, white_density, self.fit_power / weight)
        return np.maximum(run_density, 1e-12), np.maximum(fit_density, 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualTotals:
    """Sums of a pass over the residuals.

    Attributes:
        noise: Sums over residuals.
        grams: Per joint its parameters and the integral of [columns, residual]' [columns,
            residual].
    """

    noise: _NoiseSums
    grams: tuple[tuple[Int[Array, " _"], Float[Array, "_ _"]], ...]

    def __add__(self, other: _ResidualTotals) -> _ResidualTotals:
        pairs = zip(self.grams, other.grams, strict=True)
        return _ResidualTotals(
            self.noise + other.noise, tuple((indices, a + b) for (indices, a), (_, b) in pairs)
        )

    @property
    def rms(self) -> Float[Array, " j"]:
        return np.asarray(np.sqrt(self.noise.square / np.maximum(self.noise.count, 1)))

    @property
    def densities(self) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
        return self.noise.densities


@dataclass(frozen=True, slots=True, eq=False)
class _ResidualPass:
    model: FittedModel
    base: Int[Array, " b"]
    stride: int

    def __call__(self, part: Samples) -> _ResidualTotals:
        thinned = _ThinnedResidual(self.model, part, self.base, self.stride)
        grams = thinned.grams() if len(self.base) else ()
        return _ResidualTotals(thinned.noise(), grams)


class _ThinnedResidual:
    """Every stride-th sample of a residual: enough for a band far below its cut-off."""

    def __init__(
        self, model: FittedModel, samples: Samples, base: Int[Array, " b"], stride: int
    ) -> None:
        self.base, self.stride, self.samples = base, stride, samples
        self.coupling = model.robot.drives.coupling
        self.rows = RowBuilder(model.structure, model.values)(samples)
        self.keep = samples.keep & samples.in_motion[:, None]
        predicted = self.rows.predict(model.values)
        self.residual = np.where(self.keep, samples.torque - predicted, 0.0)
        self.rate_hz = samples.rate_hz / stride
        self.band_hz = min(BAND_HZ, samples.cutoff_hz)
        self.rigid = self.rows.rigid_torque(model.values)

    @cached_property
    def extras(self) -> Float[Array, "m j k"]:
        """Extras of every joint at the thinned samples, filtered like the torque."""
        samples, thinned = self.samples, slice(None, None, self.stride)
        speed = samples.friction_velocity
        if not np.array_equal(self.coupling, np.eye(samples.joints)):
            speed = speed @ self.coupling.T
        direction = np.sign(speed)
        out = extra_columns(
            samples.position[thinned], speed[thinned], direction[thinned], self.rigid[thinned]
        )
        # Columns of position are smooth already; those with the sign of velocity need the low-pass.
        for k, speed_scale in enumerate(LOW_SPEEDS):
            out[..., k] = lowpass(samples, direction * np.exp(-np.abs(speed) / speed_scale))[
                thinned
            ]
        out[..., len(LOW_SPEEDS)] = lowpass(samples, direction * np.abs(self.rigid))[thinned]
        return out

    def grams(self) -> tuple[tuple[Int[Array, " _"], Float[Array, "_ _"]], ...]:
        b, k, joints = len(self.base), len(EXTRAS), self.samples.joints
        motors = [np.flatnonzero(self.coupling[:, j]) for j in range(joints)]
        out: dict[int, tuple[Int[Array, " u"], Float[Array, "v v"]]] = {}
        for first, last in self.rows.blocks(_BLOCK * self.stride):
            first += -first % self.stride
            joint_columns = self.rows.joint_columns(first, last, self.stride, self.base)
            thinned = slice(first, last, self.stride)
            part = slice(first // self.stride, first // self.stride + joint_columns[0][1].shape[1])
            for j, (indices, links) in enumerate(joint_columns):
                keep = self.keep[thinned, j]
                motor_extras = [(self.extras[part, m] * self.coupling[m, j]).T for m in motors[j]]
                x = np.concatenate([links, *motor_extras, self.residual[thinned, j][None]]) * keep
                unknowns = np.concatenate(
                    [indices, *(b + k * int(m) + np.arange(k) for m in motors[j])]
                )
                gram = x @ x.T / self.rate_hz
                out[j] = unknowns, gram + (out[j][1] if j in out else 0.0)
        return tuple(out[j] for j in range(joints))

    def noise(self, mean: Float[Array, " u"] | None = None) -> _NoiseSums:
        """Noise sums of the residuals, or of the residuals less a structure X d + E e."""
        thinned = slice(None, None, self.stride)
        keep, residual = self.keep[thinned], self.residual[thinned]
        if mean is not None:
            b, joints = len(self.base), self.samples.joints
            theta = np.zeros(len(self.rows.names))
            theta[self.base] = mean[:b]
            extra_torque = np.einsum("nmk,mk->nm", self.extras, mean[b:].reshape(joints, -1))
            residual = (
                residual - (self.rows.predict(theta)[thinned] + extra_torque @ self.coupling) * keep
            )
        joints = residual.shape[1]
        run_power, fit_power, weight = np.zeros(joints), np.zeros(joints), np.zeros(joints)
        for run in self.samples.run_slices():
            period = find_period(self.samples.velocity[run], self.samples.rate_hz)
            lag = 0 if period is None else round(period * self.rate_hz)
            part = slice(-(-run.start // self.stride), -(-run.stop // self.stride))
            for j in range(joints):
                valid = keep[part, j]
                power = power_with_repeats(
                    residual[part, j], valid, lag, self.rate_hz, self.band_hz
                )
                if power is not None:
                    seconds = np.count_nonzero(valid) / self.rate_hz
                    run_power[j] += seconds * power[0]
                    fit_power[j] += seconds * power[1]
                    weight[j] += seconds
        return _NoiseSums(
            run_power, fit_power, weight, np.square(residual).sum(axis=0), keep.sum(axis=0)
        )
