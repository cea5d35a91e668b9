"""Parser of column map data: every key is checked, every error names its place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Bool, Float
from taufit.core.errors import RecordingError
from taufit.recording.columns import ColumnEntry, ColumnMap, Key, is_pattern
from taufit.recording.quantity import MOTIONS, QUANTITIES, SIGNALS, unit_factor

# Mark of a value that a drafted map leaves to the user.
UNKNOWN = "???"
# Largest valid number in a map.
_LARGEST = 1e30


class MapValueReader:
    """Checks values of a map; errors start with the source of the map."""

    def __init__(self, source: str) -> None:
        self.source = source

    def error(self, text: str) -> RecordingError:
        """Create an error that names the source."""
        return RecordingError(f"{self.source}: {text}")

    def require_known_keys(
        self, data: Mapping[str, Any], keys: Sequence[str], key_path: str
    ) -> None:
        """Raise if there are unknown keys."""
        for key in data:
            if key not in keys:
                similar = difflib.get_close_matches(str(key), keys, n=1)
                hint = f" Did you mean {similar[0]!r}?" if similar else ""
                raise self.error(
                    f"{key_path} has no key {key!r}; it knows {', '.join(keys)}.{hint}"
                )

    def number(self, value: Any, key_path: str) -> float:
        """Finite number, also given as text or as a ratio such as 1798/7."""
        if isinstance(value, str):
            # YAML 1.1 reads 1e-3 as text; ratios such as 1798/7 are easier to check than decimals.
            match = re.fullmatch(r"\s*([-+.\deE]+)\s*(?:/\s*([-+.\deE]+))?\s*", value)
            try:
                value = float(match[1]) / float(match[2] or 1) if match else None
            except (ValueError, ZeroDivisionError):
                value = None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{key_path} must be a number, not {value!r}.")
        if not abs(value) < _LARGEST:
            raise self.error(f"{key_path} must be finite, not {value!r}.")
        return float(value)

    def numbers(self, value: Any, key_path: str) -> tuple[float, ...]:
        """One or several numbers."""
        items = value if isinstance(value, (list, tuple, np.ndarray)) else [value]
        if not len(items):
            raise self.error(f"{key_path} is empty.")
        return tuple(self.number(item, key_path) for item in items)

    def array(self, value: Any, key_path: str) -> Float[Array, " j"] | None:
        """Numbers as an array, or None."""
        return None if value is None else np.array(self.numbers(value, key_path))

    def text(self, value: Any, key_path: str) -> str | None:
        """Text, or None."""
        if value is None or isinstance(value, str):
            return value
        raise self.error(f"{key_path} must be text, not {value!r}.")

    def flag(self, value: Any, key_path: str) -> bool:
        """True or false."""
        if isinstance(value, bool):
            return value
        raise self.error(f"{key_path} must be true or false, not {value!r}.")

    def choice(self, value: Any, choices: Sequence[str], key_path: str) -> str:
        """One of the choices."""
        if value in choices:
            return str(value)
        raise self.error(f"{key_path} must be {' or '.join(choices)}, not {value!r}.")


_ENTRY_KEYS = ("columns", "unit", "sign", "scale", "offset", "side", "optional", "file")
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


def parse_map(data: Mapping[str, Any], source: str) -> ColumnMap:
    """Parse the map in `data`, read from `source`."""
    reader = _MapReader(source)
    reader.require_known_keys(data, _MAP_KEYS, "the map")
    unknown = [key for key, value in data.items() if value == UNKNOWN]
    if unknown:
        raise reader.error(
            f"{', '.join(unknown)} is marked {UNKNOWN}: write its value there; the comment beside "
            "it says what is meant."
        )
    columns = reader.entries(data.get("columns"))
    rate = reader.positive(data.get("rate_hz"), "rate_hz")
    reader.require_quantities([entry.quantity for entry in columns], rate)
    reader.require_files(columns)
    ratio = reader.nonzero(data.get("gear_ratio"), "gear_ratio")
    if ratio is None and any(entry.side == "motor" for entry in columns):
        raise reader.error("a motion on the motor's side (`side: motor`) needs gear_ratio.")
    gains, gains_std = reader.gains(data.get("gains"))
    mounting = data.get("mounting")
    return ColumnMap(
        source=source,
        columns=columns,
        robot=reader.text(data.get("robot"), "robot"),
        mounting=None if mounting is None else str(mounting),
        joint_names=reader.names(data.get("joint_names")),
        gains=gains,
        gains_std=gains_std,
        gear_ratio=ratio,
        torque_constant=reader.array(data.get("torque_constant"), "torque_constant"),
        torque_side=reader.optional_choice(data, "torque_side", ("motor", "link")),
        signed=reader.signed(data.get("signed", True)),
        coupling=reader.coupling(data.get("coupling")),
        payload=reader.payload(data.get("known_payload")),
        header=None if data.get("header") is None else reader.flag(data["header"], "header"),
        delimiter=reader.delimiter(data.get("delimiter")),
        decimal=reader.optional_choice(data, "decimal", (".", ",")),
        skip_rows=reader.count(data.get("skip_rows", 0), "skip_rows"),
        rate_hz=rate,
        gravity_removed=reader.flag(data.get("gravity_removed", False), "gravity_removed"),
        notes=reader.text(data.get("notes"), "notes"),
    )


def column_keys(value: Any) -> tuple[Key, ...]:
    """Column keys one by one: 3, "3-8", "q{joint}", "name", or a list of them."""
    return _MapReader("map").keys(value, "columns")


class _MapReader(MapValueReader):
    """Reader of the keys of a map."""

    def require_quantities(self, quantities: Sequence[str], rate: float | None) -> None:
        """Require position, one torque channel or a position command, and time or a rate."""
        signals = [name for name in quantities if name in SIGNALS]
        if "position" not in quantities:
            raise self.error("`columns` names no position.")
        if len(signals) > 1 or not (signals or "commanded_position" in quantities):
            raise self.error(
                "`columns` must name exactly one torque channel: current, torque, or signal (raw "
                f"numbers); it names {', '.join(signals) or 'none'}. Servos without torque need "
                "commanded_position instead."
            )
        if "time" not in quantities and rate is None:
            raise self.error(
                "`columns` names no time; where a file has none, give rate_hz. `taufit convert "
                "FILE --draft MAP.yaml` finds it where position and velocity are recorded."
            )

    def positive(self, value: Any, key_path: str) -> float | None:
        """A number above zero, or None."""
        if value is None:
            return None
        number = self.number(value, key_path)
        if number <= 0:
            raise self.error(f"{key_path} must be positive, not {number:g}.")
        return number

    def nonzero(self, value: Any, key_path: str) -> Float[Array, " j"] | None:
        """Numbers that are not zero, or None."""
        numbers = self.array(value, key_path)
        if numbers is not None and (numbers == 0).any():
            raise self.error(f"{key_path} must not be zero.")
        return numbers

    def count(self, value: Any, key_path: str) -> int:
        """A whole number, zero or more."""
        number = self.number(value, key_path)
        if number < 0 or number != int(number):
            raise self.error(f"{key_path} must be a whole number, not {number:g}.")
        return int(number)

    def optional_choice(
        self, data: Mapping[str, Any], key: str, choices: Sequence[str]
    ) -> str | None:
        """One of the choices, or None where the key is not given."""
        return None if data.get(key) is None else self.choice(data[key], choices, key)

    def gains(self, value: Any) -> tuple[Any, Float[Array, " j"] | None]:
        """Gains in numbers, "auto" or "unknown", and their standard deviations."""
        std = None
        if isinstance(value, Mapping):
            self.require_known_keys(value, ("value", "std"), "gains")
            if "value" not in value:
                raise self.error("gains has no value.")
            std = self.array(value.get("std"), "gains.std")
            if std is not None and (std < 0).any():
                raise self.error("gains.std must not be negative.")
            value = value["value"]
        if isinstance(value, str):
            if value not in ("auto", "unknown"):
                raise self.error(f"gains must be numbers, auto or unknown, not {value!r}.")
            return value, std
        return self.nonzero(value, "gains"), std

    def signed(self, value: Any) -> bool | Bool[Array, " j"]:
        """Whether torque has a sign; one value or one per joint."""
        if isinstance(value, (list, tuple)):
            return np.array([self.flag(item, "signed") for item in value])
        return self.flag(value, "signed")

    def coupling(self, value: Any) -> Float[Array, "j j"] | None:
        """A matrix that can be inverted, or None."""
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise self.error("coupling must be a square matrix, one row per motor.")
        rows = [self.numbers(row, "coupling") for row in value]
        if any(len(row) != len(rows) for row in rows):
            raise self.error("coupling must be a square matrix, one row per motor.")
        matrix = np.array(rows)
        if np.linalg.cond(matrix) > 1e8:
            raise self.error("coupling cannot be inverted, so motors do not tell the joints.")
        return matrix

    def payload(self, value: Any) -> float | None:
        """A mass that is not negative, or None."""
        mass = None if value is None else self.number(value, "known_payload")
        if mass is not None and mass < 0:
            raise self.error(f"known_payload must not be negative, not {mass:g}.")
        return mass

    def delimiter(self, value: Any) -> str | None:
        """One character, also by name."""
        text = self.text(value, "delimiter")
        text = _DELIMITERS.get(text or "", text)
        if text is not None and len(text) != 1:
            raise self.error(f"delimiter must be one character or {', '.join(_DELIMITERS)}.")
        return text

    def names(self, value: Any) -> tuple[str, ...] | None:
        """A list of names, or None."""
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(n, str) for n in value):
            raise self.error("joint_names must be a list of names.")
        return tuple(value)

    def keys(self, value: Any, key_path: str) -> tuple[Key, ...]:
        """Column keys: 3, "3-8", "q{joint}", "name", or a list of them."""
        if isinstance(value, (list, tuple)):
            keys = tuple(key for item in value for key in self.keys(item, key_path))
            if not keys:
                raise self.error(f"{key_path} names no column.")
            if len(keys) > 1 and any(is_pattern(key) for key in keys):
                raise self.error(
                    f"{key_path}: a pattern with {{joint}} stands alone, not in a list."
                )
            return keys
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise self.error(f"{key_path}: columns are numbered from 1, not {value}.")
            return (value,)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{key_path} must be a column number or name, not {value!r}.")
        column_range = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", value)
        if column_range is None:
            return (value,)
        first, last = int(column_range[1]), int(column_range[2])
        if not 1 <= first <= last <= 100_000:
            raise self.error(f"{key_path}: {value!r} is not a range of columns from 1.")
        return tuple(range(first, last + 1))

    def files(self, value: Any, key_path: str) -> tuple[str, ...]:
        """File names below one folder, with at most one `*` for the run."""
        names = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        for name in names:
            parts = PurePosixPath(name).parts if isinstance(name, str) else ()
            if not parts or parts[0] == "/" or ".." in parts or name.count("*") > 1:
                raise self.error(
                    f"{key_path} must be a file name in the folder of the recording, with at most "
                    f"one * for the run, not {name!r}."
                )
        return tuple(names)

    def place(
        self, data: Mapping[str, Any], key_path: str
    ) -> tuple[tuple[str, ...], tuple[Key, ...]]:
        """Files and column keys of an entry."""
        files = self.files(data.get("file"), f"{key_path}.file")
        if "columns" not in data and not files:
            raise self.error(f"{key_path} does not say which columns.")
        keys = self.keys(data["columns"], f"{key_path}.columns") if "columns" in data else ()
        if len(files) > 1 and len(keys) not in (0, 1, len(files)):
            raise self.error(
                f"{key_path} names {len(files)} files and {len(keys)} columns; give one column, "
                "or one per file."
            )
        return files, keys

    def require_files(self, columns: Sequence[ColumnEntry]) -> None:
        """Require a position file if files are named, and `*` in all names or in none."""
        names = [name for entry in columns for name in entry.files]
        if not names:
            return
        position = next((entry for entry in columns if entry.quantity == "position"), None)
        if position is None or not position.files:
            raise self.error("`file` is given, but not for position: name its file too.")
        if len({"*" in name for name in names}) > 1:
            raise self.error("`*` stands for the run: all file names have it, or none has.")

    def entry(self, quantity: Any, value: Any) -> ColumnEntry:
        key_path = f"columns.{quantity}"
        if quantity not in QUANTITIES:
            similar = difflib.get_close_matches(str(quantity), QUANTITIES, n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            raise self.error(
                f"there is no quantity {quantity!r}; there are {', '.join(QUANTITIES)}.{hint}"
            )
        data = value if isinstance(value, Mapping) else {"columns": value}
        self.require_known_keys(data, _ENTRY_KEYS, key_path)
        files, keys = self.place(data, key_path)
        if not QUANTITIES[quantity].per_joint and (
            len(keys) not in (1, len(files)) or not keys or is_pattern(keys[0])
        ):
            raise self.error(f"{key_path} is one column, not one per joint.")
        unit = self.unit(quantity, data.get("unit"), key_path)
        sign = self.numbers(data.get("sign", 1), f"{key_path}.sign")
        if any(abs(x) != 1 for x in sign):
            raise self.error(f"{key_path}.sign must be 1 or -1; use scale for other factors.")
        scale = self.numbers(data.get("scale", 1), f"{key_path}.scale")
        if any(x == 0 for x in scale):
            raise self.error(f"{key_path}.scale must not be zero.")
        side = self.choice(data.get("side", "joint"), ("joint", "motor"), f"{key_path}.side")
        if side == "motor" and quantity not in MOTIONS:
            raise self.error(
                f"{key_path}.side is for positions, velocities and accelerations; where the torque "
                "is measured is said by torque_side."
            )
        return ColumnEntry(
            quantity=quantity,
            keys=keys,
            unit=unit,
            sign=sign,
            scale=scale,
            offset=self.numbers(data.get("offset", 0), f"{key_path}.offset"),
            side=side,
            optional=self.flag(data.get("optional", False), f"{key_path}.optional"),
            files=files,
        )

    def unit(self, quantity: str, value: Any, key_path: str) -> str:
        """A unit of the quantity; its first one by default."""
        unit = self.text(value, f"{key_path}.unit")
        if unit is None:
            unit = next(iter(QUANTITIES[quantity].units))
        try:
            unit_factor(quantity, unit)
        except RecordingError as error:
            raise self.error(f"{key_path}: {error}") from None
        return unit

    def entries(self, value: Any) -> tuple[ColumnEntry, ...]:
        if isinstance(value, Mapping) and value:
            return tuple(self.entry(quantity, spec) for quantity, spec in value.items())
        if isinstance(value, (list, tuple)) and value:
            return self.from_list(value)
        raise self.error("`columns` must say what the columns are, e.g. `position: 2-7`.")

    def from_list(self, items: Sequence[Any]) -> tuple[ColumnEntry, ...]:
        """Entries in long form: one line per column, with its joint."""
        entries: dict[str, dict[int, ColumnEntry]] = {}
        for number, item in enumerate(items, 1):
            key_path = f"columns, entry {number}"
            entry, joint = self.list_entry(item, key_path)
            if len(entry.keys) == 1 and not is_pattern(entry.keys[0]):
                joint_entries = [entry]
            else:
                joint_entries = [replace(entry, keys=(key,)) for key in entry.keys]
            for step, joint_entry in enumerate(joint_entries):
                if joint + step in entries.setdefault(entry.quantity, {}):
                    raise self.error(
                        f"{key_path}: {entry.quantity} of joint {joint + step} is twice."
                    )
                entries[entry.quantity][joint + step] = joint_entry
        return tuple(self.merge_joints(quantity, joints) for quantity, joints in entries.items())

    def list_entry(self, item: Any, key_path: str) -> tuple[ColumnEntry, int]:
        """Entry of one line of the long form, and its joint."""
        if not isinstance(item, Mapping):
            raise self.error(f"{key_path} must be {{column: ..., quantity: ...}}, not {item!r}.")
        self.require_known_keys(item, _LIST_KEYS, key_path)
        if "column" not in item or "quantity" not in item:
            raise self.error(f"{key_path} needs `column` and `quantity`.")
        settings = {key: item[key] for key in _ENTRY_KEYS[1:] if key in item}
        entry = self.entry(item["quantity"], {"columns": item["column"], **settings})
        joint = item.get("joint", 1)
        if isinstance(joint, bool) or not isinstance(joint, int) or joint < 1:
            raise self.error(f"{key_path}: joints are numbered from 1, not {joint!r}.")
        return entry, joint

    def merge_joints(self, quantity: str, joints: dict[int, ColumnEntry]) -> ColumnEntry:
        """Merge the entries of one quantity given joint by joint."""
        if sorted(joints) != list(range(1, len(joints) + 1)):
            raise self.error(
                f"{quantity} is given for joints {sorted(joints)}; joints are numbered from 1 "
                "without holes."
            )
        parts = [joints[joint] for joint in sorted(joints)]
        for name in ("unit", "side"):
            if len({getattr(part, name) for part in parts}) > 1:
                raise self.error(f"{quantity} has more than one {name}; use scale instead.")
        if len({len(part.files) for part in parts}) > 1:
            raise self.error(f"{quantity} names a file for some joints only.")
        lists: dict[str, Any] = {
            name: tuple(value for part in parts for value in getattr(part, name))
            for name in ("keys", "files", "sign", "scale", "offset")
        }
        return replace(parts[0], **lists, optional=all(part.optional for part in parts))
