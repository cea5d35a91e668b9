"""Speed and accuracy, measured as ratios in one run. `python -m benchmarks [WORD ...]` runs them.

Every file in speed/ and accuracy/ has a function `rows()` that yields `Row`s.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure.

    Attributes:
        name: What was measured.
        value: The figure.
        unit: Of the figure: "x" for a ratio.
        target: What it should be, e.g. ">= 12" or "90 .. 98", or "" where it is only told.
        note: How it was measured: sizes, seeds, what it is compared with.
    """

    name: str
    value: float
    unit: str = ""
    target: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target holds; None without one."""
        if not self.target:
            return None
        if " .. " in self.target:
            low, high = map(float, self.target.split(" .. "))
            return bool(low <= self.value <= high)
        relation, bound = self.target.split()
        compare = {
            ">=": self.value >= float(bound),
            "<=": self.value <= float(bound),
            "<": self.value < float(bound),
            ">": self.value > float(bound),
            "==": self.value == float(bound),
        }
        return bool(compare[relation])
