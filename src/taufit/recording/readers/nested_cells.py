"""Text tables with several numbers or a message in what is one cell, rewritten as plain tables.

    t,q,tau                      t,q_1,q_2,tau_1,tau_2
    0.1,"[1.5, 2]","[3, 4]"      0.1,1.5,2,3,4

Lists as pandas and NumPy print them; time stamps in seconds and nanoseconds; joint states as
`ros2 topic echo --csv` prints them, whose order the message defines.
"""

from __future__ import annotations

import re
from itertools import pairwise

_NUMBER = r"[-+]?(?:\.?\d[\d.]*(?:e[-+]?\d+)?|nan|inf)"
_LIST = re.compile(
    rf'"?(?:array\()?[\[(]\s*({_NUMBER}(?:(?:\s*[,;]\s*|\s+){_NUMBER})+)\s*,?\s*[\])]\)?"?', re.I
)
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_SECONDS = re.compile(r"(?i)(|.*[._/ ])secs?$")
_NANOSECONDS = re.compile(r"(?i)(|.*[._/ ])n(?:ano)?secs?$")
_MESSAGE = re.compile(r"\d+,\d{1,9},[^,]*,((?:[A-Za-z_][^,]*,)+)[-+\d.]")


def plain_table(text: str) -> str:
    """Table with one number per cell; other texts as they are."""
    first, _, rows = text.partition("\n")
    if _LIST.search(rows.partition("\n")[0]):
        return _without_lists(first, rows)
    message = _MESSAGE.match(first)
    joints = message[1].count(",") if message else 0
    if joints and first.count(",") == 2 + 4 * joints:
        stems = ("name", "position", "velocity", "effort")
        names = [f"{stem}{j}" for stem in stems for j in range(joints)]
        return _with_stamps(",".join(["sec", "nanosec", "frame", *names]), text)
    return _with_stamps(first, rows)


def _without_lists(header: str, rows: str) -> str:
    """Table with a column for each number of a list."""
    line = rows.partition("\n")[0]
    scalars = _LIST.sub("0", line)
    delimiter = next((x for x in ";\t," if x in scalars), " ")
    names = [name.strip(' "') for name in header.split(delimiter)]
    cells = _LIST.sub(_mark, line).split(delimiter)
    if len(names) != len(cells):
        return f"{header}\n{rows}"
    counts = [int(cell[1:]) if cell.startswith("\0") else 0 for cell in cells]
    columns = (
        [f"{name}_{i + 1}" for i in range(count)] if count else [name]
        for name, count in zip(names, counts, strict=True)
    )
    header = delimiter.join(name for group in columns for name in group)
    return f"{header}\n" + _LIST.sub(lambda m: delimiter.join(_SEPARATOR.split(m[1])), rows)


def _mark(match: re.Match[str]) -> str:
    """Mark of a list in a line, with its length."""
    return f"\0{len(_SEPARATOR.split(match[1]))}"


def _with_stamps(header: str, rows: str) -> str:
    """Table with columns of seconds and of nanoseconds as one column of time."""
    names = [name.strip(' "') for name in header.split(",")]
    stamps = [
        (i, second[1])
        for i, pair in enumerate(pairwise(names))
        if (second := _SECONDS.match(pair[0])) and (nanosecond := _NANOSECONDS.match(pair[1]))
        if second[1] == nanosecond[1]
    ]
    if not stamps:
        return f"{header}\n{rows}"
    i, prefix = stamps[0]
    names[i : i + 2] = [f"{prefix}time"]
    out = [",".join(names)]
    for row in filter(str.strip, rows.split("\n")):
        cells = row.split(",")
        cells[i : i + 2] = [f"{cells[i].strip()}.{','.join(cells[i + 1 : i + 2]).strip():0>9}"]
        out.append(",".join(cells))
    return "\n".join(out) + "\n" * rows.endswith("\n")
