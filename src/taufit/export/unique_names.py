"""Names that a format can hold: none empty, none twice, none that the format keeps for itself."""

from __future__ import annotations

from collections.abc import Iterable


def unique_names(names: Iterable[str], otherwise: str, taken: Iterable[str] = ()) -> list[str]:
    """The names as they are wherever possible.

    Args:
        names: From the robot's description.
        otherwise: Beginning of the name of one that has none.
        taken: What none may be called.
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
