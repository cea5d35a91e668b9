"""Fit an arm whose controller reports only the magnitude of its torques.

Run: python examples/07_unknown_signs.py
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import taufit
from taufit.dynamics import inverse_dynamics
from taufit.report.signs_chart import signs_chart
from taufit.signs.unknown_signs import fit_unsigned

# A simulated UR5e: three sines per joint, friction, 5 % noise - and then the signs are lost.
arm = taufit.read_robot("ur5e")
rng = np.random.default_rng(1)
time = np.arange(0.0, 12.0, 0.02)
w = 2.0 * np.pi * np.arange(1, 4)[:, None, None] / 12.0
a, b = rng.normal(size=(2, 3, 1, arm.joints)) * 0.5
t = time[None, :, None]
q = (a * np.sin(w * t) + b * np.cos(w * t)).sum(0)
v = (a * w * np.cos(w * t) - b * w * np.sin(w * t)).sum(0)
acc = -(a * w**2 * np.sin(w * t) + b * w**2 * np.cos(w * t)).sum(0)
rigid = inverse_dynamics(arm, q, v, acc)
true = rigid + 0.15 * rigid.std(0) * (np.sign(v) + v / v.std(0))
measured = np.abs(true + 0.05 * true.std(0) * rng.normal(size=true.shape))

samples = taufit.Samples.from_arrays(q, v, acc, measured, rate_hz=50.0)
samples = replace(samples, signed=np.zeros(arm.joints, bool))
model = taufit.TorqueModel(arm, friction=taufit.Linear(), rotor_inertia=False, offset=False)

result = fit_unsigned(model, samples)

print(f"{len(result.segments)} segments, {int(result.ambiguous.sum())} ambiguous")
print(f"proven optimal: {result.certified}; chi2 per degree of freedom {result.chi2_per_dof:.2f}")
right = result.recovery.sample_sign * true > 0
big = np.abs(true) > 3.0 * 0.05 * true.std(0)
print(f"signs of samples above 3 sigma that are right: {100 * right[big].mean():.2f} %")
predicted = result.model.torque(q, v, acc)
print("torque error / rms per joint:", np.round((predicted - true).std(0) / true.std(0), 4))
for text in result.warnings:
    print("warning:", text)

picture = Path(tempfile.mkdtemp()) / "signs.svg"
picture.write_text(signs_chart(result))
print(f"picture: {picture}")
