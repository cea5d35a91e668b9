"""Findings of readers and checks about a recording, with their handling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from taufit.core.dataclasses import dataclass
from taufit.core.names import printable
from taufit.recording.map.remedy import Remedy

# In increasing order; a fit should not use data with an "error".
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about a recording for the user.

    Attributes:
        kind: Machine-readable name, e.g. "corrupt_rows", "gaps", "saturation".
        severity: "info", "warning" or "error".
        message: Description of the problem.
        action: Handling by taufit; "" for none.
        joint: Joint concerned, counted from 1; None for all.
        column: Column of the file (name, or number from 1), or None.
        rows: Rows of the file, counted from 1 without the header.
        time: Time of the problem [s], or None.
        value: Value found, or None.
        remedy: Machine-readable correction; None if there is none.
        file: File that the finding is about, if there are several; None for all.
    """

    kind: str
    severity: str
    message: str
    action: str = ""
    joint: int | None = None
    column: str | None = None
    rows: tuple[int, ...] = ()
    time: float | None = None
    value: float | str | None = None
    remedy: Remedy | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        assert self.severity in SEVERITIES, self.severity
        # They may contain names from untrusted files.
        for name in ("message", "action", "column", "value"):
            text = getattr(self, name)
            if isinstance(text, str) and not text.isprintable():
                object.__setattr__(self, name, printable(text))

    def __str__(self) -> str:
        text = self.message.rstrip(".")
        return f"{text}: {self.action}" if self.action else text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON without empty fields."""
        data = asdict(self)
        data["rows"] = list(self.rows)
        data["remedy"] = None if self.remedy is None else self.remedy.to_dict()
        keep = {"kind", "severity", "message"}
        return {k: v for k, v in data.items() if k in keep or v not in (None, "", [])}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Inverse of `to_dict`."""
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        fields["rows"] = tuple(int(row) for row in fields.get("rows", ()))
        if fields.get("remedy") is not None:
            fields["remedy"] = Remedy.from_dict(fields["remedy"])
        if fields.get("severity") not in SEVERITIES:
            fields["severity"] = "warning"
        return cls(**{"kind": "unknown", "message": "", **fields})


def format_ranges(rows: tuple[int, ...], max_ranges: int = 12) -> str:
    """Text of row numbers: (1, 2, 3, 7) as "1-3, 7"; long lists are shortened."""
    intervals: list[list[int]] = []
    for row in sorted(rows):
        if intervals and row == intervals[-1][1] + 1:
            intervals[-1][1] = row
        else:
            intervals.append([row, row])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in intervals[:max_ranges]]
    omitted = sum(b - a + 1 for a, b in intervals[max_ranges:])
    return ", ".join(texts) + (f" and {omitted} more" if omitted else "")
