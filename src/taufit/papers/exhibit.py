"""Comparison with a table or figure of a paper: printed values, ours, and reasons if different."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taufit.core.parameters import joint_parameter, link_parameter


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
    """

    name: str
    printed: float | None
    computed: float | None
    unit: str = ""
    within: float | None = None
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether both values agree within the tolerance; None if there is none."""
        if self.within is None or self.printed is None or self.computed is None:
            return None
        return bool(abs(self.printed - self.computed) <= self.within)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "what": self.name,
            "printed": self.printed,
            "ours": self.computed,
            "unit": self.unit,
            "within": self.within,
            "why": self.reason,
            "agrees": self.agrees,
        }


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Table or figure of a paper.

    Attributes:
        label: Label in the paper: "Table II".
        title: Title in our words.
        entries: Compared values.
        text: Paragraphs of explanation.
        figures: HTML of charts.
        missing: Reason why it is not reproduced, else empty.
    """

    label: str
    title: str
    entries: tuple[ComparedValue, ...] = ()
    text: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without pictures."""
        return {
            "label": self.label,
            "title": self.title,
            "missing": self.missing,
            "text": list(self.text),
            "entries": [entry.to_dict() for entry in self.entries],
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


def per_joint(
    name: str,
    printed: Sequence[float | None],
    computed: Sequence[float] | np.ndarray | None,
    unit: str,
    *,
    within: float | Sequence[float] | None = None,
    reason: str = "",
) -> tuple[ComparedValue, ...]:
    """Entries of a row with one value per joint; the reason is given for the first."""
    our_values: list[float | None] = (
        [None] * len(printed) if computed is None else [float(x) for x in computed]
    )
    limits = within if isinstance(within, Sequence) else [within] * len(printed)
    return tuple(
        ComparedValue(
            f"{name}, joint {k + 1}", p, o, unit, limit, reason if k == 0 else "as joint 1"
        )
        if reason
        else ComparedValue(f"{name}, joint {k + 1}", p, o, unit, limit)
        for k, (p, o, limit) in enumerate(zip(printed, our_values, limits, strict=True))
    )


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
