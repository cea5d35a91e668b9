"""Column quantities from column names.

A name is split into words at separators, changes of case and digits: `tau_J_d[0]`, `joint1_pos` and
`/joint_states/elbow/position` become (tau, j, d, 0), (joint, 1, pos) and (joint, states, elbow,
position). One word gives the quantity, a number or the remaining words give the joint, and words
such as `target` mark commanded values. A robot's name before all columns (`ur10e/elbow/pos`) gives
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

_WORDS: dict[str, tuple[str, ...]] = {
    "position": (
        "q", "qs", "pos", "position", "positions", "angle", "angles", "theta", "ang", "jpos",
        "jntpos", "qpos", "phi", "winkel", "achswinkel", "gelenkwinkel", "lage", "posizione",
        "posicion",
    ),
    "velocity": (
        "dq", "qd", "qdot", "vel", "velocity", "velocities", "speed", "dtheta", "thetadot", "qp",
        "qvel", "jvel", "omega", "rate", "dqs", "qds", "geschwindigkeit", "drehzahl", "vitesse",
        "velocidad", "velocita",
    ),
    "acceleration": (
        "ddq", "qdd", "qddot", "acc", "acceleration", "accelerations", "accel", "ddtheta", "qpp",
        "ddqs", "qdds", "beschleunigung", "qacc", "alpha",
    ),
    "torque": (
        "tau", "torque", "torques", "effort", "efforts", "trq", "moment", "moments", "tq", "taus",
        "tauj", "jtrq", "jnttrq", "load", "qfrc", "eff", "jeff", "torq", "drehmoment",
        "drehmomente", "coppia", "m",
    ),
    "current": (
        "cur", "current", "currents", "i", "amp", "amps", "curr", "iq", "imotor", "strom",
        "motorstrom", "courant", "corriente", "corrente",
    ),
    "temperature": ("temp", "temperature", "temperatures", "temperatur"),
}  # fmt: skip
_TIME = (
    "t", "time", "timestamp", "stamp", "stamps", "seconds", "secs", "clock", "timestamps", "times",
    "datetime", "ipoc", "zeit", "zeitstempel", "uhrzeit", "temps", "tiempo", "tempo",
)  # fmt: skip
_RUN = ("run", "episode", "trial", "run_id", "episode_index", "trajectory")
# Words that change the meaning of a column, and words without meaning.
_COMMANDED = (
    "target", "cmd", "command", "commanded", "desired", "des", "d", "ref", "reference", "goal",
    "set", "setpoint", "action", "planned", "nominal", "c", "ipo",
    "soll", "sollwert", "consigne",
)  # fmt: skip
_RELATIVE = frozenset(("percent", "pct", "prozent", "permille", "promille", "permil"))
_QUALIFIERS = (
    "ext", "external", "hat", "filtered", "err", "error", "rel", "mot", "motor", "gravity", "g",
    "friction", "coriolis", "std", "max", "min", "limit", "safety", "output", "control", "tcp",
    "hat", "k", "o", "model", "residual", "predicted", "robot", "standard", "digital", "io",
    "momentum", "runtime", "scaling", "speed", "cmptd", "computed", "calc", "calculated", "est",
    "estimated", "sim", "simulated", "feedforward", "ff", "virtual", "modell", "inverse",
)  # fmt: skip
# Words that mark values of a model instead of a sensor, and words that mark a sensor.
COMPUTED = frozenset(
    ("cmptd", "computed", "calc", "calculated", "est", "estimated", "sim", "simulated", "model",
     "predicted", "feedforward", "ff", "virtual", "hat", "modell", "inverse")
)  # fmt: skip
MEASURED = frozenset(("measured", "meas", "msr", "actual", "act", "sensor", "real", "ist"))
_FILLERS = (
    "actual", "measured", "meas", "msr", "real", "state", "states", "joint", "joints", "jnt",
    "axis", "a", "j", "fb", "feedback", "field", "observation", "msg", "data", "robot", "values",
    "value", "link", "sensor", "as", "motor",
    "ist", "istwert", "achse", "gelenk", "act",
)  # fmt: skip
_UNITS = {
    "deg": "deg", "degree": "deg", "degrees": "deg", "rad": "rad", "mrad": "mrad", "turn": "turn",
    "°": "deg", "grad": "deg", "rpm": "rpm", "nm": "N m", "mnm": "mN m", "knm": "kN m",
    "ncm": "N cm", "kgcm": "kgf cm", "kgfcm": "kgf cm", "ma": "mA",
    "ampere": "A", "ms": "ms", "us": "us", "ns": "ns", "nsec": "ns", "msec": "ms", "usec": "us",
    "nanosec": "ns", "millis": "ms",
    "micros": "us", "nanos": "ns", "sec": "s", "mm": "mm", "degps": "deg", "dps": "deg", "s": "s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns of one quantity, joint by joint.

    Attributes:
        quantity: One of `QUANTITIES`.
        columns: Indices from 0.
        commanded: Whether the values are commanded rather than measured.
        qualifiers: Words that mark a special quantity (external, motor, error).
        unit: Unit given in the name, or None.
        joints: Joint names, if the columns have names instead of numbers.
        key: Pattern with {joint} or {joint0}; None if the columns are listed.
    """

    quantity: str
    columns: tuple[int, ...]
    commanded: bool = False
    qualifiers: tuple[str, ...] = ()
    unit: str | None = None
    joints: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    index: int
    quantity: str
    commanded: bool
    qualifiers: tuple[str, ...]
    unit: str | None
    number: int | None
    name: str
    pattern: str | None


