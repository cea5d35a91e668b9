"""The arm in another simulation: a functional mock-up unit beside the twin of the same model."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

import taufit
from taufit.export import write_fmu
from taufit.sim import Controller, random_fourier

# A model, fitted to two runs of a simulated UR5e.
arm = taufit.Twin.typical(taufit.read_robot("ur5e"))
runs = [arm.run(random_fourier(arm.robot, seed=s), seed=s).recording for s in (1, 2)]
model = taufit.identify(arm.robot, runs).model

out = Path("out")
out.mkdir(exist_ok=True)
write_fmu(model, out / "torque.fmu", fmi="2.0", kind="inverse")
done = write_fmu(model, out / "arm.fmu", fmi="3.0", kind="forward")
print("written:", out / "torque.fmu", out / "arm.fmu", *done.notes)

# What the unit is given: references and feed-forward of a servo at 1 kHz, and the servo's gains.
servo = Controller(delay=0.0, friction=0.0)
twin = taufit.Twin.from_model(model, controller=servo, rate_hz=1000.0)
run = twin.run(random_fourier(arm.robot, seed=3), rest=(0.0, 0.0))
given, gains, joints = run.recording, run.truth["controller"], arm.robot.joints
start = {
    "position": given.commanded_position[0],
    "presliding": run.truth["presliding"],
    "stiffness": gains["stiffness"],
    "damping": gains["damping"],
    "integral_gain": 2.0 * np.pi * servo.integral_hz * np.array(gains["stiffness"]),
}
# The twin stands for 0.4 s before its first row, so the unit does too.
still = np.ones((400, 1))
inputs = {
    "torque": np.vstack([still * given.target_torque[0], given.target_torque]),
    "reference_position": np.vstack([still * start["position"], given.commanded_position]),
    "reference_velocity": np.vstack([0.0 * still * start["position"], given.commanded_velocity]),
}

if find_spec("fmpy") is None or done.notes:
    print("Any tool for FMI 3.0 can go on from here, for example FMPy (pip install fmpy).")
else:
    import fmpy

    names = [f"{group}[{j + 1}]" for group in inputs for j in range(joints)]
    table = np.zeros(len(inputs["torque"]), [("time", float), *((name, float) for name in names)])
    table["time"] = 1e-3 * np.arange(len(table))
    for group, values in inputs.items():
        for j in range(joints):
            table[f"{group}[{j + 1}]"] = values[:, j]
    found = fmpy.simulate_fmu(
        str(out / "arm.fmu"),
        stop_time=1e-3 * len(table),
        output_interval=1e-3,
        input=table,
        start_values={
            f"{g}[{j + 1}]": float(x[j]) for g, x in start.items() for j in range(joints)
        },
        output=[f"position[{j + 1}]" for j in range(joints)],
    )
    position = np.stack([found[f"position[{j + 1}]"] for j in range(joints)], 1)
    apart = np.abs(position[400 : 400 + len(given)] - run.trace.position).max()
    print(f"{len(given) / 1000:.1f} s in FMPy: at most {apart:.1e} rad from the twin")
