"""Writing of a drafted column map: meaning of the torque channel, units, rivals, open questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.dataclasses import dataclass
from taufit.core.errors import RecordingError
from taufit.recording.draft.from_names import COMPUTED, ColumnGroup, is_relative, name_groups
from taufit.recording.draft.from_values import (
    TableLayout,
    guess_time_unit,
    layout_from_values,
    relative_noise,
)
from taufit.recording.draft.sampling_rate import InertialTorque, sampling_rate
from taufit.recording.map.parser import UNKNOWN
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

Gravity = Callable[[Float[Array, "n j"]], Float[Array, "n j"]]

# Not drafted: taufit differentiates velocity itself.
_DERIVED = ("acceleration", "commanded_acceleration")
# Range of the ratio to gravity torque of the nominal robot within which a signal is a torque.
_GRAVITY_RATIO_RANGE = (0.4, 2.5)
# Noise relative to the signal below which a torque is a model's output. Computed and measured
# torques of a Kinova Gen3: 1e-5 and 2e-2.
NOISELESS = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Column map as data, with its reasons.

    Attributes:
        page: Content of the map file, accepted by `read_map`.
        reasons: One sentence per decision.
        open_questions: Questions for the user: gains, meaning of the torque channel, zero offsets.
        rivals: Other channels that could be the torque, the likeliest first, with figures.
        unknowns: Keys of the map that only the user knows, marked ???, with an explanation.
        contradicts_gravity: Whether the torque differs from gravity of the nominal robot in sign or
            size.
    """

    page: dict[str, Any]
    reasons: tuple[str, ...]
    open_questions: tuple[str, ...]
    rivals: tuple[str, ...] = ()
    unknowns: tuple[tuple[str, str], ...] = ()
    contradicts_gravity: bool = False


@dataclass(frozen=True, slots=True)
class NominalRobot:
    """Nominal robot as far as a draft compares with it; None where unknown."""

    joint_names: tuple[str, ...]
    gravity: Gravity | None
    inertial: InertialTorque | None


