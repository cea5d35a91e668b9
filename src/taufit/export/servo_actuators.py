"""Servo model as actuator settings of simulators: Isaac Lab configuration, BAM-style JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from taufit.core.errors import TaufitError
from taufit.core.files import write_text
from taufit.export.command_filter import filter_source
from taufit.export.export_format import ExportResult
from taufit.export.servo_mjcf import servo_mjcf
from taufit.servo.model import ServoModel


def isaaclab_source(model: ServoModel) -> str:
    """Actuator configuration for Isaac Lab and mjlab, one group per joint."""
    servo, lines = model.servo, []
    for j, name in enumerate(model.robot.joint_names):
        lines.append(
            f"    {name!r}: ImplicitActuatorCfg(joint_names_expr=[{name!r}], "
            f"stiffness={servo.kp[j]:.6g}, damping={servo.damping[j]:.6g}, "
            f"friction={servo.coulomb[j]:.6g}, armature={servo.armature[j]:.6g}),"
        )
    head = [
        f'"""Actuators of {model.robot.name}; commands pass the filter written beside the MJCF."""',
        "",
        "from isaaclab.actuators import ImplicitActuatorCfg",
        "",
        "# Friction in N m: simulators whose joint friction is a coefficient need the load torque.",
        "ACTUATORS = {",
    ]
    return "\n".join([*head, *lines, "}", ""])


def bam_text(model: ServoModel) -> str:
    """JSON with the keys of BAM's model m1, joint by joint; kp in N m/rad in place of kt and R."""
    servo = model.servo
    joints = {
        name: {
            "model": "m1",
            "kp": servo.kp[j],
            "friction_base": servo.coulomb[j],
            "friction_viscous": servo.damping[j],
            "armature": servo.armature[j],
            "q_offset": servo.offset[j],
            "command_delay": servo.delay[j],
            "max_acceleration": servo.acceleration_limit,
        }
        for j, name in enumerate(model.robot.joint_names)
    }
    return json.dumps(joints, indent=1) + "\n"


def _write_mjcf(model: ServoModel, path: Path) -> ExportResult:
    write_text(path, servo_mjcf(model))
    filter_path = path.with_name(path.stem + "_filter.py")
    write_text(filter_path, filter_source(model))
    dropped: tuple[str, ...] = (
        "delay, offset and acceleration limit (in the command filter beside it)",
    )
    if model.servo.delay.mean() < 0:
        dropped += (
            f"a negative delay of {1e3 * model.servo.delay.mean():.1f} ms (time stamps of the "
            "recorder); a filter that runs along has none",
        )
    if model.floor is not None:
        dropped += (f"the floor at {model.floor.height:.3f} m (add a plane to your scene)",)
    return ExportResult((path, filter_path), dropped)


def _writer(to_text: Callable[[ServoModel], str]) -> Callable[[ServoModel, Path], ExportResult]:
    def write(model: ServoModel, path: Path) -> ExportResult:
        write_text(path, to_text(model))
        return ExportResult((path,))

    return write


SERVO_EXPORTS: dict[str, tuple[str, Callable[[ServoModel, Path], ExportResult]]] = {
    "mjcf": (".xml", _write_mjcf),
    "isaaclab": (".py", _writer(isaaclab_source)),
    "bam": (".json", _writer(bam_text)),
}


def write_servo_export(model: ServoModel, format: str, path: Path | None = None) -> ExportResult:
    """Write a servo model in a format of `SERVO_EXPORTS`."""
    if format not in SERVO_EXPORTS:
        raise TaufitError(
            f"a servo model cannot be written as {format}, which describes torque. Available: "
            f"{', '.join(SERVO_EXPORTS)}."
        )
    ending, write = SERVO_EXPORTS[format]
    return write(model, path or Path(f"{model.robot.name}_servo{ending}"))
