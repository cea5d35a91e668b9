"""The model in a controller: exported C in a loop at 1 kHz, on a recording it has not seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import taufit
from taufit.sim import random_fourier

twin = taufit.Twin.typical(taufit.read_robot("ur10e"))


def run(seed, rate_hz):
    """Ten seconds of a random motion of a simulated UR10e."""
    return twin.run(random_fourier(twin.robot, seed=seed), seed=seed, rate_hz=rate_hz).recording


model = taufit.identify(twin.robot, [run(1, 500.0), run(2, 500.0)]).model
out = Path("out")
out.mkdir(exist_ok=True)
taufit.export_model(model, out / "arm.c")

# What the drives would send: position, velocity and torque of each joint, three seconds of it.
unseen = run(3, 1000.0)
torque = unseen.signal * unseen.gain
rows = np.hstack([unseen.position, unseen.velocity, torque])[2000:5000]
np.savetxt(out / "run.csv", rows, delimiter=",", fmt="%.9g")

compiler = shutil.which("cc")
if compiler is None:
    print("There is no C compiler here: examples/controller/loop.c shows the loop.")
    sys.exit()
loop = Path(__file__).parent / "controller" / "loop.c"
program = str(out / "loop")
flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", str(out)]
subprocess.run([compiler, *flags, str(loop), str(out / "arm.c"), "-lm", "-o", program], check=True)
with open(out / "run.csv") as file:
    said = subprocess.run([program], stdin=file, check=True, capture_output=True, text=True).stdout
print(said, end="")
spread = " ".join(f"{x:.3f}" for x in np.std(rows[:, 12:], axis=0))
print(f"torque [N m, standard deviation]: {spread}")
