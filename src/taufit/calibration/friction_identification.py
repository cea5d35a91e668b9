"""Friction of all joints from recordings of friction tests, as a model that others can use.

Every joint's strokes in all recordings (payloads, temperatures, days) are fitted at once, each
joint with its own coefficients and shapes of one friction model. The model's links are those of the
robot, or of an earlier fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taufit.calibration.friction_pairs import FrictionPairs, pairs_in, weighted
from taufit.calibration.friction_test import (
    FrictionFit,
    carries_load,
    fit_friction,
    least_rms,
    load_column,
    load_factor,
)
from taufit.core.arrays import Array, Float
from taufit.core.errors import PoorExcitationError, TaufitError
from taufit.core.parameters import joint_parameter
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    Conditioning,
    FitSettings,
    Provenance,
    Ranges,
    TrainingRecord,
)
from taufit.recording import require_joints
from taufit.robot import Robot
from taufit.signals.samples import Samples
from taufit.terms import LOAD, friction_model, start_shape, term_to_dict
from taufit.terms.friction import FRICTION_MODELS, Friction

# What `auto` chooses from, and the same curve for a joint that carries no load.
AUTOMATIC = ("linear", "linear_load", "power_law", "polynomial", "stribeck", "stribeck_load_smooth")
# The form of the literature with load and speed, for comparison.
BESIDE = ("stribeck", "stribeck_load")
# Positions at which strokes are compared: enough to see their scatter.
_BINS = 4
# Temperature range within which friction is taken as it is [K].
_WARMED = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class JointFriction:
    """One joint's friction.

    Attributes:
        joint: From 1.
        pairs: What was measured.
        fit: The curve.
    """

    joint: int
    pairs: FrictionPairs
    fit: FrictionFit


@dataclass(frozen=True, slots=True, eq=False)
class FrictionIdentification:
    """Friction of an arm's joints.

    Attributes:
        name: Of the friction model.
        joints: One per joint tested.
        model: With this friction and the links of the robot or of an earlier fit.
        scores: Sum of the joints' BIC for every model that was tried; the smallest was chosen.
        warnings: What the user should know.
        fits: Every model that was tried, joint by joint.
    """

    name: str
    joints: tuple[JointFriction, ...]
    model: FittedModel
    scores: dict[str, float]
    warnings: tuple[str, ...]
    fits: dict[str, tuple[FrictionFit, ...]]

    @property
    def compared(self) -> dict[str, list[float]]:
        """RMS of the residuals of every joint, for every model that was tried [N m]."""
        return {name: [fit.rms for fit in fits] for name, fits in self.fits.items()}


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTestData:
    """What recordings of friction tests show.

    Attributes:
        pairs: Of every joint that has some.
        missing: Joints that have none, from 1.
        conditioning: Of the first recording.
        ranges: Over all of them.
    """

    pairs: tuple[FrictionPairs, ...]
    missing: tuple[int, ...]
    conditioning: Conditioning
    ranges: Ranges


def identify_friction(
    robot: Robot,
    samples: Iterable[Samples],
    *,
    friction: str = "auto",
    joints: Sequence[int] | None = None,
    passive: bool = True,
    links: FittedModel | None = None,
    beside: Sequence[str] = (),
) -> FrictionIdentification:
    """Friction of all joints from samples of friction tests.

    Args:
        robot: The arm.
        samples: Of one or several recordings; taken one by one, so they may be made on the way.
        friction: A model by name, or "auto" for the one BIC prefers over all joints.
        joints: Which ones, from 1; by default all that have strokes.
        passive: Keep the viscous part from falling with speed.
        links: A fitted model whose links are kept; the robot's own otherwise.
        beside: Models fitted for comparison only, by name.
    """
    names = AUTOMATIC if friction == "auto" else (friction,)
    unknown = [name for name in (*names, *beside) if name not in FRICTION_MODELS]
    if unknown:
        raise TaufitError(
            f"friction model {unknown[0]!r} is not known: use auto or {', '.join(FRICTION_MODELS)}."
        )
    tested = measured_pairs(robot, samples, joints)
    measured = tested.pairs
    top = robot.limits.velocity
    tried: dict[str, tuple[Friction, list[FrictionFit]]] = {}
    for name in names:
        tried[name] = _fitted(measured, FRICTION_MODELS[name](), passive, top)
    warm = _warming(measured, friction == "auto")
    if warm is not None:
        best = min(tried, key=lambda name: _score(tried[name][1]))
        following = friction_model("temperature_dependent", tried[best][0], "linear", warm)
        tried[f"{best}, temperature"] = _fitted(measured, following, passive, top)
    scores = {name: _score(found) for name, (_, found) in tried.items()}
    chosen = min(scores, key=lambda name: scores[name])
    curve, fits = tried[chosen]
    fits[:] = pool_load_coefficients(measured, curve, fits, passive, top)
    fits[:] = [
        replace(fit, full_rms=least_rms(pairs, curve))
        for pairs, fit in zip(measured, fits, strict=True)
    ]
    found = tuple(
        JointFriction(pairs.joint, pairs, fit) for pairs, fit in zip(measured, fits, strict=True)
    )
    warnings = [f"joint {one.joint}: {text}" for one in found for text in one.fit.warnings]
    if tested.missing:
        numbers = ", ".join(str(joint) for joint in tested.missing)
        warnings.append(f"joint {numbers} not tested: friction set to zero there")
    model = _assembled(robot, tested, curve, found, links, tuple(warnings))
    for name in beside:
        if name not in tried:
            tried[name] = _fitted(measured, FRICTION_MODELS[name](), passive, top)
            scores[name] = _score(tried[name][1])
    every = {name: tuple(fits) for name, (_, fits) in tried.items()}
    return FrictionIdentification(chosen, found, model, scores, tuple(warnings), every)


def _score(fits: Sequence[FrictionFit]) -> float:
    return float(sum(fit.score for fit in fits))


def _fitted(
    measured: Sequence[FrictionPairs],
    model: Friction,
    passive: bool,
    top: Float[Array, " j"],
) -> tuple[Friction, list[FrictionFit]]:
    """One model, fitted to every joint."""
    return model, [
        fit_joint(pairs, model, passive=passive, top_speed=_finite(top[pairs.joint - 1]))
        for pairs in measured
    ]


def _warming(measured: Sequence[FrictionPairs], automatic: bool) -> float | None:
    """Reference temperature where a joint warmed up enough to see what that does, else None."""
    warm = [pairs.temperature for pairs in measured if pairs.temperature is not None]
    if not automatic or len(warm) < len(measured):
        return None
    if max(float(np.ptp(one)) for one in warm) < _WARMED:
        return None
    return round(float(np.median(np.concatenate(warm))), 1)


def fit_joint(
    pairs: FrictionPairs,
    model: Friction,
    *,
    passive: bool = True,
    top_speed: float | None = None,
) -> FrictionFit:
    """`fit_friction`; a joint without load gets the model's curve with its load terms at zero."""
    plain = _felt(pairs, model)
    fit = fit_friction(pairs, plain, passive=passive, top_speed=top_speed)
    if plain is model:
        return fit
    fit = _in_terms_of(model, fit)
    loads = {one.name for one in model.parameters if one.group == LOAD}
    load_terms = ", ".join(name for name in fit.dropped if name in loads)
    return replace(fit, warnings=(*fit.warnings, f"carries no load; {load_terms} set to zero"))


