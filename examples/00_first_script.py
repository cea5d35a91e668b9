"""The first script: a robot and a recording in, a fitted model and a URDF out.

Run: python examples/00_first_script.py
The recording is simulated here; with a robot of your own, begin at `read_robot`.
"""

import tempfile
from pathlib import Path

import taufit
from taufit.sim import random_fourier, typical_effects, typical_rotor

folder = Path(tempfile.mkdtemp())
arm = typical_rotor(taufit.read_robot("ur5e"))
twin = taufit.Twin(arm, typical_effects(arm))
for name, seed in (("excitation", 0), ("validation", 1)):
    run = twin.run(random_fourier(arm, seed=seed), seed=seed)
    taufit.write_recording(run.recording, folder / f"{name}.parquet")

robot = taufit.read_robot("ur5e")
recording = taufit.read_recording(folder / "excitation.parquet")
samples = taufit.condition(recording, cutoff_hz=10.0)
model = taufit.TorqueModel(robot, friction=taufit.Stribeck())
estimate = taufit.fit(model, samples, estimator=taufit.ConsistentSdp())
fitted = taufit.fitted_model(model, estimate, samples)

# Torque that the fit has not seen says how good it is.
unseen = taufit.condition(taufit.read_recording(folder / "validation.parquet"), cutoff_hz=10.0)
(score,) = taufit.check(fitted, unseen)
print(f"{100 * score.mean_nrmse:.1f} % of the torque is left unexplained on unseen motion")

taufit.write_model(fitted, folder / "model.json")
for dropped in taufit.export_model(fitted, folder / "ur5e_fitted.urdf"):
    print(f"not representable in URDF: {dropped}")
print(f"written: {folder / 'model.json'}, {folder / 'ur5e_fitted.urdf'}")
