"""What is unknown when a known arm carries something, and what is believed beforehand.

    y = W_n phi + Y d + extras + noise

phi are the ten parameters of the payload, d the error of the model's own base parameters (its
covariance, wider for friction, which changes with temperature and load), extras what no model
holds: friction at low speed and under load, and where friction stood before the motion began.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taufit.arrays import Array, Float, Int
from taufit.errors import TaufitError
from taufit.estimation.residual_structure import RIPPLE_CYCLES, RIPPLE_SHARE
from taufit.friction import Presliding
from taufit.payload.dahl import BREAKAWAY_SHARES, BREAKAWAY_WIDTHS
from taufit.payload.settings import PayloadSettings
from taufit.torque_model import TorqueModel

# Typical speed at which friction terms are compared [rad/s or m/s].
TYPICAL_SPEED = 0.5
# Speed over which friction at low speed differs from the model [rad/s or m/s].
LOW_SPEED = 0.1
# Relative standard deviation of base parameters where a model has no covariance.
UNKNOWN_COVARIANCE = 0.05
# Change of the drives since the model was fitted, as a share of the arm's own torque.
DRIFT_STD = 0.003
# Factor on the variance of ripple seen in training.
RIPPLE_DOUBT = 4.0
# Ratio of friction to carried torque that a model may have missed: known to it, or not at all.
LOAD_STD = (0.01, 0.02)


@dataclass(frozen=True, slots=True, eq=False)
class Unknowns:
    """The columns of a payload's equations and the prior of all but the payload.

    Attributes:
        base: Positions of the model's base parameters in its names.
        names: Of all columns.
        prior: Information (inverse covariance) of all columns; zero for the payload's ten.
        target: Information times the mean believed in beforehand.
        rows: Per joint, the columns its rows have.
        fading: Torque per unit of each element's unknown state, per motor [N m].
        level: Friction at low speed per motor [N m].
        density: Noise density per joint [(N m)^2 s].
        rms: Noise per joint [N m].
        parts: Which part of the error each column belongs to: payload, links, friction.
        covariance: Whether the model came with one.
    """

    base: Int[Array, " b"]
    names: tuple[str, ...]
    prior: Float[Array, "p p"]
    target: Float[Array, " p"]
    rows: tuple[Int[Array, " c"], ...]
    fading: Float[Array, "j w"]
    level: Float[Array, " j"]
    density: Float[Array, " j"]
    rms: Float[Array, " j"]
    parts: tuple[str, ...]
    covariance: bool

    def __len__(self) -> int:
        return len(self.names)


def unknowns(model: TorqueModel, settings: PayloadSettings) -> Unknowns:
    """Columns and prior for a fitted model."""
    if model.values is None:
        raise TaufitError(
            "this model has no parameters yet. Fit it to recordings of the empty arm first "
            "(`taufit fit`)."
        )
    joints = model.robot.joints
    names = list(model.names)
    told = model.meta.get("base", {})
    covariance = told.get("covariance")
    if told.get("names") and covariance is not None:
        base = np.array([names.index(name) for name in told["names"]])
        spread = np.array(covariance, float)
        known = spread.shape == (len(base), len(base)) and bool(np.all(np.isfinite(spread)))
    else:
        base, spread, known = np.arange(0), np.zeros((0, 0)), False
    if not known:
        base, spread = _guessed(model)
    # In the order of the model's own names: links first.
    order = np.argsort(base)
    base, spread = base[order], spread[np.ix_(order, order)]
    level = friction_level(model)
    spread = 0.5 * (spread + spread.T) + np.diag(_friction_variance(model, base, level, settings))
    size = np.sqrt(np.maximum(np.diag(spread), 0.0))
    size[size == 0.0] = 1e-9
    scaled = spread / np.outer(size, size)
    # Base parameters that one motion could not tell apart are still finite in number.
    values, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(values, 1e-6)) @ vectors.T / np.outer(size, size)

    widths, fading = _fading(model, level)
    waves = [f"{wave}_{cycles:g}" for cycles in RIPPLE_CYCLES for wave in ("cos", "sin")]
    starts = [f"start_{k + 1}" for k in range(len(widths))]
    extra = ["low_speed", "load", "drift", *waves, *starts]
    load_std = LOAD_STD[0 if model.friction is not None and model.friction.uses_load else 1]
    extra_std = np.empty((joints, len(extra)))
    extra_std[:, 0] = settings.friction_change * np.maximum(level, 1e-3)
    extra_std[:, 1] = load_std
    density, rms = noise_of(model, settings)
    extra_std[:, 2] = DRIFT_STD
    extra_std[:, 3 : 3 + len(waves)] = (RIPPLE_SHARE * rms / np.sqrt(len(RIPPLE_CYCLES)))[:, None]
    extra_std[:, 3 + len(waves) :] = 0.7
    total = 10 + len(base) + joints * len(extra)
    prior = np.zeros((total, total))
    prior[10 : 10 + len(base), 10 : 10 + len(base)] = inverse
    at = np.arange(10 + len(base), total)
    prior[at, at] = 1.0 / extra_std.ravel() ** 2
    target = np.zeros(total)
    _known_ripple(model, extra_std[:, 3], prior, target, 10 + len(base), len(extra))

    coupling = model.robot.drives.coupling
    all_names = (
        *(f"payload.{k}" for k in range(10)),
        *(names[i] for i in base),
        *(f"joint_{i + 1}.{name}" for i in range(joints) for name in extra),
    )
    rows = tuple(
        np.array([i for i, name in enumerate(all_names) if _touches(name, j, coupling)])
        for j in range(joints)
    )
    parts = tuple(
        "payload" if n.startswith("payload") else "links" if _inertial(n) else "friction"
        for n in all_names
    )
    return Unknowns(
        base, all_names, prior, target, rows, fading, level, density, rms, parts, bool(known)
    )


def noise_of(
    model: TorqueModel, settings: PayloadSettings
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Noise density and rms per joint, from what the model left over in training.

    Residuals hang together over a time T_c, so a second of them is worth 1/(2 T_c) values; the
    density is their variance times 2 T_c.
    """
    joints = model.robot.joints
    score, conditioning = model.meta.get("score", {}), model.meta.get("conditioning", {})
    rms = score.get("rmse", conditioning.get("residual_rms"))
    if rms is None or len(rms) != joints or not all(x and np.isfinite(x) for x in rms):
        span = model.meta.get("range", {}).get("torque")
        if span is None:
            swing = np.maximum(friction_level(model) * 5.0, 1.0)
        else:
            swing = np.array(span["high"], float) - np.array(span["low"], float)
        rms = 0.03 * np.maximum(swing, 1e-3)
    sigma = np.array(rms, float)
    density = score.get("noise_density")
    if density is not None and len(density) == joints and all(x and x > 0.0 for x in density):
        out = np.array(density, float)
    else:
        rate = float(conditioning.get("rate_hz") or 100.0)
        settled = model.meta.get("provenance", {}).get("settings", {}).get("estimator_settings", {})
        together = float(settled.get("correlation_samples") or 0.12 * rate)
        out = sigma**2 * together / rate
    return settings.noise_factor * out, sigma


