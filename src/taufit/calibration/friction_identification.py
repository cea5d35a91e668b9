"""Friction of all joints from recordings of friction tests, as a fitted model.

The strokes of a joint in all recordings (payloads, temperatures, days) are fitted together. All
joints have one friction model, with coefficients that scatter around common ones. The links are
those of the robot or of an earlier fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from taufit.calibration.friction_pairs import FrictionPairs, pairs_in, with_weights
from taufit.calibration.friction_pooling import pool_friction
from taufit.calibration.friction_test import (
    FrictionFit,
    carries_load,
    fit_friction,
    minimum_rms,
)
from taufit.core.dataclasses import dataclass
from taufit.core.errors import PoorExcitationError, RecordingError, TaufitError
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

# Candidates of `auto`.
AUTO_CANDIDATES = (
    "linear",
    "linear_load",
    "power_law",
    "polynomial",
    "stribeck",
    "stribeck_load_smooth",
)
# Models of the literature with load and speed, for comparison.
COMPARISON_MODELS = ("stribeck", "stribeck_load")
# Position bins per pair of strokes: enough to measure their scatter.
_BINS = 4
# Temperature range below which friction is taken as constant [K].
_MINIMUM_WARM_UP_K = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class JointFriction:
    """Friction of one joint.

    Attributes:
        joint: Joint number, from 1.
        pairs: Measured friction pairs.
        fit: Friction curve.
    """

    joint: int
    pairs: FrictionPairs
    fit: FrictionFit


@dataclass(frozen=True, slots=True, eq=False)
class FrictionIdentification:
    """Friction of the joints of a robot.

    Attributes:
        name: Name of the friction model.
        joints: One per joint tested.
        model: Torque model with this friction and the links of the robot or of an earlier fit.
        scores: -2 ln(evidence) with a penalty by the number of parameters, for each candidate
            model; of a single joint the BIC. The smallest was chosen.
        warnings: Messages for the user.
        fits: Fits of each candidate model, by joint.
    """

    name: str
    joints: tuple[JointFriction, ...]
    model: FittedModel
    scores: dict[str, float]
    warnings: tuple[str, ...]
    fits: dict[str, tuple[FrictionFit, ...]]

    @property
    def rms_by_model(self) -> dict[str, list[float]]:
        """RMS residual of every joint, for each candidate model [N m]."""
        return {name: [fit.rms for fit in fits] for name, fits in self.fits.items()}


@dataclass(frozen=True, slots=True, eq=False)
class FrictionTestData:
    """Friction pairs from recordings of friction tests.

    Attributes:
        pairs: One entry per joint with pairs of strokes.
        missing: Joints without any, from 1.
        conditioning: Conditioning of the first recording.
        ranges: Ranges over all recordings.
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
    """Identify friction of all joints from samples of friction tests.

    Args:
        robot: The robot.
        samples: Samples of one or several recordings; consumed one by one.
        friction: Name of a friction model, or "auto" for the one with the smallest score.
        joints: Joint numbers, from 1; default: all that have strokes.
        passive: Constrain the viscous part not to fall with speed.
        links: Fitted model whose links are kept; default: links of the robot.
        beside: Names of models fitted for comparison only.
    """
    names = AUTO_CANDIDATES if friction == "auto" else (friction,)
    unknown = [name for name in (*names, *beside) if name not in FRICTION_MODELS]
    if unknown:
        raise TaufitError(
            f"friction model {unknown[0]!r} is not known: use auto or {', '.join(FRICTION_MODELS)}."
        )
    test_data = collect_friction_pairs(robot, samples, joints)
    pairs_by_joint = test_data.pairs
    candidates: dict[str, tuple[Friction, list[FrictionFit]]] = {}
    for name in names:
        candidates[name] = _fit_all_joints(pairs_by_joint, FRICTION_MODELS[name](), passive, robot)
    reference_temperature = _reference_temperature(pairs_by_joint, friction == "auto")
    if reference_temperature is not None:
        best = min(candidates, key=lambda name: _score(candidates[name][1]))
        temperature_model = friction_model(
            "temperature_dependent", candidates[best][0], "linear", reference_temperature
        )
        candidates[f"{best}, temperature"] = _fit_all_joints(
            pairs_by_joint, temperature_model, passive, robot
        )
    scores = {name: _score(joint_results) for name, (_, joint_results) in candidates.items()}
    # Equal scores (all load terms dropped): the model listed first, with fewer terms.
    best_name = min(scores, key=lambda name: round(scores[name], 6))
    curve, fits = candidates[best_name]
    fits[:] = [
        replace(fit, full_rms=minimum_rms(pairs, curve))
        for pairs, fit in zip(pairs_by_joint, fits, strict=True)
    ]
    joint_results = tuple(
        JointFriction(pairs.joint, pairs, fit)
        for pairs, fit in zip(pairs_by_joint, fits, strict=True)
    )
    warnings = [
        f"joint {result.joint}: {text}" for result in joint_results for text in result.fit.warnings
    ]
    if test_data.missing:
        numbers = ", ".join(str(joint) for joint in test_data.missing)
        warnings.append(f"joint {numbers} not tested: friction set to zero there")
    model = _assemble_model(robot, test_data, curve, joint_results, links, tuple(warnings))
    for name in beside:
        if name not in candidates:
            candidates[name] = _fit_all_joints(
                pairs_by_joint, FRICTION_MODELS[name](), passive, robot
            )
            scores[name] = _score(candidates[name][1])
    all_fits = {name: tuple(fits) for name, (_, fits) in candidates.items()}
    return FrictionIdentification(
        best_name, joint_results, model, scores, tuple(warnings), all_fits
    )


