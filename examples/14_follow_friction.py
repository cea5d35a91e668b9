"""Friction that has changed since the fit: what is inside the interval, and following it."""

import numpy as np

import taufit
from taufit.health.tracker import score_tracking, track
from taufit.model.predict import predicted_torque
from taufit.sim import random_fourier
from taufit.validation import score
from taufit.validation.score_breakdown import score_breakdown

# A UR5e whose friction is known, computed without a simulator.
robot = taufit.read_robot("ur5e")
friction = taufit.Linear(0.02)
terms = np.outer([6.0, 8.0, 6.0, 1.4, 1.4, 1.3], [1.0, 1.6])
links = [robot.parameters, np.full(6, 0.5)]
rng = np.random.default_rng(1)


def run(level, seed):
    """Twenty seconds with every joint's friction at this level."""
    values = np.concatenate([*links, (level * terms).ravel(), np.zeros(6)])
    arm = taufit.TorqueModel(robot, friction).with_values(values)
    motion = random_fourier(robot, seed=seed, frequency_hz=0.1, periods=2, speed=2.0, reach=1.4)
    q, v, a = motion.at(np.arange(1000) / 50.0)
    torque = arm.torque(q, v, a)
    torque += 0.04 * terms[:, 0] * rng.normal(size=torque.shape)
    return taufit.Samples.from_arrays(q, v, a, torque, rate_hz=50.0)


training = run(1.0, 0)
model = taufit.TorqueModel(robot, friction)
model = taufit.fitted_model(model, taufit.fit(model, training), training)

later = run(1.05, 1)
told = score_breakdown(model, later, score(model, later))
print(f"nrmse {told.mean_nrmse:.4f}, {100 * told.mean_inside:.0f} % inside the 95 % interval")

predicted = predicted_torque(model, later)
course = track(model, later, predicted=predicted)
worth = score_tracking(later, predicted, course)
print(f"second half: {worth.second_half_before:.4f} as fitted, {worth.second_half:.4f} followed")
for j, (coulomb, level) in enumerate(zip(course.parts[-1][:, 0], terms[:, 0], strict=True)):
    print(f"joint {j + 1}: Coulomb friction {100 * coulomb / level:+.1f} %")
