"""A robot on the wire, without a robot: a virtual UR10 on this computer, moved and recorded."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import taufit
from taufit.excitation.robot_programs import to_urscript
from taufit.sim import random_fourier, read_preset
from taufit.virtual.controllers import UrController, VirtualUr
from taufit.wire import UrRtde
from taufit.wire.recorder import record
from taufit.wire.ur_player import UrPlayer

# The controller of a CB3 at four times its speed; ports are free ones of this computer.
twin = read_preset("ur10-paper").twin
controller = UrController(twin, version=(3, 15, 0, 0))
centre = np.array([0.0, -1.57, 1.2, -1.57, -1.57, 0.0])
motion = random_fourier(twin.robot, seed=1, frequency_hz=0.2, centre=centre, reach=0.8)

with tempfile.TemporaryDirectory() as folder, VirtualUr(controller, pace=4.0) as robot:
    # The program has the motion's coefficients inside and says in a register what it is doing.
    program = to_urscript(motion, step_s=0.008, phases=True, call=False)
    player = UrPlayer(robot.host, program, ports=robot.ports)
    source = UrRtde(robot.host, ports=robot.ports)
    done = record(source, Path(folder) / "run.parquet", player=player)
    print(f"{done.samples} samples, {done.lost} lost, {done.duplicated} duplicated")

    recording = taufit.read_recording(done.path)
    lag = np.abs(recording.position - recording.commanded_position).max()
    print(f"controller {recording.meta['controller_version']}, largest lag {lag:.3f} rad")
    print("unit of the torque channel:", recording.signal_unit)
