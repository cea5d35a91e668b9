"""Study a small fleet: a model for each robot, and which of them is unlike the others."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import taufit
from taufit.fleet import study_fleet
from taufit.sim import random_fourier

robot = taufit.read_robot("ur5")
usual = taufit.Twin.typical(robot)
folder = Path("out/fleet")
for k in range(6):
    rng = np.random.default_rng(k)
    friction = usual.effects.friction
    # Friction differs by some 10 % from robot to robot; in joint 2 of the fourth it has doubled.
    own = friction.coefficients * np.exp(0.1 * rng.normal(size=friction.coefficients.shape))
    own[1] *= 2.2 if k == 3 else 1.0
    effects = replace(usual.effects, friction=replace(friction, coefficients=own))
    run = replace(usual, effects=effects).run(random_fourier(robot, seed=k), seed=k)
    taufit.write_recording(run.recording, folder / f"cell_{k}" / "2026-03-01.parquet")

# In a plant: `taufit fleet ur5 s3://plant/logs --by robot,day --scheduler tcp://HOST:8786`.
found = study_fleet(robot, str(folder))
print(found)
for one in found.robots:
    words = "; ".join(surprise.message for surprise in one.outliers) or "as the others"
    print(f"  {one.robot}: mean nrmse {one.nrmse.mean():.3f}, {words}")
