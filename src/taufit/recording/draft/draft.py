"""Draft of a column map from a table without description: choice of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taufit.core.errors import RecordingError
from taufit.recording.draft.from_names import (
    COMPUTED,
    MEASURED,
    ColumnGroup,
    command_columns,
    is_command_name,
    name_groups,
    name_words,
    named_unit,
    run_column,
    time_column,
)
from taufit.recording.draft.from_standing_joints import standing_layout, static_layout
from taufit.recording.draft.from_values import (
    TableLayout,
    counter_columns,
    guess_time_unit,
    layout_from_values,
    relative_noise,
    time_column_from_values,
)
from taufit.recording.draft.map_writer import (
    NOISELESS,
    Draft,
    Gravity,
    MapWriter,
    NominalRobot,
    finite_rows,
    plausible_rows,
    recognition_error,
)
from taufit.recording.draft.sampling_rate import InertialTorque
from taufit.recording.merged_topics import topic_rows
from taufit.recording.quantity import QUANTITIES
from taufit.recording.table import Table

# A torque channel below NOISELESS is computed if another has this many times more noise.
_NOISE_RATIO = 50.0


def draft_map(
    table: Table,
    *,
    joints: int | None = None,
    joint_names: Sequence[str] = (),
    gravity: Gravity | None = None,
    inertial: InertialTorque | None = None,
) -> Draft:
    """Draft a column map from column names and values.

    Args:
        table: Table from a reader.
        joints: Number of joints of the robot, if known.
        joint_names: Joint names of the robot, if known.
        gravity: Gravity torque of the nominal robot for positions [rad], used to distinguish
            torque from current.
        inertial: Torque of the nominal robot less gravity for position, velocity and acceleration,
            used to estimate the sampling rate of files without time and velocity.

    Raises:
        RecordingError: Positions and a torque or current were not recognised.
    """
    if len(table.values) < 2:
        raise RecordingError(f"{table.source} has {len(table.values)} rows: too few for a map.")
    table, text_columns = _without_text_columns(_topic_of_positions(table, joints, joint_names))
    names = table.names if any(table.names) else ("",) * len(table.names)
    run = run_column(names)
    time = time_column(names)
    skip = [*text_columns, *(i for i in (run, time and time[0]) if i is not None)]
    by_name, position, signals = _groups_by_name(table, skip, joints, joint_names)
    _require_row_per_time(table, time, position)
    reasons: list[str] = []
    rate: float | None = None
    if position is not None and signals:
        reasons.append("quantities are named in the header")
        _require_joint_count(len(position.columns), joints, table)
        column_groups = _matching_groups(by_name, position, signals, table)
        column_groups += _commands_by_word(column_groups, position, table)
    elif position is not None:
        raise recognition_error(table, True)
    else:
        time_and_layout = _layout_from_values(table, time, skip, run, joints, gravity)
        if time_and_layout is None:
            raise recognition_error(table, False, is_robot_known=joints is not None)
        time, value_layout = time_and_layout
        column_groups = _with_commands_by_name(list(value_layout.groups), names)
        rate = value_layout.rate_hz
        count = len(next(g for g in column_groups if g.quantity == "position").columns)
        _require_joint_count(count, joints, table)
        reasons += value_layout.reasons
    robot = NominalRobot(tuple(joint_names), gravity, inertial)
    draft = MapWriter(table, column_groups, time, run, rate, robot, reasons).draft()
    return _ask_about_arms(draft, by_name, position, table)


def _ask_about_arms(
    draft: Draft, by_name: list[ColumnGroup], position: ColumnGroup | None, table: Table
) -> Draft:
    """Draft with a question if the file has as many positions of another arm."""
    if position is None:
        return draft
    kind = (position.quantity, position.commanded, position.qualifiers, position.unit)
    others = [
        table.names[group.columns[0]]
        for group in by_name
        if (group.quantity, group.commanded, group.qualifiers, group.unit) == kind
        and len(group.columns) == len(position.columns)
        and group.columns != position.columns
    ]
    if not others:
        return draft
    question = (
        f"positions are in {table.names[position.columns[0]]} and in {', '.join(others)}: of two "
        "arms? The first is used; write the other one's columns for the other arm"
    )
    return replace(draft, open_questions=(question, *draft.open_questions))


def _groups_by_name(
    table: Table, skip: Sequence[int], joints: int | None, joint_names: Sequence[str]
) -> tuple[list[ColumnGroup], ColumnGroup | None, list[ColumnGroup]]:
    """Groups by their names, the one of position, and torque channels, the one to use first.

    A joint's name alone means its position if no other position but a torque is named.
    """

    def groups(bare_is_position: bool) -> list[ColumnGroup]:
        out = name_groups(table.names, skip, joint_names, bare_is_position=bare_is_position)
        out = [_with_file_names(_with_unit(group, table), table, joint_names) for group in out]
        out = [_crop_group(group, joints, table) for group in out]
        return [_select_joints(group, joint_names, table) for group in out]

    by_name = groups(False)
    position = _pick_group(by_name, "position", table, joints)
    if position is None and any(group.quantity in ("torque", "current") for group in by_name):
        by_name = groups(True)
        position = _pick_group(by_name, "position", table, joints)
    return by_name, position, _rank_signals(by_name, position, table)


def _topic_of_positions(table: Table, joints: int | None, joint_names: Sequence[str]) -> Table:
    """Table with the rows of the positions, if it has several topics, a header and a time."""
    time = time_column(table.names)
    if time is None or not np.isnan(table.values).any():
        return table
    position = _groups_by_name(table, [], joints, joint_names)[1]
    return table if position is None else topic_rows(table, position.columns, time[0])


def _without_text_columns(table: Table) -> tuple[Table, list[int]]:
    """Table with zeros in columns that are mostly text or empty, and their indices."""
    with np.errstate(invalid="ignore"):
        empty = np.mean(np.isfinite(table.values), axis=0) < 0.5
    if not empty.any() or empty.all():
        return table, []
    return replace(table, values=np.where(empty, 0.0, table.values)), np.flatnonzero(empty).tolist()


def _with_unit(group: ColumnGroup, table: Table) -> ColumnGroup:
    """Group with the unit in the line below the names, if its name has none."""
    cells = table.meta.get("units", ())
    if group.unit is not None or len(cells) != len(table.names):
        return group
    units = {named_unit(cells[i], group.quantity) for i in group.columns}
    return replace(group, unit=units.pop()) if len(units) == 1 else group


def _with_file_names(group: ColumnGroup, table: Table, joint_names: Sequence[str]) -> ColumnGroup:
    """Numbered group with the joint names that other columns of the file list."""
    names = table.meta.get("joint_names", ())
    if group.joints or len(names) != len(group.columns) or not {*names} & {*joint_names}:
        return group
    return replace(group, joints=tuple(names))


def _crop_group(group: ColumnGroup, joints: int | None, table: Table) -> ColumnGroup:
    """Group without numbered columns beyond the robot's joints.

    These are the last ones, such as a gripper's; but one that stands still before joints that all
    move, as an external axis 0 does.
    """
    if joints is None or len(group.columns) <= joints or group.joints:
        return group
    moving = np.nanmax(table.values, axis=0) > np.nanmin(table.values, axis=0)
    first, last = group.columns[:joints], group.columns[-joints:]
    is_last = moving[list(last)].all() and not moving[list(set(first) - set(last))].any()
    return replace(group, columns=last if is_last else first, key=None)


def _select_joints(group: ColumnGroup, joint_names: Sequence[str], table: Table) -> ColumnGroup:
    """Group without columns of joints that the robot does not have, such as a gripper's."""
    of_robot = [k for k, name in enumerate(group.joints) if name in joint_names]
    if not of_robot or len(of_robot) == len(group.joints) == len(joint_names):
        return group
    absent = [name for name in joint_names if name not in group.joints]
    if absent and group.quantity == "position":
        raise RecordingError(
            f"{table.source}: there are no positions of {', '.join(absent)}. Give the robot's "
            f"chain up to the last recorded joint with --tip, or record all joints."
        )
    return replace(
        group,
        columns=tuple(group.columns[k] for k in of_robot),
        joints=tuple(group.joints[k] for k in of_robot),
        key=None,
    )


