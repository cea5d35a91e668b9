"""What is fuzzed: for each family, a command line made from a seed."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, get_args, get_origin

import numpy as np
from tests.fuzz.damage import damaged, edited, edited_yaml

ARM = """name: two
convention: standard
mounting: ground
joints:
  - {name: one, d: 0.1, a: 0.0, alpha: 90, lower: -170, upper: 170, velocity: 180,
     acceleration: 500, torque: 60, mass: 4.0, com: [0, 0, 0.1], inertia: [0.05, 0.05, 0.03]}
  - {name: two, d: 0.0, a: 0.4, alpha: 0, lower: -170, upper: 170, velocity: 180,
     acceleration: 500, torque: 60, mass: 3.0, com: [-0.2, 0, 0], inertia: [0.01, 0.06, 0.06]}
angles: degrees
"""
MAP = """columns:
  time: t
  position: "q{joint}"
  velocity: "dq{joint}"
  torque: "tau{joint}"
joint_names: [one, two]
robot: two
rate_hz: 100
gains: 1
torque_side: motor
signed: true
notes: hello
"""
URDF = (
    '<robot name="two"><link name="base"/>'
    '<link name="l1"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="4"/>'
    '<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.03"/></inertial></link>'
    '<link name="l2"><inertial><origin xyz="0.2 0 0"/><mass value="3"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.06" iyz="0" izz="0.06"/></inertial></link>'
    '<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>'
    '<origin xyz="0 0 0.1" rpy="0 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="3" effort="60"/></joint>'
    '<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/>'
    '<origin xyz="0 0 0.1" rpy="1.57 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-3" upper="3" velocity="3" effort="60"/></joint></robot>'
)
NUMBERS = (
    "0", "-1", "1", "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "9" * 20, "-" + "9" * 20,
    "", "x", "0x10", "1__0", "٣", "1e", "3.5", "1,2,3", "\x1b[2J", "--", "2147483648",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Sound files of every kind, from one small simulated arm."""
    from taufit.cli import main
    from taufit.recording import read_recording, write_recording

    def run(*words: object) -> None:
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"{words} exits with {stop.code}") from None

    (folder / "arm.yaml").write_text(ARM)
    (folder / "arm.urdf").write_text(URDF)
    run("design", folder / "arm.yaml", "--seconds", "0.2", "--free-space", "--frequency-hz", "0.4",
        "-o", folder / "motion.json")  # fmt: skip
    run("simulate", folder / "arm.yaml", folder / "motion.json", "-o", folder / "run.parquet")
    run("fit", folder / "arm.yaml", folder / "run.parquet", "--friction", "linear",
        "--estimator", "consistent_sdp", "--force", "-o", folder / "model.json")  # fmt: skip
    recording = read_recording(folder / "run.parquet")
    for name in ("run.csv", "run.csv.gz", "run.npz", "run.mcap"):
        write_recording(recording, folder / name)
    write_recording(recording, folder / "bag")
    shutil.copy(next((folder / "bag").glob("*.mcap")), folder / "inner.mcap")
    count = 200
    time = np.arange(count) / 100
    q = np.stack([np.sin(time), np.cos(time)], axis=1)
    table = np.column_stack([time, q, np.gradient(q, 0.01, axis=0), 5 * q])
    text = "t,q1,q2,dq1,dq2,tau1,tau2\n"
    text += "".join(",".join(f"{x:.6f}" for x in row) + "\n" for row in table)
    (folder / "table.csv").write_text(text)
    (folder / "map.yaml").write_text(MAP)
    arrays = {"t": time, "q": q, "tau": 5 * q}
    import h5py
    import scipy.io

    scipy.io.savemat(folder / "run.mat", arrays, do_compression=True)
    with h5py.File(folder / "run.h5", "w") as file:
        for name, values in arrays.items():
            file[f"group/{name}"] = values
    for k in range(8):
        write_recording(recording, folder / f"healthy{k}.parquet")
    run("health", "baseline", folder / "model.json",
        *(folder / f"healthy{k}.parquet" for k in range(8)),
        "-o", folder / "history.json")  # fmt: skip


Case = Callable[[Path, Path, np.random.Generator], list[str]]


