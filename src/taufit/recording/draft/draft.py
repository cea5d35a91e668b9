"""A table nobody has described -> a column map to start from, with the reasons for every line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.recording.draft.from_mostly_static import resting_layout
from taufit.recording.draft.from_names import ColumnGroup, groups, run_column, time_column
from taufit.recording.draft.from_values import TableLayout, layout, time_by_numbers, unit_of_step
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

Gravity = Callable[[Float[Array, "n j"]], Float[Array, "n j"]]

# Not drafted: taufit derives accelerations itself.
_DERIVED = ("acceleration", "commanded_acceleration")
# Torque of this many times gravity at the nominal arm is torque; else it is some other unit.
_LIKE_GRAVITY = (0.4, 2.5)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A column map as data, and why it says what it says.

    Attributes:
        page: What a map file holds; `read_map` takes it as it is.
        reasons: One sentence per decision.
        open: What only the user can say: gains, the torque's meaning, zero offsets.
    """

    page: dict[str, Any]
    reasons: tuple[str, ...]
    open: tuple[str, ...]


def draft_map(
    table: Table,
    *,
    joints: int | None = None,
    joint_names: Sequence[str] = (),
    gravity: Gravity | None = None,
) -> Draft:
    """The map a table's names and numbers suggest.

    Args:
        table: As a reader gives it.
        joints: How many the robot has, where that is known.
        joint_names: Of the robot, where they are known.
        gravity: Torque of gravity on the nominal arm for positions [rad], to tell torque from
            current.

    Raises:
        RecordingError: Neither names nor numbers show positions and a torque or current.
    """
    if len(table.values) < 2:
        raise RecordingError(f"{table.source} has {len(table.values)} rows: too few for a map.")
    names = table.names if any(table.names) else ("",) * len(table.names)
    run = run_column(names)
    time = time_column(names)
    by_name = groups(names, [i for i in (run, time and time[0]) if i is not None])
    position = _pick(by_name, "position", table, joints)
    signal = _pick_signal(by_name, position, table)
    reasons: list[str] = []
    rate: float | None = None
    if position is not None and signal is not None:
        reasons.append("quantities are named in the header")
        found = _around(by_name, position, signal, table)
    elif position is not None:
        raise _nothing(table, True)
    else:
        shape = _from_numbers(table, time, run, joints, gravity)
        if shape is None:
            raise _nothing(table, False)
        time, numbers = shape
        found, rate = list(numbers.groups), numbers.rate_hz
        count = len(next(g for g in found if g.quantity == "position").columns)
        if joints is not None and count != joints:
            raise RecordingError(
                f"{table.source}: its numbers look like those of {count} joints, the robot has "
                f"{joints}. Choose the robot that was recorded, or write the map by hand."
            )
        reasons += numbers.reasons
    return _Writer(table, found, time, run, rate, tuple(joint_names), gravity, reasons).draft()


def draft_text(draft: Draft, source: str) -> str:
    """The map as a YAML file, with its reasons as comments."""
    lines = [f"# Column map drafted for {source}.", "#"]
    lines += [f"# - {reason}" for reason in draft.reasons]
    if draft.open:
        lines += ["#", "# Check:"]
        lines += [f"# - {text}" for text in draft.open]
    for key, value in draft.page.items():
        if key == "columns":
            lines.append("columns:")
            lines += [f"  {name}: {_flow(spec)}" for name, spec in value.items()]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """One YAML line; JSON is YAML, and bare words need no quotes."""
    if isinstance(value, str) and value in ("auto", "unknown", "motor", "link"):
        return value
    return json.dumps(value, ensure_ascii=False)


def _nothing(table: Table, has_position: bool) -> RecordingError:
    missing = "torque or current" if has_position else "positions"
    labels = ", ".join(table.labels[:30]) + (", ..." if len(table.labels) > 30 else "")
    return RecordingError(
        f"{table.source}: no {missing} can be recognised from names or numbers of its columns "
        f"({labels}). Write the map by hand: `columns:` with time, position and torque or "
        "current; the maps that taufit ships are patterns (docs, Recordings)."
    )


def _moving(table: Table, group: ColumnGroup) -> int:
    part = table.values[:, list(group.columns)]
    known = np.isfinite(part)
    high, low = np.where(known, part, -np.inf), np.where(known, part, np.inf)
    return int(np.count_nonzero(high.max(axis=0) > low.min(axis=0)))


