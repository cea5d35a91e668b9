"""A fitted model as a file: versioned JSON that says what was fitted, to what, and how well.

`read_model(write_model(m))` predicts the same torque as m, to the last bit. The layout is
described by `model_schema.json` beside this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from taufit.errors import TaufitError
from taufit.files import write_text
from taufit.friction import NoFriction, friction_from_dict, friction_to_dict
from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot

FORMAT = "taufit-model"
VERSION = 1

# Parts of the file that `TorqueModel.meta` carries as they are.
SECTIONS = ("base", "range", "conditioning", "score", "thermal", "provenance", "warnings")


def schema() -> dict[str, Any]:
    """The JSON Schema of a model file."""
    return json.loads(files("taufit").joinpath("model_schema.json").read_text(encoding="utf-8"))


def model_to_dict(model: TorqueModel) -> dict[str, Any]:
    """Plain data for JSON; `model_from_dict` returns the same model."""
    if model.values is None:
        raise TaufitError("this model has no parameters yet, so there is nothing to write. Fit it.")
    if not np.all(np.isfinite(model.values)):
        name = model.names[int(np.flatnonzero(~np.isfinite(model.values))[0])]
        raise TaufitError(f"parameter {name} is not a finite number; such a model is not written.")
    parameters: list[dict[str, Any]] = [
        {"name": name, "value": float(value)}
        for name, value in zip(model.names, model.values, strict=True)
    ]
    for key in ("std", "verdict"):
        for entry, value in zip(parameters, model.meta.get(key, ()), strict=False):
            entry[key] = _plain(value)
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "robot": model.robot.to_dict(),
        "friction": friction_to_dict(model.friction),
        "shape": None if model.shape is None else np.asarray(model.shape).tolist(),
        "rotor_inertia": model.rotor_inertia,
        "offset": model.offset,
        "parameters": parameters,
    }
    for section in SECTIONS:
        if section in model.meta:
            out[section] = _plain(model.meta[section])
    return out


def model_from_dict(data: Any, source: str = "this model") -> TorqueModel:
    """Inverse of `model_to_dict`."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise TaufitError(
            f"{source} is not a taufit model. Models are what `taufit fit ... -o MODEL` writes."
        )
    if data.get("version") != VERSION:
        raise TaufitError(
            f"{source} has model format version {data.get('version')!r}; this taufit reads version "
            f"{VERSION}. Fit again, or use the taufit that wrote it."
        )
    missing = [key for key in schema()["required"] if key not in data]
    if missing:
        raise TaufitError(f"{source} is incomplete: it has no {', '.join(missing)}. Fit again.")
    try:
        robot = Robot.from_dict(data["robot"])
        friction = friction_from_dict(data["friction"])
        shape = None if data.get("shape") is None else np.array(data["shape"], float)
        values = np.array([entry["value"] for entry in data["parameters"]], float)
        names = tuple(str(entry["name"]) for entry in data["parameters"])
        meta = {section: data[section] for section in SECTIONS if section in data}
        for key in ("std", "verdict"):
            if any(key in entry for entry in data["parameters"]):
                meta[key] = [entry.get(key) for entry in data["parameters"]]
        model = TorqueModel(
            robot,
            None if isinstance(friction, NoFriction) else friction,
            bool(data["rotor_inertia"]),
            bool(data["offset"]),
            shape,
            meta=meta,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TaufitError(f"{source} is damaged: {error!r}. Fit again.") from None
    if names != model.names:
        strange = next(
            (f"{a} where {b} belongs" for a, b in zip(names, model.names, strict=False) if a != b),
            f"{len(names)} parameters where {len(model.names)} belong",
        )
        raise TaufitError(f"{source} is damaged: its parameter list has {strange}. Fit again.")
    if not np.all(np.isfinite(values)):
        raise TaufitError(f"{source} is damaged: a parameter is not a finite number. Fit again.")
    return model.with_values(values)


def write_model(model: TorqueModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    data = model_to_dict(model)
    # One line per part keeps the file small and still readable.
    lines = [f" {json.dumps(key)}: {_dumps(key, value)}" for key, value in data.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_model(path: str | os.PathLike[str]) -> TorqueModel:
    """Read a fitted model."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaufitError(f"there is no model {path}. `taufit fit` writes one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TaufitError(f"{path} cannot be read as a model: {error}.") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TaufitError(
            f"{path} is not a taufit model: line {error.lineno} is no JSON ({error.msg})."
        ) from None
    return model_from_dict(data, str(path))


def _dumps(key: str, value: Any) -> str:
    if key == "parameters":
        return (
            "[\n  " + ",\n  ".join(json.dumps(entry, allow_nan=False) for entry in value) + "\n ]"
        )
    return json.dumps(value, allow_nan=False)


def _plain(value: Any) -> Any:
    """Plain Python; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