def model(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    data = (base / "model.json").read_bytes()
    path = work / "model.json"
    if rng.random() < 0.15:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    verb = rng.random()
    if verb < 0.82:
        # Units are compiled, so fewer of them.
        form = ("urdf", "mjcf", "c", "json")[rng.integers(4)] if rng.random() < 0.95 else "fmu"
        kind = ["--kind", ("inverse", "forward")[rng.integers(2)]] if form == "fmu" else []
        return ["export", str(path), "--format", form, *kind, "-o", str(work / f"out.{form}")]
    if verb < 0.92:
        return ["check", str(path), str(base / "run.parquet")]
    if verb < 0.97:
        return ["report", str(path), "-o", str(work / "page.html")]
    return ["payload", str(path), str(base / "run.parquet"), "--method", "static"]


def motion(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "motion.json"
    data = (base / "motion.json").read_bytes()
    if rng.random() < 0.2:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    return ["simulate", str(base / "arm.yaml"), str(path), "--preset", "clean",
            "-o", str(work / "out.parquet")]  # fmt: skip


def history(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "history.json"
    data = (base / "history.json").read_bytes()
    if rng.random() < 0.2:
        path.write_bytes(damaged(data, rng))
    else:
        path.write_text(edited(json.loads(data), rng), errors="surrogatepass")
    return ["health", "check", str(path), "--json"]


def column_map(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "map.yaml"
    if rng.random() < 0.2:
        path.write_bytes(damaged(MAP.encode(), rng))
    else:
        path.write_text(edited_yaml(MAP, rng), errors="surrogatepass")
    return ["convert", str(base / "table.csv"), "--map", str(path), "-o", str(work / "out.csv")]


def robot(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "arm.yaml"
    if rng.random() < 0.2:
        path.write_bytes(damaged(ARM.encode(), rng))
    else:
        path.write_text(edited_yaml(ARM, rng), errors="surrogatepass")
    return ["inspect", str(path), "--json"]


def urdf(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    path = work / "arm.urdf"
    text = URDF
    if rng.random() < 0.4:
        path.write_bytes(damaged(text.encode(), rng))
    else:
        parts = text.split('"')
        for _ in range(int(rng.integers(1, 4))):
            at = 1 + 2 * int(rng.integers(len(parts) // 2))
            parts[at] = ("", "nan", "1e308", "-1", "x", "0 0", "0 0 0", "1e999", "l1", "base",
                         "&#27;", "&lt;", "fixed", "9" * 500)[rng.integers(14)]  # fmt: skip
        path.write_text('"'.join(parts))
    return ["inspect", str(path), "--json"]


RECORDINGS = (
    "run.parquet",
    "run.csv",
    "run.csv.gz",
    "run.npz",
    "run.h5",
    "inner.mcap",
    "table.csv",
)


def recording(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    # MATLAB files are read in a process of their own, so fewer of them.
    name = "run.mat" if rng.random() < 0.01 else RECORDINGS[rng.integers(len(RECORDINGS))]
    path = work / name
    path.write_bytes(damaged((base / name).read_bytes(), rng))
    words = ["convert", str(path), "-o", str(work / "out.csv")]
    return [*words, "--map", str(base / "map.yaml")] if name == "table.csv" else words


def options(base: Path, work: Path, rng: np.random.Generator) -> list[str]:
    """Every numeric option of every verb, with values nobody means."""
    found = [(verb, name) for verb, names in numeric_options().items() for name in names]
    verb, name = found[rng.integers(len(found))]
    arm, run, fitted = (str(base / x) for x in ("arm.yaml", "run.parquet", "model.json"))
    out = ["-o", str(work / "out.json")]
    words = {
        "inspect": [arm],
        "design": [arm, "--free-space", "--seconds", "0.1", *out],
        "simulate": [arm, "--preset", "clean", "-o", str(work / "out.parquet")],
        "convert": [run, "-o", str(work / "out.csv")],
        "fit": [arm, run, "--friction", "linear", "--estimator", "ols", *out],
        "check": [fitted, run],
        "payload": [fitted, run, "--method", "static"],
        "export": [fitted, *out],
        "report": [fitted, "-o", str(work / "page.html")],
    }[verb]
    return [verb, *words, f"{name}={NUMBERS[rng.integers(len(NUMBERS))]}"]


@cache
def numeric_options() -> dict[str, list[str]]:
    """Options that take a number, by verb, as the commands declare them."""
    from taufit.cli.options.spread import spread

    out: dict[str, list[str]] = {}
    for verb in ("inspect", "design", "simulate", "convert", "fit", "check", "payload", "export",
                 "report"):  # fmt: skip
        command = import_module(f"taufit.cli.{verb}").command
        out[verb] = []
        for name, kind in inspect.get_annotations(spread(command)).items():
            inner, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
            if not {int, float} & {inner, *get_args(inner)}:
                continue
            given = [x for note in notes for x in getattr(note, "param_decls", None) or ()]
            flags = [x for x in given if x.startswith("--")]
            out[verb].append(flags[0] if flags else "--" + name.replace("_", "-"))
    return out


FAMILIES: dict[str, Case] = {
    "model": model,
    "motion": motion,
    "history": history,
    "map": column_map,
    "robot": robot,
    "urdf": urdf,
    "recording": recording,
    "options": options,
}
# Of 100 cases; motions are simulated and options run whole verbs, so they cost most.
SHARES = {"model": 20, "motion": 4, "history": 12, "map": 14, "robot": 14, "urdf": 12,
          "recording": 21, "options": 3}  # fmt: skip
