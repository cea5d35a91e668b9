"""A large arm: a spring carries part of its weight, and encoder zeros are a little off."""

from dataclasses import replace

import numpy as np

import taufit
from taufit.fitting import automatic_model
from taufit.robot import Compensator
from taufit.sim import Twin, random_fourier

# A KR5 with a spring at its second axis, described by its two attachment points.
spring = Compensator(1, "spring", base_arm=0.45, link_arm=0.16, angle=1.9)
robot = replace(taufit.read_robot("kr5"), compensators=(spring,))
truth = automatic_model(robot, friction=taufit.Linear())
values = truth.nominal
for name, value in (("balance_rate", 9000.0), ("balance_force", 1500.0)):
    values[truth.layout.index(f"joint_2.{name}")] = value
twin = Twin.from_model(truth.with_values(values))

# What its encoders say: axis 3 is off by two degrees.
zeros = np.radians([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])


def recorded(seed):
    run = twin.run(random_fourier(robot, seed=seed)).recording
    return replace(run, position=run.position - zeros)


run, other = recorded(1), recorded(2)
plain = replace(robot, compensators=())
for title, arm, how in (
    ("neither", plain, {}),
    ("a spring of unknown geometry", plain, {"compensator": "2"}),
    ("the spring as described", robot, {}),
    ("the spring and encoder zeros", robot, {"joint_zeros": "2,3,4,5"}),
):
    done = taufit.identify(arm, [run], holdout=[other], ignore_contradictions=True, **how)
    print(f"{title}: {100 * done.mean_holdout_nrmse:.2f} % of unseen torque unexplained")

model = done.model
for name in ("balance_rate", "balance_force"):
    k = model.layout.index(f"joint_2.{name}")
    print(f"{name}: {model.values[k]:.0f}, standard deviation {model.training.std[k]:.0f}")
zero, std = model.robot.joint_zeros[2], model.training.joint_zero_std[2]
print(f"zero of axis 3: {np.degrees(zero):.2f} deg, standard deviation {np.degrees(std):.2f} deg")
