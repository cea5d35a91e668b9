"""Whether a joint's torque repeats with its own angle: decided by the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taufit.arrays import Array, Float
from taufit.dynamics.base_parameters import base_parameters
from taufit.friction import Ripple, TemperatureDependent
from taufit.model.torque_model import TorqueModel
from taufit.parameters import ParameterLayout
from taufit.selection.evidence import searched
from taufit.signals.sample_source import SampleSource, source_of
from taufit.signals.samples import Samples

ORDERS = (1.0, 2.0, 3.0)
# Residuals are model error as much as noise, which waves imitate on a short recording: the
# criterion must be met this many times over.
_CLEARLY = 3.0


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
    residuals. Waves that gravity of the links explains already are held at zero.
    Without any such joint the model is as it was.

    Args:
        model: Friction without ripple.
        samples: Conditioned motion and torque; of many an excerpt is looked at.
        orders: Waves per radian of the joint.
    """
    if model.friction is None:
        return RippleChoice(model)
    rippled = replace(model, friction=_rippled(model.friction, orders))
    layout = rippled.layout
    waves = np.array([what.startswith("ripple") for what in layout.what])
    apart = np.isin(np.arange(layout.size), base_parameters(rippled).columns)
    source = source_of(source_of(samples).excerpt)
    search = searched(rippled, source, _named(layout, waves & ~apart))
    owner = np.asarray(layout.owner)
    without = np.array(
        [
            search.regression.squares(search.solved(search.used & ~(waves & (owner == k))))[k]
            for k in range(layout.joints)
        ]
    )
    beside = search.regression.squares(search.theta)
    independent = np.maximum(search.regression.torque.count / search.correlation, 2.0)
    terms = np.bincount(owner[waves & apart], minlength=layout.joints)
    gain = independent * np.log(without / np.maximum(beside, np.finfo(float).tiny))
    kept = (terms > 0) & (gain > _CLEARLY * terms * np.log(independent))
    if not np.any(kept):
        known = dict(zip(layout.names, search.theta.tolist(), strict=True))
        return RippleChoice(model, (), np.array([known[name] for name in model.names]))
    return RippleChoice(rippled, _named(layout, waves & ~(apart & kept[owner])), search.theta)


def _named(layout: ParameterLayout, which: Any) -> tuple[str, ...]:
    return tuple(name for name, held in zip(layout.names, which, strict=True) if held)


def _rippled(friction: Any, orders: tuple[float, ...]) -> Any:
    """Ripple inside a law of temperature: it is geometry, and does not follow it."""
    if isinstance(friction, TemperatureDependent):
        return replace(friction, model=_rippled(friction.model, orders))
    return Ripple(friction, orders)
