"""Draft of a column map from a table without description, with reasons for every line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import RecordingError
from taufit.recording.draft.from_names import ColumnGroup, name_groups, run_column, time_column
from taufit.recording.draft.from_standing_joints import static_layout
from taufit.recording.draft.from_values import (
    TableLayout,
    guess_time_unit,
    layout_from_values,
    time_column_from_values,
)
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

Gravity = Callable[[Float[Array, "n j"]], Float[Array, "n j"]]

# Not drafted: taufit differentiates velocity itself.
_DERIVED = ("acceleration", "commanded_acceleration")
# Range of the ratio to gravity torque of the nominal robot within which a signal is a torque.
_GRAVITY_RATIO_RANGE = (0.4, 2.5)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Column map as data, with its reasons.

    Attributes:
        page: Content of the map file, accepted by `read_map`.
        reasons: One sentence per decision.
        open_questions: Questions for the user: gains, meaning of the torque channel, zero offsets.
    """

    page: dict[str, Any]
    reasons: tuple[str, ...]
    open_questions: tuple[str, ...]


def draft_map(
    table: Table,
    *,
    joints: int | None = None,
    joint_names: Sequence[str] = (),
    gravity: Gravity | None = None,
) -> Draft:
    """Draft a column map from column names and values.

    Args:
        table: Table from a reader.
        joints: Number of joints of the robot, if known.
        joint_names: Joint names of the robot, if known.
        gravity: Gravity torque of the nominal robot for positions [rad], used to distinguish
            torque from current.

    Raises:
        RecordingError: Positions and a torque or current were not recognised.
    """
    if len(table.values) < 2:
        raise RecordingError(f"{table.source} has {len(table.values)} rows: too few for a map.")
    names = table.names if any(table.names) else ("",) * len(table.names)
    run = run_column(names)
    time = time_column(names)
    by_name = name_groups(names, [i for i in (run, time and time[0]) if i is not None])
    position = _pick_group(by_name, "position", table, joints)
    signal = _pick_signal(by_name, position, table)
    reasons: list[str] = []
    rate: float | None = None
    if position is not None and signal is not None:
        reasons.append("quantities are named in the header")
        column_groups = _matching_groups(by_name, position, signal, table)
    elif position is not None:
        raise _recognition_error(table, True)
    else:
        time_and_layout = _layout_from_values(table, time, run, joints, gravity)
        if time_and_layout is None:
            raise _recognition_error(table, False)
        time, value_layout = time_and_layout
        column_groups, rate = list(value_layout.groups), value_layout.rate_hz
        count = len(next(g for g in column_groups if g.quantity == "position").columns)
        if joints is not None and count != joints:
            raise RecordingError(
                f"{table.source}: its numbers look like those of {count} joints, the robot has "
                f"{joints}. Choose the robot that was recorded, or write the map by hand."
            )
        reasons += value_layout.reasons
    return _DraftWriter(
        table, column_groups, time, run, rate, tuple(joint_names), gravity, reasons
    ).draft()


def draft_text(draft: Draft, source: str) -> str:
    """The map as a YAML file, with its reasons as comments."""
    lines = [f"# Column map drafted for {source}.", "#"]
    lines += [f"# - {reason}" for reason in draft.reasons]
    if draft.open_questions:
        lines += ["#", "# Check:"]
        lines += [f"# - {text}" for text in draft.open_questions]
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


def _recognition_error(table: Table, has_position: bool) -> RecordingError:
    missing = "torque or current" if has_position else "positions"
    labels = ", ".join(table.labels[:30]) + (", ..." if len(table.labels) > 30 else "")
    return RecordingError(
        f"{table.source}: no {missing} can be recognised from names or numbers of its columns "
        f"({labels}). Write the map by hand: `columns:` with time, position and torque or "
        "current; the maps that taufit ships are patterns (docs, Recordings)."
    )


def _moving_columns(table: Table, group: ColumnGroup) -> int:
    part = table.values[:, list(group.columns)]
    is_finite = np.isfinite(part)
    high, low = np.where(is_finite, part, -np.inf), np.where(is_finite, part, np.inf)
    return int(np.count_nonzero(high.max(axis=0) > low.min(axis=0)))


