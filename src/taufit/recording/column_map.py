"""What the columns of a file are: a small YAML page the user writes once per logger.

robot: my_arm
columns:
  time: t
  position: "q{joint}"                     # q1, q2, ... as many as there are
  velocity: {columns: "8-13", unit: deg/s} # numbers count from 1
  current: {columns: "14-19", unit: mA, sign: [1, 1, -1, 1, 1, 1]}
gains: auto
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taufit.arrays import Array, Bool, Float
from taufit.errors import RecordingError
from taufit.plain_data import parse_yaml, read_text
from taufit.recording.quantity import MOTIONS, QUANTITIES, SIGNALS, unit_factor

Key = int | str


@dataclass(frozen=True, slots=True)
class Columns:
    """Where one quantity is and how it becomes SI: value = sign * scale * unit * cell + offset.

    Attributes:
        quantity: One of `QUANTITIES`.
        keys: Column numbers from 1 or names, joint after joint; or one pattern with {joint}
            (counts from 1) or {joint0} (counts from 0).
        unit: Of the file.
        sign, scale, offset: One number, or one per joint; the offset is in SI.
        side: "motor" where a motion is the motor's own, before gear and coupling.
        optional: Whether a file may lack these columns.
    """

    quantity: str
    keys: tuple[Key, ...]
    unit: str
    sign: tuple[float, ...] = (1.0,)
    scale: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    side: str = "joint"
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMap:
    """Everything a file of numbers does not say about itself.

    Attributes:
        source: Where the map was read from, for messages.
        columns: One entry per quantity.
        robot, mounting, joint_names: Of the arm, or None.
        gains: Joint torque per unit of signal, "auto" (found later from the controller's own
            target torque and current), "unknown" (fit in the signal's own unit), or None where the
            file does not need or say it.
        gains_std: Their standard deviation, or None.
        gear_ratio: Motor turns per joint turn, sign included, or None.
        torque_constant: Motor torque per ampere, or None.
        torque_side: "motor" where the signal is taken before the gear and contains the drive's
            friction, "link" behind it, None to take what the quantity suggests.
        signed: Whether the signal carries its sign, one value or one per joint.
        coupling: C with q_m = C q, motors referred to their joints, or None.
        payload: Mass the robot carried [kg], or None.
        header, delimiter, decimal, skip_rows: Of text files; None is found out.
        rate_hz: Sampling rate of files without a time column.
        gravity_removed: Whether the controller subtracted gravity from the torque it logs.
        notes: Free text that goes into the recording's provenance.
    """

    source: str
    columns: tuple[Columns, ...]
    robot: str | None = None
    mounting: str | None = None
    joint_names: tuple[str, ...] | None = None
    gains: Float[Array, " j"] | str | None = None
    gains_std: Float[Array, " j"] | None = None
    gear_ratio: Float[Array, " j"] | None = None
    torque_constant: Float[Array, " j"] | None = None
    torque_side: str | None = None
    signed: Bool[Array, " j"] | bool = True
    coupling: Float[Array, "j j"] | None = None
    payload: float | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    skip_rows: int = 0
    rate_hz: float | None = None
    gravity_removed: bool = False
    notes: str | None = None

    def of(self, quantity: str) -> Columns | None:
        """The entry of one quantity, or None."""
        return next((entry for entry in self.columns if entry.quantity == quantity), None)

    @property
    def signal(self) -> Columns:
        """The torque channel."""
        return next(entry for entry in self.columns if entry.quantity in SIGNALS)


_ENTRY_KEYS = ("columns", "unit", "sign", "scale", "offset", "side", "optional")
_LIST_KEYS = ("column", "quantity", "joint", *_ENTRY_KEYS[1:])
_MAP_KEYS = (
    "robot",
    "columns",
    "mounting",
    "joint_names",
    "gains",
    "gear_ratio",
    "torque_constant",
    "torque_side",
    "signed",
    "coupling",
    "known_payload",
    "header",
    "delimiter",
    "decimal",
    "skip_rows",
    "rate_hz",
    "gravity_removed",
    "notes",
)
_DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "space": " ", "whitespace": " "}


def read_map(source: str | os.PathLike[str] | Mapping[str, Any] | ColumnMap) -> ColumnMap:
    """A column map from a YAML file, from data of the same shape, or as it is."""
    if isinstance(source, ColumnMap):
        return source
    if isinstance(source, Mapping):
        return _parse(source, "map")
    path = _find(Path(source))
    try:
        path.stat()
    except FileNotFoundError:
        raise RecordingError(f"there is no column map {path}.{_neighbours(path)}") from None
    except OSError as error:
        raise RecordingError(f"column map {path} cannot be read: {error.strerror}.") from None
    text = read_text(path, "a column map", error=RecordingError)
    data = parse_yaml(text, f"column map {path}", "YAML", error=RecordingError)
    if not isinstance(data, Mapping):
        raise RecordingError(
            f"column map {path} must be a page of `key: value` lines; it needs at least "
            "`columns:`. The maps in examples/columns are patterns to start from."
        )
    try:
        return _parse(data, str(path))
    except RecursionError:
        raise RecordingError(f"column map {path} contains itself.") from None


def shipped_maps() -> dict[str, Path]:
    """Maps by name: those of common loggers in the package, and examples/columns of a checkout."""
    here = Path(__file__).resolve()
    folders = [folder / "examples" / "columns" for folder in (here.parents[3], Path.cwd())]
    found = {
        path.stem: path for folder in folders if folder.is_dir() for path in folder.glob("*.yaml")
    }
    return found | {path.stem: path for path in (here.parent / "loggers").glob("*.yaml")}


def _find(path: Path) -> Path:
    """The map itself, or the shipped one of that bare name."""
    if path.exists():
        return path
    named = path if path.suffix in (".yaml", ".yml") else path.with_name(path.name + ".yaml")
    if not named.exists() and len(path.parts) == 1:
        return shipped_maps().get(named.stem, named)
    return named


def _neighbours(path: Path) -> str:
    beside = path.parent.glob("*.yaml") if path.parent.is_dir() else ()
    shipped = {found.name for found in shipped_maps().values()}
    names = sorted({*shipped, *(found.name for found in beside)} - {path.name})
    return f" Maps beside it or shipped: {', '.join(names)}." if names else ""


class _Reader:
    """Checks the pieces of one map; every complaint starts with where the map came from."""

    def __init__(self, source: str) -> None:
        self.source = source

    def refuse(self, text: str) -> RecordingError:
        return RecordingError(f"{self.source}: {text}")

    def known(self, data: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
        for key in data:
            if key not in keys:
                close = difflib.get_close_matches(str(key), keys, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise self.refuse(f"{where} has no key {key!r}; it knows {', '.join(keys)}.{hint}")

    def number(self, value: Any, where: str) -> float:
        if isinstance(value, str):
            # YAML 1.1 reads 1e-3 as text; ratios such as 1798/7 are easier to check than decimals.
            match = re.fullmatch(r"\s*([-+.\deE]+)\s*(?:/\s*([-+.\deE]+))?\s*", value)
            try:
                value = float(match[1]) / float(match[2] or 1) if match else None
            except (ValueError, ZeroDivisionError):
                value = None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(f"{where} must be a number, not {value!r}.")
        if not np.isfinite(value):
            raise self.refuse(f"{where} must be finite, not {value!r}.")
        return float(value)

    def numbers(self, value: Any, where: str) -> tuple[float, ...]:
        items = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        if not len(items):
            raise self.refuse(f"{where} is empty.")
        return tuple(self.number(item, where) for item in items)

    def array(self, value: Any, where: str) -> Float[Array, " j"] | None:
        return None if value is None else np.array(self.numbers(value, where))

    def text(self, value: Any, where: str) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise self.refuse(f"{where} must be text, not {value!r}.")

    def flag(self, value: Any, where: str) -> bool:
        if isinstance(value, bool):
            return value
        raise self.refuse(f"{where} must be true or false, not {value!r}.")

    def choice(self, value: Any, choices: Sequence[str], where: str) -> str:
        if value in choices:
            return str(value)
        raise self.refuse(f"{where} must be {' or '.join(choices)}, not {value!r}.")

    def keys(self, value: Any, where: str) -> tuple[Key, ...]:
        """Column keys: 3, "3-8", "q{joint}", "name", or a list of them."""
        if isinstance(value, (list, tuple)):
            found = tuple(key for item in value for key in self.keys(item, where))
            if not found:
                raise self.refuse(f"{where} names no column.")
            if len(found) > 1 and any(_is_pattern(key) for key in found):
                raise self.refuse(f"{where}: a pattern with {{joint}} stands alone, not in a list.")
            return found
        if isinstance(value, bool) or value is None:
            raise self.refuse(f"{where} must be a column number or name, not {value!r}.")
        if isinstance(value, int):
            if value < 1:
                raise self.refuse(f"{where}: columns are numbered from 1, not {value}.")
            return (value,)
        if isinstance(value, str):
            span = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", value)
            if span:
                first, last = int(span[1]), int(span[2])
                if not 1 <= first <= last <= 100_000:
                    raise self.refuse(f"{where}: {value!r} is no range of columns from 1.")
                return tuple(range(first, last + 1))
            if value.strip():
                return (value,)
        raise self.refuse(f"{where} must be a column number or name, not {value!r}.")

    def entry(self, quantity: Any, value: Any) -> Columns:
        where = f"columns.{quantity}"
        if quantity not in QUANTITIES:
            close = difflib.get_close_matches(str(quantity), QUANTITIES, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise self.refuse(
                f"there is no quantity {quantity!r}; there are {', '.join(QUANTITIES)}.{hint}"
            )
        data = value if isinstance(value, Mapping) else {"columns": value}
        self.known(data, _ENTRY_KEYS, where)
        if "columns" not in data:
            raise self.refuse(f"{where} does not say which columns.")
        keys = self.keys(data["columns"], f"{where}.columns")
        if not QUANTITIES[quantity].per_joint and (len(keys) != 1 or _is_pattern(keys[0])):
            raise self.refuse(f"{where} is one column, not one per joint.")
        unit = self.text(data.get("unit"), f"{where}.unit")
        if unit is None:
            unit = next(iter(QUANTITIES[quantity].units))
        try:
            unit_factor(quantity, unit)
        except RecordingError as error:
            raise self.refuse(f"{where}: {error}") from None
        sign = self.numbers(data.get("sign", 1), f"{where}.sign")
        if any(abs(x) != 1 for x in sign):
            raise self.refuse(f"{where}.sign must be 1 or -1; use scale for other factors.")
        scale = self.numbers(data.get("scale", 1), f"{where}.scale")
        if any(x == 0 for x in scale):
            raise self.refuse(f"{where}.scale must not be zero.")
        side = self.choice(data.get("side", "joint"), ("joint", "motor"), f"{where}.side")
        if side == "motor" and quantity not in MOTIONS:
            raise self.refuse(
                f"{where}.side is for positions, velocities and accelerations; where the torque "
                "is measured is said by torque_side."
            )
        return Columns(
            quantity=quantity,
            keys=keys,
            unit=unit,
            sign=sign,
            scale=scale,
            offset=self.numbers(data.get("offset", 0), f"{where}.offset"),
            side=side,
            optional=self.flag(data.get("optional", False), f"{where}.optional"),
        )

    def entries(self, value: Any) -> tuple[Columns, ...]:
        if isinstance(value, Mapping) and value:
            return tuple(self.entry(quantity, spec) for quantity, spec in value.items())
        if isinstance(value, (list, tuple)) and value:
            return self.from_list(value)
        raise self.refuse("`columns` must say what the columns are, e.g. `position: 2-7`.")

    def from_list(self, items: Sequence[Any]) -> tuple[Columns, ...]:
        """The long form: one line per column, with its joint."""
        found: dict[str, dict[int, Columns]] = {}
        for number, item in enumerate(items, 1):
            where = f"columns, entry {number}"
            if not isinstance(item, Mapping):
                raise self.refuse(f"{where} must be {{column: ..., quantity: ...}}, not {item!r}.")
            self.known(item, _LIST_KEYS, where)
            if "column" not in item or "quantity" not in item:
                raise self.refuse(f"{where} needs `column` and `quantity`.")
            rest = {key: item[key] for key in _ENTRY_KEYS[1:] if key in item}
            entry = self.entry(item["quantity"], {"columns": item["column"], **rest})
            joint = item.get("joint", 1)
            if isinstance(joint, bool) or not isinstance(joint, int) or joint < 1:
                raise self.refuse(f"{where}: joints are numbered from 1, not {joint!r}.")
            if len(entry.keys) == 1 and not _is_pattern(entry.keys[0]):
                many = [entry]
            else:
                many = [replace(entry, keys=(key,)) for key in entry.keys]
            for step, one in enumerate(many):
                if joint + step in found.setdefault(entry.quantity, {}):
                    raise self.refuse(
                        f"{where}: {entry.quantity} of joint {joint + step} is twice."
                    )
                found[entry.quantity][joint + step] = one
        merged = []
        for quantity, joints in found.items():
            if sorted(joints) != list(range(1, len(joints) + 1)):
                raise self.refuse(
                    f"{quantity} is given for joints {sorted(joints)}; joints are numbered from 1 "
                    "without holes."
                )
            parts = [joints[joint] for joint in sorted(joints)]
            for name in ("unit", "side"):
                if len({getattr(part, name) for part in parts}) > 1:
                    raise self.refuse(f"{quantity} has more than one {name}; use scale instead.")
            merged.append(
                replace(
                    parts[0],
                    keys=tuple(key for part in parts for key in part.keys),
                    sign=tuple(part.sign[0] for part in parts),
                    scale=tuple(part.scale[0] for part in parts),
                    offset=tuple(part.offset[0] for part in parts),
                    optional=all(part.optional for part in parts),
                )
            )
        return tuple(merged)


def _is_pattern(key: Key) -> bool:
    return isinstance(key, str) and ("{joint}" in key or "{joint0}" in key)


def _parse(data: Mapping[str, Any], source: str) -> ColumnMap:
    read = _Reader(source)
    read.known(data, _MAP_KEYS, "the map")
    columns = read.entries(data.get("columns"))
    given = [entry.quantity for entry in columns]
    signals = [name for name in given if name in SIGNALS]
    if "position" not in given:
        raise read.refuse("`columns` names no position.")
    if len(signals) != 1:
        raise read.refuse(
            "`columns` must name exactly one torque channel: current, torque, or signal (raw "
            f"numbers); it names {', '.join(signals) or 'none'}."
        )
    rate = data.get("rate_hz")
    rate = None if rate is None else read.number(rate, "rate_hz")
    if rate is not None and rate <= 0:
        raise read.refuse(f"rate_hz must be positive, not {rate:g}.")
    if "time" not in given and rate is None:
        raise read.refuse("`columns` names no time; where a file has none, give rate_hz.")

    gains, gains_std = data.get("gains"), None
    if isinstance(gains, Mapping):
        read.known(gains, ("value", "std"), "gains")
        if "value" not in gains:
            raise read.refuse("gains has no value.")
        gains_std = read.array(gains.get("std"), "gains.std")
        gains = gains["value"]
        if gains_std is not None and (gains_std < 0).any():
            raise read.refuse("gains.std must not be negative.")
    if gains not in ("auto", "unknown"):
        if isinstance(gains, str):
            raise read.refuse(f"gains must be numbers, auto or unknown, not {gains!r}.")
        gains = read.array(gains, "gains")
        if gains is not None and (gains == 0).any():
            raise read.refuse("gains must not be zero.")
    ratio = read.array(data.get("gear_ratio"), "gear_ratio")
    if ratio is not None and (ratio == 0).any():
        raise read.refuse("gear_ratio must not be zero.")
    if ratio is None and any(entry.side == "motor" for entry in columns):
        raise read.refuse("a motion on the motor's side (`side: motor`) needs gear_ratio.")

    signed = data.get("signed", True)
    if isinstance(signed, (list, tuple)):
        signed = np.array([read.flag(item, "signed") for item in signed])
    else:
        signed = read.flag(signed, "signed")
    coupling = data.get("coupling")
    if coupling is not None:
        if not isinstance(coupling, (list, tuple)):
            raise read.refuse("coupling must be a square matrix, one row per motor.")
        rows = [read.numbers(row, "coupling") for row in coupling]
        if any(len(row) != len(rows) for row in rows):
            raise read.refuse("coupling must be a square matrix, one row per motor.")
        coupling = np.array(rows)
        if np.linalg.cond(coupling) > 1e8:
            raise read.refuse("coupling cannot be inverted, so motors do not tell the joints.")
    side = data.get("torque_side")
    payload = data.get("known_payload")
    payload = None if payload is None else read.number(payload, "known_payload")
    if payload is not None and payload < 0:
        raise read.refuse(f"known_payload must not be negative, not {payload:g}.")
    delimiter = read.text(data.get("delimiter"), "delimiter")
    delimiter = _DELIMITERS.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise read.refuse(f"delimiter must be one character or {', '.join(_DELIMITERS)}.")
    skip = read.number(data.get("skip_rows", 0), "skip_rows")
    if skip < 0 or skip != int(skip):
        raise read.refuse(f"skip_rows must be a whole number, not {skip:g}.")
    names = data.get("joint_names")
    if names is not None and (
        not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names)
    ):
        raise read.refuse("joint_names must be a list of names.")
    header = data.get("header")
    mounting = data.get("mounting")
    return ColumnMap(
        source=source,
        columns=columns,
        robot=read.text(data.get("robot"), "robot"),
        mounting=None if mounting is None else str(mounting),
        joint_names=None if names is None else tuple(names),
        gains=gains,
        gains_std=gains_std,
        gear_ratio=ratio,
        torque_constant=read.array(data.get("torque_constant"), "torque_constant"),
        torque_side=None if side is None else read.choice(side, ("motor", "link"), "torque_side"),
        signed=signed,
        coupling=coupling,
        payload=payload,
        header=None if header is None else read.flag(header, "header"),
        delimiter=delimiter,
        decimal=None
        if data.get("decimal") is None
        else read.choice(data["decimal"], (".", ","), "decimal"),
        skip_rows=int(skip),
        rate_hz=rate,
        gravity_removed=read.flag(data.get("gravity_removed", False), "gravity_removed"),
        notes=read.text(data.get("notes"), "notes"),
    )


def locate(entry: Columns, names: Sequence[str], source: str) -> tuple[int, ...] | None:
    """Indices (from 0) of an entry's columns in a file; None where an optional one is absent."""
    if len(entry.keys) == 1 and _is_pattern(entry.keys[0]):
        found = _match(entry, names, source)
        if found or entry.optional:
            return found or None
        raise _missing(entry, str(entry.keys[0]), names, source)
    indices: list[int] = []
    for key in entry.keys:
        if isinstance(key, int):
            index = key - 1 if key <= len(names) else None
        else:
            index = names.index(key) if key in names else None
        if index is None:
            if entry.optional:
                return None
            raise _missing(entry, key, names, source)
        indices.append(index)
    return tuple(indices)


def _match(entry: Columns, names: Sequence[str], source: str) -> tuple[int, ...]:
    """Columns of a pattern, joint after joint; a hole in the numbers is an error."""
    pattern = str(entry.keys[0])
    parts = re.split(r"(\{joint0?\})", pattern)
    first = 0 if "{joint0}" in parts else 1
    regex = "".join(
        "(\\d+)" if part in ("{joint}", "{joint0}") else re.escape(part) for part in parts
    )
    found = {}
    for index, name in enumerate(names):
        match = re.fullmatch(regex, name)
        if match and match[1] == str(int(match[1])) and len(set(match.groups())) == 1:
            found[int(match[1]) - first] = index
    joints = sorted(found)
    if joints != list(range(len(joints))):
        have = ", ".join(names[found[joint]] for joint in joints)
        raise RecordingError(
            f"{source} has {have} for {entry.quantity} ({pattern}): joints are numbered from "
            f"{first} without holes. Give the columns one by one in the column map."
        )
    return tuple(found[joint] for joint in joints)


def _missing(entry: Columns, key: Key, names: Sequence[str], source: str) -> RecordingError:
    named = [name for name in names if name]
    if isinstance(key, int):
        found = f"the file has {len(names)} columns"
    elif named:
        shown = ", ".join(named[:40]) + (", ..." if len(named) > 40 else "")
        found = f"the file has {shown}"
    else:
        found = "the file has no header; give columns by number"
    return RecordingError(
        f"{source} has no column {key!r} for {entry.quantity}; {found}. Correct the column map, "
        "or mark the entry `optional: true`."
    )


__all__ = ["ColumnMap", "Columns", "locate", "read_map", "shipped_maps"]
