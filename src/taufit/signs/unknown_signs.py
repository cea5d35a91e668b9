"""Fit a torque model to torque or current whose sign was not recorded.

    segments -> quadratic form in the signs -> exact search -> global sign by kinetic energy
             -> folded-normal refinement on every sample -> segments cut again, once more -> fit

The first round finds a model; the second cuts at the zero crossings that model predicts, weighs
rows by what it leaves unexplained, and judges how sure each sign is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.errors import InfeasibleError, PoorExcitationError, TaufitError
from taufit.core.parameters import link_name
from taufit.core.threads import one_blas_thread
from taufit.estimators.consistent_sdp import ConsistentSdp
from taufit.estimators.estimator import EstimationProblem, Estimator
from taufit.fitting.fit import fit
from taufit.fitting.fit_samples import fit_samples
from taufit.fitting.friction_prior import FrictionPrior
from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.regression.covariance import base_covariance
from taufit.regression.estimate import Estimate
from taufit.regression.regression import RowsInMemory
from taufit.regression.weights import Weights
from taufit.signals import Samples
from taufit.signs.data import is_nonlinear, prepare, search_regressor
from taufit.signs.findings import FoundSigns, SignedSegment
from taufit.signs.hints import SignHint
from taufit.signs.information import information_rows, with_sign_uncertainty
from taufit.signs.quadratic import joint_rows, sign_form
from taufit.signs.refined_search import search_with_path, with_nominal_prior
from taufit.signs.rounds import constrain, search_rounds
from taufit.signs.samples import (
    magnitudes,
    signed_by_model,
    signed_samples,
    without_signs,
)
from taufit.signs.segments import noise_scale
from taufit.signs.tree import search_tree, segment_values
from taufit.signs.verdict import chi_squares, judge
from taufit.terms import DISSIPATIVE, friction_model

__all__ = [
    "FoundSigns",
    "SignHint",
    "SignedSegment",
    "UnsignedFit",
    "find_signs",
    "find_signs_by_tree",
    "fit_unsigned",
    "signed_by_model",
    "signed_samples",
    "without_signs",
]


@dataclass(frozen=True, eq=False)
class UnsignedFit:
    """A model fitted to torque without signs.

    Attributes:
        found: The signs, and how sure they are.
        model: What was fitted, with its parameters.
        estimator: What fitted it; None for the automatic fit.
        automatic: The automatic fit, where that was made.
    """

    found: FoundSigns
    model: FittedModel
    estimator: Estimator | None = None
    automatic: Estimate | None = None

    @property
    def values(self) -> Float[Array, " p"]:
        """The parameters."""
        return self.model.values

    @cached_property
    def estimate(self) -> Estimate:
        """The fit with everything about its uncertainty, worked out when first asked for.

        Samples near zero, whose sign is open, count as little as they say.
        """
        if self.automatic is not None:
            return self.automatic
        assert self.estimator is not None
        known = fit_samples(
            self.model.structure, self.found.fit_samples, self.estimator, require_excitation=False
        )
        if self.found.method == "tree" or is_nonlinear(self.model.structure):
            return known
        rows = information_rows(self.model.structure, self.found)
        weights = _joint_weights(self.found, self.estimator)
        regression = RowsInMemory(rows, known.base)
        information = regression.information(weights)
        return replace(
            known,
            values=self.values,
            base_covariance=base_covariance(regression, weights, information, self.values),
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


@one_blas_thread
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
        estimator: Of the final fit. By default the automatic one, as `taufit fit` makes it once
            signs are found (exact method), or the literature's (tree).
        hints: Segments whose sign is known (exact method only).
        constrained: Settle the signs on the physically constrained cost (exact method only).
        settings: Of the method: see `find_signs` and `find_signs_by_tree`.
    """
    if method == "exact":
        found = find_signs(model, samples, hints=hints, constrained=constrained, **settings)
    elif method == "tree":
        if hints or constrained:
            raise TaufitError(
                "the tree search takes neither signs of single segments nor a constrained cost: "
                "leave them out, or use the exact method."
            )
        found = find_signs_by_tree(model, samples, **settings)
        # phi2 is plain least squares, within the same masses.
        estimator = estimator or ConsistentSdp(
            weighting="none", mass=_mass_bounds(model, settings.get("bounds"))
        )
    else:
        raise TaufitError(f"there is no sign method {method!r}: use exact or tree.")
    if estimator is None:
        known = fit_found(model, found)
        shaped = model if known.shape is None else replace(model, shape=known.shape)
        return UnsignedFit(found, shaped.with_values(known.values), automatic=known)
    if is_nonlinear(model):
        estimate = fit_samples(model, found.fit_samples, estimator, require_excitation=False)
        fitted = replace(model, shape=estimate.shape).with_values(estimate.values)
        return UnsignedFit(found, fitted, estimator)
    rows = information_rows(model, found)
    weights = _joint_weights(found, estimator)
    try:
        solution = estimator.solve(rows.information(weights), EstimationProblem.from_model(model))
    except InfeasibleError as error:
        if method == "exact":
            raise
        raise InfeasibleError(
            f"the signs the tree search found fit no arm ({error}) Most likely some are wrong: use "
            "the exact method."
        ) from None
    return UnsignedFit(found, model.with_values(solution.values), estimator)


