"""Model file: versioned JSON of a fitted model and its training record.

`read_model(write_model(m))` predicts the same torque as m, bit by bit. `model_schema.json` in the
package describes the format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.endings import RECORDING_ENDINGS, ending, missing_file_text
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.core.files import write_text
from taufit.core.plain_data import read_json, to_plain_data
from taufit.model.fitted_model import FittedModel, require_fitted
from taufit.model.record_file import record_from_dict, record_to_dict
from taufit.model.torque_model import TorqueModel
from taufit.terms import term_to_dict
from taufit.terms.layout import ParameterLayout
from taufit.terms.settings import terms_from_file

FORMAT = "taufit-model"
VERSION = 1


@cache
def schema() -> dict[str, Any]:
    """JSON Schema of a model file."""
    schema: dict[str, Any] = json.loads(
        files("taufit").joinpath("model_schema.json").read_text(encoding="utf-8")
    )
    return schema


def model_to_dict(model: FittedModel) -> dict[str, Any]:
    """Plain data for JSON; `model_from_dict` returns the same model."""
    require_fitted(model, "write a model file")
    if not np.all(np.isfinite(model.values)):
        name = model.names[int(np.flatnonzero(~np.isfinite(model.values))[0])]
        raise TaufitError(f"parameter {name} is not a finite number; such a model is not written.")
    parameters: list[dict[str, Any]] = [
        {"name": name, "value": float(value)}
        for name, value in zip(model.names, model.values, strict=True)
    ]
    record = model.training
    if record.std is not None:
        for entry, std in zip(parameters, record.std, strict=True):
            entry["std"] = to_plain_data(std)
    for entry, verdict in zip(parameters, record.verdicts, strict=False):
        entry["verdict"] = verdict
    return {
        "format": FORMAT,
        "version": VERSION,
        "robot": model.robot.to_dict(),
        "friction": term_to_dict(model.friction_model),
        "terms": [term_to_dict(term) for term in model.terms],
        "shape": None if model.shape is None else np.asarray(model.shape).tolist(),
        "rotor_inertia": model.has("rotor"),
        "offset": model.has("offset"),
        "parameters": parameters,
        **_payload_to_dict(model),
        **record_to_dict(record),
    }


def _payload_to_dict(model: FittedModel) -> dict[str, Any]:
    """Entry of a known payload, which the parameters of the last link contain."""
    if model.payload is None or model.bare_link is None:
        return {}
    return {"payload": {**model.payload.to_dict(), "link_without": model.bare_link.tolist()}}


def model_from_dict(data: Any, source: str = "this model") -> FittedModel:
    """Inverse of `model_to_dict`; invalid values raise with their place."""
    if isinstance(data, Mapping) and data.get("format") == "taufit-servo":
        raise TaufitError(
            f"{source} is a servo model (commands and positions, no torque); a torque model is "
            "needed here. Servo models work with `taufit check`, `export`, `payload` and "
            "`simulate`, and in Python with taufit.read_servo_model."
        )
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise TaufitError(
            f"{source} is not a taufit model. Models are what `taufit fit ... -o MODEL` writes."
        )
    file = Field(data, source)
    if file["version"].value != VERSION or isinstance(file["version"].value, bool):
        raise TaufitError(
            f"{source} has model format version {file['version'].display_text}; this taufit reads "
            f"version {VERSION}. Fit again, or use the taufit that wrote it."
        )
    missing = [key for key in schema()["required"] if key not in data]
    if missing:
        raise TaufitError(f"{source} is incomplete: it has no {', '.join(missing)}. Fit again.")
    structure = _read_structure(file)
    file = _reorder_parameters(file, structure.layout)
    entries = list(file["parameters"].items())
    names = tuple(entry["name"].text() for entry in entries)
    values = np.array([entry["value"].number(most=1e12) for entry in entries])
    if names != structure.names:
        mismatch = next(
            (
                f"{a} where {b} belongs"
                for a, b in zip(names, structure.names, strict=False)
                if a != b
            ),
            f"{len(names)} parameters where {len(structure.names)} belong",
        )
        raise TaufitError(f"{source} is damaged: its parameter list has {mismatch}. Fit again.")
    layout = structure.layout
    training = record_from_dict(file, layout.joints, names, len(layout.drive_entries))
    return _with_payload(FittedModel.from_values(structure, values, training), file)


def _with_payload(model: FittedModel, file: Field) -> FittedModel:
    """Model with the known payload of its file, which its last link contains."""
    if file["payload"].missing:
        return model
    from taufit.model.payload import payload_from_field

    return replace(
        model,
        payload=payload_from_field(file["payload"]),
        bare_link=file["payload"]["link_without"].numbers(10),
    )


def _reorder_parameters(file: Field, layout: ParameterLayout) -> Field:
    """File with its parameters in the order of the layout; they are identified by name.

    Files of version 0.1 have the slopes of a temperature law after ripple.
    """
    names = [entry["name"].text() for entry in file["parameters"].items()]
    if names == [*layout.names] or sorted(names) != sorted(layout.names):
        return file
    position = {name: k for k, name in enumerate(names)}
    order = [position[name] for name in layout.names]
    first = order[layout.drive_of(0)]
    terms = [k - min(first) for k in first]
    data = dict(file.mapping())
    data["parameters"] = [data["parameters"][k] for k in order]
    for section, key in (("from_data", "terms"), ("simple_terms", "effect")):
        rows = file[section][key]
        if not rows.missing:
            matrix = rows.matrix(layout.joints, len(terms))[:, terms].tolist()
            data[section] = {**data[section], key: matrix}
    return Field(data, file.source)


def _read_structure(file: Field) -> TorqueModel:
    """Structure of the torque model in a file."""
    from taufit.robot.from_dict import robot_from_field

    robot = robot_from_field(file["robot"].required())
    friction, terms = terms_from_file(file["friction"], file["terms"])
    model = TorqueModel(
        robot, friction, file["rotor_inertia"].flag(), file["offset"].flag(), terms=terms
    )
    if file["shape"].missing:
        return model
    shapes = model.term_sum.shapes
    shape = file["shape"].matrix(robot.joints, len(shapes))
    for item, row in zip(file["shape"].items(), shape, strict=True):
        for value, shape_parameter in zip(row, shapes, strict=True):
            # Fitted values may be on a bound, up to rounding.
            if not shape_parameter.lower * 0.999 <= value <= shape_parameter.upper * 1.001:
                item.fail(
                    f"{shape_parameter.name} between {shape_parameter.lower:g} and "
                    f"{shape_parameter.upper:g}"
                )
    return replace(model, shape=shape)


def write_model(model: FittedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file is replaced atomically.

    Example:
        >>> import taufit
        >>> taufit.write_model(taufit.read_model("model.json"), "copy.json")
    """
    data = model_to_dict(model)
    # One line per section: small and readable.
    lines = [f" {json.dumps(key)}: {_dumps(key, value)}" for key, value in data.items()]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_model(path: str | os.PathLike[str]) -> FittedModel:
    """Read a fitted model.

    Example:
        >>> import taufit
        >>> taufit.read_model("model.json").robot
        Robot(ur3e: 6 joints)
    """
    if not Path(path).exists():
        raise TaufitError(f"{missing_file_text(path)} `taufit fit` writes models.")
    if ending(path) in RECORDING_ENDINGS:
        raise TaufitError(f"{path} is a recording, and a model file of `taufit fit` is expected.")
    data = read_json(path, "a taufit model")
    return model_from_dict(data, str(path))


def _dumps(key: str, value: Any) -> str:
    if key == "parameters":
        return (
            "[\n  " + ",\n  ".join(json.dumps(entry, allow_nan=False) for entry in value) + "\n ]"
        )
    return json.dumps(value, allow_nan=False)
