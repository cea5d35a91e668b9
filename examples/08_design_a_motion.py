"""Plan a motion for an arm in a cell, see what it is worth, write it for the robot."""

from pathlib import Path

import numpy as np

import taufit
from taufit.core.files import write_text
from taufit.excitation import Plane, design, mounting_plane, scene_for, to_urscript, write_motion

robot = taufit.read_robot("ur5e")
wall = Plane("wall", np.array([1.0, 0.0, 0.0]), -0.45)
scene = scene_for(robot, planes=(mounting_plane(robot), wall), clearance=0.03)

result = design(robot, scene=scene, seconds=2.0)
tight = result.worst
print(f"{len(result.names)} base parameters, condition number {result.condition_number:.1f}")
print(f"tightest constraint: {tight.name}, {tight.margin:.3g} left at {tight.time:.2f} s")
hardest = result.names[int(np.argmax(result.standard_deviation))]
print(f"hardest to see: {hardest}")

out = Path("out")
write_motion(result.motion, out / "motion.json", robot=robot.name)
write_text(out / "motion.script", to_urscript(result.motion))
print(f"written: {out / 'motion.json'}, {out / 'motion.script'}")
