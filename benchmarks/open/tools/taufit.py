"""taufit with its defaults: `identify`, `identify_payload`, `export_model`, `identify_servo`.

A recording that taufit refuses is fitted with `ignore_contradictions`, as its message proposes, and
the cell has the message.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import taufit
from benchmarks.open.run import Run
from taufit.core.errors import TaufitError
from taufit.model.predict import predicted_torque
from taufit.payload import identify_payload
from taufit.servo.identify import identify_servo
from taufit.servo.motion import commanded_motions
from taufit.workflow import condition_for_model

TITLE = "taufit"
PACKAGES = ("taufit",)
SETTINGS = "defaults; CPU time includes conditioning, checks of the recording and intervals"


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Model, arm and what taufit had to say about the recording."""

    model: Any
    arm: Any
    note: str


def fit(arm: Any, runs: list[Run]) -> Fitted:
    robot = taufit.read_robot(str(arm["description"]))
    recordings = [to_recording(arm, run, run.recorded_torque) for run in runs]
    cutoff_hz, note = float(arm["cutoff_hz"]), ""
    try:
        result = taufit.identify(robot, recordings, cutoff_hz=cutoff_hz)
    except TaufitError as error:
        note = f"refused at first: {error}"
        result = taufit.identify(robot, recordings, cutoff_hz=cutoff_hz, ignore_contradictions=True)
    return Fitted(result.model, arm, note)


def predict(fitted: Fitted, run: Run) -> np.ndarray:
    """Torque of the model on the recorded motion, low-passed as the model's training data."""
    time, q = run.recorded_time, run.recorded_position
    v = np.gradient(q, time, axis=0) if run.recorded_velocity is None else run.recorded_velocity
    a = np.gradient(v, time, axis=0)
    step = float(np.median(np.diff(time)))
    torque = fitted.model.torque(q, v, a, step=step)
    samples = condition_for_model(fitted.model, [to_recording(fitted.arm, run, torque)])
    predicted = predicted_torque(fitted.model, samples)
    at = run.time - run.recorded_time[0]
    return np.stack([np.interp(at, samples.time, column) for column in predicted.T], 1)


def payload_mass(fitted: Fitted, run: Run) -> float:
    recording = to_recording(fitted.arm, run, run.recorded_torque)
    return float(identify_payload(fitted.model, recording).estimate.mass)


def export(fitted: Fitted, arm: Any, folder: Path) -> str:
    file = folder / "arm.xml"
    taufit.export_model(fitted.model, file)
    return str(file)


def fit_servo(arm: Any, runs: list[Run]) -> Any:
    return identify_servo(str(arm["description"]), [to_commands(run) for run in runs]).model


def replay(model: Any, run: Run) -> np.ndarray:
    (motion,) = commanded_motions(model.robot, [to_commands(run)])
    at = run.recorded_time - run.recorded_time[0]
    time = motion.step * np.arange(len(motion.position))
    return np.stack([np.interp(at, time, column) for column in model.replay(motion).T], 1)


def to_recording(arm: Any, run: Run, torque: np.ndarray | None) -> taufit.Recording:
    """Recording with joint torque; of coupled motors that of the motors."""
    assert torque is not None
    coupling = arm.get("coupling")
    return taufit.Recording(
        run.recorded_time - run.recorded_time[0],
        run.recorded_position,
        torque if coupling is None else torque @ np.linalg.inv(coupling),
        run.recorded_velocity,
        torque_source=str(arm["torque_source"]),
        coupling=coupling,
    )


def to_commands(run: Run) -> taufit.Recording:
    """Recording of commands and positions."""
    return taufit.Recording(
        run.recorded_time,
        run.recorded_position,
        np.zeros_like(run.recorded_position),
        torque_source="none",
        commanded_position=run.recorded_command,
    )
