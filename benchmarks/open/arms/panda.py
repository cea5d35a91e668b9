"""Franka Emika Panda: one log of 14 s."""

from benchmarks.open.arm import Arm, mapped, parts

LOG = "panda/panda_exciting_traj1_part1.csv.gz"

ARM = Arm(
    title="Franka Emika Panda",
    source="github marcocognetti/FrankaEmikaPandaDynModel (24d85ce)",
    licence="GPL-3.0",
    torque="joint torque sensors",
    torque_source="joint_torque_sensor",
    robot="panda",
    read=mapped("panda_csv.yaml"),
    cutoff_hz=5.0,
    splits={
        "unseen motion": parts(LOG, (0, 9587), (10087, 13696)),
        "short data": parts(LOG, (0, 4000), (10087, 13696)),
    },
    why_not={"poor excitation": "one exciting log", "other day": "one log"},
)
