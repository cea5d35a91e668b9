"""C identifier of a robot, and its substitution in the templates."""

from __future__ import annotations

import re
from importlib.resources import files

from taufit.model.fitted_model import FittedModel


def c_name(model: FittedModel) -> str:
    """Robot name as a C identifier, the prefix of every function."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", model.robot.name[:60]).strip("_").lower() or "arm"
    return f"arm_{name}" if name[0].isdigit() else name


def read_template(file: str) -> str:
    """Text of a template file."""
    return files("taufit.export.c").joinpath(file).read_text(encoding="utf-8")


def set_prefix(text: str, name: str) -> str:
    """Replace the prefixes arm_ and ARM_ of a template by the robot name."""
    text = re.sub(r"\barm_(?=[a-z])", f"{name}_", text)
    return re.sub(r"\bARM_(?=[A-Z])", f"{name.upper()}_", text)
