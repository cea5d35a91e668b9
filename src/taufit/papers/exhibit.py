"""What one table or figure of a paper comes to: numbers printed, ours, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from taufit.core.parameters import joint_parameter, link_parameter


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of the paper beside ours.

    Attributes:
        what: Its name.
        printed: The paper's, or None where the paper has none.
        ours: Computed here, or None where nothing here compares.
        unit: Of both.
        within: Largest difference that counts as the same, or None where equality is not expected;
            then `why` says what to make of the two.
        why: Erratum, unstated scaling, simulated instead of measured.
    """

    what: str
    printed: float | None
    ours: float | None
    unit: str = ""
    within: float | None = None
    why: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether both are the same within the stated tolerance; None where none is stated."""
        if self.within is None or self.printed is None or self.ours is None:
            return None
        return bool(abs(self.printed - self.ours) <= self.within)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One table or figure.

    Attributes:
        label: As in the paper: "Table II".
        title: What it shows, in our words.
        entries: Its numbers.
        text: Paragraphs beside it.
        figures: HTML of charts.
        missing: Why it is not reproduced, else empty.
    """

    label: str
    title: str
    entries: tuple[Entry, ...] = ()
    text: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without pictures."""
        return {
            "label": self.label,
            "title": self.title,
            "missing": self.missing,
            "text": list(self.text),
            "entries": [{**asdict(entry), "agrees": entry.agrees} for entry in self.entries],
        }


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, and how each of its tables and figures is made again.

    Attributes:
        key: Name on the command line.
        title, authors, journal: Where it was printed.
        errata: Misprints found while checking it.
        steps: One per table or figure, in the paper's order: label and what makes it.
    """

    key: str
    title: str
    authors: str
    journal: str
    errata: tuple[str, ...]
    steps: tuple[tuple[str, Callable[[], Exhibit]], ...]

    def exhibits(self) -> Iterator[Exhibit]:
        """Every table and figure, one after the other."""
        for label, make in self.steps:
            exhibit = make()
            assert exhibit.label == label, (exhibit.label, label)
            yield exhibit


def per_joint(
    what: str,
    printed: Sequence[float | None],
    ours: Sequence[float] | np.ndarray | None,
    unit: str,
    *,
    within: float | Sequence[float] | None = None,
    why: str = "",
) -> tuple[Entry, ...]:
    """Entries of a row with one number per joint; the reason stands beside the first."""
    found: list[float | None] = [None] * len(printed) if ours is None else [float(x) for x in ours]
    limits = within if isinstance(within, Sequence) else [within] * len(printed)
    return tuple(
        Entry(f"{what}, joint {k + 1}", p, o, unit, limit, why if k == 0 else "as joint 1")
        if why
        else Entry(f"{what}, joint {k + 1}", p, o, unit, limit)
        for k, (p, o, limit) in enumerate(zip(printed, found, limits, strict=True))
    )


def of_the_paper(parameter: str) -> str:
    """Our name of `mx2`, `Ixx2`, `Ia2`, `Fc2`: `link_2.hx`, `link_2.Ixx`, `joint_2.rotor`, ...

    The papers number links and joints with one digit at the end.
    """
    what, number = parameter[:-1], int(parameter[-1]) - 1
    joint = {"Ia": "rotor", "Fc": "coulomb", "Fv": "viscous", "B": "offset"}
    link = {"mx": "hx", "my": "hy", "mz": "hz"}
    if what in joint:
        return joint_parameter(number, joint[what])
    return link_parameter(number, link.get(what, what))


def row_matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> np.ndarray:
    """Printed base parameters as rows over our standard parameters."""
    out = np.zeros((len(rows), len(names)))
    place = {name: k for k, name in enumerate(names)}
    for k, row in enumerate(rows):
        for name, value in row.items():
            out[k, place[of_the_paper(name)]] = value
    return out


def outside_row_space(rows: np.ndarray, mapping: np.ndarray) -> float:
    """Largest part of the rows that no base parameter holds; zero where all are identifiable."""
    return float(np.abs(rows - rows @ np.linalg.pinv(mapping) @ mapping).max())
