"""Containers of named arrays: .npz, MATLAB .mat, HDF5. Each becomes a table of named columns.

An array of n numbers is one column; n x j (or j x n) numbers are the columns name_1 ... name_j.
Names of structures and groups are joined with a dot. The array of a .npy file is a table without
header, or, if it is structured, one of named columns.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array
from taufit.core.decompression_limits import MAX_UNPACKED, limits_are_lifted, require_unpacked_size
from taufit.core.errors import RecordingError
from taufit.core.extras import missing_extra
from taufit.recording.assemble import assemble_recordings
from taufit.recording.canonical import from_columns, has_canonical_names, metadata_from_text
from taufit.recording.column_map import ColumnMap
from taufit.recording.decompressed_size import require_mat_size
from taufit.recording.recording import Recording
from taufit.recording.table import Table, arrays_to_table, column_map_required

META_NAME = "taufit"
_NUMPY_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    MemoryError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    OverflowError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
_HDF5_MARK = b"\x89HDF\r\n\x1a\n"


def read_npz(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read a NumPy .npz file."""
    arrays: dict[str, Array] = {}
    page = None
    try:
        _check_zip(path)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise ValueError("it holds one array without a name")
            for name in archive.files:
                if name == META_NAME:
                    page = metadata_from_text(str(archive[name]), str(path))
                else:
                    arrays |= _fields(archive[name], name)
    except RecordingError:
        raise
    except _NUMPY_ERRORS as error:
        raise RecordingError(f"{path} cannot be read as .npz: {str(error)[:200]}.") from None
    return _recordings(arrays, page, path, column_map)


def _fields(array: Array, name: str) -> dict[str, Array]:
    """Fields of a structured array, each a column or block; else the array itself."""
    if array.dtype.names is None:
        return {name: array}
    return {f"{name}.{field}" if name else field: array[field] for field in array.dtype.names}


def read_npy(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read a NumPy .npy file: a table without header, or the fields of a structured array."""
    try:
        if zipfile.is_zipfile(path):
            raise ValueError("it is a .npz file")
        array = np.load(path, allow_pickle=False)
    except _NUMPY_ERRORS as error:
        raise RecordingError(f"{path} cannot be read as .npy: {str(error)[:200]}.") from None
    if array.dtype.names is not None:
        return _recordings(_fields(array, ""), None, path, column_map)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.size:
        raise RecordingError(
            f"{path} holds {'x'.join(map(str, array.shape)) or 'no'} values of type {array.dtype}; "
            "a table of numbers with one row per sample is needed, or an .npz file of named arrays."
        )
    # More rows than columns: samples are many, channels few.
    values = np.asarray(array if len(array) >= array.shape[1] else array.T, float)
    table = Table(str(path), ("",) * values.shape[1], values, np.arange(1, len(values) + 1))
    if column_map is None:
        raise column_map_required(table)
    return assemble_recordings(table, column_map)


def _check_zip(path: Path) -> None:
    """Check the sizes in an archive's directory, which bind its reader."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
        unpacked = sum(part.file_size for part in parts)
        require_unpacked_size(path, unpacked, path.stat().st_size, error=RecordingError)


def read_mat(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read a MATLAB file: up to v7 with SciPy, v7.3 as HDF5."""
    try:
        with path.open("rb") as file:
            head = file.read(520)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}.") from None
    if _HDF5_MARK in (head[:8], head[512:520]):
        return read_hdf5(path, column_map)
    require_mat_size(path)
    # SciPy's reader may crash on a damaged file, so it runs in its own process.
    command = [
        sys.executable,
        "-P",
        "-c",
        _MAT_CHILD,
        str(path),
        "0" if limits_are_lifted() else str(4 * MAX_UNPACKED),
    ]
    process = subprocess.run(command, capture_output=True, check=False)
    if process.returncode == _MAT_IS_HDF5:
        return read_hdf5(path, column_map)
    if process.returncode != 0:
        lines = process.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1][:200] if lines and process.returncode > 0 else "the file is damaged"
        raise RecordingError(f"{path} cannot be read as .mat: {reason}.")
    with np.load(io.BytesIO(process.stdout), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return _recordings(arrays, None, path, column_map)


_MAT_IS_HDF5 = 73
# Writes arrays by name, structures joined with dots, as .npz to stdout.
_MAT_CHILD = f"""
import io, sys
import numpy as np
import scipy.io
try:
    import resource
    most = int(sys.argv[2])
    if most:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
except (ImportError, ValueError, OSError):
    pass
try:
    content = scipy.io.loadmat(sys.argv[1], simplify_cells=True)
except NotImplementedError:
    sys.exit({_MAT_IS_HDF5})
def leaves(content, prefix=""):
    for name, value in content.items():
        is_list = isinstance(value, list) or getattr(value, "dtype", 0) == object
        items = list(value) if is_list else []
        if isinstance(value, dict):
            yield from leaves(value, prefix + name + ".")
        elif items and all(isinstance(item, dict) for item in items):
            # An array of structures: one per sample if its fields are numbers, else one per joint.
            fields = [key for key in items[0] if all(key in item for item in items)]
            single = [key for key in fields if all(np.ndim(item[key]) == 0 for item in items)]
            courses = {{key: [item[key] for item in items] for key in single}}
            yield from leaves(courses, prefix + name + ".")
            for number, item in enumerate(items, 1) if len(items) <= 32 else ():
                nested = {{key: item[key] for key in fields if key not in single}}
                yield from leaves(nested, prefix + name + str(number) + ".")
        elif items and all(getattr(item, "ndim", 0) == 1 for item in items) and len(items) <= 32:
            # A cell array of courses, one per joint.
            courses = {{f"{{name}}_{{k}}": item for k, item in enumerate(items, 1)}}
            yield from leaves(courses, prefix)
        else:
            try:
                array = np.asarray(value)
            except ValueError:
                continue
            if array.dtype.kind in "fiub":
                yield prefix + name, array
found = dict(leaves({{k: v for k, v in content.items() if not k.startswith("__")}}))
out = io.BytesIO()
np.savez(out, **found)
sys.stdout.buffer.write(out.getvalue())
"""


def read_hdf5(path: Path, column_map: ColumnMap | None = None) -> list[Recording]:
    """Read an HDF5 file including groups."""
    try:
        import h5py
    except ImportError:
        raise missing_extra("hdf5", f"{path} is HDF5; reading it") from None
    arrays: dict[str, Array] = {}

    datasets: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
            # Data in other files are not part of this recording.
            return
        if item.dtype.kind in "fiub" and item.ndim in (1, 2):
            datasets[name.strip("/").replace("/", ".")] = item

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
            size_bytes = 8 * sum(int(item.size) for item in datasets.values())
            require_unpacked_size(path, size_bytes, path.stat().st_size, error=RecordingError)
            for name, item in datasets.items():
                arrays[name] = np.asarray(item[()], float)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise RecordingError(f"{path} cannot be read as HDF5: {str(error)[:200]}.") from None
    return _recordings(arrays, None, path, column_map)


def _recordings(
    arrays: dict[str, Array],
    page: dict[str, Any] | None,
    path: Path,
    column_map: ColumnMap | None,
) -> list[Recording]:
    table = arrays_to_table(arrays, str(path))
    columns = {name: table.values[:, i] for i, name in enumerate(table.names)}
    if column_map is None and (page is not None or has_canonical_names(table.names)):
        return [from_columns(columns, page, str(path))]
    if column_map is None:
        raise column_map_required(table)
    return assemble_recordings(table, column_map)