_WORD = re.compile(r"(?:[mk]Nm|Ncm|[A-Z]{2,})(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+|°")


def name_words(name: str) -> list[tuple[str, int, int]]:
    """Words of a name in lower case with start and end."""
    return [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(name)]


def time_column(names: Sequence[str]) -> tuple[int, str] | None:
    """Index of the time column and its unit, or None."""
    best: tuple[int, int, str] | None = None
    for index, name in enumerate(names):
        word_list = [word for word, _, _ in name_words(name)]
        if not any(word in _TIME for word in word_list) or set(word_list) & {
            "index",
            "temp",
            "scaling",
        }:
            continue
        # `t` itself goes before `field.header.stamp`.
        rank = len(word_list)
        unit = next(
            (_UNITS[w] for w in word_list if w in _UNITS and _UNITS[w] in QUANTITIES["time"].units),
            "",
        )
        if best is None or rank < best[0]:
            best = (rank, index, unit)
    return None if best is None else (best[1], best[2])


def run_column(names: Sequence[str]) -> int | None:
    """Index of the column that numbers the runs, or None."""
    return next((i for i, name in enumerate(names) if name.lower() in _RUN), None)


def name_groups(
    names: Sequence[str],
    skip: Sequence[int] = (),
    joint_names: Sequence[str] = (),
    *,
    bare_is_position: bool = False,
) -> list[ColumnGroup]:
    """Groups of columns whose names give their quantity, in the order of the file.

    Columns that contain one of the robot's `joint_names` belong to that joint. With
    `bare_is_position`, a joint's name or number alone (J1, AXIS_ACT.A1) means its position.
    """
    prefix = _robot_prefix([name for index, name in enumerate(names) if index not in skip])
    columns = [
        column
        for index, name in enumerate(names)
        if index not in skip
        and (column := _named_column(index, name, joint_names, bare_is_position, prefix))
        is not None
    ]
    kinds: dict[tuple[object, ...], list[_Column]] = {}
    for column in columns:
        kind = (column.quantity, column.commanded, column.qualifiers, column.unit)
        kinds.setdefault(kind, []).append(column)
    by_layout: dict[tuple[object, ...], list[_Column]] = {}
    for kind_key, members in kinds.items():
        # elbow, wrist_1, wrist_2: where some joints have names, a number is part of the name.
        has_names = sum(column.number is None for column in members) > 1
        for column in members:
            shape = ("name",) if has_names or column.number is None else ("number", column.pattern)
            by_layout.setdefault((*kind_key, *shape), []).append(
                replace(column, number=None) if has_names else column
            )
    return [group for members in by_layout.values() for group in _group_members(members)]


def _robot_prefix(names: Sequence[str]) -> str:
    """Part up to a separator with which all names begin, if it has a word without a meaning."""
    prefix = common_prefix(names)
    prefix = prefix[: max(prefix.rfind(mark) for mark in "/._ ") + 1]
    words = [word for word, _, _ in name_words(prefix)]
    if any(_is_quantity(word) for word in words):
        return ""
    known = (*_FILLERS, *_COMMANDED, *_QUALIFIERS, *_UNITS, *_TIME)
    return prefix if any(not word.isdigit() and word not in known for word in words) else ""


