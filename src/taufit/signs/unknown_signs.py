"""Fit of a torque model to unsigned torque or current.

    segments -> quadratic form in the signs -> exact search -> global sign by kinetic energy
             -> folded-normal refinement on every sample -> segments cut again, once more -> fit

The first round finds a model; the second cuts at the zero crossings predicted by it, weights rows
by its residuals, and determines the certainty of each sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.core.errors import InfeasibleError, PoorExcitationError, TaufitError
from taufit.core.names import RenamedAttribute
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
from taufit.signs.data import is_nonlinear, prepare_search, search_regressor
from taufit.signs.findings import RecoveredSigns, SignedSegment
from taufit.signs.hints import SignHint
from taufit.signs.information import information_rows, with_sign_uncertainty
from taufit.signs.quadratic_form import build_quadratic_form, joint_rows
from taufit.signs.refined_search import search_with_path, with_nominal_prior
from taufit.signs.rounds import constrain_round, search_rounds
from taufit.signs.samples import (
    magnitudes,
    sign_by_model,
    with_signs,
    without_signs,
)
from taufit.signs.segments import noise_scale
from taufit.signs.tree import search_tree, segment_values
from taufit.signs.verdict import assess_signs, chi_squares
from taufit.terms import DISSIPATIVE, friction_model

__all__ = [
    "RecoveredSigns",
    "SignHint",
    "SignedSegment",
    "UnsignedFit",
    "find_signs",
    "find_signs_by_tree",
    "fit_unsigned",
    "sign_by_model",
    "with_signs",
    "without_signs",
]


@dataclass(frozen=True, eq=False)
class UnsignedFit:
    """Model fitted to unsigned torque.

    Attributes:
        recovery: Recovered signs.
        model: Fitted model.
        estimator: Estimator; None for the automatic fit.
        automatic: Result of the automatic fit, if made.
    """

    recovery: RecoveredSigns
    model: FittedModel
    estimator: Estimator | None = None
    automatic: Estimate | None = None

    # Former names of 0.1, accepted with a warning until 0.3.
    found = RenamedAttribute("recovery")

    @property
    def values(self) -> Float[Array, " p"]:
        """Parameter values."""
        return self.model.values

    @cached_property
    def estimate(self) -> Estimate:
        """Estimate with its uncertainty, computed on first use.

        Samples near zero, whose sign is uncertain, have a small weight.
        """
        if self.automatic is not None:
            return self.automatic
        assert self.estimator is not None
        estimate = fit_samples(
            self.model.structure,
            self.recovery.fit_samples,
            self.estimator,
            require_excitation=False,
        )
        if self.recovery.method == "tree" or is_nonlinear(self.model.structure):
            return estimate
        rows = information_rows(self.model.structure, self.recovery)
        weights = _joint_weights(self.recovery, self.estimator)
        regression = RowsInMemory(rows, estimate.base)
        information = regression.information(weights)
        return replace(
            estimate,
            values=self.values,
            base_covariance=base_covariance(regression, weights, information, self.values),
            information=information,
            joint_weights=weights.joint,
        )

    @property
    def segments(self) -> tuple[SignedSegment, ...]:
        return self.recovery.segments

    @property
    def signs(self) -> Int[Array, " s"]:
        return self.recovery.signs

    @property
    def ambiguous(self) -> Bool[Array, " s"]:
        return self.recovery.ambiguous

    @property
    def certified(self) -> bool:
        return self.recovery.certified

    @property
    def chi2_per_dof(self) -> float:
        return self.recovery.chi2_per_dof

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.recovery.warnings


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
        model: Model to be fitted.
        samples: Motion and torque magnitudes; `samples.signed` marks joints with recorded signs.
        method: "exact", or "tree" for the pruned tree search of the literature.
        estimator: Estimator of the final fit. Default: automatic, as in `taufit fit` (exact
            method), or that of the literature (tree).
        hints: Segments whose sign is known (exact method only).
        constrained: Choose signs by the physically constrained cost (exact method only).
        settings: Settings of the method, see `find_signs` and `find_signs_by_tree`.
    """
    if method == "exact":
        recovery = find_signs(model, samples, hints=hints, constrained=constrained, **settings)
    elif method == "tree":
        if hints or constrained:
            raise TaufitError(
                "the tree search takes neither signs of single segments nor a constrained cost: "
                "leave them out, or use the exact method."
            )
        recovery = find_signs_by_tree(model, samples, **settings)
        # phi2 is ordinary least squares, within the same masses.
        estimator = estimator or ConsistentSdp(
            weighting="none", mass=_mass_bounds(model, settings.get("bounds"))
        )
    else:
        raise TaufitError(f"there is no sign method {method!r}: use exact or tree.")
    if estimator is None:
        automatic_fit = fit_signed(model, recovery)
        shaped_model = (
            model if automatic_fit.shape is None else replace(model, shape=automatic_fit.shape)
        )
        return UnsignedFit(
            recovery, shaped_model.with_values(automatic_fit.values), automatic=automatic_fit
        )
    if is_nonlinear(model):
        estimate = fit_samples(model, recovery.fit_samples, estimator, require_excitation=False)
        fitted = replace(model, shape=estimate.shape).with_values(estimate.values)
        return UnsignedFit(recovery, fitted, estimator)
    rows = information_rows(model, recovery)
    weights = _joint_weights(recovery, estimator)
    try:
        solution = estimator.solve(rows.information(weights), EstimationProblem.from_model(model))
    except InfeasibleError as error:
        if method == "exact":
            raise
        raise InfeasibleError(
            f"the signs the tree search found fit no arm ({error}) Most likely some are wrong: use "
            "the exact method."
        ) from None
    return UnsignedFit(recovery, model.with_values(solution.values), estimator)


