"""Choice of linear friction where the automatic terms predict left-out blocks worse.

Three blocks of a short recording are left out in turn and predicted from the others, by all terms
and by the linear ones alone (Coulomb, viscous, offset), both under the priors of the whole
recording. No model is refitted: the triangular factors of a block are subtracted from the sum.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.fitting.data_sufficiency import DataAmount
from taufit.fitting.selection.friction_terms import solve_normal
from taufit.fitting.selection.prior_scales import EvidenceMaximisation, maximise_evidence
from taufit.fitting.unidirectional_joints import confounded_terms
from taufit.model.torque_model import TorqueModel
from taufit.recording.finding import Finding
from taufit.regression.information import Information
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import friction_model

_BLOCKS = 3
# Samples beside a left-out block that are not used for training either [s].
_GAP_S = 0.5
# Errors of linear over automatic friction below which linear friction is used. Tests of two arms
# bound it to 0.92-1.02 (xMate alone) and 0.92-0.97 (Kinova alone).
_MAX_RATIO = 0.95


def with_linear_friction(
    model: TorqueModel, samples: Samples | SampleSource
) -> tuple[TorqueModel, tuple[Finding, ...]]:
    """Model with linear friction if this predicts left-out blocks of short data clearly better.

    Args:
        model: Automatic model.
        samples: Conditioned motion and torque; of long recordings the model is unchanged.

    Returns:
        The model, and a finding if friction was changed.
    """
    source = as_source(samples)
    amount = DataAmount.from_samples(model, source)
    if model.friction is None or not amount.is_small:
        return model, ()
    ratio = linear_error_ratio(model, source, amount.minimum_noise(source))
    if not ratio < _MAX_RATIO:
        return model, ()
    message = (
        "friction is linear (Coulomb and viscous): of blocks left out of this short motion it "
        f"leaves {ratio:.2f} times the error of pre-sliding, load-dependent and nonlinear viscous "
        "friction. Record longer for those, or fit with --friction presliding."
    )
    finding = Finding("linear_friction", "info", message, value=ratio)
    return replace(model, friction=friction_model("linear")), (finding,)


def linear_error_ratio(
    model: TorqueModel, source: SampleSource, minimum_noise: Float[Array, " j"] | None = None
) -> float:
    """Error of linear over automatic friction on left-out blocks.

    Geometric mean over joints and blocks of the ratio of rms errors.
    """
    excerpt = as_source(source.excerpt)
    joints = confounded_terms(model, source.excerpt).joints
    search = maximise_evidence(model, excerpt, (), minimum_noise, None, joints)
    is_optional = model.layout.select(lambda parameter: bool(parameter.optional))
    logs = []
    for block, neighbourhood in _blocks(search):
        automatic, linear = (
            _left_out_squares(search, block, neighbourhood, included)
            for included in (search.included, search.included & ~is_optional)
        )
        measured = (automatic > 0.0) & (linear > 0.0)
        logs += (0.5 * np.log(linear[measured] / automatic[measured])).tolist()
    return float(np.exp(np.mean(logs))) if logs else 1.0


def _blocks(
    search: EvidenceMaximisation,
) -> list[tuple[tuple[Information, ...], tuple[Information, ...]]]:
    """Information of each block, and of the block with the samples beside it."""
    rows, columns = search.regression.excerpt, search.regression.base.columns
    used = np.flatnonzero(rows.keep.any(axis=1))
    gap = round(_GAP_S * rows.rate_hz)
    edges = np.linspace(0, len(used), _BLOCKS + 1).astype(int)
    spans = [(int(used[a]), int(used[b - 1]) + 1) for a, b in pairwise(edges)]
    return [
        (
            rows.information_by_joint(first, last, columns),
            rows.information_by_joint(max(first - gap, 0), min(last + gap, len(rows)), columns),
        )
        for first, last in spans
    ]


def _left_out_squares(
    search: EvidenceMaximisation,
    block: tuple[Information, ...],
    neighbourhood: tuple[Information, ...],
    included: Bool[Array, " p"],
) -> Float[Array, " j"]:
    """Squared errors per joint of a block, predicted from the samples outside its neighbourhood."""
    mapping = search.regression.base.mapping
    square, right = search.weighted_equations(neighbourhood)
    links = search.prior_precision()
    theta = solve_normal(
        search.square - square + links + np.diag(search.precision()),
        search.right - right + search.prior_right(),
        search.model.nonnegative,
        included,
    )
    return np.array([information.cost(mapping @ theta) for information in block])
