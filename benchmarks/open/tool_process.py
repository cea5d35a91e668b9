"""One tool on one training set, in a process of its own.

    python -m benchmarks.open.tool_process TOOL job.npz answer.npz

The job has the arm, training runs `training.K`, test runs `test.K` without torque, loaded runs
`payload.K` with it, and what is asked for; the answer has predictions, masses and an exported file,
or the message of the step that failed.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.run import Run, from_arrays


def main(name: str, job: str, answer: str) -> None:
    tool = importlib.import_module(f"benchmarks.open.tools.{name}")
    given = dict(np.load(job))
    runs = {
        kind: [from_arrays(given, f"{kind}.{k}") for k in range(int(given[f"{kind}.count"]))]
        for kind in ("training", "test", "payload")
    }
    out = replay_positions(tool, given, runs) if "servo" in given else torques(tool, given, runs)
    np.savez(answer, **{key: np.asarray(value) for key, value in out.items()})


def torques(tool: Any, given: dict[str, Any], runs: dict[str, list[Run]]) -> dict[str, Any]:
    """Predicted torque of test runs, masses of payloads, exported file."""
    start = time.process_time()
    model = tool.fit(given, runs["training"])
    out: dict[str, Any] = {"cpu": time.process_time() - start}
    out["note"] = getattr(model, "note", "")
    for k, run in enumerate(runs["test"]):
        out[f"test.{k}"] = tool.predict(model, run)
    for k, run in enumerate(runs["payload"]):
        attempt(out, f"payload.{k}", tool, "payload_mass", model, run)
    if "export" in given:
        attempt(out, "export", tool, "export", model, given, Path(str(given["folder"])))
    return out


def replay_positions(
    tool: Any, given: dict[str, Any], runs: dict[str, list[Run]]
) -> dict[str, Any]:
    """Positions (m, j) at recorded times, from commands alone."""
    if not hasattr(tool, "fit_servo"):
        return {"missing": "fit_servo"}
    start = time.process_time()
    model = tool.fit_servo(given, runs["training"])
    out: dict[str, Any] = {"cpu": time.process_time() - start}
    return out | {f"test.{k}": tool.replay(model, run) for k, run in enumerate(runs["test"])}


def attempt(out: dict[str, Any], key: str, tool: Any, step: str, *arguments: Any) -> None:
    """Result of an optional step under a key, or the message of its failure."""
    if not hasattr(tool, step):
        out[f"{key}.missing"] = step
        return
    function: Callable[..., Any] = getattr(tool, step)
    try:
        out[key] = function(*arguments)
    except Exception as error:
        out[f"{key}.failure"] = f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
