"""CONTRIBUTING's worked examples applied to a copy of the repository, and the suite run there.

    python -m tests.packaging.contributing_copy                       # the whole suite
    python -m tests.packaging.contributing_copy tests/export -x       # a part of it

The copy holds what git tracks, lies in a temporary folder beside a link to the shared recordings,
and has an environment of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTED = "tests/recording/test_listed_readers.py"
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+?)(?:, in (\w+))?\n(.*?)```", re.S)


def copy_repository(folder: Path) -> Path:
    """Copy of all tracked files, with their present contents."""
    copy = folder / "taufit"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, copy / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    shared = ROOT.parent / "shared"
    if shared.is_dir():
        (folder / "shared").symlink_to(shared)
    return copy


def apply_examples(copy: Path) -> list[str]:
    """Add every file and entry of the page as a contributor would; returns the paths touched."""
    page = (copy / "CONTRIBUTING.md").read_text("utf-8")
    touched = []
    for path, registry, text in BLOCK.findall(page):
        file = copy / path
        if not registry:
            if file.exists():
                raise SystemExit(f"{path} exists already: choose another example")
            file.write_text(f"{text}" if file.suffix != ".yaml" else text, "utf-8")
        else:
            file.write_text(
                _with_entry(file.read_text("utf-8"), registry, text.strip(), page), "utf-8"
            )
        touched.append(path)
    # The example is no longer new: the page's own test would refuse its files.
    (copy / "tests" / "test_contributing.py").unlink()
    return touched


def _with_entry(source: str, registry: str, entry: str, page: str) -> str:
    """The module with one more entry in a table, and the import of the entry where it is a name."""
    opening = re.search(rf"^{registry}\b[^\n]*= (?:Registry\(\n    )?\{{\n", source, re.M)
    if opening is None:
        raise SystemExit(f"{registry} was not found where the page says")
    indent = " " * (8 if "Registry(" in opening.group() else 4)
    source = source[: opening.end()] + f"{indent}{entry}\n" + source[opening.end() :]
    value = entry.split(": ", 1)[1].rstrip(",")
    if value.isidentifier():
        module = next(
            path.removeprefix("src/").removesuffix(".py").replace("/", ".")
            for path, name, text in BLOCK.findall(page)
            if not name and re.search(rf"^{value}\b", text, re.M)
        )
        source = re.sub(
            r"^from taufit\.",
            f"from {module} import {value}\nfrom taufit.",
            source,
            count=1,
            flags=re.M,
        )
    return source


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="contributing-") as folder:
        copy = copy_repository(Path(folder))
        print("\n".join(apply_examples(copy)), flush=True)
        subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
        subprocess.run(["make", "-s", "setup"], cwd=copy, check=True)
        python = copy / ".venv" / "bin" / "python"
        subprocess.run(
            [python, "-m", "ruff", "check", "-q", "--fix", "src", LISTED], cwd=copy, check=True
        )
        subprocess.run([python, "-m", "ruff", "format", "-q", "src", LISTED], cwd=copy, check=True)
        run = [python, "-m", "pytest", "-n", "2", "--dist", "loadfile", *arguments]
        return subprocess.run(run, cwd=copy, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
