"""Fit a UR10e from one recorded run and test it on runs of other days.

Run: python examples/15_fit_a_real_robot.py [FOLDER]

FOLDER holds ur10e.urdf and identification_data/ of the public UR10e recordings.
Without it the same steps run on a simulated arm: examples/05_fit_a_simulated_arm.py.
"""

import sys
from pathlib import Path

import taufit
from taufit.workflow import identify

here = Path(__file__).parent
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here.parents[1] / "shared" / "data" / "ur10e"
if not folder.is_dir():
    print(f"There are no recordings in {folder}: see examples/05_fit_a_simulated_arm.py.")
    sys.exit(0)

robot = taufit.read_robot(folder / "ur10e.urdf")


def read(name: str) -> taufit.Recording:
    path = folder / "identification_data" / f"{name}.csv.gz"
    return taufit.read_recording(path, column_map=here / "columns" / "ur10e_csv.yaml")


done = identify(
    robot,
    [read("ur-20_02_10-30sec_12harm")],
    holdout={name: [read(name)] for name in ("ur-20_02_19_14harm50sec", "ur-20_01_31-unload")},
    cutoff_hz=5.0,
)

print("torque per ampere, from the controller at rest:", done.samples.gain.round(3))
for score in (done.training_score, *done.holdout_scores):
    print(f"{score.file:32} nrmse {score.nrmse.round(3)}  mean {score.mean_nrmse:.3f}")
print(f"physically possible: {done.consistent}")
print(f"error against the nominal robot: {100 * done.nominal_comparison.reduction:.0f} % less")

# What friction looks like: Coulomb level, and the share of it that builds up after a reversal.
values = dict(zip(done.estimate.names, done.estimate.values, strict=True))
for j in range(1, robot.joints + 1):
    coulomb = values[f"joint_{j}.coulomb"]
    slow = sum(values.get(f"joint_{j}.presliding_{k}", 0.0) for k in range(2, 6))
    viscous = values[f"joint_{j}.viscous"]
    print(f"joint {j}: Coulomb {coulomb:.2f} N m ({slow:.2f} after a way), viscous {viscous:.2f}")