def _score(fits: Sequence[FrictionFit]) -> float:
    return float(sum(fit.score for fit in fits))


def _fit_all_joints(
    pairs_by_joint: Sequence[FrictionPairs], model: Friction, passive: bool, robot: Robot
) -> tuple[Friction, list[FrictionFit]]:
    """Fit one model to every joint: joints of one kind together, a joint of its own kind alone."""
    kinds = [robot.is_prismatic[pairs.joint - 1] for pairs in pairs_by_joint]
    tops = [_finite(robot.limits.velocity[pairs.joint - 1]) for pairs in pairs_by_joint]
    fits: dict[int, FrictionFit] = {}
    for kind in set(kinds):
        members = [k for k, other in enumerate(kinds) if other == kind]
        group = [pairs_by_joint[k] for k in members]
        is_pooled = len(group) > 1 and all(pairs.weight is not None for pairs in group)
        if is_pooled and any(_observable_model(pairs, model) is model for pairs in group):
            pooled = pool_friction(group, model, [tops[k] for k in members], passive=passive)
            fits.update(zip(members, pooled, strict=True))
            continue
        for k in members:
            fits[k] = fit_joint(pairs_by_joint[k], model, passive=passive, top_speed=tops[k])
    return model, [fits[k] for k in range(len(pairs_by_joint))]


def _reference_temperature(
    pairs_by_joint: Sequence[FrictionPairs], automatic: bool
) -> float | None:
    """Reference temperature [degC]; None if no joint warmed up enough to identify its effect."""
    temperatures = [pairs.temperature for pairs in pairs_by_joint if pairs.temperature is not None]
    if not automatic or len(temperatures) < len(pairs_by_joint):
        return None
    if max(float(np.ptp(temperature)) for temperature in temperatures) < _MINIMUM_WARM_UP_K:
        return None
    return round(float(np.median(np.concatenate(temperatures))), 1)


def fit_joint(
    pairs: FrictionPairs,
    model: Friction,
    *,
    passive: bool = True,
    top_speed: float | None = None,
) -> FrictionFit:
    """Fit a joint with `fit_friction`; without load, the load terms of the model are zero."""
    used_model = _observable_model(pairs, model)
    fit = fit_friction(pairs, used_model, passive=passive, top_speed=top_speed)
    if used_model is model:
        return fit
    fit = _expand_to_model(model, fit)
    loads = {term.name for term in model.parameters if term.group == LOAD}
    load_terms = ", ".join(name for name in fit.dropped if name in loads)
    return replace(fit, warnings=(*fit.warnings, f"carries no load; {load_terms} set to zero"))


def _expand_to_model(model: Friction, fit: FrictionFit) -> FrictionFit:
    """Convert a fit without load terms to the model that has them; they are zero."""
    terms = [term.name for term in model.parameters]
    fitted_names = [term.name for term in fit.model.parameters]
    coefficients, std = np.zeros(len(terms)), np.zeros(len(terms))
    for i, name in enumerate(fitted_names):
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
        dropped=(*fit.dropped, *(name for name in terms if name not in fitted_names)),
    )


def _observable_model(pairs: FrictionPairs, model: Friction) -> Friction:
    """The model, without its load terms if the pairs carry no load."""
    unloaded_model = None if carries_load(pairs) else model.without_load()
    return model if unloaded_model is None else unloaded_model


def _finite(speed: float) -> float | None:
    return float(speed) if np.isfinite(speed) else None


