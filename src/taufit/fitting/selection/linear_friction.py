"""Choice of linear friction where the automatic terms predict left-out blocks worse.

Three blocks of a short recording are left out in turn and predicted from the others, by all terms
and by the linear ones alone (Coulomb, viscous, offset), both under the priors of the whole
recording. No model is refitted: the triangular factors of a block are subtracted from the sum.

Where all terms together leave more of a joint's torque than a constant would, nothing supports the
optional ones: that joint has linear friction, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
# Errors of a joint over its torque's standard deviation from which it has linear friction: a
# requirement. The rule was chosen on LWR4 and xMate; on the Kinova it leaves 0.97 of the error.
_MAX_JOINT_ERROR = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class BlockErrors:
    """Errors on left-out blocks.

    Attributes:
        automatic, linear: Squares of all terms and of linear ones, by block and joint [(N m)^2].
        count: Number of samples.
        torque_std: Standard deviation of torque [N m].
    """

    automatic: Float[Array, "b j"]
    linear: Float[Array, "b j"]
    count: Float[Array, "b j"]
    torque_std: Float[Array, " j"]

    @property
    def ratio(self) -> float:
        """Geometric mean over joints and blocks of the rms error, linear over automatic."""
        measured = (self.automatic > 0.0) & (self.linear > 0.0)
        if not measured.any():
            return 1.0
        logs = np.log(self.linear[measured] / self.automatic[measured])
        return float(np.exp(0.5 * np.mean(logs)))

    @property
    def automatic_nrmse(self) -> Float[Array, " j"]:
        """Error of all terms relative to the torque's standard deviation, per joint."""
        mean_square = self.automatic.sum(axis=0) / np.maximum(self.count.sum(axis=0), 1.0)
        std = np.maximum(self.torque_std, np.finfo(float).tiny)
        return np.asarray(np.sqrt(mean_square) / std)


def with_linear_friction(
    model: TorqueModel, samples: Samples | SampleSource
) -> tuple[TorqueModel, tuple[str, ...], tuple[Finding, ...]]:
    """Model with linear friction if this predicts left-out blocks of short data clearly better.

    Args:
        model: Automatic model.
        samples: Conditioned motion and torque; of long recordings the model is unchanged.

    Returns:
        The model, parameters fixed at zero (the optional terms of joints of which nothing is
        predicted), and findings if friction was changed.
    """
    source = as_source(samples)
    amount = DataAmount.from_samples(model, source)
    if model.friction is None or not amount.is_small:
        return model, (), ()
    errors = block_errors(model, source, amount.minimum_noise(source))
    if errors.ratio < _MAX_RATIO:
        message = (
            "friction is linear (Coulomb and viscous): of blocks left out of this short motion it "
            f"leaves {errors.ratio:.2f} times the error of pre-sliding, load-dependent and "
            "nonlinear viscous friction. Record longer for those, or fit with --friction "
            "presliding."
        )
        finding = Finding("linear_friction", "info", message, value=errors.ratio)
        return replace(model, friction=friction_model("linear")), (), (finding,)
    return model, *_linear_joints(model, errors.automatic_nrmse)


def _linear_joints(
    model: TorqueModel, error: Float[Array, " j"]
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Optional terms of joints of which nothing is predicted, and a finding on each joint."""
    joints = np.flatnonzero(error > _MAX_JOINT_ERROR)
    layout = model.layout
    optional = layout.select(lambda parameter: bool(parameter.optional))
    dropped = np.array(layout.names)[optional & np.isin(layout.owner, joints)]
    findings = (
        Finding(
            "linear_friction",
            "info",
            f"friction of joint {j + 1} is linear (Coulomb and viscous): all terms leave "
            f"{error[j]:.1f} times the standard deviation of its torque in blocks left out of "
            "this short motion.",
            joint=int(j) + 1,
            value=float(error[j]),
        )
        for j in joints
    )
    return tuple(dropped.tolist()), tuple(findings)


def block_errors(
    model: TorqueModel, source: SampleSource, minimum_noise: Float[Array, " j"] | None = None
) -> BlockErrors:
    """Errors of automatic and of linear friction on left-out blocks."""
    excerpt = as_source(source.excerpt)
    joints = confounded_terms(model, source.excerpt).joints
    search = maximise_evidence(model, excerpt, (), minimum_noise, None, joints)
    is_optional = model.layout.select(lambda parameter: bool(parameter.optional))
    blocks = _blocks(search)
    automatic, linear = (
        np.array([_left_out_squares(search, *block, included) for block in blocks])
        for included in (search.included, search.included & ~is_optional)
    )
    count = np.array([[part.count for part in block] for block, _ in blocks], float)
    return BlockErrors(automatic, linear, count, source.summary.torque_std)


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
