"""Unique, non-empty names that a format accepts."""

from __future__ import annotations

from collections.abc import Iterable


def unique_names(names: Iterable[str], prefix: str, reserved: Iterable[str] = ()) -> list[str]:
    """Make names unique, unchanged wherever possible.

    Args:
        names: Names from the robot description.
        prefix: Prefix for empty names.
        reserved: Reserved names.
    """
    used, result = set(reserved), []
    for i, name in enumerate(names):
        base = name if name.strip() else f"{prefix}_{i + 1}"
        number, candidate = 2, base
        while candidate in used:
            candidate, number = f"{base}_{number}", number + 1
        used.add(candidate)
        result.append(candidate)
    return result
