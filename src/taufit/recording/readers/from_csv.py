"""Text tables separated by comma, tab, semicolon or space, optionally gzip-compressed.

Valid files are read with pyarrow; others are read cell by cell, so that every invalid cell is
reported with row, column and text.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np

from taufit.core.bounded_reading import read_bytes
from taufit.core.decompression_limits import limits_are_lifted
from taufit.core.errors import RecordingError
from taufit.recording.column_map import ColumnMap
from taufit.recording.decompressed_size import gzip_sizes, require_decompressed_size
from taufit.recording.finding import Finding
from taufit.recording.table import Table

META_MARK = "# taufit "
# Largest number of invalid cells that are listed.
MAX_BAD_CELLS = 100_000


def read_csv_table(path: Path, column_map: ColumnMap | None = None) -> Table:
    """Read a text table, with findings about invalid cells."""
    findings: list[Finding] = []
    text = _decode(_unpack(path, findings), path, findings)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    skip = column_map.skip_rows if column_map else 0
    comments, text = _split_comments("\n".join(text.split("\n")[skip:]) if skip else text)
    if not text.strip():
        raise RecordingError(f"{path} has no rows.")

    delimiter, decimal, first, has_header = _text_layout(text, column_map)
    pages = [line for line in comments if line.startswith(META_MARK)]
    meta = {"page": pages[0].removeprefix(META_MARK)} if pages else {}
    if has_header:
        names = tuple(cell.strip().strip('"') for cell in first)
        text = text.lstrip("\n").partition("\n")[2]
        if not text.strip():
            raise RecordingError(f"{path} has a header and no rows.")
    else:
        names = _names_from_comment(comments if not meta else [], delimiter, len(first))

    values, bad = (
        _read_with_arrow(text, delimiter, decimal, len(names)),
        list[tuple[int, int, str]](),
    )
    if values is None:
        values, bad = _read_by_cells(text, delimiter, decimal, len(names))
    rows = np.arange(1, len(values) + 1)
    if len(values) > 1 and _may_be_truncated(text, delimiter, decimal):
        findings.append(
            Finding(
                "cut_row",
                "warning",
                f"the last row ({rows[-1]}) has no line break and its last cell may be cut off",
                "row dropped",
                rows=(int(rows[-1]),),
            )
        )
        values, rows = values[:-1], rows[:-1]
        bad = [*filter(lambda cell: cell[0] <= rows[-1], bad)]
    return Table(str(path), names, values, rows, tuple(bad), meta, tuple(findings))


def _names_from_comment(comments: list[str], delimiter: str, count: int) -> tuple[str, ...]:
    """Column names from the last comment line, if it has as many words as there are columns."""
    cells = _cells(comments[-1].lstrip("#% "), delimiter) if comments else []
    return tuple(cell.strip() for cell in cells) if len(cells) == count else ("",) * count


def _text_layout(text: str, column_map: ColumnMap | None) -> tuple[str, str, list[str], bool]:
    """Delimiter, decimal mark, cells of the first line, and whether these are names."""
    head = [line for line in text[:65536].split("\n") if line.strip()][:50]
    delimiter = (column_map.delimiter if column_map else None) or _detect_delimiter(head)
    decimal = (column_map.decimal if column_map else None) or _detect_decimal(head, delimiter)
    first = _cells(head[0], delimiter)
    declared = column_map.header if column_map else None
    has_header = not all(_number(cell, decimal)[1] for cell in first)
    return delimiter, decimal, first, has_header if declared is None else declared


def _unpack(path: Path, findings: list[Finding]) -> bytes:
    data = read_bytes(path, error=RecordingError)
    if data[:2] != b"\x1f\x8b":
        return data
    if not limits_are_lifted():
        require_decompressed_size(path, data, gzip_sizes)
    # Members one by one, so that data before the damage can be read.
    out = bytearray()
    while data[:2] == b"\x1f\x8b":
        unzip = zlib.decompressobj(wbits=31)
        try:
            # In blocks: zlib returns nothing of a block that is damaged.
            for start in range(0, len(data), 4096):
                out += unzip.decompress(data[start : start + 4096])
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
        counts = [len(_cells(line, delimiter)) for line in head]
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
    body = "".join(head[1:])
    return "," if "," in body and "." not in body else "."


def _cells(line: str, delimiter: str) -> list[str]:
    return line.split() if delimiter == " " else line.split(delimiter)


def _number(cell: str, decimal: str = ".") -> tuple[float, bool]:
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


def _read_with_arrow(text: str, delimiter: str, decimal: str, columns: int):
    import pyarrow as pa
    from pyarrow import csv

    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    if '"' in text or "\x00" in text:
        return None
    names = [str(i) for i in range(columns)]
    try:
        table = csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(
                delimiter=delimiter, quote_char=False, newlines_in_values=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64()),
                null_values=[],
                decimal_point=decimal,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    values = np.empty((table.num_rows, columns))
    for i, column in enumerate(table.columns):
        offset = 0
        for chunk in column.chunks:
            # Straight from the buffer: to_numpy would import pandas where it is installed.
            buffer = np.frombuffer(chunk.buffers()[1], np.float64, chunk.offset + len(chunk))
            values[offset : offset + len(chunk), i] = buffer[chunk.offset :]
            offset += len(chunk)
    return values


def _read_by_cells(text: str, delimiter: str, decimal: str, columns: int):
    rows: list[list[float]] = []
    bad: list[tuple[int, int, str]] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        cells = _cells(line, delimiter)
        if len(cells) == columns + 1 and not cells[-1].strip():
            # Some loggers end every line with a separator.
            cells = cells[:-1]
        number = len(rows) + 1
        if len(cells) != columns:
            rows.append([np.nan] * columns)
            if len(bad) < MAX_BAD_CELLS:
                bad.append((number, -1, f"{len(cells)} cells instead of {columns}"))
            continue
        numbers = []
        for index, cell in enumerate(cells):
            value, is_valid = _number(cell, decimal)
            numbers.append(value)
            if not is_valid and len(bad) < MAX_BAD_CELLS:
                bad.append((number, index, cell.strip()))
        rows.append(numbers)
    return np.array(rows, float).reshape(len(rows), columns), bad


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
        cell = (_cells(line, delimiter) or [""])[-1].strip()
        decimals.append(len(cell.partition(decimal)[2]) if "e" not in cell.lower() else -1)
    return len(decimals) < 2 or len(set(decimals)) > 1 or decimals[-1] < 1
