"""Airbot Play with gripper: a chirp, and the same chirp with 0.48 kg at the flange."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.open.arm import Arm, Section, Split, parts
from benchmarks.open.tables import read_table

EMPTY = "airbot_play/chirp_q_real.csv.gz+airbot_play/chirp_tau_real.csv.gz"
LOADED = "airbot_play/chirp_q_real_loaded.csv.gz+airbot_play/chirp_tau_real_loaded.csv.gz"
RATE_HZ = 100.0


def read(positions: Path, torques: Path) -> Any:
    """Positions and torques have a file each and no time stamps."""
    from taufit.recording import Recording

    q, torque = (read_table(path)[1] for path in (positions, torques))
    rows = min(len(q), len(torque))
    time = np.arange(rows) / RATE_HZ
    return Recording(time, q[:rows], torque[:rows], meta={"name": "chirp"})


ARM = Arm(
    title="Airbot Play",
    source="github liuyurong129/figaroh_kinova",
    licence="headers say Apache-2.0",
    torque="motor torque",
    torque_source="motor_torque",
    robot="airbot_play/airbot_play.urdf",
    read=read,
    splits={
        "unseen motion": parts(EMPTY, (0, 2000), (2050, 2998)),
        "short data": parts(EMPTY, (0, 800), (2050, 2998)),
        "payload": Split((Section(EMPTY, 0, 2000),), (Section(LOADED, mass=0.48),)),
    },
    why_not={"poor excitation": "one exciting log", "other day": "one log"},
)
