"""Any description of an arm in, a `Robot` out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from taufit.core.bounded_reading import read_bytes
from taufit.core.errors import MissingExtraError, RobotError
from taufit.core.extras import missing_extra
from taufit.core.files import write_text
from taufit.robot.robot import Robot

_LARGEST = 32_000_000


def bundled_robots() -> tuple[str, ...]:
    """The names of the arms taufit knows.

    Example:
        >>> import taufit
        >>> "ur10e" in taufit.bundled_robots()
        True
    """
    folder = files("taufit.robot") / "bundled"
    return tuple(
        sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    )


def read_robot(
    path_or_name: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    mounting: str | Sequence[float] | None = None,
    expand: bool = True,
) -> Robot:
    """An arm from a bundled name, a .urdf, a .xacro or a .yaml.

    Args:
        path_or_name: A file, or one of `bundled_robots()`.
        base: For URDF and xacro, the link the chain starts at.
        tip: For URDF and xacro, the link the chain ends at.
        mounting: "ground", "ceiling", "wall", "ROLL,PITCH,YAW" in degrees, or three angles in
            radians; None keeps the description's own.
        expand: Whether a xacro, whose expressions are evaluated, may be read; False for a name
            that comes from a file.

    Example:
        >>> import taufit
        >>> taufit.read_robot("panda")
        Robot(panda: 7 joints)
        >>> taufit.read_robot("ur10e", mounting="wall").gravity.round(2).tolist()
        [...]
    """
    name = os.fspath(path_or_name)
    try:
        if not expand and Path(name).suffix.lower() == ".xacro":
            raise RobotError(
                f"{name} is named by a file, and a xacro evaluates what is in it: name it yourself "
                "(ROBOT, --robot)."
            )
        robot = _read(name, base, tip)
    except MissingExtraError:
        raise
    except RobotError as error:
        if Path(name).suffix and not str(error).startswith(name):
            raise RobotError(f"{name}: {error}") from None
        raise
    return robot if mounting is None else robot.with_mounting(mounting)


def write_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write an arm as YAML that `read_robot` reads back to the same arm."""
    from taufit.robot.from_yaml import to_yaml

    write_text(path, to_yaml(robot))


def _read(name: str, base: str | None, tip: str | None) -> Robot:
    path = Path(name)
    suffix = path.suffix.lower()
    known = bundled_robots()
    if not suffix:
        text = None
        if name.lower() in known:
            text = (files("taufit.robot") / "bundled" / f"{name.lower()}.yaml").read_text("utf-8")
        if text is None:
            close = difflib.get_close_matches(name.lower(), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise RobotError(
                f"{name!r} is neither a bundled robot nor a file ending in .urdf, .xacro or .yaml."
                f"{hint} Bundled are {', '.join(known)}."
            )
    elif suffix in (".urdf", ".xml", ".xacro"):
        from taufit.robot.from_urdf import from_urdf

        text = _xacro(path) if suffix == ".xacro" else _text(path)
        kind = "xacro" if suffix == ".xacro" else "URDF"
        return from_urdf(text, base=base, tip=tip, source=f"{kind} {path.name}")
    elif suffix in (".yaml", ".yml"):
        text = _text(path)
    else:
        raise RobotError(
            f"{name}: a robot is read from .urdf, .xacro or .yaml, not from {suffix}. "
            f"Bundled are {', '.join(known)}."
        )
    if base is not None or tip is not None:
        raise RobotError(f"{name} is one chain already: --base and --tip are for URDF and xacro.")
    from taufit.robot.from_yaml import from_yaml

    return from_yaml(text)


def _text(path: Path) -> str:
    try:
        return read_bytes(path, _LARGEST, error=RobotError).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RobotError(f"{path} is not UTF-8 text.") from None


def _xacro(path: Path) -> str:
    """The URDF a xacro file expands to. Expanding runs the file's own expressions."""
    _text(path)
    try:
        from xacrodoc import XacroDoc
    except ImportError:
        instead = "expand the file with `xacro FILE > robot.urdf`"
        raise missing_extra("xacro", str(path), instead) from None
    try:
        # Meshes are not opened, so the packages they lie in need not exist.
        document = XacroDoc.from_file(str(path), resolve_packages=False)
        return str(document.to_urdf_string())
    except Exception as error:
        # The expander raises its own and Python's errors alike; each means a faulty file.
        text = str(error).splitlines() or [type(error).__name__]
        raise RobotError(f"{path} cannot be expanded: {text[0]}.") from None
