"""Cells of the benchmark: one arm and tool in all tasks.

A cell has a value, a failure with its message, or a reason why it does not apply. Tasks with the
same training rows share one fit.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open import scores
from benchmarks.open.arm import TASKS, Arm, Section, coupling_of, description_of, read_section
from benchmarks.open.run import Run, to_arrays
from benchmarks.open.tool import Tool, ToolFailure, answer
from benchmarks.pinocchio_arm import arrays_of

UNITS = dict.fromkeys(TASKS, "nrmse") | {
    "payload": "% of the mass",
    "contact": "N",
    "servo replay": "mrad",
}
WITHOUT = {
    "payload_mass": "no payload identification",
    "export": "no export of a model",
    "fit_servo": "needs torque",
}


def measure(name: str, arm: Arm, tool: Tool, data: Path) -> list[dict[str, Any]]:
    """All cells of an arm and a tool."""
    groups: dict[tuple[Section, ...], list[str]] = defaultdict(list)
    out = {}
    for task in TASKS:
        split = arm.split(task)
        if split is None:
            reason = arm.why_not.get(task, WHY_NOT.get(task, "no such recording"))
            out[task] = {"not_applicable": reason}
        elif task == "servo replay":
            out[task] = servo_cell(name, arm, tool, data)
        else:
            groups[split.training].append(task)
    for training, tasks in groups.items():
        out |= torque_cells(name, arm, tool, data, training, tasks)
    return [{"arm": name, "tool": tool.name, "task": task, **out[task]} for task in TASKS]


WHY_NOT = {
    "payload": "no run with a documented payload",
    "contact": "no torque is recorded",
    "export": "no torque is recorded",
    "servo replay": "no task: torque is recorded, and commands are not",
}


def torque_cells(
    name: str, arm: Arm, tool: Tool, data: Path, training: tuple[Section, ...], tasks: list[str]
) -> dict[str, dict[str, Any]]:
    """Cells that one fit serves."""
    runs = [read_section(arm, data, section) for section in training]
    tests = {task: [read_section(arm, data, s) for s in arm.split(task).test] for task in tasks}  # type: ignore[union-attr]
    shared = job_of(name, arm, data, training)
    unseen = [t for t in tasks if t not in ("payload", "contact", "export")]
    blind = [replace(r, torque=None, recorded_torque=None) for t in unseen for r in tests[t]]
    job = shared | saved("training", runs) | saved("test", blind)
    job |= saved("payload", tests.get("payload", []))
    if "export" in tasks:
        job["export"] = np.array(True)
    try:
        found = answer(tool, job)
    except ToolFailure as failure:
        return {task: {"failure": clean(str(failure))} for task in tasks}
    every = [found[f"test.{k}"] for k in range(len(blind))]
    predicted = {}
    for task in unseen:
        predicted[task], every = every[: len(tests[task])], every[len(tests[task]) :]
    common = {"cpu_s": round(float(found["cpu"]), 2)}
    if str(found["note"]):
        common["note"] = clean(str(found["note"]))
    out = {}
    for task in tasks:
        if task in unseen:
            cell = joint_cell(scores.joint_nrmse(tests[task], predicted[task]))
        elif task == "contact":
            force = scores.phantom_force(shared, tests["unseen motion"], predicted["unseen motion"])
            cell = {"value": float(f"{force:.4g}"), "unit": UNITS[task]}
        elif task == "payload":
            cell = payload_cell(found, [s.mass for s in arm.splits["payload"].test])
        else:
            cell = export_cell(found, tests["unseen motion"])
            if "not_applicable" in cell and "export" in tool.reasons:
                cell["not_applicable"] = tool.reasons["export"]
        out[task] = cell if "not_applicable" in cell else cell | common
    return out


def job_of(name: str, arm: Arm, data: Path, training: tuple[Section, ...]) -> dict[str, Any]:
    """Arm as tools get it."""
    from taufit.robot import read_robot

    description = description_of(arm, data)
    job: dict[str, Any] = arrays_of(read_robot(description))
    job |= {
        "name": np.array(name),
        "description": np.array(description),
        "torque_source": np.array(arm.torque_source),
        "cutoff_hz": np.array(arm.cutoff_hz),
    }
    coupling = coupling_of(arm, data, training[0])
    return job if coupling is None else job | {"coupling": coupling}


def saved(kind: str, runs: list[Run]) -> dict[str, Any]:
    """Runs of a kind as arrays."""
    out: dict[str, Any] = {f"{kind}.count": np.array(len(runs))}
    for k, run in enumerate(runs):
        out |= to_arrays(run, f"{kind}.{k}")
    return out


def servo_cell(name: str, arm: Arm, tool: Tool, data: Path) -> dict[str, Any]:
    """Replay of commands; of test runs a tool gets the first position alone."""
    split = arm.splits["servo replay"]
    runs = [read_section(arm, data, section) for section in split.training]
    tests = [read_section(arm, data, section) for section in split.test]
    job = job_of(name, arm, data, split.training) | {"servo": np.array(1)}
    job |= saved("training", runs) | saved("test", [blind_replay(run) for run in tests])
    try:
        found = answer(tool, job | saved("payload", []))
    except ToolFailure as failure:
        return {"failure": clean(str(failure))}
    if "missing" in found:
        return {"not_applicable": tool.reasons.get("servo replay", WITHOUT["fit_servo"])}
    positions = [found[f"test.{k}"][:, : len(job["screws"])] for k in range(len(tests))]
    cell = joint_cell(scores.replay_error(tests, positions), "mrad")
    return cell | {"cpu_s": round(float(found["cpu"]), 2)}


def blind_replay(run: Run) -> Run:
    """Run whose positions are all the first one."""
    first = np.repeat(run.recorded_position[:1], len(run.recorded_position), 0)
    grid = np.zeros_like(run.q)
    nothing = {"torque": None, "recorded_torque": None, "recorded_velocity": None}
    return replace(run, q=grid, v=grid, a=grid, recorded_position=first, **nothing)  # type: ignore[arg-type]


def joint_cell(values: np.ndarray, unit: str = "nrmse") -> dict[str, Any]:
    """Mean over joints and the figure of each."""
    joints = [None if np.isnan(v) else float(f"{v:.4g}") for v in values]
    return {"value": float(f"{np.nanmean(values):.4g}"), "unit": unit, "joints": joints}


def payload_cell(found: dict[str, Any], masses: list[float]) -> dict[str, Any]:
    """Error of the masses, or why there is none."""
    if "payload.0.missing" in found:
        return {"not_applicable": WITHOUT["payload_mass"]}
    failures = [str(found[k]) for k in found if k.startswith("payload.") and k.endswith(".failure")]
    if failures:
        return {"failure": clean(failures[0])}
    estimates = [float(found[f"payload.{k}"]) for k in range(len(masses))]
    listed = ", ".join(f"{m:.3f} of {t:g} kg" for m, t in zip(estimates, masses, strict=True))
    return {"value": scores.mass_error(estimates, masses), "unit": UNITS["payload"], "note": listed}


def export_cell(found: dict[str, Any], tests: list[Run]) -> dict[str, Any]:
    """Exported file in MuJoCo, or why there is none."""
    if "export.missing" in found:
        return {"not_applicable": WITHOUT["export"]}
    if "export.failure" in found:
        message = str(found["export.failure"])
        if message.startswith("NotImplementedError: "):
            return {"not_applicable": message.partition(": ")[2]}
        return {"failure": clean(message)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.xml"
        file.write_text(found["export"])
        try:
            return joint_cell(scores.joint_nrmse(tests, scores.exported_torque(file, tests)))
        except ValueError as error:
            return {"failure": clean(str(error))}


def clean(message: str) -> str:
    """First lines of a message, without folders of this machine."""
    words = (
        Path(w).name if w.startswith("/") and len(Path(w).parts) > 2 else w for w in message.split()
    )
    return " ".join(words)[:300]


def describe(arm: Arm) -> dict[str, Any]:
    """Arm as the results have it."""
    keys = ("title", "source", "licence", "torque", "cutoff_hz")
    return {key: getattr(arm, key) for key in keys}


def to_line(cell: dict[str, Any]) -> str:
    """One cell for the terminal."""
    head = f"{cell['arm']:9} {cell['tool']:13} {cell['task']:16}"
    if "failure" in cell:
        return f"{head} failed: {cell['failure'][:90]}"
    if "not_applicable" in cell:
        return f"{head} -"
    return f"{head} {cell['value']:9.4g} {cell['unit']:14} {cell['cpu_s']:7.1f} CPU s"
