"""Exported C, compiled and called from Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from taufit.export.c import c_name, c_texts
from taufit.export.c.friction import memory_entries

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
POINTER = ctypes.POINTER(ctypes.c_double)


def compiler(name: str = "cc") -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def written(folder: Path, model, stem: str = "arm") -> Path:
    """The texts as files; the source's path."""
    texts = c_texts(model, stem)
    for ending, text in (
        (".c", texts.source),
        (".h", texts.header),
        (".hpp", texts.cpp_header),
        (".cmake", texts.cmake),
    ):
        (folder / f"{stem}{ending}").write_text(text)
    return folder / f"{stem}.c"


class Compiled:
    """A model's C functions on arrays, one sample a call."""

    def __init__(self, folder: Path, model, optimise: str = "-O0", cc: str = "cc") -> None:
        source = written(folder, model)
        library = folder / "libarm.so"
        command = [compiler(cc), *STRICT, optimise, "-shared", "-fPIC", "-o", str(library)]
        subprocess.run([*command, str(source), "-lm"], check=True)
        self.library = ctypes.CDLL(str(library))
        self.name, self.joints = c_name(model), model.robot.joints
        self.state = ctypes.create_string_buffer(8 * (self.joints * memory_entries(model) + 1))

    def call(self, function: str, *arguments) -> None:
        given = [
            x.ctypes.data_as(POINTER)
            if isinstance(x, np.ndarray)
            else ctypes.c_double(x)
            if isinstance(x, float)
            else x
            for x in arguments
        ]
        getattr(self.library, f"{self.name}_{function}")(*given)

    def run(self, q, v, a, step: float, temperature=None) -> np.ndarray:
        """`step` over a run, sample by sample, from the start."""
        tau = np.empty_like(q)
        self.call("start", self.state)
        for i in range(len(q)):
            warm = None if temperature is None else temperature[i]
            self.call("step", self.state, q[i], v[i], a[i], warm, step, tau[i])
        return tau
