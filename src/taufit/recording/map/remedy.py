"""Machine-readable corrections of a fit: options, another robot, edits of the column map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taufit.core.dataclasses import dataclass

Value = str | float | bool | tuple[float, ...] | None
# All quantities with one column per joint, and the torque channel.
ALL_QUANTITIES = "every"
SIGNAL = "signal"


@dataclass(frozen=True, slots=True)
class MapEdit:
    """Edit of a column map.

    Attributes:
        quantity: Quantity of the entry; "signal" for the torque channel, "every" for all
            quantities with one column per joint, "" for the map itself.
        key: Key of the entry. sign and scale multiply the existing value, offset is added, order
            rearranges the columns (joint i's are at order[i], from 1), drop removes the entry;
            others are replaced. A scale of time divides rate_hz if there is no time column.
        value: New value.
    """

    quantity: str
    key: str
    value: Value = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"quantity": self.quantity, "key": self.key, "value": value}


@dataclass(frozen=True, slots=True)
class Remedy:
    """Correction that resolves a finding.

    Attributes:
        options: Options of `taufit fit`, name and value in turn, e.g. ("--delay-s", "0.05").
        robot: Robot to fit instead, or None.
        edits: Edits of the column map.
    """

    options: tuple[str, ...] = ()
    robot: str | None = None
    edits: tuple[MapEdit, ...] = ()

    def __add__(self, other: Remedy) -> Remedy:
        """Apply both; if an option is given twice the later value is used."""
        pairs = _option_pairs(self.options) | _option_pairs(other.options)
        options = tuple(word for pair in pairs.items() for word in pair)
        return Remedy(options, other.robot or self.robot, (*self.edits, *other.edits))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON without empty fields."""
        out = {
            "options": list(self.options),
            "robot": self.robot,
            "map": [edit.to_dict() for edit in self.edits],
        }
        return {key: value for key, value in out.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Remedy:
        """Inverse of `to_dict`."""
        edits = tuple(
            MapEdit(
                str(edit["quantity"]),
                str(edit["key"]),
                tuple(edit["value"]) if isinstance(edit.get("value"), list) else edit.get("value"),
            )
            for edit in data.get("map", ())
        )
        return cls(tuple(map(str, data.get("options", ()))), data.get("robot"), edits)


def combine_remedies(remedies: Iterable[Remedy | None]) -> Remedy | None:
    """Combine remedies, each once; None if there are none."""
    out = None
    for remedy in dict.fromkeys(candidate for candidate in remedies if candidate is not None):
        out = remedy if out is None else out + remedy
    return out


def _option_pairs(options: Sequence[str]) -> dict[str, str]:
    return dict(zip(options[::2], options[1::2], strict=True))


__all__ = ["ALL_QUANTITIES", "SIGNAL", "MapEdit", "Remedy", "combine_remedies"]
