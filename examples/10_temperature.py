"""One model for a cold and a warm robot: a simulated UR5 works for half an hour."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import taufit
from taufit.core.files import write_text
from taufit.fitting.fit_samples import fit_samples
from taufit.report.temperature_page import temperature_page
from taufit.sim import read_preset
from taufit.temperature.runwise_fits import repeat_identification
from taufit.temperature.temperature_slopes import friction_at, select_temperature_law

preset = read_preset("ur5-warmup")
effects = preset.twin.effects
warm = housing = np.array(effects.thermal.initial)
recordings = []
for k in range(6):
    # Thermal time runs 28 times faster: six runs of 10 s span the warm-up.
    thermal = replace(effects.thermal, initial=warm, initial_housing=housing, speed_up=28.0)
    twin = replace(preset.twin, effects=replace(effects, thermal=thermal))
    run = twin.run(preset.motion(seed=k, periods=1), seed=k)
    warm, housing = run.trace.temperature[-1], np.array(run.truth["housing_end"])
    recordings.append(run.recording)

samples = taufit.condition(recordings, cutoff_hz=10.0)
model = taufit.TorqueModel(preset.twin.robot, taufit.Presliding((2e-4,), load=False))
choice = select_temperature_law(model, samples)
print(f"law: {choice.law}, spread {np.round(choice.spread, 1)} K")

estimate = fit_samples(choice.model, choice.samples, dropped=choice.dropped)
aware = taufit.fitted_model(choice.model, estimate, choice.samples)
cold, _ = friction_at(aware, np.array(effects.thermal.initial))
hot, std = friction_at(aware, warm)
print(f"viscous friction cold {np.round(cold, 2)}, warm {np.round(hot, 2)} N m s/rad")
print(f"change {np.round(100 * (hot / cold - 1), 1)} %, standard deviation {np.round(std, 2)}")

# The usual way for comparison: identify every run by itself, then draw a line.
runs = [taufit.condition([one], cutoff_hz=10.0) for one in recordings]
repeated = repeat_identification(model, runs)
write_text(Path("out") / "temperature.html", temperature_page(aware, repeated, runs[0]))
print("written: out/temperature.html")
