"""Structure with the terms of simulator formats, to which models are reduced for export."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.terms import Spring, Term
from taufit.terms.friction import Polynomial


def simulator_structure(robot: Robot, terms: tuple[Term, ...] = ()) -> TorqueModel:
    """Links, rotors, Coulomb friction, viscous friction up to third order, springs, offsets.

    All terms act at the joints: no format has coupled motors.
    """
    springs = tuple(term for term in terms if isinstance(term, Spring))
    drives = replace(robot.drives, coupling=np.eye(robot.joints))
    return TorqueModel(replace(robot, drives=drives), Polynomial(), terms=springs)
