"""Comparison with a table or figure of a paper: printed values, ours, and reasons if different."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from taufit.core.dataclasses import dataclass
from taufit.core.parameters import joint_parameter, link_parameter

# Kinds of judged entries: computed from the paper's data or by another method; an order of methods;
# a value that the simulated robot was given and the identification returns.
INDEPENDENT, ORDER, GIVEN = KINDS = ("independent", "order", "given")


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """Value of the paper next to ours.

    Attributes:
        name: Name of the value.
        printed: Value in the paper, or None.
        computed: Value computed here, or None if there is no counterpart.
        unit: Unit of both.
        within: Largest difference that counts as equal, or None if equality is not expected; then
            `reason` gives the reason.
        reason: Reason for a difference: erratum, unstated scaling, simulated instead of measured.
        kind: Kind of the comparison, one of `KINDS`; None without tolerance.
        interval: Smallest and largest value over the seeds, where chance plays.
    """

    name: str
    printed: float | None
    computed: float | None
    unit: str = ""
    within: float | None = None
    reason: str = ""
    kind: str | None = None
    interval: tuple[float, float] | None = None

    @property
    def difference(self) -> float | None:
        """Our value less the printed one."""
        if self.printed is None or self.computed is None:
            return None
        return self.computed - self.printed

    @property
    def agrees(self) -> bool | None:
        """Whether both values agree within the tolerance; None if there is none."""
        if self.within is None or self.difference is None:
            return None
        return bool(abs(self.difference) <= self.within)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "what": self.name,
            "kind": self.kind,
            "printed": self.printed,
            "ours": self.computed,
            "interval": self.interval,
            "unit": self.unit,
            "within": self.within,
            "why": self.reason,
            "agrees": self.agrees,
        }


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """Row of a table: printed values and ours, one per column.

    Attributes:
        name: Name of the row.
        columns: Names of the columns; one empty name for a single value.
        printed, computed: Values by column.
        unit, within, reason, kind: As in `ComparedValue`; `within` by column.
        intervals: Smallest and largest value over the seeds, by column, or empty.
    """

    name: str
    columns: tuple[str, ...]
    printed: tuple[float | None, ...]
    computed: tuple[float | None, ...]
    unit: str = ""
    within: tuple[float | None, ...] = (None,)
    reason: str = ""
    kind: str | None = None
    intervals: tuple[tuple[float, float], ...] = ()

    @property
    def entries(self) -> tuple[ComparedValue, ...]:
        """One entry per column."""
        return tuple(
            ComparedValue(
                f"{self.name}, {column}" if column else self.name,
                self.printed[k],
                self.computed[k],
                self.unit,
                self.within[k],
                self.reason,
                None if self.within[k] is None else self.kind,
                self.intervals[k] if self.intervals else None,
            )
            for k, column in enumerate(self.columns)
        )


def compare_columns(
    name: str,
    columns: Sequence[str],
    printed: Sequence[float | None] | None,
    computed: Sequence[float | None] | np.ndarray | None,
    unit: str = "",
    *,
    within: float | Sequence[float] | None = None,
    reason: str = "",
    kind: str = INDEPENDENT,
) -> ComparedRow:
    """Row with one value per column. A matrix (seeds x columns) is shown by medians and ranges."""
    none = (None,) * len(columns)
    values_here: tuple[float | None, ...] = none
    intervals: tuple[tuple[float, float], ...] = ()
    if isinstance(computed, np.ndarray) and computed.ndim == 2:
        values = np.asarray(computed, float)
        values_here = tuple(float(x) for x in np.median(values, axis=0))
        intervals = tuple(
            (float(a), float(b)) for a, b in zip(values.min(0), values.max(0), strict=True)
        )
    elif computed is not None:
        values_here = tuple(None if x is None else float(x) for x in computed)
    limits = tuple(within) if isinstance(within, Sequence) else (within,) * len(columns)
    printed_values = none if printed is None else tuple(printed)
    return ComparedRow(
        name,
        tuple(columns),
        printed_values,
        values_here,
        unit,
        limits,
        reason,
        None if within is None else kind,
        intervals,
    )


def compare_joints(
    name: str,
    printed: Sequence[float | None] | None,
    computed: Sequence[float | None] | np.ndarray | None,
    unit: str = "",
    **settings: Any,
) -> ComparedRow:
    """Row with one value per joint."""
    source = printed if computed is None else np.atleast_2d(np.asarray(computed, float))[0]
    assert source is not None
    columns = [f"joint {k + 1}" for k in range(len(source))]
    return compare_columns(name, columns, printed, computed, unit, **settings)


def compare_value(
    name: str,
    printed: float | None,
    computed: float | Sequence[float] | np.ndarray | None,
    unit: str = "",
    within: float | None = None,
    reason: str = "",
    kind: str = INDEPENDENT,
) -> ComparedRow:
    """Row with a single value; several values (one per seed) are shown by median and range."""
    values_here = None if computed is None else np.reshape(np.asarray(computed, float), (-1, 1))
    return compare_columns(
        name,
        ("",),
        (printed,),
        values_here if values_here is None or len(values_here) > 1 else values_here[0],
        unit,
        within=within,
        reason=reason,
        kind=kind,
    )


def compare_order(name: str, occurrences: Sequence[bool], reason: str = "") -> ComparedRow:
    """Row of an order of methods: in how many of the seeds it appears; it must in most of them."""
    count = len(occurrences)
    return compare_value(
        name,
        float(count),
        float(np.sum(occurrences)),
        f"of {count} seeds",
        0.5 * count - 1e-9,
        reason,
        ORDER,
    )


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Table or figure of a paper.

    Attributes:
        label: Label in the paper: "Table II".
        title: Title in our words.
        rows: Compared values.
        text: Paragraphs of explanation.
        figures: HTML of charts.
        missing: Reason why it is not reproduced, else empty.
    """

    label: str
    title: str
    rows: tuple[ComparedRow, ...] = ()
    text: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    missing: str = ""

    @property
    def entries(self) -> tuple[ComparedValue, ...]:
        """Compared values one by one."""
        return tuple(entry for row in self.rows for entry in row.entries)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without pictures."""
        return {
            "label": self.label,
            "title": self.title,
            "missing": self.missing,
            "text": list(self.text),
            "entries": [entry.to_dict() for entry in self.entries],
        }


def count_by_kind(exhibits: Iterable[Exhibit]) -> dict[str, tuple[int, int]]:
    """Number of entries of each kind that agree, and number of all."""
    entries = [entry for exhibit in exhibits for entry in exhibit.entries]
    return {
        kind: (
            sum(bool(entry.agrees) for entry in entries if entry.kind == kind),
            sum(entry.kind == kind for entry in entries),
        )
        for kind in KINDS
    }


@dataclass(frozen=True, slots=True)
class Paper:
    """Paper with the functions that reproduce its tables and figures.

    Attributes:
        key: Name on the command line.
        title, authors, journal: Bibliographic data.
        errata: Misprints found.
        steps: Label and function of each table or figure, in the order of the paper.
    """

    key: str
    title: str
    authors: str
    journal: str
    errata: tuple[str, ...]
    steps: tuple[tuple[str, Callable[[], Exhibit]], ...]

    def exhibits(self) -> Iterator[Exhibit]:
        """Reproduce every table and figure in order."""
        for label, make in self.steps:
            exhibit = make()
            assert exhibit.label == label, (exhibit.label, label)
            yield exhibit


def standard_parameter_name(parameter: str) -> str:
    """Our name of a parameter of the papers: `mx2` is `link_2.hx`, `Ia2` is `joint_2.rotor`, ...

    The papers number links and joints with one digit at the end.
    """
    symbol, number = parameter[:-1], int(parameter[-1]) - 1
    joint = {"Ia": "rotor", "Fc": "coulomb", "Fv": "viscous", "B": "offset"}
    link = {"mx": "hx", "my": "hy", "mz": "hz"}
    if symbol in joint:
        return joint_parameter(number, joint[symbol])
    return link_parameter(number, link.get(symbol, symbol))


def row_matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> np.ndarray:
    """Printed base parameters as rows over our standard parameters."""
    matrix = np.zeros((len(rows), len(names)))
    column = {name: k for k, name in enumerate(names)}
    for k, row in enumerate(rows):
        for name, value in row.items():
            matrix[k, column[standard_parameter_name(name)]] = value
    return matrix


def outside_row_space(rows: np.ndarray, mapping: np.ndarray) -> float:
    """Largest part of the rows outside the identifiable space; zero if all are identifiable."""
    return float(np.abs(rows - rows @ np.linalg.pinv(mapping) @ mapping).max())
