"""Files of simulated runs: names, and continuation of an earlier run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from taufit.core.errors import TaufitError

if TYPE_CHECKING:
    from taufit.sim import Twin


def truth_path(recording: Path) -> Path:
    """NAME.truth.json beside NAME.parquet, with any dots in NAME."""
    return recording.with_name(_split_suffix(recording)[0] + ".truth.json")


def number_file(path: Path, number: int) -> Path:
    """Path with a number: NAME_003.parquet."""
    stem, ending = _split_suffix(path)
    return path.with_name(f"{stem}_{number:03d}{ending}")


def _split_suffix(path: Path) -> tuple[str, str]:
    """Recording name without suffix, and the suffix."""
    from taufit.recording.write import WRITERS

    for ending in sorted(WRITERS, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return path.name[: -len(ending)], path.name[-len(ending) :]
    return path.name, ""


def continue_run(twin: Twin, run: Path) -> Twin:
    """Copy of a twin with the final temperatures of an earlier run.

    Motor and housing temperature come from the truth file beside a simulated run; a recording
    without one gives the last sensor values for both.
    """
    import numpy as np

    thermal = twin.effects.thermal
    if thermal is None:
        raise TaufitError(
            f"--after {run}: nothing warms this arm. Use a preset with heat (ur5-warmup), or give "
            "`thermal` in --effects."
        )
    truth = truth_path(run)
    if truth.exists():
        from taufit.core.fields import Field
        from taufit.core.plain_data import read_json

        page = Field(read_json(truth, "the truth of a simulated run"), str(truth))
        joints = twin.robot.joints
        motor = page["temperature_end"].numbers(joints)
        housing = page["housing_end"].numbers(joints)
    else:
        from taufit.recording import read_recording, reorder_joints

        recording = reorder_joints(
            read_recording(run), twin.robot.joint_names, robot=twin.robot.name
        )
        if recording.temperature is None:
            raise TaufitError(
                f"--after {run}: it has no joint temperatures, and there is no {truth.name} beside "
                "it. Give a simulated run with heat."
            )
        rows = np.isfinite(recording.temperature).all(axis=1)
        if not rows.any():
            raise TaufitError(f"--after {run}: its joint temperatures are not numbers.")
        motor = housing = np.asarray(recording.temperature[rows][-1], float)
    initial_thermal = replace(
        thermal, initial=np.asarray(motor), initial_housing=np.asarray(housing)
    )
    return replace(twin, effects=replace(twin.effects, thermal=initial_thermal))