def friction_level(model: TorqueModel) -> Float[Array, " j"]:
    """Friction of each motor at low speed, half of what separates the two directions [N m]."""
    joints = model.robot.joints
    if model.friction is None or model.values is None:
        return np.zeros(joints)
    terms = len(model.friction.terms)
    first = 10 * joints + joints * model.rotor_inertia
    own = np.asarray(model.values)[first : first + joints * terms].reshape(joints, terms)
    slow = np.full((1, joints), 0.05)
    still = np.zeros((1, joints))
    warm = _temperature(model)
    both = [
        np.einsum("njk,jk->j", model.motor_friction(s * slow, load=still, temperature=warm), own)
        for s in (1.0, -1.0)
    ]
    return np.abs(both[0] - both[1]) / 2.0


def _temperature(model: TorqueModel) -> Float[Array, "1 j"] | None:
    if model.friction is None or not model.friction.uses_temperature:
        return None
    span = model.meta.get("range", {}).get("temperature")
    if span is None:
        return np.full((1, model.robot.joints), 30.0)
    return 0.5 * (np.array(span["low"], float) + np.array(span["high"], float))[None]


def _guessed(model: TorqueModel) -> tuple[Array, Array]:
    """Base parameters and a wide covariance for a model that has none."""
    from taufit.dynamics import base_parameters

    found = base_parameters(model, rule="leftmost")
    values = found.mapping @ np.asarray(model.values)
    floor = np.median(np.abs(values[values != 0.0])) if np.any(values) else 1.0
    std = UNKNOWN_COVARIANCE * np.maximum(np.abs(values), 0.2 * floor)
    return np.asarray(found.columns), np.diag(std**2)


