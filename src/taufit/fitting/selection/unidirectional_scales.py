"""Prior scales of joints that turned one way only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taufit.fitting.selection.prior_scales import TermScales
from taufit.model.torque_model import TorqueModel

# Prior standard deviation of the offset relative to the observed friction, whatever those of the
# other joints are (one of .2, .15, .12, .1, .07 on first seconds of UR10, UR10e and KR300), and
# factor on that of v |v|.
_OFFSET, _QUADRATIC = 0.1, 0.03


def restrict_unidirectional(
    scales: TermScales, model: TorqueModel, joints: tuple[int, ...]
) -> TermScales:
    """Scales with small priors for terms confounded with friction on unidirectional joints."""
    is_quadratic = model.layout.select(lambda parameter: parameter.power == 2)
    is_unidirectional = np.isin(scales.owner, joints)
    factor = np.where(is_unidirectional & is_quadratic, _QUADRATIC, 1.0)
    usual = (replace(term, level=term.level * factor[term.indices]) for term in scales.usual)
    own_offset = np.where(is_unidirectional, scales.offset, 0.0)
    return replace(
        scales,
        usual=tuple(usual),
        viscous=scales.viscous / factor**2,
        coulomb=scales.coulomb + own_offset / _OFFSET**2,
        offset=scales.offset - own_offset,
    )
