"""What does the arm carry? A simulated UR10 picks up a part while a filter watches."""

from dataclasses import replace

from taufit.payload import PayloadFilter, stream
from taufit.sim import read_preset
from taufit.sim.payload import CarriedPayload
from taufit.workflow import identify

preset = read_preset("ur10-paper")
effects = preset.twin.effects
twin = replace(preset.twin, effects=replace(effects, ripple=replace(effects.ripple, arm=1.0)))

# The empty arm first: a model of what it needs by itself.
empty = twin.run(preset.motion(periods=6), seed=1).recording
model = identify(twin.robot, [empty]).model

# Then the same arm at work: 2.4 kg from the 8th second on.
part = CarriedPayload.lump(2.4, (0.01, 0.0, 0.06), pick=8.0)
work = twin.run(preset.motion(periods=2), seed=2, payload=part).recording

live = PayloadFilter(model)
due = 2.0
for time, position, velocity, torque, _ in stream(model, work).samples():
    live.update(time, position, velocity, torque)
    if time >= due:
        due += 2.0
        found = live.estimate()
        low, high = found.mass_interval
        state = "ready" if found.ready else "not ready"
        print(f"{time:5.1f} s  {found.mass:6.3f} kg  [{low:.3f}, {high:.3f}]  {state}")
for event in live.events:
    print(f"{event.time:5.2f} s  {event.text}")

found = live.estimate()
print("centre of mass [mm]:", (1e3 * found.centre).round(1))
print("tell the controller:", found.set_payload(model.robot.tip)["script"])
shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in live.budget().items())
print("what limits the mass:", shares)
