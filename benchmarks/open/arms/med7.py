"""KUKA LBR Med 7: one log in which all joints follow one course; every torque is reversed."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.arm import Arm, parts
from benchmarks.open.tables import read_table

LOG = "kuka_med7/joint_states_positions.csv.gz+kuka_med7/joint_states_efforts.csv.gz"


def read(positions: Path, efforts: Path, sign: float = -1.0) -> Any:
    """Without the rows in which the log repeats itself; torques as tau = Y pi has them."""
    from taufit.recording import Recording

    columns = []
    for path in (positions, efforts):
        header, table = read_table(path)
        columns.append(table[:, [header.index(f"lbr_joint_{j}") for j in range(7)]])
    position, torque = columns
    fresh = np.r_[True, np.any(np.diff(torque, axis=0) != 0.0, axis=1)]
    return Recording(
        (table[:, 0] - table[0, 0])[fresh],
        position=position[fresh],
        signal=sign * torque[fresh],
        torque_source="joint_torque_sensor",
        meta={"name": "med7"},
    )


ARM = Arm(
    title="KUKA LBR Med 7",
    source="github lbr-stack/dynamic_parameter_identification (1e1f661)",
    licence="none stated",
    torque="joint torque sensors",
    torque_source="joint_torque_sensor",
    robot="kuka_med7/med7dock.urdf",
    read=read,
    splits={
        "unseen motion": parts(LOG, (950, 2400), (2450, 3004)),
        "short data": parts(LOG, (950, 1550), (2450, 3004)),
    },
    why_not={"poor excitation": "its only log is poor: see unseen motion", "other day": "one log"},
)
