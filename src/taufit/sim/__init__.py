"""A simulated arm that can prove us wrong. In: a robot, a motion, effects. Out: a recording.

Left to others: conclusions about real arms.
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.sim.controller import Controller as Controller
    from taufit.sim.effects import (
        Effects as Effects,
    )
    from taufit.sim.effects import (
        Elasticity as Elasticity,
    )
    from taufit.sim.effects import (
        Encoder as Encoder,
    )
    from taufit.sim.effects import (
        Friction as Friction,
    )
    from taufit.sim.effects import (
        Push as Push,
    )
    from taufit.sim.effects import (
        Ripple as Ripple,
    )
    from taufit.sim.effects import (
        Sensing as Sensing,
    )
    from taufit.sim.effects import (
        Thermal as Thermal,
    )
    from taufit.sim.effects import (
        Timing as Timing,
    )
    from taufit.sim.effects_file import (
        effects_from_dict as effects_from_dict,
    )
    from taufit.sim.effects_file import (
        effects_to_dict as effects_to_dict,
    )
    from taufit.sim.payload import Carried as Carried
    from taufit.sim.plant import Envelope as Envelope
    from taufit.sim.preset import (
        Preset as Preset,
    )
    from taufit.sim.preset import (
        presets as presets,
    )
    from taufit.sim.preset import (
        read_preset as read_preset,
    )
    from taufit.sim.preset import (
        typical_effects as typical_effects,
    )
    from taufit.sim.preset import (
        typical_rotor as typical_rotor,
    )
    from taufit.sim.random_motion import random_fourier as random_fourier
    from taufit.sim.stepped import Sample as Sample
    from taufit.sim.stepped import SteppedTwin as SteppedTwin
    from taufit.sim.twin import Run as Run
    from taufit.sim.twin import Trace as Trace
    from taufit.sim.twin import Twin as Twin

lazy_room(
    __name__,
    {
        "controller": "Controller",
        "effects": "Effects Elasticity Encoder Friction Push Ripple Sensing Thermal Timing",
        "effects_file": "effects_from_dict effects_to_dict",
        "payload": "Carried",
        "plant": "Envelope",
        "preset": "Preset presets read_preset typical_effects typical_rotor",
        "random_motion": "random_fourier",
        "stepped": "Sample SteppedTwin",
        "twin": "Run Trace Twin",
    },
)
