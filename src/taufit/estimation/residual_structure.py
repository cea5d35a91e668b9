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

from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.estimation.rows import SampleRows
from taufit.signals.filtering import lowpass
from taufit.signals.periodicity import find_period
from taufit.signals.samples import Samples
from taufit.torque_model import TorqueModel

# Cycles per turn (or per metre) of torque that repeats with position.
RIPPLE_CYCLES = (2.0, 4.0, 8.0, 16.0)
# Speeds over which friction differs from the model and comes back to it [rad/s or m/s].
LOW_SPEEDS = (0.1, 0.4)
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
_ROUNDS = 3


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
    model: TorqueModel, samples: Samples, predicted: Float[Array, "n j"]
) -> dict[str, Any]:
    """Noise density of each joint, and what is known of base parameters and extras together.

    Plain data for a model file: "noise_density" of a new run [(N m)^2 s], and under "doubt" the
    names of the unknowns, their most probable values given the residuals, and the rows of the
    upper triangle R with R'R their information.

    Args:
        model: Fitted.
        samples: What it was fitted to.
        predicted: Its torque there.
    """
    joints = samples.joints
    keep = samples.keep & samples.in_motion[:, None]
    residual = np.where(keep, samples.torque - predicted, 0.0)
    count = np.maximum(keep.sum(axis=0), 1)
    rms = np.sqrt(np.square(residual).sum(axis=0) / count)
    names = list(model.meta.get("base", {}).get("names") or ())
    told = _densities(residual, keep, samples)
    if not names or np.any(rms == 0.0) or not np.all(np.isfinite(rms)):
        return {"noise_density": told[0].tolist()}
    grams, names = _grams(model, samples, residual, keep, names)
    prior = np.zeros(len(names))
    own = np.empty((joints, len(EXTRAS)))
    slow = len(LOW_SPEEDS)
    own[:, :slow], own[:, slow] = rms[:, None], _LOAD_STD
    own[:, slow + 1 :] = (_RIPPLE_SHARE * rms / np.sqrt(len(RIPPLE_CYCLES)))[:, None]
    prior[-own.size :] = 1.0 / own.ravel() ** 2
    for _ in range(_ROUNDS):
        total = np.diag(prior)
        target = np.zeros(len(names))
        for (at, gram), density in zip(grams, told[1], strict=True):
            total[np.ix_(at, at)] += gram[:-1, :-1] / density
            target[at] += gram[:-1, -1] / density
        # A direction that no row shows is known by nothing; it must not stop the rest.
        size = np.sqrt(np.maximum(np.diag(total), 1e-12))
        scaled = total / np.outer(size, size) + 1e-9 * np.eye(len(names))
        mean = np.linalg.solve(scaled, target / size) / size
        left = residual - _explained(model, samples, mean, names) * keep
        told = _densities(left, keep, samples)
    factor = np.linalg.cholesky(scaled).T * size
    return {
        "noise_density": told[0].tolist(),
        "doubt": {
            "names": names,
            "mean": [float(f"{x:.6g}") for x in mean],
            "factor": [float(f"{x:.6g}") for x in factor[np.triu_indices(len(names))]],
        },
    }


def _columns(
    model: TorqueModel, samples: Samples, step: int = 1
) -> tuple[SampleRows, Float[Array, "n j k"]]:
    """Rows of the model, and the extras of every joint filtered as the torque was."""
    joints = model.robot.joints
    plain = SampleRows(model, samples)
    rigid = plain.rigid(np.asarray(model.values))
    loaded = model.friction is not None and model.friction.uses_load
    rows = SampleRows(model, samples, load=rigid) if loaded else plain
    speed = samples.friction_velocity
    coupling = model.robot.drives.coupling
    motor = speed if np.array_equal(coupling, np.eye(joints)) else speed @ coupling.T
    extras = extra_columns(samples.position, motor, np.sign(motor), rigid)
    # What follows position is slow and smooth already.
    fast = len(LOW_SPEEDS) + 1
    extras[..., :fast] = lowpass(samples, extras[..., :fast])
    return rows, extras


