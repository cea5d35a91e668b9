"""What the arm feels. In: a `FittedModel` and samples. Out: external torque, contacts, forces.

Left to others: what it carries (payload), what to do about a contact (the controller).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_room

if TYPE_CHECKING:
    from taufit.contact.contact import (
        KINDS as KINDS,
        Contact as Contact,
        ContactEvent as ContactEvent,
        Seen as Seen,
    )
    from taufit.contact.external_torque import ExternalTorque as ExternalTorque, Felt as Felt
    from taufit.contact.force import Force as Force, find_force as find_force
    from taufit.contact.injection import (
        Kind as Kind,
        Sensitivity as Sensitivity,
        sensitivity as sensitivity,
        with_contacts as with_contacts,
    )
    from taufit.contact.noise import (
        default_noise as default_noise,
        free_noise as free_noise,
        training_noise as training_noise,
    )
    from taufit.contact.run import (
        ContactRun as ContactRun,
        find_contacts as find_contacts,
        refine_noise as refine_noise,
        smallest_steps as smallest_steps,
    )
    from taufit.contact.settings import ContactSettings as ContactSettings
    from taufit.contact.watch import ContactWatch as ContactWatch

lazy_room(__name__)
