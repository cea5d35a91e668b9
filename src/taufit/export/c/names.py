"""The robot's name in C, and the templates' own names replaced by it."""

from __future__ import annotations

import re
from importlib.resources import files

from taufit.model.fitted_model import FittedModel


def c_name(model: FittedModel) -> str:
    """The robot's name as a C identifier: the prefix of every function."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", model.robot.name[:60]).strip("_").lower() or "arm"
    return f"arm_{name}" if name[0].isdigit() else name


def template(file: str) -> str:
    """A template of this room as text."""
    return files("taufit.export.c").joinpath(file).read_text(encoding="utf-8")


def renamed(text: str, name: str) -> str:
    """arm_... and ARM_... of a template with the robot's name in front."""
    text = re.sub(r"\barm_(?=[a-z])", f"{name}_", text)
    return re.sub(r"\bARM_(?=[A-Z])", f"{name.upper()}_", text)
