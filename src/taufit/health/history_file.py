"""Health history file, which grows run by run and allows several writers.

`add_runs` reads the newest state and writes the next one under the file's lock; each state is
flushed to disk before it replaces the old one. A writer that is killed loses its own runs only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from taufit.core.arrays import Array, Float
from taufit.core.errors import TaufitError
from taufit.core.fields import Field
from taufit.core.file_lock import lock_file
from taufit.core.files import is_stream, write_text
from taufit.core.plain_data import read_json
from taufit.health.cusum import MAX_SLACK
from taufit.health.history import MIN_RUNS, History, HistoryRun
from taufit.model.model_file import model_from_dict, model_to_dict
from taufit.signals.samples import Samples

FORMAT = "taufit-health"
VERSION = 1
_MAX_VALUE = 1e9


def write_history(history: History, path: str | os.PathLike[str]) -> None:
    """Write the history; the file is replaced completely or not at all."""
    exists = os.path.exists(path) and not os.path.isdir(path) and not is_stream(path)
    with lock_file(path) if exists else nullcontext():
        _write_file(history, path)


def add_runs(
    path: str | os.PathLike[str],
    runs: Sequence[tuple[str, Samples]],
    *,
    sha256: Sequence[str] = (),
    expected: History | None = None,
) -> History:
    """Add runs to a history file, safe against other writers; return the written history.

    Args:
        path: History file.
        runs: Names and samples, conditioned like the model's training data.
        sha256: Hashes of the files, to detect repeated ones.
        expected: History the samples were conditioned for; raises if the file has another model.
    """
    read_history(path)
    with lock_file(path):
        history = read_history(path)
        if expected is not None and not _same_model(history, expected):
            raise TaufitError(
                f"{path} was started again with another model meanwhile; nothing was added. Run "
                "the command again."
            )
        for (name, samples), digest in zip(runs, sha256 or [""] * len(runs), strict=True):
            history = history.with_run(name, samples, sha256=digest)
        _write_file(history, path, update=True)
    return history


def read_history(path: str | os.PathLike[str]) -> History:
    """Read a history file."""
    if not Path(path).exists():
        raise TaufitError(
            f"there is no history {path}. `taufit health baseline MODEL RECORDING... -o {path}` "
            "starts one."
        )
    data = read_json(path, "a health history")
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise TaufitError(
            f"{path} is not a health history. `taufit health baseline` writes one; a model alone "
            "is not enough."
        )
    if data.get("version") != VERSION:
        raise TaufitError(
            f"{path} has history version {str(data.get('version'))[:40]}; this taufit reads "
            f"{VERSION}."
        )
    file = Field(data, str(path))
    model = model_from_dict(file["model"].required().mapping(), f"the model in {path}")
    joints = model.robot.joints
    runs = tuple(_read_run(entry, joints) for entry in file["runs"].required().items())
    healthy = file["healthy"].required().number()
    if not MIN_RUNS <= healthy <= len(runs) or healthy != int(healthy):
        file["healthy"].fail(f"a count between {MIN_RUNS} and the {len(runs)} runs")
    rate = file["rate"].required().number(above=0.0)
    slack = file["slack"].required().number(above=0.0)
    if slack > MAX_SLACK:
        file["slack"].fail(f"at most {MAX_SLACK:g} standard deviations")
    if rate > 0.1:
        file["rate"].fail("at most 0.1 false alarms per run")
    return History(
        model,
        int(healthy),
        _read_joint_values(file["speed"].required(), joints),
        _read_joint_values(file["level"].required(), joints),
        rate,
        slack,
        runs,
    )


def _read_joint_values(
    data: Field, joints: int, missing: float | None = None
) -> Float[Array, " j"]:
    """One number per joint, of limited size."""
    limits = {} if missing is None else {"missing": missing}
    values = data.numbers(joints, **limits)
    if np.any(np.abs(np.nan_to_num(values)) > _MAX_VALUE):
        data.fail(f"numbers of at most {_MAX_VALUE:g}")
    return values


def _same_model(history: History, other: History) -> bool:
    a, b = history.model, other.model
    return (
        a.values is not None
        and b.values is not None
        and np.array_equal(a.values, b.values)
        and np.array_equal(history.speed, other.speed)
    )


def _write_file(history: History, path: str | os.PathLike[str], *, update: bool = False) -> None:
    """Write the file, one line per run."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "healthy": history.healthy,
        "rate": history.rate,
        "slack": history.slack,
        "speed": history.speed.tolist(),
        "level": history.level.tolist(),
        "model": model_to_dict(history.model),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    runs = ",\n  ".join(json.dumps(_run_to_dict(run), allow_nan=False) for run in history.runs)
    text = "{\n" + ",\n".join(lines) + f',\n "runs": [\n  {runs}\n ]\n}}\n'
    write_text(path, text, update=update)


_ARRAYS = ("index", "std", "temperature", "speed", "load")


def _run_to_dict(run: HistoryRun) -> dict[str, Any]:
    out: dict[str, Any] = {"name": run.name, "added": run.added, "sha256": run.sha256}
    for key in _ARRAYS:
        out[key] = [float(x) if np.isfinite(x) else None for x in getattr(run, key)]
    return out


def _read_run(entry: Field, joints: int) -> HistoryRun:
    arrays = {
        key: _read_joint_values(entry[key].required(), joints, None if key == "index" else np.nan)
        for key in _ARRAYS
    }
    return HistoryRun(
        name=entry["name"].required().text(),
        sha256=entry["sha256"].text(""),
        added=entry["added"].text(""),
        **arrays,
    )
