"""Usual viscous friction of arms whose torque is measured at the motor, over the observed friction.

    theta_i = r_i l_i,     r_i ~ N(m, within^2),     m ~ N(usual, between^2)

l_i is the observed friction per unit of the parameter, at rated speed. m is common to the
joints of an arm, so that what some of its joints show counts for the others.

Coulomb friction alone has no usual value: pre-sliding friction takes a part of it (with one, the
first eight seconds of a UR10e left 1.05 of the error, and 1.4 at its joint 5).
"""

from __future__ import annotations

import numpy as np

from taufit.core.arrays import Array, Float, Int
from taufit.core.dataclasses import dataclass
from taufit.model.torque_model import TorqueModel
from taufit.terms import DRAG

# Usual mean, standard deviations of an arm's mean and of joints about it. From fits of UR10e, UR10,
# TX40, Airbot, Kinova and KR300; of the first seconds of each, the ratios of the others leave 0.96
# of the error (benchmarks/accuracy/short_logs). Four arms with torque sensors at the links have no
# common ratios.
_VISCOUS, _QUADRATIC = (2.3, 1.6, 1.2), (-0.82, 1.3, 1.1)
# Viscous friction without v |v| term.
_CHORD = (1.5, 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class UsualFriction:
    """Friction terms of one kind.

    Attributes:
        indices: Parameters.
        level: Observed friction per unit of each parameter, l_i.
        mean, between, within: Usual mean and the two standard deviations.
    """

    indices: Int[Array, " k"]
    level: Float[Array, " k"]
    mean: float
    between: float
    within: float

    def arm_mean(self, theta: Float[Array, " p"], data_share: Float[Array, " p"]) -> float:
        """Most probable mean m of the arm; joints count by their information shares."""
        ratio = theta[self.indices] / self.level
        weight = np.clip(data_share[self.indices], 0.0, 1.0) / self.within**2
        precision = 1.0 / self.between**2
        return float((weight @ ratio + precision * self.mean) / (weight.sum() + precision))


def usual_friction(model: TorqueModel, precision: Float[Array, " p"]) -> tuple[UsualFriction, ...]:
    """Friction terms of a model that have a usual value.

    Args:
        model: Torque model.
        precision: 1 / l_i^2 of viscous terms, 0 for others.
    """
    layout = model.layout
    powers = {parameter.power for parameter in layout.parameters if parameter is not None}
    if model.robot.drives.side != "motor" or powers - {0, 1, 2}:
        return ()
    viscous = _VISCOUS if 2 in powers else _CHORD
    out = []
    for power, usual in ((1, viscous), (2, _QUADRATIC)):
        is_power = layout.select(lambda x, power=power: x.power == power)  # type: ignore[misc]
        indices = np.flatnonzero(layout.of_group(DRAG) & is_power & (precision > 0.0))
        if len(indices):
            out.append(UsualFriction(indices, 1.0 / np.sqrt(precision[indices]), *usual))
    return tuple(out)
