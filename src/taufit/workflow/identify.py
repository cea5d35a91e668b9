"""The whole way in one call: robot and recordings in, a fitted model and its scores out."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

import taufit
from taufit.calibration.contradictions import contradictions
from taufit.errors import RecordingError
from taufit.estimators import Estimator, is_consistent
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting import fit as fit
from taufit.fitting.fit import check_enough
from taufit.friction import FrictionModel, friction_to_dict
from taufit.model import predicted_torque
from taufit.model.fitted_model import FittedModel
from taufit.model.training_record import FitSettings, Provenance
from taufit.recording import Recording, in_order
from taufit.regression import Estimate
from taufit.regression.residual_structure import residual_structure
from taufit.robot import Robot
from taufit.signals import Samples, condition
from taufit.signs.information import with_open_signs
from taufit.signs.unknown_signs import (
    SignHint,
    find_signs,
    signed_by_model,
    without_signs,
)
from taufit.temperature.apply import follow, slopes_of, with_temperature
from taufit.validation.nominal_comparison import Before, before_identification
from taufit.validation.score import Score, score, short_name

Cutoff = float | Literal["auto"]
DEFAULT_CUTOFF_HZ = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """A fitted model and everything that says how far to trust it.

    Attributes:
        model: Fitted, with all that a model file holds.
        estimate: Its parameters with their uncertainty.
        samples: What it was fitted to.
        training: Its score there.
        holdout: Scores on recordings it has not seen.
        holdout_samples: Those recordings, conditioned like the training data.
        before: The nominal robot on the training data, or None where it has no inertia.
        warnings: What the user should know, gravest first.
        signs: What was found about torque signs, where they were not recorded.
    """

    model: FittedModel
    estimate: Estimate
    samples: Samples
    training: Score
    holdout: tuple[Score, ...]
    holdout_samples: tuple[Samples, ...]
    before: Before | None
    warnings: tuple[str, ...]
    signs: Any = None

    @property
    def consistent(self) -> bool:
        """Whether every link is physically possible and friction dissipates."""
        return is_consistent(self.model.structure, self.estimate.values)

    @property
    def mean_holdout_nrmse(self) -> float | None:
        """Mean over hold-out recordings and joints."""
        return float(np.mean([s.mean_nrmse for s in self.holdout])) if self.holdout else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        e, conditioning = self.estimate, self.model.training.conditioning
        links = sum(name.startswith("link") for name in e.base_names)
        out: dict[str, Any] = {
            "robot": self.model.robot.name,
            "base_parameters": len(e.base_names),
            "base_parameters_links": links,
            "condition_number": e.condition_number,
            "consistent": self.consistent,
            "rmse": self.training.rmse.tolist(),
            "nrmse": self.training.nrmse.tolist(),
            "mean_nrmse": self.training.mean_nrmse,
            "correlation": self.training.correlation.tolist(),
            "samples": self.training.samples,
            "seconds": self.training.seconds,
            "e_n": self.training.e_n,
            "cutoff_hz": conditioning.cutoff_hz,
            "rate_hz": conditioning.rate_hz,
            "gains": None if conditioning.gain is None else conditioning.gain.tolist(),
            "gains_std": None if conditioning.gain_std is None else conditioning.gain_std.tolist(),
            "friction": friction_to_dict(self.model.friction),
            "friction_dropped": list(e.dropped),
            "rotor_inertia": self.model.rotor_inertia,
            "temperature": slopes_of(self.model),
            "settings": dict(e.settings),
            "warnings": list(self.warnings),
            "holdout": [one.to_dict() for one in self.holdout],
            "mean_holdout_nrmse": self.mean_holdout_nrmse,
        }
        if self.before is not None:
            out["before_identification"] = {
                "rmse": self.before.nominal.rmse.tolist(),
                "e_n": self.before.nominal.e_n,
                "e_n_reduction": self.before.reduction,
            }
        if self.signs is not None:
            out |= self.signs.to_dict()
        return out


def identify(
    robot: Robot,
    recordings: Sequence[Recording],
    *,
    holdout: Mapping[str, Sequence[Recording]] | None = None,
    friction: FrictionModel | str | None = "auto",
    estimator: Estimator | None = None,
    cutoff_hz: Cutoff = DEFAULT_CUTOFF_HZ,
    rotor_inertia: bool | None = None,
    offset: bool = True,
    torque_signs: Literal["recorded", "unknown"] = "recorded",
    sign_hints: Sequence[SignHint] = (),
    temperature: str = "auto",
    provenance: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Identification:
    """Fit a model to recordings of a robot and score it on others.

    Drives (where torque was measured, coupled motors, torque per ampere) come from the recordings;
    hold-out recordings are conditioned with the same low-pass and the same gains.

    Args:
        robot: The arm, with its mounting.
        recordings: Of one robot, fitted together.
        holdout: Recordings kept out, by the name they are to be called.
        friction: A friction model, None, or "auto".
        estimator: Replaces the automatic one.
        cutoff_hz: Of the low-pass on motion and torque alike, or "auto".
        rotor_inertia: Whether joints have one; by default where torque was measured at the motor.
        offset: Whether joints have a torque offset.
        torque_signs: "unknown" where only magnitudes were recorded.
        sign_hints: Stretches whose sign is known although it was not recorded.
        temperature: How friction follows joint temperature: "none", "linear", "exponential",
            "arrhenius", "thermal-model" (temperatures estimated from heat), or "auto".
        provenance: What the model file should say about where the data came from.
        force: Fit although the recording contradicts the robot or holds impossible numbers.
    """
    if not recordings:
        raise RecordingError("there is no recording to fit.")
    ordered = [_fitting(robot, recording) for recording in recordings]
    if torque_signs == "unknown":
        ordered = [without_signs(recording) for recording in ordered]
    robot = with_drives(robot, ordered)
    samples = condition(ordered, cutoff_hz=cutoff_hz)
    if samples.gain is not None:
        std = np.zeros_like(samples.gain) if samples.gain_std is None else samples.gain_std
        drives = replace(robot.drives, gain=samples.gain, gain_std=std)
        robot = replace(robot, drives=drives)
    model = automatic_model(robot, friction=friction, rotor_inertia=rotor_inertia, offset=offset)
    check_enough(model, samples)
    against = contradictions(robot, ordered, samples)
    if against and not force:
        raise RecordingError(
            "\n".join(against) + "\nCorrect that, or fit nevertheless with --force (force=True)."
        )

    signs = None
    if samples.signed is not None and not np.all(samples.signed):
        # Declared by a map, or asked for: the signs come first, then the same fit as always.
        signs = find_signs(model, samples, hints=sign_hints)
        samples = signs.fit_samples
        torque_signs = "unknown"
    elif sign_hints:
        raise RecordingError(
            "signs of single stretches were given, but the torque carries its sign everywhere. "
            "Leave them out, or say that signs are unknown (--torque-signs unknown)."
        )
    warmth = follow(model, samples, "none" if signs is not None else temperature)
    model, samples = warmth.model, warmth.samples
    try:
        estimate = fit(model, samples, estimator, dropped=warmth.dropped)
    except RecordingError as error:
        # Signs in doubt are the likely reason why nothing fits them.
        doubts = () if signs is None else signs.warnings
        raise RecordingError("\n".join([str(error), *doubts])) from None
    if signs is not None:
        estimate = with_open_signs(estimate, model, samples, signs)
        estimate = replace(estimate, warnings=(*signs.warnings, *estimate.warnings))

    fitted = fitted_model(model, estimate, samples, thermal=warmth.thermal)
    predicted = predicted_torque(fitted, samples)
    training = score(fitted, samples, predicted=predicted)
    tested: list[Score] = []
    tested_samples: list[Samples] = []
    for name, others in (holdout or {}).items():
        if torque_signs == "unknown":
            others = [without_signs(recording) for recording in others]
        other = condition_like(fitted, others, name=name)
        tested_samples.append(other)
        tested.append(score(fitted, other, file=name))

    told = [f"{short_name(s.file)}: {text}" for s in tested for text in s.findings]
    warnings = [
        *against,
        *warmth.findings,
        *estimate.warnings,
        *told,
        *_spoken(recordings, samples),
    ]
    record = replace(
        fitted.training,
        score=replace(training, findings=()),
        residuals=residual_structure(fitted, samples, predicted),
        provenance=Provenance(
            taufit=taufit.__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            robot=robot.source or robot.name,
            settings=FitSettings(
                friction=friction_to_dict(model.friction),
                estimator="automatic" if estimator is None else type(estimator).__name__,
                estimator_settings=dict(estimate.settings),
                dropped=tuple(estimate.dropped),
                cutoff_hz=float(samples.cutoff_hz),
                cutoff_reason=samples.reason,
                torque_signs=torque_signs,
                temperature=warmth.law,
            ),
            sources=dict(provenance or {}),
        ),
        warnings=tuple(dict.fromkeys(warnings)),
    )
    return Identification(
        fitted.with_training(record),
        estimate,
        samples,
        training,
        tuple(tested),
        tuple(tested_samples),
        before_identification(fitted, robot, samples, predicted=predicted),
        tuple(dict.fromkeys(warnings)),
        signs,
    )


def condition_like(
    model: FittedModel,
    recordings: Sequence[Recording],
    *,
    cutoff_hz: float | None = None,
    name: str | None = None,
) -> Samples:
    """Recordings conditioned as the model's training data were: same low-pass, same gains.

    A recording whose map gives drive gains in numbers keeps its own; one in amperes without gains
    gets the model's, since it is the same robot.

    Args:
        model: A fitted model.
        recordings: Of the same robot.
        cutoff_hz: Replaces the model's low-pass.
        name: For messages.
    """
    ordered = [_fitting(model.robot, recording, name) for recording in recordings]
    conditioning = model.training.conditioning
    cutoff = conditioning.cutoff_hz if cutoff_hz is None else cutoff_hz
    needs = any(r.gain is None or not np.all(np.isfinite(r.gain)) for r in ordered)
    gains = conditioning.gain if needs else None
    samples = with_temperature(
        model,
        condition(
            ordered,
            cutoff_hz=None if np.isinf(cutoff) else cutoff,
            gains=gains,
            delay_s=conditioning.delay_s,
        ),
    )
    if samples.signed is not None and not np.all(samples.signed):
        # Magnitudes are compared with the magnitude predicted.
        samples = signed_by_model(model, samples)
    return samples


def with_drives(robot: Robot, recordings: Sequence[Recording]) -> Robot:
    """The robot with drives as the recordings describe them: side of the gear and coupling."""
    first = recordings[0]
    for other in recordings[1:]:
        if (other.torque_source == "joint_torque_sensor") != (
            first.torque_source == "joint_torque_sensor"
        ):
            raise RecordingError(
                "some recordings have torque from before the gear (motor), others from behind it "
                "(link). Fit them separately: friction is not the same there."
            )
    side = "link" if first.torque_source == "joint_torque_sensor" else "motor"
    coupling = robot.drives.coupling if first.coupling is None else first.coupling
    return replace(
        robot, drives=replace(robot.drives, side=side, coupling=np.asarray(coupling, float))
    )


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes; of the names and bytes of all files for a folder."""
    digest = hashlib.sha256()
    top = Path(path)
    files = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file())
    for file in files:
        if file is not top:
            digest.update(str(file.relative_to(top)).encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _fitting(robot: Robot, recording: Recording, name: str | None = None) -> Recording:
    label = name or recording.meta.get("file") or "the recording"
    try:
        return in_order(recording, robot.joint_names)
    except RecordingError:
        raise RecordingError(
            f"{label} has {recording.joints} joints and {robot.name} has {robot.joints}: this is a "
            "recording of another robot. Give the right robot, or a column map (--map) that names "
            "this robot's joints."
        ) from None


def _spoken(recordings: Sequence[Recording], samples: Samples) -> list[str]:
    """Findings worth a warning, in words."""
    found = [*(f for r in recordings for f in r.findings), *samples.findings]
    grave = [f for f in found if f.severity == "error"] + [
        f for f in found if f.severity == "warning"
    ]
    told = [str(finding) for finding in grave]
    carried = {r.payload for r in recordings if r.payload}
    if carried:
        masses = ", ".join(f"{mass:g} kg" for mass in sorted(carried))
        told.append(
            f"the arm carried {masses}: the fitted last link contains that payload. Fit an empty "
            "arm for `taufit payload`."
        )
    return told


__all__ = [
    "DEFAULT_CUTOFF_HZ",
    "Identification",
    "condition_like",
    "file_hash",
    "identify",
    "with_drives",
]
