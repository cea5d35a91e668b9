"""SO-101 with Feetech servos: commands and positions, no torque."""

from pathlib import Path
from typing import Any

from benchmarks.open.arm import Arm, Section, Split

TRAINING = (
    *("friction_gravity", "large_amplitude", "end_effector", "inertia_coupling"),
    *("random_waypoints", "hold_under_gravity", "frequency_sweep"),
)
TEST = (
    *("actuator_bandwidth", "boundary_exploration", "chirp_sweep", "circular_motion"),
    *("coupled_joints", "figure_eight", "multisine", "pick_place", "reaching_points"),
    *("repetitive_motion", "single_joint_elbow", "step_response", "velocity_ramp"),
)


def read(path: Path) -> Any:
    from taufit.recording import read_recording

    return read_recording(path)


def sections(names: tuple[str, ...]) -> tuple[Section, ...]:
    return tuple(Section(f"so101/{name}.csv.gz") for name in names)


ARM = Arm(
    title="SO-101",
    source="github isaac-sim2real/sage (4ffd262)",
    licence="Apache-2.0",
    torque="none: commands and positions",
    torque_source="none",
    robot="so101",
    read=read,
    splits={"servo replay": Split(sections(TRAINING), sections(TEST))},
    why_not=dict.fromkeys(
        ("unseen motion", "short data", "poor excitation", "other day", "payload"),
        "no signed torque is recorded",
    ),
)
