"""Friction models as plain data, for model files and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.robot.compensator import Compensator
from taufit.robot.from_data import compensators_from

# Settings that came later, as models without them had it.
_BEFORE = {"presliding": {"bend": 0.0}}


def friction_to_dict(model: Any) -> dict[str, Any]:
    """{"name": ..., settings...}; `friction_from_dict` returns the same model."""
    from taufit.terms.friction import FRICTION_MODELS

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
        if isinstance(value, tuple):
            value = [asdict(one) if isinstance(one, Compensator) else one for one in value]
        out[entry.name] = value
    return out


def friction_from_dict(data: Mapping[str, Any] | Field) -> Any:
    """Inverse of `friction_to_dict`; a setting that makes no sense is refused by its place."""
    from taufit.terms.friction import FRICTION_MODELS

    file = data if isinstance(data, Field) else Field(data, "friction model")
    name = file["name"]
    where = f"{file.source}: " if isinstance(data, Field) else ""
    if name.missing or name.text() not in FRICTION_MODELS:
        raise TaufitError(
            f"{where}friction model {name.value!r} is not known: use {', '.join(FRICTION_MODELS)}."
        )
    kind = FRICTION_MODELS[name.text()]
    usual = kind()
    known = [entry.name for entry in fields(usual)]
    settings: dict[str, Any] = dict(_BEFORE.get(name.text(), {}))
    for key in file.mapping():
        if key == "name":
            continue
        if key not in known:
            raise TaufitError(
                f"{where}friction model {name.value} cannot have these settings: {key!r} is not "
                f"one of {', '.join(known) or 'none'}."
            )
        settings[key] = (
            compensators_from(file[key])
            if key == "compensators"
            else _setting(file[key], getattr(usual, key))
        )
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        file.fail(f"settings of a friction model ({error})")


def _setting(file: Field, usual: Any) -> Any:
    """A setting of the same kind as the usual one."""
    if is_dataclass(usual):
        return friction_from_dict(file)
    if isinstance(usual, bool):
        return file.flag()
    if isinstance(usual, int):
        number = file.required().number(low=0.0, most=20.0)
        return int(number) if number == int(number) else file.fail("a whole number")
    if isinstance(usual, float):
        positive = file.path.endswith("width")
        return file.required().number(low=0.0 if positive else -math.inf, most=1e6)
    if isinstance(usual, tuple):
        texts = all(isinstance(item.value, str) for item in file.items())
        return file.texts() if texts else tuple(item.number() for item in file.items())
    if usual is None and file.missing:
        return None
    return file.text() if isinstance(usual, str) else file.value