def _pick_group(
    candidate_groups: list[ColumnGroup], quantity: str, table: Table, joints: int | None
) -> ColumnGroup | None:
    """Measured group of a quantity: of the robot's size, most columns moving, fewest qualifiers."""
    candidates = [g for g in candidate_groups if g.quantity == quantity and not g.commanded]
    candidates = [g for g in candidates if not {"tcp", "digital", "io"} & set(g.qualifiers)]
    if joints is not None:
        candidates = [g for g in candidates if len(g.columns) == joints] or candidates
    if not candidates:
        return None
    return max(
        candidates, key=lambda g: (_moving_columns(table, g), len(g.columns), -len(g.qualifiers))
    )


def _pick_signal(
    candidate_groups: list[ColumnGroup], position: ColumnGroup | None, table: Table
) -> ColumnGroup | None:
    """Measured torque, else current; never an estimate of external torque."""
    if position is None:
        return None
    candidates = [
        g
        for g in candidate_groups
        if g.quantity in ("torque", "current")
        and not g.commanded
        and len(g.columns) == len(position.columns)
        and not {"ext", "external", "hat", "err", "error", "residual", "tcp"} & set(g.qualifiers)
    ]
    targets = {g.quantity for g in candidate_groups if g.commanded}
    if {"torque", "current"} <= targets:
        # With both targets logged the drive gains can be estimated, so current is preferred.
        candidates = [g for g in candidates if g.quantity == "current"] or candidates
    order = {"torque": 0, "current": 1}
    return min(candidates, key=lambda g: (order[g.quantity], len(g.qualifiers)), default=None)


def _matching_groups(
    candidate_groups: list[ColumnGroup], position: ColumnGroup, signal: ColumnGroup, table: Table
) -> list[ColumnGroup]:
    """Further groups that belong to the chosen position."""
    out = [position]
    candidate_groups = [g for g in candidate_groups if len(g.columns) == len(position.columns)]
    excluded_words = {"ext", "external", "err", "error", "tcp"}
    measured = [
        g for g in candidate_groups if not g.commanded and not excluded_words & set(g.qualifiers)
    ]
    # Logged accelerations are usually differences: taufit differentiates itself.
    for quantity in ("velocity", "temperature"):
        candidates = [g for g in measured if g.quantity == quantity]
        if candidates:
            out.append(
                max(
                    candidates,
                    key=lambda g: (g.qualifiers == position.qualifiers, _moving_columns(table, g)),
                )
            )
    out.append(signal)
    target_names = {
        "position": "commanded_position",
        "velocity": "commanded_velocity",
        "torque": "target_torque",
        "current": "target_current",
    }
    for quantity, name in target_names.items():
        candidates = [g for g in candidate_groups if g.commanded and g.quantity == quantity]
        if len(candidates) == 1:
            out.append(
                ColumnGroup(
                    name,
                    candidates[0].columns,
                    True,
                    unit=candidates[0].unit,
                    key=candidates[0].key,
                )
            )
    return out


def _layout_from_values(
    table: Table,
    time: tuple[int, str] | None,
    run: int | None,
    joints: int | None,
    gravity: Gravity | None,
) -> tuple[tuple[int, str] | None, TableLayout] | None:
    values = _plausible_rows(table.values)
    if run is not None:
        values = values[values[:, run] == values[0, run]]
    if time is None:
        time = time_column_from_values(values)
    skip = [i for i in (run, time and time[0]) if i is not None]
    seconds = None
    if time is not None:
        unit = time[1] or guess_time_unit(float(np.nanmedian(np.diff(values[:, time[0]]))))
        seconds = values[:, time[0]] * QUANTITIES["time"].units[unit]
    table_layout = layout_from_values(values, seconds, joints, skip)
    if joints is not None and not _has_velocity_and_torque(table_layout):
        table_layout = static_layout(values, seconds, joints, gravity, skip) or table_layout
    if table_layout is None and joints is not None:
        table_layout = layout_from_values(values, seconds, None, skip)
    return None if table_layout is None else (time, table_layout)


def _has_velocity_and_torque(table_layout: TableLayout | None) -> bool:
    """Whether a layout has velocity and torque."""
    quantities = (
        set() if table_layout is None else {group.quantity for group in table_layout.groups}
    )
    return {"velocity", "torque"} <= quantities


