"""Staubli TX40: one log of 9 s; motors 5 and 6 are coupled."""

from benchmarks.open.arm import Arm, mapped, parts

LOG = "staubli_tx40/tx40_run1.csv.gz"

ARM = Arm(
    title="Staubli TX40",
    source="github thanhndv212/figaroh-examples (c0b5c7f)",
    licence="no licence file; headers say Apache-2.0",
    torque="motor current times gear ratio",
    torque_source="motor_torque",
    robot="staubli_tx40/tx40_mdh_modified.urdf",
    read=mapped("tx40_csv.yaml"),
    splits={
        "unseen motion": parts(LOG, (0, 28000), (30500, 40000)),
        "short data": parts(LOG, (0, 15000), (30500, 40000)),
    },
    why_not={"poor excitation": "one exciting log", "other day": "one log"},
)
