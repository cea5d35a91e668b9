"""What the arm feels. In: a `FittedModel` and samples. Out: external torque, contacts, forces.

Left to others: what it carries (payload), what to do about a contact (the controller).
"""

from taufit.contact.contact import KINDS, Contact, ContactEvent, Seen
from taufit.contact.external_torque import ExternalTorque, Felt
from taufit.contact.force import Force, find_force
from taufit.contact.injection import Kind, Sensitivity, sensitivity, with_contacts
from taufit.contact.noise import default_noise, free_noise, training_noise
from taufit.contact.run import ContactRun, find_contacts, refine_noise, smallest_steps
from taufit.contact.settings import ContactSettings
from taufit.contact.watch import ContactWatch

__all__ = [
    "KINDS",
    "Contact",
    "ContactEvent",
    "ContactRun",
    "ContactSettings",
    "ContactWatch",
    "ExternalTorque",
    "Felt",
    "Force",
    "Kind",
    "Seen",
    "Sensitivity",
    "default_noise",
    "find_contacts",
    "find_force",
    "free_noise",
    "refine_noise",
    "sensitivity",
    "smallest_steps",
    "training_noise",
    "with_contacts",
]
