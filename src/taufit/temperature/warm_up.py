"""Effect of warm-up per joint: friction, and torque along a motion."""

from __future__ import annotations

from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.model.fitted_model import FittedModel
from taufit.model.predict import predicted_torque
from taufit.signals.samples import Samples
from taufit.temperature.temperature_slopes import friction_at
from taufit.terms.friction import Friction


@dataclass(frozen=True, slots=True, eq=False)
class WarmUpChange:
    """Changes from cold to warm.

    Attributes:
        cold, warm: Temperatures compared [degC].
        viscous: Change of viscous friction [%].
        mean, largest: Mean and largest change of torque along a motion [N m].
        at_speed_limit: Change of viscous torque at each joint's speed limit [N m]; NaN without one.
        percent_of_torque_limit: `at_speed_limit` relative to the torque limit [%]; NaN without one.
    """

    cold: Float[Array, " j"]
    warm: Float[Array, " j"]
    viscous: Float[Array, " j"]
    mean: Float[Array, " j"]
    largest: Float[Array, " j"]
    at_speed_limit: Float[Array, " j"]
    percent_of_torque_limit: Float[Array, " j"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where there is no limit."""
        return {
            "cold_degc": self.cold.tolist(),
            "warm_degc": self.warm.tolist(),
            "viscous_percent": self.viscous.tolist(),
            "mean_torque": self.mean.tolist(),
            "largest_torque": self.largest.tolist(),
            "torque_at_speed_limit": _finite_or_none(self.at_speed_limit),
            "percent_of_torque_limit": _finite_or_none(self.percent_of_torque_limit),
        }


def warm_up(
    model: FittedModel,
    samples: Samples,
    cold: Float[Array, " j"] | None = None,
    warm: Float[Array, " j"] | None = None,
) -> WarmUpChange | None:
    """Effect of warm-up by a model with temperature-dependent friction; None without.

    Args:
        model: Fitted model.
        samples: Motion along which torque is compared.
        cold, warm: Temperatures to compare [degC]; default: the extremes of the training data.
    """
    if not follows_temperature(model):
        return None
    span = model.training.ranges.temperature
    assert span is not None
    cold = span.low if cold is None else cold
    warm = span.high if warm is None else warm
    cold_friction, warm_friction = friction_at(model, cold)[0], friction_at(model, warm)[0]
    limits = model.robot.limits
    speed, torque = (
        np.where(np.isfinite(x) & (x > 0.0), x, np.nan) for x in (limits.velocity, limits.torque)
    )
    torque_at_limit = np.abs(warm_friction - cold_friction) * speed
    return WarmUpChange(
        cold,
        warm,
        100.0 * (warm_friction / cold_friction - 1.0),
        *torque_change(model, samples, cold, warm),
        torque_at_limit,
        100.0 * torque_at_limit / torque,
    )


def follows_temperature(model: FittedModel) -> bool:
    """Whether viscous friction follows temperature and the training data had temperatures."""
    friction = model.friction_model
    return (
        isinstance(friction, Friction)
        and bool(friction.law)
        and any(term.power == 1 for term in friction.parameters)
        and model.training.ranges.temperature is not None
    )


def torque_change(
    model: FittedModel,
    samples: Samples,
    cold: Float[Array, " j"],
    warm: Float[Array, " j"],
) -> tuple[Float[Array, " j"], Float[Array, " j"]]:
    """Mean and largest change of torque along a motion if every joint goes from cold to warm."""
    shape = samples.position.shape
    torque = [
        predicted_torque(model, samples.with_channels(temperature=np.broadcast_to(t, shape).copy()))
        for t in (cold, warm)
    ]
    change = np.abs(torque[1] - torque[0])[samples.in_motion]
    return change.mean(axis=0), change.max(axis=0)


def _finite_or_none(values: Float[Array, " j"]) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in values]