def fit_signed(
    model: TorqueModel,
    recovery: RecoveredSigns,
    estimator: Estimator | None = None,
    *,
    dropped: tuple[str, ...] = (),
    friction_prior: FrictionPrior | None = None,
) -> Estimate:
    """Fit torque with recovered signs; the uncertainty is that of a fit to magnitudes.

    Args:
        model: Torque model.
        recovery: Recovered signs.
        estimator: Estimator; default: automatic.
        dropped: Parameters fixed at zero.
        friction_prior: Friction prior.
    """
    estimate = fit(
        model, recovery.fit_samples, estimator, dropped=dropped, friction_prior=friction_prior
    )
    estimate = with_sign_uncertainty(estimate, model, recovery.fit_samples, recovery)
    return replace(estimate, warnings=(*recovery.warnings, *estimate.warnings))


@one_blas_thread
def find_signs(
    model: TorqueModel,
    samples: Samples,
    *,
    hints: Sequence[SignHint] = (),
    rounds: int = 2,
    node_cap: int = 1_000_000,
    constrained: bool = False,
) -> RecoveredSigns:
    """Recover torque signs from magnitudes by exact search, with their certainty.

    Args:
        model: Model to be fitted. Friction that depends on load or path is searched with Coulomb
            and viscous terms first, then as it is; friction with shapes as pre-sliding.
        samples: Samples; `signed` marks joints with recorded signs, None means none.
        hints: Segments whose sign is known.
        rounds: Number of rounds of cutting, searching and refining; with two or more, up to three
            are added while the model still changes.
        node_cap: Partial sign vectors to visit before another bound is tried, and again with it.
            Larger values prove more and take longer.
        constrained: Choose the signs whose best physically consistent model fits best; exact too,
            at some hundredths of a second per candidate sign vector.
    """
    data = prepare_search(model, samples, hints)
    result = search_rounds(data, rounds, node_cap)
    if is_nonlinear(model):
        data, result = search_with_path(model, data, result, rounds, node_cap)
    if constrained:
        return assess_signs(data, constrain_round(data, result), model)
    if not _has_friction(model) and chi_squares(data, result)[0] > 1.5:
        # Unmodelled friction reverses signs; its columns cost little if there is none.
        friction_data = prepare_search(
            replace(model, friction=friction_model("linear"), shape=None), samples, hints
        )
        retry = search_rounds(friction_data, rounds, node_cap)
        if chi_squares(friction_data, retry)[0] < 0.8 * chi_squares(data, result)[0]:
            return assess_signs(friction_data, retry, model, friction_missing=True)
    return with_nominal_prior(model, assess_signs(data, result, model))


def find_signs_by_tree(model: TorqueModel, samples: Samples, **settings: Any) -> RecoveredSigns:
    """Recover torque signs by the pruned tree search of the literature, without certificate.

    Args:
        model: Model to be fitted; friction shapes must be known.
        samples: Motion and torque magnitudes; all joints are taken as unsigned.
        settings: Settings of `search_tree`.
    """
    if is_nonlinear(model):
        raise TaufitError(
            "the tree search needs friction whose columns are known beforehand: linear, or none "
            "(--friction linear)."
        )
    search = search_tree(model, samples, **settings)
    if len(search.signs) == 0:
        raise PoorExcitationError(
            "no segment of torque exceeds the threshold: signs cannot be determined. "
            "Lower the threshold."
        )
    sign, torque, keep = segment_values(search, samples)
    signed = replace(
        with_signs(replace(samples, signed=None), sign * magnitudes(samples)), keep=keep
    )
    segments = tuple(
        SignedSegment(
            int(search.joint[k]),
            int(samples.run[search.first[k]]),
            float(samples.time[search.first[k]]),
            float(samples.time[search.last[k]]),
            int(search.first[k]),
            int(search.last[k]),
            int(search.signs[k]),
            0.0,
            True,
            "the tree search does not tell how sure it is",
        )
        for k in range(len(search.signs))
    )
    noise = noise_scale(magnitudes(samples), samples.run, np.asarray(samples.keep, bool))
    rows = joint_rows(search_regressor(model, samples), np.where(keep, 1.0 / noise, 0.0))
    form = build_quadratic_form(
        rows, torque, np.broadcast_to(1.0 / noise, torque.shape), keep - 1, 0
    )
    theta = form.parameters(np.ones(1, np.int64))
    residual = np.where(keep, torque - rows.torque(theta), 0.0)
    count = np.maximum(keep.sum(0), 1)
    square = np.sum((residual / noise) ** 2, 0)
    values = np.zeros(len(model.names))
    values[rows.parameters] = theta
    return RecoveredSigns(
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
        search.solved,
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
    """Minimum and maximum mass of each link, from bounds of all parameters."""
    if bounds is None:
        return {}
    low, high = (np.asarray(side, float) for side in bounds)
    masses = model.layout.masses
    pairs = zip(low[masses], high[masses], strict=True)
    return {
        link_name(k): (float(minimum), float(maximum)) for k, (minimum, maximum) in enumerate(pairs)
    }


def _joint_weights(recovery: RecoveredSigns, estimator: Estimator) -> Weights:
    """Weights from the noise of the refinement: no further iterations needed."""
    equal = estimator.weighting == "none"
    return Weights(np.ones(len(recovery.noise)) if equal else 1.0 / recovery.noise)


def _has_friction(model: TorqueModel) -> bool:
    return bool(model.layout.of_kind(DISSIPATIVE).any())
