"""What a robot carries, feels and loses while it moves: raw samples in, readings and events out."""

from dataclasses import replace

import numpy as np

from taufit.live import Monitor
from taufit.sim import HandPush, read_preset
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

preset = read_preset("ur10-paper")
effects = preset.twin.effects
twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=1.0)))

# The empty arm first: a model of what it needs by itself.
empty = twin.run(preset.motion(periods=6), seed=1).recording
model = identify(twin.robot, [empty]).model

# The same arm at work: 2.4 kg from the 8th second on, and somebody pushes it at the 15th.
push = HandPush(start=15.0, duration=0.3, force=(0.0, 60.0, 0.0))
part = CarriedPayload.lump(2.4, (0.01, 0.0, 0.06), pick=8.0)
worker = replace(twin, effects=replace(twin.effects, pushes=(push,)))
work = worker.run(preset.motion(periods=2), seed=2, payload=part).recording

# A robot's samples are not clean: one is missing, one comes late, one has a spike.
signal = np.array(work.signal)
signal[500, 1] += 300.0
order = [k for k in range(len(work.time)) if k != 700]
order[600], order[601] = order[601], order[600]

monitor = Monitor(model, unit=work.signal_unit)
due = 2.0
for k in order:
    reading = monitor.update(work.time[k], work.position[k], work.velocity[k], signal[k])
    if reading is None:
        continue
    for event in reading.events:
        print(f"{event.time:6.2f} s  {event.kind}: {event.text}")
    if reading.time >= due and reading.payload is not None:
        due += 4.0
        found, off = reading.payload, np.abs(reading.filtered - reading.predicted)
        state = "ready" if found.ready else "not ready"
        print(
            f"{reading.time:6.2f} s  {found.mass:.2f} kg, {state}; "
            f"torque within its interval at {int(np.sum(off <= reading.half_width))} of 6 joints"
        )
print("left out:", monitor.conditioner.counts)
