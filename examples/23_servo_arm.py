"""Servos of an arm without torque, from its commands and encoder positions."""

import tempfile
from pathlib import Path

import numpy as np

import taufit
from taufit.export.servo_actuators import write_servo_export
from taufit.servo import CommandedMotion, ServoParameters
from taufit.servo.joint_axes import JointAxes
from taufit.servo.rollout import replay

# A simulated SO-101 with known servos stands in for yours.
robot = taufit.read_robot("so101")
ones = np.ones(robot.joints)
servos = ServoParameters(
    11 * ones, 0.7 * ones, 0.2 * ones, 0.006 * ones, 0 * ones, 0.02 * ones, acceleration_limit=30.0
)
runs = []
for seed in range(4):
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, 30.0, 0.02)
    command = np.zeros((len(time), robot.joints))
    for frequency in (0.1, 0.3, 1.0):
        command += (
            rng.uniform(0.05, 0.3, robot.joints) * np.sin(2 * np.pi * frequency * time)[:, None]
        )
    motion = CommandedMotion.from_arrays(time, command, np.zeros_like(command))
    position = replay(JointAxes.of_robot(robot), servos, motion)
    position = np.round(position * 4096 / (2 * np.pi)) * 2 * np.pi / 4096
    runs.append(
        taufit.Recording(
            time, position, 0 * position, torque_source="none", commanded_position=command
        )
    )

result = taufit.identify_servo(robot, runs[:3], holdout=runs[3:])
print(result.verdict, f"replay {1e3 * result.summary().mean:.1f} mrad")
print(f"command itself {1e3 * result.summary('command').mean:.1f} mrad")
for value in result.model.values[:2]:
    print(f"{value.name}: {value.value:.4f} {value.unit} ({value.low:.4f} to {value.high:.4f})")

with tempfile.TemporaryDirectory() as folder:
    written = write_servo_export(result.model, "mjcf", Path(folder) / "so101.xml")
    print("written:", ", ".join(file.name for file in written.files))
