"""Friction models as plain data, for model files and messages."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from taufit.errors import TaufitError


def friction_to_dict(model: Any) -> dict[str, Any]:
    """{"name": ..., settings...}; `friction_from_dict` returns the same model."""
    from taufit.friction import FRICTION_MODELS

    if model is None:
        return {"name": "none"}
    names = {kind: name for name, kind in FRICTION_MODELS.items()}
    if type(model) not in names:
        raise TaufitError(
            f"friction model {type(model).__name__} has no name in FRICTION_MODELS, so it cannot "
            "be written down. Register it there first."
        )
    out: dict[str, Any] = {"name": names[type(model)]}
    for entry in fields(model):
        value = getattr(model, entry.name)
        if entry.name == "model":
            value = friction_to_dict(value)
        out[entry.name] = list(value) if isinstance(value, tuple) else value
    return out


def friction_from_dict(data: dict[str, Any]) -> Any:
    """Inverse of `friction_to_dict`."""
    from taufit.friction import FRICTION_MODELS

    settings = dict(data)
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in FRICTION_MODELS:
        raise TaufitError(
            f"friction model {name!r} is not known: use {', '.join(FRICTION_MODELS)}."
        )
    if "model" in settings:
        if not isinstance(settings["model"], dict):
            raise TaufitError(f"friction model {name} holds another model, not settings alone.")
        settings["model"] = friction_from_dict(settings["model"])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    for key, value in settings.items():
        _check(name, key, value, _default(FRICTION_MODELS[name], key))
    try:
        return FRICTION_MODELS[name](**settings)
    except (TypeError, ValueError) as error:
        raise TaufitError(f"friction model {name} cannot have these settings: {error}.") from None


def _default(model: Any, key: str) -> Any:
    return next((entry.default for entry in fields(model) if entry.name == key), None)


def _check(name: str, key: str, value: Any, default: Any) -> None:
    """Refuse a setting of another kind than its default; it may come from anybody's file."""
    numbers = value if isinstance(value, tuple) else (value,)
    if isinstance(default, bool):
        right = isinstance(value, bool)
    elif isinstance(default, (int, float)) or isinstance(value, (int, float, tuple)):
        texts = isinstance(value, tuple) and all(isinstance(x, str) for x in value)
        right = texts or all(isinstance(x, (int, float)) and abs(x) < 1e12 for x in numbers)
    elif isinstance(default, str):
        right = isinstance(value, str)
    else:
        return
    if not right:
        shown = repr(value)[:60]
        raise TaufitError(f"friction model {name} cannot have {key} = {shown}.")
