"""What touches the arm? A simulated UR10e is pushed while a watch feels its motors."""

from dataclasses import replace

from taufit.contact import ContactDetector, refine_noise
from taufit.payload import stream
from taufit.sim import HandPush, random_fourier, read_preset
from taufit.workflow import identify

twin = read_preset("ur10e-real").twin


def run(seed, arm=twin):
    """Ten seconds of a random motion."""
    return arm.run(random_fourier(arm.robot, seed=seed), seed=seed, rest=(1.0, 1.0)).recording


# A model, and how large its residuals are where nothing touches the arm.
model = identify(twin.robot, [run(1), run(2)]).model
noise = refine_noise(model, [run(3), run(4)])

# The same arm at work: 40 N sideways for 0.3 s.
push = HandPush(start=5.0, duration=0.3, force=(0.0, 40.0, 0.0))
pushed = replace(twin, effects=replace(twin.effects, pushes=(push,)))

watch = ContactDetector(model, noise, alarms_per_hour=1.0)
for time, position, velocity, torque, _ in stream(model, run(5, pushed)).samples():
    watch.update(time, position, velocity, torque)
for event in watch.events:
    print(f"{event.time:5.2f} s  {event.kind}: {event.text}")
