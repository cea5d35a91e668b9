"""Fit a torque model to torque or current whose sign was not recorded.

    segments -> quadratic form in the signs -> exact search -> global sign by kinetic energy
             -> folded-normal refinement on every sample -> segments cut again, once more -> fit

The first round finds a model; the second cuts at the zero crossings that model predicts, weighs
rows by what it leaves unexplained, and judges how sure each sign is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from taufit.arrays import Array, Bool, Float, Int
from taufit.dynamics import regressor
from taufit.errors import PoorExcitationError, RecordingError, TaufitError
from taufit.estimation.consistent_sdp import ConsistentSdp
from taufit.estimation.covariance import base_covariance
from taufit.estimation.estimate import Estimate
from taufit.estimation.estimator import Estimator, Problem
from taufit.estimation.fit_samples import fit_samples
from taufit.estimation.folded_normal import FoldedFit, fit_folded, log_likelihood
from taufit.estimation.prediction import predicted_torque
from taufit.estimation.rows import SampleRows
from taufit.estimation.sign_constrained import ConsistentCost, search_constrained
from taufit.estimation.sign_information import MagnitudeRows
from taufit.estimation.sign_quadratic import JointRows, SignForm, joint_rows, sign_form
from taufit.estimation.sign_search import SignSearch, search_signs, signs_within
from taufit.estimation.sign_segments import (
    Segmentation,
    cut_segments,
    joint_rms,
    noise_scale,
)
from taufit.estimation.sign_tree import search_tree, segment_values
from taufit.estimation.weights import Weights
from taufit.friction import Linear, remembers_path
from taufit.recording import Recording
from taufit.signals import Samples, lowpass
from taufit.torque_model import TorqueModel

# Cost by which a runner-up must lose, in units of the noise variance: 5 standard deviations.
RADIUS = 25.0
# Unexplained torque relative to a joint's rms from which its signs are not believed: when it is
# model error, and when it is plain noise.
MODEL_ERROR, NOISE = 0.15, 0.4
# chi2 per degree of freedom from which the model, not the noise, is what is left.
MISFIT = 3.0
# Change of the predicted torque from one round to the next, in its noise, from which a further one
# is due, and rounds added that way at most.
UNSETTLED, FURTHER = 0.1, 3


@dataclass(frozen=True, slots=True)
class SignHint:
    """A stretch of one joint whose sign the user knows.

    Attributes:
        joint: Counted from 0.
        t0, t1: From when to when, within the run [s].
        sign: +1 or -1.
        run: Counted from 0.
    """

    joint: int
    t0: float
    t1: float
    sign: int
    run: int = 0


@dataclass(frozen=True, slots=True)
class SignedSegment:
    """One stretch of one joint, the sign found for it, and how sure it is.

    Attributes:
        joint: Counted from 0.
        run: Counted from 0.
        t0, t1: Within the run [s], between samples where the crossing lies between them.
        first, last: Samples of the whole set, inclusive.
        sign: +1 or -1.
        margin: Extra cost of the best choice with this sign reversed, in noise variances; infinite
            where it is beyond what was searched.
        ambiguous: Whether the data cannot be trusted to tell.
        reason: Why it is ambiguous, else "".
    """

    joint: int
    run: int
    t0: float
    t1: float
    first: int
    last: int
    sign: int
    margin: float
    ambiguous: bool
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, joints and runs counted from 1 as users do."""
        return {
            "joint": self.joint + 1,
            "run": self.run + 1,
            "t0": self.t0,
            "t1": self.t1,
            "sign": self.sign,
            "margin": self.margin if np.isfinite(self.margin) else None,
            "ambiguous": self.ambiguous,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False)
class FoundSigns:
    """Torque signs recovered from magnitudes.

    Attributes:
        segments: Stretches with their signs, joint after joint, in time order.
        sample_sign: Sign of every sample, +1 or -1.
        sample_sure: Which of them can be relied on: those of segments that are not ambiguous, and
            others whose magnitude the model explains with only one sign.
        samples: The samples given, torque signed; samples whose motion is doubtful (the ends of
            runs where derivatives have not settled) are no longer kept.
        expected: Expected signed torque of every sample, on the grid and before any low-pass: near
            zero, where a magnitude does not tell its sign, both signs count with their probability.
        certified: Whether no other choice of signs fits better, proven.
        chi2_per_dof: Unexplained torque against the noise of the recording: 1 for a right model.
        joint_chi2: The same joint by joint.
        noise: Unexplained torque per joint, standard deviation [N m].
        confident: Whether the signs deserve trust as a whole.
        warnings: What is doubtful and what to record or change.
        nodes: Partial sign vectors the search visited.
        method: "exact" or "tree".
        values: Least-squares parameters of the model used in the search (not made consistent).
        recorded: Per joint, whether the sign was recorded.
        predicted: Torque by `values`, of every sample.
        known: Samples whose sign was recorded or given.
    """

    segments: tuple[SignedSegment, ...]
    sample_sign: Int[Array, "n j"]
    sample_sure: Bool[Array, "n j"]
    samples: Samples
    expected: Float[Array, "n j"]
    certified: bool
    chi2_per_dof: float
    joint_chi2: Float[Array, " j"]
    noise: Float[Array, " j"]
    confident: bool
    warnings: tuple[str, ...]
    nodes: int
    method: str
    values: Float[Array, " p"]
    recorded: Bool[Array, " j"]
    predicted: Float[Array, "n j"]
    known: Bool[Array, "n j"]

    @property
    def fit_samples(self) -> Samples:
        """The samples to fit: torque is `expected`, which does not bias the model near zero."""
        return signed_samples(replace(self.samples, signed=self.recorded), self.expected)

    @property
    def signs(self) -> Int[Array, " s"]:
        return np.array([segment.sign for segment in self.segments], np.int64)

    @property
    def ambiguous(self) -> Bool[Array, " s"]:
        return np.array([segment.ambiguous for segment in self.segments], bool)

    def to_dict(self) -> dict[str, Any]:
        """What `taufit fit --torque-signs unknown --json` adds."""
        return {
            "segments": [segment.to_dict() for segment in self.segments],
            "signs": self.signs.tolist(),
            "ambiguous": self.ambiguous.tolist(),
            "certified": self.certified,
            "chi2_per_dof": self.chi2_per_dof,
            "signs_confident": self.confident,
        }


