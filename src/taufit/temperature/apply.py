"""Temperature laws in the workflow: choice at the fit, and assumed temperatures at prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taufit.model.fitted_model import FittedModel
from taufit.model.torque_model import TorqueModel
from taufit.model.training_record import Range
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples
from taufit.terms import SLOPE, needs
from taufit.terms.friction.temperature_dependent import LAWS

if TYPE_CHECKING:
    from taufit.temperature.temperature_slopes import TemperatureChoice

TEMPERATURE_CHOICES = ("none", "auto", *LAWS, "thermal-model")


def with_temperature_law(model: TorqueModel, samples: Samples, choice: str) -> TemperatureChoice:
    """Model whose friction follows measured or, on request, estimated temperature."""
    if choice == "thermal-model":
        from taufit.temperature.heat_model import with_thermal_model

        return with_thermal_model(model, samples)
    from taufit.temperature.temperature_slopes import select_temperature_law

    return select_temperature_law(model, samples, choice)


def with_temperature(model: FittedModel, samples: Samples) -> Samples:
    """Samples with temperatures, as a temperature-dependent model needs them.

    A model with a thermal state computes the temperature; otherwise samples without sensor get the
    middle of the training range, with a finding.
    """
    if not needs(model.term_sum, "temperature"):
        return samples
    state = model.training.thermal
    if state is not None:
        from taufit.temperature.heat_model import thermal_temperature

        return samples.with_channels(temperature=thermal_temperature(model, samples, state))
    if samples.temperature is not None:
        return samples
    middle = model.typical_temperature
    span = model.training.ranges.temperature or Range(middle, middle)
    assumed = Finding(
        "temperature",
        "warning",
        f"{', '.join(dict.fromkeys(samples.names))} has no joint temperatures, and friction in "
        f"this model follows them from {span.low.min():.0f} to {span.high.max():.0f} degC",
        "predicted for " + ", ".join(f"{x:.0f}" for x in middle) + " degC, the middle of training",
    )
    filled = np.broadcast_to(middle, samples.position.shape).copy()
    with_channel = samples.with_channels(temperature=filled)
    return replace(with_channel, findings=(*samples.findings, assumed))


def temperature_dependence(model: FittedModel) -> dict[str, Any] | None:
    """Temperature dependence of friction, as plain data; None if there is none.

    `change_percent` is the change of viscous friction from the lowest to the highest temperature of
    the training data, per joint.
    """
    friction: Any = model.friction_model
    if friction is None or not friction.law:
        return None
    from taufit.temperature.temperature_slopes import friction_at

    joints = model.robot.joints
    training_std = model.training.std
    std = np.full(len(model.names), np.nan) if training_std is None else training_std
    std_by_name = {
        n: float(x) if np.isfinite(x) else None for n, x in zip(model.names, std, strict=True)
    }
    values = dict(zip(model.names, model.values, strict=True))
    slopes = [term for term in friction.parameters if term.group == SLOPE]
    data: dict[str, Any] = {
        "law": friction.law,
        "reference": friction.reference,
        "affected": list(friction.affected),
        "estimated": model.training.thermal is not None,
        "slopes": [
            {"name": name, "value": float(values[name]), "std": std_by_name[name]}
            for name in model.names
            if model.layout.parameters[model.layout.index(name)] in slopes
        ],
    }
    if friction.law != "linear":
        data["rate"] = model.joint_shape[:, -1].tolist()
    span = model.training.ranges.temperature
    if span is not None and any(term.power == 1 for term in friction.parameters):
        cold, _ = friction_at(model, span.low)
        warm, _ = friction_at(model, span.high)
        data["range"] = {"low": span.low.tolist(), "high": span.high.tolist()}
        data["change_percent"] = [
            100.0 * float(warm[j] / cold[j] - 1.0) if cold[j] > 0.0 else None for j in range(joints)
        ]
    return data


def describe_slopes(model: FittedModel) -> list[str]:
    """Temperature dependence of friction as text for a terminal."""
    data = temperature_dependence(model)
    if data is None or "change_percent" not in data:
        return []
    low, high = data["range"]["low"], data["range"]["high"]
    changes = ", ".join("–" if x is None else f"{x:+.0f}" for x in data["change_percent"])
    source = "estimated from heat" if data["estimated"] else "measured"
    return [
        f"Friction follows temperature ({data['law']}, {source}): viscous friction changes by "
        f"{changes} % from cold ({min(low):.0f} degC) to warm ({max(high):.0f} degC)."
    ]
