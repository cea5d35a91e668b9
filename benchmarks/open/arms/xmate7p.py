"""Rokae xMate7 Pro: one log of 5 s; joint 7 turns one way only."""

from benchmarks.open.arm import Arm, mapped, parts

LOG = "xmate7p/xmate7p_traj1.csv.gz"

ARM = Arm(
    title="Rokae xMate7 Pro",
    source="github NKU-ZiXuan/xMate7p_dyn_ident (7d8c924)",
    licence="no licence file",
    torque="joint torque sensors",
    torque_source="joint_torque_sensor",
    robot="xmate7p/XM7p.urdf",
    read=mapped("xmate7p_csv.yaml"),
    splits={
        "unseen motion": parts(LOG, (0, 3000), (3200, 5001)),
        "short data": parts(LOG, (0, 1800), (3200, 5001)),
    },
    why_not={"poor excitation": "one exciting log", "other day": "one log"},
)
