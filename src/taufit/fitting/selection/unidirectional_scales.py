"""Prior scales of joints that turned one way only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.fitting.selection.prior_scales import TermScales
from taufit.model.torque_model import TorqueModel

# Factors on the prior of the offset and of v |v|.
_OFFSET, _QUADRATIC = 0.2, 0.03


def restrict_unidirectional(
    scales: TermScales, model: TorqueModel, joints: tuple[int, ...]
) -> TermScales:
    """Scales with small priors for terms confounded with friction on unidirectional joints."""
    is_quadratic = model.layout.select(lambda parameter: parameter.power == 2)
    is_unidirectional = np.isin(scales.owner, joints)
    factor = np.where(is_unidirectional & is_quadratic, _QUADRATIC, 1.0)
    usual = (replace(term, level=term.level * factor[term.indices]) for term in scales.usual)
    return replace(
        scales,
        usual=tuple(usual),
        viscous=scales.viscous / factor**2,
        offset=scales.offset / np.where(is_unidirectional, _OFFSET, 1.0) ** 2,
    )
