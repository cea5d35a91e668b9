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
    if name not in FRICTION_MODELS:
        raise TaufitError(
            f"friction model {name!r} is not known: use {', '.join(FRICTION_MODELS)}."
        )
    if "model" in settings:
        settings["model"] = friction_from_dict(settings["model"])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
    try:
        return FRICTION_MODELS[name](**settings)
    except (TypeError, ValueError) as error:
        raise TaufitError(f"friction model {name} cannot have these settings: {error}.") from None
