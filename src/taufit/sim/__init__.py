"""Simulated robot for tests of identification. In: a robot, a motion, effects. Out: a recording.

Left to others: conclusions about real robots.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package
from taufit.core.names import renamed_names

if TYPE_CHECKING:
    from taufit.sim.controller import Controller as Controller
    from taufit.sim.effects import (
        DriveFriction as DriveFriction,
        Effects as Effects,
        Elasticity as Elasticity,
        Encoder as Encoder,
        HandPush as HandPush,
        PositionRipple as PositionRipple,
        SamplingErrors as SamplingErrors,
        Sensing as Sensing,
        Thermal as Thermal,
    )
    from taufit.sim.effects_file import (
        effects_from_dict as effects_from_dict,
        effects_to_dict as effects_to_dict,
    )
    from taufit.sim.payload import CarriedPayload as CarriedPayload
    from taufit.sim.plant import OperatingRange as OperatingRange
    from taufit.sim.preset import (
        Preset as Preset,
        presets as presets,
        read_preset as read_preset,
        typical_effects as typical_effects,
        typical_rotor as typical_rotor,
    )
    from taufit.sim.random_motion import random_fourier as random_fourier
    from taufit.sim.stepped_twin import ControlSample as ControlSample, SteppedTwin as SteppedTwin
    from taufit.sim.twin import SimulatedRun as SimulatedRun, TrueMotion as TrueMotion, Twin as Twin

lazy_package(__name__)
# Former names of 0.1, accepted with a warning until 0.3.
__getattr__ = renamed_names(
    __name__, Carried="CarriedPayload", Friction="DriveFriction", Push="HandPush"
)
