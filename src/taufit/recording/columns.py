"""Column map: locations, units and signs of the quantities in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from taufit.core.arrays import Array, Bool, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording.quantity import SIGNALS

Key = int | str


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """Location of one quantity and its conversion: value = sign * scale * unit * cell + offset.

    Attributes:
        quantity: One of `QUANTITIES`.
        keys: Column numbers from 1 or names, joint after joint; or one pattern with {joint}
            (counts from 1) or {joint0} (counts from 0).
        unit: Unit in the file.
        sign, scale, offset: One number, or one per joint; the offset is in SI.
        side: "motor" for motor motion, before gear and coupling; else "joint".
        optional: Whether a file may lack these columns.
        files: File names of a run in several files: one, or one per key. Empty for a run in one
            file. Without keys all columns of the files that no other entry names.
    """

    quantity: str
    keys: tuple[Key, ...]
    unit: str
    sign: tuple[float, ...] = (1.0,)
    scale: tuple[float, ...] = (1.0,)
    offset: tuple[float, ...] = (0.0,)
    side: str = "joint"
    optional: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMap:
    """Description of the columns of a file and of the robot that was recorded.

    Attributes:
        source: Origin of the map, used in messages.
        columns: One entry per quantity.
        robot, mounting, joint_names: Properties of the robot, or None.
        gains: Joint torque per unit of signal; "auto" (estimated from the controller's target
            torque and current), "unknown" (fit in the signal's unit), or None if not needed.
        gains_std: Standard deviation of the gains, or None.
        gear_ratio: Motor turns per joint turn, sign included, or None.
        torque_constant: Motor torque per ampere [N m/A], or None.
        torque_side: "motor" if the signal is taken before the gear and contains the drive's
            friction, "link" after it, None for the default of the quantity.
        signed: Whether the signal has a sign; one value or one per joint.
        coupling: C with q_m = C q, motors referred to their joints, or None.
        payload: Payload mass [kg], or None.
        header, delimiter, decimal, skip_rows: Layout of text files; None is detected.
        rate_hz: Sampling rate of files without a time column [Hz].
        gravity_removed: Whether the controller subtracted gravity from the torque it logs.
        notes: Free text that goes into the recording's provenance.
    """

    source: str
    columns: tuple[ColumnEntry, ...]
    robot: str | None = None
    mounting: str | None = None
    joint_names: tuple[str, ...] | None = None
    gains: Float[Array, " _"] | str | None = None
    gains_std: Float[Array, " _"] | None = None
    gear_ratio: Float[Array, " _"] | None = None
    torque_constant: Float[Array, " _"] | None = None
    torque_side: str | None = None
    signed: Bool[Array, " _"] | bool = True
    coupling: Float[Array, "j j"] | None = None
    payload: float | None = None
    header: bool | None = None
    delimiter: str | None = None
    decimal: str | None = None
    skip_rows: int = 0
    rate_hz: float | None = None
    gravity_removed: bool = False
    notes: str | None = None

    def entry(self, quantity: str) -> ColumnEntry | None:
        """Entry of a quantity, or None."""
        return next((entry for entry in self.columns if entry.quantity == quantity), None)

    @property
    def signal(self) -> ColumnEntry:
        """The torque channel."""
        return next(entry for entry in self.columns if entry.quantity in SIGNALS)

    @property
    def file_names(self) -> tuple[str, ...]:
        """Files that the map names, those of the positions first; empty for runs in one file."""
        position = self.entry("position")
        first = () if position is None else position.files
        further = (name for entry in self.columns for name in entry.files)
        return tuple(dict.fromkeys((*first, *further)))


def is_pattern(key: Key) -> bool:
    """Whether a key is a pattern for one column per joint."""
    return isinstance(key, str) and ("{joint}" in key or "{joint0}" in key)


def locate_columns(entry: ColumnEntry, names: Sequence[str], source: str) -> tuple[int, ...] | None:
    """Indices (from 0) of an entry's columns in a file; None if an optional entry is absent."""
    if len(entry.keys) == 1 and is_pattern(entry.keys[0]):
        matches = _match_pattern(entry, names, source)
        if matches or entry.optional:
            return matches or None
        raise _missing_column_error(entry, str(entry.keys[0]), names, source)
    indices: list[int] = []
    for key in entry.keys:
        if isinstance(key, int):
            index = key - 1 if key <= len(names) else None
        else:
            index = names.index(key) if key in names else None
        if index is None:
            if entry.optional:
                return None
            raise _missing_column_error(entry, key, names, source)
        indices.append(index)
    return tuple(indices)


def _match_pattern(entry: ColumnEntry, names: Sequence[str], source: str) -> tuple[int, ...]:
    """Column indices of a pattern, joint by joint; raises if joint numbers have gaps."""
    pattern = str(entry.keys[0])
    parts = re.split(r"(\{joint0?\})", pattern)
    first_number = 0 if "{joint0}" in parts else 1
    regex = "".join(
        "(\\d+)" if part in ("{joint}", "{joint0}") else re.escape(part) for part in parts
    )
    index_by_joint = {}
    for index, name in enumerate(names):
        match = re.fullmatch(regex, name)
        if match and match[1] == str(int(match[1])) and len(set(match.groups())) == 1:
            index_by_joint[int(match[1]) - first_number] = index
    joints = sorted(index_by_joint)
    if joints != list(range(len(joints))):
        existing = ", ".join(names[index_by_joint[joint]] for joint in joints)
        raise RecordingError(
            f"{source} has {existing} for {entry.quantity} ({pattern}): joints are numbered from "
            f"{first_number} without holes. Give the columns one by one in the column map."
        )
    return tuple(index_by_joint[joint] for joint in joints)


def _missing_column_error(
    entry: ColumnEntry, key: Key, names: Sequence[str], source: str
) -> RecordingError:
    nonempty = [name for name in names if name]
    if isinstance(key, int):
        available = f"the file has {len(names)} columns"
    elif nonempty:
        name_text = ", ".join(nonempty[:40]) + (", ..." if len(nonempty) > 40 else "")
        available = f"the file has {name_text}"
    else:
        available = "the file has no header; give columns by number"
    return RecordingError(
        f"{source} has no column {key!r} for {entry.quantity}; {available}. Correct the column "
        "map, "
        "or mark the entry `optional: true`."
    )