def _plausible_rows(values: Float[Array, "n c"]) -> Float[Array, "n c"]:
    """Longest interval of rows without extreme values."""
    with np.errstate(over="ignore", invalid="ignore"):
        median = np.nanmedian(values, axis=0)
        spread = np.nanmedian(np.abs(values - median), axis=0)
        limit = 1e6 * np.maximum(np.maximum(spread, 1e-3 * np.abs(median)), 1e-3)
        bad = np.flatnonzero((np.abs(values - median) > limit).any(axis=1))
    edges = np.concatenate([[-1], bad, [len(values)]])
    longest = int(np.argmax(np.diff(edges)))
    return values[edges[longest] + 1 : edges[longest + 1]]


class _DraftWriter:
    """Writes the content of a map from column groups."""

    def __init__(
        self,
        table: Table,
        column_groups: list[ColumnGroup],
        time: tuple[int, str] | None,
        run: int | None,
        rate: float | None,
        joint_names: tuple[str, ...],
        gravity: Gravity | None,
        reasons: list[str],
    ) -> None:
        self.table, self.column_groups, self.time, self.run = table, column_groups, time, run
        self.values = _plausible_rows(table.values)
        self.rate, self.gravity = rate, gravity
        self.joint_names = joint_names
        self.reasons, self.open_questions = reasons, list[str]()
        self.page: dict[str, Any] = {}

    def draft(self) -> Draft:
        if not any(self.table.names):
            self.page["header"] = False
        columns: dict[str, Any] = {} if self.run is None else {"run": self._label(self.run)}
        if self.time is not None:
            columns["time"] = self._time()
        position = next(g for g in self.column_groups if g.quantity == "position")
        signals = [g for g in self.column_groups if g.quantity in ("torque", "current")]
        if all(g.commanded for g in signals):
            raise _recognition_error(self.table, True)
        measured = min(signals, key=lambda g: g.commanded)
        kind = self._signal(position, measured)
        other_signals = [g for g in signals if g is not measured]
        self._add_measured(columns, other_signals, measured, kind)
        self._targets(columns, other_signals, kind)
        self.page["columns"] = columns
        self._names(position)
        if self.time is None:
            self._rate()
        if kind == "current":
            self._gains({"target_torque", "target_current"} <= columns.keys())
        return Draft(self.page, tuple(self.reasons), tuple(self.open_questions))

    def _add_measured(
        self,
        columns: dict[str, Any],
        other_signals: list[ColumnGroup],
        measured: ColumnGroup,
        kind: str,
    ) -> None:
        """Add the first group of each quantity, the torque channel under its kind."""
        for group in self.column_groups:
            quantity = kind if group is measured else group.quantity
            if group not in other_signals and quantity not in (*columns, *_DERIVED):
                columns[quantity] = self._spec(group, quantity)

    def _gains(self, has_targets: bool) -> None:
        """Add gains of a current: auto if the controller's targets are logged, else unknown."""
        self.page["gains"] = "auto" if has_targets else "unknown"
        if not has_targets:
            self.open_questions.append(
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
        likely = guess_time_unit(step) if step > 0 else "s"
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
        """Degrees for named positions too large for radians; velocity accordingly."""
        if quantity not in ("position", "velocity", "commanded_position", "commanded_velocity"):
            return None
        base = next(g for g in self.column_groups if g.quantity == "position")
        largest = float(np.nanmax(np.abs(self.values[:, list(base.columns)])))
        if base.unit is None and not 4 * np.pi < largest < 1500.0:
            return None
        unit = base.unit or "deg"
        if quantity.endswith("position"):
            return unit
        return f"{unit}/s" if f"{unit}/s" in QUANTITIES["velocity"].units else None

    def _quantity_from_name(self, measured: ColumnGroup) -> str | None:
        """Quantity given by the column names, or None."""
        if not self.table.names or not self.table.names[measured.columns[0]]:
            return None
        matches = [g for g in name_groups(self.table.names) if g.columns == measured.columns]
        return matches[0].quantity if matches else None

    def _signal(self, position: ColumnGroup, measured: ColumnGroup) -> str:
        """ "torque" or "current", from the name or from gravity of the nominal robot."""
        name_quantity = self._quantity_from_name(measured)
        if name_quantity == "torque":
            self.open_questions.append(
                "the torque is taken as N m at the joint, gravity included; write `gains: "
                "unknown` under `current:` if it is a current, `gravity_removed: true` if "
                "the controller subtracts gravity"
            )
        if name_quantity is not None:
            return name_quantity
        if self.gravity is None:
            target_groups = [
                g for g in self.column_groups if g.quantity == "torque" and g.commanded
            ]
            if len(target_groups) == 2:
                self.reasons.append("two smoother channels go with it: target current and torque")
                return "current"
            self.open_questions.append(
                "whether the torque channel is N m or A cannot be decided without the robot: "
                "`--robot ROBOT` compares it with gravity"
            )
            return "torque"
        unit = position.unit or self._unit(position, "position")
        factor = 1.0 if unit is None else QUANTITIES["position"].units[unit]
        values = self.values[np.isfinite(self.values).all(axis=1)]
        values = values[:: max(1, len(values) // 2000)]
        expected = self.gravity(values[:, list(position.columns)] * factor)
        ratio = _gravity_ratio(values[:, list(measured.columns)], expected)
        if ratio is None or _GRAVITY_RATIO_RANGE[0] < abs(ratio) < _GRAVITY_RATIO_RANGE[1]:
            if ratio is not None:
                self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: N m")
            return "torque"
        self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: not N m")
        return "current"

    def _targets(
        self, columns: dict[str, Any], unused_groups: list[ColumnGroup], kind: str
    ) -> None:
        """Add target current and target torque of a file without header; the current is smaller.

        Joint torque in N m is larger than current in A. Named channels were assigned by name
        before.
        """
        if any(self.table.names) or kind != "current" or len(unused_groups) != 2:
            return
        order = sorted(unused_groups, key=lambda g: _max_rms(self.values[:, list(g.columns)]))
        for group, quantity in zip(order, ("target_current", "target_torque"), strict=True):
            columns[quantity] = self._spec(group, quantity)

    def _names(self, position: ColumnGroup) -> None:
        file_names = self.table.meta.get("joint_names")
        if isinstance(file_names, list) and len(file_names) == len(position.columns):
            self.page["joint_names"] = list(file_names)
        elif len(position.joints) == len(position.columns) and position.joints:
            normalised = {_normalise_name(name): name for name in self.joint_names}
            self.page["joint_names"] = [
                normalised.get(_normalise_name(n), n) for n in position.joints
            ]

    def _rate(self) -> None:
        if self.rate is not None:
            self.page["rate_hz"] = self.rate
            return
        position = next(g for g in self.column_groups if g.quantity == "position")
        velocity = next((g for g in self.column_groups if g.quantity == "velocity"), None)
        if velocity is None:
            raise RecordingError(
                f"{self.table.source} has no time column and no velocity, so its sampling rate "
                "cannot be decided. Add `rate_hz:` to a map you write by hand, or a time column."
            )
        rate_layout = layout_from_values(
            self.table.values[:, [*position.columns, *velocity.columns]],
            None,
            len(position.columns),
        )
        if rate_layout is None or rate_layout.rate_hz is None:
            raise RecordingError(
                f"{self.table.source} has no time column, and its velocity is not the derivative "
                "of its position at any rate. Give rate_hz in a column map."
            )
        self.page["rate_hz"] = rate_layout.rate_hz
        self.reasons.append(f"velocity and position agree at {rate_layout.rate_hz:g} Hz")


def _normalise_name(name: str) -> str:
    """Joint name without separators and the word joint."""
    return "".join(c for c in name.lower().replace("joint", "") if c.isalnum())


def _max_rms(block: Float[Array, "n j"]) -> float:
    """Largest RMS of a channel over the joints."""
    return float(np.sqrt(np.nanmean(block**2, axis=0)).max())


def _gravity_ratio(signal: Float[Array, "n j"], gravity: Float[Array, "n j"]) -> float | None:
    """Median slope of the signal on gravity torque over loaded joints; None without gravity.

    At standstill the ratio of the two mean values.
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