def _friction_variance(
    model: TorqueModel, base: Array, level: Array, settings: PayloadSettings
) -> Float[Array, " b"]:
    """Variance of friction since the fit: its own coefficients, and its level at typical speed."""
    joints = model.robot.joints
    out = np.zeros(len(base))
    names = model.names
    if model.friction is None:
        terms: list[str] = []
        columns = np.zeros((joints, 0))
    else:
        terms = [term.name for term in model.friction.terms]
        speed = np.full((1, joints), TYPICAL_SPEED)
        load = np.maximum(level, 1.0)[None] * 3.0
        columns = np.abs(model.motor_friction(speed, load=load, temperature=_temperature(model))[0])
    values = np.asarray(model.values)
    for i, column in enumerate(base):
        owner, _, term = names[int(column)].partition(".")
        if not owner.startswith("joint_"):
            continue
        j = int(owner.removeprefix("joint_")) - 1
        change = settings.friction_change
        if term in terms:
            out[i] = (change * values[int(column)]) ** 2
            per_unit = columns[j, terms.index(term)]
            if per_unit > 1e-3:
                out[i] += (0.5 * change * level[j] / per_unit) ** 2
        elif term == "offset":
            out[i] = (0.2 * change * level[j]) ** 2
    return out


def _fading(model: TorqueModel, level: Array) -> tuple[Array, Array]:
    """Widths, and torque per unit of unknown state: c_1 = F - sum P, c_k = P_k for Presliding."""
    joints = model.robot.joints
    if isinstance(model.friction, Presliding):
        widths = np.array(model.friction.widths)
        first = 10 * joints + joints * model.rotor_inertia
        terms = len(model.friction.terms)
        own = np.asarray(model.values)[first : first + joints * terms].reshape(joints, terms)
        out = np.abs(own[:, : len(widths)])
        out[:, 0] = np.maximum(out[:, 0] - out[:, 1:].sum(axis=1), 0.2 * out[:, 0])
        return widths, out
    return np.array(BREAKAWAY_WIDTHS), np.outer(np.maximum(level, 1e-3), BREAKAWAY_SHARES)


def _known_ripple(
    model: TorqueModel, std: Array, prior: Array, target: Array, first: int, width: int
) -> None:
    """What the training data left over that repeats with position, as prior of its columns."""
    told = model.meta.get("score", {}).get("ripple")
    if not told or tuple(told.get("cycles", ())) != RIPPLE_CYCLES:
        return
    means = np.array(told["coefficients"], float)
    spreads = np.array(told["covariance"], float)
    for j in range(model.robot.joints):
        if std[j] <= 0.0 or not np.any(spreads[j]):
            continue
        # Fitted on another motion it is known less well than it seems there.
        information = np.linalg.inv(RIPPLE_DOUBT * spreads[j])
        at = first + j * width + 3 + np.arange(len(means[j]))
        prior[np.ix_(at, at)] = information
        target[at] = information @ means[j]


def _inertial(name: str) -> bool:
    return name.startswith("link_") or name.endswith((".rotor", ".drift"))


def _touches(name: str, joint: int, coupling: Array) -> bool:
    owner, _, term = name.partition(".")
    if owner == "payload":
        return True
    number = int(owner.rpartition("_")[2]) - 1
    if owner.startswith("link_"):
        return number >= joint
    if term == "offset":
        return number == joint
    return bool(coupling[number, joint] != 0.0)
