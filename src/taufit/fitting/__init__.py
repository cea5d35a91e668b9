"""Parameter estimation. In: a `TorqueModel`, `Samples`, optionally an `Estimator`. Out: `Estimate`.

Elsewhere: recordings and scores (workflow), unsigned torque (signs).
"""

from typing import TYPE_CHECKING

from taufit.core.lazy import lazy_package

if TYPE_CHECKING:
    from taufit.fitting.fit import (
        automatic_model as automatic_model,
        fit as fit,
        fitted_model as fitted_model,
    )
    from taufit.fitting.fit_samples import fit_samples as fit_samples
    from taufit.fitting.friction_prior import FrictionPrior as FrictionPrior

lazy_package(__name__)
