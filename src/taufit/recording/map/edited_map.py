"""Column map with the edits of a remedy applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taufit.core.errors import RecordingError
from taufit.recording.map.remedy import ALL_QUANTITIES, SIGNAL, MapEdit
from taufit.recording.quantity import QUANTITIES, SIGNALS


def apply_edits(page: Mapping[str, Any], edits: Sequence[MapEdit]) -> dict[str, Any]:
    """Column map with edits applied.

    Args:
        page: Map as YAML data, with `columns` by quantity.
        edits: Edits in order.
    """
    out = dict(page)
    columns = out.get("columns")
    if not isinstance(columns, Mapping):
        raise RecordingError(
            "this column map lists its columns one by one; write them by quantity (`position: "
            '"q{joint}"`) for it to be corrected, or correct it by hand.'
        )
    out["columns"] = {
        quantity: dict(entry) if isinstance(entry, Mapping) else {"columns": entry}
        for quantity, entry in columns.items()
    }
    for edit in edits:
        if edit.quantity == "":
            out[edit.key] = list(edit.value) if isinstance(edit.value, tuple) else edit.value
            continue
        if edit.quantity == "time" and edit.key == "scale" and "time" not in out["columns"]:
            # Without a time column the rate defines time.
            assert isinstance(edit.value, float)
            out["rate_hz"] = float(f"{float(out['rate_hz']) / edit.value:.6g}")
        for quantity in _entries_to_edit(edit.quantity, out["columns"]):
            if edit.key == "drop":
                del out["columns"][quantity]
            else:
                _apply_edit(out["columns"][quantity], edit, quantity)
    return out


def _entries_to_edit(quantity: str, columns: Mapping[str, Any]) -> list[str]:
    """Existing entries that an edit concerns."""
    if quantity == ALL_QUANTITIES:
        return [name for name in columns if name in QUANTITIES and QUANTITIES[name].per_joint]
    names = SIGNALS if quantity == SIGNAL else (quantity,)
    return [name for name in columns if name in names]


def _apply_edit(entry: dict[str, Any], edit: MapEdit, quantity: str) -> None:
    value = edit.value
    if edit.key == "order":
        assert isinstance(value, tuple)
        entry["columns"] = _reorder(entry["columns"], [int(k) for k in value], quantity)
        for key in ("sign", "scale", "offset"):
            current = entry.get(key)
            if isinstance(current, (list, tuple)):
                entry[key] = [current[int(k) - 1] for k in value]
    elif edit.key in ("sign", "scale", "offset"):
        assert isinstance(value, (int, float, tuple))
        entry[edit.key] = _combine(entry.get(edit.key), value, edit.key == "offset")
        if edit.key != "offset" and "offset" in entry:
            # The edit applies to the value after its offset.
            entry["offset"] = _combine(entry["offset"], value, False)
        if edit.key == "sign":
            entry[edit.key] = _to_integers(entry[edit.key])
    else:
        entry[edit.key] = value


def _combine(current: Any, value: float | tuple[float, ...], is_sum: bool) -> float | list[float]:
    current = (0.0 if is_sum else 1.0) if current is None else current
    first = [float(x) for x in (current if isinstance(current, (list, tuple)) else [current])]
    second = [float(x) for x in (value if isinstance(value, tuple) else [value])]
    count = max(len(first), len(second))
    first, second = (x * count if len(x) == 1 else x for x in (first, second))
    out = [a + b if is_sum else a * b for a, b in zip(first, second, strict=True)]
    return out if count > 1 else out[0]


def _to_integers(value: float | list[float]) -> Any:
    return [int(x) for x in value] if isinstance(value, list) else int(value)


def _reorder(columns: Any, order: Sequence[int], quantity: str) -> list[Any]:
    """Columns of an entry in another order, one by one."""
    from taufit.recording.columns import is_pattern
    from taufit.recording.map.parser import column_keys

    keys = list(column_keys(columns))
    if len(keys) == 1 and is_pattern(keys[0]):
        pattern = str(keys[0])
        keys = [
            pattern.replace("{joint}", str(j + 1)).replace("{joint0}", str(j))
            for j in range(len(order))
        ]
    if len(keys) != len(order):
        raise RecordingError(f"{quantity} has {len(keys)} columns, not {len(order)}.")
    return [keys[k - 1] for k in order]
