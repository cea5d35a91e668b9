"""FMU archive: description, sources, and a binary if this machine has a compiler."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

from taufit.core.errors import TaufitError
from taufit.core.files import replace_file
from taufit.core.process_cleanup import temporary_folder
from taufit.export.consistency_check import require_feasible
from taufit.export.export_format import ExportFormat, ExportResult
from taufit.export.fmu.unit import FMI_VERSIONS, KINDS, SOURCES, FmuSources, make_unit
from taufit.model.fitted_model import FittedModel, require_fitted

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
# Fixed time of archive entries, so that equal models give equal bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def fmu_format(fmi: str = "2.0", kind: str = "inverse") -> ExportFormat:
    """Entry of `EXPORTS` for an FMI version and a kind of unit."""
    return ExportFormat(".fmu", partial(write_fmu, fmi=fmi, kind=kind), is_samplewise=True)


def write_fmu(
    model: FittedModel, path: Path, *, fmi: str = "2.0", kind: str = "inverse"
) -> ExportResult:
    """Write a unit for co-simulation.

    Args:
        model: Fitted model.
        path: Archive to write.
        fmi: FMI version, 2.0 or 3.0.
        kind: inverse (motion in, torque out) or forward (torque in, motion out).
    """
    require_fitted(model, "export")
    if fmi not in FMI_VERSIONS or kind not in KINDS:
        raise TaufitError(
            f"a unit of FMI {fmi}, {kind!r}, is not known: use FMI {' or '.join(FMI_VERSIONS)}, "
            f"{' or '.join(KINDS)}."
        )
    if kind == "forward":
        require_feasible(model.robot)
    unit = make_unit(model, fmi, kind)
    folder, binary, note = compile_unit(unit)
    with replace_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _put(archive, "modelDescription.xml", unit.description.encode())
        for name, text in unit.sources.items():
            _put(archive, f"sources/{name}", text.encode())
        if binary is not None:
            _put(archive, f"binaries/{folder}/{unit.identifier}{_ending()}", binary)
    return ExportResult((Path(path),), (), () if note is None else (note,))


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
    archive.writestr(entry, content)


def _ending() -> str:
    return ".dylib" if sys.platform == "darwin" else ".so"


def _platform(fmi: str) -> str | None:
    """FMI name of this platform; None if it has none or no binary is built."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform)
    machine = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}.get(
        platform.machine()
    )
    if system is None or machine is None:
        return None
    if fmi == "3.0":
        return f"{machine}-{system}"
    return f"{system}64" if machine == "x86_64" else None


def compile_unit(unit: FmuSources) -> tuple[str, bytes | None, str | None]:
    """Platform folder, bytes of the library, and the reason if there are none."""
    folder = _platform(unit.fmi)
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    sources_note = "The archive holds sources alone; importers that compile them can use it."
    if folder is None:
        return "", None, f"No binary is written for this platform. {sources_note}"
    if compiler is None:
        return folder, None, f"No C compiler was found for a binary. {sources_note}"
    with temporary_folder() as work:
        for name, text in unit.sources.items():
            (work / name).write_text(text, encoding="utf-8")
        # File names without directory: no paths of this machine in the binary.
        command = [compiler, *_FLAGS, "-o", "unit.so", *SOURCES, "-lm"]
        process = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300)
        if process.returncode:
            message = (process.stderr.strip().splitlines() or ["no message"])[0][:200]
            return folder, None, f"The C compiler refused the sources ({message}). {sources_note}"
        return folder, (work / "unit.so").read_bytes(), None
