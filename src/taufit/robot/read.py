"""Reading of robot descriptions."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from taufit.core.bounded_reading import read_bytes
from taufit.core.errors import MissingExtraError, RobotError
from taufit.core.files import write_text
from taufit.robot.robot import Robot

_MAX_FILE_BYTES = 32_000_000


def bundled_robots(*, trees: bool = False) -> tuple[str, ...]:
    """Names of the bundled serial robots.

    Args:
        trees: Whether to add robots with branches or bound joints.

    Example:
        >>> import taufit
        >>> "ur10e" in taufit.bundled_robots()
        True
    """
    return tuple(sorted(name for name, folder in _bundle_folders().items() if trees or not folder))


def serial_robots(joints: int) -> tuple[Robot, ...]:
    """Bundled serial robots with so many joints; descriptions of others are not parsed."""
    texts = {name: _text_of_bundle(name) for name in bundled_robots()}
    return tuple(
        read_robot(name) for name, text in texts.items() if text.count("\n  - name:") == joints
    )


def _bundle_folders() -> dict[str, tuple[str, ...]]:
    """Folder of every bundled robot: empty for serial robots."""
    bundled = files("taufit.robot") / "bundled"
    return {
        entry.name[:-5]: folder
        for folder in ((), ("trees",))
        for entry in bundled.joinpath(*folder).iterdir()
        if entry.name.endswith(".yaml")
    }


def read_robot(
    path_or_name: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    mounting: str | Sequence[float] | None = None,
    expand: bool = True,
    hold: Mapping[str, float] | None = None,
    joints: Sequence[str] = (),
) -> Robot:
    """Read a robot from a bundled name, a .urdf, a .xacro, an MJCF .xml or a .yaml.

    Args:
        path_or_name: File, or one of `bundled_robots(trees=True)`.
        base: First link of the chain (URDF and xacro).
        tip: Last link of the chain (URDF and xacro); several for a tree, separated by commas.
        mounting: "ground", "ceiling", "wall", "ROLL,PITCH,YAW" in degrees, or three angles in
            radians; None keeps that of the description.
        expand: Whether xacro files, whose expressions are evaluated, may be read; False for names
            from a file.
        hold: Joints that stand still, with their position [rad or m]: fixed joints of the chain
            (URDF and xacro).
        joints: Recorded joints, in recorded order: the part of a whole robot that they move (URDF
            and xacro), in place of `tip`.

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
        robot = _read_description(name, base, tip, hold or {}, joints)
    except MissingExtraError:
        raise
    except RobotError as error:
        if Path(name).suffix and not str(error).startswith(name):
            raise RobotError(f"{name}: {error}") from None
        raise
    return robot if mounting is None else robot.with_mounting(mounting)


def write_robot(robot: Robot, path: str | os.PathLike[str]) -> None:
    """Write a robot as YAML, from which `read_robot` creates an equal robot."""
    from taufit.robot.to_yaml import to_yaml

    write_text(path, to_yaml(robot))


def description_text(path: Path) -> str:
    """Text of a URDF, MJCF or xacro file, expanded."""
    return _expand_xacro(path) if path.suffix.lower() == ".xacro" else _read_text(path)


def _read_description(
    name: str,
    base: str | None,
    tip: str | None,
    held: Mapping[str, float],
    joints: Sequence[str] = (),
) -> Robot:
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in (".urdf", ".xml", ".xacro"):
        return _read_xml(path, base, tip, held, joints)
    if not suffix:
        text = _text_of_bundle(name)
    elif suffix in (".yaml", ".yml"):
        text = _read_text(path)
    else:
        raise RobotError(
            f"{name}: a robot is read from .urdf, .xacro, .xml (MJCF) or .yaml, not from {suffix}. "
            f"Bundled are {', '.join(bundled_robots(trees=True))}."
        )
    if base is not None or tip is not None or held or joints:
        raise RobotError(
            f"{name} is one chain already: --base, --tip and --hold are for URDF and xacro."
        )
    from taufit.robot.from_yaml import from_yaml

    return from_yaml(text)


def _text_of_bundle(name: str) -> str:
    bundled = bundled_robots(trees=True)
    if name.lower() in bundled:
        place = (*_bundle_folders()[name.lower()], f"{name.lower()}.yaml")
        return (files("taufit.robot") / "bundled").joinpath(*place).read_text("utf-8")
    similar = difflib.get_close_matches(name.lower(), bundled, n=1)
    hint = f" Did you mean {similar[0]!r}?" if similar else ""
    raise RobotError(
        f"{name!r} is neither a bundled robot nor a file ending in .urdf, .xacro, .xml "
        f"(MJCF) or .yaml.{hint} Bundled are {', '.join(bundled)}."
    )


def _read_xml(
    path: Path,
    base: str | None,
    tip: str | None,
    held: Mapping[str, float],
    joints: Sequence[str],
) -> Robot:
    """Robot of a URDF, xacro or MJCF file."""
    text = description_text(path)
    if path.suffix.lower() == ".xml" and re.search(r"<mujoco[\s>]", text):
        from taufit.robot.from_mjcf import from_mjcf

        if base is not None:
            raise RobotError("--base is for URDF and xacro: an MJCF starts at its world.")
        return from_mjcf(text, tip=tip, source=f"MJCF {path.name}")
    if held:
        from taufit.robot.held_joints import hold_joints

        text = hold_joints(text, held)
    source = f"{'xacro' if path.suffix.lower() == '.xacro' else 'URDF'} {path.name}"
    if joints or (tip is not None and "," in tip):
        from taufit.robot.urdf_tree import tree_from_urdf

        tips = tuple(part.strip() for part in tip.split(",")) if tip and not joints else ()
        return tree_from_urdf(text, recorded=joints, tips=tips, base=base, source=source)
    from taufit.robot.from_urdf import from_urdf

    return from_urdf(text, base=base, tip=tip, source=source)


def _read_text(path: Path) -> str:
    try:
        return read_bytes(path, _MAX_FILE_BYTES, error=RobotError).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RobotError(f"{path} is not UTF-8 text.") from None


def _expand_xacro(path: Path) -> str:
    """URDF of a xacro file. Expanding evaluates the file's expressions."""
    _read_text(path)
    try:
        from xacrodoc import XacroDoc
    except ImportError:
        instead = "expand the file with `xacro FILE > robot.urdf`"
        from taufit.core.extras import missing_extra

        raise missing_extra("xacro", str(path), instead) from None
    try:
        # Meshes are not opened, so their packages need not exist.
        document = XacroDoc.from_file(str(path), resolve_packages=False)
        return str(document.to_urdf_string())
    except Exception as error:
        # The expander raises many kinds of errors; each means a faulty file.
        text = str(error).splitlines() or [type(error).__name__]
        raise RobotError(f"{path} cannot be expanded: {text[0]}.") from None
