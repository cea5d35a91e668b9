"""Text tables separated by comma, tab, semicolon or space, optionally gzip-compressed.

Valid files are read by the kernel; others are read cell by cell, so that every invalid cell is
reported with row, column and text.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.bounded_reading import read_bytes
from taufit.core.decompression_limits import UNCHECKED_SIZE, limits_are_lifted
from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnMap
from taufit.recording.decompressed_size import gzip_sizes, require_decompressed_size
from taufit.recording.finding import Finding
from taufit.recording.table import Table, arrays_to_table

try:
    from taufit import _kernel
except ImportError:  # pure Python
    _kernel = None

META_MARK = "# taufit "
# Lines from which the layout of a table is found.
_HEAD_LINES = 50
# Bytes of a long text that are read with all checks; the layout is found from as many.
_HEAD_BYTES = 65_536
# Texts with lists of numbers in cells, stamps of seconds and nanoseconds, or joint state messages.
_NESTED = re.compile(
    r"(?i)[\[(]\s*[-+.]?\d[^\[\]()\n]*[,; ][^\[\]()\n]*[\])]|nsecs?\b|nanosecs?\b"
    r"|\A\d+,\d+,[^,\n]*,[a-z_]\w*,"
)


def read_csv_table(path: Path, column_map: ColumnMap | None = None) -> Table:
    """Read a text table, with findings about invalid cells."""
    findings: list[Finding] = []
    data = _unpack(path, findings)
    if not findings and (table := _read_long_table(path, data, column_map)) is not None:
        return table
    return _read_table(path, data, column_map, findings)[0]


def _read_long_table(path: Path, data: bytes, column_map: ColumnMap | None) -> Table | None:
    """Table of a long text that holds numbers only after its first lines; None for any other."""
    cut = data.find(b"\n", _HEAD_BYTES) + 1
    if _kernel is None or not cut:
        return None
    try:
        head, (delimiter, decimal) = _read_table(path, data[:cut], column_map, [])
    except RecordingError:
        return None
    head_rows, columns = head.values.shape
    is_plain = len(delimiter) == 1 and delimiter != " " and delimiter.isascii()
    if not is_plain or decimal != "." or not np.all(np.isfinite(head.values)):
        return None
    values = np.empty((head_rows + data.count(b"\n", cut) + 1, columns))
    values[:head_rows] = head.values
    is_text = np.zeros(columns, bool)
    body_rows = _kernel.read_numbers(data, ord(delimiter), is_text, values[head_rows:], cut)
    if body_rows < 0:
        return None
    findings = list(head.findings)
    tail_text = data[-200_000:].decode("latin-1")
    rows = _complete_rows(head_rows + body_rows, tail_text, delimiter, ".", findings)
    return replace(head, values=values[: len(rows)], rows=rows, findings=tuple(findings))


def _complete_rows(
    count: int, text: str, delimiter: str, decimal: str, findings: list[Finding]
) -> Int[Array, " n"]:
    """Numbers of the rows, without a last one whose last cell may be cut off."""
    rows = np.arange(1, count + 1)
    if count < 2 or not _may_be_truncated(text, delimiter, decimal):
        return rows
    message = f"the last row ({count}) has no line break and its last cell may be cut off"
    findings.append(Finding("cut_row", "warning", message, "row dropped", rows=(count,)))
    return rows[:-1]


def _read_table(
    path: Path, data: bytes, column_map: ColumnMap | None, findings: list[Finding]
) -> tuple[Table, tuple[str, str]]:
    """Table of a text, and its delimiter and decimal mark; both "" for a dump."""
    text = _decode(data, path, findings)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    skip = column_map.skip_rows if column_map else 0
    comments, text = _split_comments("\n".join(text.split("\n")[skip:]) if skip else text)
    if not text.strip():
        raise RecordingError(f"{path} has no rows.")
    if "]" in text[:4096] and (dump := _dump_table(text, path, findings)) is not None:
        return dump, ("", "")
    text = _without_titles(_without_nested_cells(text), column_map, findings)
    delimiter, decimal, first, has_header = _text_layout(text, column_map)
    pages = [line for line in comments if line.startswith(META_MARK)]
    meta: dict[str, Any] = {"page": pages[0].removeprefix(META_MARK)} if pages else {}
    if has_header:
        names = _header_names(first, comments, delimiter)
        text = text.lstrip("\n").partition("\n")[2]
        text, units = _without_units(text, delimiter, decimal, findings)
        meta |= units
        names, text = _with_second_names(names, text, delimiter)
        if not text.strip():
            raise RecordingError(f"{path} has a header and no rows.")
    else:
        count = len(first) - (len(first) > 2 and not first[-1].strip())
        names = _names_from_comment(comments if not meta else [], delimiter, count)

    values, bad = _read_values(text, delimiter, decimal, names, findings)
    meta |= _joint_names(text, delimiter, names)
    rows = _complete_rows(len(values), text, delimiter, decimal, findings)
    values, bad = values[: len(rows)], [cell for cell in bad if cell[0] <= len(rows)]
    table = Table(str(path), names, values, rows, tuple(bad), meta, tuple(findings))
    return table, (delimiter, decimal)


def _without_nested_cells(text: str) -> str:
    """Text with one number per cell."""
    if not _NESTED.search(text[:4096]):
        return text
    from taufit.recording.readers.nested_cells import plain_table

    return plain_table(text)


def _dump_table(text: str, path: Path, findings: list[Finding]) -> Table | None:
    """Table of a dump with lines such as `q[0]:=1.5`; None for other texts."""
    from taufit.recording.readers.assignments import read_assignments

    arrays = read_assignments(text)
    if arrays is None:
        return None
    return replace(arrays_to_table(arrays, str(path)), findings=tuple(findings))


def _header_names(first: list[str], comments: list[str], delimiter: str) -> tuple[str, ...]:
    """Names in a header; those of a comment if it is a line of units or dashes."""
    names = tuple(cell.strip().strip('"') for cell in first)
    in_comment = _names_from_comment(comments, delimiter, len(first))
    return in_comment if len(set(names)) == 1 and any(in_comment) else names


def _names_from_comment(comments: list[str], delimiter: str, count: int) -> tuple[str, ...]:
    """Column names from the last comment line, if it has as many words as there are columns."""
    cells = split_cells(comments[-1].lstrip("#% "), delimiter) if comments else []
    return tuple(cell.strip() for cell in cells) if len(cells) == count else ("",) * count


def _text_layout(text: str, column_map: ColumnMap | None) -> tuple[str, str, list[str], bool]:
    """Delimiter, decimal mark, cells of the first line, and whether these are names."""
    head = [line for line in text[:65536].split("\n") if line.strip()][:_HEAD_LINES]
    delimiter = (column_map.delimiter if column_map else None) or _detect_delimiter(head)
    decimal = (column_map.decimal if column_map else None) or _detect_decimal(head, delimiter)
    first = split_cells(head[0], delimiter)
    declared = column_map.header if column_map else None
    has_header = _is_header(first, [split_cells(line, delimiter) for line in head[1:]], decimal)
    return delimiter, decimal, first, has_header if declared is None else declared


def _is_header(first: list[str], further: list[list[str]], decimal: str) -> bool:
    """Whether a line names columns: text in it stands above numbers, or above nothing else."""
    numbers = [_is_number(cell, decimal) for cell in first]
    if all(numbers):
        return False
    rows = [cells for cells in further if len(cells) == len(first)]
    for index, is_number in enumerate(numbers):
        below = [_is_number(cells[index], decimal) for cells in rows]
        if not is_number and first[index].strip() and (not below or sum(below) > 0.5 * len(below)):
            return True
    return not any(numbers)


def _is_number(cell: str, decimal: str) -> bool:
    return cell_number(cell, decimal)[1]


def _without_units(
    text: str, delimiter: str, decimal: str, findings: list[Finding]
) -> tuple[str, dict[str, list[str]]]:
    """Text without a line of units below the names, and the cells of this line as metadata."""
    units, _, further = text.partition("\n")
    if not further.strip() or any(_is_number(c, decimal) for c in split_cells(units, delimiter)):
        return text, {}
    message = f"a line without numbers below the names ({units[:60]!r})"
    findings.append(Finding("title_lines", "info", message, "not read"))
    return further, {"units": [cell.strip() for cell in split_cells(units, delimiter)]}


def _with_second_names(
    names: tuple[str, ...], text: str, delimiter: str
) -> tuple[tuple[str, ...], str]:
    """Names completed by a second line of them, if they repeat and its first cell is empty."""
    line, _, further = text.partition("\n")
    cells = [cell.strip().strip('"') for cell in split_cells(line, delimiter)]
    if len(set(names)) == len(names) or len(cells) != len(names) or cells[0]:
        return names, text
    joined = tuple(
        f"{name}_{cell}" if cell else name for name, cell in zip(names, cells, strict=True)
    )
    return (joined, further) if len(set(joined)) == len(joined) else (names, text)


def _read_values(
    text: str, delimiter: str, decimal: str, names: tuple[str, ...], findings: list[Finding]
) -> tuple[Float[Array, "n c"], list[tuple[int, int, str]]]:
    """Numbers of a table, NaN in text columns, and cells that are no numbers."""
    text = _without_last_separators(_without_remarks(text), delimiter, len(names))
    texts = _text_columns(text, delimiter, decimal, len(names))
    bad: list[tuple[int, int, str]] = []
    values = _read_numbers(text, delimiter, decimal, len(names), texts)
    if values is None:
        from taufit.recording.readers.single_cells import read_by_cells

        values, bad = read_by_cells(text, delimiter, decimal, len(names), texts)
    if texts:
        from taufit.recording.readers.single_cells import fill_time_stamps

        texts = texts - fill_time_stamps(values, text, delimiter, texts)
    if texts:
        labels = ", ".join(names[i] or str(i + 1) for i in sorted(texts))
        findings.append(
            Finding("text_columns", "info", f"columns {labels} hold no numbers", "not read")
        )
    return values, bad


def _joint_names(text: str, delimiter: str, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Joint names in text columns name0, name1, ..., the same in the first and the last row."""
    columns = [i for i, name in enumerate(names) if re.search(r"(?i)\bname\W?\d+\W*$", name)]
    if not columns:
        return {}
    lines = text.strip("\n")
    ends = [
        split_cells(line, delimiter)
        for line in (lines.partition("\n")[0], lines.rpartition("\n")[2])
    ]
    if any(len(cells) != len(names) for cells in ends):
        return {}
    first, last = ([cells[i].strip().strip('"') for i in columns] for cells in ends)
    return {"joint_names": first} if first == last and all(first) else {}