@dataclass(frozen=True, eq=False)
class UnsignedFit:
    """A model fitted to torque without signs.

    Attributes:
        found: The signs, and how sure they are.
        model: What was fitted, with its parameters.
        estimator: What fitted it.
    """

    found: FoundSigns
    model: TorqueModel
    estimator: Estimator

    @property
    def values(self) -> Float[Array, " p"]:
        """The parameters."""
        assert self.model.values is not None
        return self.model.values

    @cached_property
    def estimate(self) -> Estimate:
        """The fit with everything about its uncertainty, worked out when first asked for.

        Samples near zero, whose sign is open, count as little as they say.
        """
        known = fit_samples(
            self.model, self.found.fit_samples, self.estimator, require_excitation=False
        )
        if self.found.method == "tree" or _beyond_columns(self.model):
            return known
        rows = information_rows(self.model, self.found)
        weights = _joint_weights(self.found, self.estimator)
        information = rows.information(weights)
        residuals = rows.residuals(self.values)
        return replace(
            known,
            values=self.values,
            base_covariance=base_covariance(rows, known.base, weights, information, residuals),
            information=information,
            joint_weights=weights.joint,
        )

    @property
    def segments(self) -> tuple[SignedSegment, ...]:
        return self.found.segments

    @property
    def signs(self) -> Int[Array, " s"]:
        return self.found.signs

    @property
    def ambiguous(self) -> Bool[Array, " s"]:
        return self.found.ambiguous

    @property
    def certified(self) -> bool:
        return self.found.certified

    @property
    def chi2_per_dof(self) -> float:
        return self.found.chi2_per_dof

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.found.warnings


def fit_unsigned(
    model: TorqueModel,
    samples: Samples,
    method: str = "exact",
    *,
    estimator: Estimator | None = None,
    hints: Sequence[SignHint] = (),
    constrained: bool = False,
    **settings: Any,
) -> UnsignedFit:
    """Find the signs and fit the model.

    Args:
        model: What is fitted.
        samples: Motion and magnitudes; `samples.signed` tells which joints carry their sign.
        method: "exact", or "tree" for the pruned tree search of the literature.
        estimator: Of the final fit; physically consistent by default.
        hints: Stretches whose sign is known.
        constrained: Settle the signs on the physically constrained cost (exact method only).
        settings: Of the method: see `find_signs` and `find_signs_by_tree`.
    """
    if method == "exact":
        found = find_signs(model, samples, hints=hints, constrained=constrained, **settings)
    elif method == "tree":
        found = find_signs_by_tree(model, samples, **settings)
        # phi2 is plain least squares, within the same masses.
        estimator = estimator or ConsistentSdp(
            weighting="none", mass=_mass_bounds(model, settings.get("bounds"))
        )
    else:
        raise TaufitError(f"there is no sign method {method!r}: use exact or tree.")
    estimator = estimator or ConsistentSdp()
    if _beyond_columns(model):
        estimate = fit_samples(model, found.fit_samples, estimator, require_excitation=False)
        fitted = replace(model, shape=estimate.shape).with_values(estimate.values)
        return UnsignedFit(found, fitted, estimator)
    rows = information_rows(model, found)
    weights = _joint_weights(found, estimator)
    solution = estimator.solve(rows.information(weights), Problem.of(model))
    return UnsignedFit(found, model.with_values(solution.values), estimator)


def _mass_bounds(
    model: TorqueModel, bounds: tuple[Float[Array, " p"], Float[Array, " p"]] | None
) -> dict[str, tuple[float, float]]:
    """Least and largest mass of each link among bounds of all parameters."""
    if bounds is None:
        return {}
    low, high = (np.asarray(side, float) for side in bounds)
    links = range(model.robot.joints)
    return {f"link_{k + 1}": (float(low[10 * k]), float(high[10 * k])) for k in links}


def _joint_weights(found: FoundSigns, estimator: Estimator) -> Weights:
    """Refinement already knows each joint's noise: weights need no further rounds."""
    alike = estimator.weighting == "none"
    return Weights(np.ones(len(found.noise)) if alike else 1.0 / found.noise)


