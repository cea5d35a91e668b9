"""The first script: a robot and a recording in, a tested model, a URDF and C out.

Run: python examples/00_first_script.py
The recordings are simulated here; with a robot of your own, begin at `identify`.
"""

import tempfile
from pathlib import Path

import taufit

folder = Path(tempfile.mkdtemp())
robot = taufit.read_robot("ur5e")
twin = taufit.Twin.typical(robot)
for seed, name in enumerate(("run", "other_day")):
    motion = taufit.design(robot, seconds=0.5, seed=seed).motion
    taufit.write_recording(twin.run(motion, seed=seed).recording, folder / f"{name}.parquet")

done = taufit.identify("ur5e", folder / "run.parquet", holdout=folder / "other_day.parquet")
print(done)
for joint, grade in zip(robot.joint_names, done.grades.joints, strict=True):
    print(f"  {joint:<20} {grade.grade:<7} nrmse {grade.nrmse:.3f}")

taufit.write_model(done.model, folder / "model.json")
for dropped in taufit.export_model(done.model, folder / "ur5e_fitted.urdf"):
    print(f"not representable in URDF: {dropped}")
taufit.export_model(done.model, folder / "ur5e.c")
print(f"written to {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
