"""What the joints' bearings and gears cost. In: velocity, load, temperature. Out: torque columns.

Left to others: fitting coefficients and shapes (estimation).
"""

from taufit.friction.linear import Linear
from taufit.friction.model import FrictionModel, Shape, Term

FRICTION_MODELS = {"linear": Linear}

__all__ = ["FRICTION_MODELS", "FrictionModel", "Linear", "Shape", "Term"]