def _in_terms_of(model: Friction, fit: FrictionFit) -> FrictionFit:
    """A curve without load terms as one of the model that has them; they are zero."""
    terms = [term.name for term in model.parameters]
    own = [term.name for term in fit.model.parameters]
    coefficients, std = np.zeros(len(terms)), np.zeros(len(terms))
    for i, name in enumerate(own):
        coefficients[terms.index(name)] = fit.coefficients[i]
        std[terms.index(name)] = fit.coefficient_std[i]
    shape, shape_std = start_shape(model), np.zeros(len(model.shapes))
    shape[: len(fit.shape)], shape_std[: len(fit.shape)] = fit.shape, fit.shape_std
    return replace(
        fit,
        model=model,
        coefficients=coefficients,
        coefficient_std=std,
        shape=shape,
        shape_std=shape_std,
        dropped=(*fit.dropped, *(name for name in terms if name not in own)),
    )


def pool_load_coefficients(
    measured: Sequence[FrictionPairs],
    model: Friction,
    fits: Sequence[FrictionFit],
    passive: bool,
    top: Float[Array, " j"],
) -> list[FrictionFit]:
    """The fits; a joint whose strokes do not show what load adds has what all joints show together.

    Gears of one arm are alike, within a half: k, friction per unit of load, is the weighted mean of
    the joints' values where a joint's own is neither twice its standard deviation nor contradicts.
    """
    plain, load = model.without_load(), load_column(model)
    if plain is None or load < 0:
        return list(fits)
    own = [load_factor(pairs, fit) for pairs, fit in zip(measured, fits, strict=True)]
    weight = np.array([std**-2 if std > 0.0 else 0.0 for _, std in own])
    common = float(weight @ [k for k, _ in own] / max(weight.sum(), 1e-300))
    deviation = float(max(weight.sum(), 1e-300) ** -0.5)
    if common < 2.0 * deviation:
        return list(fits)
    out = []
    for pairs, fit, (k, std) in zip(measured, fits, own, strict=True):
        if k > 2.0 * std or not abs(k - common) < 2.0 * std or not carries_load(pairs):
            out.append(fit)
            continue
        rest = replace(pairs, torque=pairs.torque - common * np.abs(pairs.load))
        again = fit_friction(rest, plain, passive=passive, top_speed=_finite(top[pairs.joint - 1]))
        again = _in_terms_of(model, again)
        again.coefficients[load] = common
        again.coefficient_std[load] = np.hypot(0.5 * common, deviation)
        dropped = tuple(name for name in again.dropped if name != model.parameters[load].name)
        zero = f"the data do not support {', '.join(dropped)}; set to zero"
        same = "friction by load is not shown by this joint's strokes; taken as in the other joints"
        said = tuple(text for text in again.warnings if "do not support" not in text)
        warnings = (*((zero,) if dropped else ()), same, *said)
        out.append(replace(again, dropped=dropped, warnings=warnings, score=fit.score))
    return out


