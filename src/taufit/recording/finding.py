"""What a reader or a check noticed in a recording, and what was done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from taufit.core.names import printable
from taufit.recording.map.remedy import Remedy

# From harmless to grave; an "error" is something a fit should not be built on.
SEVERITIES = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the user should know about a recording.

    Attributes:
        kind: Its name for machines, e.g. "corrupt_rows", "gaps", "saturation".
        severity: "info", "warning" or "error".
        message: What was found, in the user's words.
        action: What was done about it; "" where nothing was.
        joint: The joint it concerns, counted from 1, or None for all.
        column: The file's column (name, or number from 1), or None.
        rows: Rows of the file it concerns, counted from 1 without the header.
        time: When it happened [s], or None.
        value: The number or text that was found, or None.
        remedy: What would put it right, for machines; None where nobody but the user can.
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

    def __post_init__(self) -> None:
        assert self.severity in SEVERITIES, self.severity
        # Names in them come from files.
        for name in ("message", "action", "column", "value"):
            text = getattr(self, name)
            if isinstance(text, str) and not text.isprintable():
                object.__setattr__(self, name, printable(text))

    def __str__(self) -> str:
        text = self.message.rstrip(".")
        return f"{text}: {self.action}" if self.action else text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without what is empty; `from_dict` returns the same finding."""
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
    """(1, 2, 3, 7) as "1-3, 7"; long lists end in how many more there are."""
    intervals: list[list[int]] = []
    for row in sorted(rows):
        if intervals and row == intervals[-1][1] + 1:
            intervals[-1][1] = row
        else:
            intervals.append([row, row])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in intervals[:max_ranges]]
    omitted = sum(b - a + 1 for a, b in intervals[max_ranges:])
    return ", ".join(texts) + (f" and {omitted} more" if omitted else "")
