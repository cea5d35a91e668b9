"""Files of the ROS 2 package."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from xml.sax.saxutils import escape

from taufit import __version__
from taufit.core.errors import TaufitError
from taufit.core.files import write_text
from taufit.core.names import c_comment
from taufit.export.c import c_name, c_texts
from taufit.export.c.names import set_prefix
from taufit.export.export_format import ExportResult
from taufit.model.fitted_model import FittedModel

_TEMPLATES = {
    "package.xml": "package.xml",
    "CMakeLists.txt": "CMakeLists.txt",
    "README.md": "README.md",
    "controller_plugins.xml": "controller_plugins.xml",
    "solver_plugins.xml": "solver_plugins.xml",
    "interface_plugins.xml": "interface_plugins.xml",
    "config/controller.yaml": "controller.yaml",
    "src/feed_forward_controller.cpp": "feed_forward_controller.cpp",
    "src/inverse_dynamics.hpp": "inverse_dynamics.hpp",
    "src/solver_plugin.cpp": "solver_plugin.cpp",
    "src/interface_plugin.cpp": "interface_plugin.cpp",
}


def write_ros2(model: FittedModel, path: Path) -> ExportResult:
    """Write the package into the folder `path`; returns its files, package.xml first."""
    if path.exists() and not path.is_dir():
        raise TaufitError(f"{path} is a file: a ROS 2 package is a folder. Give another name.")
    name = c_name(model)
    texts = c_texts(model, name)
    contents = {target: _fill(template, model) for target, template in _TEMPLATES.items()}
    contents |= {f"include/{name}.h": texts.header, f"src/{name}.c": texts.source}
    for target, text in contents.items():
        file = path / target
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
    note = (
        f"Copy {path} into the src folder of a colcon workspace. The plug-ins for inverse dynamics "
        "have no friction memory (their interface gives none); the controller has."
    )
    return ExportResult(tuple(path / target for target in contents), (), (note,))


def _fill(template: str, model: FittedModel) -> str:
    text = files("taufit.export.ros2").joinpath(template).read_text(encoding="utf-8")
    name = c_name(model)
    marks = {
        "NAME": name,
        "TITLE": escape(c_comment(model.robot.name)),
        "VERSION": __version__,
        "JOINTS": ", ".join(_yaml_text(joint) for joint in model.robot.joint_names),
        "ZEROS": ", ".join(["0.0"] * model.robot.joints),
    }
    return re.sub("@([A-Z]+)@", lambda match: marks[match[1]], set_prefix(text, name))


def _yaml_text(text: str) -> str:
    """Text in single quotes, as YAML has it."""
    return "'" + text.replace("'", "''") + "'"
