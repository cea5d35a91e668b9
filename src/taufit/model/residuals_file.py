"""What a fit left unexplained, as plain data for a model file and back.

Files of version 0.1 keep residuals under "score", and their correlation among the settings of the
estimator; both are read.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.fields import Field
from taufit.core.parameters import parse_name
from taufit.model.noise_by_state import AlarmTail, NoiseByState
from taufit.model.training_record import DEFAULT_CORRELATION_S, Residuals, ResidualStructure
from taufit.terms.friction.states import STATES

_BY_STATE = ("level", "white", "walk", "velocity", "seconds")


def residuals_to_dict(residuals: Residuals) -> dict[str, Any]:
    """Noise, its correlation, and what repeats."""
    out: dict[str, Any] = {
        "noise_density": residuals.noise_density,
        "correlation_s": residuals.correlation_s,
    }
    if residuals.by_state is not None:
        out["by_state"] = {state: residuals.by_state[k] for k, state in enumerate(STATES)}
    if residuals.structure is not None:
        out["structure"] = entries(residuals.structure)
    return out


def residuals_from(data: Field, joints: int, names: tuple[str, ...], rate_hz: float) -> Residuals:
    """Inverse of `residuals_to_dict`.

    Args:
        data: The model file.
        joints: Of the model.
        names: Of the model's parameters.
        rate_hz: Of the training data.
    """
    section, old = data["residuals"], data["score"]
    settings = data["provenance"]["settings"]["estimator_settings"]
    density = old["noise_density"] if section["noise_density"].missing else section["noise_density"]
    structure = old["doubt"] if section["structure"].missing else section["structure"]
    correlation = section["correlation_s"].number(0.0, low=0.0)
    if not correlation:
        correlation = settings["correlation_samples"].number(0.0, low=0.0) / rate_hz
    return Residuals(
        optional(density, joints, above=0.0),
        correlation or DEFAULT_CORRELATION_S,
        _structure(structure, names),
        _by_state(section["by_state"], joints),
    )


def _by_state(data: Field, joints: int) -> Float[Array, "s j"] | None:
    if data.missing:
        return None
    return np.array([data[state].required().numbers(joints, low=0.0) for state in STATES])


def _structure(data: Field, names: tuple[str, ...]) -> ResidualStructure | None:
    if data.missing:
        return None
    own = data["names"].required().texts()
    # Base parameters come first; what repeats with position, speed or load follows, as a term of a
    # joint, which a friction term of the model may be called too.
    known = True
    for item, name in zip(data["names"].items(), own, strict=True):
        known = known and name in names
        if not known and parse_name(name).kind != "joint":
            item.fail("a parameter of this model, or after all of those a term of a joint")
    size = len(own)
    mean = data["mean"].required().numbers(size)
    factor = data["factor"].required().numbers(size * (size + 1) // 2)
    pivots = np.cumsum([0, *range(size, 1, -1)])
    if np.any(factor[pivots] == 0.0):
        data["factor"].fail("the rows of an upper triangle without zeros on its diagonal")
    return ResidualStructure(own, mean, factor)


def noise_to_dict(noise: NoiseByState) -> dict[str, Any]:
    """One entry per friction state, by name."""
    tail = noise.tail
    return {
        "rate_hz": noise.rate_hz,
        "cutoff_hz": noise.cutoff_hz,
        "standstill": noise.standstill,
        "runs": noise.runs,
        "states": {
            state: {name: getattr(noise, name)[k] for name in _BY_STATE}
            for k, state in enumerate(STATES)
        },
        "tail": None if tail is None else {o.name: getattr(tail, o.name) for o in fields(tail)},
    }


def noise_from(data: Field, joints: int) -> NoiseByState | None:
    """Inverse of `noise_to_dict`."""
    if data.missing:
        return None
    rows = [data["states"].required()[state].required() for state in STATES]

    def each(name: str, **limits: float) -> Float[Array, "s j"]:
        return np.array([row[name].required().numbers(joints, **limits) for row in rows])

    return NoiseByState(
        data["rate_hz"].required().number(above=0.0, most=1e6),
        data["cutoff_hz"].required().number(above=0.0),
        data["standstill"].required().number(above=0.0),
        each("level", above=0.0),
        each("white", above=0.0),
        each("walk", above=0.0),
        # Models written before velocity noise was told apart have it in `white`.
        np.zeros((len(rows), joints)) if rows[0]["velocity"].missing else each("velocity", low=0.0),
        each("seconds", low=0.0),
        _tail(data["tail"]),
        int(data["runs"].number(0.0, low=0.0)),
    )


def _tail(data: Field) -> AlarmTail | None:
    if data.missing:
        return None
    return AlarmTail(
        data["start"].required().number(),
        data["scale"].required().number(above=0.0),
        data["share"].required().number(above=0.0, most=1.0),
        data["block"].required().number(above=0.0),
        data["minutes"].required().number(low=0.0),
    )


def entries(noun: Any) -> dict[str, Any]:
    """Its fields by name."""
    return {one.name: getattr(noun, one.name) for one in fields(noun)}


def optional(data: Field, joints: int, **limits: float) -> Float[Array, " j"] | None:
    """One number per joint, or None where there is no entry."""
    return None if data.missing else data.numbers(joints, **limits)
