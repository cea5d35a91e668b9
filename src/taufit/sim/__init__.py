"""A simulated arm that can prove us wrong. In: a robot, a motion, effects. Out: a recording.

Left to others: conclusions about real arms.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.sim.controller import Controller as Controller
    from taufit.sim.effects import (
        Effects as Effects,
        Elasticity as Elasticity,
        Encoder as Encoder,
        Friction as Friction,
        Push as Push,
        Ripple as Ripple,
        Sensing as Sensing,
        Thermal as Thermal,
        Timing as Timing,
    )
    from taufit.sim.effects_file import (
        effects_from_dict as effects_from_dict,
        effects_to_dict as effects_to_dict,
    )
    from taufit.sim.payload import Carried as Carried
    from taufit.sim.plant import Envelope as Envelope
    from taufit.sim.preset import (
        Preset as Preset,
        presets as presets,
        read_preset as read_preset,
        typical_effects as typical_effects,
        typical_rotor as typical_rotor,
    )
    from taufit.sim.random_motion import random_fourier as random_fourier
    from taufit.sim.stepped import Sample as Sample, SteppedTwin as SteppedTwin
    from taufit.sim.twin import Run as Run, Trace as Trace, Twin as Twin

lazy_room(__name__)