def _pick(
    found: list[ColumnGroup], quantity: str, table: Table, joints: int | None
) -> ColumnGroup | None:
    """The group that is measured: of the robot's size, most of it moving, plainly named."""
    candidates = [g for g in found if g.quantity == quantity and not g.commanded]
    candidates = [g for g in candidates if not {"tcp", "digital", "io"} & set(g.aside)]
    if joints is not None:
        candidates = [g for g in candidates if len(g.columns) == joints] or candidates
    if not candidates:
        return None
    return max(candidates, key=lambda g: (_moving(table, g), len(g.columns), -len(g.aside)))


def _pick_signal(
    found: list[ColumnGroup], position: ColumnGroup | None, table: Table
) -> ColumnGroup | None:
    """Torque where it is measured as such, else current; never an external torque's estimate."""
    if position is None:
        return None
    fine = [
        g
        for g in found
        if g.quantity in ("torque", "current")
        and not g.commanded
        and len(g.columns) == len(position.columns)
        and not {"ext", "external", "hat", "err", "error", "residual", "tcp"} & set(g.aside)
    ]
    targets = {g.quantity for g in found if g.commanded}
    if {"torque", "current"} <= targets:
        # A controller that logs both targets shows its gains: the current is then worth most.
        fine = [g for g in fine if g.quantity == "current"] or fine
    order = {"torque": 0, "current": 1}
    return min(fine, key=lambda g: (order[g.quantity], len(g.aside)), default=None)


def _around(
    found: list[ColumnGroup], position: ColumnGroup, signal: ColumnGroup, table: Table
) -> list[ColumnGroup]:
    """The other groups that go with the position chosen."""
    out = [position]
    found = [g for g in found if len(g.columns) == len(position.columns)]
    aside = {"ext", "external", "err", "error", "tcp"}
    measured = [g for g in found if not g.commanded and not aside & set(g.aside)]
    # Accelerations in a log are nearly always differences: taufit derives its own.
    for quantity in ("velocity", "temperature"):
        fine = [g for g in measured if g.quantity == quantity]
        if fine:
            out.append(max(fine, key=lambda g: (g.aside == position.aside, _moving(table, g))))
    out.append(signal)
    wanted = {
        "position": "commanded_position",
        "velocity": "commanded_velocity",
        "torque": "target_torque",
        "current": "target_current",
    }
    for quantity, name in wanted.items():
        fine = [g for g in found if g.commanded and g.quantity == quantity]
        if len(fine) == 1:
            out.append(ColumnGroup(name, fine[0].columns, True, unit=fine[0].unit, key=fine[0].key))
    return out


def _from_numbers(
    table: Table,
    time: tuple[int, str] | None,
    run: int | None,
    joints: int | None,
    gravity: Gravity | None,
) -> tuple[tuple[int, str] | None, TableLayout] | None:
    values = _possible(table.values)
    if run is not None:
        values = values[values[:, run] == values[0, run]]
    if time is None:
        time = time_by_numbers(values)
    skip = [i for i in (run, time and time[0]) if i is not None]
    clock = None
    if time is not None:
        unit = time[1] or unit_of_step(float(np.nanmedian(np.diff(values[:, time[0]]))))
        clock = values[:, time[0]] * QUANTITIES["time"].units[unit]
    found = layout(values, clock, joints, skip)
    if joints is not None and not _complete(found):
        found = resting_layout(values, clock, joints, gravity, skip) or found
    if found is None and joints is not None:
        found = layout(values, clock, None, skip)
    return None if found is None else (time, found)


def _complete(found: TableLayout | None) -> bool:
    """Whether a layout has a velocity and a torque."""
    have = set() if found is None else {group.quantity for group in found.groups}
    return {"velocity", "torque"} <= have