def _grams(
    model: TorqueModel,
    samples: Samples,
    residual: Array,
    keep: Array,
    base: list[str],
) -> tuple[list[tuple[Array, Array]], list[str]]:
    """Per joint its unknowns and the integral of [columns, residual]' [columns, residual]."""
    rows, extras = _columns(model, samples)
    joints, k = samples.joints, len(EXTRAS)
    columns = np.array([model.names.index(name) for name in base])
    names = [*base, *(f"joint_{j + 1}.{extra}" for j in range(joints) for extra in EXTRAS)]
    stride = max(1, int(samples.rate_hz / (_PER_CUTOFF * samples.cutoff_hz)))
    coupling = model.robot.drives.coupling
    out = []
    for j in range(joints):
        at = np.flatnonzero(np.isin(columns, rows.live(j)))
        motors = np.flatnonzero(coupling[:, j])
        mine = [len(base) + k * int(m) + np.arange(k) for m in motors]
        width = len(at) + k * len(motors)
        out.append((np.concatenate([at, *mine]), np.zeros((width + 1, width + 1))))
    for first, last in rows.blocks():
        block = rows.block(first, last)[::stride]
        part = slice(first, last, stride)
        for j, (at, gram) in enumerate(out):
            motors = np.flatnonzero(coupling[:, j])
            own = [extras[part, m] * coupling[m, j] for m in motors]
            links = block[:, j][:, columns[at[at < len(base)]]]
            x = np.concatenate([links, *own, residual[part, j, None]], axis=1)
            x = x[keep[part, j]]
            gram += x.T @ x * (stride / samples.rate_hz)
    return out, names


def _explained(
    model: TorqueModel, samples: Samples, mean: Array, names: list[str]
) -> Float[Array, "n j"]:
    """X d + E e at every sample."""
    rows, extras = _columns(model, samples)
    joints, k = samples.joints, len(EXTRAS)
    theta = np.zeros(len(model.names))
    base = len(names) - joints * k
    for name, value in zip(names[:base], mean[:base], strict=True):
        theta[model.names.index(name)] = value
    own = np.einsum("nmk,mk->nm", extras, mean[base:].reshape(joints, k))
    out = own @ model.robot.drives.coupling
    for first, last in rows.blocks():
        out[first:last] += rows.block(first, last) @ theta
    return out


def _densities(left: Array, keep: Array, samples: Samples) -> tuple[Array, Array]:
    """Power per hertz (two-sided) where motions have theirs: of a new run, and in the fit."""
    new, fit = np.zeros(samples.joints), np.zeros(samples.joints)
    weight = np.zeros(samples.joints)
    for run in samples.run_slices():
        period = find_period(samples.velocity[run], samples.rate_hz)
        length = run.stop - run.start
        lag = 0 if period is None else round(period * samples.rate_hz)
        for j in range(samples.joints):
            there, values = keep[run, j], left[run, j]
            seconds = float(np.count_nonzero(there)) / samples.rate_hz
            if seconds < _SHORTEST_S:
                continue
            whole = between = _power(values, there, samples)
            repeats = 1.0
            if 0 < lag <= length // 2:
                both = there[lag:] & there[:-lag]
                apart = np.where(both, values[lag:] - values[:-lag], 0.0) / np.sqrt(2.0)
                if np.count_nonzero(both) >= _SHORTEST_S * samples.rate_hz:
                    between = min(_power(apart, both, samples), whole)
                    repeats = length / lag
            new[j] += seconds * whole
            fit[j] += seconds * (between + repeats * (whole - between))
            weight[j] += seconds
    short = weight == 0.0
    spread = np.square(left).sum(axis=0) / np.maximum(keep.sum(axis=0), 1)
    new[short] = fit[short] = 0.1 * spread[short]
    weight[short] = 1.0
    return np.maximum(new / weight, 1e-12), np.maximum(fit / weight, 1e-12)


def _power(values: Array, there: Array, samples: Samples) -> float:
    """|integral of r exp(-iwt)|^2 is the density times the seconds kept; mean over the band."""
    spectrum = np.abs(np.fft.rfft(values) / samples.rate_hz) ** 2
    frequency = np.fft.rfftfreq(len(values), 1.0 / samples.rate_hz)
    band = (frequency > 0.0) & (frequency <= min(_BAND_HZ, samples.cutoff_hz))
    return float(spectrum[band].mean()) * samples.rate_hz / np.count_nonzero(there)
