"""From a jittery log in amperes to clean samples in newton metres, step by step.

Run: python examples/03_clean_samples.py
"""

import numpy as np

import taufit
from taufit.dynamics import inverse_dynamics
from taufit.recording import Recording
from taufit.robot import read_robot
from taufit.signals import controller_gains, lowpass, quality_report

# A UR10 that waits, moves, and waits again, logged at about 100 Hz with a jittery clock. Its
# controller also logs the moment and the current it meant to use.
rng = np.random.default_rng(0)
robot = read_robot("ur10")
time = np.sort(np.arange(2000) / 100 + rng.uniform(-0.002, 0.002, 2000))
phase = np.clip((time - 2) / 16, 0, 1)
s = phase**3 * (10 - 15 * phase + 6 * phase**2)
shape = np.array([[0.9, 2], [0.5, 3], [0.8, 4], [0.7, 5], [0.9, 1], [0.6, 6]])
home = np.array([0.0, -1.5, 0.8, -1.0, 0.4, 0.0])
position = home + shape[:, 0] * np.sin(2 * np.pi * shape[:, 1] * s[:, None])
velocity = np.gradient(position, time, axis=0)
acceleration = np.gradient(velocity, time, axis=0)
rigid = inverse_dynamics(robot, position, velocity, acceleration)
friction = 5 * np.tanh(velocity / 0.005) + 4 * velocity
gains = np.array([12.0, 12.0, 10.0, 11.0, 11.0, 11.0])
recording = Recording(
    time=time,
    position=position,
    velocity=velocity,
    signal=(rigid + friction) / gains + 0.05 * rng.normal(size=position.shape),
    signal_unit="A",
    torque_source="motor_current",
    target_torque=rigid,
    target_current=(rigid + friction) / gains,
    meta={"file": "log.csv"},
)

# What is there, and what is wrong with it?
for finding in quality_report(recording, robot):
    print(f"  {finding.severity}: {finding}")

# Newton metres per ampere, as the controller itself has them.
found = controller_gains(recording)
print("gains", np.round(found.value, 3), "+-", np.round(found.std, 2), "N m/A")

# One grid, one low-pass for motion and torque, derivatives, and the rows that belong in a fit.
samples = taufit.condition(recording, cutoff_hz=10.0)
print(
    f"{len(samples)} samples at {samples.rate_hz:g} Hz, {samples.in_motion.sum()} in motion; "
    f"torque noise {np.round(samples.noise, 2)} N m"
)

# Friction columns come from the unfiltered velocity and pass the same low-pass afterwards.
sign = lowpass(samples, np.tanh(samples.friction_velocity / 0.005))
late = lowpass(samples, samples.friction_velocity)
assert np.allclose(late, samples.velocity)
print("friction column of joint 4 spans", np.round([sign[:, 3].min(), sign[:, 3].max()], 2))

# The spectrum can choose the cut-off.
print(taufit.condition(recording, cutoff_hz="auto").reason)
