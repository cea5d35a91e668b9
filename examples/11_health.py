"""Wear told from temperature: thirty healthy runs, then a joint that loses its grease."""

from pathlib import Path

import numpy as np

import taufit
from taufit.core.files import write_text
from taufit.fitting.fit_samples import fit_samples
from taufit.health import assess_health, start_history, write_history
from taufit.report.health_page import health_page
from taufit.sim import random_fourier

# A UR5 whose viscous friction falls with temperature, computed without a simulator.
robot = taufit.read_robot("ur5")
friction = taufit.TemperatureDependent(taufit.Linear(0.02), "linear", 30.0, ("viscous",))
terms = np.outer([6.0, 8.0, 6.0, 1.4, 1.4, 1.3], [1.0, 1.6, -0.02])
values = [robot.parameters, np.full(6, 0.5), terms.ravel(), np.zeros(6)]
truth = taufit.TorqueModel(robot, friction).with_values(np.concatenate(values))
rng = np.random.default_rng(1)


def run(temperature, worn=0.0, seed=0):
    """One run; friction of joint 4 is higher by `worn`."""
    motion = random_fourier(robot, seed=seed, frequency_hz=0.1, periods=1, speed=2.0, reach=1.4)
    q, v, a = motion.at(np.arange(500) / 50.0)
    scale = (1.0 + worn * (np.arange(6) == 3)) * (1.0 + 0.003 * rng.normal(size=6))
    arm = truth.with_values(
        np.concatenate([*values[:2], (terms * scale[:, None]).ravel(), values[3]])
    )
    warm = np.full((500, 6), temperature) + rng.normal(size=6)
    torque = arm.torque(q, v, a, temperature=warm)
    torque += 0.04 * terms[:, 0] * rng.normal(size=torque.shape)
    samples = taufit.Samples.from_arrays(q, v, a, torque, rate_hz=50.0)
    return samples.with_channels(temperature=warm)


training = taufit.Samples.concatenate([run(t, seed=k) for k, t in enumerate((20, 25, 30, 35, 40))])
model = taufit.TorqueModel(robot, friction)
model = taufit.fitted_model(model, fit_samples(model, training), training)

history = start_history(model, [(f"healthy {k}", run(rng.uniform(22, 37))) for k in range(30)])
for k in range(60):
    worn = 0.03 * (k + 1) / 60
    history = history.with_run(f"run {k}", run(rng.uniform(22, 37), worn))
found = assess_health(history)
print(found.headline)
for one in found.joints:
    print(
        f"joint {one.joint}: {one.change:+.1f} %, {one.trend:+.3f} +- {one.trend_std:.3f} % per run"
    )

out = Path("out")
write_history(history, out / "health.json")
write_text(out / "health.html", health_page(history))
print("written: out/health.json, out/health.html")