def draft_text(draft: Draft, source: str) -> str:
    """The map as a YAML file, with its reasons as comments."""
    lines = [f"# Column map drafted for {source}.", "#"]
    lines += [f"# - {reason}" for reason in draft.reasons]
    if draft.open_questions:
        lines += ["#", "# Check:"]
        lines += [f"# - {text}" for text in draft.open_questions]
    if draft.rivals:
        lines += ["#", "# Other channels that could be the torque:"]
        lines += [f"# - {text}" for text in draft.rivals]
    explanations = dict(draft.unknowns)
    for key, value in draft.page.items():
        if key == "columns":
            lines.append("columns:")
            lines += [f"  {name}: {_flow(spec)}" for name, spec in value.items()]
        else:
            comment = f"  # {explanations[key]}" if key in explanations else ""
            lines.append(f"{key}: {_flow(value)}{comment}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """One YAML line; JSON is YAML, and bare words need no quotes."""
    if isinstance(value, str) and value in ("auto", "unknown", "motor", "link", UNKNOWN):
        return value
    return json.dumps(value, ensure_ascii=False)


def recognition_error(
    table: Table, has_position: bool, *, is_robot_known: bool = True
) -> RecordingError:
    """Error for a table without recognisable positions, or torque."""
    missing = "torque or current" if has_position else "positions"
    labels = ", ".join(table.labels[:30]) + (", ..." if len(table.labels) > 30 else "")
    if not is_robot_known and not any(table.names):
        return RecordingError(
            f"{table.source}: no {missing} can be recognised from the numbers of its "
            f"{len(table.labels)} columns: no or one joint moves. Say which robot it is, then "
            "gravity and the number of joints help: `--robot ROBOT` (a bundled name or a URDF)."
        )
    return RecordingError(
        f"{table.source}: no {missing} can be recognised from names or numbers of its columns "
        f"({labels}). Give all files of the run, if there are several, or write the map by hand: "
        "`columns:` with time, position and torque or current; the maps that taufit ships are "
        "patterns (docs, Recordings)."
    )


def finite_rows(values: Float[Array, "n c"]) -> Float[Array, "m c"]:
    """Rows without missing values."""
    return values[np.isfinite(values).all(axis=1)]


def plausible_rows(values: Float[Array, "n c"]) -> Float[Array, "k c"]:
    """Longest interval of rows without extreme values; columns without numbers are not judged."""
    numbers = values[:, ~np.isnan(values).all(axis=0)]
    with np.errstate(over="ignore", invalid="ignore"):
        median = np.nanmedian(numbers, axis=0)
        spread = np.nanmedian(np.abs(numbers - median), axis=0)
        limit = 1e6 * np.maximum(np.maximum(spread, 1e-3 * np.abs(median)), 1e-3)
        bad = np.flatnonzero((np.abs(numbers - median) > limit).any(axis=1))
    edges = np.concatenate([[-1], bad, [len(values)]])
    longest = int(np.argmax(np.diff(edges)))
    return values[edges[longest] + 1 : edges[longest + 1]]


class MapWriter:
    """Writes the content of a map from column groups."""

    def __init__(
        self,
        table: Table,
        column_groups: list[ColumnGroup],
        time: tuple[int, str] | None,
        run: int | None,
        rate: float | None,
        robot: NominalRobot,
        reasons: list[str],
    ) -> None:
        self.table, self.column_groups, self.time, self.run = table, column_groups, time, run
        self.values = plausible_rows(table.values)
        self.rate, self.joint_names = rate, robot.joint_names
        self.gravity, self.inertial = robot.gravity, robot.inertial
        self.reasons, self.open_questions = reasons, list[str]()
        self.page: dict[str, Any] = {}
        self.rivals: list[str] = []
        self.unknowns: list[tuple[str, str]] = []
        self.contradicts_gravity = False
        self.motion = self._motion_layout()

    def draft(self) -> Draft:
        if not any(self.table.names) and not self.table.origins:
            self.page["header"] = False
        columns: dict[str, Any] = {} if self.run is None else {"run": self._label(self.run)}
        if self.time is not None:
            columns["time"] = self._time()
        position = next(g for g in self.column_groups if g.quantity == "position")
        signals = [g for g in self.column_groups if g.quantity in ("torque", "current")]
        if all(g.commanded for g in signals):
            raise recognition_error(self.table, True)
        measured = min(signals, key=lambda g: g.commanded)
        kind = self._signal(position, measured)
        self._ask_about_computed(measured)
        other_signals = [g for g in signals if g is not measured]
        self._add_measured(columns, other_signals, measured, kind)
        others = self._targets(columns, other_signals, position, kind)
        self._add_rivals(position, measured, others)
        self.page["columns"] = columns
        self._names(position)
        self._signed(measured)
        if self.time is None:
            self._rate()
        if kind == "current":
            self._gains({"target_torque", "target_current"} <= columns.keys())
        return Draft(
            self.page,
            tuple(self.reasons),
            tuple(self.open_questions),
            tuple(self.rivals),
            tuple(self.unknowns),
            self.contradicts_gravity,
        )

    def _ask_about_computed(self, measured: ColumnGroup) -> None:
        """Ask about a torque that is computed by its name."""
        if COMPUTED & set(measured.qualifiers):
            self.open_questions.append(
                f"{self._channel(measured)} is a computed torque by its name, and no measured one "
                "was found: a model fitted to it repeats that computation"
            )

    def _compare_with_gravity(self, position: ColumnGroup, measured: ColumnGroup) -> None:
        """State the ratio of a torque to gravity of the nominal robot."""
        ratio = self._gravity_ratio(position, measured)
        if ratio is None:
            return
        self.reasons.append(f"the torque is {ratio:.2g} times gravity on the nominal arm")
        low, high = _GRAVITY_RATIO_RANGE
        self.contradicts_gravity = not low < ratio < high
        if -high < ratio < -low:
            self.open_questions.append(
                "the torque has the other sign than gravity: if the robot is mounted as described, "
                "write `sign: -1` beside it; the fit names the joints"
            )

    def _signed(self, measured: ColumnGroup) -> None:
        """Mark magnitudes: a torque that is never negative, on at least three joints."""
        part = finite_rows(self.values[:, list(measured.columns)])
        if part.shape[1] >= 3 and len(part) and part.min() >= 0.0 and part.max() > 0.0:
            self.page["signed"] = False
            self.reasons.append("no value of the torque channel is negative: magnitudes only")

    def _add_rivals(
        self, position: ColumnGroup, measured: ColumnGroup, others: list[ColumnGroup]
    ) -> None:
        """List the channels that were not chosen, with the figures that decided."""
        names = {g.columns for g in self.column_groups if g.quantity.startswith("target_")}
        others = [g for g in others if g.columns not in names]
        if not others:
            return
        self.reasons.append(
            f"{self._channel(measured)} is the torque channel: {self._figures(position, measured)}"
        )
        chosen = self.values[:, list(measured.columns)]
        for group in others:
            correlation = _correlation(self.values[:, list(group.columns)], chosen)
            self.rivals.append(
                f"{self._channel(group)}: {self._figures(position, group)}, correlation "
                f"{correlation:.2f} with the chosen one"
            )

    def _channel(self, group: ColumnGroup) -> str:
        first, last = self._label(group.columns[0]), self._label(group.columns[-1])
        texts = [
            f"{label['file']}:{label['columns']}" if isinstance(label, dict) else str(label)
            for label in (first, last)
        ]
        return f"{texts[0]} to {texts[1]}" if len(group.columns) > 1 else texts[0]

    def _figures(self, position: ColumnGroup, group: ColumnGroup) -> str:
        noise = relative_noise(finite_rows(self.values[:, list(group.columns)]))
        text = f"noise {noise:.1g} of its spread" if noise >= 1e-12 else "no noise"
        text += ", so computed" if noise < NOISELESS else ""
        ratio = self._gravity_ratio(position, group)
        return text if ratio is None else f"{text}, {ratio:.2g} times gravity"

    def _gravity_ratio(self, position: ColumnGroup, group: ColumnGroup) -> float | None:
        """Slope of a channel on gravity torque of the nominal robot; None without a robot."""
        if self.gravity is None:
            return None
        measured, expected = self._with_gravity(position, group)
        return _gravity_ratio(measured, expected)

    def _gravity_size(self, position: ColumnGroup, group: ColumnGroup) -> float | None:
        """RMS relative to gravity at the most loaded joint; None without a robot."""
        if self.gravity is None:
            return None
        measured, expected = self._with_gravity(position, group)
        loads = np.sqrt(np.mean(expected**2, axis=0))
        joint = int(np.argmax(loads))
        return float(np.sqrt(np.mean(measured[:, joint] ** 2)) / max(loads[joint], 1e-12))

    def _with_gravity(
        self, position: ColumnGroup, group: ColumnGroup
    ) -> tuple[Float[Array, "m j"], Float[Array, "m j"]]:
        assert self.gravity is not None
        unit = position.unit or self._unit(position, "position")
        factor = 1.0 if unit is None else QUANTITIES["position"].units[unit]
        values = self.values[np.isfinite(self.values).all(axis=1)]
        values = values[:: max(1, len(values) // 2000)]
        expected = self.gravity(values[:, list(position.columns)] * factor)
        units = QUANTITIES[group.quantity].units if group.quantity in QUANTITIES else {}
        return values[:, list(group.columns)] * units.get(group.unit or "", 1.0), expected

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

    def _label(self, index: int) -> Any:
        if self.table.origins:
            file, column = self.table.origins[index]
            return {"file": file, "columns": column}
        return self.table.names[index] or index + 1

    def _time(self) -> Any:
        assert self.time is not None
        index, _ = self.time
        values = self.table.values[:, index]
        unit, step = self._time_unit(values), _median_step(values)
        label = self.table.meta.get("clock") or self._label(index)
        self.reasons.append(f"time steps of {step:g} are {unit}")
        return label if unit == "s" else {**_entry(label), "unit": unit}

    def _time_unit(self, values: Float[Array, " n"]) -> str:
        """Unit of the time column: by its name, else by its steps."""
        assert self.time is not None
        unit, step = self.time[1], _median_step(values)
        likely = guess_time_unit(step) if step > 0 else "s"
        return unit if unit and unit != "s" else likely

    def _spec(self, group: ColumnGroup, quantity: str) -> Any:
        columns = group.columns
        key: Any
        if self.table.origins:
            key = file_entry([self.table.origins[i] for i in columns])
        elif group.key is not None:
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
        return {**_entry(key), "unit": unit}

    def _unit(self, group: ColumnGroup, quantity: str) -> str | None:
        """Degrees for named positions too large for radians; velocity accordingly."""
        if quantity not in ("position", "velocity", "commanded_position", "commanded_velocity"):
            return None
        if self.motion is not None:
            units = {group.quantity: group.unit for group in self.motion.groups}
            return units[quantity.removeprefix("commanded_")]
        base = next(g for g in self.column_groups if g.quantity == "position")
        largest = float(np.nanmax(np.abs(self.values[:, list(base.columns)])))
        if base.unit is None and not 4 * np.pi < largest < 1500.0:
            return None
        unit = base.unit or "deg"
        if quantity.endswith("position"):
            return unit
        return f"{unit}/s" if f"{unit}/s" in QUANTITIES["velocity"].units else None

    def _motion_layout(self) -> TableLayout | None:
        """Units and rate at which position is the integral of velocity, both without given unit."""
        groups = {g.quantity: g for g in self.column_groups if g.unit is None}
        if not {"position", "velocity"} <= groups.keys():
            return None
        position, velocity = groups["position"].columns, groups["velocity"].columns
        time = None if self.time is None else self.values[:, self.time[0]]
        if time is not None:
            unit = self._time_unit(time)
            time = time * QUANTITIES["time"].units[unit]
        values = self.values[:, [*position, *velocity]]
        layout = layout_from_values(values, time, len(position))
        count = len(position)
        expected = [("position", tuple(range(count))), ("velocity", tuple(range(count, 2 * count)))]
        is_same = (
            layout is not None and [(g.quantity, g.columns) for g in layout.groups[:2]] == expected
        )
        return layout if is_same else None

    def _quantity_from_name(self, measured: ColumnGroup) -> str | None:
        """Quantity given by the column names, or None."""
        if not self.table.names or not self.table.names[measured.columns[0]]:
            return None
        columns = set(measured.columns)
        matches = [g for g in name_groups(self.table.names) if columns <= set(g.columns)]
        matches = matches or [
            g
            for g in name_groups(self.table.names, joint_names=self.joint_names)
            if columns <= set(g.columns)
        ]
        return matches[0].quantity if matches else None

    def _is_relative_torque(self, measured: ColumnGroup) -> bool:
        """Whether the name or the unit below it says percent; asks for the rated torques."""
        first, units = measured.columns[0], self.table.meta.get("units", ())
        if not is_relative(" ".join([self.table.names[first], *units[first : first + 1]])):
            return False
        self.page["gains"] = "unknown"
        self.open_questions.append(
            "the torque is relative to a rated one by its name: write `gains: [..]` with the "
            "rated torque of each joint per unit [N m], else the fit has the nominal robot's "
            "scale"
        )
        return True

    def _named_signal(self, quantity: str, position: ColumnGroup, measured: ColumnGroup) -> str:
        """Quantity of a channel with a name, and questions about it."""
        if self._is_relative_torque(measured):
            return "signal"
        if quantity == "torque":
            self.open_questions.append(
                "the torque is taken as N m at the joint, gravity included; write `gains: "
                "unknown` under `current:` if it is a current, `gravity_removed: true` if "
                "the controller subtracts gravity"
            )
            self._compare_with_gravity(position, measured)
        return quantity

    def _signal(self, position: ColumnGroup, measured: ColumnGroup) -> str:
        """ "torque", "current" or "signal", from the name or from gravity of the nominal robot."""
        name_quantity = self._quantity_from_name(measured)
        if name_quantity is not None:
            return self._named_signal(name_quantity, position, measured)
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
        ratio = self._gravity_ratio(position, measured)
        if ratio is None or _GRAVITY_RATIO_RANGE[0] < abs(ratio) < _GRAVITY_RATIO_RANGE[1]:
            if ratio is not None:
                self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: N m")
            return "torque"
        size = self._gravity_size(position, measured)
        if size is not None and _GRAVITY_RATIO_RANGE[0] < size < _GRAVITY_RATIO_RANGE[1]:
            self.reasons.append(f"it is as large as gravity on the nominal arm ({size:.2g}): N m")
            self.open_questions.append(
                f"the torque does not follow gravity ({ratio:.2g} times): zeros or signs of the "
                "joints may differ from the robot's; the fit names them"
            )
            return "torque"
        self.reasons.append(f"it is {ratio:.2g} times gravity on the nominal arm: not N m")
        return "current"

    def _targets(
        self,
        columns: dict[str, Any],
        unused_groups: list[ColumnGroup],
        position: ColumnGroup,
        kind: str,
    ) -> list[ColumnGroup]:
        """Add target current and target torque of a file without header; returns the others.

        The target current is the smaller one: joint torque in N m is larger than current in A,
        not smaller than gravity. Named channels were assigned by name before.
        """
        if any(self.table.names) or kind != "current" or len(unused_groups) != 2:
            return unused_groups
        order = sorted(unused_groups, key=lambda g: _max_rms(self.values[:, list(g.columns)]))
        size = self._gravity_size(position, order[1])
        if size is not None and size < _GRAVITY_RATIO_RANGE[0]:
            return unused_groups
        for group, quantity in zip(order, ("target_current", "target_torque"), strict=True):
            columns[quantity] = self._spec(group, quantity)
        return []

    def _names(self, position: ColumnGroup) -> None:
        file_names = self.table.meta.get("joint_names")
        if isinstance(file_names, list) and len(file_names) == len(position.columns):
            self.page["joint_names"] = list(file_names)
        elif len(position.joints) == len(position.columns) and position.joints:
            normalised = {_normalise_name(name): name for name in self.joint_names}
            self.page["joint_names"] = [
                normalised.get(_normalise_name(n), n) for n in position.joints
            ]
        self._missing_joints(position)

    def _missing_joints(self, position: ColumnGroup) -> None:
        """Name joints of the robot that were not recorded, and recorded ones it lacks."""
        recorded = self.page.get("joint_names", ())
        if not self.joint_names:
            return
        if recorded:
            missing = [name for name in self.joint_names if name not in recorded]
            further = [name for name in recorded if name not in self.joint_names]
        else:
            missing = list(self.joint_names[len(position.columns) :])
            further = []
        used = [g for g in name_groups(self.table.names) if set(position.columns) < set(g.columns)]
        further += [
            self.table.names[i] for g in used[:1] for i in g.columns if i not in position.columns
        ]
        if missing and len(missing) < len(self.joint_names):
            self.open_questions.append(
                f"the file has no {', '.join(missing)}: give a robot whose chain ends before them "
                "(--tip), or record them"
            )
        if further:
            self.open_questions.append(
                f"{', '.join(further)} is none of the robot's joints (a gripper?): not used"
            )

    def _rate(self) -> None:
        if self.rate is not None:
            self.page["rate_hz"] = self.rate
            return
        position = next(g for g in self.column_groups if g.quantity == "position")
        velocity = next((g for g in self.column_groups if g.quantity == "velocity"), None)
        rate = None
        if velocity is not None:
            rate_layout = self.motion or layout_from_values(
                self.table.values[:, [*position.columns, *velocity.columns]],
                None,
                len(position.columns),
            )
            rate = None if rate_layout is None else rate_layout.rate_hz
        if rate is not None:
            self.page["rate_hz"] = rate
            self.reasons.append(f"velocity and position agree at {rate:g} Hz")
            return
        self.page["rate_hz"] = UNKNOWN
        self.unknowns.append(("rate_hz", self._rate_advice(position)))

    def _rate_advice(self, position: ColumnGroup) -> str:
        """Explanation of an unknown sampling rate, with an estimate if the robot allows one."""
        text = "samples per second of the logger"
        if self.inertial is None or self.gravity is None:
            return f"{text}: neither time nor velocity is recorded"
        signal = next(g for g in self.column_groups if g.quantity in ("torque", "current"))
        unit = position.unit or self._unit(position, "position")
        factor = 1.0 if unit is None else QUANTITIES["position"].units[unit]
        part = finite_rows(self.values[:, [*position.columns, *signal.columns]])
        count = len(position.columns)
        rate = sampling_rate(part[:, :count] * factor, part[:, count:], self.gravity, self.inertial)
        if rate is None:
            return f"{text}: neither time nor velocity is recorded"
        return f"{text}: about {rate:.3g} by the inertia of the nominal robot"


def _median_step(values: Float[Array, " n"]) -> float:
    steps = np.abs(np.diff(values[np.isfinite(values)]))
    return float(np.median(steps)) if len(steps) else 0.0


def _entry(key: Any) -> dict[str, Any]:
    return dict(key) if isinstance(key, dict) else {"columns": key}


def file_entry(origins: Sequence[tuple[str, int | str]]) -> dict[str, Any]:
    """Map entry of columns of other files: one file name if they are in one file."""
    files, columns = [file for file, _ in origins], [column for _, column in origins]
    if len(set(files)) > 1:
        column: Any = columns[0] if len(set(columns)) == 1 else columns
        return {"file": files, "columns": column}
    if all(isinstance(column, int) for column in columns):
        if columns == list(range(int(columns[0]), int(columns[0]) + len(columns))):
            return {"file": files[0], "columns": f"{columns[0]}-{columns[-1]}"}
        return {"file": files[0], "columns": columns}
    for first, mark in ((0, "{joint0}"), (1, "{joint}")):
        pattern = str(columns[0]).replace(str(first), mark)
        if str(columns[0]).count(str(first)) == 1 and columns == [
            pattern.replace(mark, str(first + k)) for k in range(len(columns))
        ]:
            return {"file": files[0], "columns": pattern}
    return {"file": files[0], "columns": columns}


def _correlation(a: Float[Array, "n j"], b: Float[Array, "n j"]) -> float:
    """Median correlation of two blocks over the joints that vary in both."""
    valid = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
    a, b = a[valid] - a[valid].mean(axis=0), b[valid] - b[valid].mean(axis=0)
    size = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return float(np.median(np.sum(a * b, axis=0)[size > 0] / size[size > 0])) if size.any() else 0.0


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