def _require_row_per_time(
    table: Table, time: tuple[int, str] | None, position: ColumnGroup | None
) -> None:
    """Refuse tables with a row for every joint instead of a column."""
    if time is None or position is None or len(position.columns) > 1:
        return
    steps = np.diff(table.values[:, time[0]])
    if np.count_nonzero(steps == 0.0) >= 0.5 * len(steps):
        raise RecordingError(
            f"{table.source} has a row for every joint, its time stamps repeat: one row per time "
            "and one column per joint are needed (in pandas frame.pivot(index=..., columns=...))."
        )


def _require_joint_count(count: int, joints: int | None, table: Table) -> None:
    if joints is not None and count != joints:
        raise RecordingError(
            f"{table.source}: there are {count} joints by names or numbers, the robot has "
            f"{joints}. Choose the robot that was recorded, or write the map by hand."
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


def _rank_signals(
    candidate_groups: list[ColumnGroup], position: ColumnGroup | None, table: Table
) -> list[ColumnGroup]:
    """Torque and current channels, the one to use first; never an estimate of external torque.

    Measured before computed: a channel without noise beside a noisy one is the output of a model.
    """
    if position is None:
        return []
    candidates = [
        g
        for g in candidate_groups
        if g.quantity in ("torque", "current")
        and not g.commanded
        and len(g.columns) == len(position.columns)
        and not {"ext", "external", "err", "error", "residual", "tcp"} & set(g.qualifiers)
        and _moving_columns(table, g)
    ]
    targets = {g.quantity for g in candidate_groups if g.commanded}
    if {"torque", "current"} <= targets:
        # With both targets logged the drive gains can be estimated, so current is preferred.
        candidates = [g for g in candidates if g.quantity == "current"] or candidates
    noise = {
        g.columns: relative_noise(finite_rows(table.values[:, list(g.columns)])) for g in candidates
    }
    loudest = max(noise.values(), default=0.0)

    of_other_arm = _words_of_other_arms(candidate_groups, position, table)

    def rank(group: ColumnGroup) -> tuple[bool, bool, bool, int, bool, int]:
        words = _group_words(group, table)
        from_current = group.quantity == "torque" and bool(words & {"cur", "current", "i", "iq"})
        return (
            bool(words & of_other_arm),
            bool(COMPUTED & set(group.qualifiers)),
            _is_noiseless(noise[group.columns], loudest),
            2 if group.quantity == "current" else int(from_current),
            not words & MEASURED,
            len(group.qualifiers),
        )

    return sorted(candidates, key=rank)


def _group_words(group: ColumnGroup, table: Table) -> set[str]:
    return {word for word, _, _ in name_words(table.names[group.columns[0]])}


def _words_of_other_arms(
    groups: list[ColumnGroup], position: ColumnGroup, table: Table
) -> set[str]:
    """Words such as left in the names of positions that are not used."""
    positions = [g for g in groups if g.quantity == "position" and not g.commanded]
    words = set().union(*(_group_words(group, table) for group in positions))
    return words - _group_words(position, table)


def _is_noiseless(noise: float, loudest: float) -> bool:
    return noise < NOISELESS and loudest > _NOISE_RATIO * noise


def _matching_groups(
    candidate_groups: list[ColumnGroup],
    position: ColumnGroup,
    signals: list[ColumnGroup],
    table: Table,
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
    out += [signals[0], *(replace(signal, commanded=True) for signal in signals[1:])]
    return [*out, *_target_groups(candidate_groups)]


def _target_groups(candidate_groups: list[ColumnGroup]) -> list[ColumnGroup]:
    """Commanded motion and targets of the controller, where one group says so."""
    out: list[ColumnGroup] = []
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


def _commands_by_word(
    groups: list[ColumnGroup], position: ColumnGroup, table: Table
) -> list[ColumnGroup]:
    """Commanded positions in columns such as cmd1: a command word and a number, by their values."""
    columns = command_columns(table.names)[: len(position.columns)]
    is_known = any(group.quantity == "commanded_position" for group in groups)
    if is_known or len(columns) < len(position.columns):
        return []
    measured = table.values[:, list(position.columns)]
    difference = table.values[:, columns] - measured
    spread = np.nanmax(np.nanstd(measured, axis=0))
    # Below 0.83 and 0.9 on 20 runs of the SO-101; an unrelated signal of this size has 1.4.
    errors = (np.nanstd(difference, axis=0), np.abs(np.nanmedian(difference, axis=0)))
    if not all(np.nanmax(error) < spread for error in errors):
        return []
    return [ColumnGroup("commanded_position", tuple(columns), True, unit=position.unit)]


def _with_commands_by_name(groups: list[ColumnGroup], names: Sequence[str]) -> list[ColumnGroup]:
    """Groups found by values, with measured and commanded motion as their names say."""
    out = groups
    for quantity in ("position", "velocity"):
        measured = next((g for g in groups if g.quantity == quantity), None)
        command = next((g for g in groups if g.quantity == f"commanded_{quantity}"), None)
        if measured is None or command is None:
            continue
        if is_command_name(names[measured.columns[0]]) > is_command_name(names[command.columns[0]]):
            exchanged = {
                id(measured): replace(command, quantity=quantity, unit=measured.unit),
                id(command): replace(measured, quantity=command.quantity, unit=command.unit),
            }
            out = [exchanged.get(id(group), group) for group in out]
    return out


def _layout_from_values(
    table: Table,
    time: tuple[int, str] | None,
    skip: Sequence[int],
    run: int | None,
    joints: int | None,
    gravity: Gravity | None,
) -> tuple[tuple[int, str] | None, TableLayout] | None:
    values = plausible_rows(table.values)
    if run is not None:
        values = values[values[:, run] == values[0, run]]
    if time is None:
        time = time_column_from_values(values)
    skip = sorted({*skip, *counter_columns(values), *([] if time is None else [time[0]])})
    seconds = None
    if time is not None:
        unit = time[1] or guess_time_unit(float(np.nanmedian(np.diff(values[:, time[0]]))))
        seconds = values[:, time[0]] * QUANTITIES["time"].units[unit]
    table_layout = layout_from_values(values, seconds, joints, skip)
    if joints is None:
        table_layout = standing_layout(values, seconds, table_layout, skip)
    elif not _has_velocity_and_torque(table_layout):
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


__all__ = ["draft_map"]