def common_prefix(texts: Sequence[str]) -> str:
    """Longest text with which all texts begin."""
    low, high = min(texts, default=""), max(texts, default="")
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:length]


def _named_column(
    index: int, name: str, joint_names: Sequence[str], bare_is_position: bool, prefix: str
) -> _Column | None:
    """Column of a quantity, of one of the robot's joints if it has its name."""
    joint = _robot_joint(name, joint_names)
    other_name = name.removeprefix(prefix)
    if joint is not None:
        other_name = other_name.replace(joint, " ", 1)
    is_bare = bare_is_position and _is_bare_joint(other_name, joint is not None)
    column = _column(index, other_name, "position" if is_bare else None)
    if column is None:
        return None
    if joint is not None:
        return replace(column, number=None, name=joint)
    return column if column.pattern is None else replace(column, pattern=prefix + column.pattern)


def _is_bare_joint(name: str, has_joint: bool) -> bool:
    """Whether a name is a joint's number or name, besides its unit and words without a quantity."""
    words = [word for word, _, _ in name_words(name)]
    if words and words[-1] in _UNITS and _UNITS[words[-1]] in QUANTITIES["position"].units:
        words.pop()
    is_numbered = bool(words) and words[-1].isdigit() and words[0] not in _TIME
    return (has_joint or is_numbered) and all(
        word.isdigit() or word in (*_FILLERS, *_COMMANDED) for word in words
    )


def _robot_joint(name: str, joint_names: Sequence[str]) -> str | None:
    """Longest joint name of the robot in a column name, as a whole word."""
    matches = [
        joint
        for joint in joint_names
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name)
    ]
    return max(matches, key=len, default=None)


def _group_members(members: list[_Column]) -> list[ColumnGroup]:
    first, key = members[0], None
    is_numbered = first.number is not None
    if len({c.number if is_numbered else c.name for c in members}) != len(members):
        return []
    names: tuple[str, ...] = ()
    if is_numbered:
        members = sorted(members, key=lambda column: column.number or 0)
        start = members[0].number or 0
        is_consecutive = [column.number for column in members] == list(
            range(start, start + len(members))
        )
        if is_consecutive and start in (0, 1) and first.pattern is not None:
            key = first.pattern.replace("{}", "{joint}" if start == 1 else "{joint0}")
    elif len(members) > 1:
        names = _complete_names(tuple(column.name for column in members))
    return [
        ColumnGroup(
            first.quantity,
            tuple(column.index for column in members),
            first.commanded,
            first.qualifiers,
            first.unit,
            names,
            key,
        )
    ]


def _complete_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if all(names) else ()


def _quantity(word_list: list[tuple[str, int, int]]) -> tuple[str | None, int]:
    """Quantity named by the words, and the index of the deciding word."""
    quantity, word_index = None, -1
    for index, (word, _, _) in enumerate(word_list):
        for candidate, spellings in _WORDS.items():
            # The last word that names a quantity decides (current_as_torque is a torque), but a
            # single letter does not override a word.
            beats = quantity is None or len(word) > 1 or len(word_list[word_index][0]) == 1
            # `m` is a moment as in M1 or [1].M, not a unit as in [m].
            is_first = all(previous.isdigit() for previous, _, _ in word_list[:index])
            if word in spellings and beats and (word != "m" or is_first):
                quantity, word_index = candidate, index
    if quantity == "current":
        # TorqueCur is a torque computed from the current.
        torque = [k for k, (w, _, _) in enumerate(word_list) if w in _WORDS["torque"]]
        if torque:
            return "torque", torque[0]
    return quantity, word_index


def _joint_number(
    word_list: list[tuple[str, int, int]], name: str
) -> tuple[int | None, str | None]:
    """Joint number in a name, and the name with a placeholder for it."""
    digits = [(index, word) for index, (word, _, _) in enumerate(word_list) if word.isdigit()]
    if not digits:
        return None, None
    index, text = digits[-1] if len(digits) == 1 else _joint_digit(word_list, digits)
    _, start, end = word_list[index]
    is_plain = text == str(int(text))
    return int(text), name[:start] + "{}" + name[end:] if is_plain else None


