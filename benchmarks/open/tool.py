"""Tools: what their files declare, the interpreter that has them, and their process."""

from __future__ import annotations

import ast
import os
import pkgutil
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.arm import ROOT

FOLDER = Path(__file__).parent / "tools"
ENVIRONMENTS = ROOT / "build" / "peers"
# A fit with all its predictions may take so long [CPU s] and so much memory [bytes].
CPU_LIMIT_S = 240
MEMORY_LIMIT = 6 * 2**30


@dataclass(frozen=True, slots=True)
class Tool:
    """Declaration of a tool, read from its file without importing it.

    Attributes:
        name: Name of its file.
        title: In the tables.
        packages: What `install` asks the package index for.
        settings: How it is used, in words.
        reasons: Reason by task for what it does not do.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    settings: str
    reasons: Mapping[str, str]


class ToolFailure(Exception):
    """Tool that ended without an answer; the message is its own."""


def load_tools(names: list[str] | None = None) -> dict[str, Tool]:
    """Tools by the name of their file; taufit first."""
    known = sorted(
        (m.name for m in pkgutil.iter_modules([str(FOLDER)])), key=lambda n: (n != "taufit", n)
    )
    for name in names or ():
        if name not in known:
            raise SystemExit(f"tool {name} not found. Available: {', '.join(known)}.")
    return {name: declared(name) for name in known if not names or name in names}


def declared(name: str) -> Tool:
    """Constants at the top of a tool's file."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("TITLE", "PACKAGES", "SETTINGS", "REASONS")
    }
    return Tool(
        name,
        values["TITLE"],
        values["PACKAGES"],
        values["SETTINGS"],
        values.get("REASONS", {}),
    )


def describe(tool: Tool) -> dict[str, Any]:
    """Declaration as the results have it."""
    return {"title": tool.title, "packages": list(tool.packages), "settings": tool.settings}


def interpreter(tool: Tool) -> str:
    """Python that has the tool: PEER_<NAME>_PYTHON, build/peers/<NAME>, or this one."""
    environment = ENVIRONMENTS / tool.name / "bin" / "python"
    named = os.environ.get(f"PEER_{tool.name.upper()}_PYTHON")
    return named or (str(environment) if environment.exists() else sys.executable)


def install(tools: Mapping[str, Tool]) -> None:
    """Environment for each tool in build/peers, from the package index."""
    import venv

    for tool in tools.values():
        if tool.name == "taufit":
            continue
        venv.create(ENVIRONMENTS / tool.name, with_pip=True)
        python = str(ENVIRONMENTS / tool.name / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", *tool.packages, "scipy"], check=False)


def answer(tool: Tool, job: Mapping[str, Any]) -> dict[str, Any]:
    """Answer of a tool's process to a job, within the limits."""
    settings = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=str(ROOT))
    python = interpreter(tool)
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "job.npz", Path(folder) / "answer.npz"
        np.savez(given, **{**job, "folder": folder})
        command = [python, "-W", "ignore", "-m", "benchmarks.open.tool_process", tool.name]
        done = subprocess.run(
            [*command, str(given), str(out)],
            capture_output=True,
            text=True,
            cwd=folder,
            env=settings,
            preexec_fn=limit,
            check=False,
        )
        if not out.exists():
            raise ToolFailure(message_of(done))
        found = dict(np.load(out))
        if "export" in found:
            found["export"] = Path(str(found["export"])).read_text("utf-8")
        return found


def limit() -> None:
    """Limit CPU time and memory of the process that calls it."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def message_of(done: subprocess.CompletedProcess[str]) -> str:
    """Last line that a failed process has written, or the limit that ended it."""
    if done.returncode in (-9, -24):
        return f"not finished within {CPU_LIMIT_S} s of CPU time"
    lines = done.stderr.strip().splitlines()
    last = lines[-1] if lines else f"ended with code {done.returncode}"
    return f"not installed: {last}" if last.startswith("ModuleNotFoundError") else last
