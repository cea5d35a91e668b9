"""Describe an arm, write it down, read it back, and see what its motion can tell.

Run: python examples/01_describe_an_arm.py
"""

import tempfile
from pathlib import Path

import numpy as np

import taufit
from taufit.dynamics import base_expressions, inverse_dynamics
from taufit.robot import from_yaml

# A small arm as a modified DH table, with what is known about masses and limits.
TABLE = """
name: three_joint_arm
source: an example
convention: modified
joints:
  - {name: base, d: 0.3, velocity: 2, mass: 3, com: [0, 0, -0.1], inertia: [0.02, 0.02, 0.01]}
  - {name: shoulder, alpha: -pi/2, velocity: 2, mass: 4, com: [0.2, 0, 0], inertia: [0.1, 0.1, 0.1]}
  - {name: elbow, a: 0.4, velocity: 3, mass: 2, com: [0.1, 0, 0.05], inertia: [0.01, 0.02, 0.02]}
"""

arm = from_yaml(TABLE)

# Any description can be written down again and read back.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "arm.yaml"
    taufit.write_robot(arm, path)
    again = taufit.read_robot(path)

rng = np.random.default_rng(0)
q, v, a = (rng.uniform(-1.0, 1.0, (5, arm.joints)) for _ in range(3))
difference = np.abs(inverse_dynamics(arm, q, v, a) - inverse_dynamics(again, q, v, a)).max()
print(f"written and read back: torques differ by {difference:.1e} N m")

# Which of its 30 inertial parameters can motion tell apart, and in which combinations?
base = taufit.base_parameters(arm, rule="leftmost")
print(f"{base.rank} base parameters of {len(base.parameter_names)}:")
for expression in base_expressions(arm, base):
    print("  ", expression.text)

# On a wall gravity shows more of the first link.
wall = taufit.base_parameters(arm.with_mounting("wall"))
print(f"on a wall: {wall.rank}")

# With friction, rotor inertia and offsets; rotor inertias partly hide among the links.
model = taufit.TorqueModel(arm, friction=taufit.Linear())
joints = taufit.base_parameters(model)
hidden = [model.names[i] for i in joints.in_combination if model.names[i].endswith("rotor")]
print(f"with joint parameters: {joints.rank} of {len(model.names)}; in combination: {hidden}")

# Bundled arms work the same way.
for name in ("ur10", "panda"):
    print(name, taufit.base_parameters(taufit.read_robot(name)).rank)
