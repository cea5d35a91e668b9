"""Column map: YAML description of the columns of a file, written once per logger.

robot: my_arm
columns:
  time: t
  position: "q{joint}"                     # q1, q2, ... as many as there are
  velocity: {columns: "8-13", unit: deg/s} # numbers count from 1
  current: {columns: "14-19", unit: mA, sign: [1, 1, -1, 1, 1, 1]}
gains: auto
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taufit.core.errors import RecordingError
from taufit.core.plain_data import parse_yaml, read_text
from taufit.recording.columns import ColumnEntry, ColumnMap, locate_columns


def read_map(source: str | os.PathLike[str] | Mapping[str, Any] | ColumnMap) -> ColumnMap:
    """Read a column map from a YAML file or a mapping; a `ColumnMap` is returned as it is."""
    if isinstance(source, ColumnMap):
        return source
    from taufit.recording.map.parser import parse_map

    if isinstance(source, Mapping):
        return parse_map(source, "map")
    path = _find_map(Path(source))
    try:
        return parse_map(read_page(path), str(path))
    except RecursionError:
        raise RecordingError(f"column map {path} contains itself.") from None


def read_page(source: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Content of a column map file, or of the shipped one of that name."""
    path = _find_map(Path(source))
    try:
        path.stat()
    except FileNotFoundError:
        raise RecordingError(f"there is no column map {path}.{_available_maps(path)}") from None
    except OSError as error:
        raise RecordingError(f"column map {path} cannot be read: {error.strerror}.") from None
    text = read_text(path, "a column map", error=RecordingError)
    data = parse_yaml(text, f"column map {path}", "YAML", error=RecordingError)
    if not isinstance(data, Mapping):
        raise RecordingError(
            f"column map {path} must be a page of `key: value` lines; it needs at least "
            "`columns:`. The maps in examples/columns are patterns to start from."
        )
    return data


def shipped_maps() -> dict[str, Path]:
    """Column maps by name: common loggers in the package, and examples/columns of a checkout."""
    module_path = Path(__file__).resolve()
    folders = [folder / "examples" / "columns" for folder in (module_path.parents[3], Path.cwd())]
    checkout_maps = {
        path.stem: path for folder in folders if folder.is_dir() for path in folder.glob("*.yaml")
    }
    return checkout_maps | {
        path.stem: path for path in (module_path.parent / "loggers").glob("*.yaml")
    }


def _find_map(path: Path) -> Path:
    """Path of the map, or of the shipped one of that name."""
    if path.exists():
        return path
    yaml_path = path if path.suffix in (".yaml", ".yml") else path.with_name(path.name + ".yaml")
    if not yaml_path.exists() and len(path.parts) == 1:
        return shipped_maps().get(yaml_path.stem, yaml_path)
    return yaml_path


def _available_maps(path: Path) -> str:
    nearby = path.parent.glob("*.yaml") if path.parent.is_dir() else ()
    shipped = {map_path.name for map_path in shipped_maps().values()}
    names = sorted({*shipped, *(map_path.name for map_path in nearby)} - {path.name})
    return f" Maps beside it or shipped: {', '.join(names)}." if names else ""


__all__ = ["ColumnEntry", "ColumnMap", "locate_columns", "read_map", "read_page", "shipped_maps"]
