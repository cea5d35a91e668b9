"""Temperature on the way from recordings to a model and back: what is used, assumed and told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taufit.friction.temperature_dependent import TemperatureDependent
from taufit.model.torque_model import TorqueModel
from taufit.recording.finding import Finding
from taufit.signals.samples import Samples
from taufit.temperature.slopes import (
    CHOICES,
    TemperatureChoice,
    follow_temperature,
    friction_at,
)

TEMPERATURE_CHOICES = (*CHOICES, "thermal-model")


def follow(model: TorqueModel, samples: Samples, choice: str) -> TemperatureChoice:
    """A model whose friction follows measured or, where asked for, estimated temperature."""
    if choice == "thermal-model":
        from taufit.temperature.heat_model import follow_heat

        return follow_heat(model, samples)
    return follow_temperature(model, samples, choice)


def with_temperature(model: TorqueModel, samples: Samples) -> Samples:
    """Samples a temperature-dependent model can predict, whatever the recording has.

    A model with a thermal state computes the temperature; else one without a sensor is taken as the
    middle of the training data, and a finding says so.
    """
    if model.friction is None or not model.friction.uses_temperature:
        return samples
    if "thermal" in model.meta:
        from taufit.temperature.heat_model import ThermalState, thermal_temperature

        state = ThermalState.from_dict(model.meta["thermal"])
        return replace(samples, temperature=thermal_temperature(model, samples, state))
    if samples.temperature is not None:
        return samples
    span = model.meta.get("range", {}).get("temperature")
    reference = getattr(model.friction, "reference", 25.0)
    low, high = (
        (np.full(samples.joints, reference),) * 2
        if span is None
        else (np.array(span["low"], float), np.array(span["high"], float))
    )
    middle = 0.5 * (low + high)
    told = Finding(
        "temperature",
        "warning",
        f"{', '.join(dict.fromkeys(samples.names))} has no joint temperatures, and friction in "
        f"this model follows them from {low.min():.0f} to {high.max():.0f} degC",
        "predicted for " + ", ".join(f"{x:.0f}" for x in middle) + " degC, the middle of training",
    )
    filled = np.broadcast_to(middle, samples.position.shape).copy()
    return replace(samples, temperature=filled, findings=(*samples.findings, told))


def slopes_of(model: TorqueModel) -> dict[str, Any] | None:
    """How friction follows temperature, as plain data; None where it does not.

    `change_percent` is that of viscous friction from the coldest to the warmest temperature of the
    training data, per joint.
    """
    friction = model.friction
    if not isinstance(friction, TemperatureDependent) or model.values is None:
        return None
    joints = model.robot.joints
    std = dict(zip(model.names, model.meta.get("std", ()), strict=False))
    values = dict(zip(model.names, model.values, strict=True))
    out: dict[str, Any] = {
        "law": friction.law,
        "reference": friction.reference,
        "affected": list(friction.affected),
        "estimated": "thermal" in model.meta,
        "slopes": [
            {"name": name, "value": float(values[name]), "std": std.get(name)}
            for name in model.names
            if name.endswith("_per_degree")
        ],
    }
    if friction.law != "linear":
        out["rate"] = model.joint_shape[:, -1].tolist()
    span = model.meta.get("range", {}).get("temperature")
    if span is not None and "viscous" in [term.name for term in friction.terms]:
        cold, _ = friction_at(model, np.array(span["low"], float))
        warm, _ = friction_at(model, np.array(span["high"], float))
        out["range"] = span
        out["change_percent"] = [
            100.0 * float(warm[j] / cold[j] - 1.0) if cold[j] > 0.0 else None for j in range(joints)
        ]
    return out


def spoken_slopes(model: TorqueModel) -> list[str]:
    """The same in words, for a terminal."""
    found = slopes_of(model)
    if found is None or "change_percent" not in found:
        return []
    low, high = found["range"]["low"], found["range"]["high"]
    changes = ", ".join("–" if x is None else f"{x:+.0f}" for x in found["change_percent"])
    source = "estimated from heat" if found["estimated"] else "measured"
    return [
        f"Friction follows temperature ({found['law']}, {source}): viscous friction changes by "
        f"{changes} % from cold ({min(low):.0f} degC) to warm ({max(high):.0f} degC)."
    ]