def information_rows(model: TorqueModel, found: FoundSigns) -> SampleRows:
    """Rows that say about the model what the magnitudes say, no more; signed ones for the tree."""
    if found.method == "tree":
        return SampleRows(model, found.fit_samples)
    return MagnitudeRows(
        model, found.samples, found.expected, found.predicted, found.noise, found.known
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """What the search works on: torque not filtered where that is at hand."""

    model: TorqueModel
    samples: Samples
    values: Float[Array, "n j"]
    known: Bool[Array, "n j"]
    borders: Bool[Array, "n j"]
    noise: Float[Array, " j"]
    rows: JointRows
    # Worked out once per set of joints: every round asks for the same.
    functionals: dict[tuple[int, ...], Float[Array, "f b"]] = field(default_factory=dict)

    @property
    def magnitude(self) -> Float[Array, "n j"]:
        return np.abs(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """One pass: segments, form, search, and the model refined from it."""

    segmentation: Segmentation
    form: SignForm
    search: SignSearch
    signs: Int[Array, " s"]
    margins: Float[Array, " s"]
    fit: FoldedFit
    undecided: Bool[Array, " s"]
    untrusted: Bool[Array, " n"]
    weight: Float[Array, "n j"]
    certified: bool


def find_signs(
    model: TorqueModel,
    samples: Samples,
    *,
    hints: Sequence[SignHint] = (),
    rounds: int = 2,
    node_cap: int = 1_000_000,
    constrained: bool = False,
) -> FoundSigns:
    """Recover torque signs from magnitudes, exactly, and say how sure they are.

    Args:
        model: What is fitted. A friction model with shapes is replaced by Coulomb and viscous
            terms while signs are looked for.
        samples: `signed` tells which joints carry their sign; None means none does.
        hints: Stretches whose sign is known.
        rounds: Times to cut, search and refine; with two or more, up to three are added where the
            last still changed the model.
        node_cap: Partial sign vectors to visit before another bound is tried, and again with it.
        constrained: Choose the signs whose best physically possible model fits best, instead of
            those that fit best; exact too, and some hundredths of a second per sign vector in
            question.
    """
    data = prepare(model, samples, hints)
    done = _rounds(data, rounds, node_cap)
    if constrained:
        return _judge(data, _constrain(data, done), model)
    if not _has_friction(model) and _chi2(data, done)[0] > 1.5:
        # Unmodelled friction turns signs over; its columns cost little where there is none.
        other = prepare(replace(model, friction=Linear(), shape=None), samples, hints)
        retry = _rounds(other, rounds, node_cap)
        if _chi2(other, retry)[0] < 0.8 * _chi2(data, done)[0]:
            return _judge(other, retry, model, friction_missing=True)
    return _judge(data, done, model)


def find_signs_by_tree(model: TorqueModel, samples: Samples, **settings: Any) -> FoundSigns:
    """Recover torque signs by the pruned tree search of the literature; it proves nothing.

    Args:
        model: What is fitted; friction shapes must be known.
        samples: Motion and magnitudes; all joints are taken as unsigned.
        settings: Of `search_tree`.
    """
    found = search_tree(model, samples, **settings)
    if len(found.signs) == 0:
        raise PoorExcitationError(
            "no stretch of torque exceeds the threshold: signs cannot be told. Lower the threshold."
        )
    sign, torque, keep = segment_values(found, samples)
    signed = replace(
        signed_samples(replace(samples, signed=None), sign * _magnitude(samples)), keep=keep
    )
    segments = tuple(
        SignedSegment(
            int(found.joint[k]),
            int(samples.run[found.first[k]]),
            float(samples.time[found.first[k]]),
            float(samples.time[found.last[k]]),
            int(found.first[k]),
            int(found.last[k]),
            int(found.signs[k]),
            0.0,
            True,
            "the tree search does not tell how sure it is",
        )
        for k in range(len(found.signs))
    )
    noise = noise_scale(_magnitude(samples), samples.run, np.asarray(samples.keep, bool))
    rows = joint_rows(_regressor(model, samples), np.where(keep, 1.0 / noise, 0.0))
    form = sign_form(rows, torque, np.broadcast_to(1.0 / noise, torque.shape), keep - 1, 0)
    theta = form.parameters(np.ones(1, np.int64))
    residual = np.where(keep, torque - rows.torque(theta), 0.0)
    count = np.maximum(keep.sum(0), 1)
    square = np.sum((residual / noise) ** 2, 0)
    values = np.zeros(len(model.names))
    values[rows.kept] = theta
    return FoundSigns(
        segments,
        sign,
        np.zeros(sign.shape, bool),
        signed,
        torque,
        False,
        float(square.sum() / max(int(keep.sum()) - rows.width, 1)),
        square / count,
        np.sqrt(np.sum(residual**2, 0) / count),
        False,
        ("The tree search proves nothing about its signs; use the exact method to be sure.",),
        found.solved,
        "tree",
        values,
        np.zeros(samples.joints, bool),
        rows.torque(theta),
        np.zeros(torque.shape, bool),
    )


def _magnitude(samples: Samples) -> Float[Array, "n j"]:
    return np.abs(samples.torque if samples.raw_torque is None else samples.raw_torque)


def prepare(model: TorqueModel, samples: Samples, hints: Sequence[SignHint] = ()) -> _Data:
    """Magnitudes, known signs and the regressor's independent columns."""
    joints = model.robot.joints
    if samples.joints != joints:
        raise RecordingError(
            f"the recording has {samples.joints} joints, the robot {joints}. Choose the robot that "
            "was recorded."
        )
    signed = _recorded(samples)
    raw = samples.raw_torque is not None
    values = np.array(samples.raw_torque if raw else samples.torque, float)
    values[:, ~signed] = np.abs(values[:, ~signed])
    keep = np.asarray(samples.keep, bool)
    if not np.all(np.isfinite(values[keep])):
        k, i = np.argwhere(keep & ~np.isfinite(values))[0]
        raise RecordingError(
            f"torque of joint {i + 1} is not a number at sample {k + 1}. Repair or drop it."
        )
    # What is not kept may be anything, and must not spread through a filter.
    values[~np.isfinite(values)] = 0.0
    known = np.broadcast_to(signed, values.shape).copy()
    borders = np.zeros(values.shape, bool)
    _apply_hints(hints, samples, values, known, borders)

    if _beyond_columns(model):
        model = replace(model, friction=Linear(), shape=None)
    noise = noise_scale(np.abs(values), samples.run, keep)
    still = np.flatnonzero(~signed & ~np.any(keep, axis=0))
    if len(still):
        raise PoorExcitationError(
            f"joint {still[0] + 1} has no sample left to fit: it does not move in this recording, "
            "or all its samples were rejected. Record a motion of every joint."
        )
    rows = joint_rows(_regressor(model, samples), np.where(keep, 1.0 / noise, 0.0))
    return _Data(model, samples, values, known, borders, noise, rows)


def _regressor(model: TorqueModel, samples: Samples) -> Float[Array, "n j p"]:
    """Rows for torque as it is searched: friction columns filtered only where the torque is."""
    links = regressor(model.robot, samples.position, samples.velocity, samples.acceleration)
    rest = model.joint_columns(
        samples.friction_velocity, samples.acceleration, temperature=samples.temperature
    )
    if samples.raw_torque is None:
        rest = lowpass(samples, rest)
    return np.concatenate([links, rest], -1)


def _recorded(samples: Samples) -> Bool[Array, " j"]:
    if samples.signed is None:
        return np.zeros(samples.joints, bool)
    return np.asarray(samples.signed, bool)


def _apply_hints(
    hints: Sequence[SignHint],
    samples: Samples,
    values: Float[Array, "n j"],
    known: Bool[Array, "n j"],
    borders: Bool[Array, "n j"],
) -> None:
    for hint in hints:
        if not 0 <= hint.joint < samples.joints or hint.sign not in (-1, 1):
            raise RecordingError(
                f"the sign {hint.sign:+d} given for joint {hint.joint + 1} makes no sense: joints "
                f"are 1 to {samples.joints}, signs +1 or -1."
            )
        inside = (samples.run == hint.run) & (samples.time >= hint.t0) & (samples.time <= hint.t1)
        if not np.any(inside):
            raise RecordingError(
                f"run {hint.run + 1} has no sample of joint {hint.joint + 1} between {hint.t0:g} "
                f"and {hint.t1:g} s, where a sign was given."
            )
        values[inside, hint.joint] = hint.sign * np.abs(values[inside, hint.joint])
        known[inside, hint.joint] = True
        edge = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
        borders[edge[edge < len(values)], hint.joint] = True


def _beyond_columns(model: TorqueModel) -> bool:
    """Whether friction has shapes, load or memory: more than columns known beforehand."""
    friction = model.friction
    if friction is None:
        return False
    return bool(friction.shapes) or friction.uses_load or remembers_path(friction)


def _has_friction(model: TorqueModel) -> bool:
    return model.friction is not None and len(model.friction.terms) > 0


def _rounds(data: _Data, rounds: int, node_cap: int) -> _Round:
    samples = data.samples
    keep = np.asarray(samples.keep, bool)
    weight = np.broadcast_to(1.0 / data.noise, data.values.shape)
    noise, predicted = data.noise, None
    untrusted = np.zeros(len(samples), bool)
    done: _Round | None = None
    number, last = 0, max(rounds, 1)
    while number < last:
        number += 1
        cut = cut_segments(
            data.magnitude,
            samples.velocity,
            samples.time,
            samples.run,
            keep & ~data.known,
            noise,
            samples.rate_hz,
            predicted=predicted,
            untrusted=untrusted,
            borders=data.borders,
            weight=weight,
        )
        if done is not None and len(cut) < np.sum(~np.all(data.known, axis=0)):
            # So much is unexplained that hardly a stretch counts: the round before has to do.
            break
        trusted = keep & ~untrusted[:, None]
        label = np.where(data.known & trusted, len(cut), cut.label)
        if not np.any(label >= 0):
            raise PoorExcitationError(
                "no stretch of torque stands out of the noise: signs cannot be told. Record a "
                "faster motion, or one with more load."
            )
        form = sign_form(data.rows, data.values, weight, label, len(cut))
        search = search_signs(form.quadratic, anchor=form.anchor, radius=RADIUS, node_cap=node_cap)
        signs, margins, undecided = _settle_blocks(data, cut, form, search)
        fit = fit_folded(
            data.rows,
            data.values,
            data.known,
            trusted,
            form.parameters(signs),
            0.2 * data.noise,
            # Segments only need crossings; the last round is the one that counts.
            tolerance=1e-6 if number >= rounds else 1e-4,
        )
        if done is not None and number > rounds and not _better(data, fit, done, untrusted):
            break
        done = _Round(
            cut, form, search, signs, margins, fit, undecided, untrusted, weight, search.certified
        )
        if number == last and 1 < number < rounds + FURTHER and _changed(fit, predicted):
            # A first round that went astray leads the second; on a settled model nothing changes.
            last += 1
        predicted, noise = fit.predicted, np.maximum(fit.noise, data.noise)
        untrusted = _doubtful_ends(data, fit)
        weight = _weights(data, fit)
    assert done is not None
    return done


def _changed(fit: FoldedFit, before: Float[Array, "n j"] | None) -> bool:
    """Whether a round moved the predicted torque by more than a small part of its noise."""
    if before is None:
        return False
    return bool(np.mean(((fit.predicted - before) / fit.noise) ** 2) > UNSETTLED**2)


def _better(data: _Data, fit: FoldedFit, done: _Round, untrusted: Bool[Array, " n"]) -> bool:
    """Whether a fit explains the samples both it and an earlier round used better than that one."""
    both = np.asarray(data.samples.keep, bool) & ~(untrusted | done.untrusted)[:, None]
    mine, theirs = (
        log_likelihood(data.values, data.known, both, one.predicted, one.noise)
        for one in (fit, done.fit)
    )
    return mine > theirs


def _constrain(data: _Data, done: _Round) -> _Round:
    """The same round with the signs of the best physically possible model."""
    samples, cut, form = data.samples, done.segmentation, done.form
    keep = np.asarray(samples.keep, bool) & ~done.untrusted[:, None]
    label = np.where(data.known & keep, len(cut), cut.label)
    use = label >= 0
    weight = done.weight[use]
    every = _regressor(data.model, samples)[use]
    cost = ConsistentCost(
        data.model,
        every * weight[:, None],
        data.values[use] * weight,
        label[use],
        len(form.quadratic),
    )
    level = _levels(data, form, np.unique(cut.joint))
    found = search_constrained(
        form.quadratic,
        cost,
        anchor=form.anchor,
        lower_bound=lambda s: float(s @ form.quadratic @ s) + _penalty(level, s),
        radius=RADIUS,
    )
    fit = fit_folded(
        data.rows,
        data.values,
        data.known,
        keep,
        form.parameters(found.signs),
        0.2 * data.noise,
    )
    return replace(
        done,
        signs=found.signs,
        margins=found.margins,
        fit=fit,
        undecided=np.zeros(len(found.signs), bool),
        certified=found.certified,
    )


def _levels(
    data: _Data, form: SignForm, joints: Int[Array, " k"], members: Any = slice(None)
) -> Float[Array, "f s"]:
    """What each sign adds to the positive functionals, in their standard deviations."""
    key = tuple(joints.tolist())
    if key not in data.functionals:
        data.functionals[key] = positive_functionals(data, joints)
    maps = data.functionals[key]
    deviation = np.array([form.deviation(k) for k in maps])
    return (maps @ form.moments[:, members]) / np.maximum(deviation, 1e-300)[:, None]


def _settle_blocks(
    data: _Data, cut: Segmentation, form: SignForm, search: SignSearch
) -> tuple[Int[Array, " s"], Float[Array, " s"], Bool[Array, " s"]]:
    """Choose among near-optimal sign vectors, s and -s included, by what bodies can do.

    Kinetic energy is linear in the parameters and positive for every arm that can exist; friction
    takes power. A choice of signs whose parameters break one of these, k'theta < 0, fits worse by
    (k'theta / std)^2 once it is made to keep it: that much is added to its cost.

    Returns signs, margins, and which signs are undecided as a block.
    """
    signs, margins = search.signs.astype(np.int64), search.margins.copy()
    undecided = np.zeros(len(signs), bool)
    for b in range(search.block.max(initial=-1) + 1):
        members = np.flatnonzero(search.block == b)
        held = form.anchor is not None and form.anchor in members
        joints = np.unique(cut.joint[members[members < len(cut)]])
        level = _levels(data, form, joints, members)
        best = signs[members]
        if not held and _penalty(level, -best) < _penalty(level, best):
            best = -best
        penalty = _penalty(level, best)
        if np.any(np.isfinite(margins[members])) or penalty > 1.0:
            best, margins[members], penalty = _weigh(
                form, members, level, best, penalty, held, margins[members]
            )
        if not held and _penalty(level, -best) - penalty < RADIUS:
            undecided[members] = True
        signs[members] = best
    return signs, margins, undecided


def _penalty(level: Float[Array, "k s"], signs: Int[Array, "... s"]) -> Any:
    """Extra cost of the worst broken inequality."""
    worst = np.min(np.minimum(signs @ level.T, 0.0), axis=-1, initial=0.0)
    return worst**2


def _weigh(
    form: SignForm,
    members: Int[Array, " m"],
    level: Float[Array, "k m"],
    best: Int[Array, " m"],
    penalty: float,
    held: bool,
    margins: Float[Array, " m"],
) -> tuple[Int[Array, " m"], Float[Array, " m"], float]:
    """The best of the near-optimal vectors with penalties added, and margins against it."""
    quadratic = form.quadratic[np.ix_(members, members)]
    anchor = len(members) - 1 if held else None
    table, costs, ended = signs_within(
        quadratic, min(penalty, 4.0 * RADIUS) + RADIUS, anchor=anchor
    )
    if not held:
        table, costs = np.vstack([table, -table]), np.concatenate([costs, costs])
    # A list cut short need not hold the best.
    table = np.vstack([best, table]).astype(np.int64)
    costs = np.append(best @ quadratic @ best, costs)
    total = costs + _penalty(level, table)
    top = int(np.argmin(total))
    chosen = table[top]
    # Too many to list: what the search knows of each sign alone has to do.
    out = np.full(len(members), np.inf) if ended else margins.copy()
    extra = np.maximum(total - total[top], 0.0)
    near = np.flatnonzero(extra < RADIUS)
    mirrored = (table[near] != chosen).mean(1) == 1.0
    for k in near[~mirrored]:
        changed = table[k] != chosen
        out[changed] = np.minimum(out[changed], extra[k])
    return chosen, out, float(total[top] - costs[top])


def positive_functionals(data: _Data, joints: Int[Array, " k"]) -> Float[Array, "f b"]:
    """Linear maps of the parameters that are positive for every arm: energies and friction powers.

    Kinetic energy needs no gravity: 1/2 v'(Y(q, 0, v) - Y(q, 0, 0)) theta, summed over recorded
    states, for these joints moving together and each alone; friction power for each alone.
    """
    samples, model = data.samples, data.model
    chosen = np.linspace(0, len(samples) - 1, min(len(samples), 60)).astype(int)
    q = samples.position[chosen]
    speed = np.zeros_like(q)
    speed[:, joints] = samples.velocity[np.ix_(chosen, joints)]
    zero = np.zeros_like(q)
    weight = regressor(model.robot, q, zero, zero)
    at = weight.shape[-1]
    out = []
    for moving in ([*joints], *([i] for i in joints)) if len(joints) > 1 else ([*joints],):
        v = np.zeros_like(q)
        v[:, moving] = speed[:, moving]
        energy = np.zeros(len(model.names))
        links = regressor(model.robot, q, zero, v) - weight
        energy[:at] = 0.5 * np.einsum("ni,nip->p", v, links)
        if model.rotor_inertia:
            rotor = model.rotor_columns(v)
            energy[at : at + rotor.shape[-1]] = 0.5 * np.einsum("ni,nip->p", v, rotor)
        out.append(energy[data.rows.kept])
    at += model.robot.joints if model.rotor_inertia else 0
    friction = model.friction_columns(speed, temperature=_some(samples.temperature, chosen))
    terms = model.nonnegative[at : at + friction.shape[-1]]
    for i in joints:
        power = np.zeros(len(model.names))
        taken = np.einsum("n,np->p", speed[:, i], friction[:, i])
        power[at : at + friction.shape[-1]] = np.where(terms, taken, 0.0)
        if np.any(power[data.rows.kept]):
            out.append(power[data.rows.kept])
    return np.array(out)


def _some(values: Float[Array, "n j"] | None, chosen: Int[Array, " k"]) -> Array | None:
    return None if values is None else values[chosen]


def _weights(data: _Data, fit: FoldedFit) -> Float[Array, "n j"]:
    """Row weights from what a fit leaves unexplained.

    Three departures from white noise are told apart per joint: its size; that near velocity
    reversals the sign of friction is itself uncertain, so residuals are larger there; and that
    model error persists over neighbouring samples, so they count as fewer.
    """
    samples = data.samples
    keep = np.asarray(samples.keep, bool) & ~_doubtful_ends(data, fit)[:, None]
    residual = np.where(keep, fit.expected - fit.predicted, 0.0)
    near = _near_reversal(samples.velocity, samples.run)
    out = np.empty(residual.shape)
    for i in range(samples.joints):
        base = max(float(fit.noise[i]), float(data.noise[i]))
        deviation = np.full(len(residual), base)
        there = near[:, i] & keep[:, i]
        if there.sum() >= 8:
            local = np.sqrt(np.mean(residual[there, i] ** 2))
            if local > 1.3 * base:
                deviation[near[:, i]] = local
        scaled = residual[:, i] / deviation
        out[:, i] = 1.0 / (deviation * np.sqrt(correlation_length(scaled, samples.run)))
    return out


def _doubtful_ends(data: _Data, fit: FoldedFit, reach: int = 25) -> Bool[Array, " n"]:
    """Samples at the ends of runs where residuals are larger than elsewhere.

    Filters and derivatives have not settled there, so the motion, not the torque, is wrong.
    """
    samples = data.samples
    out = np.zeros(len(samples), bool)
    unit = np.where(samples.keep, fit.expected - fit.predicted, 0.0) / fit.noise
    starts = np.flatnonzero(np.diff(samples.run, prepend=samples.run[0] - 1))
    stops = np.append(starts[1:], len(samples))
    reach = min(reach, int((stops - starts).min()) // 8)
    if reach < 1:
        return out
    step = np.arange(reach)
    rows = np.concatenate([starts[:, None] + step, stops[:, None] - 1 - step])
    size = np.sqrt(np.mean(unit[rows] ** 2, axis=(0, 2)))
    large = np.flatnonzero(size > 2.0)
    if len(large):
        out[rows[:, : min(large[-1] + 4, reach)]] = True
    return out


def _near_reversal(
    velocity: Float[Array, "n j"], run: Int[Array, " n"], reach: int = 2
) -> Bool[Array, "n j"]:
    """Samples within `reach` of a change of sign of their joint's velocity."""
    turn = (velocity[1:] * velocity[:-1] <= 0.0) & (run[1:] == run[:-1])[:, None]
    return _near(turn, reach)


def _near(between: Bool[Array, "m j"], reach: int = 2) -> Bool[Array, "n j"]:
    """Samples within `reach` of an event between two neighbours, m = n - 1."""
    near = np.zeros((len(between) + 1, between.shape[1]), bool)
    for step in range(reach):
        near[: len(between) - step] |= between[step:]
        near[1 + step :] |= between[: len(between) - step]
    return near


def correlation_length(residual: Float[Array, " n"], run: Int[Array, " n"]) -> float:
    """By how many samples one independent sample's worth of residual is spread: 1 + 2 sum of rho.

    The sum ends at the first autocorrelation below 0.05.
    """
    power = float(residual @ residual)
    if power <= 0.0:
        return 1.0
    total = 1.0
    for lag in range(1, min(len(residual) // 4, 200)):
        same = run[lag:] == run[:-lag]
        rho = float(np.sum(residual[lag:] * residual[:-lag] * same)) / power
        if rho < 0.05:
            break
        total += 2.0 * rho
    return total


def _chi2(data: _Data, done: _Round) -> tuple[float, Float[Array, " j"], Float[Array, " j"]]:
    """chi2 per degree of freedom overall and per joint, and relative unexplained torque."""
    keep = np.asarray(data.samples.keep, bool) & ~done.untrusted[:, None]
    residual = np.where(keep, done.fit.expected - done.fit.predicted, 0.0)
    count = np.maximum(keep.sum(0), 1)
    # Near zero a magnitude says little: the variance comes from samples whose sign is clear.
    clear = keep & (np.abs(done.fit.predicted) > 2.0 * done.fit.noise)
    clear = np.where(clear.sum(0) >= 20, clear, keep)
    number = np.maximum(clear.sum(0), 1)
    square = np.sum(np.where(clear, (residual / data.noise) ** 2, 0.0), 0)
    freedom = 1.0 - data.rows.width / max(int(keep.sum()), data.rows.width + 1)
    overall = float(square.sum() / (number.sum() * freedom))
    rms = joint_rms(data.magnitude, keep)
    unexplained = np.sqrt(np.sum(residual**2, 0) / count) / rms
    return overall, square / (number * freedom), unexplained


def _judge(
    data: _Data, done: _Round, model: TorqueModel, *, friction_missing: bool = False
) -> FoundSigns:
    """Flags, warnings and the signed samples."""
    samples, cut = data.samples, done.segmentation
    overall, joint_chi2, unexplained = _chi2(data, done)
    count = len(cut)
    signs, margins = done.signs[:count], done.margins[:count]
    reason = np.array([""] * count, object)
    predicted = done.fit.predicted

    # Relative to the torque itself: magnitudes hold torque and noise together.
    power = joint_rms(data.magnitude, np.asarray(samples.keep, bool)) ** 2
    level = np.maximum(done.fit.noise, data.noise) ** 2
    relative_noise = np.sqrt(level / np.maximum(power - level, 1e-3 * power))
    noisy = (relative_noise > NOISE) & ~np.all(data.known, axis=0)
    wrong_model = (joint_chi2 > MISFIT) & (unexplained > MODEL_ERROR) & ~np.all(data.known, axis=0)
    lost = noisy | wrong_model
    if np.sum(lost) >= 2.0 / 3.0 * np.sum(~np.all(data.known, axis=0)):
        # Joints share their coefficients: where most are not understood, none is.
        wrong_model = ~np.all(data.known, axis=0)
    agree = _agreement(cut, predicted, data.magnitude)
    reason[np.isfinite(margins)] = "another choice of signs fits almost as well"
    reason[agree * signs < 0.0] = "the refined model contradicts the search"
    reason[wrong_model[cut.joint]] = "the model leaves much of this joint's torque unexplained"
    reason[noisy[cut.joint]] = "noise drowns this joint's torque"
    reason[done.undecided[:count]] = "its sign as a whole is undecided"
    if not done.certified:
        reason[:] = "the search was stopped before it was exhausted"

    # The model signs a sample whose magnitude it explains; elsewhere the segment does.
    explained = np.abs(data.magnitude - np.abs(predicted)) < 3.0 * done.fit.noise
    segment_sign = np.append(signs, 0)[cut.stretch]
    sample_sign = np.where(
        (segment_sign == 0) | (explained & (cut.label < 0) & ~done.untrusted[:, None]),
        np.where(predicted >= 0.0, 1, -1),
        segment_sign,
    )
    sample_sign = np.where(data.known, np.where(data.values >= 0.0, 1, -1), sample_sign).astype(
        np.int8
    )
    doubted = np.append(reason != "", True)
    inner = (cut.label >= 0) & ~doubted[cut.label]
    # Odds of the two signs are exp(2 m mu / sigma^2): 5 standard deviations are exp(12.5).
    clear = data.magnitude * np.abs(predicted) > 6.25 * done.fit.noise**2
    clear &= explained & ~(noisy | wrong_model) & ~done.untrusted[:, None]
    clear &= ~(doubted[cut.stretch] & (cut.stretch >= 0)) & done.certified
    # When exactly a sign turns over is known to some hundredths of a second only.
    reach = max(2, round(0.05 * samples.rate_hz))
    turning = _near(sample_sign[1:] != sample_sign[:-1], min(reach, len(sample_sign) - 1))
    # What a model leaves unexplained is not white: small lobes can hide in it.
    coloured = joint_chi2 > MISFIT
    clear &= ~coloured
    hidden = coloured & (data.magnitude < 4.0 * done.fit.noise)
    sample_sure = data.known | ((inner | (clear & (cut.label < 0))) & ~turning & ~hidden)
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
        and flagged <= 0.05 * max(count, 1)
        and not friction_missing
    )
    warnings = _warnings(
        model, done, segments, overall, joint_chi2, noisy, wrong_model, friction_missing
    )
    values = np.zeros(len(data.model.names))
    values[data.rows.kept] = done.fit.theta
    return FoundSigns(
        segments,
        sample_sign,
        sample_sure,
        signed_samples(samples, sample_sign * data.magnitude, ~done.untrusted),
        np.where(data.known, data.values, done.fit.expected),
        done.certified,
        overall,
        joint_chi2,
        done.fit.noise,
        confident,
        warnings,
        done.search.nodes,
        "exact",
        values,
        _recorded(samples),
        predicted,
        data.known,
    )


def _agreement(
    cut: Segmentation, predicted: Float[Array, "n j"], magnitude: Float[Array, "n j"]
) -> Float[Array, " s"]:
    """Per segment, the sign the refined model predicts, weighted by magnitude."""
    label = cut.label.T.ravel()
    use = label >= 0
    weight = (predicted * magnitude).T.ravel()[use]
    return np.bincount(label[use], weight, minlength=len(cut))


def signed_samples(
    samples: Samples, torque: Float[Array, "n j"], trusted: Bool[Array, " n"] | None = None
) -> Samples:
    """The samples with their torque signed before the low-pass, as if it had been recorded so.

    Args:
        samples: With magnitudes.
        torque: Signed, on the same grid, not filtered where `raw_torque` is there.
        trusted: Samples to go on using; None for all.
    """
    signed = _recorded(samples)
    every = np.ones(samples.joints, bool)
    keep = samples.keep if trusted is None else samples.keep & trusted[:, None]
    if samples.raw_torque is None:
        new = np.where(signed, samples.torque, torque)
        return replace(samples, torque=new, signed=every, keep=keep)
    raw = np.where(signed, samples.raw_torque, torque)
    new = np.where(signed, samples.torque, lowpass(samples, raw))
    return replace(samples, torque=new, raw_torque=raw, signed=every, keep=keep)


def signed_by_model(model: TorqueModel, samples: Samples) -> Samples:
    """Magnitudes signed as a fitted model predicts: to score it on recordings without signs."""
    sign = np.where(predicted_torque(model, samples) >= 0.0, 1, -1)
    return signed_samples(samples, sign * _magnitude(samples))


def without_signs(recording: Recording) -> Recording:
    """The recording as if only magnitudes had been recorded, where its signs are not to be used.

    A recording that says which joints carry their sign is left as it is.
    """
    signed = recording.signed
    if signed is not None and not np.all(signed):
        return recording
    return replace(
        recording, signal=np.abs(recording.signal), signed=np.zeros(recording.joints, bool)
    )


def _warnings(
    model: TorqueModel,
    done: _Round,
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
            "guess. Record less noisy torque, or give signs of single stretches."
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
            "motion (inertia decides it), or give the sign of one stretch."
        )
    close = [s for s in segments if s.reason.startswith("another")]
    if close:
        told = ", ".join(f"joint {s.joint + 1} at {s.t0:.2f}-{s.t1:.2f} s" for s in close[:5])
        more = f" and {len(close) - 5} more" if len(close) > 5 else ""
        out.append(
            f"{len(close)} of {len(segments)} segments could have the other sign: {told}{more}. "
            "Record a longer motion, or one in which these joints carry more load."
        )
    return tuple(out)


def _joints(mask: Bool[Array, " j"]) -> str:
    numbers = [str(i + 1) for i in np.flatnonzero(mask)]
    return ("joint " if len(numbers) == 1 else "joints ") + ", ".join(numbers)
