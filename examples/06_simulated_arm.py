"""Record a simulated UR10: closed loop, friction, warmth, noise, a payload picked on the way."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from taufit.core.files import write_json
from taufit.dynamics import inverse_dynamics
from taufit.recording import write_recording
from taufit.sim import CarriedPayload, Effects, Twin, read_preset

preset = read_preset("ur10-paper")
motion = preset.motion()
box = CarriedPayload.lump(3.5, (0.0, 0.0, 0.06), pick=4.0, drop=8.0)

run = preset.twin.run(motion, seed=1, payload=box)
recording = run.recording
print(f"{len(recording)} rows of {recording.torque_source} in {recording.signal_unit}")
error = 1e3 * np.array(run.truth["tracking_error_rms"])
print(f"tracking error {np.round(error, 2)} mrad")

out = Path("out")
write_recording(recording, out / "simulated.parquet")
write_json(out / "simulated.truth.json", run.truth)

# With every effect off the arm is MuJoCo's alone, and our inverse dynamics must say the same.
trace = Twin(preset.twin.robot).run(motion).trace
ours = inverse_dynamics(preset.twin.robot, trace.position, trace.velocity, trace.acceleration)
print(f"MuJoCo and taufit differ by {np.abs(trace.link_torque - ours).max():.1e} N m")

# Effects are switched one by one: what does friction alone cost?
alone = Effects(friction=preset.twin.effects.friction)
rubbed = replace(preset.twin, effects=alone).run(motion, seed=1).trace
print(f"friction alone: {np.round(np.abs(rubbed.friction).mean(0), 1)} N m on average")
