"""The terms that simulators' formats have between them: what models are reduced to for export."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.model.torque_model import TorqueModel
from taufit.robot import Robot
from taufit.terms import Spring, Term
from taufit.terms.friction import Polynomial


def simulator_structure(robot: Robot, terms: tuple[Term, ...] = ()) -> TorqueModel:
    """Links, rotors, Coulomb friction, drag up to the third power of speed, springs, offsets.

    All of it acts at the joints: no format couples motors.
    """
    springs = tuple(term for term in terms if isinstance(term, Spring))
    drives = replace(robot.drives, coupling=np.eye(robot.joints))
    return TorqueModel(replace(robot, drives=drives), Polynomial(), terms=springs)