def _column(index: int, name: str, bare_quantity: str | None = None) -> _Column | None:
    word_list = name_words(name)
    quantity, quantity_index = (
        _quantity(word_list) if bare_quantity is None else (bare_quantity, -1)
    )
    if quantity is None:
        return None
    number, pattern = _joint_number(word_list, name)
    other_words = [w for k, (w, _, _) in enumerate(word_list) if k != quantity_index]
    commanded = any(word in _COMMANDED for word in other_words)
    # KUKA: AIPos is the measured position of an axis, ASPos its set point, MACur a motor's current.
    if (quantity, *other_words[:1]) == ("position", "as"):
        commanded = True
    elif (quantity, *other_words[:1]) == ("current", "ma"):
        del other_words[0]
    # In current_as_torque the current is the torque's source, not another quantity.
    qualifiers = tuple(
        sorted({word for word in other_words if word in _QUALIFIERS and word != "speed"})
    )
    unit = named_unit(" ".join(other_words), quantity)
    joint_name = "_".join(filter(_is_name, other_words))
    return _Column(index, quantity, commanded, qualifiers, unit, number, joint_name, pattern)


def _is_name(word: str) -> bool:
    """Whether a word has no other meaning than as a part of a joint's name."""
    return word not in (*_COMMANDED, *_FILLERS, *_QUALIFIERS, *_UNITS) and not _is_quantity(word)


def _joint_digit(
    word_list: list[tuple[str, int, int]], digits: list[tuple[int, str]]
) -> tuple[int, str]:
    """Number after joint, axis or a quantity if there are several numbers, else the last one."""
    for index, text in digits:
        previous = word_list[index - 1][0] if index else ""
        if previous in ("joint", "axis", "jnt", "j", "a", "link") or _is_quantity(previous):
            return index, text
    return digits[-1]


def is_command_name(name: str) -> bool:
    """Whether a name contains a word for commanded values."""
    return any(word in _COMMANDED for word, _, _ in name_words(name))


def command_columns(names: Sequence[str]) -> list[int]:
    """Columns whose name is a command word and a number, in the order of the numbers."""
    numbers = {}
    for index, name in enumerate(names):
        words = [word for word, _, _ in name_words(name)]
        if len(words) == 2 and words[0] in _COMMANDED and len(words[0]) > 1 and words[1].isdigit():
            numbers[int(words[1])] = index
    return [numbers[number] for number in sorted(numbers)]


def named_unit(text: str, quantity: str) -> str | None:
    """Unit in a text such as deg/s, as maps spell it for a quantity; None if there is none."""
    unit = next((_UNITS[word] for word, _, _ in name_words(text) if word in _UNITS), None)
    return None if unit is None else _per_second(unit, quantity)


def is_relative(name: str) -> bool:
    """Whether a name is that of values in percent or per mille of a rated value."""
    words = {word for word, _, _ in name_words(name)}
    return bool(words & _RELATIVE) or "%" in name or "\u2030" in name


def is_quantity_name(name: str) -> bool:
    """Whether a name contains a word for a quantity."""
    return _quantity(name_words(name))[0] is not None


def _is_quantity(word: str) -> bool:
    return any(word in spellings for spellings in _WORDS.values())


def _per_second(unit: str, quantity: str) -> str | None:
    """Unit of a derivative: `deg` in the name of a velocity means deg/s."""
    units = QUANTITIES[quantity].units
    for candidate in (unit, f"{unit}/s", f"{unit}/s^2"):
        if candidate in units:
            return candidate
    return None


def recorded_joints(
    table: Table, joint_names: Sequence[str]
) -> tuple[dict[str, Float[Array, " n"]], set[str]]:
    """Recorded positions by joint name, and joints whose torque or current varies."""
    positions: dict[str, Float[Array, " n"]] = {}
    varying: set[str] = set()
    file_names = table.meta.get("joint_names")
    for group in name_groups(table.names, joint_names=joint_names):
        names = group.joints or (
            file_names if isinstance(file_names, list) and group.key is not None else ()
        )
        for name, index in zip(names, group.columns, strict=False):
            values = table.values[:, index]
            if group.commanded or name not in joint_names or not np.isfinite(values).any():
                continue
            values = values[np.isfinite(values)]
            if group.quantity == "position":
                positions.setdefault(name, values)
            elif group.quantity in ("torque", "current") and np.ptp(values) > 0.0:
                varying.add(name)
    return positions, varying
