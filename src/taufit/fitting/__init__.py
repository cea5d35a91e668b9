"""One fit. In: a `TorqueModel`, `Samples` and perhaps an `Estimator`. Out: an `Estimate`.

Left to others: recordings and scores (workflow), torque without signs (signs).
"""

from taufit.fitting.fit import automatic_model, fit, fitted_model
from taufit.fitting.fit_samples import fit_samples
from taufit.fitting.known_friction import KnownFriction

__all__ = ["KnownFriction", "automatic_model", "fit", "fit_samples", "fitted_model"]