def _felt(pairs: FrictionPairs, model: Friction) -> Friction:
    """The model, without its load terms where these pairs carry no load."""
    plain = None if carries_load(pairs) else model.without_load()
    return model if plain is None else plain


def _finite(speed: float) -> float | None:
    return float(speed) if np.isfinite(speed) else None


def measured_pairs(
    robot: Robot, samples: Iterable[Samples], joints: Sequence[int] | None = None
) -> FrictionTestData:
    """Pairs of strokes of every joint, recording by recording."""
    wanted = tuple(joints or range(1, robot.joints + 1))
    for joint in wanted:
        if not 1 <= joint <= robot.joints:
            raise TaufitError(f"this arm has joints 1 to {robot.joints}, not {joint}.")
    parts: dict[int, list[FrictionPairs]] = {joint: [] for joint in wanted}
    refused: dict[int, PoorExcitationError] = {}
    conditioning, ranges = None, None
    for one in samples:
        require_joints(one.joints, robot.joints, name=one.names[0], robot=robot.name)
        before = sum(map(len, parts.values()))
        for joint in wanted:
            try:
                parts[joint].append(pairs_in(one, joint, points=_BINS))
            except PoorExcitationError as error:
                refused[joint] = error
        if sum(map(len, parts.values())) > before:
            own = Ranges.from_samples(one)
            ranges = own if ranges is None else ranges.union(own)
            conditioning = conditioning or Conditioning.from_samples(one)
    for joint in joints or ():
        if not parts[joint] and joint in refused:
            raise refused[joint]
    if conditioning is None or ranges is None:
        raise PoorExcitationError(
            "no joint has constant-velocity strokes both ways at one speed. Record a friction test "
            "(`taufit design ROBOT --kind friction-test` plans one)."
        )
    found = {joint: FrictionPairs.joined(own) for joint, own in parts.items() if own}
    return FrictionTestData(
        tuple(weighted(_with_friction(pairs)) for pairs in found.values()),
        tuple(joint for joint in range(1, robot.joints + 1) if joint not in found),
        conditioning,
        ranges,
    )


def _with_friction(pairs: FrictionPairs) -> FrictionPairs:
    """The pairs, refused where they show no friction at all."""
    labels = pairs.labels
    levels = np.array([np.mean(pairs.torque[labels == k]) for k in np.unique(labels)])
    scatter = float(np.std(levels)) / np.sqrt(len(levels))
    if np.mean(levels) < 4.0 * scatter and np.mean(levels) < 0.05 * np.abs(pairs.torque).max():
        raise PoorExcitationError(
            f"joint {pairs.joint} shows no friction: {np.mean(levels):.2g} N m on average over "
            f"{len(levels)} pairs of strokes. A torque sensor behind the gear does not see the "
            "gear's friction; record motor current or motor torque."
        )
    return pairs


def _assembled(
    robot: Robot,
    tested: FrictionTestData,
    friction: Friction,
    found: tuple[JointFriction, ...],
    links: FittedModel | None,
    warnings: tuple[str, ...],
) -> FittedModel:
    """The torque model with this friction; standard deviations are known for friction alone."""
    base = robot if links is None else links.robot
    rotors = bool(np.any(base.rotor_inertias > 0)) if links is None else links.has("rotor")
    structure = TorqueModel(base, friction, rotor_inertia=rotors, offset=True)
    layout = structure.layout
    values, std = np.zeros(layout.size), np.full(layout.size, np.inf)
    values[layout.links] = base.parameters
    if rotors:
        known = (
            base.rotor_inertias
            if links is None
            else links.values[links.layout.block_slice("rotor")]
        )
        values[layout.block_slice("rotor")] = known
    if links is not None and links.has("offset"):
        values[layout.block_slice("offset")] = links.values[links.layout.block_slice("offset")]
    shape = np.tile(start_shape(friction), (robot.joints, 1))
    coefficients = np.zeros((robot.joints, len(friction.parameters)))
    deviations = np.full_like(coefficients, np.inf)
    for one in found:
        coefficients[one.joint - 1] = one.fit.coefficients
        deviations[one.joint - 1] = one.fit.coefficient_std
        shape[one.joint - 1] = one.fit.shape
    values[layout.drive], std[layout.drive] = coefficients.ravel(), deviations.ravel()
    record = TrainingRecord(
        tested.conditioning,
        tested.ranges,
        std,
        provenance=Provenance(
            robot=robot.name,
            settings=FitSettings(
                term_to_dict(friction),
                "friction test",
                dropped=tuple(
                    joint_parameter(one.joint - 1, t) for one in found for t in one.fit.dropped
                ),
                cutoff_hz=tested.conditioning.cutoff_hz,
            ),
        ),
        warnings=warnings,
    )
    if len(friction.shapes):
        structure = replace(structure, shape=shape)
    return FittedModel.from_values(structure, values, record)
