"""Certainty of recovered signs, and warnings for the user."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.torque_model import TorqueModel
from taufit.signs.data import SearchData
from taufit.signs.findings import RecoveredSigns, SignedSegment
from taufit.signs.hints import SignHint
from taufit.signs.physics import MARGIN_LIMIT, functional_contributions, inconsistency_cost
from taufit.signs.rounds import SearchRound
from taufit.signs.samples import joints_with_signs, with_signs
from taufit.signs.segments import Segmentation, joint_rms
from taufit.signs.weights import is_near_event

# Residual relative to a joint's rms above which its signs are uncertain: for model error, and for
# noise.
MODEL_ERROR_LIMIT, NOISE_LIMIT = 0.15, 0.4
# chi2 per degree of freedom above which the residual is model error, not noise.
MISFIT_LIMIT = 3.0
# chi2 above which residuals are not taken as white noise.
COLOURED_LIMIT = 1.5
# Largest fraction of ambiguous segments for signs that are reliable as a whole.
AMBIGUOUS_LIMIT = 0.05


def chi_squares(
    data: SearchData, search_round: SearchRound
) -> tuple[float, Float[Array, " j"], Float[Array, " j"]]:
    """chi2 per degree of freedom overall and per joint, and relative residual."""
    keep = np.asarray(data.samples.keep, bool) & ~search_round.untrusted[:, None]
    residual = np.where(keep, search_round.fit.expected - search_round.fit.predicted, 0.0)
    count = np.maximum(keep.sum(0), 1)
    # Near zero a magnitude has little information: use samples with a clear sign.
    is_clear = keep & (np.abs(search_round.fit.predicted) > 2.0 * search_round.fit.noise)
    is_clear = np.where(is_clear.sum(0) >= 20, is_clear, keep)
    number = np.maximum(is_clear.sum(0), 1)
    square = np.sum(np.where(is_clear, (residual / data.noise) ** 2, 0.0), 0)
    dof_fraction = 1.0 - data.rows.width / max(int(keep.sum()), data.rows.width + 1)
    overall = float(square.sum() / (number.sum() * dof_fraction))
    rms = joint_rms(data.magnitude, keep)
    unexplained = np.sqrt(np.sum(residual**2, 0) / count) / rms
    return overall, square / (number * dof_fraction), unexplained


def assess_signs(
    data: SearchData,
    search_round: SearchRound,
    model: TorqueModel,
    *,
    friction_missing: bool = False,
) -> RecoveredSigns:
    """Result of the search with flags, warnings and the signed samples."""
    samples, segmentation = data.samples, search_round.segmentation
    overall, joint_chi2, unexplained = chi_squares(data, search_round)
    count = len(segmentation)
    signs, margins = search_round.signs[:count], search_round.margins[:count]
    reason = np.array([""] * count, object)
    predicted = search_round.fit.predicted

    # Relative to the torque itself: magnitudes contain torque and noise.
    power = joint_rms(data.magnitude, np.asarray(samples.keep, bool)) ** 2
    level = np.maximum(search_round.fit.noise, data.noise) ** 2
    relative_noise = np.sqrt(level / np.maximum(power - level, 1e-3 * power))
    noisy = (relative_noise > NOISE_LIMIT) & ~np.all(data.has_sign, axis=0)
    wrong_model = (
        (joint_chi2 > MISFIT_LIMIT)
        & (unexplained > MODEL_ERROR_LIMIT)
        & ~np.all(data.has_sign, axis=0)
    )
    is_unexplained = noisy | wrong_model
    if np.sum(is_unexplained) >= 2.0 / 3.0 * np.sum(~np.all(data.has_sign, axis=0)):
        # Joints share parameters: if most are not explained, none is reliable.
        wrong_model = ~np.all(data.has_sign, axis=0)
    agreement = _agreement(segmentation, predicted, data.magnitude)
    reason[np.isfinite(margins)] = "another choice of signs fits almost as well"
    reason[agreement * signs < 0.0] = "the refined model contradicts the search"
    reason[wrong_model[segmentation.joint]] = (
        "the model leaves much of this joint's torque unexplained"
    )
    reason[noisy[segmentation.joint]] = "noise drowns this joint's torque"
    reason[search_round.undecided[:count]] = "its sign as a whole is undecided"
    contradicted_hints = [hint for hint in data.hints if _is_contradicted(data, search_round, hint)]
    impossible = _is_inconsistent(data, search_round)
    if impossible:
        reason[:] = "no arm has torque of this sign where signs were recorded or given"
    if not search_round.certified:
        reason[:] = "the search was stopped before it was exhausted"

    # The model gives the sign where it explains the magnitude; elsewhere the segment does.
    explained = np.abs(data.magnitude - np.abs(predicted)) < 3.0 * search_round.fit.noise
    segment_sign = np.append(signs, 0)[segmentation.span]
    sample_sign = np.where(
        (segment_sign == 0)
        | (explained & (segmentation.label < 0) & ~search_round.untrusted[:, None]),
        np.where(predicted >= 0.0, 1, -1),
        segment_sign,
    )
    sample_sign = np.where(data.has_sign, np.where(data.values >= 0.0, 1, -1), sample_sign).astype(
        np.int8
    )
    uncertain = np.append(reason != "", True)
    is_inside = (segmentation.label >= 0) & ~uncertain[segmentation.label]
    # Odds of the two signs are exp(2 m mu / sigma^2): 5 standard deviations are exp(12.5).
    is_clear = data.magnitude * np.abs(predicted) > 6.25 * search_round.fit.noise**2
    is_clear &= explained & ~(noisy | wrong_model) & ~search_round.untrusted[:, None]
    is_clear &= ~(uncertain[segmentation.span] & (segmentation.span >= 0)) & search_round.certified
    # The time of a sign change is known to some hundredths of a second only.
    width = max(2, round(0.05 * samples.rate_hz))
    near_sign_change = is_near_event(
        sample_sign[1:] != sample_sign[:-1], min(width, len(sample_sign) - 1)
    )
    # Model error is not white: small lobes can hide in it.
    is_coloured = joint_chi2 > COLOURED_LIMIT
    is_clear &= ~is_coloured
    may_hide = is_coloured & (data.magnitude < 4.0 * search_round.fit.noise)
    is_outlier = np.abs(data.magnitude - np.abs(predicted)) > 2.5 * search_round.fit.noise
    is_outlier[1:] |= is_outlier[:-1]
    is_outlier[:-1] |= is_outlier[1:]
    is_certain = (
        (is_inside | (is_clear & (segmentation.label < 0)))
        & ~near_sign_change
        & ~may_hide
        & ~(is_outlier & is_coloured)
    )
    # A segment without any certain sample is not certain either.
    has_certain_sample = np.zeros(count, bool)
    has_certain_sample[segmentation.label[is_certain & (segmentation.label >= 0)]] = True
    reason[(reason == "") & ~has_certain_sample & is_coloured[segmentation.joint]] = (
        "it is short, and the model does not explain it to the noise"
    )
    sample_sure = data.has_sign | is_certain
    segments = tuple(
        SignedSegment(
            int(segmentation.joint[k]),
            int(samples.run[segmentation.first[k]]),
            float(segmentation.begin[k]),
            float(segmentation.end[k]),
            int(segmentation.first[k]),
            int(segmentation.last[k]),
            int(signs[k]),
            float(margins[k]),
            bool(reason[k]),
            str(reason[k]),
        )
        for k in range(count)
    )
    flagged = sum(segment.ambiguous for segment in segments)
    confident = (
        search_round.certified
        and overall <= MISFIT_LIMIT
        and not np.any(noisy | wrong_model)
        and flagged <= AMBIGUOUS_LIMIT * max(count, 1)
        and not (friction_missing or impossible or contradicted_hints)
    )
    warnings = _hint_warnings(contradicted_hints, impossible) + _warnings(
        model, search_round, segments, overall, joint_chi2, noisy, wrong_model, friction_missing
    )
    values = np.zeros(len(data.model.names))
    values[data.rows.parameters] = search_round.fit.theta
    return RecoveredSigns(
        segments,
        sample_sign,
        sample_sure,
        with_signs(samples, sample_sign * data.magnitude, ~search_round.untrusted),
        np.where(data.signed, data.values, search_round.fit.expected),
        search_round.certified,
        overall,
        joint_chi2,
        search_round.fit.noise,
        confident,
        warnings,
        search_round.search.nodes,
        "exact",
        values,
        joints_with_signs(samples),
        predicted,
        data.signed,
        noisy,
        _confident_joints(
            segments,
            is_unexplained | (joint_chi2 > MISFIT_LIMIT),
            search_round.certified,
            impossible,
        ),
    )


def _confident_joints(
    segments: Sequence[SignedSegment],
    is_unexplained: Bool[Array, " j"],
    certified: bool,
    impossible: bool,
) -> Bool[Array, " j"]:
    """Joints explained down to their noise, with few samples in ambiguous segments."""
    total, flagged = np.zeros(len(is_unexplained)), np.zeros(len(is_unexplained))
    for segment in segments:
        length = segment.last - segment.first + 1
        total[segment.joint] += length
        flagged[segment.joint] += length * segment.ambiguous
    has_few = flagged <= AMBIGUOUS_LIMIT * np.maximum(total, 1.0)
    return ~is_unexplained & has_few & certified & (not impossible)


def _agreement(
    segmentation: Segmentation, predicted: Float[Array, "n j"], magnitude: Float[Array, "n j"]
) -> Float[Array, " s"]:
    """Sign predicted by the refined model per segment, weighted by magnitude."""
    label = segmentation.label.T.ravel()
    is_used = label >= 0
    weight = (predicted * magnitude).T.ravel()[is_used]
    return np.bincount(label[is_used], weight, minlength=len(segmentation)).astype(float)


def _is_contradicted(data: SearchData, search_round: SearchRound, hint: SignHint) -> bool:
    """Whether the refined model has the opposite sign in the interval of a hint."""
    is_covered = hint.covers(data.samples) & np.asarray(data.samples.keep[:, hint.joint], bool)
    return float(np.sum((search_round.fit.predicted * data.values)[is_covered, hint.joint])) < 0.0


def _is_inconsistent(data: SearchData, search_round: SearchRound) -> bool:
    """Whether recorded or given signs imply negative inertia or friction."""
    if search_round.form.anchor is None:
        return False
    joints = np.unique(search_round.segmentation.joint)
    level = (
        functional_contributions(data, search_round.form, joints)
        if len(joints)
        else np.zeros((0, 1))
    )
    return len(level) > 0 and bool(inconsistency_cost(level, search_round.signs) > MARGIN_LIMIT)


def _hint_warnings(uncertain: Sequence[SignHint], impossible: bool) -> tuple[str, ...]:
    warnings = []
    if impossible:
        warnings.append(
            "With the torque signs that were recorded or given only an arm of negative inertia, or "
            "friction that drives, explains the rest: every sign is flagged. Check them, and the "
            "direction each joint counts as positive."
        )
    if uncertain:
        hint_list = "; ".join(str(hint) for hint in uncertain[:5])
        warnings.append(
            f"The torque contradicts the sign given for {hint_list}. Check interval, joint and "
            "the run, or leave it out."
        )
    return tuple(warnings)


def _warnings(
    model: TorqueModel,
    search_round: SearchRound,
    segments: Sequence[SignedSegment],
    overall: float,
    joint_chi2: Float[Array, " j"],
    noisy: Bool[Array, " j"],
    wrong_model: Bool[Array, " j"],
    friction_missing: bool,
) -> tuple[str, ...]:
    warnings = []
    if not search_round.certified:
        warnings.append(
            "The sign search was stopped before it could prove its answer (lower bound "
            f"{search_round.search.lower_bound:.4g}, found {search_round.search.cost:.4g}): treat "
            "every sign as a "
            "guess. Record less noisy torque, or give signs of single segments (--sign-hint)."
        )
    if friction_missing:
        warnings.append(
            "The torque shows friction that the model leaves out; signs were found with Coulomb "
            "and viscous friction added. Fit with a friction model."
        )
    if overall > MISFIT_LIMIT:
        warnings.append(
            f"The model leaves {np.sqrt(overall):.1f} times the recording's noise unexplained "
            f"(chi2 per degree of freedom {overall:.3g}); the best-fitting signs need not be the "
            "true ones. Try a richer friction model, check the robot description, or record some "
            "torque with its sign."
        )
    if np.any(wrong_model):
        warnings.append(
            f"The model does not explain {_joints(wrong_model)} well: all their signs are flagged. "
            "Their friction, offset or geometry is wrong, or the motion hardly moves them."
        )
    if np.any(noisy):
        warnings.append(
            f"Noise is above {100 * NOISE_LIMIT:.0f} % of the torque of {_joints(noisy)}: all "
            "signs "
            "there are flagged. Record faster or more loaded motions of these joints, and average "
            "repeated periods."
        )
    if np.any(search_round.undecided):
        is_undecided = np.zeros(model.robot.joints, bool)
        is_undecided[
            search_round.segmentation.joint[
                search_round.undecided[: len(search_round.segmentation)]
            ]
        ] = True
        warnings.append(
            f"Torque and its mirror image explain {_joints(is_undecided)} equally well. Record a "
            "faster "
            "motion (inertia decides it), or give the sign of one segment (--sign-hint)."
        )
    close = [s for s in segments if s.reason.startswith("another")]
    if close:
        segment_list = ", ".join(
            f"joint {s.joint + 1} at {s.t0:.2f}-{s.t1:.2f} s" for s in close[:5]
        )
        remainder = f" and {len(close) - 5} more" if len(close) > 5 else ""
        warnings.append(
            f"{len(close)} of {len(segments)} segments could have the other sign: "
            f"{segment_list}{remainder}. "
            "Record a longer motion, or one in which these joints carry more load, or give the "
            "signs you know (--sign-hint)."
        )
    return tuple(warnings)


def _joints(mask: Bool[Array, " j"]) -> str:
    numbers = [str(i + 1) for i in np.flatnonzero(mask)]
    return ("joint " if len(numbers) == 1 else "joints ") + ", ".join(numbers)
