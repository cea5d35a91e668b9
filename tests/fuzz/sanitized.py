"""`make sanitize`: the kernel's tests and its fuzzing on a build that watches every access.

The package is laid out anew beside the watched module, so that the ordinary build stays as it is.
Leaks count where the kernel is in the stack; what the interpreter keeps until its end does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sanitize"
TESTS = (
    "tests/dynamics/test_batch.py",
    "tests/signs/test_sign_search.py",
    "tests/signs/test_sign_tree.py",
    "tests/signals/test_recursive_filter.py",
    "tests/friction/test_presliding.py",
    "tests/payload/test_payload_parts.py",
    "tests/contact/test_external_torque.py",
    "tests/contact/test_friction_states.py",
    "tests/signals/test_intake.py",
)
_CHILD = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if not hasattr(f, "known_source_files")]
sys.path[:0] = [{site!r}, {root!r}]
import taufit._kernel
assert taufit._kernel.__file__.startswith({site!r}), taufit._kernel.__file__
{work}
"""


def build() -> Path:
    cmake_dir = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-DTAUFIT_SANITIZE=ON"]
    configure += ["-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run([*configure, f"-Dnanobind_DIR={cmake_dir}"], check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", BUILD, "-j", "2"], check=True, stdout=sys.stderr)
    site = BUILD / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "taufit", site / "taufit")
    (module,) = BUILD.glob("_kernel*" + sysconfig.get_config_var("EXT_SUFFIX"))
    shutil.copy(module, site / "taufit")
    return site


def watched(site: Path, work: str, log: Path) -> int:
    """Exit code of a child under the sanitizers; its findings go to `log`.*"""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        )
        libraries.append(os.path.realpath(found.stdout.strip()))
    env = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": f"detect_leaks=1:exitcode=0:halt_on_error=1:log_path={log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={log}",
        "LSAN_OPTIONS": "max_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    code = _CHILD.format(site=str(site), root=str(ROOT), work=work)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=False).returncode


def findings(folder: Path) -> list[str]:
    """Errors, and leaks with the kernel in their stack."""
    out = []
    for file in sorted(folder.glob("log.*")):
        text = file.read_text(errors="replace")
        blocks = re.split(r"\n\n", text)
        for block in blocks:
            error = re.search(r"ERROR: AddressSanitizer|runtime error:", block)
            leak = re.search(r"(Direct|Indirect) leak", block) and "_kernel" in block
            if error or leak:
                out.append(f"{file.name}: {block.strip()[:1500]}")
    return out


def main() -> int:
    site = build()
    logs = BUILD / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    tests = [name for name in TESTS if (ROOT / name).exists()]
    words = ["-q", "-x", "-p", "no:xdist", *tests]
    codes = [
        watched(site, f"import pytest; sys.exit(pytest.main({words!r}))", logs / "log"),
        watched(
            site,
            "from tests.fuzz.binding import main; sys.argv[1:] = ['--cases', '20000']; main()",
            logs / "log",
        ),
    ]
    found = findings(logs)
    for text in found:
        print(text)
    print(f"sanitizers: exit codes {codes}, {len(found)} findings")
    return 1 if found or any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