def collect_friction_pairs(
    robot: Robot, samples: Iterable[Samples], joints: Sequence[int] | None = None
) -> FrictionTestData:
    """Collect the pairs of strokes of every joint from all recordings."""
    numbers = tuple(joints or range(1, robot.joints + 1))
    for joint in numbers:
        if not 1 <= joint <= robot.joints:
            raise TaufitError(f"this arm has joints 1 to {robot.joints}, not {joint}.")
    parts: dict[int, list[FrictionPairs]] = {joint: [] for joint in numbers}
    errors: dict[int, PoorExcitationError] = {}
    conditioning, ranges = None, None
    for part in samples:
        require_joints(part.joints, robot.joints, name=part.names[0], robot=robot.name)
        count_before = sum(map(len, parts.values()))
        for joint in numbers:
            try:
                parts[joint].append(pairs_in(part, joint, points=_BINS))
            except PoorExcitationError as error:
                errors[joint] = error
        if sum(map(len, parts.values())) > count_before:
            joint_pairs = Ranges.from_samples(part)
            ranges = joint_pairs if ranges is None else ranges.union(joint_pairs)
            conditioning = conditioning or Conditioning.from_samples(part)
    for joint in joints or ():
        if not parts[joint] and joint in errors:
            raise errors[joint]
    if conditioning is None or ranges is None:
        raise PoorExcitationError(
            "no joint has constant-velocity strokes both ways at one speed. Record a friction test "
            "(`taufit design ROBOT --kind friction-test` plans one)."
        )
    joined = {
        joint: FrictionPairs.concatenate(joint_pairs)
        for joint, joint_pairs in parts.items()
        if joint_pairs
    }
    return FrictionTestData(
        tuple(with_weights(_require_friction(pairs)) for pairs in joined.values()),
        tuple(joint for joint in range(1, robot.joints + 1) if joint not in joined),
        conditioning,
        ranges,
    )


def _require_friction(pairs: FrictionPairs) -> FrictionPairs:
    """Return the pairs; an error if they show no friction, or torque of the other sign."""
    labels = pairs.labels
    stroke_levels = np.array([np.mean(pairs.torque[labels == k]) for k in np.unique(labels)])
    level = float(np.mean(stroke_levels))
    error = 4.0 * float(np.std(stroke_levels)) / np.sqrt(len(stroke_levels))
    largest = float(np.abs(pairs.torque).max())
    shown = f"{level:.2g} N m on average over {len(stroke_levels)} pairs of strokes"
    # A delay of 10 ms at 1 rad/s turns 1 % of gravity into apparent friction of either sign.
    if level < -max(error, 0.02 * largest):
        raise RecordingError(
            f"joint {pairs.joint} has negative friction: {shown}. Its torque and motion count in "
            "opposite directions: set `sign: -1` for the joint at the torque (or current), or at "
            "position and velocity, in the column map."
        )
    if level < min(error, 0.05 * largest):
        raise PoorExcitationError(
            f"joint {pairs.joint} shows no friction: {shown}. A torque sensor behind the gear does "
            "not measure the gear's friction; record motor current or motor torque."
        )
    return pairs


def _assemble_model(
    robot: Robot,
    test_data: FrictionTestData,
    friction: Friction,
    joint_results: tuple[JointFriction, ...],
    links: FittedModel | None,
    warnings: tuple[str, ...],
) -> FittedModel:
    """Torque model with this friction; only friction has finite standard deviations."""
    base = robot if links is None else links.robot
    rotors = bool(np.any(base.rotor_inertias > 0)) if links is None else links.has("rotor")
    structure = TorqueModel(base, friction, rotor_inertia=rotors, offset=True)
    layout = structure.layout
    values, std = np.zeros(layout.size), np.full(layout.size, np.inf)
    values[layout.links] = base.parameters
    if rotors:
        rotor_inertias = (
            base.rotor_inertias
            if links is None
            else links.values[links.layout.block_slice("rotor")]
        )
        values[layout.block_slice("rotor")] = rotor_inertias
    if links is not None and links.has("offset"):
        values[layout.block_slice("offset")] = links.values[links.layout.block_slice("offset")]
    shape = np.tile(start_shape(friction), (robot.joints, 1))
    coefficients = np.zeros((robot.joints, len(friction.parameters)))
    deviations = np.full_like(coefficients, np.inf)
    for result in joint_results:
        coefficients[result.joint - 1] = result.fit.coefficients
        deviations[result.joint - 1] = result.fit.coefficient_std
        shape[result.joint - 1] = result.fit.shape
    values[layout.drive], std[layout.drive] = coefficients.ravel(), deviations.ravel()
    record = TrainingRecord(
        test_data.conditioning,
        test_data.ranges,
        std,
        provenance=Provenance(
            robot=robot.name,
            settings=FitSettings(
                term_to_dict(friction),
                "friction test",
                dropped=tuple(
                    joint_parameter(result.joint - 1, t)
                    for result in joint_results
                    for t in result.fit.dropped
                ),
                cutoff_hz=test_data.conditioning.cutoff_hz,
            ),
        ),
        warnings=warnings,
    )
    if len(friction.shapes):
        structure = replace(structure, shape=shape)
    return FittedModel.from_values(structure, values, record)