def _without_remarks(text: str) -> str:
    """Text without lines that start with # or %."""
    if "\n#" not in text and "\n%" not in text:
        return text
    return "\n".join(line for line in text.split("\n") if not line.startswith(("#", "%")))


def _without_last_separators(text: str, delimiter: str, columns: int) -> str:
    """Text without separators at the ends of lines, where every line has one too many."""
    head = [line for line in text[:65536].split("\n")[:-1] if line.strip()][:_HEAD_LINES]
    counts = [
        len(split_cells(line, delimiter)) for line in head if line.rstrip(" ").endswith(delimiter)
    ]
    if delimiter == " " or counts != [columns + 1] * len(head) or not head:
        return text
    return "\n".join(line.rstrip(" ").removesuffix(delimiter) for line in text.split("\n"))


def _without_titles(text: str, column_map: ColumnMap | None, findings: list[Finding]) -> str:
    """Text from its table on, without the title lines before it.

    The table begins with the first line of numbers that has as many cells as the lines after it;
    its header is the line before, if that has as many cells.
    """
    if column_map is not None and column_map.skip_rows:
        return text
    lines = text[:65536].split("\n")
    head = [line for line in lines if line.strip()][:_HEAD_LINES]
    tail = head[len(head) // 2 :]
    delimiter, decimal, _, _ = _text_layout("\n".join(tail), column_map)
    counts = [len(split_cells(line, delimiter)) for line in tail]
    width = max(set(counts), key=counts.count)

    def is_row(line: str) -> bool:
        cells = split_cells(line, delimiter)
        return len(cells) == width and any(_is_number(cell, decimal) for cell in cells)

    start = next((i for i, line in enumerate(lines) if is_row(line)), 0)
    above = [i for i in range(start) if lines[i].strip()]
    # The header, and names above a line of units.
    for tolerance in (1, 0):
        if above and width > 1 - tolerance:
            count = len(split_cells(lines[above[-1]], delimiter))
            if abs(count - width) > tolerance:
                break
            start, width = above.pop(), count
    if not above:
        return text
    message = f"{len(above)} lines before the table ({lines[above[0]].strip()[:60]!r})"
    findings.append(Finding("title_lines", "info", message, "not read"))
    return "\n".join(text.split("\n")[start:])


def _text_columns(text: str, delimiter: str, decimal: str, columns: int) -> frozenset[int]:
    """Columns without a number in the first lines and, at a few places, in the others."""
    lines = [line for line in text[:65536].split("\n") if line.strip()][:_HEAD_LINES]
    middle = len(text) // 2
    lines += [line for line in text[middle : middle + 16384].split("\n")[1:-1] if line.strip()]
    rows = [cells for line in lines if len(cells := split_cells(line, delimiter)) == columns]
    if len(rows) < 2:
        return frozenset()
    return frozenset(
        i
        for i in range(columns)
        if any(cells[i].strip() for cells in rows)
        and not any(_is_number(cells[i], decimal) for cells in rows)
    )


def _unpack(path: Path, findings: list[Finding]) -> bytes:
    data = read_bytes(path, error=RecordingError)
    if data[:2] != b"\x1f\x8b":
        return data
    # Members one by one, so that data before the damage can be read.
    packed, is_checked, out = data, limits_are_lifted(), bytearray()
    while data[:2] == b"\x1f\x8b":
        unzip = zlib.decompressobj(wbits=31)
        try:
            # In blocks: zlib returns nothing of a block that is damaged.
            for start in range(0, len(data), 4096):
                out += unzip.decompress(data[start : start + 4096])
                if not is_checked and len(out) > UNCHECKED_SIZE:
                    require_decompressed_size(path, packed, gzip_sizes)
                    is_checked = True
                if unzip.eof:
                    data = unzip.unused_data + data[start + 4096 :]
                    break
            is_complete = unzip.eof
        except zlib.error:
            is_complete = False
        if not is_complete:
            valid_bytes = out.rfind(b"\n") + 1
            if not valid_bytes:
                raise RecordingError(f"{path} is a damaged gzip file; nothing can be read from it.")
            findings.append(
                Finding(
                    "truncated",
                    "error",
                    "the gzip file is cut off or damaged",
                    f"kept the {valid_bytes} bytes before the damage",
                )
            )
            return bytes(out[:valid_bytes])
    return bytes(out)


def _decode(data: bytes, path: Path, findings: list[Finding]) -> str:
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        findings.append(
            Finding(
                "encoding",
                "warning",
                f"byte {error.start + 1} is not UTF-8",
                "the file is read as Latin-1; cells that are not numbers are left out",
            )
        )
        return data.decode("latin-1")


def _split_comments(text: str) -> tuple[list[str], str]:
    """Leading lines that start with # or %, and the text after them."""
    comments = []
    while True:
        line, _, following = text.partition("\n")
        if line.startswith(("#", "%")):
            comments.append(line)
        elif line.strip() or not following:
            return comments, text
        text = following


def _detect_delimiter(head: list[str]) -> str:
    """Separator that splits most lines into the same, largest number of cells."""
    best, score = ",", (0, 0)
    for delimiter in (",", ";", "\t", " "):
        counts = [len(split_cells(line, delimiter)) for line in head]
        # Blanks inside cells of a table with tabs or semicolons, as in dates with time.
        if delimiter == " " and best != "," and score[0] >= len(head) - 1:
            continue
        common_count = max(set(counts), key=counts.count)
        if common_count > 1 and (counts.count(common_count), common_count) > score:
            best, score = delimiter, (counts.count(common_count), common_count)
    # "0,5;1,7": every decimal comma would count as a separator too.
    if best == "," and all(";" in line for line in head):
        return ";"
    return best


def _detect_decimal(head: list[str], delimiter: str) -> str:
    if delimiter == ",":
        return "."
    cells = [cell for line in head[1:] for cell in split_cells(line, delimiter)]
    # Points in other cells, as in times of day, do not count.
    commas = sum("," in cell and _is_number(cell, ",") for cell in cells)
    return "," if commas > sum("." in cell and _is_number(cell, ".") for cell in cells) else "."


def split_cells(line: str, delimiter: str) -> list[str]:
    """Cells of a line."""
    return line.split() if delimiter == " " else line.split(delimiter)


def cell_number(cell: str, decimal: str = ".") -> tuple[float, bool]:
    """Number in a cell, and whether it is valid; NaN for an empty cell."""
    cell = cell.strip().strip('"')
    if decimal == ",":
        cell = cell.replace(",", ".")
    if "_" in cell:
        return np.nan, False
    try:
        return float(cell), True
    except ValueError:
        return np.nan, False


def _read_numbers(
    text: str, delimiter: str, decimal: str, columns: int, texts: frozenset[int]
) -> Float[Array, "n c"] | None:
    """Numbers of a table without invalid cells, NaN in text columns; None for any other."""
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    if '"' in text or "\x00" in text or len(delimiter) != 1 or not delimiter.isascii():
        return None
    if decimal == ",":
        text = text.replace(",", ".")
    if _kernel is None:
        from taufit.recording.readers.single_cells import read_numbers_in_python

        return read_numbers_in_python(text, delimiter, columns, texts)
    values = np.empty((text.count("\n") + 1, columns))
    is_text = np.array([i in texts for i in range(columns)])
    rows = _kernel.read_numbers(text.encode(), ord(delimiter), is_text, values)
    return None if rows < 0 else values[:rows]


def _may_be_truncated(text: str, delimiter: str, decimal: str) -> bool:
    """Whether the last cell may be a truncated number.

    False if a line break follows, or all cells of that column have equally many decimals.
    """
    if text.endswith("\n"):
        return False
    lines = [line for line in text[-200_000:].split("\n")[1:] if line.strip()]
    lines = lines or text.split("\n")
    decimals = []
    for line in lines[-200:]:
        cell = (split_cells(line, delimiter) or [""])[-1].strip()
        decimals.append(len(cell.partition(decimal)[2]) if "e" not in cell.lower() else -1)
    return len(decimals) < 2 or len(set(decimals)) > 1 or decimals[-1] < 1
