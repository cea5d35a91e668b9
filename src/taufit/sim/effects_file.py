"""Conversion of effects to and from plain data, for YAML and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.errors import TaufitError
from taufit.sim.effects import (
    DriveFriction,
    Effects,
    Elasticity,
    Encoder,
    HandPush,
    PositionRipple,
    SamplingErrors,
    Sensing,
    Thermal,
)
from taufit.terms import Term
from taufit.terms.friction import FRICTION_MODELS

_PARTS: dict[str, Any] = {
    "friction": DriveFriction,
    "thermal": Thermal,
    "ripple": PositionRipple,
    "elasticity": Elasticity,
    "sensing": Sensing,
    "encoder": Encoder,
    "timing": SamplingErrors,
}


def effects_to_dict(effects: Effects) -> dict[str, Any]:
    """Plain data of the active effects; inverse of `effects_from_dict`."""
    data: dict[str, Any] = {}
    for item in fields(effects):
        value = getattr(effects, item.name)
        if value is None or (item.name == "pushes" and not value):
            continue
        if item.name == "pushes":
            data["pushes"] = [_part_to_dict(push) for push in value]
        else:
            data[item.name] = _part_to_dict(value) if item.name in _PARTS else value
    return data


def effects_from_dict(data: Any, source: str = "the effects") -> Effects:
    """Effects from plain data, e.g. a YAML file:

    friction: {model: linear, coefficients: [[10, 15], [12, 14]], presliding: 0.001}
    sensing: {white: 0.3, gain_scatter: 0.01}
    pushes: [{start: 2.0, force: [20, 0, 0]}]
    """
    if not isinstance(data, Mapping):
        raise TaufitError(f"{source}: expected names of effects with their settings.")
    names = [item.name for item in fields(Effects)]
    parts: dict[str, Any] = {}
    for name, value in data.items():
        if name not in names:
            raise TaufitError(f"{source}: {name!r} is not an effect; there are {', '.join(names)}.")
        if value is None:
            continue
        if name == "saturation":
            if value is False:
                continue
            parts[name] = 1.0 if value is True else _setting(Effects, name, value, source)
        elif name == "pushes":
            if not isinstance(value, (list, tuple)):
                raise TaufitError(f"{source}: pushes is a list, found {value!r}.")
            parts[name] = tuple(_build(HandPush, item, f"{source}: pushes") for item in value)
        else:
            parts[name] = _build(_PARTS[name], value, f"{source}: {name}")
    return Effects(**parts)


def _build(cls: Any, data: Any, source: str) -> Any:
    names = [item.name for item in fields(cls)]
    if not isinstance(data, Mapping):
        raise TaufitError(f"{source}: expected settings, e.g. {{{names[0]}: ...}}.")
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in names:
            raise TaufitError(f"{source} has no setting {name!r}; it has {', '.join(names)}.")
        values[name] = _setting(cls, name, value, source)
    try:
        return cls(**values)
    except TypeError as error:
        raise TaufitError(f"{source}: {error}.") from None


_TEXT_SETTINGS = ("side", "encoder")
_FLAG_SETTINGS = ("absolute", "velocity", "acceleration")
_LIST_SETTINGS = {"intervals": 2, "cycles": 1, "slow_widths": 1, "force": 1, "moment": 1}


def _setting(cls: Any, name: str, value: Any, source: str) -> Any:
    """Convert a setting to the type of its effect; TaufitError naming it otherwise."""
    if cls is DriveFriction and name == "model":
        return friction_model(value, source)
    if name in _TEXT_SETTINGS or name in _FLAG_SETTINGS:
        kind = str if name in _TEXT_SETTINGS else bool
        if not isinstance(value, kind):
            raise TaufitError(
                f"{source}: {name} is {'a word' if kind is str else 'true or false'}, not "
                f"{value!r}."
            )
        return value
    if value is None and name in ("shape", "slow", "initial", "initial_housing"):
        return None
    try:
        numbers = np.array(value, float)
    except (TypeError, ValueError):
        raise TaufitError(f"{source}: {name} needs numbers, found {value!r}.") from None
    if isinstance(value, (str, bool)) or not np.all(np.isfinite(numbers)) or numbers.ndim > 2:
        raise TaufitError(f"{source}: {name} needs finite numbers, found {value!r}.")
    if name in _LIST_SETTINGS:
        return _list_setting(name, numbers, value, source)
    field_type = next(item.type for item in fields(cls) if item.name == name)
    if numbers.ndim and str(field_type) in ("float", "float | None", "int"):
        raise TaufitError(f"{source}: {name} is one number, found {value!r}.")
    return float(numbers) if numbers.ndim == 0 else numbers


def _list_setting(name: str, numbers: Array, value: Any, source: str) -> tuple[Any, ...]:
    """Convert a setting that is a list, or a list of rows."""
    if (numbers.size or numbers.ndim != 1) and numbers.ndim != _LIST_SETTINGS[name]:
        raise TaufitError(f"{source}: {name} needs a list, found {value!r}.")
    if name in ("force", "moment") and numbers.shape != (3,):
        raise TaufitError(f"{source}: {name} has three numbers, found {value!r}.")
    if name == "intervals" and len(numbers) and numbers.shape[1] != 2:
        raise TaufitError(f"{source}: intervals are pairs of seconds and probability.")
    return tuple(tuple(row) if isinstance(row, list) else row for row in numbers.tolist())


def friction_model(name: Any, source: str = "friction") -> Term:
    """Friction model by its command-line name, with settings as {name: ..., setting: ...}."""
    settings: dict[str, Any] = {}
    if isinstance(name, Mapping):
        settings = dict(name)
        name = settings.pop("name", None)
    if not isinstance(name, str) or name not in FRICTION_MODELS:
        raise TaufitError(
            f"{source}: {name!r} is not a friction model; there are {', '.join(FRICTION_MODELS)}."
        )
    try:
        return FRICTION_MODELS[name](
            **{key: tuple(x) if isinstance(x, list) else x for key, x in settings.items()}
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise TaufitError(f"{source}: {error}.") from None


def _part_to_dict(part: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if item.name == "model":
            name = next(
                (key for key, cls in FRICTION_MODELS.items() if type(value) is cls),
                type(value).__name__,
            )
            settings = {f.name: getattr(value, f.name) for f in fields(value)}
            value = {"name": name, **{k: v for k, v in settings.items() if _is_scalar(v)}}
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, tuple):
            value = [list(x) if isinstance(x, tuple) else x for x in value]
        data[item.name] = value
    return data


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
