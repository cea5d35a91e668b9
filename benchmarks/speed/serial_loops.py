"""The batch loops of serial arms against those of the commit before trees, in one process.

The kernel's loops of both commits are built here, the older one twice: the ratio of two copies of
the same loops is the noise of the comparison. Needs git history, cmake and a C++ compiler.

    python -m benchmarks speed.serial_loops
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from shutil import which
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import Row
from taufit.robot import read_robot

BEFORE_TREES = "69d3576f^"
PAIRS, SAMPLES = 2000, 264
_CMAKE = """cmake_minimum_required(VERSION 3.18)
project(loops LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(nanobind CONFIG REQUIRED)
find_package(Threads REQUIRED)
file(GLOB SOURCES kernel/regressor*.cpp)
nanobind_add_module({name} NB_DOMAIN {name} NB_STATIC ${{SOURCES}} module.cpp)
target_link_libraries({name} PRIVATE Threads::Threads)
target_compile_options({name} PRIVATE -O3 -fno-math-errno)
target_compile_definitions({name} PRIVATE TAUFIT_X86)
set_source_files_properties(kernel/regressor_avx2.cpp PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
set_source_files_properties(kernel/regressor_avx512.cpp PROPERTIES COMPILE_OPTIONS
  "-mavx2;-mfma;-mavx512f;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
"""
_MODULE = """#include <nanobind/nanobind.h>
void bind_regressor(nanobind::module_& m);
NB_MODULE({name}, m) {{ bind_regressor(m); }}
"""


def rows() -> Iterator[Row]:
    if which("cmake") is None or which("git") is None:
        yield Row("skipped: needs git and cmake", 0.0)
        return
    with tempfile.TemporaryDirectory() as folder:
        commits = {"old": BEFORE_TREES, "copy": BEFORE_TREES, "present": "HEAD"}
        kernels = [built_loops(Path(folder), name, commit) for name, commit in commits.items()]
        for robot in ("ur10", "panda"):
            yield from _arm(robot, kernels)


def built_loops(folder: Path, name: str, commit: str) -> Any:
    """Module with the loops of a commit."""
    place = folder / name
    place.mkdir()
    archive = subprocess.run(["git", "archive", commit, "kernel"], check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", place], input=archive.stdout, check=True)
    (place / "CMakeLists.txt").write_text(_CMAKE.format(name=name))
    (place / "module.cpp").write_text(_MODULE.format(name=name))
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    settings = [f"-Dnanobind_DIR={nanobind}", f"-DPython_EXECUTABLE={sys.executable}"]
    build = place / "build"
    for command in (
        ["cmake", "-S", place, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *settings],
        ["cmake", "--build", build],
    ):
        subprocess.run(command, check=True, capture_output=True)
    (file,) = build.glob(f"{name}*.so")
    spec = spec_from_loader(name, ExtensionFileLoader(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _arm(name: str, kernels: list[Any]) -> Iterator[Row]:
    robot = read_robot(name)
    joints, size = robot.joints, robot.layout.size
    states = [
        np.ascontiguousarray(x)
        for x in np.random.default_rng(0).uniform(-3.0, 3.0, (3, SAMPLES, joints))
    ]
    geometry = (
        np.ascontiguousarray(robot.placements),
        np.ascontiguousarray(robot.screws),
        np.array(robot.gravity),
        robot.parameters.reshape(joints, -1),
    )
    engines = [kernel.Engine(*geometry) for kernel in kernels]
    place = np.arange(joints * size, dtype=np.int64).reshape(joints, size) * SAMPLES
    # One page-aligned buffer for all: aliasing of stores alone moves ratios.
    memory = np.zeros(SAMPLES * joints * size + 512)
    first = (-memory.ctypes.data % 4096) // 8
    flat = memory[first : first + SAMPLES * joints * size]
    cube = flat.reshape(SAMPLES, joints, size)
    calls: dict[str, list[Callable[[], object]]] = {
        "regressor": [lambda e=e: e.regressor(*states, cube, 1, False) for e in engines],
        "columns": [lambda e=e: e.columns(*states, 0, SAMPLES, place, None, flat) for e in engines],
    }
    for loop, work in calls.items():
        results = []
        for each in work:
            flat[:] = 0.0
            each()
            results.append(flat.copy())
        yield Row(
            f"{name}: {loop}, entries that differ from before trees",
            *(float(np.count_nonzero(results[2] != results[0])), "", "<= 0"),
            f"N = {SAMPLES}, {engines[2].instructions}",
        )
        noise, ratio = _ratios(work)
        note = f"copy of the old loops {noise:.3f} x; medians of {PAIRS} interleaved rounds"
        yield Row(f"{name}: {loop} over before trees", ratio, "x", "<= 1.03", note)


def _ratios(work: list[Callable[[], object]]) -> tuple[float, float]:
    """Median time of copy and present loops over the old ones, in rounds of changing order."""
    times = np.empty((PAIRS, len(work)))
    for k in range(PAIRS):
        for i in np.roll(np.arange(len(work)), k):
            start = perf_counter()
            work[i]()
            times[k, i] = perf_counter() - start
    _, noise, ratio = np.median(times / times[:, :1], axis=0)
    return float(noise), float(ratio)
