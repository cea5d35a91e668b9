"""The whole way in one call: robot and recordings in, a fitted model and its scores out."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

import taufit
from taufit.arrays import Array, Float
from taufit.cache import Cache, open_cache
from taufit.cache.store import content_of
from taufit.contact.noise import training_noise
from taufit.diagnosis import CHANNEL_KINDS, Cause, declared_torque, refuse, sample_causes
from taufit.diagnosis.evidence import Evidence
from taufit.engines import Processes
from taufit.errors import RecordingError, TaufitError
from taufit.estimators import Estimator, Pbpr, is_consistent
from taufit.fitting import automatic_model, fitted_model
from taufit.fitting.enough import Amount, check_enough
from taufit.fitting.fit import fit
from taufit.fitting.known_friction import KnownFriction, with_tested_friction
from taufit.fitting.one_way import one_way_findings
from taufit.friction import FrictionModel, friction_to_dict
from taufit.model.fitted_model import FittedModel
from taufit.model.intervals import residuals_by_state
from taufit.model.noise_by_state import NoiseByState
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import (
    Conditioning,
    FitSettings,
    Provenance,
    Ranges,
    TrainingRecord,
)
from taufit.recording import Finding, Recording
from taufit.recording.read import Map
from taufit.regression import Estimate
from taufit.regression.near import near_model
from taufit.regression.residual_structure import residual_structure
from taufit.regression.simple_terms import simple_terms
from taufit.robot import Robot
from taufit.selection.ripple import with_ripple
from taufit.selection.widths import with_fitted_width
from taufit.signals import Samples, condition
from taufit.signals.sample_source import SamplesInMemory, SampleSource
from taufit.signs.tree import nominal_bounds
from taufit.signs.unknown_signs import (
    SignHint,
    find_signs,
    find_signs_by_tree,
    fit_found,
    signed_by_model,
    without_signs,
)
from taufit.temperature.apply import slopes_of, with_temperature
from taufit.temperature.changes import WarmUp, warm_up
from taufit.temperature.over_parts import follow_parts
from taufit.threads import one_blas_thread
from taufit.validation.files import unlike_files
from taufit.validation.grades import (
    Grades,
    floors,
    grade,
    graded_score,
    reached,
    worse_than_nominal,
)
from taufit.validation.in_detail import in_detail
from taufit.validation.nominal_comparison import Before
from taufit.validation.score import Score, score, short_name
from taufit.validation.score_sums import training_scores
from taufit.views import Shown, drawn
from taufit.workflow.inputs import (
    File,
    Holdout,
    Reader,
    Recordings,
    as_holdout,
    as_recordings,
    as_robot,
    share_of,
)
from taufit.workflow.training_data import (
    TrainingData,
    in_robot_order,
    training_data,
    with_drives,
)

Cutoff = float | Literal["auto"]
DEFAULT_CUTOFF_HZ = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Identification(Shown):
    """A fitted model and everything that says how far to trust it.

    Attributes:
        model: Fitted, with all that a model file holds.
        estimate: Its parameters with their uncertainty.
        samples: What it was fitted to, or an excerpt of at most 32,768 of them.
        training: Its score on all of them.
        holdout: Scores on recordings it has not seen.
        holdout_samples: Those recordings, conditioned like the training data.
        before: The nominal robot on the training data, or None where it has no inertia.
        warnings: What the user should know, gravest first.
        signs: What was found about torque signs, where they were not recorded.
        files: Its score on each run of the training data.
        grades: Of the model, per joint and overall.
        findings: What was found about the recordings, by kind and joint.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done.consistent, done.grades.overall, done.mean_holdout_nrmse < 0.2
        (True, 'good', True)
        >>> axes = done.plot_friction()
    """

    model: FittedModel
    estimate: Estimate
    samples: Samples
    training: Score
    holdout: tuple[Score, ...]
    holdout_samples: tuple[Samples, ...]
    before: Before | None
    warnings: tuple[str, ...]
    signs: Any
    files: tuple[Score, ...]
    grades: Grades
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        unseen = self.mean_holdout_nrmse
        share = self.training.mean_nrmse if unseen is None else unseen
        where = (
            "its training data" if unseen is None else f"{len(self.holdout)} unseen recording(s)"
        )
        name = self.model.robot.name
        return f"Identification({name}: {self.grades.overall}, nrmse {share:.3f} on {where})"

    def plot_torque(self, joints: Sequence[int] | None = None) -> Any:
        """Measured and predicted torque on the first unseen recording, or on the training data."""
        shown = self.holdout_samples[0] if self.holdout_samples else self.samples
        return drawn("plot_torque", self.model, shown, joints)

    def plot_friction(self, joints: Sequence[int] | None = None) -> Any:
        """Friction over speed, with matplotlib; returns the axes. Joints count from 0."""
        return drawn("plot_friction", self.model, joints)

    @property
    def consistent(self) -> bool:
        """Whether every link is physically possible and friction dissipates."""
        return is_consistent(self.model.structure, self.estimate.values)

    @property
    def mean_holdout_nrmse(self) -> float | None:
        """Mean over hold-out recordings and joints."""
        return float(np.mean([s.mean_nrmse for s in self.holdout])) if self.holdout else None

    @property
    def warm_up(self) -> WarmUp | None:
        """What warming up changes along the training motion; None where friction does not follow.

        Temperatures that were estimated, not measured, are left out.
        """
        measured = self.model.training.thermal is None
        return warm_up(self.model, self.samples) if measured else None

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
            "mean_inside": self.training.mean_inside,
            "friction_scatter": None if e.friction_scatter is None else e.friction_scatter.tolist(),
            "cutoff_hz": conditioning.cutoff_hz,
            "rate_hz": conditioning.rate_hz,
            "gains": None if conditioning.gain is None else conditioning.gain.tolist(),
            "gains_std": None if conditioning.gain_std is None else conditioning.gain_std.tolist(),
            "friction": friction_to_dict(self.model.friction),
            "friction_dropped": list(e.dropped),
            "rotor_inertia": self.model.rotor_inertia,
            "temperature": slopes_of(self.model),
            "warm_up": None if (warm := self.warm_up) is None else warm.to_dict(),
            "settings": dict(e.settings),
            "warnings": list(self.warnings),
            "findings": [finding.to_dict() for finding in self.findings],
            **self.grades.to_dict(),
            "files": [one.to_dict() for one in self.files],
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


@one_blas_thread
def identify(  # noqa: PLR0913 - the public call has one keyword per choice
    robot: Robot | File,
    recordings: Recordings,
    *,
    holdout: Holdout = None,
    map: Map | None = None,
    effort: str | None = None,
    friction: FrictionModel | FittedModel | str | None = "auto",
    estimator: Estimator | None = None,
    cutoff_hz: Cutoff = DEFAULT_CUTOFF_HZ,
    rotor_inertia: bool | None = None,
    offset: bool = True,
    torque_signs: Literal["recorded", "unknown"] = "recorded",
    sign_hints: Sequence[SignHint] = (),
    sign_method: Literal["exact", "tree"] = "exact",
    temperature: str = "auto",
    delay_s: float | Literal["auto"] = 0.0,
    provenance: Mapping[str, Any] | None = None,
    force: bool = False,
    processes: int | None = 1,
    cache: Cache | File | None = None,
    watch: Callable[[], None] | None = None,
) -> Identification:
    """Fit a model to recordings of a robot and score it on others.

    Drives (where torque was measured, coupled motors, torque per ampere) come from the recordings;
    hold-out recordings are conditioned with the same low-pass and the same gains.

    Args:
        robot: The arm, with its mounting; or a bundled name or a file.
        recordings: Of one robot, fitted together: recordings, files, pandas or polars frames. Files
            are gone through one at a time, in memory that does not grow with their number.
        holdout: Recordings kept out, likewise or by the name they are to be called; or a share
            such as "30%", the last part of every recording.
        map: What the columns of files and frames are, as `read_recording` takes it.
        effort: What their torque channel is, as `read_recording` takes it.
        friction: A friction model or its name, None, "auto", or a model whose friction is known
            (from `taufit friction`): its shapes are kept and its coefficients expected.
        estimator: Replaces the automatic one.
        cutoff_hz: Of the low-pass on motion and torque alike, or "auto".
        rotor_inertia: Whether joints have one; by default where torque was measured at the motor.
        offset: Whether joints have a torque offset.
        torque_signs: "unknown" where only magnitudes were recorded.
        sign_hints: Segments whose sign is known although it was not recorded.
        sign_method: "tree" is the pruned tree search of the literature, which proves nothing; the
            fit that follows is its penalised least squares unless an estimator is given.
        temperature: How friction follows joint temperature: "none", "linear", "exponential",
            "arrhenius", "thermal-model" (temperatures estimated from heat), or "auto".
        delay_s: By how much torque was recorded later than the motion it belongs to, or "auto".
        provenance: What the model file should say about where the data came from.
        force: Fit although the recording contradicts the robot or holds impossible numbers.
        processes: That share the files; None for one per processor. Results do not depend on it.
        cache: Folder in which results on files are kept, so that a fit to more files reads only
            the new ones; None keeps nothing.
        watch: Called whenever a file has been gone through, as happens about seven times to each.

    Example:
        >>> import taufit
        >>> done = taufit.identify("ur3e", "run.parquet", holdout="other_day.parquet")
        >>> done
        Identification(ur3e: good, nrmse ... on 1 unseen recording(s))
        >>> taufit.write_model(done.model, "model.json")
    """
    reader = Reader(map, effort, share_of(holdout))
    kept_out = as_holdout(holdout, recordings, reader)
    recordings = as_recordings(recordings, reader)
    robot = as_robot(robot, recordings)
    with Processes(processes) as engine, _opened(cache) as kept:
        engine.wake(training_data)
        data = training_data(
            robot,
            recordings,
            cutoff_hz=cutoff_hz,
            unsigned=torque_signs == "unknown",
            delay_s=delay_s,
            force=force,
            engine=engine,
            watch=watch,
            cache=kept,
        )
        robot, source = data.robot, data.source
        expected = KnownFriction.of(friction) if isinstance(friction, FittedModel) else None
        model = automatic_model(
            robot,
            friction=friction.friction if isinstance(friction, FittedModel) else friction,
            rotor_inertia=rotor_inertia,
            offset=offset,
        )
        if isinstance(friction, FittedModel):
            model = with_tested_friction(model, friction)
        check_enough(model, source, with_prior=estimator is None)
        known = [f for r in data.recordings for f in r.findings if f.kind in CHANNEL_KINDS]
        excerpt = source.excerpt
        evidence = Evidence(robot, excerpt) if len(excerpt) else None
        causes = sample_causes(
            robot, data.recordings, excerpt, [Cause(finding) for finding in known], evidence, source
        )
        refuse(causes, force)
        findings = [*known, *(cause.finding for cause in causes), *data.findings]
        findings += one_way_findings(excerpt)
        signs, source = _with_signs(model, source, sign_hints, sign_method)
        unsigned = signs is not None
        if unsigned and sign_method == "tree":
            estimator = estimator or Pbpr(weighting="none")
        warmth = follow_parts(model, source, "none" if unsigned else temperature)
        model, source = warmth.model, warmth.source
        if friction == "auto" and estimator is None and warmth.law != "none":
            # Temperature is told by small differences, which widths that do not fit would blur.
            model = with_fitted_width(model, source)
        dropped, load = tuple(name for name in warmth.dropped if name in model.names), None
        enough = Amount.of(model, source).missing == 0.0
        if friction == "auto" and estimator is None and enough:
            chosen = source.of_excerpt(with_ripple, model)
            model, load, dropped = chosen.model, chosen.load, (*dropped, *chosen.dropped)
        if unsigned:
            estimate = _with_found(model, signs, estimator, dropped, expected)
        else:
            estimate = fit(model, source, estimator, dropped=dropped, load=load, known=expected)
        fitted = fitted_model(model, estimate, source, thermal=warmth.thermal)
        scores = training_scores(fitted, robot, source)
        noise = None if unsigned else _noise(fitted, source)
        fitted = fitted.with_training(
            replace(
                fitted.training,
                score=replace(scores.all, findings=()),
                noise=noise,
                residuals=replace(
                    fitted.training.residuals,
                    by_state=residuals_by_state(fitted, source.excerpt),
                ),
            )
        )
        trained = in_detail(fitted, source.excerpt, scores.all)
        tested, tested_samples = _tested(fitted, kept_out, unsigned=unsigned)
        nominal = None if scores.before is None else scores.before.nominal.rmse
        findings += worse_than_nominal(scores.all.rmse, nominal)
        broken = unlike_files(scores.files)
        refuse([Cause(finding) for finding in broken], force)
        findings += broken
        judged = tested_samples or (source.excerpt,)
        grades = grade(
            [graded_score(own) for own in tested or (trained,)],
            [floors(robot, one, evidence) for one in judged],
            unseen=bool(tested),
            best=[reached(trained, own) for own in tested] or None,
            findings=findings,
        )
        found = [f"{short_name(s.file)}: {text}" for s in tested for text in s.findings]
        warnings = dict.fromkeys(
            [
                *(finding.message for finding in findings),
                *warmth.findings,
                *estimate.warnings,
                *found,
                *_recording_warnings(data),
                *([kept.warning] if kept is not None and kept.warning else []),
            ]
        )
        settings = FitSettings(
            friction=friction_to_dict(model.friction),
            estimator="automatic" if estimator is None else type(estimator).__name__,
            estimator_settings=dict(estimate.settings),
            dropped=tuple(estimate.dropped),
            cutoff_hz=float(source.cutoff_hz),
            cutoff_reason=source.head.reason,
            torque_signs="unknown" if unsigned else torque_signs,
            temperature=warmth.law,
        )
        record = replace(
            fitted.training,
            score=replace(trained, findings=()),
            residuals=residual_structure(fitted, source),
            simple_terms=simple_terms(fitted, source),
            provenance=_provenance(robot, settings, provenance),
            warnings=tuple(warnings),
            contradictions=tuple(f.message for f in findings if f.severity == "error"),
        )
        return Identification(
            fitted.with_training(record),
            estimate,
            source.gathered() if source.excerpt_is_all else source.excerpt,
            trained,
            tested,
            tested_samples,
            scores.before,
            tuple(warnings),
            signs,
            scores.files,
            grades,
            tuple(dict.fromkeys([*findings, *_noticed(data)])),
        )


def _with_signs(
    model: TorqueModel,
    source: SampleSource,
    hints: Sequence[SignHint],
    method: str = "exact",
) -> tuple[Any, SampleSource]:
    """Torque signs where they were not recorded, and samples that have them."""
    signed = source.head.signed
    if signed is None or np.all(signed):
        if hints:
            raise RecordingError(
                "signs of single segments were given, but the torque carries its sign everywhere. "
                "Leave them out, or say that signs are unknown (--torque-signs unknown)."
            )
        return None, source
    # Declared by a map, or asked for: the signs come first, then the same fit as always. The search
    # looks at all samples at once.
    samples = source.at_once("the search for torque signs")
    if method == "tree":
        if hints:
            raise TaufitError(
                "the tree search takes no signs of single segments: leave them out, or use the "
                "exact method."
            )
        signs = find_signs_by_tree(model, samples, bounds=nominal_bounds(model))
    else:
        signs = find_signs(model, samples, hints=hints)
    return signs, SamplesInMemory(signs.fit_samples)


def _with_found(
    model: TorqueModel,
    signs: Any,
    estimator: Estimator | None,
    dropped: tuple[str, ...],
    expected: KnownFriction | None,
) -> Estimate:
    """The fit to torque whose signs were found."""
    try:
        return fit_found(model, signs, estimator, dropped=dropped, known=expected)
    except RecordingError as error:
        # Uncertain signs are the likely reason why nothing fits them.
        raise RecordingError("\n".join([str(error), *signs.warnings])) from None


def _noise(fitted: FittedModel, source: SampleSource) -> NoiseByState | None:
    """Noise by state; of the same excerpt and nearly the same parameters it is found again."""
    near, record = near_model(fitted, source), fitted.training
    found: NoiseByState | None = source.of_excerpt(
        _noise_at, near.structure, near.values, record.ranges, record.conditioning
    )
    return found


def _noise_at(
    structure: TorqueModel,
    values: Float[Array, " p"],
    ranges: Ranges,
    conditioning: Conditioning,
    source: SampleSource,
) -> NoiseByState | None:
    record = TrainingRecord(ranges=ranges, conditioning=conditioning)
    return training_noise(FittedModel(structure, values, record), source.excerpt)


def _tested(
    fitted: FittedModel, holdout: Mapping[str, Sequence[Recording]], *, unsigned: bool
) -> tuple[tuple[Score, ...], tuple[Samples, ...]]:
    """Scores on recordings the model has not seen, and their samples."""
    scores: list[Score] = []
    kept: list[Samples] = []
    for name, others in holdout.items():
        if unsigned:
            others = [without_signs(recording) for recording in others]
        samples = condition_like(fitted, others, name=name)
        kept.append(samples)
        scores.append(in_detail(fitted, samples, score(fitted, samples, file=name)))
    return tuple(scores), tuple(kept)


def _provenance(
    robot: Robot, settings: FitSettings, sources: Mapping[str, Any] | None
) -> Provenance:
    return Provenance(
        taufit=taufit.__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        robot=robot.source or robot.name,
        settings=settings,
        sources=dict(sources or {}),
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
    ordered = [in_robot_order(model.robot, recording, name) for recording in recordings]
    if any(recording.meta.get("gravity_removed") for recording in ordered):
        ordered, _ = declared_torque(model.robot, ordered)
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
    return samples.keeping()


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes; of the names and bytes of all files for a folder."""
    return content_of(Path(path))


def _opened(cache: Cache | File | None) -> AbstractContextManager[Cache | None]:
    """A cache that was given stays open for who gave it."""
    if cache is None or isinstance(cache, Cache):
        return nullcontext(cache)
    return open_cache(cache)


def _noticed(data: TrainingData) -> list[Finding]:
    """What readers and conditioning noticed, gravest first."""
    found = [*(f for r in data.recordings for f in r.findings), *data.source.head.findings]
    return [f for f in found if f.severity == "error"] + [
        f for f in found if f.severity == "warning"
    ]


def _recording_warnings(data: TrainingData) -> list[str]:
    """Findings worth a warning, in words."""
    grave = _noticed(data)
    reasons = [str(finding) for finding in grave]
    carried = {r.payload for r in data.recordings if r.payload}
    if carried:
        masses = ", ".join(f"{mass:g} kg" for mass in sorted(carried))
        reasons.append(
            f"the arm carried {masses}: the fitted last link contains that payload. Fit an empty "
            "arm for `taufit payload`."
        )
    return reasons


__all__ = [
    "DEFAULT_CUTOFF_HZ",
    "Identification",
    "condition_like",
    "file_hash",
    "identify",
    "with_drives",
]
