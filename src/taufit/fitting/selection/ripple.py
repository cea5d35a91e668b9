"""Whether a joint's torque repeats with its own angle: decided by the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.dynamics.base_parameters import base_parameters
from taufit.fitting.selection.prior_scales import maximise_evidence
from taufit.model.torque_model import TorqueModel
from taufit.signals.sample_source import SampleSource, as_source
from taufit.signals.samples import Samples
from taufit.terms import WAVE, further_term
from taufit.terms.layout import ParameterLayout

ORDERS = (1.0, 2.0, 3.0)
# Residuals are model error as much as noise, which waves imitate on a short recording: the
# criterion must be met this many times over.
_CLEARLY = 3.0
# Part of a wave fits any slow error and is wrong elsewhere: waves longer than the joint's travel
# must take away this share of the squared residuals that the shorter ones leave.
_PLAIN = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RippleChoice:
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
) -> RippleChoice:
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
        return RippleChoice(model)
    ripple = further_term("ripple", orders)
    rippled = replace(model, terms=(ripple, *model.terms))
    layout = rippled.layout
    waves = layout.of_group(WAVE)
    apart = waves & np.isin(np.arange(layout.size), base_parameters(rippled).columns)
    source = as_source(samples)
    whole = apart & _within_travel(layout, waves, ripple.orders, source)
    search = maximise_evidence(rippled, as_source(source.excerpt), _named(layout, waves & ~apart))
    owner = np.asarray(layout.owner)

    def squares(taken: Bool[Array, " p"]) -> Float[Array, " j"]:
        """Of each joint's residuals with these of its waves and all waves of the others."""
        return np.array(
            [
                search.regression.residual_squares(search.solved(search.used & ~(mine & ~taken)))[k]
                for k, mine in enumerate(waves & (owner == np.arange(layout.joints)[:, None]))
            ]
        )

    without, shorter = squares(np.zeros_like(waves)), squares(whole)
    beside = search.regression.residual_squares(search.theta)
    kept = np.where((beside < _PLAIN * shorter)[owner], apart, whole)
    left = np.where(beside < _PLAIN * shorter, beside, shorter)
    independent = np.maximum(search.regression.torque.count / search.correlation, 2.0)
    terms = np.bincount(owner[kept], minlength=layout.joints)
    gain = independent * np.log(without / np.maximum(left, np.finfo(float).tiny))
    kept &= (gain > _CLEARLY * terms * np.log(independent))[owner]
    if not np.any(kept):
        known = dict(zip(layout.names, search.theta.tolist(), strict=True))
        return RippleChoice(model, (), np.array([known[name] for name in model.names]))
    return RippleChoice(rippled, _named(layout, waves & ~kept), search.theta)


def _within_travel(
    layout: ParameterLayout,
    waves: Bool[Array, " p"],
    orders: tuple[float, ...],
    source: SampleSource,
) -> Bool[Array, " p"]:
    """Waves of which the joint's travel holds at least one."""
    travel = np.nan_to_num(source.summary.extents["position"].width)
    within = np.zeros(layout.size, bool)
    every = np.tile(np.repeat(orders, 2), layout.joints)
    for i, order in zip(np.flatnonzero(waves), every, strict=True):
        within[i] = order * travel[int(layout.owner[i])] >= 2.0 * np.pi
    return within


def _named(layout: ParameterLayout, which: Any) -> tuple[str, ...]:
    return tuple(name for name, held in zip(layout.names, which, strict=True) if held)
