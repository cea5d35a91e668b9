"""Unique, non-empty names that a format accepts."""

from __future__ import annotations

from collections.abc import Iterable


def unique_names(names: Iterable[str], otherwise: str, taken: Iterable[str] = ()) -> list[str]:
    """Make names unique, unchanged wherever possible.

    Args:
        names: Names from the robot description.
        otherwise: Prefix for empty names.
        taken: Reserved names.
    """
    used, out = set(taken), []
    for i, name in enumerate(names):
        wish = name if name.strip() else f"{otherwise}_{i + 1}"
        number, found = 2, wish
        while found in used:
            found, number = f"{wish}_{number}", number + 1
        used.add(found)
        out.append(found)
    return out
