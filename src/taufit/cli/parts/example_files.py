"""Small example files for all commands: a simulated UR10e, recorded on several days."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taufit.core.files import replace_file, write_text

if TYPE_CHECKING:
    from taufit.recording import Recording
    from taufit.robot import Robot

ROBOT = "ur10e"
# Drive gains of the example log [N m/A].
_GAINS = (11.9, 11.9, 9.8, 10.7, 10.7, 10.7)
_MAP = f"""\
# What the columns of log.csv.gz and other_log.csv.gz are.
robot: {ROBOT}
columns:
  time: {{columns: stamp, unit: ms}}
  position: {{columns: "angle{{joint}}", unit: deg}}
  velocity: {{columns: "speed{{joint}}", unit: deg/s}}
  current: {{columns: "amps{{joint}}", unit: A}}
gains: {list(_GAINS)}          # N m at the joint per ampere
"""


def write_example_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Write the files one by one; yield name and description of each."""
    import taufit
    from taufit.sim import CarriedPayload, random_fourier

    robot = taufit.read_robot(ROBOT)
    twin = taufit.Twin.typical(robot)
    names = {"run.parquet": "a run to fit", "other_day.parquet": "a run to test with"}
    names["third_day.parquet"] = "another one"
    runs = []
    for seed, (name, description) in enumerate(names.items()):
        runs.append(twin.run(random_fourier(robot, seed=seed), seed=seed).recording)
        taufit.write_recording(runs[-1], folder / name)
        yield name, description
    mass = CarriedPayload.lump(3.5, (0.0, 0.0, 0.03))
    loaded = twin.run(random_fourier(robot, seed=1), seed=5, payload=mass).recording
    taufit.write_recording(loaded, folder / "loaded.parquet")
    yield "loaded.parquet", "the same arm with 3.5 kg in its gripper"
    for name, run in (("log.csv.gz", runs[0]), ("other_log.csv.gz", runs[1])):
        _write_log(run, folder / name)
        yield name, "a foreign log: degrees, milliseconds, amperes"
    write_text(folder / "columns.yaml", _MAP)
    yield "columns.yaml", "what the columns of those logs are"
    taufit.write_recording(runs[0], folder / "run.mcap")
    yield "run.mcap", "the first run as joint states of ROS 2"
    result = taufit.identify(robot, folder / "run.parquet", holdout=folder / "other_day.parquet")
    taufit.write_model(result.model, folder / "model.json")
    yield "model.json", "the model that `taufit fit` makes of the first run"
    yield from _write_robots(robot, folder)
    for k, name in enumerate(("other_day.parquet", "third_day.parquet"), 1):
        day = folder / "plant" / f"arm_{k}" / "2026-11-02.parquet"
        with replace_file(day) as copy:
            shutil.copyfile(folder / name, copy)
    yield "plant/", "recordings of two arms by robot and day, as of a fleet"


def _write_log(recording: Recording, path: Path) -> None:
    velocity = recording.velocity
    assert velocity is not None
    joints = range(1, recording.joints + 1)
    header = [f"{channel}{j}" for channel in ("angle", "speed", "amps") for j in joints]
    columns = [
        1e3 * recording.time[:, None],
        np.rad2deg(recording.position),
        np.rad2deg(velocity),
        recording.signal / np.array(_GAINS),
    ]
    with replace_file(path) as unfinished, gzip.open(unfinished, "wt", encoding="utf-8") as file:
        file.write(",".join(["stamp", *header]) + "\n")
        np.savetxt(file, np.hstack(columns), delimiter=",", fmt="%.6f")


def _write_robots(robot: Robot, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the robot as URDF and as DH table."""
    import taufit
    from taufit.robot import write_robot

    write_robot(robot, folder / "my_arm.yaml")
    yield "my_arm.yaml", "the arm as a table of joints and links"
    taufit.export_model(taufit.read_model(folder / "model.json"), folder / "my_arm.urdf")
    yield "my_arm.urdf", "the arm as URDF"
