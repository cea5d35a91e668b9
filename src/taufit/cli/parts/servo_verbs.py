"""Servo models in `taufit check`, `export`, `payload` and `simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from taufit.cli.common import print_json
from taufit.cli.options import RecordingOptions
from taufit.core.errors import TaufitError


def check_servo(
    path: Path, recordings: Sequence[Path], source: RecordingOptions, as_json: bool
) -> None:
    """Score a servo model on further recordings; exit code 1 on FAIL."""
    from taufit.cli.servo import run_to_dict
    from taufit.servo.identify import compare_run, run_warnings, verdict_of
    from taufit.servo.model import read_servo_model
    from taufit.servo.motion import commanded_motions

    model = read_servo_model(path)
    runs = [run for item in recordings for run in source.read(item)]
    scored = [compare_run(model, m) for m in commanded_motions(model.robot, runs)]
    verdict, warnings = verdict_of(scored), run_warnings(model, scored)
    if as_json:
        files = [run_to_dict(run) for run in scored]
        print_json({"files": files, "verdict": verdict, "warnings": warnings})
    else:
        for run in scored:
            print(
                f"{run.name}: replay {1e3 * run.model.mean_rms:.1f} mrad, command itself "
                f"{1e3 * run.command.mean_rms:.1f}, nominal actuator "
                f"{1e3 * run.nominal.mean_rms:.1f}"
            )
        for warning in warnings:
            print(f"Warning: {warning}.")
        print(verdict)
    if verdict == "FAIL":
        raise typer.Exit(1)


def export_servo(
    path: Path,
    format: str,
    output: Path | None,
    holdout: Sequence[Path],
    source: RecordingOptions,
    as_json: bool,
) -> None:
    """Write actuators for simulators; an MJCF is replayed in MuJoCo on every --holdout."""
    from taufit.export.servo_actuators import write_servo_export
    from taufit.servo.model import read_servo_model
    from taufit.servo.motion import commanded_motions

    model = read_servo_model(path)
    result = write_servo_export(model, format, output)
    runs = [run for item in holdout for run in source.read(item)]
    scores = _mujoco_scores(model, commanded_motions(model.robot, runs)) if runs else []
    files = [str(file) for file in result.files]
    if as_json:
        data = {"format": format, "files": files, "dropped": list(result.dropped)}
        print_json({**data, "holdout": scores})
        return
    print("Written: " + ", ".join(files))
    for part in result.dropped:
        print(f"Not representable in {format.upper()}: {part}.")
    for score in scores:
        print(
            f"{score['file']}: MuJoCo {1e3 * score['mujoco_rms']:.1f} mrad, without filter "
            f"{1e3 * score['unfiltered_rms']:.1f}, taufit {1e3 * score['model_rms']:.1f}"
        )


def _mujoco_scores(model: Any, motions: Sequence[Any]) -> list[dict[str, Any]]:
    """Replay errors in MuJoCo with and without command filter, beside taufit's, without floor."""
    from taufit.export.servo_mjcf import score_in_mujoco
    from taufit.servo.score import score_replays

    replay_scores = score_replays(model.axes, model.servo, motions)
    filtered = score_in_mujoco(model, motions)
    unfiltered_scores = score_in_mujoco(model, motions, filtered=False)
    return [
        {
            "file": a.name,
            "mujoco_rms": b.mean_rms,
            "unfiltered_rms": c.mean_rms,
            "model_rms": a.mean_rms,
        }
        for a, b, c in zip(replay_scores, filtered, unfiltered_scores, strict=True)
    ]


def payload_servo(path: Path, recording: Path, source: RecordingOptions, as_json: bool) -> None:
    """Estimate the mass at the tip from commands and positions."""
    from taufit.servo.model import read_servo_model
    from taufit.servo.motion import commanded_motions
    from taufit.servo.payload import estimate_payload

    model = read_servo_model(path)
    motions = commanded_motions(model.robot, source.read(recording))
    payload = estimate_payload(model, motions)
    if as_json:
        mass = {"value": payload.mass, "low": payload.low, "high": payload.high}
        absent = dict.fromkeys(("com", "inertia", "ready_at", "stopped_at"))
        print_json({"mass": mass, **absent, "history": [], "warnings": [_UNPROVEN]})
        return
    print(
        f"Payload at the tip: {1e3 * payload.mass:.0f} g "
        f"({1e3 * payload.low:.0f} to {1e3 * payload.high:.0f} g)"
    )
    print(f"Warning: {_UNPROVEN}.")


_UNPROVEN = (
    "payload from positions is unproven on real arms (tested on simulated ones); it is relative to "
    "the link masses of the model"
)


def simulate_servo(path: Path, motion: Path, output: Path, as_json: bool) -> None:
    """Drive the servo model by the commands of a recording and write what it would measure."""
    from dataclasses import replace

    import numpy as np

    from taufit.recording import read_recording, write_recording
    from taufit.servo.model import read_servo_model
    from taufit.servo.motion import arm_joints, commanded_motions

    if not motion.exists():
        raise TaufitError(
            f"a servo model is driven by commands: name a recording that has them, not {motion}."
        )
    model = read_servo_model(path)
    recording = read_recording(motion)
    (commanded,) = commanded_motions(model.robot, [recording])
    rows = np.arange(len(commanded.position)) * commanded.step
    time = recording.time - recording.time[0]
    position = np.column_stack([np.interp(time, rows, q) for q in model.replay(commanded).T])
    command = arm_joints(model.robot, recording).commanded_position
    simulated = replace(
        recording,
        position=position,
        velocity=None,
        acceleration=None,
        signal=np.zeros_like(position),
        signed=None,
        channels=type(recording.channels).from_values(commanded_position=command),
        meta={"robot": model.robot.name, "joint_names": list(model.robot.joint_names)},
        findings=(),
    )
    write_recording(simulated, output)
    if as_json:
        print_json({"files": [str(output)], "samples": len(position)})
    else:
        print(f"Written: {output} ({len(position)} samples)")