def _possible(values: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """The longest part without numbers that nothing else of their column comes near."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = np.nanmedian(values, axis=0)
        usual = np.nanmedian(np.abs(values - middle), axis=0)
        limit = 1e6 * np.maximum(np.maximum(usual, 1e-3 * np.abs(middle)), 1e-3)
        bad = np.flatnonzero((np.abs(values - middle) > limit).any(axis=1))
    edges = np.concatenate([[-1], bad, [len(values)]])
    longest = int(np.argmax(np.diff(edges)))
    return values[edges[longest] + 1 : edges[longest + 1]]


class _Writer:
    """Groups -> the page of a map."""

    def __init__(
        self,
        table: Table,
        found: list[ColumnGroup],
        time: tuple[int, str] | None,
        run: int | None,
        rate: float | None,
        joint_names: tuple[str, ...],
        gravity: Gravity | None,
        reasons: list[str],
    ) -> None:
        self.table, self.found, self.time, self.run = table, found, time, run
        self.values = _possible(table.values)
        self.rate, self.gravity = rate, gravity
        self.joint_names = joint_names
        self.reasons, self.open = reasons, list[str]()
        self.page: dict[str, Any] = {}

    def draft(self) -> Draft:
        if not any(self.table.names):
            self.page["header"] = False
        columns: dict[str, Any] = {} if self.run is None else {"run": self._label(self.run)}
        if self.time is not None:
            columns["time"] = self._time()
        position = next(g for g in self.found if g.quantity == "position")
        signals = [g for g in self.found if g.quantity in ("torque", "current")]
        if all(g.commanded for g in signals):
            raise _nothing(self.table, True)
        measured = min(signals, key=lambda g: g.commanded)
        kind = self._signal(position, measured)
        others = [g for g in signals if g is not measured]
        self._measured(columns, others, measured, kind)
        self._targets(columns, others, kind)
        self.page["columns"] = columns
        self._names(position)
        if self.time is None:
            self._rate()
        if kind == "current":
            self._gains({"target_torque", "target_current"} <= columns.keys())
        return Draft(self.page, tuple(self.reasons), tuple(self.open))

    def _measured(
        self, columns: dict[str, Any], others: list[ColumnGroup], measured: ColumnGroup, kind: str
    ) -> None:
        """The first group of each quantity, the torque channel under its kind."""
        for group in self.found:
            quantity = kind if group is measured else group.quantity
            if group not in others and quantity not in (*columns, *_DERIVED):
                columns[quantity] = self._spec(group, quantity)

    def _gains(self, shown: bool) -> None:
        """Gains of a current: shown by the controller's targets, or unknown."""
        self.page["gains"] = "auto" if shown else "unknown"
        if not shown:
            self.open.append(
                "gains are unknown: the fit is in ampere. `taufit gains` finds them from a "
                "known mass, then write `gains: [..]` [N m/A]"
            )

    def _label(self, index: int) -> int | str:
        return self.table.names[index] or index + 1

    def _time(self) -> Any:
        assert self.time is not None
        index, unit = self.time
        values = self.table.values[:, index]
        steps = np.abs(np.diff(values[np.isfinite(values)]))
        step = float(np.median(steps)) if len(steps) else 0.0
        likely = unit_of_step(step) if step > 0 else "s"
        unit = unit if unit and unit != "s" else likely
        label = self._label(index)
        self.reasons.append(f"time steps of {step:g} are {unit}")
        return label if unit == "s" else {"columns": label, "unit": unit}

    def _spec(self, group: ColumnGroup, quantity: str) -> Any:
        columns = group.columns
        key: Any
        if group.key is not None:
            key = group.key
        elif any(self.table.names):
            key = [self._label(i) for i in columns]
        elif list(columns) == list(range(columns[0], columns[0] + len(columns))):
            key = f"{columns[0] + 1}-{columns[-1] + 1}"
        else:
            key = [i + 1 for i in columns]
        unit = group.unit or self._unit(group, quantity)
        if unit is None or unit == next(iter(QUANTITIES[quantity].units)):
            return key
        return {"columns": key, "unit": unit}

    def _unit(self, group: ColumnGroup, quantity: str) -> str | None:
        """Degrees where a named position is too large for radians; velocity goes with it."""
        if quantity not in ("position", "velocity", "commanded_position", "commanded_velocity"):
            return None
        base = next(g for g in self.found if g.quantity == "position")
        largest = float(np.nanmax(np.abs(self.values[:, list(base.columns)])))
        if base.unit is None and not 4 * np.pi < largest < 1500.0:
            return None
        unit = base.unit or "deg"
        if quantity.endswith("position"):
            return unit
        return f"{unit}/s" if f"{unit}/s" in QUANTITIES["velocity"].units else None

    def _named(self, measured: ColumnGroup) -> str | None:
        """The quantity that the columns' own names say, if they do."""
        if not self.table.names or not self.table.names[measured.columns[0]]:
            return None
        named = [g for g in groups(self.table.names) if g.columns == measured.columns]
        return named[0].quantity if named else None

    def _signal(self, position: ColumnGroup, measured: ColumnGroup) -> str:
        """torque or current, from the name or from gravity on the nominal arm."""
        named = self._named(measured)
        if named == "torque":
            self.open.append(
                "the torque is taken as N m at the joint, gravity included; write `gains: "
                "unknown` under `current:` if it is a current, `gravity_removed: true` if "
                "the controller subtracts gravity"
            )
        if named is not None:
            return named
        if self.gravity is None:
            extra = [g for g in self.found if g.quantity == "torque" and g.commanded]
            if len(extra) == 2:
                self.reasons.append("two smoother channels go with it: target current and torque")
                return "current"
            self.open.append(
                "whether the torque channel is N m or A cannot be decided without the robot: "
                "`--robot ROBOT` compares it with gravity"
            )
            return "torque"
        unit = position.unit or self._unit(position, "position")
        factor = 1.0 if unit is None else QUANTITIES["position"].units[unit]
        values = self.values[np.isfinite(self.values).all(axis=1)]
        values = values[:: max(1, len(values) // 2000)]
        expected = self.gravity(values[:, list(position.columns)] * factor)
        ratio = _scale(values[:, list(measured.columns)], expected)
        if ratio is None or _LIKE_GRAVITY[0] < abs(ratio) < _LIKE_GRAVITY[1]:
            if ratio is not None:
                self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: N m")
            return "torque"
        self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: not N m")
        return "current"

    def _targets(self, columns: dict[str, Any], rest: list[ColumnGroup], kind: str) -> None:
        """Two further torque-like channels of a nameless file: current is the smaller of them.

        A drive makes more newton metres at its joint than it takes amperes. A channel that is named
        was sorted by its name already.
        """
        if any(self.table.names) or kind != "current" or len(rest) != 2:
            return
        order = sorted(rest, key=lambda g: _size(self.values[:, list(g.columns)]))
        for group, quantity in zip(order, ("target_current", "target_torque"), strict=True):
            columns[quantity] = self._spec(group, quantity)

    def _names(self, position: ColumnGroup) -> None:
        known = self.table.meta.get("joint_names")
        if isinstance(known, list) and len(known) == len(position.columns):
            self.page["joint_names"] = list(known)
        elif len(position.joints) == len(position.columns) and position.joints:
            plain = {_bare(name): name for name in self.joint_names}
            self.page["joint_names"] = [plain.get(_bare(n), n) for n in position.joints]

    def _rate(self) -> None:
        if self.rate is not None:
            self.page["rate_hz"] = self.rate
            return
        position = next(g for g in self.found if g.quantity == "position")
        velocity = next((g for g in self.found if g.quantity == "velocity"), None)
        if velocity is None:
            raise RecordingError(
                f"{self.table.source} has no time column and no velocity, so its sampling rate "
                "cannot be decided. Add `rate_hz:` to a map you write by hand, or a time column."
            )
        shape = layout(
            self.table.values[:, [*position.columns, *velocity.columns]],
            None,
            len(position.columns),
        )
        if shape is None or shape.rate_hz is None:
            raise RecordingError(
                f"{self.table.source} has no time column, and its velocity is not the derivative "
                "of its position at any rate. Give rate_hz in a column map."
            )
        self.page["rate_hz"] = shape.rate_hz
        self.reasons.append(f"velocity and position agree at {shape.rate_hz:g} Hz")


def _bare(name: str) -> str:
    """A joint's name without separators and the word joint."""
    return "".join(c for c in name.lower().replace("joint", "") if c.isalnum())


def _size(block: Float[Array, "n j"]) -> float:
    """Of a channel of several joints: of the joint that has most of it, at rest or moving."""
    return float(np.sqrt(np.nanmean(block**2, axis=0)).max())


def _scale(signal: Float[Array, "n j"], gravity: Float[Array, "n j"]) -> float | None:
    """Median over loaded joints of the slope of the signal on gravity; None without gravity.

    Where the arm stands still, the ratio of the two levels.
    """
    slopes = []
    level = gravity.mean(axis=0)
    if gravity.std(axis=0).max() < 0.05 * np.abs(level).max():
        return float(signal.mean(axis=0) @ level / (level @ level))
    for j in range(signal.shape[1]):
        g = gravity[:, j] - gravity[:, j].mean()
        if g.std() > 0.3 * gravity.std(axis=0).max() and g.std() > 1e-6:
            slopes.append(float((signal[:, j] - signal[:, j].mean()) @ g / (g @ g)))
    return float(np.median(slopes)) if slopes else None


__all__ = ["Draft", "Gravity", "draft_map", "draft_text"]
