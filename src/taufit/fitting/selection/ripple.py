"""Whether a joint's torque repeats with its own angle: decided by the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.model.torque_model import TorqueModel
from taufit.signals.sample_source import SampleSource, source_of
from taufit.signals.samples import Samples
from taufit.terms import WAVE, further_term
from taufit.terms.layout import ParameterLayout

ORDERS = (1.0, 2.0, 3.0)
# Residuals are model error as much as noise, which waves imitate on a short recording: the
# criterion must be met this many times over.
_CRITERION_FACTOR = 3.0
# Part of a wave fits any slow error and is wrong elsewhere: waves longer than the joint's travel
# must take away this share of the squared residuals that the shorter ones leave.
_LONG_WAVE_RATIO = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RippleSelection:
    """Whether there is ripple, and what was found on the way.

    Attributes:
        model: With ripple where the data ask for it, else as it was.
        dropped: Its waves that are held at zero.
        load: Parameters of the model whose links' torque load-dependent friction may begin with;
            None where nothing was fitted.
    """

    model: TorqueModel
    dropped: tuple[str, ...] = ()
    load: Float[Array, " p"] | None = None


def with_ripple(
    model: TorqueModel, samples: Samples | SampleSource, orders: tuple[float, ...] = ORDERS
) -> RippleSelection:
    """The model with position ripple where the data ask for it.

    A joint has ripple when its waves explain more than chance would: over N independent samples

        N log(S_without / S_with) > 3 waves log N,

    three times what the Bayesian information criterion asks, S being a joint's sums of squared
    residuals. Waves that gravity of the links explains already are held at zero, and so are those
    longer than the joint's travel unless they halve what the others leave. Without any such joint
    the model is as it was.

    Args:
        model: Friction without ripple.
        samples: Conditioned motion and torque; of many an excerpt is looked at.
        orders: Waves per radian of the joint.
    """
    if model.friction is None or model.layout.of_group(WAVE).any():
        return RippleSelection(model)
    ripple = further_term("ripple", orders)
    ripple_model = replace(model, terms=(ripple, *model.terms))
    layout = ripple_model.layout
    waves = layout.of_group(WAVE)
    identifiable = waves & np.isin(np.arange(layout.size), base_parameters(ripple_model).columns)
    source = source_of(samples)
    within_travel = identifiable & _within_travel(layout, waves, ripple.orders, source)
    search = maximise_evidence(
        ripple_model, source_of(source.excerpt), _selected_names(layout, waves & ~identifiable)
    )
    owner = np.asarray(layout.owner)

    def residual_squares(included: Bool[Array, " p"]) -> Float[Array, " j"]:
        """Of each joint's residuals with these of its waves and all waves of the others."""
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
    independent = np.maximum(search.regression.torque.count / search.correlation, 2.0)
    terms = np.bincount(owner[selected], minlength=layout.joints)
    gain = independent * np.log(squares_without / np.maximum(remaining, np.finfo(float).tiny))
    selected &= (gain > _CRITERION_FACTOR * terms * np.log(independent))[owner]
    if not np.any(selected):
        values_by_name = dict(zip(layout.names, search.theta.tolist(), strict=True))
        return RippleSelection(model, (), np.array([values_by_name[name] for name in model.names]))
    return RippleSelection(ripple_model, _selected_names(layout, waves & ~selected), search.theta)


def _within_travel(
    layout: ParameterLayout,
    waves: Bool[Array, " p"],
    orders: tuple[float, ...],
    source: SampleSource,
) -> Bool[Array, " p"]:
    """Waves of which the joint's travel holds at least one."""
    travel = np.nan_to_num(source.summary.extents["position"].span)
    within = np.zeros(layout.size, bool)
    wave_orders = np.tile(np.repeat(orders, 2), layout.joints)
    for i, order in zip(np.flatnonzero(waves), wave_orders, strict=True):
        within[i] = order * travel[int(layout.owner[i])] >= 2.0 * np.pi
    return within


def _selected_names(layout: ParameterLayout, mask: Any) -> tuple[str, ...]:
    return tuple(name for name, is_selected in zip(layout.names, mask, strict=True) if is_selected)
