"""Contact detection. In: a `FittedModel` and samples. Out: external torque, contacts, forces.

Not here: payload estimation (payload), the reaction to a contact (the controller).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package
from taufit.core.names import renamed_names

if TYPE_CHECKING:
    from taufit.contact.contact import (
        EVENT_KINDS as EVENT_KINDS,
        Contact as Contact,
        ContactEvent as ContactEvent,
        ContactReading as ContactReading,
    )
    from taufit.contact.contact_detector import ContactDetector as ContactDetector
    from taufit.contact.external_torque import (
        ExternalTorque as ExternalTorque,
        ExternalTorqueBlock as ExternalTorqueBlock,
    )
    from taufit.contact.force import Force as Force, find_force as find_force
    from taufit.contact.injection import (
        ContactKind as ContactKind,
        Sensitivity as Sensitivity,
        inject_contacts as inject_contacts,
        sensitivity as sensitivity,
    )
    from taufit.contact.recording_contacts import (
        ContactRun as ContactRun,
        detectable_torque_steps as detectable_torque_steps,
        find_contacts as find_contacts,
        refine_noise as refine_noise,
    )
    from taufit.contact.regime_noise import (
        default_noise as default_noise,
        learn_contact_free_noise as learn_contact_free_noise,
        training_noise as training_noise,
    )
    from taufit.contact.settings import ContactSettings as ContactSettings

lazy_package(__name__)
# Former names of 0.1, accepted with a warning until 0.3.
__getattr__ = renamed_names(__name__, ContactWatch="ContactDetector")
