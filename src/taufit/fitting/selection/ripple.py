"""Selection of torque ripple (periodic in joint position) by its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.prior_scales import prepare_evidence
from taufit.model.torque_model import TorqueModel
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import WAVE, further_term
from taufit.terms.layout import ParameterLayout

ORDERS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
# Factor on the information criterion, since on a short recording ripple also fits model errors.
# Of 1.5 and 3, chosen on LWR4 and Panda for the Med 7, on Med 7 and Panda for the LWR4.
_CRITERION_FACTOR = 1.5
# Waves longer than the joint's travel fit any slow error: they must reduce the squared residuals of
# the shorter ones to this ratio.
_LONG_WAVE_RATIO = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RippleSelection:
    """Model with selected ripple terms.

    Attributes:
        model: Model with ripple if the data support it, else unchanged.
        dropped: Ripple parameters fixed at zero.
        load: Parameters for the initial load of load-dependent friction; None if nothing was
            fitted.
    """

    model: TorqueModel
    dropped: tuple[str, ...] = ()
    load: Float[Array, " p"] | None = None


def with_ripple(
    model: TorqueModel,
    load: Float[Array, " p"] | None,
    samples: Samples | SampleSource,
    orders: tuple[float, ...] = ORDERS,
) -> RippleSelection:
    """Model with torque ripple where the data support it.

    A joint has ripple if its waves explain more than chance: over N independent samples

        N log(S_without / S_with) > 1.5 waves log N,

    1.5 times the Bayesian information criterion, S being a joint's sums of squared residuals.
    Waves confounded with gravity are fixed at zero, and so are those longer than the joint's travel
    unless they halve the residuals of the others. Without any such joint the model is unchanged.

    Args:
        model: Friction without ripple.
        load: Parameters of `model` whose rigid-body torque is the initial load, if known.
        samples: Conditioned motion and torque; of long recordings an excerpt is used.
        orders: Waves per radian of the joint.
    """
    if model.friction is None or model.layout.of_group(WAVE).any():
        return RippleSelection(model)
    ripple = further_term("ripple", orders)
    ripple_model = replace(model, terms=(ripple, *model.terms))
    layout = ripple_model.layout
    waves = layout.of_group(WAVE)
    identifiable = waves & np.isin(np.arange(layout.size), base_parameters(ripple_model).columns)
    source = as_source(samples)
    within_travel = identifiable & _within_travel(layout, waves, ripple.orders, source)
    if load is not None:
        values = dict(zip(model.names, load.tolist(), strict=True))
        load = np.array([values.get(name, 0.0) for name in layout.names])
    held = _names_in_mask(layout, waves & ~identifiable)
    search = prepare_evidence(ripple_model, as_source(source.excerpt), held, initial_load=load)
    owner = np.minimum(layout.owner, layout.joints - 1)  # a tree has more links than joints
    independent = np.maximum(search.regression.torque.count / search.correlation, 2.0)
    # Joints whose waves explain too little even without a prior need no search.
    estimates = [search.weak_estimate(mask) for mask in (search.included & ~waves, search.included)]
    gain = independent * _log_ratio(*(search.regression.residual_squares(x) for x in estimates))
    short, complete = (
        np.bincount(owner[mask], minlength=layout.joints) for mask in (within_travel, identifiable)
    )
    fewest = np.where(short > 0, short, complete)
    candidates = (fewest > 0) & (gain > _CRITERION_FACTOR * fewest * np.log(independent))
    if not np.any(candidates):
        return _without_ripple(model, layout, estimates[0])
    search.included &= ~waves | candidates[owner]
    within_travel, identifiable = within_travel & search.included, identifiable & search.included
    search.run()

    def residual_squares(included: Bool[Array, " p"]) -> Float[Array, " j"]:
        """Squared residuals of each joint with some of its waves and all waves of the others."""
        return np.array(
            [
                search.regression.residual_squares(
                    search.map_estimate(search.included & ~(joint_waves & ~included))
                )[k]
                for k, joint_waves in enumerate(
                    waves & (owner == np.arange(layout.joints)[:, None])
                )
            ]
        )

    squares_without, squares_short = (
        residual_squares(np.zeros_like(waves)),
        residual_squares(within_travel),
    )
    all_squares = search.regression.residual_squares(search.theta)
    selected = np.where(
        (all_squares < _LONG_WAVE_RATIO * squares_short)[owner], identifiable, within_travel
    )
    remaining = np.where(all_squares < _LONG_WAVE_RATIO * squares_short, all_squares, squares_short)
    terms = np.bincount(owner[selected], minlength=layout.joints)
    gain = independent * _log_ratio(squares_without, remaining)
    selected &= (gain > _CRITERION_FACTOR * terms * np.log(independent))[owner]
    if not np.any(selected):
        return _without_ripple(model, layout, search.theta)
    return RippleSelection(ripple_model, _names_in_mask(layout, waves & ~selected), search.theta)


def _without_ripple(
    model: TorqueModel, layout: ParameterLayout, theta: Float[Array, " p"]
) -> RippleSelection:
    values_by_name = dict(zip(layout.names, theta.tolist(), strict=True))
    return RippleSelection(model, (), np.array([values_by_name[name] for name in model.names]))


def _log_ratio(a: Float[Array, " j"], b: Float[Array, " j"]) -> Float[Array, " j"]:
    tiny = np.finfo(float).tiny
    return np.asarray(np.log(np.maximum(a, tiny) / np.maximum(b, tiny)))


def _within_travel(
    layout: ParameterLayout,
    waves: Bool[Array, " p"],
    orders: tuple[float, ...],
    source: SampleSource,
) -> Bool[Array, " p"]:
    """Mask of waves that are not longer than the joint's travel."""
    travel = np.nan_to_num(source.summary.ranges["position"].width)
    within = np.zeros(layout.size, bool)
    wave_orders = np.tile(np.repeat(orders, 2), layout.joints)
    for i, order in zip(np.flatnonzero(waves), wave_orders, strict=True):
        within[i] = order * travel[int(layout.owner[i])] >= 2.0 * np.pi
    return within


def _names_in_mask(layout: ParameterLayout, mask: Any) -> tuple[str, ...]:
    return tuple(name for name, is_selected in zip(layout.names, mask, strict=True) if is_selected)
