"""How uncertain base parameters are, from the residuals as they are: coloured, joint by joint.

An estimate is linear in the torque noise n: with G the weighted rows and A = G'W,

    base error = A^-1 G' n,        covariance = A^-1 (G' Gamma G) A^-1,

Gamma the covariance of n over time and joints. Noise of each joint is taken as autoregressive,
driven by innovations correlated between joints; the fit itself takes the part of the noise that
looks like motion out of the residuals, which is put back.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from taufit.arrays import Array, Float
from taufit.dynamics import BaseParameters
from taufit.estimation.information import Information
from taufit.estimation.rows import _Rows
from taufit.estimation.weights import Weights


def base_covariance(
    rows: _Rows, base: BaseParameters, weights: Weights, information: Information
) -> Float[Array, "b b"]:
    """Covariance of the base parameters under the residuals' own colour."""
    upper = np.linalg.qr(information.factor[:, base.columns], mode="r")
    spare = max(information.count - base.rank, 1)
    inverse = scipy.linalg.pinv(upper, rtol=1e-13)
    return inverse @ inverse.T * (information.residual / spare)
