"""The .fmu archive: description, sources, and a binary where this machine can compile one."""

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
from taufit.export.export_format import ExportFormat, ExportResult
from taufit.export.feasible import require_feasible
from taufit.export.fmu.unit import FMI_VERSIONS, KINDS, SOURCES, FmuSources, unit_of
from taufit.model.fitted_model import FittedModel, require_fitted

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
# The same bytes from the same model: entries carry no time of their own.
_TIME = (1980, 1, 1, 0, 0, 0)


def fmu_form(fmi: str = "2.0", kind: str = "inverse") -> ExportFormat:
    """The entry of `EXPORTS`, for a version of FMI and a kind of unit."""
    return ExportFormat(".fmu", partial(write_fmu, fmi=fmi, kind=kind), stepped=True)


def write_fmu(
    model: FittedModel, path: Path, *, fmi: str = "2.0", kind: str = "inverse"
) -> ExportResult:
    """Write a unit for co-simulation.

    Args:
        model: A fitted model.
        path: Of the archive.
        fmi: 2.0 or 3.0.
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
    unit = unit_of(model, fmi, kind)
    folder, binary, note = compiled(unit)
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
    """The standard's name for this machine; None where it has none, or taufit does not build."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform)
    machine = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}.get(
        platform.machine()
    )
    if system is None or machine is None:
        return None
    if fmi == "3.0":
        return f"{machine}-{system}"
    return f"{system}64" if machine == "x86_64" else None


def compiled(unit: FmuSources) -> tuple[str, bytes | None, str | None]:
    """Folder, bytes of the library, and why there are none."""
    folder = _platform(unit.fmi)
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    lacks = "The archive holds sources alone; importers that compile them can use it."
    if folder is None:
        return "", None, f"No binary is written for this platform. {lacks}"
    if compiler is None:
        return folder, None, f"No C compiler was found for a binary. {lacks}"
    with temporary_folder() as work:
        for name, text in unit.sources.items():
            (work / name).write_text(text, encoding="utf-8")
        # Names without a directory: nothing of this machine gets into the binary.
        command = [compiler, *_FLAGS, "-o", "unit.so", *SOURCES, "-lm"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=300)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no message"])[0][:200]
            return folder, None, f"The C compiler refused the sources ({said}). {lacks}"
        return folder, (work / "unit.so").read_bytes(), None