def fit_found(
    model: TorqueModel,
    found: FoundSigns,
    estimator: Estimator | None = None,
    *,
    dropped: tuple[str, ...] = (),
    known: FrictionPrior | None = None,
) -> Estimate:
    """A fit to torque whose signs were found, uncertain as one to magnitudes is.

    Args:
        model: What explains the torque.
        found: The signs.
        estimator: Replaces the automatic one.
        dropped: Parameters held at zero.
        known: Friction known before.
    """
    estimate = fit(model, found.fit_samples, estimator, dropped=dropped, friction_prior=known)
    estimate = with_sign_uncertainty(estimate, model, found.fit_samples, found)
    return replace(estimate, warnings=(*found.warnings, *estimate.warnings))


@one_blas_thread
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
        model: What is fitted. Friction that depends on load or path is looked for with Coulomb
            and viscous terms first, then as it is; friction with shapes as pre-sliding.
        samples: `signed` tells which joints carry their sign; None means none does.
        hints: Segments whose sign is known.
        rounds: Times to cut, search and refine; with two or more, up to three are added where the
            last still changed the model.
        node_cap: Partial sign vectors to visit before another bound is tried, and again with it.
        constrained: Choose the signs whose best physically possible model fits best, instead of
            those that fit best; exact too, and some hundredths of a second per sign vector in
            question.
    """
    data = prepare(model, samples, hints)
    done = search_rounds(data, rounds, node_cap)
    if is_nonlinear(model):
        data, done = search_with_path(model, data, done, rounds, node_cap)
    if constrained:
        return judge(data, constrain(data, done), model)
    if not _has_friction(model) and chi_squares(data, done)[0] > 1.5:
        # Unmodelled friction turns signs over; its columns cost little where there is none.
        other = prepare(
            replace(model, friction=friction_model("linear"), shape=None), samples, hints
        )
        retry = search_rounds(other, rounds, node_cap)
        if chi_squares(other, retry)[0] < 0.8 * chi_squares(data, done)[0]:
            return judge(other, retry, model, friction_missing=True)
    return with_nominal_prior(model, judge(data, done, model))


def find_signs_by_tree(model: TorqueModel, samples: Samples, **settings: Any) -> FoundSigns:
    """Recover torque signs by the pruned tree search of the literature; it proves nothing.

    Args:
        model: What is fitted; friction shapes must be known.
        samples: Motion and magnitudes; all joints are taken as unsigned.
        settings: Of `search_tree`.
    """
    if is_nonlinear(model):
        raise TaufitError(
            "the tree search needs friction whose columns are known beforehand: linear, or none "
            "(--friction linear)."
        )
    found = search_tree(model, samples, **settings)
    if len(found.signs) == 0:
        raise PoorExcitationError(
            "no segment of torque exceeds the threshold: signs cannot be determined. "
            "Lower the threshold."
        )
    sign, torque, keep = segment_values(found, samples)
    signed = replace(
        signed_samples(replace(samples, signed=None), sign * magnitudes(samples)), keep=keep
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
    noise = noise_scale(magnitudes(samples), samples.run, np.asarray(samples.keep, bool))
    rows = joint_rows(search_regressor(model, samples), np.where(keep, 1.0 / noise, 0.0))
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
        np.zeros(samples.joints, bool),
        np.zeros(samples.joints, bool),
    )


def _mass_bounds(
    model: TorqueModel, bounds: tuple[Float[Array, " p"], Float[Array, " p"]] | None
) -> dict[str, tuple[float, float]]:
    """Least and largest mass of each link among bounds of all parameters."""
    if bounds is None:
        return {}
    low, high = (np.asarray(side, float) for side in bounds)
    masses = model.layout.masses
    each = zip(low[masses], high[masses], strict=True)
    return {link_name(k): (float(least), float(most)) for k, (least, most) in enumerate(each)}


def _joint_weights(found: FoundSigns, estimator: Estimator) -> Weights:
    """Refinement already knows each joint's noise: weights need no further rounds."""
    equal = estimator.weighting == "none"
    return Weights(np.ones(len(found.noise)) if equal else 1.0 / found.noise)


def _has_friction(model: TorqueModel) -> bool:
    return bool(model.layout.of_kind(DISSIPATIVE).any())
