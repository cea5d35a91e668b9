"""Certainty of recovered signs, and warnings for the user."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.model.torque_model import TorqueModel
from taufit.signs.data import SearchData
from taufit.signs.findings import FoundSigns, SignedSegment
from taufit.signs.hints import SignHint
from taufit.signs.physics import RADIUS, broken_physics, functional_levels
from taufit.signs.rounds import SearchRound
from taufit.signs.samples import recorded_joints, signed_samples
from taufit.signs.segments import Segmentation, joint_rms
from taufit.signs.weights import near_events

# Residual relative to a joint's rms above which its signs are uncertain: for model error, and for
# noise.
MODEL_ERROR, NOISE = 0.15, 0.4
# chi2 per degree of freedom above which the residual is model error, not noise.
MISFIT = 3.0
# chi2 above which residuals are not taken as white noise.
COLOURED = 1.5
# Largest fraction of ambiguous segments for signs that are reliable as a whole.
FLAGGED = 0.05


def chi_squares(
    data: SearchData, done: SearchRound
) -> tuple[float, Float[Array, " j"], Float[Array, " j"]]:
    """chi2 per degree of freedom overall and per joint, and relative residual."""
    keep = np.asarray(data.samples.keep, bool) & ~done.untrusted[:, None]
    residual = np.where(keep, done.fit.expected - done.fit.predicted, 0.0)
    count = np.maximum(keep.sum(0), 1)
    # Near zero a magnitude has little information: use samples with a clear sign.
    clear = keep & (np.abs(done.fit.predicted) > 2.0 * done.fit.noise)
    clear = np.where(clear.sum(0) >= 20, clear, keep)
    number = np.maximum(clear.sum(0), 1)
    square = np.sum(np.where(clear, (residual / data.noise) ** 2, 0.0), 0)
    freedom = 1.0 - data.rows.width / max(int(keep.sum()), data.rows.width + 1)
    overall = float(square.sum() / (number.sum() * freedom))
    rms = joint_rms(data.magnitude, keep)
    unexplained = np.sqrt(np.sum(residual**2, 0) / count) / rms
    return overall, square / (number * freedom), unexplained


def judge(
    data: SearchData, done: SearchRound, model: TorqueModel, *, friction_missing: bool = False
) -> FoundSigns:
    """Result of the search with flags, warnings and the signed samples."""
    samples, cut = data.samples, done.segmentation
    overall, joint_chi2, unexplained = chi_squares(data, done)
    count = len(cut)
    signs, margins = done.signs[:count], done.margins[:count]
    reason = np.array([""] * count, object)
    predicted = done.fit.predicted

    # Relative to the torque itself: magnitudes contain torque and noise.
    power = joint_rms(data.magnitude, np.asarray(samples.keep, bool)) ** 2
    level = np.maximum(done.fit.noise, data.noise) ** 2
    relative_noise = np.sqrt(level / np.maximum(power - level, 1e-3 * power))
    noisy = (relative_noise > NOISE) & ~np.all(data.known, axis=0)
    wrong_model = (joint_chi2 > MISFIT) & (unexplained > MODEL_ERROR) & ~np.all(data.known, axis=0)
    lost = noisy | wrong_model
    if np.sum(lost) >= 2.0 / 3.0 * np.sum(~np.all(data.known, axis=0)):
        # Joints share parameters: if most are not explained, none is reliable.
        wrong_model = ~np.all(data.known, axis=0)
    agree = _agreement(cut, predicted, data.magnitude)
    reason[np.isfinite(margins)] = "another choice of signs fits almost as well"
    reason[agree * signs < 0.0] = "the refined model contradicts the search"
    reason[wrong_model[cut.joint]] = "the model leaves much of this joint's torque unexplained"
    reason[noisy[cut.joint]] = "noise drowns this joint's torque"
    reason[done.undecided[:count]] = "its sign as a whole is undecided"
    contradicted_hints = [hint for hint in data.hints if _contradicted(data, done, hint)]
    impossible = _impossible(data, done)
    if impossible:
        reason[:] = "no arm has torque of this sign where signs were recorded or given"
    if not done.certified:
        reason[:] = "the search was stopped before it was exhausted"

    # The model gives the sign where it explains the magnitude; elsewhere the segment does.
    explained = np.abs(data.magnitude - np.abs(predicted)) < 3.0 * done.fit.noise
    segment_sign = np.append(signs, 0)[cut.span]
    sample_sign = np.where(
        (segment_sign == 0) | (explained & (cut.label < 0) & ~done.untrusted[:, None]),
        np.where(predicted >= 0.0, 1, -1),
        segment_sign,
    )
    sample_sign = np.where(data.known, np.where(data.values >= 0.0, 1, -1), sample_sign).astype(
        np.int8
    )
    uncertain = np.append(reason != "", True)
    inner = (cut.label >= 0) & ~uncertain[cut.label]
    # Odds of the two signs are exp(2 m mu / sigma^2): 5 standard deviations are exp(12.5).
    clear = data.magnitude * np.abs(predicted) > 6.25 * done.fit.noise**2
    clear &= explained & ~(noisy | wrong_model) & ~done.untrusted[:, None]
    clear &= ~(uncertain[cut.span] & (cut.span >= 0)) & done.certified
    # The time of a sign change is known to some hundredths of a second only.
    reach = max(2, round(0.05 * samples.rate_hz))
    turning = near_events(sample_sign[1:] != sample_sign[:-1], min(reach, len(sample_sign) - 1))
    # Model error is not white: small lobes can hide in it.
    coloured = joint_chi2 > COLOURED
    clear &= ~coloured
    hidden = coloured & (data.magnitude < 4.0 * done.fit.noise)
    odd = np.abs(data.magnitude - np.abs(predicted)) > 2.5 * done.fit.noise
    odd[1:] |= odd[:-1]
    odd[:-1] |= odd[1:]
    sure = (inner | (clear & (cut.label < 0))) & ~turning & ~hidden & ~(odd & coloured)
    # A segment without any certain sample is not certain either.
    any_sure = np.zeros(count, bool)
    any_sure[cut.label[sure & (cut.label >= 0)]] = True
    reason[(reason == "") & ~any_sure & coloured[cut.joint]] = (
        "it is short, and the model does not explain it to the noise"
    )
    sample_sure = data.known | sure
    segments = tuple(
        SignedSegment(
            int(cut.joint[k]),
            int(samples.run[cut.first[k]]),
            float(cut.begin[k]),
            float(cut.end[k]),
            int(cut.first[k]),
            int(cut.last[k]),
            int(signs[k]),
            float(margins[k]),
            bool(reason[k]),
            str(reason[k]),
        )
        for k in range(count)
    )
    flagged = sum(segment.ambiguous for segment in segments)
    confident = (
        done.certified
        and overall <= MISFIT
        and not np.any(noisy | wrong_model)
        and flagged <= FLAGGED * max(count, 1)
        and not (friction_missing or impossible or contradicted_hints)
    )
    warnings = _hint_warnings(contradicted_hints, impossible) + _warnings(
        model, done, segments, overall, joint_chi2, noisy, wrong_model, friction_missing
    )
    values = np.zeros(len(data.model.names))
    values[data.rows.kept] = done.fit.theta
    return FoundSigns(
        segments,
        sample_sign,
        sample_sure,
        signed_samples(samples, sample_sign * data.magnitude, ~done.untrusted),
        np.where(data.signed, data.values, done.fit.expected),
        done.certified,
        overall,
        joint_chi2,
        done.fit.noise,
        confident,
        warnings,
        done.search.nodes,
        "exact",
        values,
        recorded_joints(samples),
        predicted,
        data.signed,
        noisy,
        _confident_joints(segments, lost | (joint_chi2 > MISFIT), done.certified, impossible),
    )


def _confident_joints(
    segments: Sequence[SignedSegment],
    lost: Bool[Array, " j"],
    certified: bool,
    impossible: bool,
) -> Bool[Array, " j"]:
    """Joints explained down to their noise, with few samples in ambiguous segments."""
    total, flagged = np.zeros(len(lost)), np.zeros(len(lost))
    for segment in segments:
        length = segment.last - segment.first + 1
        total[segment.joint] += length
        flagged[segment.joint] += length * segment.ambiguous
    few = flagged <= FLAGGED * np.maximum(total, 1.0)
    return ~lost & few & certified & (not impossible)


def _agreement(
    cut: Segmentation, predicted: Float[Array, "n j"], magnitude: Float[Array, "n j"]
) -> Float[Array, " s"]:
    """Sign predicted by the refined model per segment, weighted by magnitude."""
    label = cut.label.T.ravel()
    use = label >= 0
    weight = (predicted * magnitude).T.ravel()[use]
    return np.bincount(label[use], weight, minlength=len(cut))


def _contradicted(data: SearchData, done: SearchRound, hint: SignHint) -> bool:
    """Whether the refined model has the opposite sign in the interval of a hint."""
    use = hint.covers(data.samples) & np.asarray(data.samples.keep[:, hint.joint], bool)
    return float(np.sum((done.fit.predicted * data.values)[use, hint.joint])) < 0.0


def _impossible(data: SearchData, done: SearchRound) -> bool:
    """Whether recorded or given signs imply negative inertia or friction."""
    if done.form.anchor is None:
        return False
    joints = np.unique(done.segmentation.joint)
    level = functional_levels(data, done.form, joints) if len(joints) else np.zeros((0, 1))
    return len(level) > 0 and bool(broken_physics(level, done.signs) > RADIUS)


def _hint_warnings(uncertain: Sequence[SignHint], impossible: bool) -> tuple[str, ...]:
    out = []
    if impossible:
        out.append(
            "With the torque signs that were recorded or given only an arm of negative inertia, or "
            "friction that drives, explains the rest: every sign is flagged. Check them, and the "
            "direction each joint counts as positive."
        )
    if uncertain:
        listed = "; ".join(str(hint) for hint in uncertain[:5])
        out.append(
            f"The torque contradicts the sign given for {listed}. Check interval, joint and "
            "the run, or leave it out."
        )
    return tuple(out)


def _warnings(
    model: TorqueModel,
    done: SearchRound,
    segments: Sequence[SignedSegment],
    overall: float,
    joint_chi2: Float[Array, " j"],
    noisy: Bool[Array, " j"],
    wrong_model: Bool[Array, " j"],
    friction_missing: bool,
) -> tuple[str, ...]:
    out = []
    if not done.certified:
        out.append(
            "The sign search was stopped before it could prove its answer (lower bound "
            f"{done.search.lower_bound:.4g}, found {done.search.cost:.4g}): treat every sign as a "
            "guess. Record less noisy torque, or give signs of single segments (--sign-hint)."
        )
    if friction_missing:
        out.append(
            "The torque shows friction that the model leaves out; signs were found with Coulomb "
            "and viscous friction added. Fit with a friction model."
        )
    if overall > MISFIT:
        out.append(
            f"The model leaves {np.sqrt(overall):.1f} times the recording's noise unexplained "
            f"(chi2 per degree of freedom {overall:.3g}); the best-fitting signs need not be the "
            "true ones. Try a richer friction model, check the robot description, or record some "
            "torque with its sign."
        )
    if np.any(wrong_model):
        out.append(
            f"The model does not explain {_joints(wrong_model)} well: all their signs are flagged. "
            "Their friction, offset or geometry is wrong, or the motion hardly moves them."
        )
    if np.any(noisy):
        out.append(
            f"Noise is above {100 * NOISE:.0f} % of the torque of {_joints(noisy)}: all signs "
            "there are flagged. Record faster or more loaded motions of these joints, and average "
            "repeated periods."
        )
    if np.any(done.undecided):
        held = np.zeros(model.robot.joints, bool)
        held[done.segmentation.joint[done.undecided[: len(done.segmentation)]]] = True
        out.append(
            f"Torque and its mirror image explain {_joints(held)} equally well. Record a faster "
            "motion (inertia decides it), or give the sign of one segment (--sign-hint)."
        )
    close = [s for s in segments if s.reason.startswith("another")]
    if close:
        listed = ", ".join(f"joint {s.joint + 1} at {s.t0:.2f}-{s.t1:.2f} s" for s in close[:5])
        more = f" and {len(close) - 5} more" if len(close) > 5 else ""
        out.append(
            f"{len(close)} of {len(segments)} segments could have the other sign: {listed}{more}. "
            "Record a longer motion, or one in which these joints carry more load, or give the "
            "signs you know (--sign-hint)."
        )
    return tuple(out)


def _joints(mask: Bool[Array, " j"]) -> str:
    numbers = [str(i + 1) for i in np.flatnonzero(mask)]
    return ("joint " if len(numbers) == 1 else "joints ") + ", ".join(numbers)
