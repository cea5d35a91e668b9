"""A simulated arm that can prove us wrong. In: a robot, a motion, effects. Out: a recording.

Left to others: conclusions about real arms.
"""

from taufit.sim.controller import Controller
from taufit.sim.effects import (
    Effects,
    Elasticity,
    Encoder,
    Friction,
    Push,
    Ripple,
    Sensing,
    Thermal,
    Timing,
)
from taufit.sim.effects_file import effects_from_dict, effects_to_dict
from taufit.sim.payload import Carried
from taufit.sim.plant import Envelope
from taufit.sim.preset import Preset, presets, read_preset, typical_effects, typical_rotor
from taufit.sim.random_motion import random_fourier
from taufit.sim.stepped import Sample, SteppedTwin
from taufit.sim.twin import Run, Trace, Twin

__all__ = [
    "Carried",
    "Controller",
    "Effects",
    "Elasticity",
    "Encoder",
    "Envelope",
    "Friction",
    "Preset",
    "Push",
    "Ripple",
    "Run",
    "Sample",
    "Sensing",
    "SteppedTwin",
    "Thermal",
    "Timing",
    "Trace",
    "Twin",
    "effects_from_dict",
    "effects_to_dict",
    "presets",
    "random_fourier",
    "read_preset",
    "typical_effects",
    "typical_rotor",
]
